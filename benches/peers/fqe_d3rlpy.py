"""d3rlpy's FQE on the policies and data of album's study, and tables of both.

    cargo run --release -p album --example fqe_study -- study
    python benches/peers/fqe_d3rlpy.py study            # adds WORLD-d3rlpy.csv and prints the tables
    python benches/peers/fqe_d3rlpy.py study --tables   # only the tables

d3rlpy gets standardised observations, scaled rewards, the batch size, widths, learning rate and target interval of album's fit.
It starts from 0, where album starts from the behaviour's values, and so gets as many regressions as leave 0.2 % of the start:
6,100 steps at a discount of 0.95, 10,250 at 0.97. One critic, activation and initialisation are its defaults. Batches are drawn here: its
replay buffer is slower than its update. It gives no interval.
"""

import argparse
import csv
import math
import pathlib
import types

import numpy as np

BATCH, HIDDEN = 256, [32, 32]
RATE, INTERVAL, LEFT = 3e-4, 50, 0.002


def evaluate(world, policy, seed=0):
    """The mean value of a policy at the initial states, by d3rlpy."""
    import d3rlpy
    import torch
    from d3rlpy.torch_utility import TorchMiniBatch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    gamma = float(world["gamma"][0])
    choices = int(world["choices"][0])
    observations = world["observations"]
    last = world["last"]
    mean, deviation = observations.mean(0), np.maximum(observations.std(0), 1e-6)
    states = torch.tensor((observations - mean) / deviation, dtype=torch.float32)
    scale = 10 / np.percentile(np.abs(returns(world, gamma)), 95)
    rewards = torch.tensor(world["rewards"] * scale, dtype=torch.float32)[:, None]
    ends = torch.tensor(1 - world["masks"], dtype=torch.float32)[:, None]
    actions = torch.tensor(world["actions"], dtype=torch.float32)
    done = torch.tensor(world[f"policy_{policy}"], dtype=torch.float32)
    rows = torch.tensor(np.flatnonzero(~last))

    config = d3rlpy.ope.FQEConfig(
        batch_size=BATCH,
        gamma=gamma,
        learning_rate=RATE,
        target_update_interval=INTERVAL,
        encoder_factory=d3rlpy.models.VectorEncoderFactory(HIDDEN),
    )
    answer = types.SimpleNamespace(predict_best_action=lambda _: answer.actions)
    kind = d3rlpy.ope.DiscreteFQE if choices else d3rlpy.ope.FQE
    fqe = kind(types.SimpleNamespace(impl=answer), config)
    fqe.create_impl((states.shape[1],), choices or actions.shape[1])
    draw = torch.Generator().manual_seed(seed)
    ones = torch.ones(BATCH, 1)
    steps = INTERVAL * math.ceil(math.log(LEFT) / math.log(gamma))
    for step in range(1, steps + 1):
        at = rows[torch.randint(len(rows), (BATCH,), generator=draw)]
        answer.actions = done[at + 1][:, 0] if choices else done[at + 1]
        fqe.impl.inner_update(
            TorchMiniBatch(
                observations=states[at],
                actions=actions[at],
                rewards=rewards[at],
                next_observations=states[at + 1],
                next_actions=actions[at + 1],
                returns_to_go=rewards[at],
                terminals=ends[at],
                intervals=ones,
                device="cpu:0",
            ),
            step,
        )
    first = torch.tensor(np.flatnonzero(np.concatenate([[True], last[:-1]])))
    first = first[~torch.tensor(last)[first]]
    with torch.no_grad():
        chosen = done[first][:, 0].long() if choices else done[first]
        values = fqe.impl.predict_value(states[first], chosen)
    return float(values.mean()) / scale


def returns(world, gamma):
    """Discounted returns from every state on."""
    result, after = np.zeros(len(world["rewards"])), 0.0
    for row in range(len(result) - 1, -1, -1):
        after = 0.0 if world["last"][row] else world["rewards"][row] + gamma * world["masks"][row] * after
        result[row] = after
    return result[~world["last"]]


