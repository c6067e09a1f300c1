"""Import of a log against the usual libraries reading the same file, and `album solve` by the number of rows.

    python import_speed.py ALBUM OUT [--rows 1000000] [--rounds 5] [--solve 5,50]

ALBUM is a release build. Times are of whole processes for album (with start, checks, hashes and files on disk) and of the
read call alone for the peers (arrays in memory); rounds are interleaved, medians and their ratios are printed. `--solve`
takes numbers of rows in millions. Needs numpy, pandas, pyarrow and h5py.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

WIDTH = 20
LENGTH = 200


def write(out, rows):
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(rows, WIDTH)).astype(np.float32)
    actions = rng.uniform(-2, 2, size=(rows, 2)).astype(np.float32)
    columns = {"episode": np.arange(rows) // LENGTH}
    columns |= {f"obs_{i}": observations[:, i] for i in range(WIDTH)}
    columns |= {"action_0": actions[:, 0], "action_1": actions[:, 1], "reward": rng.normal(size=rows).astype(np.float32)}
    columns |= {"terminated": np.arange(rows) % LENGTH == LENGTH - 1, "truncated": np.zeros(rows, bool)}
    table = pd.DataFrame(columns)
    table.to_csv(out / "log.csv", index=False)
    table.to_parquet(out / "log.parquet")
    with h5py.File(out / "log.hdf5", "w") as file:
        chunked = dict(chunks=True, compression="gzip", shuffle=True)
        file.create_dataset("observations", data=observations, **chunked)
        file.create_dataset("actions", data=actions, **chunked)
        file.create_dataset("rewards", data=columns["reward"], **chunked)
        file.create_dataset("terminals", data=columns["terminated"], **chunked)
        file.create_dataset("timeouts", data=columns["truncated"], **chunked)


def read_hdf5(path):
    with h5py.File(path) as file:
        return {name: file[name][...] for name in file}


PEERS = {
    "log.csv": ("pandas.read_csv", pd.read_csv),
    "log.parquet": ("pandas.read_parquet", pd.read_parquet),
    "log.hdf5": ("h5py", read_hdf5),
}


def timed(work):
    """Seconds on the clock and of processor time."""
    clock, before = time.perf_counter(), os.times()
    work()
    after = os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    return time.perf_counter() - clock, cpu


def imports(album, out, rounds):
    print("| file | album, clock (s) | album, processor (s) | peer | clock (s) | processor (s) | ratio (clock) |\n|---|---|---|---|---|---|---|")
    for name, (peer, read) in PEERS.items():
        ours, theirs = [], []
        for _ in range(rounds):
            target = out / "imported"
            shutil.rmtree(target, ignore_errors=True)
            command = [album, "data", "import", out / name, "--out", target]
            ours.append(timed(lambda: subprocess.run(command, check=True, capture_output=True)))
            theirs.append(timed(lambda: read(out / name)))
        median = lambda times, i: statistics.median(t[i] for t in times)
        ratio = statistics.median(a[0] / b[0] for a, b in zip(ours, theirs))
        print(f"| {name} | {median(ours, 0):.2f} | {median(ours, 1):.2f} | {peer} | {median(theirs, 0):.2f} | {median(theirs, 1):.2f} | {ratio:.2f} |", flush=True)


def solve(album, out, millions):
    print("| rows | seconds | microseconds a row |\n|---|---|---|")
    for count in millions:
        path, rows = out / "table.parquet", count * 1_000_000
        rng, writer, part = np.random.default_rng(0), None, 1_000_000
        for first in range(0, rows, part):
            step = np.arange(first, first + part)
            table = pa.table({
                "episode": step // 50,
                "state": rng.integers(0, 2000, part),
                "action": rng.integers(0, 5, part),
                "reward": rng.normal(size=part),
                "done": step % 50 == 49,
            })
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
        writer.close()
        command = [album, "solve", path, "--state", "state", "--action", "action", "--reward", "reward", "--episode", "episode", "--out", out / "policy.parquet"]
        seconds, _ = timed(lambda: subprocess.run(command, check=True, capture_output=True))
        print(f"| {count}M | {seconds:.1f} | {seconds / count:.2f} |", flush=True)
        path.unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("album")
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--solve", default="")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.rounds:
        write(given.out, given.rows)
        imports(given.album, given.out, given.rounds)
    if given.solve:
        solve(given.album, given.out, [int(count) for count in given.solve.split(",")])


if __name__ == "__main__":
    main()
