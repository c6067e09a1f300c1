import inspect
import json
import os
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

import album_rl as al

NAMES = sorted(al.agents())


@pytest.mark.parametrize("name", NAMES)
def test_every_agent_learns_acts_and_comes_back(name, data, tmp_path):
    kind = getattr(al, type(al._agent.CLASSES[name]()).__name__)
    agent = kind(hidden=(16, 16), seed=1).fit(data, steps=4, threads=1)
    actions = agent.predict(np.zeros((5, 2), np.float32))
    low, high = agent.action_space["low"][0], agent.action_space["high"][0]
    assert actions.shape == (5, 1) and actions.dtype == np.float32
    assert (actions >= low - 1e-5).all() and (actions <= high + 1e-5).all()
    assert agent.predict(np.zeros(2)).shape == (1,)
    for of in (lambda: agent.value(np.zeros((5, 2))), lambda: agent.q(np.zeros((5, 2)), actions)):
        try:
            assert of().shape == (5,)
        except al.Unsupported as error:
            assert name in str(error)
    agent.save(tmp_path / "run")
    again = al.load(tmp_path / "run", threads=1)
    assert type(again) is kind and again.weights_sha256 == agent.weights_sha256
    assert np.array_equal(
        again.policy(seed=7)(np.float32([0.1, 0.2])), agent.policy(seed=7)(np.float32([0.1, 0.2]))
    )


def test_keywords_are_the_keys_of_the_registry():
    for name, kind in al._agent.CLASSES.items():
        keys = [*al.agents()[name]["defaults"], "seed"]
        assert list(inspect.signature(kind).parameters) == keys and kind.__name__ in al.__all__
    with pytest.raises(al.ConfigError, match="unknown key `lamda_b`; did you mean `lambda_b`"):
        al.Album(lamda_b=1)
    with pytest.raises(al.ConfigError, match="k = 2.5; expected an integer"):
        al.Album(k=2.5)
    with pytest.raises(al.ConfigError, match="gamma = 2"):
        al.Album(gamma=2.0)
    with pytest.raises(al.ConfigError, match="NaN or infinity"):
        al.Album(gamma=np.nan)
    with pytest.raises(al.ConfigError, match="found object"):
        al.Album(hidden=object())
    with pytest.raises(al.DataError, match="seed"):
        al.Album(seed=-1)


def test_habits_of_scikit_learn():
    agent = al.Iql(hidden=(16, 16), gamma=0.9, seed=4)
    assert agent.get_params()["hidden"] == (16, 16) and agent.get_params()["batch_size"] is None
    assert agent.set_params(gamma=0.8).gamma == 0.8
    with pytest.raises(al.ConfigError):
        agent.set_params(gamma=3.0)
    assert agent.gamma == 0.8
    base = pytest.importorskip("sklearn.base")
    copy = base.clone(agent)
    assert copy is not agent and copy.get_params() == agent.get_params()
    assert repr(copy) == "Iql(gamma=0.8, hidden=(16, 16), seed=4)"


def test_choices(choices):
    agent = al.Album(hidden=(32, 32), seed=0).fit(choices, steps=50, threads=1)
    found = agent.predict(np.zeros((4, 2)))
    assert found.dtype == np.int64 and set(found) <= {0, 1, 2}
    assert isinstance(agent.predict(np.zeros(2)), int)
    assert agent.q(np.zeros((3, 2)), [0, 1, 2]).shape == (3,)
    assert isinstance(agent.q([0, 0], 1), float)
    with pytest.raises(al.DataError, match="found 3, expected a whole number from 0 to 2"):
        agent.q(np.zeros((1, 2)), [3])
    with pytest.raises(al.ConfigError, match="discrete"):
        al.Fql().fit(choices, steps=1)


def test_what_the_data_says_is_told(agent):
    assert agent.settings["gamma"] == 0.9474 and any("gamma" in line for line in agent.chosen)
    assert agent.finished and agent.step == 200 and agent.result["held_out_episodes"] == 10


@pytest.mark.parametrize(
    "observations, message",
    [
        (np.zeros(3), r"found shape \[3\], expected \[2\] or \[rows, 2\]"),
        (np.zeros((2, 3)), "found shape"),
        (np.zeros((1, 1, 2)), "found shape"),
        ([np.nan, 0], "row 0, column 0: found NaN"),
        (np.array([[0, 0], [0, np.inf]]), "row 1, column 1: found inf"),
        (["a", "b"], "found dtype"),
        ("text", "found dtype"),
        (None, "found dtype object"),
    ],
)
def test_bad_observations(agent, observations, message):
    for call in (agent.predict, agent.value, agent.policy()):
        with pytest.raises(al.DataError, match=message):
            call(observations)


