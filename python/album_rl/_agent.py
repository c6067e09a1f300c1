"""Agents: what scikit-learn calls estimators."""

import inspect
import json
import os
import signal
import sys
import threading
import time
import warnings as python_warnings

import numpy as np

from . import _album
from ._dataset import Dataset
from ._errors import ConfigError, DataError, NotFitted, StoppedWarning

_KINDS = {kind["name"]: kind for kind in json.loads(_album.agents())}


def agents():
    """Every agent by name: its policy, whether it learns discrete actions, its reference and its hyperparameters.

    >>> import album_rl as al
    >>> al.agents()["iql"]["discrete"]
    True
    """
    return {name: dict(kind) for name, kind in _KINDS.items()}


def _json(values):
    def plain(value):
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, np.generic):
            return value.item()
        raise ConfigError(f"found {type(value).__name__}, expected a number, a text or a list")

    try:
        return json.dumps(values, default=plain, allow_nan=False)
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"found NaN or infinity in {values}, expected finite numbers") from None


class Agent:
    """What all agents have. Make one by its class: :class:`Album`, :class:`Iql`, ...

    Keywords are the keys of the TOML files. One that is left out, or None, is the preset's for one's own data, or chosen
    from the data (``gamma``, ``reward_scale``, ``k``); :attr:`settings` tells what it came to.
    """

    _kind = None
    _native = None
    _data = None

    def __init__(self, **params):
        for name in self._names():
            setattr(self, name, params.pop(name, 0 if name == "seed" else None))
        if params:
            # The library knows which key may have been meant.
            _album.check(self._kind, _json(params))
        self._check()

    @classmethod
    def _names(cls):
        return [*_KINDS[cls._kind]["defaults"], "seed"]

    def _settings(self):
        return {name: getattr(self, name) for name in self._names() if name != "seed" and getattr(self, name) is not None}

    def _check(self):
        _album.check(self._kind, _json(self._settings()))
        seed = self.seed
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**63:
            raise DataError(f"seed = {seed!r}; expected a whole number from 0 to 2**63 - 1")

    def get_params(self, deep=True):
        """All keywords with the values that were given; None where nothing was."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params):
        """Changes keywords for the next :meth:`fit`. One that is refused changes nothing."""
        before = self.get_params()
        unknown = {name: value for name, value in params.items() if name not in before}
        if unknown:
            _album.check(self._kind, _json(unknown))
        try:
            for name, value in params.items():
                setattr(self, name, value)
            self._check()
        except Exception:
            for name, value in before.items():
                setattr(self, name, value)
            raise
        return self

    def fit(
        self,
        data,
        steps=None,
        holdout=None,
        progress=False,
        callback=None,
        env=None,
        *,
        threads=0,
        device=None,
        allow_unbounded=False,
        **train,
    ):
        """Trains from scratch, and returns the agent.

        The same data, keywords and seed give the same weights as the command line, whatever the number of threads.

        Args:
            data: a :class:`Dataset`.
            steps: gradient steps. Without it, a hundred passes over the data.
            holdout: share of the episodes that is only checked on, logged as ``validation/*``.
            progress: whether to show a line on ``sys.stderr``.
            callback: called with the step and a dict of numbers, by the names of ``train.csv`` and ``eval.csv``, whenever
                they are logged. Training goes on meanwhile. An exception of it stops training, leaves the agent as it is by
                then, and is raised from here.
            env: a gymnasium environment, or a function that makes one: policies are evaluated in it, in this process and in
                this thread.
            threads: worker threads; 0 for all processors. No result depends on it.
            device: ``"xla"`` or ``"xla:N"`` to train on a device of the plugin that ``album setup xla`` fetched; the processor
                otherwise. Results are those of the processor but for rounding.
            allow_unbounded: train even where values will fall without bound.
            **train: further keys of ``[train]``: ``log_every``, ``eval_every``, ``eval_episodes``, ``keep_best``,
                ``patience``, ...

        Ctrl-C stops training at the next step: the agent is then what it was by that step, and a :class:`StoppedWarning`
        says so. A second Ctrl-C raises ``KeyboardInterrupt``.
        """
        if not isinstance(data, Dataset):
            raise DataError(f"data: found {type(data).__name__}, expected album_rl.Dataset")
        if threads < 0:
            raise ConfigError(f"threads = {threads}; expected at least 0")
        self._check()
        for key, value in (("steps", steps), ("holdout", holdout)):
            if value is not None:
                train[key] = value
        if "holdout" in train:
            train["holdout"] = float(train["holdout"])
        reporter = _Reporter(self._kind, progress, callback)
        try:
            reporter.take_signals()
            native, interrupted, failure = _album.fit(
                self._kind,
                _json(self._settings()),
                int(self.seed),
                data._native,
                _json(train),
                threads,
                device,
                allow_unbounded,
                env,
                reporter,
            )
        finally:
            reporter.close()
        self._native, self._data = native, data
        if failure is not None:
            raise failure
        if interrupted:
            text = f"stopped by Ctrl-C after step {native.step:,} of {reporter.total:,}"
            python_warnings.warn(text, StoppedWarning, stacklevel=2)
        return self

    def _fitted(self):
        if self._native is None:
            raise NotFitted(f"this {type(self).__name__} has not been trained; call fit(data) first, or load a run")
        return self._native

    def predict(self, observations):
        """The action for one observation, or for each row: float32 in physical units, or whole numbers of choices.

        Each row counts as the first step of an episode of its own; for rollouts see :meth:`policy`.
        """
        return (self._native or self._fitted()).predict(observations)

    def value(self, observations):
        """The state value of one observation or of each row, in units of the rewards."""
        return self._fitted().value(observations)

    def q(self, observations, actions):
        """The value of each action in its observation, in units of the rewards."""
        return self._fitted().q(observations, actions)

    def policy(self, seed=0):
        """A policy for rollouts, that remembers its plans and where in its episode it is."""
        return Policy(self._fitted(), seed)

    def save(self, path):
        """Writes a run directory, as ``album train`` does, where there is nothing yet. Every command of album takes it."""
        self._fitted().save(os.fspath(path))

    def export(self, path, format=None, check=None):
        """Writes the policy into one file, from an observation to an action in physical units.

        ``format`` is ``"onnx"`` or ``"safetensors"``; without it, the end of the name says which. ``check`` compares the file
        with the agent on so many observations; for ONNX that needs onnxruntime. Returns a dict with inputs, outputs and
        ``max_difference``.
        """
        path = os.fspath(path)
        format = format or os.path.splitext(path)[1].lstrip(".").lower()
        if format not in ("onnx", "safetensors"):
            raise ConfigError(f"{path}: found format `{format}`, expected a name that ends in .onnx or .safetensors")
        if check is None or format != "onnx":
            return json.loads(self._fitted().export(path, format, check))
        # The comparison runs onnxruntime in a Python of its own: this one.
        before = os.environ.get("ALBUM_PYTHON")
        os.environ.setdefault("ALBUM_PYTHON", sys.executable)
        try:
            return json.loads(self._fitted().export(path, format, check))
        finally:
            if before is None:
                del os.environ["ALBUM_PYTHON"]

    def fqe(self, data=None, *, propensities=None, ensemble=None, updates=None, seed=0, threads=0):
        """Judges the policy by data alone: fitted Q evaluation, beside the same estimate of the behaviour.

        ``data`` is a :class:`Dataset` that training did not see; without it, the episodes that ``fit(holdout=...)`` held out.
        ``propensities`` are the probabilities of recorded choices, one for each transition of ``data``. Returns a dict that
        prints as a page; its ``verdict`` is ``better``, ``worse``, ``cannot tell`` or ``not calibrated``.
        """
        native = self._fitted()
        if data is None and self._data is not None:
            if native.holdout == 0:
                raise ConfigError("the run held no episodes out; pass data that training did not see, or fit with holdout=0.1")
            data = self._data.split(native.holdout, native.seed)[1]
        if data is not None and not isinstance(data, Dataset):
            raise DataError(f"data: found {type(data).__name__}, expected album_rl.Dataset")
        if propensities is not None:
            propensities = np.ascontiguousarray(propensities, dtype=np.float64)
            expected = None if data is None else (len(data),)
            if propensities.shape != expected:
                raise DataError(f"propensities: found shape {propensities.shape}, expected {expected}, one for each transition of data")
        found = native.fqe(None if data is None else data._native, propensities, ensemble, updates, seed, threads)
        return Evaluation(json.loads(found))

    @property
    def settings(self):
        """All hyperparameters as they were trained with."""
        return json.loads(self._fitted().settings())

    @property
    def chosen(self):
        """What was chosen from the data, and why: one line each."""
        return self._fitted().chosen

    @property
    def result(self):
        """What ``result.json`` holds: evaluations, times, values, versions."""
        return json.loads(self._fitted().result())

    @property
    def finished(self):
        """Whether training came to its last step."""
        return bool((self.result or {}).get("finished"))

    @property
    def step(self):
        """Gradient steps of these weights."""
        return self._fitted().step

    @property
    def action_space(self):
        """``{"kind": "continuous", "low": [...], "high": [...]}`` or ``{"kind": "discrete", "n": ...}``."""
        return json.loads(self._fitted().action_space())

    @property
    def weights_sha256(self):
        """SHA-256 of all weights: equal to that of the command line for equal data, keywords and seed."""
        return self._fitted().weights_sha256

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items() if value is not None)
        return f"{type(self).__name__}({given})"


class Evaluation(dict):
    """What a policy is worth as far as data can tell: a dict that prints as a page."""

    def __repr__(self):
        def row(name, estimate):
            return f"{name:<28}{estimate['mean']:>10.4f}   95 % interval {estimate['low']:.4f} to {estimate['high']:.4f}"

        behaviour = self["behaviour"]
        return "\n".join(
            [
                row("policy", self["policy"]),
                row("behaviour, same estimator", behaviour["estimated"]),
                f"{'behaviour, observed return':<28}{behaviour['observed']:>10.4f}",
                row("policy minus behaviour", self["difference"]),
                f"verdict: {self['verdict']}: {self['reason']}",
            ]
        )


class Policy:
    """A policy in an environment: ``action = policy(observation)``, with ``policy.reset()`` where an episode begins.

    Observations of a gymnasium environment whose space is a Box can be passed as they are.
    """

    def __init__(self, native, seed=0):
        self._native, self._episode, self._step = native, int(seed), 0

    def reset(self, seed=None):
        """Begins an episode; its noise follows from the seed, or from the number of the episode."""
        self._episode = self._episode + 1 if seed is None else int(seed)
        self._step = 0

    def __call__(self, observation):
        action = self._native.act(observation, self._episode, self._step)
        self._step += 1
        return action


class _Reporter:
    """Passes on what happens in a run."""

    def __init__(self, name, progress, callback):
        if callback is not None and not callable(callback):
            raise DataError(f"callback: found {type(callback).__name__}, expected a function of the step and the metrics")
        self.name, self.progress, self.callback = name, progress, callback
        self.total, self.shown, self.note, self.start = 0, False, "", time.monotonic()
        self.interrupted, self.before = False, None

    def take_signals(self):
        """Makes the first Ctrl-C a note, so that it interrupts neither a callback nor an environment."""
        default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if default and threading.current_thread() is threading.main_thread():
            self.before = signal.signal(signal.SIGINT, self.on_signal)

    def on_signal(self, *_):
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    def __call__(self, kind, step, what):
        if kind == "total":
            self.total = step
        elif kind == "warning":
            python_warnings.warn(what, stacklevel=4)
        elif kind == "log":
            returns = what.get("evaluation/episode.return")
            if returns is not None:
                self.note = f"  return {returns:.1f}"
            if self.callback is not None:
                self.callback(step, what)
        if self.progress and kind in ("progress", "log"):
            self.show(step)

    def show(self, step):
        seconds = time.monotonic() - self.start
        speed = f"  {step / seconds:,.0f} steps/s" if seconds > 0 and step else ""
        sys.stderr.write(f"\r{self.name}: {step:,} of {self.total:,} steps{speed}{self.note}   ")
        sys.stderr.flush()
        self.shown = True

    def close(self):
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)
        if self.shown:
            sys.stderr.write("\n")


def load(path, step=None, *, threads=0):
    """The agent of a run directory: the latest checkpoint, the best one where that was kept, or that of a step."""
    native = _album.load(os.fspath(path), step, threads)
    agent = CLASSES[native.name](seed=native.seed)
    known = json.loads(native.settings())
    for name in agent._names():
        if name in known:
            setattr(agent, name, known[name])
    agent._native = native
    return agent


def _class_name(name):
    return "".join(part.capitalize() for part in name.replace("-", "_").split("_"))


def _make(name, kind):
    defaults = kind["defaults"]
    lines = "\n".join(f"        {key}: {value!r}" for key, value in defaults.items())
    actions = "continuous and discrete actions" if kind["discrete"] else "continuous actions"
    documentation = (
        f"{name}: {kind['policy']} policy, {actions}. {kind['reference']}\n\n"
        f"    Keywords with the values of the paper; None takes the preset for one's own data.\n\n{lines}\n        seed: 0\n\n"
        f"    >>> import album_rl as al\n    >>> al.{_class_name(name)}(hidden=(64, 64), seed=1)\n"
        f"    {_class_name(name)}(hidden=(64, 64), seed=1)\n    "
    )

    def __init__(self, **params):
        Agent.__init__(self, **params)

    only = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [inspect.Parameter(key, only, default=None) for key in defaults]
    parameters += [inspect.Parameter("seed", only, default=0)]
    __init__.__signature__ = inspect.Signature(parameters)
    body = {"_kind": name, "__doc__": documentation, "__init__": __init__, "__module__": "album_rl"}
    return type(_class_name(name), (Agent,), body)


#: One class for each agent, by the agent's name.
CLASSES = {name: _make(name, kind) for name, kind in _KINDS.items()}
