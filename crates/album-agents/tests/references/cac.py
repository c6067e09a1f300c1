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
        x = consistency(net, time, s, x, jnp.full((len(s), 1), t), scaled)
    return jnp.clip(x, -1, 1)


def edges(step, period):
    n = math.ceil(math.sqrt(step % period * (150**2 - 2**2) / period + 2**2) - 1) + 1
    return (LOW ** (1 / 7) + np.arange(n) / (n - 1) * (HIGH ** (1 / 7) - LOW ** (1 / 7))) ** 7


def cac(eta, scaled=False, q_norm=False, actions=1, period=50_000):
    q_of = lambda net, s, a: apply(net, s, a, activation=mish)

    def critic(p, f, b, noise, step):
        s_next = jnp.repeat(b["s_next"], actions, 0)
        a_next = sample(f["ema"], f["ema_time"], s_next, noise[:2], scaled)
        q_next = q_of(f["q_target"], s_next, a_next).reshape(ROWS, actions, -1).max(1)
        y = b["r"] + GAMMA * b["m"] * low(q_next)
        if q_norm:
            y = y / (y.std(ddof=1) + 1e-6)
        loss = ((q_of(p["q"], b["s"], b["a"]) - y) ** 2).sum(-1).mean()
        return loss, {"critic/critic_loss": loss}

    def actor(p, f, b, noise, step):
        s, z, t = b["s"], noise[2], jnp.asarray(edges(step, period))
        n = jnp.floor(noise[3] * (len(t) - 1)).astype(int)
        t_low, t_high = t[n], t[n + 1]
        online = consistency(p["actor"], p["actor_time"], s, b["a"] + t_high * z, t_high, scaled)
        target = consistency(f["ema"], f["ema_time"], s, b["a"] + t_low * z, t_low, scaled)
        bc = (100 / (t_high - t_low) * (online - target) ** 2).mean()

        q = q_of(f["q"], s, sample(p["actor"], p["actor_time"], s, noise[4:6], scaled))
        held = q_of(f["q"], s, sample(f["actor"], f["actor_time"], s, noise[4:6], scaled))
        losses = [-q[:, i].mean() / jnp.abs(held[:, 1 - i]).mean() for i in [0, 1]]
        q_loss = jnp.where(noise[6][0, 0] >= 0.5, losses[0], losses[1])
        loss = bc + eta * q_loss
        return loss, {"actor/actor_loss": loss, "actor/consistency_loss": bc, "actor/q_loss": q_loss}

    return [(["q"], critic), (["actor_time", "actor"], actor)]


def main():
    rng = np.random.default_rng(12)
    make = lambda: {
        "q": network(rng, S + A, 1, members=2),
        "actor_time": network(rng, 16, 16, [32]),
        "actor": network(rng, A + 16 + S, A, HIDDEN_POLICY),
    }
    def draws(actions):
        def draw(rng):
            normal = lambda rows=ROWS: rng.normal(size=(rows, A))
            backup = [normal(actions * ROWS), normal(actions * ROWS)]
            return [*backup, normal(), rng.uniform(size=(ROWS, 1)), normal(), normal(), rng.uniform(size=(ROWS, 1))]
        return draw
    targets = {"q_target": ("q", 0.005), "ema_time": ("actor_time", 0.02), "ema": ("actor", 0.02)}
    moves = lambda target, step: target == "q_target" or (step >= 4 and step % 5 == 0)
    config = f"policy_hidden = {HIDDEN_POLICY}\nema_rate = 0.02\nema_after = 4\n"
    record("cac", "cac", config + "eta = 2.0\nschedule_steps = 7", make(), cac(2.0, period=7), draws(1), targets=targets,
           moves=moves, max_norm=(1.0, ["q"]))
    options = "eta = 0.7\nmax_grad_norm = 0.5\nscale_input = true\nq_norm = true\nmax_q_backup = true\nschedule_steps = 0"
    record("cac-options", "cac", config + options, make(), cac(0.7, True, True, 10, STEPS), draws(10), targets=targets,
           moves=moves, max_norm=(0.5, ["q"]))


if __name__ == "__main__":
    main()
