"""Runs environments, or records episodes in them, for album at the other end of a pipe.

    python -c WORKER FILE SOURCE ARGUMENT...

SOURCE is the text of a suite (suites/FILE), which decides what runs here. This host speaks the protocol, which
src/python/mod.rs documents. A suite defines

    PACKAGES             the packages whose versions matter
    make(ARGUMENT...)    an environment or a recorder

Both have observation_dim, action_dim and horizon. An environment also has

    reset(seed)          -> observation
    step(action)         -> observation, reward, terminated, truncated, success (None if unknown)
    render()             -> an array of height x width x 3 bytes
    choices              number of discrete actions; if missing or 0, actions are continuous
    low, high            bounds of continuous actions; -1 and 1 by default

and a recorder has

    record(seed)         -> the rows of one episode, as a dictionary of arrays

For user code there are guarded and load_function (from __main__ import them).
A suite raises Hopeless (from __main__ import Hopeless) for errors that a new worker would repeat, and defines
OWN_RANDOM = True if its steps may draw from Python's generator.
"""

import os
import signal
import sys

# Ctrl-C in a terminal reaches every process, but album decides what to do about it.
signal.signal(signal.SIGINT, signal.SIG_IGN)
# A file called random.py in the current directory must not replace a package.
sys.path = [folder for folder in sys.path if folder]
# Standard output carries messages only; what libraries print goes to standard error.
IN, OUT = 0, os.dup(1)
os.dup2(2, 1)

import linecache
import random
import struct
import traceback
import types
import warnings
from importlib.metadata import version

MAGIC, PROTOCOL = b"ALBUMENV", 4
HELLO, STARTED, STEPPED, ERROR, RECORDED, WRITTEN = 1, 2, 3, 4, 5, 6
RESET, STEP, RECORD = 1, 2, 3
EPISODE_LOST, NO_MODULE, HOPELESS = 0, 1, 2
TERMINATED, TRUNCATED, SUCCESS, UNKNOWN = 1, 2, 4, 8
LONGEST_REQUEST = 1 << 21

HEAD, JUDGED = struct.Struct("<BI"), struct.Struct("<dB")

received = b""


class Hopeless(Exception):
    """A new worker would fail in the same way; the text says what to do."""


def send(kind, body=b""):
    rest = HEAD.pack(kind, len(body)) + body
    while rest:
        try:
            rest = rest[os.write(OUT, rest) :]  # mostly all of it
        except BrokenPipeError:  # album has ended
            os._exit(0)


def receive():
    global received
    while True:
        if len(received) >= 5:
            kind, length = HEAD.unpack_from(received)
            if length > LONGEST_REQUEST:
                raise Hopeless(f"request of {length} bytes, expected at most {LONGEST_REQUEST}")
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