def test_equal_layouts_give_equal_actions(agent):
    rows = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    expected = agent.value(np.ascontiguousarray(rows[:, ::2]))
    for view in (rows[:, ::2], np.asfortranarray(rows[:, ::2]), rows[:, ::2].astype(float)):
        assert np.array_equal(agent.value(view), expected)
    assert agent.value(rows[:0, ::2]).shape == (0,)


def test_an_agent_without_training():
    with pytest.raises(al.NotFitted, match="call fit"):
        al.Album().predict([0.0])


def test_a_callback_sees_what_is_logged(data):
    seen = []
    al.Bc(hidden=(8,)).fit(data, steps=40, holdout=0.2, callback=lambda step, row: seen.append((step, row)), log_every=10)
    assert seen[-1][0] == 40
    assert {"training/actor/actor_loss", "time/ms_per_step"} <= set(seen[0][1]) or any(
        name.startswith("training/") for name in seen[0][1]
    )
    assert any(name.startswith("validation/") for name in seen[0][1])


def test_a_slow_callback_does_not_hold_training_up(data):
    steps = []

    def slow(step, row):
        steps.append((step, time.monotonic()))
        time.sleep(0.1)

    begin = time.monotonic()
    agent = al.Bc(hidden=(8,)).fit(data, steps=200, callback=slow)
    assert len(steps) == 20 and agent.step == 200
    assert agent.result["wall_seconds"] < 0.8 * (time.monotonic() - begin)


def test_a_callback_that_raises_leaves_an_agent(data):
    def fail(step, row):
        raise ZeroDivisionError("on purpose")

    agent = al.Bc(hidden=(8,))
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        agent.fit(data, steps=10_000, callback=fail, log_every=5)
    assert 5 <= agent.step < 10_000 and not agent.finished
    assert agent.predict([0.0, 0.0]).shape == (1,)
    with pytest.raises(al.DataError, match="callback"):
        agent.fit(data, steps=1, callback=3)


def test_bad_calls_of_fit(data, agent):
    before = agent.weights_sha256
    with pytest.raises(al.DataError, match="expected album_rl.Dataset"):
        agent.fit(np.zeros(3))
    with pytest.raises(al.ConfigError, match="did you mean `log_every`"):
        agent.fit(data, steps=1, log_evry=1)
    with pytest.raises(al.ConfigError, match="holdout"):
        agent.fit(data, steps=1, holdout=2)
    for steps in (0, -5, 1.5, "many", np.nan):
        with pytest.raises(al.AlbumError, match="steps"):
            agent.fit(data, steps=steps)
    with pytest.raises(al.ConfigError, match="threads = -1"):
        agent.fit(data, steps=1, threads=-1)
    with pytest.raises(al.EnvError, match="an object of type str"):
        agent.fit(data, steps=1, env="CartPole-v1")
    assert agent.weights_sha256 == before


def test_ctrl_c_stops_at_the_next_step_and_leaves_an_agent(data):
    # A shell starts background jobs with SIGINT ignored, and the test would not end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    agent = al.Album(hidden=(64, 64))
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    with pytest.warns(al.StoppedWarning, match="stopped by Ctrl-C after step"):
        assert agent.fit(data, steps=10_000_000, threads=1) is agent
    assert time.monotonic() - begin < 20
    assert 0 < agent.step < 10_000_000 and not agent.finished
    assert agent.predict([0.0, 0.0]).shape == (1,)


def test_other_threads_run_meanwhile(data):
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    al.Album(hidden=(64, 64)).fit(data, steps=300, threads=1)
    seconds = time.monotonic() - begin
    done.set()
    thread.join()
    assert len(ticks) > 5 * seconds


def test_training_on_a_device(data):
    with pytest.raises(al.ConfigError, match="expected xla or xla:N"):
        al.Bc().fit(data, steps=4, device="cuda")
    if not os.environ.get("ALBUM_XLA_PLUGIN"):
        pytest.skip("ALBUM_XLA_PLUGIN does not name a plugin; `ALBUM_REQUIRE=xla cargo xtask test` sets it")
    here, there = (al.Bc(hidden=(8,), seed=1).fit(data, steps=20, device=device) for device in (None, "xla"))
    observations = np.zeros((5, 2), np.float32)
    np.testing.assert_allclose(here.predict(observations), there.predict(observations), atol=1e-4)


