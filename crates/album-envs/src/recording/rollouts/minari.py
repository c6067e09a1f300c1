"""Writes a recorded npz file in Minari's layout.

    check                                   does nothing but load what is needed
    write NPZ FOLDER NAME ENV ACTION_SPACE  makes FOLDER/data/main_data.hdf5 and FOLDER/data/metadata.json
"""

import json
import os
import sys

import h5py
import numpy as np


def synced(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def write(npz, folder, name, env, action_space):
    arrays = np.load(npz)
    ids, observations = arrays["episode_ids"], arrays["observations"]
    data = os.path.join(folder, "data")
    os.makedirs(data)
    begins = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    ends = np.r_[begins[1:], len(ids)]
    path = os.path.join(data, "main_data.hdf5")
    columns = {name: arrays[name] for name in ("actions", "rewards", "terminals", "timeouts", "next_observations")}
    with h5py.File(path, "w") as file:
        for number, (begin, end) in enumerate(zip(begins, ends)):
            episode = file.create_group(f"episode_{number}")
            episode.attrs["id"] = number
            episode.attrs["total_steps"] = end - begin
            rows = slice(begin, end)
            episode["observations"] = np.concatenate([observations[rows], columns["next_observations"][end - 1 : end]])
            episode["actions"] = columns["actions"][rows]
            episode["rewards"] = columns["rewards"][rows].astype(np.float64)
            episode["terminations"] = columns["terminals"][rows]
            episode["truncations"] = columns["timeouts"][rows]
    synced(path)
    dim = observations.shape[1]
    space = json.loads(action_space)
    if space["type"] == "Box":
        space["shape"] = [len(space["low"])]
        for bound in ("low", "high"):
            space[bound] = [float(x) for x in space[bound]]
    box = dict(type="Box", dtype="float32", shape=[dim], low=[-float("inf")] * dim, high=[float("inf")] * dim)
    metadata = dict(
        dataset_id=name,
        total_episodes=len(begins),
        total_steps=len(ids),
        data_format="hdf5",
        observation_space=json.dumps(box),
        action_space=json.dumps(space),
        minari_version="0.5.4",
        description=f"recorded by album in {env}",
    )
    path = os.path.join(data, "metadata.json")
    with open(path, "w") as file:
        json.dump(metadata, file)
    synced(path)


if sys.argv[1] == "write":
    write(*sys.argv[2:])
