"""Offline reinforcement learning from logged decisions: arrays in, a policy out.

>>> import album_rl as al, numpy as np
>>> rng = np.random.default_rng(0)
>>> observations = rng.uniform(-1, 1, (1000, 1)).astype(np.float32)
>>> actions = rng.uniform(-1, 1, (1000, 1)).astype(np.float32)
>>> data = al.Dataset(observations, actions, -np.abs(observations[:, 0]), timeouts=np.arange(1000) % 50 == 49)
>>> agent = al.Album(hidden=(32, 32), seed=0).fit(data, steps=100)
>>> agent.predict(np.float32([0.5])).shape
(1,)
"""

from ._agent import CLASSES, Agent, Evaluation, Policy, agents, load
from ._album import __version__
from ._dataset import Dataset, Inspection
from ._errors import (
    AlbumError,
    ConfigError,
    DataError,
    EnvError,
    FileError,
    NotFitted,
    NumericalError,
    RunError,
    StoppedWarning,
    Unsupported,
)
from ._solve import Solution, solve

globals().update({kind.__name__: kind for kind in CLASSES.values()})

__all__ = [
    "Agent",
    "AlbumError",
    "ConfigError",
    "DataError",
    "Dataset",
    "EnvError",
    "Evaluation",
    "FileError",
    "Inspection",
    "NotFitted",
    "NumericalError",
    "Policy",
    "RunError",
    "Solution",
    "StoppedWarning",
    "Unsupported",
    "agents",
    "load",
    "solve",
    *sorted(kind.__name__ for kind in CLASSES.values()),
]
