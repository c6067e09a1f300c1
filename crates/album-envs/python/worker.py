"""Environments of OGBench behind a pipe: python -c SCRIPT ENVIRONMENT_ID

The protocol is described in crates/album-envs/src/ogbench/mod.rs.
"""

import os
import signal
import sys

# Ctrl-C in a terminal reaches every process; what to do about it is for album to decide.
signal.signal(signal.SIGINT, signal.SIG_IGN)
# A file called random.py where the user happens to be must not take the place of a package.
sys.path = [folder for folder in sys.path if folder]
# Standard output is for messages alone; what libraries print goes to standard error.
IN, OUT = 0, os.dup(1)
os.dup2(2, 1)

import ctypes
import random
import struct
import traceback
import warnings

MAGIC, PROTOCOL = b"ALBUMENV", 2
HELLO, STARTED, STEPPED, ERROR = 1, 2, 3, 4
RESET, STEP, BYE = 1, 2, 3
EPISODE_LOST, NO_MODULE, HOPELESS = 0, 1, 2
TERMINATED, TRUNCATED, SUCCESS = 1, 2, 4
LONGEST_REQUEST = 1 << 16

HEAD, JUDGED = struct.Struct("<BI"), struct.Struct("<dB")

received = b""


def send(kind, body):
    rest = HEAD.pack(kind, len(body)) + body
    while rest:
        try:
            rest = rest[os.write(OUT, rest) :]  # mostly all of it
        except BrokenPipeError:
            os._exit(0)


def receive():
    global received
    while True:
        if len(received) >= 5:
            kind, length = HEAD.unpack_from(received)
            if length > LONGEST_REQUEST:
                stop(HOPELESS, f"request of {length} bytes, expected at most {LONGEST_REQUEST}")
            if len(received) >= 5 + length:
                body, received = received[5 : 5 + length], received[5 + length :]
                return kind, body
        data = os.read(IN, 1 << 16)
        if not data:  # album has ended
            os._exit(0)
        received += data


def stop(cause, text):
    send(ERROR, bytes([cause]) + text.encode())
    os._exit(1)


def choose_gl():
    """Names the first way of rendering without a screen that the system has a library for."""
    if "MUJOCO_GL" in os.environ or not sys.platform.startswith("linux"):
        return
    for name, libraries in ("egl", ["libEGL.so.1"]), ("osmesa", ["libOSMesa.so.8", "libOSMesa.so.6"]):
        for library in libraries:
            try:
                ctypes.CDLL(library)
            except OSError:
                continue
            os.environ["MUJOCO_GL"] = name
            return
    os.environ["MUJOCO_GL"] = "disable"


choose_gl()
warnings.simplefilter("ignore")
try:
    import ogbench  # the first, so that it is the one that is said to be missing
    import gymnasium
    import numpy as np
    from gymnasium.utils import seeding
    from importlib.metadata import version
except ModuleNotFoundError as error:
    stop(NO_MODULE, str(error.name))
except Exception as error:
    traceback.print_exc()
    stop(HOPELESS, f"a package cannot be loaded: {error!r}")

gymnasium.logger.min_level = 50

np_random_of_gymnasium = seeding.np_random


