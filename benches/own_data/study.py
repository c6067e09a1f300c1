"""Own data, as a new user would: record, train with the defaults, compare with behaviour cloning and d3rlpy.

    python study.py ALBUM OUT [--problems a,b] [--seeds 0,1] [--peers]

ALBUM is the binary, OUT keeps recordings, runs and `results.jsonl`; what is there already is not done again. The Python
that runs this needs gymnasium and, with --peers, d3rlpy; `album setup gymnasium` makes the one that album uses.
"""

import argparse
import json
import os
import subprocess
import time
from pathlib import Path

import gymnasium
import numpy as np

import environments

HERE = Path(environments.__file__).resolve()


def newest(name):
    """An id with its last version, which gymnasium counts up."""
    versions = [spec.version for spec in gymnasium.registry.values() if spec.name == name]
    return f"{name}-v{max(versions)}"


PROBLEMS = {
    # environment, its arguments, recordings (policy, noise options, episodes)
    "pendulum": ("gymnasium:Pendulum-v1", [], [
        ("random", [], 30), ("pendulum", ["--noise", "0.8"], 30), ("pendulum", ["--noise", "0.3"], 15)]),
    "cartpole": ("gymnasium:CartPole-v1", [], [
        ("random", [], 100), ("cartpole_poor", ["--epsilon", "0.2"], 150), ("cartpole_fair", ["--epsilon", "0.3"], 40)]),
    "frozenlake": ("gymnasium:FrozenLake-v1", ["is_slippery=false"], [("random", [], 1500)]),
    "slippery": ("gymnasium:FrozenLake-v1", [], [("random", [], 3000)]),
    "cliffwalking": (f"gymnasium:{newest('CliffWalking')}", ["max_episode_steps=200"], [("random", [], 60)]),
    "taxi": (f"gymnasium:{newest('Taxi')}", [], [("random", [], 40), ("taxi", ["--epsilon", "0.3"], 300)]),
    "lq": (f"{HERE}:lq", [], [("lq_mediocre", [], 200)]),
}
DISCRETE = {"cartpole", "frozenlake", "slippery", "cliffwalking", "taxi"}
EPISODES = 50


