"""A function of a Python file as a policy.

    make(FILE:FUNCTION, OBSERVATION_DIM, ACTION_DIM, CHOICES)

FUNCTION(observation) or FUNCTION(observation, rng) returns an action: numbers in physical units, or an index if CHOICES
is not 0. `rng` is a NumPy generator that follows from the episode's seed.

The host sees it as an environment: a step takes an observation and returns the action.
"""

import inspect

import numpy as np
from __main__ import Hopeless, guarded, load_function

PACKAGES = ("numpy",)
OWN_RANDOM = True


class Policy:
    low, high = -np.inf, np.inf
    horizon = 2**32 - 1

    def __init__(self, name, observation_dim, action_dim, choices):
        # Observations and actions are swapped here.
        self.action_dim, self.observation_dim = int(observation_dim), int(action_dim)
        self.discrete = int(choices)
        self.function = guarded("the policy cannot be loaded", load_function, name)
        parameters = guarded("the policy cannot be loaded", inspect.signature, self.function).parameters
        self.takes_rng = len(parameters) > 1

    def reset(self, seed):
        self.rng = np.random.default_rng(seed)
        return np.zeros(self.observation_dim)

    def step(self, observation):
        arguments = (observation, self.rng) if self.takes_rng else (observation,)
        found = guarded("the policy failed", self.function, *arguments)
        action = guarded("the policy returned no action", np.asarray, found, np.float64)
        if action.size != self.observation_dim:
            kind = "an index" if self.discrete else f"{self.observation_dim} numbers"
            raise Hopeless(f"the policy returned an array of shape {action.shape}, expected {kind}")
        return action.reshape(-1), 0.0, False, False, None


make = Policy
