"""hinge-IQL: IQL's losses with the K-step hinges."""

import numpy as np
from common import *
from iql import awr


def loss(p, f, b, noise, step):
    total, metrics = awr(p, f, b, noise, step)
    y_k = b["r_k"] + b["g_k"] * apply(f["v"], b["s_last"])
    hinge_q = relu(y_k - apply(p["q"], b["s"], b["a"])).sum(-1).mean()
    hinge_v = relu(y_k - apply(p["v"], b["s"])).mean()
    metrics = {"critic/hinge_kq": hinge_q, "critic/hinge_kv": hinge_v, "actor/actor_loss": metrics["actor/actor_loss"]}
    return total + 0.7 * (hinge_q + hinge_v), metrics


def main():
    rng = np.random.default_rng(3)
    nets = {
        "v": network(rng, S, 1, layer_norm=True),
        "q": network(rng, S + A, 1, layer_norm=True, members=2),
        "actor": network(rng, S, A),
    }
    config = "alpha = 2.0\nk = 4\nlambda_k = 0.7"
    record("hinge-iql", "hinge-iql", config, nets, loss, lambda rng: [], targets={"q_target": ("q", 0.005)}, k=4)


if __name__ == "__main__":
    main()
