"""Logged decisions: arrays, files, Minari, pandas, d3rlpy."""

import json
import os
import warnings

import numpy as np

from . import _album
from ._arrays import readable
from ._errors import DataError


def _options(**given):
    bounds = given.pop("action_bounds", None)
    options = {"paths": [], **{key: value for key, value in given.items() if value is not None}}
    if bounds is not None:
        pairs = np.asarray(bounds, dtype=float)
        if pairs.size == 2:
            pairs = pairs.reshape(1, 2)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise DataError(f"action_bounds: found shape {pairs.shape}, expected (low, high), or such a pair for each number")
        options["action_bounds"] = pairs.tolist()
    return json.dumps(options)


def _columns(columns):
    if columns is None or isinstance(columns, str):
        return columns
    names = lambda value: value if isinstance(value, str) else "+".join(value)
    return ",".join(f"{role}={names(value)}" for role, value in columns.items())


class Inspection(dict):
    """What the doctor found: a dict that prints as a page."""

    def __repr__(self):
        def span(columns):
            return f"{min(c['min'] for c in columns):.4g} to {max(c['max'] for c in columns):.4g}"

        length, action, ends = self["episode_length"], self["action"], self["ends"]
        kind = f"{action['n']} choices" if action["kind"] == "discrete" else f"{action['dim']} numbers, {self._bounds()}"
        lines = [
            ("transitions", f"{self['transitions']:,} in {self['episodes']:,} episodes"),
            ("episodes", f"{length['min']:,} to {length['max']:,} long, median {length['median']:,}"),
            ("ends", f"{ends['terminal']:,} by the end of the task, {ends['timeout']:,} cut"),
            ("observations", f"{self['observation']['dim']} numbers, {span(self['observations'])}"),
            ("actions", kind),
        ]
        lines += [("guessed", guess) for guess in self["guesses"]]
        lines += [(f"! {warning['code']}", warning["message"]) for warning in self["warnings"]]
        if not self["warnings"]:
            lines.append(("warnings", "none"))
        return "\n".join(f"{name:>16}  {text}" for name, text in lines)

    def _bounds(self):
        pairs = list(zip(self["action"]["low"], self["action"]["high"]))
        shown = ", ".join(f"[{low:g}, {high:g}]" for low, high in pairs[:6])
        return shown + (", ..." if len(pairs) > 6 else "")


