# tests/test_stubs.py holds this file against the package.
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str

_Self = TypeVar("_Self", bound="Agent")
_Path = str | PathLike[str]
_Columns = str | Mapping[str, str | Sequence[str]]

class AlbumError(Exception): ...
class ConfigError(AlbumError, ValueError): ...
class DataError(AlbumError, ValueError): ...
class NumericalError(AlbumError, ArithmeticError): ...
class EnvError(AlbumError, RuntimeError): ...
class RunError(AlbumError, RuntimeError): ...
class FileError(AlbumError, OSError): ...
class Unsupported(AlbumError, NotImplementedError): ...
class NotFitted(AlbumError, AttributeError): ...
class StoppedWarning(UserWarning): ...

class Inspection(dict[str, Any]): ...
class Evaluation(dict[str, Any]): ...

class Dataset:
    def __init__(
        self,
        observations: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        terminals: ArrayLike | None = None,
        timeouts: ArrayLike | None = None,
        *,
        next_observations: ArrayLike | None = None,
        episodes: ArrayLike | None = None,
        masks: ArrayLike | None = None,
        ends: str | None = None,
        action_kind: str | None = None,
        action_bounds: ArrayLike | None = None,
    ) -> None: ...
    @classmethod
    def load(
        cls,
        path: _Path | Sequence[_Path],
        *,
        columns: _Columns | None = None,
        format: str | None = None,
        ends: str | None = None,
        action_kind: str | None = None,
        action_bounds: ArrayLike | None = None,
        reward_last: float | None = None,
    ) -> Dataset: ...
    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        columns: _Columns | None = None,
        *,
        ends: str | None = None,
        action_kind: str | None = None,
        action_bounds: ArrayLike | None = None,
        reward_last: float | None = None,
    ) -> Dataset: ...
    @classmethod
    def from_minari(cls, dataset: Any) -> Dataset: ...
    @classmethod
    def from_d3rlpy(cls, mdp_dataset: Any, *, action_bounds: ArrayLike | None = None) -> Dataset: ...
    def inspect(self, gamma: float = 0.995) -> Inspection: ...
    def split(self, share: float = 0.1, seed: int = 0) -> tuple[Dataset, Dataset]: ...
    def transitions(self) -> dict[str, NDArray[Any]]: ...
    def __len__(self) -> int: ...
    @property
    def episodes(self) -> int: ...
    @property
    def observation_names(self) -> list[str]: ...
    @property
    def action_names(self) -> list[str]: ...
    @property
    def action_space(self) -> dict[str, Any]: ...
    @property
    def guesses(self) -> list[str]: ...
    @property
    def warnings(self) -> list[str]: ...
    @property
    def content_hash(self) -> str: ...

class Agent:
    seed: int
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self: _Self, **params: Any) -> _Self: ...
    def fit(
        self: _Self,
        data: Dataset,
        steps: int | None = None,
        holdout: float | None = None,
        progress: bool = False,
        callback: Callable[[int, dict[str, float]], object] | None = None,
        env: Any = None,
        *,
        threads: int = 0,
        device: str | None = None,
        allow_unbounded: bool = False,
        **train: Any,
    ) -> _Self: ...
    def predict(self, observations: ArrayLike) -> NDArray[np.float32] | NDArray[np.int64] | int: ...
    def value(self, observations: ArrayLike) -> NDArray[np.float32] | float: ...
    def q(self, observations: ArrayLike, actions: ArrayLike) -> NDArray[np.float32] | float: ...
    def policy(self, seed: int = 0) -> Policy: ...
    def save(self, path: _Path) -> None: ...
    def export(self, path: _Path, format: str | None = None, check: int | None = None) -> dict[str, Any]: ...
    def fqe(
        self,
        data: Dataset | None = None,
        *,
        propensities: ArrayLike | None = None,
        ensemble: int | None = None,
        updates: int | None = None,
        seed: int = 0,
        threads: int = 0,
    ) -> Evaluation: ...
    @property
    def settings(self) -> dict[str, Any]: ...
    @property
    def chosen(self) -> list[str]: ...
    @property
    def result(self) -> dict[str, Any]: ...
    @property
    def finished(self) -> bool: ...
    @property
    def step(self) -> int: ...
    @property
    def action_space(self) -> dict[str, Any]: ...
    @property
    def weights_sha256(self) -> str: ...

