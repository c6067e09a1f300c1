"""CPU seconds and peak memory of `album data import` beside pandas and h5py reading the same files.

    python benches/import_speed.py target/release/album     (needs numpy, pandas, pyarrow, h5py)

album also checks every number, writes the columns, hashes them and brings them to the disk; the others only read.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

rows, rng = 200_000, np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
step = np.arange(rows)
last = step % 1000 == 999
columns = {"episode": step // 1000}
columns |= {f"obs_{i}": rng.normal(size=rows).astype(np.float32) for i in range(17)}
columns |= {f"action_{i}": rng.uniform(-2, 2, size=rows).astype(np.float32) for i in range(6)}
columns |= {"reward": rng.normal(size=rows).astype(np.float32)}
columns |= {"terminated": last & (step % 2000 > 1000), "truncated": last & (step % 2000 < 1000)}
table = pd.DataFrame(columns)
table.to_parquet(folder / "log.parquet")
table.to_csv(folder / "log.csv", index=False)
with h5py.File(folder / "log.hdf5", "w") as file:
    arrays = {
        "observations": np.stack([columns[f"obs_{i}"] for i in range(17)], 1),
        "actions": np.stack([columns[f"action_{i}"] for i in range(6)], 1),
        "rewards": columns["reward"],
        "terminations": columns["terminated"],
        "truncations": columns["truncated"],
    }
    for name, array in arrays.items():
        file.create_dataset(name, data=array, compression="gzip", chunks=True)


def read_hdf5():
    with h5py.File(folder / "log.hdf5") as file:
        return [file[name][:] for name in file]


def best(read):
    times = []
    for _ in range(3):
        start = time.process_time()
        read()
        times.append(time.process_time() - start)
    return min(times)


for kind, peer, read in [
    ("parquet", "pandas", lambda: pd.read_parquet(folder / "log.parquet")),
    ("csv", "pandas", lambda: pd.read_csv(folder / "log.csv")),
    ("hdf5", "h5py", read_hdf5),
]:
    times = []
    for i in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.argv[1], "data", "import", folder / f"log.{kind}", "--out", folder / f"{kind}-{i}"]
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"{kind}: album {min(times):.2f} s, {peer} {best(read):.2f} s, peak so far {after.ru_maxrss >> 10} MB")