class Dataset:
    """Logged decisions to learn from, one row for each step.

    The arrays are checked and copied once, into the library's own layout: what happens to them afterwards changes nothing.
    float32, float64, int64 and bool arrays in C order are read where they are; others are converted first.

    Args:
        observations: what was seen, ``(rows, n)``. Also with one more row for each episode: where it led to.
        actions: what was done: ``(rows, m)`` numbers in physical units, or ``(rows,)`` whole numbers of choices.
        rewards: ``(rows,)``.
        terminals: whether the task was over with the row: no value follows.
        timeouts: whether the recording was cut there: the value of what followed still counts.
        next_observations: where the row led to. Without it, that is the next row of the episode, and a row that was cut off is
            dropped.
        episodes: the number of the episode, where flags do not tell episodes apart.
        masks: 0 where no value follows, as OGBench has them.
        ends: ``"terminal"`` or ``"timeout"``: what ends an episode, where no flag tells.
        action_kind: ``"discrete"`` or ``"continuous"``, where whole numbers may be either.
        action_bounds: ``(low, high)`` of the actions, or such a pair for each number. Without it, those of the data.

    >>> import album_rl as al, numpy as np
    >>> observations = np.arange(20, dtype=np.float32).reshape(20, 1)
    >>> data = al.Dataset(observations, np.zeros((20, 1)), np.ones(20), timeouts=np.arange(20) % 10 == 9)
    >>> len(data), data.episodes
    (18, 2)
    """

    __slots__ = ("_native", "_description")

    def __init__(
        self,
        observations,
        actions,
        rewards,
        terminals=None,
        timeouts=None,
        *,
        next_observations=None,
        episodes=None,
        masks=None,
        ends=None,
        action_kind=None,
        action_bounds=None,
    ):
        given = {
            "observations": observations,
            "actions": actions,
            "rewards": rewards,
            "next_observations": next_observations,
            "episode": episodes,
            "masks": masks,
            "terminals": terminals,
            "timeouts": timeouts,
        }
        # The names of the arguments say what they mean. With masks alone, terminals mark the last state of an episode.
        columns = "obs=observations,action=actions,reward=rewards"
        columns += ",timeout=timeouts" if timeouts is not None else ""
        columns += ",terminal=terminals" if terminals is not None and (masks is None or timeouts is not None) else ""
        options = _options(ends=ends, actions=action_kind, action_bounds=action_bounds)
        self._take(_from_arrays(given, options, columns), 3)

    def _take(self, native, level):
        self._native = native
        self._description = json.loads(native.description())
        for text in native.warnings:
            warnings.warn(text, stacklevel=level)
        return self

    @classmethod
    def _of(cls, native):
        return cls.__new__(cls)._take(native, 4)

    @classmethod
    def load(cls, path, *, columns=None, format=None, ends=None, action_kind=None, action_bounds=None, reward_last=None):
        """Reads a file or folder, several of them that are one dataset, or a Minari dataset by its id.

        Formats are those of the command line: npz, npy, HDF5 (D4RL, robomimic, Minari), Parquet, CSV, LeRobot, and what
        ``album data import`` writes. ``columns`` says which column is what, as a dict or as ``--columns`` has it:
        ``{"episode": "run", "obs": "x_*", "action": ["u1", "u2"], "reward": "r", "terminal": "done"}``.
        """
        one = isinstance(path, (str, os.PathLike))
        paths = [os.fspath(path)] if one else [os.fspath(part) for part in path]
        options = _options(
            format=format, ends=ends, actions=action_kind, action_bounds=action_bounds, reward_last=reward_last
        )
        return cls._of(_album.Dataset.load(paths, options, _columns(columns)))

    @classmethod
    def from_pandas(cls, frame, columns=None, *, ends=None, action_kind=None, action_bounds=None, reward_last=None):
        """Reads a pandas (or polars) data frame, one row for each step; ``columns`` as in :meth:`load`.

        Text columns become one-hot observations or named choices.
        """
        arrays = {}
        for name in frame.columns:
            values = frame[name].to_numpy()
            if values.dtype.kind in "mM":
                continue  # dates are no numbers
            if values.dtype == object:
                first = next((value for value in values if value is not None), None)
                if isinstance(first, str) or first is None:
                    values = np.array(["" if value is None or value != value else str(value) for value in values])
                elif isinstance(first, (list, tuple, np.ndarray)):
                    values = np.stack([np.asarray(value) for value in values])
            arrays[str(name)] = values
        options = _options(ends=ends, actions=action_kind, action_bounds=action_bounds, reward_last=reward_last)
        return cls._of(_from_arrays(arrays, options, _columns(columns)))

    @classmethod
    def from_minari(cls, dataset):
        """Reads a Minari dataset that is open in Python. ``Dataset.load(id)`` reads one without Minari.

        Dict and Tuple observations are laid side by side in the order of their keys, Discrete ones are one-hot.
        """
        space = dataset.action_space
        flatten = _flattener(getattr(dataset, "observation_space", None))
        return cls._of(
            _from_episodes(
                (
                    (flatten(e.observations), e.actions, e.rewards, bool(e.terminations[-1]))
                    for e in dataset.iterate_episodes()
                ),
                space,
            )
        )

    @classmethod
    def from_d3rlpy(cls, mdp_dataset, *, action_bounds=None):
        """Reads d3rlpy's ``MDPDataset`` or any of its replay buffers with vector observations."""
        episodes = list(mdp_dataset.episodes)
        if not episodes:
            raise DataError("from_d3rlpy: found no episodes, expected at least one")
        discrete = "DISCRETE" in str(getattr(mdp_dataset.dataset_info, "action_space", "")).upper()

        class Space:
            n = int(getattr(mdp_dataset.dataset_info, "action_size", 0)) if discrete else None

        # A d3rlpy episode has no state after its last action.
        return cls._of(
            _from_episodes(
                ((e.observations, e.actions, np.ravel(e.rewards), bool(e.terminated)) for e in episodes),
                Space if discrete else None,
                action_bounds,
            )
        )

    def inspect(self, gamma=0.995):
        """The doctor: sizes, ranges, what was guessed and what looks wrong, as a dict that prints as a page."""
        return Inspection(json.loads(self._native.inspect(gamma)))

    def split(self, share=0.1, seed=0):
        """(training, held out): whole episodes, those that ``fit(holdout=share)`` with this seed holds out."""
        training, held_out = self._native.split(share, seed)
        return Dataset._of(training), Dataset._of(held_out)

    def __len__(self):
        return len(self._native)

    @property
    def episodes(self):
        """How many there are."""
        return self._description["episodes"]

    @property
    def observation_names(self):
        return self._description["observation_names"]

    @property
    def action_names(self):
        return self._description["action_names"]

    @property
    def action_space(self):
        """``{"kind": "continuous", "low": [...], "high": [...]}`` or ``{"kind": "discrete", "n": ...}``."""
        return self._description["action_space"]

    @property
    def guesses(self):
        """What was guessed, and from what."""
        return self._description.get("guesses", [])

    @property
    def warnings(self):
        """What is not in the dataset or looks wrong."""
        return self._native.warnings

    @property
    def content_hash(self):
        """SHA-256 of the contents; equal to that of the command line for equal data."""
        return self._native.content_hash()

    def transitions(self):
        """A dict of arrays with one row for each transition that is learned from: copies."""
        names = ("observations", "next_observations", "actions", "rewards", "masks", "episodes")
        return dict(zip(names, self._native.transitions()))

    def __repr__(self):
        dim, kind = len(self.observation_names), self.action_space
        actions = f"{kind['n']} actions" if kind["kind"] == "discrete" else f"actions of dimension {len(kind['low'])}"
        episodes = f"{self.episodes:,} episode{'s' if self.episodes != 1 else ''}"
        return f"Dataset({len(self):,} transitions in {episodes}, observations of dimension {dim}, {actions})"