class Policy:
    def reset(self, seed: int | None = None) -> None: ...
    def __call__(self, observation: ArrayLike) -> NDArray[np.float32] | NDArray[np.int64] | int: ...

class Solution:
    states: NDArray[Any]
    v: NDArray[np.float64]
    pair_states: NDArray[Any]
    pair_actions: NDArray[Any]
    counts: NDArray[np.uint64]
    q: NDArray[np.float64]
    duals: dict[str, NDArray[np.float64]]
    certificate: dict[str, Any]
    report: dict[str, Any]
    def policy(self) -> dict[Any, Any]: ...

def agents() -> dict[str, dict[str, Any]]: ...
def load(path: _Path, step: int | None = None, *, threads: int = 0) -> Agent: ...
def solve(
    states: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    next_states: ArrayLike,
    terminals: ArrayLike | None = None,
    *,
    gamma: float = 0.95,
    k: int = 10,
    omega_q: float = 0.1,
    omega_v: float = 0.05,
) -> Solution: ...

# The rest is written by `ALBUM_BLESS=1 cargo test -p album-agents stubs`.

class Album(Agent):
    def __init__(
        self,
        *,
        actor_average: float | None = None,
        actor_lr: float | None = None,
        alpha_awr: float | None = None,
        alpha_bc: float | None = None,
        batch_size: int | None = None,
        critic_first: bool | None = None,
        critic_lr: float | None = None,
        discrete_policy: str | None = None,
        discrete_threshold: float | None = None,
        ensemble: int | None = None,
        extraction: str | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        initial_value: str | None = None,
        k: int | None = None,
        kstep_after_goal: str | None = None,
        kstep_tail: str | None = None,
        lambda_b: float | None = None,
        lambda_e: float | None = None,
        lambda_k: float | None = None,
        lr_decay: str | None = None,
        normalize_q: bool | None = None,
        omega_q: float | None = None,
        omega_v: float | None = None,
        reward_scale: float | None = None,
        squash: str | None = None,
        standardize: bool | None = None,
        stop_gradient: bool | None = None,
        seed: int = 0,
    ) -> None: ...

class Bc(Agent):
    def __init__(
        self,
        *,
        batch_size: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        seed: int = 0,
    ) -> None: ...

