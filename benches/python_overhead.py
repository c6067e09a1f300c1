"""What Python adds: `fit` beside `album train`, and `predict` of one observation.

    cargo build --release
    pip install ./python
    python benches/python_overhead.py target/release/album [rounds] [steps]

Both sides train the same agent on the same data with one thread, in turns, in processes of their own. A step costs what `steps`
more of them take, so that starting up and reading do not count; it is measured in processor time, because on a busy machine wall
times say nothing. Weights are compared as well. `predict` is asked with a network of four units, so that nearly all of its time is
what Python adds, and with the 4 x 512 policy.
"""

import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

album = str(pathlib.Path(sys.argv[1]).resolve())
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 2000

FIT = """
import sys, album_rl as al
data = al.Dataset.load("walk.npz")
agent = al.Album(hidden=(256, 256), k=5, seed=3).fit(data, steps=int(sys.argv[1]), holdout=0.1, threads=1)
print(agent.weights_sha256)
"""


def arrays(rows=20_000, length=100):
    rng = np.random.default_rng(0)
    return {
        "observations": rng.normal(size=(rows, 8)).astype(np.float32),
        "actions": rng.uniform(-1, 1, (rows, 2)).astype(np.float32),
        "rewards": rng.normal(size=rows).astype(np.float32),
        "terminals": np.zeros(rows, bool),
        "timeouts": np.arange(rows) % length == length - 1,
    }


def processor_seconds(command, folder):
    """Of a process and all its threads; and the last line that it says."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, said


def by_python(folder, steps):
    seconds, said = processor_seconds([sys.executable, "-c", FIT, str(steps)], folder)
    return seconds, said.split()[-1]


def by_command(folder, steps):
    options = "--holdout 0.1 --seed 3 --threads 1 --json --out".split() + [tempfile.mkdtemp(dir=folder) + "/run"]
    settings = ["--set", "hidden=[256,256]", "--set", "k=5", "--steps", str(steps)]
    seconds, said = processor_seconds([album, "train", "--data", "walk.npz", *options, *settings], folder)
    return seconds, json.loads(said)["weights_sha256"]


def fit():
    with tempfile.TemporaryDirectory() as folder:
        np.savez(pathlib.Path(folder) / "walk.npz", **arrays())
        found = []
        for number in range(rounds):
            row = {}
            for side in (by_python, by_command) if number % 2 else (by_command, by_python):
                (short, _), (long, weights) = side(folder, 100), side(folder, 100 + steps)
                row[side] = ((long - short) / steps, weights)
            assert row[by_python][1] == row[by_command][1], "the weights differ"
            found.append((row[by_python][0], row[by_command][0]))
    python, command = (1e3 * statistics.median(column) for column in zip(*found))
    ratios = sorted(x / y for x, y in found)
    print(f"fit {python:.3f} ms a step, album train {command:.3f} ms; ratio {statistics.median(ratios):.3f}, "
          f"{ratios[0]:.3f} to {ratios[-1]:.3f} over {rounds} rounds of {steps} steps; equal weights")


def predict():
    import warnings

    import album_rl as al

    warnings.simplefilter("ignore")
    data = al.Dataset(**arrays(2000))
    for hidden in ((4,), (512, 512, 512, 512)):
        agent = al.Bc(hidden=hidden).fit(data, steps=1, threads=1)
        for kind in (np.float32, np.float64):
            seen, times = np.zeros(8, kind), []
            for _ in range(5000 if len(hidden) == 1 else 500):
                start = time.perf_counter_ns()
                agent.predict(seen)
                times.append(time.perf_counter_ns() - start)
            print(f"predict, hidden {hidden}, {kind.__name__}: median {statistics.median(times) / 1e3:.1f} us")


predict()
fit()