def place(error):
    """Where and why something was raised, in one line: the last frame outside of the worker's own code."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(("<", "suites/"))]
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}:{error.lineno}: "
    else:
        where = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    return where + traceback.format_exception_only(error)[-1].strip()


def guarded(what, function, *arguments, **named):
    """Runs user code, whose exceptions a new worker would repeat."""
    try:
        return function(*arguments, **named)
    except Hopeless:
        raise
    except Exception as error:
        traceback.print_exc()
        raise Hopeless(f"{what}: {place(error)}") from error


def load_function(name):
    """The function that FILE:FUNCTION names."""
    path, function = name.rsplit(":", 1)
    if not os.path.isfile(path):
        raise Hopeless("found no such file")
    # Modules beside the file can be imported, but cannot replace packages.
    sys.path.append(os.path.dirname(os.path.abspath(path)))
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec")
    module = {"__name__": "loaded", "__file__": path}
    exec(code, module)
    if not callable(module.get(function)):
        own = [name for name, value in module.items() if getattr(value, "__module__", None) == "loaded"]
        has = f"; it has {', '.join(own)}" if own else ""
        raise Hopeless(f"found no function `{function}` in the file{has}")
    return module[function]


def load(name, source):
    """The suite as a module, with its source at hand for tracebacks."""
    suite, file = types.ModuleType("suite"), f"suites/{name}"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    exec(compile(source, file, "exec"), vars(suite))
    return suite


warnings.simplefilter("ignore")
try:
    suite = load(*sys.argv[1:3])
    import numpy as np
except ModuleNotFoundError as error:
    stop(NO_MODULE, str(error.name))
except Hopeless as error:
    stop(HOPELESS, str(error))
except Exception as error:
    traceback.print_exc()
    stop(HOPELESS, f"a package cannot be loaded: {error!r}")

OWN_RANDOM = getattr(suite, "OWN_RANDOM", False)
# Where gymnasium makes generators, if the suite uses it.
seeding = sys.modules.get("gymnasium.utils.seeding") or types.SimpleNamespace(np_random=None)
np_random_of_gymnasium = seeding.np_random


class Slot:
    """An environment, and the random generators that its episode draws from besides its own.

    The environments of a process take turns, and no episode may depend on that: each finds its own generators where
    NumPy and gymnasium keep theirs. Python's generator is seeded but shared, unless the suite says that steps draw from
    it: changing it takes longer than a step of a small environment.
    """

    present = None

    def __init__(self):
        self.numpy, self.unseeded = np.random.MT19937(0), np.random.default_rng(0)
        self.python = random.Random(0).getstate()
        self.frame_interval = self.steps = 0
        self.take_turn()
        self.env = suite.make(*sys.argv[3:])

    def take_turn(self):
        if Slot.present is self:
            return
        np.random.set_bit_generator(self.numpy)
        seeding.np_random = self.np_random
        if OWN_RANDOM:
            if Slot.present is not None:
                Slot.present.python = random.getstate()
            random.setstate(self.python)
        Slot.present = self

    def np_random(self, seed=None):
        """Some environments sample from unseeded spaces, which would take a seed from the system.

        Here it is derived from the episode's seed.
        """
        return np_random_of_gymnasium(int(self.unseeded.integers(1 << 63)) if seed is None else seed)

    def reset(self, seed, frame_interval):
        """Starts an episode that depends on its seed and on nothing that happened before."""
        self.frame_interval, self.steps = frame_interval, 0
        self.take_turn()
        self.unseeded = np.random.default_rng(seed)
        random.seed(seed)
        np.random.seed([seed & 0xFFFFFFFF, seed >> 32])
        body = numbers(self.env.reset(seed))
        return body + self.frame() if frame_interval else body

    def step(self, action):
        self.steps += 1
        self.take_turn()
        observation, reward, terminated, truncated, success = self.env.step(action)
        truncated = truncated or self.steps >= self.env.horizon
        flags = TERMINATED * bool(terminated) + TRUNCATED * bool(truncated) + SUCCESS * bool(success)
        flags += UNKNOWN * (success is None)
        body = JUDGED.pack(reward, flags) + numbers(observation)
        if self.frame_interval and (self.steps % self.frame_interval == 0 or terminated or truncated):
            body += self.frame()
        return body

    def frame(self):
        rgb = np.ascontiguousarray(self.env.render(), dtype=np.uint8)
        height, width, _ = rgb.shape
        return struct.pack("<II", width, height) + rgb.tobytes()


def numbers(observation):
    return np.asarray(observation, dtype="<f4").tobytes()


def greet(made):
    versions = {name: version(name) for name in suite.PACKAGES}
    versions["python"] = sys.version.split()[0]
    send(
        HELLO,
        MAGIC
        + struct.pack("<IIII", PROTOCOL, made.observation_dim, made.action_dim, made.horizon)
        + action_space(made)
        + "".join(f"{name} {number}\n" for name, number in versions.items()).encode(),
    )


def action_space(made):
    choices = getattr(made, "choices", 0)
    bounds = [np.broadcast_to(getattr(made, name, end), made.action_dim) for name, end in (("low", -1), ("high", 1))]
    return struct.pack("<I", choices) + (b"" if choices else numbers(np.concatenate(bounds)))


def record(recorder, line):
    """Records an episode for each seed into one file, which is written atomically."""
    seeds, path = line.removesuffix(b"\n").split(b"\t", 1)
    episodes = []
    for seed in seeds.split():
        episodes.append(recorder.record(int(seed)))
        send(RECORDED)
    path = os.fsdecode(path)
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "wb") as file:
        np.savez(file, **{name: np.concatenate([episode[name] for episode in episodes]) for name in episodes[0]})
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    send(WRITTEN)


def main():
    slots = [Slot()]
    greet(slots[0].env)
    while True:
        kind, body = receive()
        if kind == STEP:
            answer = slots[int.from_bytes(body[:4], "little")].step(np.frombuffer(body, "<f4", offset=4))
            send(STEPPED, body[:4] + answer)
        elif kind == RESET:
            number, seed, frame_interval = struct.unpack("<IQI", body)
            while len(slots) <= number:
                slots.append(Slot())
            send(STARTED, body[:4] + slots[number].reset(seed, frame_interval))
        elif kind == RECORD:
            record(slots[0].env, body)
        else:
            raise Hopeless(f"found a request of kind {kind}, expected 1, 2 or 3")


try:
    main()
except Hopeless as error:
    stop(HOPELESS, str(error))
except Exception as error:
    traceback.print_exc()
    stop(EPISODE_LOST, repr(error))
