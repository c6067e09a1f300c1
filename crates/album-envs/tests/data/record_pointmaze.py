"""Records what the native pointmaze is tested against, in the real package.

    python3 -m venv venv && venv/bin/pip install ogbench==1.2.2
    venv/bin/python record_pointmaze.py

Writes `ogbench_mazes.txt` (the maps, then the numbers of free and of vertex cells)
and `ogbench_steps.csv` (single steps of episodes that hold a random direction for
ten steps, so that a third of them touch walls).
"""

import os

os.environ.setdefault("MUJOCO_GL", "disable")

import gymnasium
import numpy as np

import ogbench.locomaze  # noqa: F401  registers the environments

STEPS = 150


def is_hallway(free, i, j):
    vertical, horizontal = (free[i - 1, j], free[i + 1, j]), (free[i, j - 1], free[i, j + 1])
    return all(vertical) and not any(horizontal) or all(horizontal) and not any(vertical)


def main():
    rng = np.random.default_rng(0)
    np.random.seed(0)  # the package draws starts from the global generator
    maps, steps = [], ["maze,x,y,action_x,action_y,next_x,next_y"]
    for size in ["medium", "large", "giant"]:
        env = gymnasium.make(f"pointmaze-{size}-v0", terminate_at_goal=False)
        maze = env.unwrapped
        free = maze.maze_map == 0
        cells = list(zip(*np.nonzero(free)))
        vertices = [cell for cell in cells if not is_hallway(free, *cell)]
        maps.append(f"{size} {len(cells)} {len(vertices)}")
        maps += ["".join("." if cell else "#" for cell in row) for row in free]

        start = cells[rng.integers(len(cells))]
        env.reset(seed=0, options=dict(task_info=dict(init_ij=start, goal_ij=start)))
        for step in range(STEPS):
            if step % 10 == 0:
                direction = rng.normal(size=2)
                direction /= np.linalg.norm(direction)
            action = np.clip(direction + rng.normal(0, 0.5, 2), -1, 1)
            before = maze.get_xy()
            env.step(action)
            numbers = [*before, *action, *maze.get_xy()]
            steps.append(",".join([size, *(repr(float(x)) for x in numbers)]))
    with open("ogbench_mazes.txt", "w") as file:
        file.write("\n".join(maps) + "\n")
    with open("ogbench_steps.csv", "w") as file:
        file.write("\n".join(steps) + "\n")


if __name__ == "__main__":
    main()
