"""Writes logs in every format, by the libraries that people use: python make.py FOLDER

Needs numpy, h5py, pandas, pyarrow and minari with pillow. The files here were made by h5py 3.16, pandas 3.1, pyarrow 26 and
minari 0.5.4; tests/it/formats.rs says what must be in them. In `ended` all episodes end by themselves, in the state before, so that
even formats without next observations or timeouts hold all of it.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import h5py
import minari
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from gymnasium.spaces import Box, Dict
from minari.data_collector import EpisodeBuffer


def make(rng, lengths, ends):
    episodes = []
    for length, end in zip(lengths, ends):
        states = rng.normal(size=(length + 1, 3)).astype(np.float32)
        last = np.arange(length) == length - 1
        episodes.append(
            dict(
                states=states,
                observations=states[:-1],
                next_observations=states[1:],
                actions=rng.uniform(-3, 3, size=(length, 2)).astype(np.float32),
                rewards=rng.normal(size=length).astype(np.float32),
                terminals=last & (end == "terminal"),
                timeouts=last & (end == "timeout"),
                steps=np.arange(length),
            )
        )
    return episodes


def write(out, episodes, ended):
    lengths = [len(e["rewards"]) for e in episodes]
    flat = {key: np.concatenate([e[key] for e in episodes]) for key in episodes[0] if key != "states"}
    flat["episode_ids"] = np.repeat(np.arange(len(lengths)), lengths)
    arrays = {key: flat[key] for key in flat if key != "steps"}

    np.savez_compressed(out / "log.npz", **arrays)
    folder = out / "npy"
    folder.mkdir(exist_ok=True)
    for key, value in arrays.items():
        np.save(folder / f"{key}.npy", value)
    states = np.concatenate([e["states"] for e in episodes])
    longer = {key: arrays[key] for key in ("actions", "rewards", "terminals", "timeouts")}
    np.savez_compressed(out / "states.npz", observations=states, **longer)

    with h5py.File(out / "d4rl.hdf5", "w") as file:
        for key, value in arrays.items():
            if key != "episode_ids":
                chunked = dict(chunks=(4,) + value.shape[1:], compression="gzip", shuffle=True)
                file.create_dataset(key, data=value, **(chunked if key != "rewards" else {}))

    if not ended:
        # Chunks narrower than the rows, as h5py makes them unless told otherwise.
        chunks = {"observations": (3, 2), "next_observations": (3, 1), "actions": (5, 1)}
        with h5py.File(out / "narrow.hdf5", "w") as file:
            for key, value in arrays.items():
                if key in chunks:
                    wide = value.astype(np.float64) if key == "next_observations" else value
                    file.create_dataset(key, data=wide, chunks=chunks[key], compression="gzip", shuffle=True)
                elif key != "episode_ids":
                    file[key] = value
        # Only the first of three columns is written; a file has no chunks for the others.
        with h5py.File(out / "holes.hdf5", "w") as file:
            observations = file.create_dataset("observations", (10, 3), np.float32, chunks=(4, 1))
            observations[:, 0] = np.arange(10)
            file["actions"] = np.linspace(-1, 1, 10, dtype=np.float32)[:, None]
            file["rewards"] = np.ones(10, np.float32)
            file["terminals"] = np.arange(10) == 9

    with h5py.File(out / "robomimic.hdf5", "w") as file:
        for i, e in enumerate(episodes):
            demo = file.create_group(f"data/demo_{i}")
            demo.attrs["num_samples"] = len(e["rewards"])
            for part, rows in [("obs", e["observations"]), ("next_obs", e["next_observations"])]:
                demo.create_dataset(f"{part}/pos", data=rows[:, :2])
                demo.create_dataset(f"{part}/vel", data=rows[:, 2:])
            demo.create_dataset("actions", data=e["actions"])
            demo.create_dataset("rewards", data=e["rewards"].astype(np.float64))
            demo.create_dataset("dones", data=(e["terminals"] | e["timeouts"]).astype(np.int64))

    columns = {"eps_id": flat["episode_ids"], "t": flat["steps"]}
    columns |= {f"obs_{i}": flat["observations"][:, i] for i in range(3)}
    columns |= {f"next_obs_{i}": flat["next_observations"][:, i] for i in range(3)}
    columns |= {f"action_{i}": flat["actions"][:, i] for i in range(2)}
    columns |= {"reward": flat["rewards"], "terminated": flat["terminals"], "truncated": flat["timeouts"]}
    table = pd.DataFrame(columns)
    table.to_csv(out / "log.csv", index=False)
    table.to_csv(out / "log.csv.gz", index=False)
    table.sample(frac=1, random_state=0).to_csv(out / "shuffled.csv", index=False)
    table.to_parquet(out / "log.parquet", compression="zstd")

    lists = pa.table(
        {
            "obs": pa.array(list(flat["observations"]), pa.list_(pa.float32())),
            "next_obs": pa.array(list(flat["next_observations"]), pa.list_(pa.float32(), 3)),
            "actions": pa.array(list(flat["actions"].astype(np.float64)), pa.list_(pa.float64())),
            "rewards": flat["rewards"],
            "terminateds": flat["terminals"],
            "truncateds": flat["timeouts"],
            "eps_id": pa.array([f"episode {i}" for i in flat["episode_ids"]]),
        }
    )
    pq.write_table(lists, out / "lists.parquet", row_group_size=5)

    robot = out / "lerobot"
    (robot / "meta").mkdir(parents=True, exist_ok=True)
    (robot / "meta/info.json").write_text(json.dumps({"codebase_version": "v3.0", "total_episodes": len(lengths)}))
    half = len(lengths) // 2
    for file, part in enumerate([range(half), range(half, len(lengths))]):
        rows = np.isin(flat["episode_ids"], part)
        path = robot / f"data/chunk-000/file-{file:03}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        frames = {
            "observation.state": pa.array(list(flat["observations"][rows]), pa.list_(pa.float32(), 3)),
            "action": pa.array(list(flat["actions"][rows]), pa.list_(pa.float32(), 2)),
            "timestamp": (flat["steps"][rows] / 30).astype(np.float32),
            "frame_index": flat["steps"][rows],
            "episode_index": flat["episode_ids"][rows],
            "index": np.flatnonzero(rows),
            "task_index": np.zeros(rows.sum(), np.int64),
        }
        if ended:
            frames |= {"next.reward": flat["rewards"][rows], "next.done": flat["terminals"][rows]}
        pq.write_table(pa.table(frames), path)

    os.environ["MINARI_DATASETS_PATH"] = str(out / "minari")
    shutil.rmtree(out / "minari", ignore_errors=True)
    for form in ["hdf5", "parquet"] + ["arrow"] * (not ended):
        buffer = [
            EpisodeBuffer(
                id=i,
                observations={"vel": e["states"][:, 2:], "pos": e["states"][:, :2]},
                actions=e["actions"],
                rewards=e["rewards"].astype(np.float64),
                terminations=e["terminals"],
                truncations=e["timeouts"],
            )
            for i, e in enumerate(episodes[: 1 if form == "arrow" else None])
        ]
        minari.create_dataset_from_buffers(
            dataset_id=f"album/{form}-v0",
            buffer=buffer,
            observation_space=Dict({"pos": Box(-np.inf, np.inf, (2,)), "vel": Box(-np.inf, np.inf, (1,))}),
            action_space=Box(np.float32([-4, -np.inf]), np.float32([4, np.inf])),
            data_format=form,
        )


out = Path(sys.argv[1]).resolve()
write(out, make(np.random.default_rng(0), [3, 5], ["terminal", "timeout"]), ended=False)
ended = make(np.random.default_rng(1), [9, 7, 8, 10], ["terminal"] * 4)
for e in ended:
    e["states"][-1] = e["states"][-2]
(out / "ended").mkdir(exist_ok=True)
write(out / "ended", ended, ended=True)

# Files that ask for more than they hold.
with h5py.File(out / "bomb.hdf5", "w") as file:
    for key, width in [("observations", 8), ("actions", 1), ("rewards", None)]:
        rows = 2 * 10**8
        file.create_dataset(key, shape=(rows, width) if width else (rows,), chunks=True, dtype="f4")
with h5py.File(out / "deep.hdf5", "w") as file:
    group = file
    for level in range(40):
        group = group.create_group("g")
    file["actions"] = np.zeros((4, 1))
