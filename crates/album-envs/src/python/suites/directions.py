"""Walking in commanded directions, as the experts of the package ogbench were trained: make(ENVIRONMENT_ID).

An observation ends with the unit vector of the direction, which is drawn at the reset and every 100 steps. The reward is the
way made in that direction. An episode that terminates is one in which the body fell.
"""

import ogbench.online_locomotion  # registers the environments; first, so that it is the module reported as missing
import gymnasium
from ogbench.online_locomotion.wrappers import GymXYWrapper

PACKAGES = ("ogbench", "mujoco", "gymnasium", "numpy")
gymnasium.logger.min_level = 50


class Environment:
    def __init__(self, name):
        made = gymnasium.make(name, disable_env_checker=True)
        self.horizon = made.spec.max_episode_steps
        # Without gymnasium's own wrappers: the worker counts steps.
        self.env = GymXYWrapper(made.unwrapped)
        self.observation_dim = self.env.observation_space.shape[0]
        self.action_dim = self.env.action_space.shape[0]

    def reset(self, seed):
        return self.env.reset(seed=seed)[0]

    def step(self, action):
        observation, reward, terminated, truncated, _ = self.env.step(action)
        return observation, float(reward), terminated, truncated, None


make = Environment