class Cac(Agent):
    def __init__(
        self,
        *,
        batch_size: int | None = None,
        critic_layer_norm: bool | None = None,
        ema_after: int | None = None,
        ema_every: int | None = None,
        ema_rate: float | None = None,
        ensemble: int | None = None,
        eta: float | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        levels: int | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        max_grad_norm: float | None = None,
        max_q_backup: bool | None = None,
        num_samples: int | None = None,
        policy_hidden: Sequence[int] | None = None,
        q_agg: str | None = None,
        q_norm: bool | None = None,
        reward_scale: float | None = None,
        scale_input: bool | None = None,
        schedule_steps: int | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Cgq(Agent):
    def __init__(
        self,
        *,
        actor_layer_norm: bool | None = None,
        alpha: float | None = None,
        anchor_expectile: float | None = None,
        batch_size: int | None = None,
        beta: float | None = None,
        beta_td: float | None = None,
        ensemble: int | None = None,
        flow_steps: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        h: int | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        normalize_q_loss: bool | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        step_alpha: float | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Deas(Agent):
    def __init__(
        self,
        *,
        actor_layer_norm: bool | None = None,
        alpha: float | None = None,
        batch_size: int | None = None,
        bins: int | None = None,
        ensemble: int | None = None,
        expectile: float | None = None,
        flow_steps: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        gamma_1: float | None = None,
        h: int | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        normalize_q_loss: bool | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        sigma: float | None = None,
        standardize: bool | None = None,
        support: str | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        v_max: float | None = None,
        v_min: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Dqc(Agent):
    def __init__(
        self,
        *,
        actor_layer_norm: bool | None = None,
        backup: str | None = None,
        batch_size: int | None = None,
        distill: str | None = None,
        ensemble: int | None = None,
        flow_steps: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        gamma_1: float | None = None,
        h: int | None = None,
        ha: int | None = None,
        hidden: Sequence[int] | None = None,
        kappa_b: float | None = None,
        kappa_d: float | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        num_samples: int | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Fawac(Agent):
    def __init__(
        self,
        *,
        alpha: float | None = None,
        batch_size: int | None = None,
        ensemble: int | None = None,
        flow_steps: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Fbrac(Agent):
    def __init__(
        self,
        *,
        alpha: float | None = None,
        batch_size: int | None = None,
        ensemble: int | None = None,
        flow_steps: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        normalize_q_loss: bool | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Fql(Agent):
    def __init__(
        self,
        *,
        alpha: float | None = None,
        batch_size: int | None = None,
        ensemble: int | None = None,
        flow_steps: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        normalize_q_loss: bool | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class HingeIql(Agent):
    def __init__(
        self,
        *,
        alpha: float | None = None,
        batch_size: int | None = None,
        ensemble: int | None = None,
        expectile: float | None = None,
        extraction: str | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        k: int | None = None,
        lambda_k: float | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Idql(Agent):
    def __init__(
        self,
        *,
        batch_size: int | None = None,
        diffusion_steps: int | None = None,
        dropout: float | None = None,
        ema_rate: float | None = None,
        ensemble: int | None = None,
        expectile: float | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        noise_blocks: int | None = None,
        noise_width: int | None = None,
        num_samples: int | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        time_features: int | None = None,
        time_width: int | None = None,
        weight_decay: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Ifql(Agent):
    def __init__(
        self,
        *,
        batch_size: int | None = None,
        ensemble: int | None = None,
        expectile: float | None = None,
        flow_steps: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        num_samples: int | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class IfqlAlbum(Agent):
    def __init__(
        self,
        *,
        actor_lr: float | None = None,
        batch_size: int | None = None,
        critic_lr: float | None = None,
        ensemble: int | None = None,
        flow_steps: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        initial_value: str | None = None,
        k: int | None = None,
        kstep_after_goal: str | None = None,
        kstep_tail: str | None = None,
        lambda_b: float | None = None,
        lambda_e: float | None = None,
        lambda_k: float | None = None,
        lr_decay: str | None = None,
        num_samples: int | None = None,
        omega_q: float | None = None,
        omega_v: float | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        stop_gradient: bool | None = None,
        seed: int = 0,
    ) -> None: ...

class Iql(Agent):
    def __init__(
        self,
        *,
        alpha: float | None = None,
        batch_size: int | None = None,
        ensemble: int | None = None,
        expectile: float | None = None,
        extraction: str | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Nfql(Agent):
    def __init__(
        self,
        *,
        actor_layer_norm: bool | None = None,
        alpha: float | None = None,
        batch_size: int | None = None,
        ensemble: int | None = None,
        flow_steps: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        h: int | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        normalize_q_loss: bool | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class QcFql(Agent):
    def __init__(
        self,
        *,
        actor_layer_norm: bool | None = None,
        alpha: float | None = None,
        batch_size: int | None = None,
        ensemble: int | None = None,
        flow_steps: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        h: int | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        normalize_q_loss: bool | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Rebrac(Agent):
    def __init__(
        self,
        *,
        actor_every: int | None = None,
        actor_noise: float | None = None,
        actor_noise_clip: float | None = None,
        alpha_actor: float | None = None,
        alpha_critic: float | None = None,
        batch_size: int | None = None,
        ensemble: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Sac(Agent):
    def __init__(
        self,
        *,
        batch_size: int | None = None,
        ensemble: int | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_entropy: float | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        seed: int = 0,
    ) -> None: ...

class Srpo(Agent):
    def __init__(
        self,
        *,
        batch_size: int | None = None,
        beta: float | None = None,
        dropout: float | None = None,
        ensemble: int | None = None,
        expectile: float | None = None,
        fourier_features: int | None = None,
        fourier_scale: float | None = None,
        gamma: float | None = None,
        hidden: Sequence[int] | None = None,
        lr: float | None = None,
        lr_decay: str | None = None,
        noise_blocks: int | None = None,
        noise_width: int | None = None,
        normalize_guidance: bool | None = None,
        policy_from: int | None = None,
        policy_hidden: Sequence[int] | None = None,
        q_agg: str | None = None,
        reward_scale: float | None = None,
        standardize: bool | None = None,
        target_network: bool | None = None,
        tau: float | None = None,
        time_features: int | None = None,
        time_width: int | None = None,
        seed: int = 0,
    ) -> None: ...
