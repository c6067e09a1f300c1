"""ReBRAC with the delayed actor, ReBRAC*, and without target networks and ensemble."""

import numpy as np
from common import *

A1, A2 = 0.3, 0.2


def loss(p, f, b, noise, step, every=2, target="q_target", actor_target="actor_target"):
    eps = jnp.clip(0.2 * noise[0], -0.5, 0.5)
    a_next = jnp.clip(jnp.tanh(apply(f[actor_target], b["s_next"])) + eps, -1, 1)
    penalty = ((a_next - b["a_next"]) ** 2).sum(-1, keepdims=True)
    y = b["r"] + GAMMA * b["m"] * (low(apply(f[target], b["s_next"], a_next)) - A2 * penalty)
    critic = ((apply(p["q"], b["s"], b["a"]) - y) ** 2).mean()
    pi, fixed = jnp.tanh(apply(p["actor"], b["s"])), jnp.tanh(apply(f["actor"], b["s"]))
    q = low(apply(f["q"], b["s"], pi))
    size = jnp.abs(low(apply(f["q"], b["s"], fixed))).mean()
    actor = -q.mean() / size + A1 * ((pi - b["a"]) ** 2).sum(-1).mean()
    total = critic + (actor if step % every == 0 else 0.0)
    return total, {"critic/critic_loss": critic, "actor/actor_loss": actor}


def main():
    rng = np.random.default_rng(2)
    nets = lambda members: {
        "q": network(rng, S + A, 1, layer_norm=True, members=members),
        "actor": network(rng, S, A),
    }
    config = f"alpha_actor = {A1}\nalpha_critic = {A2}\n"
    targets = {"q_target": ("q", 0.005), "actor_target": ("actor", 0.005)}
    draws = lambda rng: [rng.normal(size=(ROWS, A)) * 2]  # large, so that clipping matters
    delayed = lambda target, step: step % 2 == 0
    record("rebrac", "rebrac", config, nets(2), loss, draws, targets=targets, moves=delayed)
    every = lambda *args: loss(*args, every=1)
    record("rebrac-every-step", "rebrac", config + "actor_every = 1", nets(2), every, draws, targets=targets)
    alone = lambda *args: loss(*args, target="q", actor_target="actor")
    config += "ensemble = 1\ntarget_network = false"
    record("rebrac-alone", "rebrac", config, nets(1), alone, draws)


if __name__ == "__main__":
    main()