def test_saved_runs_are_runs(agent, tmp_path):
    agent.save(tmp_path / "run")
    assert json.loads((tmp_path / "run/result.json").read_text())["weights_sha256"] == agent.weights_sha256
    with pytest.raises(al.RunError, match="not empty"):
        agent.save(tmp_path / "run")
    with pytest.raises(al.RunError, match="not a run"):
        al.load(tmp_path)
    weights = next((tmp_path / "run/checkpoints").glob("*/agent.safetensors"))
    weights.write_bytes(b"\0" + weights.read_bytes()[1:])
    with pytest.raises(al.RunError, match="damaged"):
        al.load(tmp_path / "run")


def test_the_command_line_gives_the_same_weights(arrays, data, tmp_path):
    program = os.environ.get("ALBUM_BINARY")
    if not program:
        pytest.skip("ALBUM_BINARY names no album to compare with; `cargo xtask test` sets it")
    np.savez(tmp_path / "walk.npz", **arrays)
    command = [program, "train", "--data", tmp_path / "walk.npz", "--steps", "60", "--seed", "5", "--out", tmp_path / "run"]
    command += ["--set", "hidden=[16, 16]", "--set", "k=4", "--gamma", "0.9", "--json"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    agent = al.Album(hidden=[16, 16], k=4, gamma=0.9, seed=5).fit(data, steps=60, threads=1)
    assert agent.weights_sha256 == said["weights_sha256"]
    assert al.load(tmp_path / "run").weights_sha256 == agent.weights_sha256


class Line:
    """The walk as an environment."""

    def __init__(self, gymnasium, broken=False):
        self.observation_space = gymnasium.spaces.Box(-1, 1, (2,))
        self.action_space = gymnasium.spaces.Box(-2, 2, (1,))
        self.thread, self.broken = threading.get_ident(), broken

    def reset(self, seed=None):
        self.x, self.t = np.random.default_rng(seed).uniform(-1, 1), 0
        return np.float32([self.x, 0]), {}

    def step(self, action):
        assert threading.get_ident() == self.thread
        if self.broken and self.t == 3:
            raise RuntimeError("the motor is hot")
        reward = -abs(self.x)
        self.x, self.t = np.clip(self.x + 0.1 * action[0], -1, 1), self.t + 1
        return np.float32([self.x, self.t / 20]), reward, False, self.t == 20, {}


def test_an_environment_in_process(data):
    gymnasium = pytest.importorskip("gymnasium")
    seen = []
    agent = al.Album(hidden=(32, 32), seed=0)
    agent.fit(
        data,
        steps=60,
        env=lambda: Line(gymnasium),
        eval_every=30,
        eval_episodes=3,
        callback=lambda step, row: seen.append((step, row)),
    )
    assert [e["step"] for e in agent.result["evaluations"]] == [30, 60]
    assert agent.result["evaluations"][0]["episodes"] == 3
    assert any("evaluation/episode.return" in row for _, row in seen)
    again = al.Album(hidden=(32, 32), seed=0).fit(data, steps=60, env=Line(gymnasium), eval_every=30, eval_episodes=3)
    assert again.result["evaluations"] == agent.result["evaluations"]
    with pytest.raises(al.EnvError, match="the motor is hot") as raised:
        agent.fit(data, steps=60, env=Line(gymnasium, broken=True), eval_every=30)
    assert isinstance(raised.value.__cause__.__cause__, RuntimeError)
    with pytest.raises(al.EnvError, match="observations of dimension 4"):
        agent.fit(data, steps=60, env=gymnasium.make("CartPole-v1"))
    with pytest.raises(al.EnvError, match="without observation_space"):
        agent.fit(data, steps=60, env=object())


def test_rollouts_remember_their_episode(data):
    agent = al.QcFql(hidden=(16, 16), seed=0).fit(data, steps=4, threads=1)

    def rollout(policy):
        return [policy(np.float32([0.1 * step, 0])).tolist() for step in range(12)]

    first, second = agent.policy(seed=1), agent.policy(seed=1)
    assert rollout(first) == rollout(second)
    first.reset()
    assert rollout(first) != rollout(agent.policy(seed=1))
    first.reset(seed=1)
    assert rollout(first) == rollout(agent.policy(seed=1))


def test_examples_of_the_documentation():
    import doctest

    for module in (al, al._dataset, al._solve, al._agent):
        failed = doctest.testmod(module, extraglobs={"__warningregistry__": {}})
        assert failed.failed == 0, module
    for kind in al._agent.CLASSES.values():
        doctest.run_docstring_examples(kind, {}, name=kind.__name__)