class Place:
    """An environment and the generators that its episode draws from beside its own.

    Several environments take turns in a process, and none may notice: whoever has the turn finds its own generators
    where NumPy and gymnasium keep theirs. Python's is not among them; it is seeded, but nothing draws from it in a step.
    """

    def __init__(self):
        self.numpy, self.unseeded = np.random.MT19937(0), np.random.default_rng(0)
        self.frame_every = self.steps = 0
        self.take_turn()
        made = gymnasium.make(sys.argv[1], disable_env_checker=True)
        # What gymnasium wraps around it counts the steps and checks their order; the first is done here, for less time.
        self.env, self.limit = made.unwrapped, made.spec.max_episode_steps
        if hasattr(self.env, "get_step_info"):
            # The arm's environments collect positions and contacts once more for a report that nobody reads here.
            self.env.get_step_info = dict

    def take_turn(self):
        np.random.set_bit_generator(self.numpy)
        seeding.np_random = self.np_random

    def np_random(self, seed=None):
        """Some environments draw from spaces that nobody seeded, which then ask the system for a seed.

        Here they get one that the episode's seed determines.
        """
        return np_random_of_gymnasium(int(self.unseeded.integers(1 << 63)) if seed is None else seed)

    def reset(self, seed, frame_every):
        """Starts an episode that depends on its seed and on nothing that was before."""
        self.frame_every, self.steps = frame_every, 0
        self.take_turn()
        self.unseeded = np.random.default_rng(seed)
        random.seed(seed)
        np.random.seed([seed & 0xFFFFFFFF, seed >> 32])
        self.env.action_space.seed(seed)
        observation, _ = self.env.reset(seed=seed)
        body = numbers(observation)
        return body + picture(self.env) if frame_every else body

    def step(self, action):
        self.steps += 1
        self.take_turn()
        observation, reward, terminated, truncated, info = self.env.step(action)
        truncated = truncated or self.steps >= self.limit
        flags = TERMINATED * bool(terminated) + TRUNCATED * bool(truncated) + SUCCESS * bool(info["success"])
        body = JUDGED.pack(reward, flags) + numbers(observation)
        if self.frame_every and (self.steps % self.frame_every == 0 or terminated or truncated):
            body += picture(self.env)
        return body


def picture(env):
    if os.environ.get("MUJOCO_GL") == "disable":
        stop(
            HOPELESS,
            "no GL to draw frames with: found neither libEGL.so.1 nor libOSMesa.so.8; "
            "install one of them (Debian, Ubuntu: apt install libegl1 or libosmesa6)",
        )
    try:
        rgb = np.ascontiguousarray(env.render(), dtype=np.uint8)
    except Exception as error:
        traceback.print_exc()
        stop(
            HOPELESS,
            f"drawing a frame with MUJOCO_GL={os.environ.get('MUJOCO_GL')} failed ({error!r}); "
            "set MUJOCO_GL to egl or osmesa after installing it "
            "(Debian, Ubuntu: apt install libegl1 libgl1-mesa-dri, or libosmesa6)",
        )
    height, width, _ = rgb.shape
    return struct.pack("<II", width, height) + rgb.tobytes()


def numbers(observation):
    return np.asarray(observation, dtype="<f4").tobytes()


def main():
    found = version("ogbench")
    if tuple(int(part) for part in found.split(".")[:2]) < (1, 2):
        stop(
            HOPELESS,
            f"found ogbench {found}, expected 1.2.0 or newer: rewards and success were timed otherwise before; "
            "run `album setup ogbench`, or point ALBUM_PYTHON at another interpreter",
        )
    places = [Place()]
    env, limit = places[0].env, places[0].limit
    observation_dim = env.observation_space.shape[0]
    action_dim = env.action_space.shape[0]
    versions = {name: version(name) for name in ("ogbench", "mujoco", "gymnasium", "numpy")}
    versions["python"] = sys.version.split()[0]
    send(
        HELLO,
        MAGIC
        + struct.pack("<IIII", PROTOCOL, observation_dim, action_dim, limit)
        + "".join(f"{name} {number}\n" for name, number in versions.items()).encode(),
    )
    while True:
        kind, body = receive()
        if kind == STEP:
            answer = places[int.from_bytes(body[:4], "little")].step(np.frombuffer(body, "<f4", offset=4))
            send(STEPPED, body[:4] + answer)
        elif kind == RESET:
            number, seed, frame_every = struct.unpack("<IQI", body)
            while len(places) <= number:
                places.append(Place())
            send(STARTED, body[:4] + places[number].reset(seed, frame_every))
        elif kind == BYE:
            os._exit(0)
        else:
            stop(HOPELESS, f"found a request of kind {kind}, expected 1, 2 or 3")


try:
    main()
except Exception as error:
    traceback.print_exc()
    stop(EPISODE_LOST, repr(error))
