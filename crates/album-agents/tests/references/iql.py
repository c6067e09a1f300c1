"""IQL with both extractions, and behaviour cloning."""

import numpy as np
from common import *


def values(p, f, b, gamma=GAMMA, activation=gelu):
    v, q = apply(p["v"], b["s"], activation=activation), apply(p["q"], b["s"], b["a"], activation=activation)
    target = low(apply(f["q_target"], b["s"], b["a"], activation=activation))
    value = expectile(target - v, 0.9).mean()
    y = b["r"] + gamma * b["m"] * apply(f["v"], b["s_next"], activation=activation)
    critic = ((q - y) ** 2).sum(-1).mean()
    return value, critic


def awr(p, f, b, noise, step, alpha=2.0):
    value, critic = values(p, f, b)
    advantage = low(apply(f["q"], b["s"], b["a"])) - apply(f["v"], b["s"])
    w = jnp.minimum(jnp.exp(alpha * advantage), 100)
    actor = -(w * log_normal(b["a"], apply(p["actor"], b["s"]))).mean()
    total = value + critic + actor
    return total, {"value/value_loss": value, "critic/critic_loss": critic, "actor/actor_loss": actor}


def ddpgbc(p, f, b, noise, step, alpha=0.3):
    value, critic = values(p, f, b)
    mean, fixed = apply(p["actor"], b["s"]), apply(f["actor"], b["s"])
    q = low(apply(f["q"], b["s"], jnp.clip(mean, -1, 1)))
    size = jnp.abs(low(apply(f["q"], b["s"], jnp.clip(fixed, -1, 1)))).mean()
    actor = -q.mean() / size - alpha * log_normal(b["a"], mean).mean()
    return value + critic + actor, {"actor/actor_loss": actor}


def bc(p, f, b, noise, step):
    mean = apply(p["actor"], b["s"])
    loss = (0.5 * ((b["a"] - mean) ** 2).sum(-1)).mean() + 0.5 * A * np.log(2 * np.pi)
    return loss, {"actor/actor_loss": loss}


def main():
    rng = np.random.default_rng(1)
    nets = lambda: {
        "v": network(rng, S, 1, layer_norm=True),
        "q": network(rng, S + A, 1, layer_norm=True, members=2),
        "actor": network(rng, S, A),
    }
    targets = {"q_target": ("q", 0.005)}
    record("iql-awr", "iql", "alpha = 2.0", nets(), awr, lambda rng: [], targets=targets)
    record("iql-ddpgbc", "iql", 'alpha = 0.3\nextraction = "ddpgbc"', nets(), ddpgbc, lambda rng: [], targets=targets)
    record("bc", "bc", "", {"actor": network(rng, S, A)}, bc, lambda rng: [])


if __name__ == "__main__":
    main()