def spent():
    """Processor seconds of this process and of those that it has waited for; a busy machine changes them least."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stderr}")
    return done.stdout


def record(album, out, problem, seed):
    env, arguments, parts = PROBLEMS[problem]
    files = []
    for i, (policy, options, episodes) in enumerate(parts):
        file = out / "data" / f"{problem}-{seed}-{i}.npz"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            policy = policy if policy == "random" else f"{HERE}:{policy}"
            run(album, "data", "record", "--env", env, *[x for a in arguments for x in ("--env-arg", a)],
                "--policy", policy, *options, "--episodes", episodes, "--seed", 1000 * seed + i, "--out", file)
        files.append(file)
    return files


def behaviour(files):
    """Mean return of the episodes."""
    returns = []
    for file in files:
        with np.load(file) as arrays:
            ends = np.flatnonzero(arrays["terminals"] | arrays["timeouts"])
            rewards = arrays["rewards"].astype(np.float64)
        starts = np.concatenate([[0], ends[:-1] + 1])
        returns += [rewards[a : b + 1].sum() for a, b in zip(starts, ends)]
    return float(np.mean(returns))


def train(album, out, problem, seed, agent, files):
    env, arguments, _ = PROBLEMS[problem]
    folder = out / "runs" / f"{problem}-{agent}-{seed}"
    before = spent()
    if (folder / "config.toml").exists():
        run(album, "resume", folder, "--threads", 1, "--workers", 1)
    else:
        run(album, "train", "--data", *files, "--agent", agent, "--seed", seed, "--env", env,
            *[x for a in arguments for x in ("--env-arg", a)], "--eval-episodes", EPISODES, "--eval-every", 0,
            "--threads", 1, "--workers", 1, "--out", folder)
    result = json.loads((folder / "result.json").read_text())
    row = dict(score=result["evaluations"][-1]["return"], steps=result["steps"], seconds=result["wall_seconds"] - result["eval_seconds"],
               processor_seconds=spent() - before)
    exact = json.loads((folder / "differences.json").read_text()).get("exact")
    if exact:
        # Where states repeat: the best that the data supports, and how far values and policy are from it.
        error = lambda pairs: float(np.mean([abs(a - b) for a, b in pairs])) if pairs else None
        row |= dict(v_star=exact["mean_v_star"], policy_value=exact["mean_policy_value"],
                    q_error=error(exact["q"]), v_error=error(exact["v"]))
    return row


def make(problem):
    if problem == "lq":
        return environments.lq()
    env, arguments, _ = PROBLEMS[problem]
    pairs = dict(a.split("=") for a in arguments)
    return gymnasium.make(env.split(":")[1], **{k: json.loads(v) for k, v in pairs.items()})


def evaluate(problem, act, seed):
    env, returns = make(problem), []
    for episode in range(EPISODES):
        obs, _ = env.reset(seed=100_000 * (seed + 1) + episode)
        total, done = 0.0, False
        while not done:
            obs, reward, terminated, truncated, _ = env.step(act(obs))
            total, done = total + float(reward), terminated or truncated
        returns.append(total)
    return float(np.mean(returns))


def peer(problem, seed, name, files, steps):
    import d3rlpy
    import torch

    torch.set_num_threads(1)
    d3rlpy.seed(seed)
    parts = []
    for file in files:
        with np.load(file) as arrays:
            parts.append({k: arrays[k] for k in arrays.files})
    joined = {k: np.concatenate([p[k] for p in parts]) for k in ["observations", "actions", "rewards", "terminals", "timeouts"]}
    observations, actions = joined["observations"], joined["actions"]
    if observations.ndim == 1 or observations.shape[1] == 0:
        observations = observations.reshape(len(actions), -1)
    kind = d3rlpy.constants.ActionSpace.DISCRETE if problem in DISCRETE else d3rlpy.constants.ActionSpace.CONTINUOUS
    actions = actions.reshape(len(actions), -1)
    actions = actions.astype(np.int64) if problem in DISCRETE else actions.astype(np.float32)
    data = d3rlpy.dataset.MDPDataset(observations.astype(np.float32), actions, joined["rewards"].astype(np.float32),
                                     joined["terminals"].astype(np.float32), joined["timeouts"].astype(np.float32), action_space=kind)
    scale = dict(observation_scaler=d3rlpy.preprocessing.StandardObservationScaler())
    if problem not in DISCRETE:
        scale["action_scaler"] = d3rlpy.preprocessing.MinMaxActionScaler()
    config = {"d3rlpy-iql": d3rlpy.algos.IQLConfig, "d3rlpy-td3bc": d3rlpy.algos.TD3PlusBCConfig,
              "d3rlpy-dcql": d3rlpy.algos.DiscreteCQLConfig}[name]
    options = dict(batch_size=256)
    agent = config(**scale, **options).create(device="cpu:0")
    start, before = time.time(), spent()
    agent.fit(data, n_steps=steps, n_steps_per_epoch=steps, show_progress=False, with_timestamp=False,
              logger_adapter=d3rlpy.logging.NoopAdapterFactory())
    seconds, processor_seconds = time.time() - start, spent() - before
    one_hot = np.eye(observations.shape[1], dtype=np.float32)

    def act(obs):
        obs = np.asarray(one_hot[obs] if np.ndim(obs) == 0 else obs, dtype=np.float32)
        return agent.predict(obs.reshape(1, -1))[0]

    score = evaluate(problem, act, seed)
    return dict(score=score, steps=steps, seconds=seconds, processor_seconds=processor_seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("album")
    parser.add_argument("out", type=Path)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--peers", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    results = given.out / "results.jsonl"
    known = {}
    if results.exists():
        for line in results.read_text().splitlines():
            row = json.loads(line)
            known[row["problem"], row["seed"], row["method"]] = row
    for seed in map(int, given.seeds.split(",")):
        for problem in given.problems.split(","):
            files = record(given.album, given.out, problem, seed)

            def note(method, compute):
                if (problem, seed, method) not in known:
                    row = known[problem, seed, method] = dict(problem=problem, seed=seed, method=method, **compute())
                    with results.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    print(row, flush=True)
                return known[problem, seed, method]

            note("behaviour", lambda: dict(score=behaviour(files)))
            if problem == "lq":
                rng = np.random.default_rng(0)
                note("optimum", lambda: dict(score=evaluate("lq", lambda obs: environments.lq_best(obs, rng), seed)))
            steps = note("album", lambda: train(given.album, given.out, problem, seed, "album", files))["steps"]
            note("bc", lambda: train(given.album, given.out, problem, seed, "bc", files))
            if given.peers:
                for name in ["d3rlpy-dcql"] if problem in DISCRETE else ["d3rlpy-iql", "d3rlpy-td3bc"]:
                    note(name, lambda name=name: peer(problem, seed, name, files, steps))


if __name__ == "__main__":
    main()