def _from_arrays(given, options, columns):
    arrays = [(name, readable(name, values)) for name, values in given.items() if values is not None]
    lengths = {}
    for name, array in arrays:
        shape = array[0].shape if isinstance(array, tuple) else array.shape
        if len(shape) == 0:
            raise DataError(f"{name}: found a single number, expected one row for each step")
        lengths[name] = shape[0]
    # Observations may have one more row for each episode, which only the library can count.
    rows = lengths.get("actions")
    for name, found in lengths.items():
        if rows is not None and found != rows and name != "observations":
            raise DataError(f"{name}: found {found} rows, expected {rows} as in actions")
    return _album.Dataset.from_arrays(arrays, options, columns)


def _from_episodes(episodes, space, action_bounds=None):
    """Episodes of equal form: all with an observation after their last action, or none."""
    columns = {name: [] for name in ("observations", "actions", "rewards", "terminated", "truncated")}
    form = None
    for number, (observations, actions, rewards, terminated) in enumerate(episodes):
        observations, actions, rewards = np.asarray(observations), np.asarray(actions), np.asarray(rewards, dtype=float)
        steps, extra = len(actions), len(observations) - len(actions)
        if steps == 0:
            continue
        form = extra if form is None else form
        if extra not in (0, 1) or extra != form or len(rewards) != steps:
            raise DataError(
                f"episode {number}: found {len(observations)} observations and {len(rewards)} rewards for {steps} actions, "
                f"expected {steps + (form if form in (0, 1) else 1)} observations and {steps} rewards"
            )
        last = np.arange(steps) == steps - 1
        columns["observations"].append(observations.reshape(steps + extra, -1))
        columns["actions"].append(actions)
        columns["rewards"].append(rewards)
        columns["terminated"].append(last & terminated)
        columns["truncated"].append(last & (not terminated))
    if form is None:
        raise DataError("found no episode with a step, expected at least one")
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    kind = known = None
    low, high = getattr(space, "low", None), getattr(space, "high", None)
    if getattr(space, "n", None) is not None:
        kind, known = "discrete", {"kind": "discrete", "n": int(space.n)}
        joined["actions"] = joined["actions"] - int(getattr(space, "start", 0) or 0)
    elif low is not None and np.isfinite(low).all() and np.isfinite(high).all() and action_bounds is None:
        known = {"kind": "continuous", "low": np.ravel(low).tolist(), "high": np.ravel(high).tolist()}
    options = _options(actions=kind, action_space=known, action_bounds=action_bounds)
    columns = "obs=observations,action=actions,reward=rewards,terminal=terminated,timeout=truncated"
    return _from_arrays(joined, options, columns)


def _flattener(space):
    """Observations of an episode as rows: those of a Dict or Tuple side by side, Discrete ones as one-hot."""
    name = type(space).__name__
    if name == "Dict":
        parts = [(key, _flattener(space[key])) for key in sorted(space)]
        return lambda value: np.concatenate([part(value[key]) for key, part in parts], axis=1)
    if name == "Tuple":
        parts = [_flattener(part) for part in space]
        return lambda value: np.concatenate([part(one) for part, one in zip(parts, value)], axis=1)
    if name == "Discrete":
        n, start = int(space.n), int(space.start)
        return lambda value: np.eye(n, dtype=np.float32)[np.asarray(value).ravel() - start]

    def rows(value):
        array = np.asarray(value)
        return array.reshape(len(array), -1)

    return rows