def ranks(values):
    order = np.argsort(values, kind="stable")
    result = np.empty(len(values))
    for value in set(values):
        same = np.flatnonzero(np.asarray(values)[order] == value)
        result[order[same]] = same.mean()
    return result


def spearman(x, y):
    return float(np.corrcoef(ranks(x), ranks(y))[0, 1])


def regret(truth, estimate, k):
    """What the best of the k policies that look best falls short of the best of all, as a share of the range."""
    truth, chosen = np.asarray(truth), np.argsort(-np.asarray(estimate), kind="stable")[:k]
    return float((truth.max() - truth[chosen].max()) / (truth.max() - truth.min()))


def table(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def scores(truth, estimate):
    regrets = " | ".join(f"{regret(truth, estimate, k):.3f}" for k in (1, 3, 5))
    error = np.mean(np.abs(np.subtract(truth, estimate)))
    return f"{len(truth)} | {spearman(truth, estimate):.3f} | {regrets} | {error:.3f}"


def tables(folder):
    print("| world | estimator | policies | Spearman | regret@1 | regret@3 | regret@5 | mean abs. error | coverage of the 95 % interval |")
    print("|---|---|---|---|---|---|---|---|---|")
    for path in sorted(folder.glob("*.npz")):
        name = path.stem
        found = table(folder / f"{name}.csv")
        found.sort(key=lambda row: int(row["number"]))
        truth = [float(row["truth"]) for row in found]

        def column(key, rows=found):
            return [float(row[key]) for row in rows]

        inside = [float(row["low"]) <= t <= float(row["high"]) for row, t in zip(found, truth)]
        coverage = f"{100 * np.mean(inside):.0f} %"
        print(f"| {name} | album | {scores(truth, column('mean'))} | {coverage} |")
        others = [("dr", "album, doubly robust"), ("pdis", "album, PDIS"), ("agent_value", "the agent's own value")]
        for key, title in others:
            rows = [row for row in found if row[key]]
            if rows:
                print(f"| {name} | {title} | {scores(column('truth', rows), column(key, rows))} | |")
        peer = folder / f"{name}-d3rlpy.csv"
        if peer.exists():
            answers = {int(row["policy"]): float(row["mean"]) for row in table(peer)}
            both = [row for row in found if int(row["number"]) in answers]
            if len(both) < 2:
                continue
            known = column("truth", both)
            print(f"| {name} | d3rlpy | {scores(known, [answers[int(row['number'])] for row in both])} | none given |")
            if len(both) < len(found):
                print(f"| {name} | album on these | {scores(known, column('mean', both))} | |")
    for path in sorted(folder.glob("*.npz")):
        verdicts = {}
        for row in table(folder / f"{path.stem}.csv"):
            really = "better" if float(row["truth"]) > float(row["observed"]) else "worse"
            verdicts[(row["verdict"], really)] = verdicts.get((row["verdict"], really), 0) + 1
        print(path.stem, "(verdict, truth): policies", verdicts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--world", default="*", help="only this one")
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if not options.tables:
        for path in sorted(options.folder.glob(f"{options.world}.npz")):
            world = dict(np.load(path))
            # First two of the six checkpoints of every agent, an early and a late one: what is done at any time is a fair
            # part of all.
            order = sorted(range(int(world["policies"][0])), key=lambda policy: ((policy % 6 + policy // 6) % 3, policy))
            answers = options.folder / f"{path.stem}-d3rlpy.csv"
            done = {int(row["policy"]) for row in table(answers)} if answers.exists() else set()
            with open(answers, "a") as file:
                if not done:
                    print("policy,mean", file=file)
                for policy in (policy for policy in order if policy not in done):
                    print(f"{policy},{evaluate(world, policy)}", file=file, flush=True)
    tables(options.folder)


if __name__ == "__main__":
    main()
