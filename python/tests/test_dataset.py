import os
import subprocess
import sys

import numpy as np
import pytest

import album_rl as al

pytestmark = pytest.mark.filterwarnings("ignore:.*dropped")


def test_arrays_become_episodes(data):
    assert (len(data), data.episodes) == (1900, 100)
    assert data.action_space["kind"] == "continuous"
    assert data.action_space["low"][0] < -1.9
    found = data.inspect()
    assert found["transitions"] == 1900 and found["ends"] == {"terminal": 0, "timeout": 100}
    assert "1,900 in 100 episodes" in repr(found) and isinstance(found, dict)
    assert "1,900 transitions" in repr(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.astype(np.float64),
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x.astype(x.dtype.newbyteorder(">")),
        lambda x: x.tolist(),
    ],
    ids=["float64", "fortran", "strided", "byteorder", "list"],
)
def test_types_and_layouts_change_nothing(arrays, data, change):
    arrays["observations"] = change(arrays["observations"])
    assert al.Dataset(**arrays).content_hash == data.content_hash


def test_whole_numbers_of_any_size(choices, arrays):
    assert choices.action_space == {"kind": "discrete", "n": 3}
    for kind in (np.int8, np.uint8, np.int64, np.uint64):
        actions = np.clip(np.round(arrays["actions"][:, 0] * 0.75) + 1, 0, 2).astype(kind)
        assert al.Dataset(**{**arrays, "actions": actions}).content_hash == choices.content_hash


def test_later_changes_of_the_arrays_change_nothing(arrays):
    data = al.Dataset(**arrays)
    before = data.content_hash
    arrays["observations"][:] = np.nan
    arrays["rewards"][:] = 1e9
    assert data.content_hash == before
    assert np.isfinite(al.Bc(hidden=(8,)).fit(data, steps=5).predict([0.1, 0.2])).all()


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda a: a["rewards"].__setitem__(7, np.nan), "column `rewards`, row 7: found NaN"),
        (lambda a: a["observations"].__setitem__((3, 1), np.inf), "row 3"),
        (lambda a: a.update(rewards=a["rewards"][:-1]), "rewards: found 1999 rows, expected 2000"),
        (lambda a: a.update(observations=a["observations"][:-1]), "observations"),
        (lambda a: a.update(rewards=np.array([None] * 2000)), "rewards: found dtype object"),
        (lambda a: a.update(rewards=a["rewards"].astype(complex)), "rewards: found dtype complex"),
        (lambda a: a.update(rewards=3.0), "rewards: found a single number"),
        (lambda a: a.update(observations=[[1.0], [1.0, 2.0]]), "observations"),
        (lambda a: a.update(rewards=np.zeros((2000, 2))), "rewards of dimension 2, expected one"),
        (lambda a: a.update(timeouts=np.full(2000, 7)), "timeouts"),
    ],
)
def test_bad_arrays_are_refused_by_name(arrays, change, message):
    change(arrays)
    with pytest.raises(al.DataError, match=message):
        al.Dataset(**arrays)


def test_questions_name_the_keyword(arrays):
    arrays["actions"] = np.arange(2000) % 7 + 2
    with pytest.raises(al.AlbumError, match='action_kind="discrete"'):
        al.Dataset(**arrays)
    assert al.Dataset(**arrays, action_kind="discrete").action_space["n"] == 9


def test_next_observations_keep_the_last_step(arrays):
    following = np.vstack([arrays["observations"][1:], arrays["observations"][:1]])
    assert len(al.Dataset(**arrays, next_observations=following)) == 2000


def test_bounds_are_the_users(arrays):
    data = al.Dataset(**arrays, action_bounds=(-2, 2))
    assert data.action_space == {"kind": "continuous", "low": [-2.0], "high": [2.0]}
    with pytest.raises(al.AlbumError, match="bounds"):
        al.Dataset(**arrays, action_bounds=(2, -2))


