import numpy as np
import pytest

import album_rl as al


def test_a_chain():
    found = al.solve([0, 1, 0], [0, 0, 1], [0.0, 1.0, 0.5], [1, 2, 2], gamma=0.9)
    assert found.v.tolist() == [0.9, 1.0] and found.policy() == {0: 0, 1: 0}
    assert found.q.tolist() == [0.9, 0.5, 1.0] and found.pair_actions.tolist() == [0, 1, 0]
    assert set(found.duals) == {"b", "e", "kq", "kv"} and found.duals["b"].shape == (3,)
    assert found.certificate["gap"] < 1e-9 and found.report["transitions"] == 3
    assert "2 states, 3 pairs" in repr(found)


def test_labels_of_any_kind():
    words = al.solve(["high", "low"], ["A", "none"], [0, 1], ["low", "end"], gamma=0.9)
    assert words.policy() == {"high": "A", "low": "none"}
    rows = al.solve([[0, 0], [0, 1]], [0, 1], [0, 1], [[0, 1], [9, 9]], gamma=0.9)
    assert rows.policy() == {(0, 0): 0, (0, 1): 1} and rows.v.tolist() == [0.9, 1.0]


def test_random_tables_satisfy_bellman():
    rng = np.random.default_rng(0)
    states, actions = rng.integers(0, 30, 3000), rng.integers(0, 3, 3000)
    following, rewards = (states * 7 + actions * 3 + 1) % 30, rng.normal(size=30)[states]
    found = al.solve(states, actions, rewards, following, gamma=0.8, k=3)
    value = dict(zip(found.states.tolist(), found.v))
    for s, a, q in zip(found.pair_states, found.pair_actions, found.q):
        here = rewards[(states == s) & (actions == a)].mean()
        assert abs(q - here - 0.8 * value[(s * 7 + a * 3 + 1) % 30]) < 1e-9


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(rewards=[0, np.nan, 0]), "NaN"),
        (dict(rewards=[0, 1]), "rewards"),
        (dict(gamma=1.0), "gamma"),
        (dict(k=-1), "k = -1"),
        (dict(states=[0.0, np.nan, 0.0]), "row 1: found NaN"),
        (dict(states=np.zeros((3, 2, 2))), "found shape"),
        (dict(states=[], actions=[], rewards=[], next_states=[]), "."),
        (dict(next_states=[1, 2]), "next_states"),
    ],
)
def test_bad_tables(change, message):
    given = dict(states=[0, 1, 0], actions=[0, 0, 1], rewards=[0, 1, 0.5], next_states=[1, 2, 2], gamma=0.9)
    with pytest.raises(al.AlbumError, match=message):
        al.solve(**{**given, **change})
