"""Writes a small file for each environment named on standard input, and beside it what the package makes of it.

For an environment `x`: `x.npz` in the official layout, with states in, out of and on the very edge of every part of every
goal; `x-out.npz` with the transitions of `load_dataset` and the rewards and masks of `relabel_dataset` for the five tasks.
On standard output, one line for each: name, width of observations, actions, qpos, buttons, horizon, default task.
"""

import sys

import gymnasium
import numpy as np
import ogbench  # registers the environments
from ogbench.relabel_utils import relabel_dataset
from ogbench.utils import load_dataset

TASKS = range(1, 6)
EPISODES, LENGTH = 12, 50
rng = np.random.default_rng(0)
np.random.seed(0)


def near(goal, tolerance):
    """A point in float32 near, far from, or within an ulp or two of `tolerance` from the goal."""
    goal = np.asarray(goal, np.float64)
    direction = rng.normal(size=goal.shape)
    if rng.random() < 0.5:  # along an axis, where the distance is exact
        axis = rng.integers(goal.size)
        direction = np.where(np.arange(goal.size) == axis, np.sign(direction), 0.0)
    direction /= np.linalg.norm(direction)
    kind = rng.random()
    distance = tolerance * (1.0 if kind < 0.6 else rng.random() if kind < 0.9 else 1.0 + rng.random())
    point = (goal + distance * direction).astype(np.float32)
    for _ in range(rng.integers(3)):
        axis = rng.integers(goal.size)
        point[axis] = np.nextafter(point[axis], np.float32(rng.choice([-100, 100])), dtype=np.float32)
    return point


def record(env, name):
    inner = env.unwrapped
    model = getattr(inner, "_model", None) or inner.model
    arm = name.startswith(("cube", "scene", "puzzle"))
    goals = []
    for task in TASKS:
        inner._reward_task_id = task
        env.reset()
        if arm:
            goals.append({
                "cubes": [] if name.startswith("puzzle") else inner._data.mocap_pos.copy(),
                "buttons": [] if name.startswith("cube") else inner._target_button_states.copy(),
                "slides": [inner._target_drawer_pos, inner._target_window_pos] if name == "scene" else [],
            })
        else:
            goals.append(inner.cur_goal_xy)
    rows = EPISODES * LENGTH
    qpos = rng.normal(size=(rows, model.nq)).astype(np.float32)
    buttons = len(goals[0]["buttons"]) if arm else 0
    states = rng.integers(2, size=(rows, buttons))
    for row in range(rows):
        goal = goals[rng.integers(5)]
        if not arm:
            start = 15 if "soccer" in name else 0
            qpos[row, start : start + 2] = near(goal, inner._goal_tol)
            continue
        sloppy = rng.random() < 0.5  # else all parts are near, so that whole goals are met
        for i, cube in enumerate(goal["cubes"]):
            if not (sloppy and rng.random() < 0.3):
                qpos[row, 14 + 7 * i : 17 + 7 * i] = near(cube, 0.04) if sloppy else np.float32(cube)
        if not sloppy:
            states[row] = goal["buttons"]
            if rng.random() < 0.3 and len(goal["cubes"]):
                qpos[row, 14:17] = near(goal["cubes"][0], 0.04)
        first = 14 + 7 * len(goal["cubes"]) + buttons
        for i, slide in enumerate(goal["slides"]):
            qpos[row, first + i] = near([slide], 0.04)[0] if rng.random() < 0.7 else slide
    terminals = np.zeros(rows, bool)
    terminals[LENGTH - 1 :: LENGTH] = True
    columns = {
        "observations": rng.normal(size=(rows, *env.observation_space.shape)).astype(np.float32),
        "actions": rng.uniform(-1, 1, size=(rows, *env.action_space.shape)).astype(np.float32),
        "terminals": terminals,
        "qpos": qpos,
        "qvel": rng.normal(size=(rows, model.nv)).astype(np.float32),
    }
    columns["actions"][rng.random(columns["actions"].shape) < 0.1] = 1.0
    if buttons:
        columns["button_states"] = states
    np.savez_compressed(f"{name}.npz", **columns)
    return model.nq, buttons


for name in sys.stdin.read().split():
    env_id = f"{name}-singletask-v0"
    env = gymnasium.make(env_id)
    default = env.unwrapped._reward_task_id
    if default == 0:  # some environments look the default up when they are reset
        env.reset()
        default = env.unwrapped._reward_task_id
    qpos, buttons = record(env, name)
    dataset = load_dataset(f"{name}.npz", add_info=True)
    out = {key: dataset[key] for key in ["observations", "next_observations", "actions", "terminals"]}
    for task in TASKS:
        env.unwrapped._reward_task_id = task
        relabel_dataset(env_id, env, dataset)
        out[f"rewards{task}"], out[f"masks{task}"] = dataset["rewards"], dataset["masks"]
    np.savez(f"{name}-out.npz", **out)
    facts = [env.observation_space.shape[0], env.action_space.shape[0], qpos, buttons]
    print(name, *facts, env.spec.max_episode_steps, default, flush=True)
    env.close()
