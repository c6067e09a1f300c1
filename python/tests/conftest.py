"""Data that every test can learn from, and a line for every test that is skipped."""

import os

import numpy as np
import pytest

import album_rl as al


def pytest_runtest_logreport(report):
    log = os.environ.get("ALBUM_SKIP_LOG")
    if report.skipped and log:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        with open(log, "a") as file:
            file.write(f"SKIPPED album_rl {report.nodeid}: {reason.removeprefix('Skipped: ')}\n")


def walk(episodes=100, length=20, seed=0):
    """A walk on a line that pushes left and right at random; being near 0 is good."""
    rng = np.random.default_rng(seed)
    rows = episodes * length
    observations = np.zeros((rows, 2), np.float32)
    actions = rng.uniform(-2, 2, (rows, 1)).astype(np.float32)
    x = 0.0
    for row in range(rows):
        if row % length == 0:
            x = rng.uniform(-1, 1)
        observations[row] = x, row % length / length
        x = np.clip(x + 0.1 * actions[row, 0], -1, 1)
    timeouts = np.arange(rows) % length == length - 1
    return {
        "observations": observations,
        "actions": actions,
        "rewards": -np.abs(observations[:, 0]),
        "terminals": np.zeros(rows, bool),
        "timeouts": timeouts,
    }


@pytest.fixture
def arrays():
    return walk()


@pytest.fixture(scope="session")
def data():
    with pytest.warns(UserWarning, match="dropped"):
        return al.Dataset(**walk())


@pytest.fixture(scope="session")
def agent(data):
    return al.Album(hidden=(32, 32), k=5, seed=3).fit(data, steps=200, holdout=0.1)


@pytest.fixture(scope="session")
def choices():
    """The same walk with three choices."""
    arrays = walk()
    arrays["actions"] = np.clip(np.round(arrays["actions"][:, 0] * 0.75) + 1, 0, 2).astype(np.int32)
    with pytest.warns(UserWarning, match="dropped"):
        return al.Dataset(**arrays)
