"""An episode in a plain loop: ogbench_episode.py ENVIRONMENT_ID SEED < actions as float32.

Prints the start and every step, all numbers by their bits.
"""

import os
import random
import struct
import sys
import warnings

if sys.platform.startswith("linux"):
    os.environ.setdefault("MUJOCO_GL", "disable")
warnings.simplefilter("ignore")

import gymnasium
import numpy as np
import ogbench  # registers the environments
from gymnasium.utils import seeding

name, seed = sys.argv[1], int(sys.argv[2])
env = gymnasium.make(name)
actions = np.frombuffer(sys.stdin.buffer.read(), "<f4").reshape(-1, env.action_space.shape[0])

# Every generator that a reset draws from.
spaces = np.random.default_rng(seed)
original = seeding.np_random
seeding.np_random = lambda seed=None: original(int(spaces.integers(1 << 63)) if seed is None else seed)
random.seed(seed)
np.random.seed([seed % (1 << 32), seed >> 32])
env.unwrapped.action_space.seed(seed)


def bits(observation):
    return "".join("%08x" % number for number in np.asarray(observation, np.float32).view(np.uint32))


observation, _ = env.reset(seed=seed)
print(bits(observation))
for action in actions:
    observation, reward, terminated, truncated, info = env.step(np.clip(action, -1, 1))
    reward = struct.unpack("<Q", struct.pack("<d", reward))[0]
    print("%016x %d %d %d %s" % (reward, terminated, truncated, info["success"], bits(observation)))
    if terminated or truncated:
        break
