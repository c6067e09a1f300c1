"""An episode in a plain loop: gymnasium_episode.py gymnasium:ID ARGUMENTS SEED < actions as float32.

Prints the start and every step, all numbers by their bits.
"""

import json
import struct
import sys

import gymnasium
import numpy as np
from gymnasium import spaces

env = gymnasium.make(sys.argv[1].removeprefix("gymnasium:"), **json.loads(sys.argv[2]))
actions = np.frombuffer(sys.stdin.buffer.read(), "<f4")


def bits(observation):
    row = spaces.utils.flatten(env.observation_space, observation)
    return "".join("%08x" % number for number in np.asarray(row, np.float32).view(np.uint32))


observation, _ = env.reset(seed=int(sys.argv[3]) % 2**31)
print(bits(observation))
for action in actions:
    if isinstance(env.action_space, spaces.Discrete):
        action = int(action)
    else:
        action = np.clip(np.array([action], np.float32), env.action_space.low, env.action_space.high)
    observation, reward, terminated, truncated, info = env.step(action)
    reward = struct.unpack("<Q", struct.pack("<d", reward))[0]
    print("%016x %d %d - %s" % (reward, terminated, truncated, bits(observation)))
