"""Import of a log against the usual libraries reading the same file, and `album solve` by the number of rows.

    python import_speed.py ALBUM OUT [--reader READ_LOG] [--rows 1000000] [--rounds 5] [--solve 5,50] [--bootstrap 200]

ALBUM is a release build. Times are of whole processes for album (with start, checks, hashes and files on disk) and of the
read call alone for the peers (arrays in memory); rounds are interleaved, medians and their ratios are printed. Ratios of
processor time are those that a busy machine changes least. `--solve` takes numbers of rows in millions. Needs numpy, pandas,
pyarrow and h5py.
"""

import argparse
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
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cpu


def run(command):
    """Seconds on the clock and of processor time, and the peak of memory in MB, of another process."""
    clock = time.perf_counter()
    # GNU time forks from a small process; a child of this one would begin with its peak of memory.
    done = subprocess.run(["/usr/bin/time", "-q", "-f", "%U %S %M", *map(str, command)], capture_output=True, text=True)
    seconds = time.perf_counter() - clock
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stderr}")
    user, system, memory = map(float, done.stderr.split("\n")[-2].split())
    return seconds, user + system, memory / 1024


def imports(album, reader, out, rows, rounds):
    arrays = rows * (WIDTH + 4) * 4 / 2**20
    print(f"{rows:,} rows, {arrays:.0f} MB as arrays\n")
    print("| file | album | processor (s) | peer | processor (s) | ratio | clock, album and peer (s) | ratio | peak memory of album (MB) |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (peer, read) in PEERS.items():
        target = out / "imported"
        ways = {"import": [album, "data", "import", out / name, "--out", target]}
        ways |= {"read": [reader, out / name]} if reader else {}
        ours, theirs = {way: [] for way in ways}, []
        for _ in range(rounds):
            shutil.rmtree(target, ignore_errors=True)
            for way, command in ways.items():
                ours[way].append(run(command))
            theirs.append(timed(lambda: read(out / name)))
        median = lambda times, i: statistics.median(t[i] for t in times)
        for way, times in ours.items():
            clock, processor = (statistics.median(a[i] / b[i] for a, b in zip(times, theirs)) for i in (0, 1))
            print(f"| {name} | {way} | {median(times, 1):.2f} | {peer} | {median(theirs, 1):.2f} | {processor:.2f} | "
                  f"{median(times, 0):.2f}, {median(theirs, 0):.2f} | {clock:.2f} | {median(times, 2):.0f} |", flush=True)


def solve(album, out, millions, bootstrap):
    print("| rows | options | clock (s) | processor (s) | processor, microseconds a row | peak memory (MB) |\n|---|---|---|---|---|---|")
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
        command = [album, "solve", path, "--state", "state", "--action", "action", "--reward", "reward", "--episode", "episode",
                   "--out", out / "policy.parquet"]
        for options in [[], ["--bootstrap", bootstrap]] if bootstrap else [[]]:
            seconds, cpu, memory = run(command + options)
            text = " ".join(map(str, options))
            print(f"| {count}M | {text} | {seconds:.1f} | {cpu:.1f} | {cpu / count:.2f} | {memory:.0f} |", flush=True)
        path.unlink()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("album")
    parser.add_argument("out", type=Path)
    parser.add_argument("--reader", help="the example read_log of album-data: compares reading into memory, too")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--solve", default="")
    parser.add_argument("--bootstrap", type=int, default=0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.rounds:
        write(given.out, given.rows)
        imports(given.album, given.reader, given.out, given.rows, given.rounds)
    if given.solve:
        solve(given.album, given.out, [int(count) for count in given.solve.split(",")], given.bootstrap)


if __name__ == "__main__":
    main()
