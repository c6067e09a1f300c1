"""CAC: a consistency policy with twin critics."""

import math

import numpy as np
from common import *

LOW, HIGH, DATA, LEVELS, HIDDEN_POLICY = 0.002, 80.0, 0.5, 2, [12, 10]


def features(t):
    w = jnp.exp(-jnp.arange(8) * math.log(10000) / 7)
    return jnp.concatenate([jnp.sin(t * w), jnp.cos(t * w)], -1)


def consistency(net, time, s, x, t, scaled):
    skip = DATA**2 / ((t - LOW) ** 2 + DATA**2)
    out = DATA * (t - LOW) / jnp.sqrt(t**2 + DATA**2)
    seen = x / jnp.sqrt(t**2 + DATA**2) if scaled else x
    return skip * x + out * apply(net, seen, apply(time, features(t), activation=mish), s, activation=mish)


def sample(net, time, s, noise, scaled):
    x = HIGH * noise[0]
    for i, t in enumerate(np.linspace(2.0, HIGH, LEVELS)[::-1]):
        if i > 0:
            x = x + np.sqrt(t**2 - LOW**2) * noise[i]
        x = consistency(net, time, s, x, jnp.full((ROWS, 1), t), scaled)
    return jnp.clip(x, -1, 1)


def edges(step):
    n = math.ceil(math.sqrt(step / STEPS * (151**2 - 2**2) + 2**2) - 1) + 1
    n = min(n, 150)
    return (LOW ** (1 / 7) + np.arange(n) / (n - 1) * (HIGH ** (1 / 7) - LOW ** (1 / 7))) ** 7


def cac(eta, scaled=False):
    def loss(p, f, b, noise, step):
        s, q_of = b["s"], lambda net, s, a: apply(net, s, a, activation=mish)
        a_next = sample(f["ema"], f["ema_time"], b["s_next"], noise[:2], scaled)
        y = b["r"] + GAMMA * b["m"] * low(q_of(f["q_target"], b["s_next"], a_next))
        critic = ((q_of(p["q"], s, b["a"]) - y) ** 2).sum(-1).mean()

        z, t = noise[2], jnp.asarray(edges(step))
        n = jnp.floor(noise[3] * (len(t) - 1)).astype(int)
        t_low, t_high = t[n], t[n + 1]
        online = consistency(p["actor"], p["actor_time"], s, b["a"] + t_high * z, t_high, scaled)
        target = consistency(f["ema"], f["ema_time"], s, b["a"] + t_low * z, t_low, scaled)
        bc = (100 / (t_high - t_low) * ((online - target) ** 2).sum(-1, keepdims=True)).mean()

        q = q_of(f["q"], s, sample(p["actor"], p["actor_time"], s, noise[4:6], scaled))
        held = q_of(f["q"], s, sample(f["actor"], f["actor_time"], s, noise[4:6], scaled))
        losses = [-q[:, i].mean() / jnp.abs(held[:, 1 - i]).mean() for i in [0, 1]]
        q_loss = jnp.where(noise[6][0, 0] >= 0.5, losses[0], losses[1])
        actor = bc + eta * q_loss
        metrics = {"critic/critic_loss": critic, "actor/actor_loss": actor, "actor/consistency_loss": bc,
                   "actor/q_loss": q_loss}
        return critic + actor, metrics
    return loss


def main():
    rng = np.random.default_rng(12)
    make = lambda: {
        "q": network(rng, S + A, 1, members=2),
        "actor_time": network(rng, 16, 16, [32]),
        "actor": network(rng, A + 16 + S, A, HIDDEN_POLICY),
    }
    def draws(rng):
        normal = lambda: rng.normal(size=(ROWS, A))
        return [normal(), normal(), normal(), rng.uniform(size=(ROWS, 1)), normal(), normal(), rng.uniform(size=(ROWS, 1))]
    targets = {"q_target": ("q", 0.005), "ema_time": ("actor_time", 0.02), "ema": ("actor", 0.02)}
    moves = lambda target, step: target == "q_target" or (step >= 4 and step % 5 == 0)
    config = f"policy_hidden = {HIDDEN_POLICY}\nema_rate = 0.02\nema_after = 4\n"
    record("cac", "cac", config + "eta = 2.0", make(), cac(2.0), draws, targets=targets, moves=moves)
    record("cac-clipped", "cac", config + "eta = 0.7\nmax_grad_norm = 0.5\nscale_input = true", make(), cac(0.7, True), draws, targets=targets,
           moves=moves, max_norm=(0.5, ["q"]))


if __name__ == "__main__":
    main()
