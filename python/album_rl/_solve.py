"""The exact program on tables."""

import json
import warnings as python_warnings

import numpy as np

from . import _album
from ._errors import DataError


class Solution:
    """Exact in-sample values with their certificate. Rows of ``states`` and of ``pair_states`` are the caller's own labels.

    Attributes:
        states, v: the states with an action in the data, and the value of each.
        pair_states, pair_actions, counts, q: the pairs of a state and an action in the data, their rows and their values.
        duals: for each family of constraints (``b``, ``e``, ``kq``, ``kv``) the dual variable of each pair.
        certificate: how well the optimality conditions hold, by an independent look at the point.
        report: all that ``album solve --json`` prints.
    """

    def __init__(self, found, report, state_labels, action_labels):
        self.states = state_labels[found["states"]]
        self.v = found["v"]
        self.pair_states = state_labels[found["pair_states"]]
        self.pair_actions = action_labels[found["pair_actions"]]
        self.counts = found["counts"]
        self.q = found["q"]
        self.duals = {family: found[f"dual_{family}"] for family in ("b", "e", "kq", "kv")}
        self.report = report
        self.certificate = report["certificate"]
        # Pairs are sorted by state: where each state's begin.
        self._first = np.searchsorted(found["pair_states"], found["states"])

    def policy(self):
        """The best recorded action of each state: a dict from state to action (a state of several numbers is a tuple)."""
        ends = np.append(self._first[1:], len(self.q))
        best = [first + int(np.argmax(self.q[first:end])) for first, end in zip(self._first, ends)]
        key = lambda label: tuple(label.tolist()) if np.ndim(label) else label.item() if hasattr(label, "item") else label
        return {key(state): key(self.pair_actions[pair]) for state, pair in zip(self.states, best)}

    def __repr__(self):
        gap = self.certificate["gap"]
        return f"Solution({len(self.v):,} states, {len(self.q):,} pairs, V from {self.v.min():.4g} to {self.v.max():.4g}, duality gap {gap:.1e})"


def _labels(name, *columns):
    """Numbers for the rows of some columns, and the labels that they stand for."""
    arrays = [np.asarray(column) for column in columns]
    for array in arrays:
        if array.ndim not in (1, 2) or array.dtype == object:
            raise DataError(f"{name}: found shape {array.shape} and dtype {array.dtype}, expected one label or row of numbers for each step")
        if array.dtype.kind == "f" and np.isnan(array).any():
            row = int(np.argmax(np.isnan(array.reshape(len(array), -1)).any(axis=1)))
            raise DataError(f"{name}: row {row}: found NaN, expected a label")
    if len({array.shape[1:] for array in arrays}) > 1:
        raise DataError(f"{name}: found rows of {' and '.join(str(a.shape[1:]) for a in arrays)}, expected the same")
    joined = np.concatenate(arrays)
    labels, codes = np.unique(joined, axis=0, return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    ends = np.cumsum([len(array) for array in arrays])[:-1]
    return [np.ascontiguousarray(part) for part in np.split(codes, ends)], labels


def solve(states, actions, rewards, next_states, terminals=None, *, gamma=0.95, k=10, omega_q=0.1, omega_v=0.05):
    """Solves the Lifted Bellman LP of a table exactly: the best values that the data supports, with a certificate.

    States and actions are labels of any kind, or rows of numbers. A state that rows lead to and no row starts in is
    absorbing: its value is 0. ``terminals`` marks where recorded trajectories end; without it, they end where the next row
    starts elsewhere.

    >>> import album_rl as al
    >>> found = al.solve([0, 1, 0], [0, 0, 1], [0.0, 1.0, 0.5], [1, 2, 2], gamma=0.9)
    >>> found.v.tolist(), found.policy()
    ([0.9, 1.0], {0: 0, 1: 0})
    """
    (states, next_states), state_labels = _labels("states", states, next_states)
    (actions,), action_labels = _labels("actions", actions)
    if terminals is None:
        terminals = np.ones(len(states), dtype=bool)
        if len(states) == len(next_states):
            terminals[:-1] = next_states[:-1] != states[1:]
    rewards = np.ascontiguousarray(rewards, dtype=np.float64)
    terminals = np.ascontiguousarray(terminals, dtype=bool)
    for name, array in (("rewards", rewards), ("terminals", terminals)):
        if array.ndim != 1:
            raise DataError(f"{name}: found shape {array.shape}, expected one for each step")
    if k < 0:
        raise DataError(f"k = {k}; expected at least 0")
    found, report = _album.solve(states, actions, rewards, next_states, terminals, gamma, k, (omega_q, omega_v))
    report = json.loads(report)
    for text in report["warnings"]:
        python_warnings.warn(text, stacklevel=2)
    return Solution(found, report, state_labels, action_labels)
