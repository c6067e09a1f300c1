"""Any environment with gymnasium's interface.

    make("id", ID, ARGUMENTS)               an installed id: gymnasium.make(ID, **ARGUMENTS)
    make("file", FILE:FUNCTION, ARGUMENTS)  the return value of a function in a Python file: FUNCTION(**ARGUMENTS)
    make("object", ENVIRONMENT)             an existing environment in this process

ARGUMENTS is a JSON object. Observations become one row of numbers: Box spaces row by row, Discrete and MultiDiscrete as
one-hot, MultiBinary as it is, the parts of a Dict in the order of their sorted keys and those of a Tuple in theirs.
Actions are a Box, of any shape, or Discrete.
"""

import difflib
import json
from __main__ import Hopeless, guarded, load_function

import gymnasium
import numpy as np
from gymnasium import spaces

PACKAGES = ("gymnasium", "numpy")
OWN_RANDOM = True  # steps may draw from any generator
ENDLESS = 10_000  # steps, if nothing else limits an episode


def did_you_mean(name, names):
    near = difflib.get_close_matches(name, names, 3, 0.5)
    return f"; did you mean {' or '.join(f'`{n}`' for n in near)}?" if near else ""


def from_id(name, arguments):
    gymnasium.logger.min_level = 50
    unknown = gymnasium.error.UnregisteredEnv, gymnasium.error.NamespaceNotFound, ModuleNotFoundError
    try:
        return gymnasium.make(name, disable_env_checker=True, **arguments)
    except gymnasium.error.DependencyNotInstalled as error:
        raise Hopeless(f"{error}; `album setup gymnasium PACKAGE` installs a package") from error
    except unknown as error:
        if isinstance(error, ModuleNotFoundError) and ":" not in name:
            raise
        near = did_you_mean(name, list(gymnasium.registry))
        raise Hopeless(
            f"found no environment of this id among the {len(gymnasium.registry)} that are installed{near or '; '}"
            f"{' ' if near else ''}`album setup gymnasium PACKAGE` installs more"
        ) from error


def from_file(name, arguments):
    gymnasium.logger.min_level = 50
    return load_function(name)(**arguments)


def flat(space, where):
    """The dimension of an observation, and a function that writes one into a row."""
    if isinstance(space, spaces.Dict):
        return chain([(key, *flat(space[key], f"{where}[{key!r}]")) for key in sorted(space)])
    if isinstance(space, spaces.Tuple):
        return chain([(i, *flat(part, f"{where}[{i}]")) for i, part in enumerate(space)])
    if isinstance(space, spaces.Discrete):
        n, start = int(space.n), int(space.start)

        def one_hot(value, row):
            index = int(value) - start
            if not 0 <= index < n:
                raise Hopeless(f"found {value} in {where}, expected {start} to {start + n - 1}")
            row[index] = 1

        return n, one_hot
    if isinstance(space, spaces.MultiDiscrete):
        parts = [spaces.Discrete(n, start=s) for n, s in zip(space.nvec.ravel(), space.start.ravel())]
        dim, write = chain([(i, *flat(part, f"{where}[{i}]")) for i, part in enumerate(parts)])
        return dim, lambda value, row: write(np.ravel(value), row)
    if isinstance(space, (spaces.Box, spaces.MultiBinary)):
        shape = tuple(space.shape)

        def numbers(value, row):
            value = np.asarray(value)
            if value.shape != shape:
                raise Hopeless(f"found {where} of shape {value.shape}, expected {shape} as its space says")
            row[:] = value.reshape(-1)

        return int(np.prod(shape)), numbers
    raise Hopeless(f"found {where} of kind {type(space).__name__}, expected Box, Discrete, Dict or Tuple")


def chain(parts):
    ends = np.cumsum([dim for _, dim, _ in parts]).tolist()

    def write(value, row):
        begin = 0
        for (key, _, part), end in zip(parts, ends):
            part(value[key], row[begin:end])
            begin = end

    return (ends or [0])[-1], write


class Environment:
    choices = 0

    def __init__(self, kind, name, arguments=None):
        if kind == "object":
            self.env = name
        else:
            make = from_id if kind == "id" else from_file
            self.env = guarded("the environment cannot be made", make, name, json.loads(arguments))
        for attribute in ("observation_space", "action_space", "reset", "step"):
            if not hasattr(self.env, attribute):
                kind = type(self.env).__name__
                raise Hopeless(f"found an object of type {kind} without {attribute}, expected a gymnasium environment")
        self.observation_dim, self.write = flat(self.env.observation_space, "observation")
        self.action(self.env.action_space)
        self.horizon = getattr(getattr(self.env, "spec", None), "max_episode_steps", None) or ENDLESS

    def action(self, space):
        if isinstance(space, spaces.Discrete):
            self.action_dim, self.choices, self.start = 1, int(space.n), int(space.start)
            self.decode = lambda action: self.start + int(action[0])
        elif isinstance(space, spaces.Box):
            self.action_dim, shape, kind = int(np.prod(space.shape)), space.shape, space.dtype
            if not np.issubdtype(kind, np.floating):
                raise Hopeless(f"found actions of type {kind}, expected floating-point numbers or Discrete")
            self.low, self.high = space.low.reshape(-1), space.high.reshape(-1)
            self.decode = lambda action: action.reshape(shape).astype(kind)
        else:
            raise Hopeless(f"found actions of kind {type(space).__name__}, expected Box or Discrete")

    def row(self, observation):
        row = np.zeros(self.observation_dim, np.float32)
        guarded("the environment returned a bad observation", self.write, observation, row)
        if not np.isfinite(row).all():
            at = int(np.argmin(np.isfinite(row)))
            raise Hopeless(f"found {row[at]} as number {at} of an observation, expected finite numbers")
        return row

    def reset(self, seed):
        # Some environments accept only 31-bit seeds.
        found = guarded("the environment failed in reset", self.env.reset, seed=seed % 2**31)
        if not (isinstance(found, tuple) and len(found) == 2):
            raise Hopeless(f"reset returned {type(found).__name__}, expected (observation, info)")
        return self.row(found[0])

    def step(self, action):
        found = guarded("the environment failed in step", self.env.step, self.decode(action))
        if not (isinstance(found, tuple) and len(found) == 5):
            what = f"{len(found)} values" if isinstance(found, tuple) else type(found).__name__
            raise Hopeless(f"step returned {what}, expected (observation, reward, terminated, truncated, info)")
        observation, reward, terminated, truncated, info = found
        reward = guarded("the environment returned a bad reward", float, reward)
        if not np.isfinite(reward):
            raise Hopeless(f"found {reward} as the reward of a step, expected a finite number")
        success = info.get("success", info.get("is_success")) if isinstance(info, dict) else None
        return self.row(observation), reward, terminated, truncated, success

    def render(self):
        frame = guarded("the environment cannot render", self.env.render)
        if frame is None:
            raise Hopeless("the environment draws no frames; pass --env-arg render_mode=rgb_array")
        return frame


make = Environment
