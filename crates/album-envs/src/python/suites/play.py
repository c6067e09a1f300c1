"""Recordings of the manipulation environments of the package ogbench with its own oracles.

    make(ENVIRONMENT, KIND, ROWS)

ENVIRONMENT is cube-*, scene or puzzle-*, KIND is play or noisy, and an episode has ROWS rows. An episode is a function
of its seed: it does not depend on what was recorded before it.
"""

import copy
import sys

import ogbench.manipspace  # registers the environments; first, so that it is the module reported as missing
import gymnasium
import mujoco
import numpy as np
from ogbench.manipspace.oracles.markov.button_markov import ButtonMarkovOracle
from ogbench.manipspace.oracles.markov.cube_markov import CubeMarkovOracle
from ogbench.manipspace.oracles.markov.drawer_markov import DrawerMarkovOracle
from ogbench.manipspace.oracles.markov.window_markov import WindowMarkovOracle
from ogbench.manipspace.oracles.plan.button_plan import ButtonPlanOracle
from ogbench.manipspace.oracles.plan.cube_plan import CubePlanOracle
from ogbench.manipspace.oracles.plan.drawer_plan import DrawerPlanOracle
from ogbench.manipspace.oracles.plan.window_plan import WindowPlanOracle

PACKAGES = ("ogbench", "mujoco", "gymnasium", "numpy", "scipy")

# The settings of the published data.
NOISE = 0.1
PLAN = dict(noise=NOISE, noise_smoothing=0.5)
MARKOV = dict(min_norm=0.4)
STACKING = {
    "cube-single": (0.0, 0.0),
    "cube-double": (0.0, 0.25),
    "cube-triple": (0.05, 0.35),
    "cube-quadruple": (0.1, 0.5),
    "cube-octuple": (0.0, 0.35),
}

# The recorded arrays and their types.
TYPES = dict(
    observations=np.float32,
    actions=np.float32,
    terminals=np.bool_,
    qpos=np.float32,
    qvel=np.float32,
    button_states=np.int64,
)


def oracles(environment, kind, env):
    """One oracle for each kind of target."""
    family = environment.split("-")[0]
    if kind == "play":
        if family == "cube":
            return {"cube": CubePlanOracle(env=env, **PLAN)}
        if family == "puzzle":
            return {"button": ButtonPlanOracle(env=env, gripper_always_closed=True, **PLAN)}
        return {
            "cube": CubePlanOracle(env=env, **PLAN),
            "button": ButtonPlanOracle(env=env, **PLAN),
            "drawer": DrawerPlanOracle(env=env, **PLAN),
            "window": WindowPlanOracle(env=env, **PLAN),
        }
    if family == "cube":
        return {"cube": CubeMarkovOracle(env=env, **MARKOV)}
    if family == "puzzle":
        return {"button": ButtonMarkovOracle(env=env, gripper_always_closed=True, **MARKOV)}
    return {
        "cube": CubeMarkovOracle(env=env, max_step=100, **MARKOV),
        "button": ButtonMarkovOracle(env=env, **MARKOV),
        "drawer": DrawerMarkovOracle(env=env, **MARKOV),
        "window": WindowMarkovOracle(env=env, **MARKOV),
    }


def healthy(environment, episode):
    """Whether a scene's cube stays in view or in the drawer."""
    if environment != "scene":
        return True
    y, z = episode["qpos"][:, 15], episode["qpos"][:, 16]
    return not ((y >= 0.29) | ((y <= -0.3) & ((z < 0.06) | (z > 0.08)))).any()


class Recorder:
    """An environment that can be put back into its first state, and what is recorded in it."""

    def __init__(self, environment, kind, rows):
        self.name, self.kind, self.horizon = environment, kind, int(rows)
        self.env = gymnasium.make(
            f"{environment}-v0",
            terminate_at_goal=False,
            mode="data_collection",
            max_episode_steps=self.horizon,
            disable_env_checker=True,
        )
        np.random.seed(0)
        self.env.reset(seed=0)
        inner = self.env.unwrapped
        self.model = copy.copy(inner._model)
        plain = (bool, int, float, str, np.ndarray, np.generic, type(None))
        self.rest = {k: copy.deepcopy(v) for k, v in vars(inner).items() if isinstance(v, plain)}
        self.observation_dim = self.env.observation_space.shape[0]
        self.action_dim = self.env.action_space.shape[0]

    def reset(self, seed):
        """Starts an episode in the state in which the environment was made.

        A reset of the environment itself keeps locks, targets and button states of the episode before, and noisy
        scenes then come out differently. A new environment would do too, but takes half a second.
        """
        inner = self.env.unwrapped
        vars(inner).update(copy.deepcopy(self.rest))
        inner._model = copy.copy(self.model)
        inner._data = mujoco.MjData(inner._model)
        return self.env.reset(seed=seed)

    def record(self, seed):
        """The rows of one episode, as a dictionary of arrays."""
        attempts = np.random.SeedSequence(seed)
        while True:
            # The first attempt has the seed itself, others are drawn from it.
            episode = self.attempt(seed)
            if healthy(self.name, episode):
                return episode
            print("unhealthy episode, trying again", file=sys.stderr)
            seed = int(attempts.spawn(1)[0].generate_state(1, np.uint64)[0])

    def attempt(self, seed):
        np.random.seed([seed & 0xFFFFFFFF, seed >> 32])
        env, environment = self.env, self.name
        ob, info = self.reset(seed)
        # Kept, because each access to env.action_space creates a new, unseeded space.
        random_actions = env.action_space
        random_actions.seed(seed & 0xFFFFFFFF)
        agents = oracles(environment, self.kind, env)
        p_stack = np.random.uniform(*STACKING[environment]) if environment in STACKING else 0.5
        noisy = self.kind == "noisy"
        p_random = 0.0 if not noisy else 0.2 if environment.startswith("puzzle") else 0.1
        level = np.random.uniform(0, NOISE) if noisy else 0.0
        spread = level * np.array([1.0, 1.0, 1.0, 3.0, 10.0])

        agent = agents[info["privileged/target_task"]]
        agent.reset(ob, info)
        rows = {name: [] for name in TYPES}
        done = False
        while not done:
            if np.random.rand() < p_random:
                action = random_actions.sample()
            else:
                action = np.array(agent.select_action(ob, info))
                if noisy:
                    action = action + np.random.normal(0, spread, action.shape)
            action = np.clip(action, -1, 1)
            next_ob, _, terminated, truncated, info = env.step(action)
            done = terminated or truncated
            if agent.done:
                target_ob, target_info = env.unwrapped.set_new_target(p_stack=p_stack)
                agent = agents[target_info["privileged/target_task"]]
                agent.reset(target_ob, target_info)
            rows["observations"].append(ob)
            rows["actions"].append(action)
            rows["terminals"].append(done)
            rows["qpos"].append(info["prev_qpos"])
            rows["qvel"].append(info["prev_qvel"])
            if "prev_button_states" in info:
                rows["button_states"].append(info["prev_button_states"])
            ob = next_ob
        return {name: np.array(rows[name], dtype=TYPES[name]) for name in TYPES if rows[name]}


make = Recorder