def test_files_and_arrays_are_the_same_data(tmp_path, arrays, data):
    np.savez(tmp_path / "walk.npz", **arrays)
    assert al.Dataset.load(tmp_path / "walk.npz").content_hash == data.content_hash
    renamed = {"o": arrays["observations"], "a": arrays["actions"], "r": arrays["rewards"], "cut": arrays["timeouts"]}
    np.savez(tmp_path / "renamed.npz", **renamed)
    columns = {"obs": "o", "action": ["a"], "reward": "r", "timeout": "cut"}
    assert al.Dataset.load(tmp_path / "renamed.npz", columns=columns).content_hash == data.content_hash
    with pytest.raises(al.DataError, match="nothing.npz"):
        al.Dataset.load(tmp_path / "nothing.npz")
    with pytest.raises(al.ConfigError, match="did you mean `reward`"):
        al.Dataset.load(tmp_path / "renamed.npz", columns={"reword": "r"})


def test_pandas(arrays, data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "x": arrays["observations"][:, 0],
            "t": arrays["observations"][:, 1],
            "u": arrays["actions"][:, 0],
            "reward": arrays["rewards"],
            "timeout": arrays["timeouts"],
        }
    )
    columns = {"obs": ["x", "t"], "action": "u", "step": ""}
    loaded = al.Dataset.from_pandas(frame, columns)
    assert loaded.content_hash == data.content_hash and loaded.observation_names == ["x", "t"]
    frame["u"] = np.where(frame["u"] > 0, "right", "left")
    loaded = al.Dataset.from_pandas(frame, columns)
    assert loaded.action_space == {"kind": "discrete", "n": 2} and loaded.action_names == ["left", "right"]


class Episode:
    def __init__(self, observations, actions, rewards, terminated):
        self.observations, self.actions, self.rewards = observations, actions, rewards
        self.terminated, self.terminations = terminated, [False] * (len(rewards) - 1) + [terminated]


def test_episodes_of_d3rlpy():
    """The attributes that d3rlpy 2 has: rewards are columns, and nothing follows the last observation."""

    class Info:
        action_space, action_size = "ActionSpace.DISCRETE", 3

    class Buffer:
        dataset_info = Info
        episodes = [
            Episode(np.ones((5, 2), np.float32) * i, np.full((5, 1), i % 3), np.ones((5, 1)), i % 2 == 0) for i in range(6)
        ]

    data = al.Dataset.from_d3rlpy(Buffer)
    # A step that was cut led nowhere that is known; one that ended the task need not lead anywhere.
    assert (len(data), data.episodes) == (3 * 5 + 3 * 4, 6)
    assert data.action_space == {"kind": "discrete", "n": 3}
    assert data.inspect()["ends"] == {"terminal": 3, "timeout": 3}


def test_minari():
    gymnasium = pytest.importorskip("gymnasium")

    class Minari:
        action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,))
        observation_space = gymnasium.spaces.Dict(
            {"b": gymnasium.spaces.Discrete(3), "a": gymnasium.spaces.Box(-1, 1, (2,))}
        )

        def iterate_episodes(self):
            for i in range(4):
                seen = {"a": np.full((6, 2), i / 4, np.float32), "b": np.arange(6) % 3}
                yield Episode(seen, np.ones((5, 1), np.float32), np.ones(5), i == 0)

    data = al.Dataset.from_minari(Minari())
    assert (len(data), data.episodes, len(data.observation_names)) == (20, 4, 5)
    assert data.action_space == {"kind": "continuous", "low": [-2.0], "high": [2.0]}
    assert data.transitions()["next_observations"][0].tolist() == [0, 0, 0, 1, 0]


def test_a_real_minari_dataset(tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    program = os.environ.get("ALBUM_BINARY")
    if not program:
        pytest.skip("ALBUM_BINARY names no album that records; `cargo xtask test` sets it")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    monkeypatch.setenv("ALBUM_PYTHON", sys.executable)
    command = [program, "data", "record", "--env", "gymnasium:CartPole-v1", "--episodes", "5", "--format", "minari"]
    (tmp_path / "test").mkdir()
    subprocess.run([*command, "--out", tmp_path / "test/cartpole-v0"], check=True, capture_output=True)
    from_python = al.Dataset.from_minari(minari.load_dataset("test/cartpole-v0"))
    assert from_python.content_hash == al.Dataset.load("test/cartpole-v0").content_hash
    assert from_python.action_space == {"kind": "discrete", "n": 2}


def test_parts_share_no_episode(data):
    training, held_out = data.split(0.2, seed=1)
    assert (training.episodes, held_out.episodes) == (80, 20)
    with pytest.raises(al.ConfigError, match="share"):
        data.split(1.5)
