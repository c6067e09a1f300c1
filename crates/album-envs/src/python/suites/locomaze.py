"""Recordings of the ant in the mazes of the package ogbench.

    make(ENVIRONMENT, KIND, ROWS, EXPERT)

ENVIRONMENT is antmaze-*, KIND is navigate, stitch or explore, an episode has ROWS rows, and EXPERT is the file of a policy
that walks in commanded directions. The package's own oracle commands them. An episode is a function of its seed: it does not
depend on what was recorded before it.
"""

import json

import ogbench.locomaze  # registers the environments; first, so that it is the module reported as missing
import gymnasium
import numpy as np
from __main__ import Hopeless

PACKAGES = ("ogbench", "mujoco", "gymnasium", "numpy")

# The settings of the published data.
NOISE = {"navigate": 0.2, "stitch": 0.2, "explore": 1.0}
STITCH_DISTANCE = 4  # cells between start and goal
EXPLORE_STEPS = 10  # in one direction

TYPES = dict(observations=np.float32, actions=np.float32, terminals=np.bool_, qpos=np.float32, qvel=np.float32)


class Expert:
    """A policy file of album, limited to the steps of a network with a squashed mean."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        begin = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:begin])
        self.steps = json.loads(header.pop("__metadata__")["steps"])
        self.tensors = {
            name: np.frombuffer(data, "<f4", int(np.prod(entry["shape"])), begin + entry["data_offsets"][0])
            .reshape(entry["shape"])
            for name, entry in header.items()
        }

    def __call__(self, observation):
        values = []
        for step in self.steps:
            op = step["op"]
            if op == "observation":
                value = observation
            elif op == "linear":
                value = values[step["x"]] @ self.tensors[step["kernel"]]
                if "bias" in step:
                    value = value + self.tensors[step["bias"]]
            elif op == "map" and step["f"] == "tanh":
                value = np.tanh(values[step["x"]])
            elif op == "map" and step["f"] == "gelu":
                x = values[step["x"]]
                value = 0.5 * x * (1 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)))
            elif op == "clip":
                value = np.clip(values[step["x"]], step["low"], step["high"])
            else:
                raise Hopeless(f"the expert has a step {step}, expected linear, gelu, tanh or clip")
            values.append(value)
        return values[-1]


class Recorder:
    def __init__(self, environment, kind, rows, expert):
        self.kind, self.horizon, self.expert = kind, int(rows), Expert(expert)
        self.env = gymnasium.make(
            f"{environment}-v0",
            terminate_at_goal=False,
            max_episode_steps=self.horizon,
            disable_env_checker=True,
        )
        self.inner = self.env.unwrapped
        self.observation_dim = self.env.observation_space.shape[0]
        self.action_dim = self.env.action_space.shape[0]
        free = self.inner.maze_map == 0
        self.cells = [(int(i), int(j)) for i, j in np.argwhere(free)]
        self.vertices = [cell for cell in self.cells if not self.hallway(free, *cell)]
        found = self.expert(np.zeros(self.observation_dim, np.float32)).shape
        if found != (self.action_dim,):
            raise Hopeless(f"the expert returns {found[0]} numbers, expected {self.action_dim}")

    @staticmethod
    def hallway(free, i, j):
        """Whether a cell is part of a straight corridor."""
        ways = [free[i - 1, j], free[i + 1, j], free[i, j - 1], free[i, j + 1]]
        return ways in ([True, True, False, False], [False, False, True, True])

    def at_distance(self, start, distance):
        """Free cells at exactly this many steps from the start."""
        seen, ring = {start}, [start]
        for _ in range(distance):
            near = [(i + di, j + dj) for i, j in ring for di, dj in ((-1, 0), (0, -1), (1, 0), (0, 1))]
            ring = sorted({cell for cell in near if self.inner.maze_map[cell] == 0} - seen)
            seen.update(ring)
        return ring

    @staticmethod
    def one_of(cells):
        return cells[np.random.randint(len(cells))]

    def direction(self, step):
        if self.kind != "explore":
            xy = self.inner.get_xy()
            way = self.inner.get_oracle_subgoal(xy, self.inner.cur_goal_xy)[0] - xy
        elif step % EXPLORE_STEPS == 0:
            way = np.random.randn(2)
        else:
            return self.present
        self.present = way / (np.linalg.norm(way) + 1e-6)
        return self.present

    def record(self, seed):
        """The rows of one episode, as a dictionary of arrays."""
        np.random.seed([seed & 0xFFFFFFFF, seed >> 32])
        self.env.action_space.seed(seed & 0xFFFFFFFF)
        start = self.one_of(self.cells)
        goal = self.one_of(self.vertices)
        if self.kind == "stitch":
            goal = self.one_of(self.at_distance(start, STITCH_DISTANCE) or [start])
        ob, _ = self.env.reset(seed=seed & 0xFFFFFFFF, options=dict(task_info=dict(init_ij=start, goal_ij=goal)))
        rows = {name: [] for name in TYPES}
        done = False
        while not done:
            seen = np.concatenate([ob[2:], self.direction(len(rows["actions"]))]).astype(np.float32)
            action = self.expert(seen)
            action = np.clip(action + np.random.normal(0, NOISE[self.kind], action.shape), -1, 1)
            next_ob, _, terminated, truncated, info = self.env.step(action)
            done = terminated or truncated
            if self.kind == "navigate" and info["success"]:
                self.inner.set_goal(goal_xy=self.inner.add_noise(self.inner.ij_to_xy(self.one_of(self.vertices))))
            rows["observations"].append(ob)
            rows["actions"].append(action)
            rows["terminals"].append(done)
            rows["qpos"].append(info["prev_qpos"])
            rows["qvel"].append(info["prev_qvel"])
            ob = next_ob
        return {name: np.array(rows[name], dtype=TYPES[name]) for name in TYPES}


make = Recorder
