"""The controllers that record data for `study.py`, and a linear-quadratic problem as an environment."""

import functools

import gymnasium
import numpy as np


def pendulum(obs, rng):
    """Swings up by energy, then holds: good, not the best."""
    cos, sin, speed = obs
    angle = np.arctan2(sin, cos)
    if cos > 0.8:
        torque = -(12.0 * angle + 3.0 * speed)
    else:
        energy = speed * speed / 6.0 + 5.0 * (cos - 1.0)
        torque = -2.0 * np.sign(speed * energy) if abs(speed) > 1e-3 else 2.0
    return np.clip(np.array([torque], dtype=np.float32), -2, 2)


def cartpole_poor(obs, rng):
    """Follows the angle alone, which overshoots."""
    return int(obs[2] > 0)


def cartpole_fair(obs, rng):
    """Follows the angular velocity alone, and drifts off in the end."""
    return int(obs[3] > 0)


TAXI_STANDS = [(0, 0), (0, 4), (4, 0), (4, 3)]
# Between which columns there are walls, by row.
TAXI_WALLS = {0: {1}, 1: {1}, 3: {0, 2}, 4: {0, 2}}


@functools.cache
def taxi_way(start, goal):
    """The first move on a shortest way."""
    moves = {0: (1, 0), 1: (-1, 0), 2: (0, 1), 3: (0, -1)}
    first, queue = {start: None}, [start]
    for row, column in queue:
        for move, (down, right) in moves.items():
            to = (row + down, column + right)
            blocked = right and min(column, to[1]) in TAXI_WALLS.get(row, ())
            if 0 <= to[0] < 5 and 0 <= to[1] < 5 and not blocked and to not in first:
                first[to] = move if first[row, column] is None else first[row, column]
                queue.append(to)
    return first[goal]


def taxi(obs, rng):
    """Fetches the passenger and brings him where he wants to go."""
    state = int(np.argmax(obs)) if np.ndim(obs) else int(obs)
    row, column, passenger, goal = state // 100, state // 20 % 5, state // 4 % 5, state % 4
    to = TAXI_STANDS[goal if passenger == 4 else passenger]
    if (row, column) == to:
        return 5 if passenger == 4 else 4
    return taxi_way((row, column), to)


class Lq(gymnasium.Env):
    """Two carts with friction, forces in physical units, quadratic cost."""

    DT, LIMIT, STEPS = 0.1, 6.0, 50
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gymnasium.spaces.Box(-LIMIT, LIMIT, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        spread = np.array([1.5, 1.5, 0.5, 0.5])
        self.state, self.t = spread * self.np_random.standard_normal(4), 0
        return self.state.astype(np.float32), {}

    def step(self, action):
        s, a = self.state, np.clip(np.asarray(action, dtype=np.float64), -self.LIMIT, self.LIMIT)
        reward = -(s[:2] @ s[:2] + 0.1 * s[2:] @ s[2:] + 0.05 * a @ a)
        self.state = np.concatenate([s[:2] + self.DT * s[2:], s[2:] + self.DT * (a - 0.1 * s[2:])])
        self.t += 1
        return self.state.astype(np.float32), float(reward), False, self.t == self.STEPS, {}


def lq():
    return Lq()


@functools.cache
def gains():
    """The optimal controller of one cart, by Riccati's recursion."""
    a = np.array([[1, Lq.DT], [0, 1 - 0.1 * Lq.DT]])
    b, q, r = np.array([[0], [Lq.DT]]), np.diag([1, 0.1]), np.array([[0.05]])
    p = q
    for _ in range(3000):
        k = np.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
        p = q + a.T @ p @ (a - b @ k)
    return k[0]


def lq_mediocre(obs, rng):
    k = gains()
    return -(0.15 * k[0] * obs[:2] + 0.3 * k[1] * obs[2:]) + 1.5 * rng.standard_normal(2)


def lq_best(obs, rng):
    k = gains()
    return -(k[0] * obs[:2] + k[1] * obs[2:])
