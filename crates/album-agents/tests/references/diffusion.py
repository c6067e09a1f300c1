"""IDQL and SRPO: implicit Q-learning beside a network that predicts noise."""

import numpy as np
from common import *
from iql import values

W, BLOCKS, FEATURES, CONDITION, DROPOUT, T = 6, 2, 8, 5, 0.1, 5
SIZES = f"noise_width = {W}\nnoise_blocks = {BLOCKS}\ntime_features = {FEATURES}\ntime_width = {CONDITION}\n"


def noise_net(rng, frequencies=True):
    nets = {"noise_time": network(rng, 1, FEATURES // 2, [], bias=False)} if frequencies else {}
    nets["noise_condition"] = network(rng, FEATURES, CONDITION, [CONDITION])
    nets["noise_input"] = network(rng, A + S + CONDITION, W, [])
    for i in range(BLOCKS):
        nets[f"noise_norm{i}"] = network(rng, 1, 2 * W, [], bias=False)
        nets[f"noise_block{i}"] = network(rng, W, W, [4 * W])
    nets["noise_output"] = network(rng, W, A, [])
    return nets


def predict(p, s, x, features, masks):
    h = apply(p["noise_input"], x, s, apply(p["noise_condition"], features, activation=mish))
    for i in range(BLOCKS):
        y = h * masks[i] if masks else h
        y = (y - y.mean(-1, keepdims=True)) / jnp.sqrt(y.var(-1, keepdims=True) + 1e-6)
        vector = p[f"noise_norm{i}"][0][0]["kernel"][0]
        y = y * (1 + vector[:W]) + vector[W:]
        h = h + apply(p[f"noise_block{i}"], y, activation=mish)
    return apply(p["noise_output"], mish(h))


def dropout(uniform):
    return [(u >= DROPOUT) / (1 - DROPOUT) for u in uniform]


def critic(rng):
    return {"v": network(rng, S, 1), "q": network(rng, S + A, 1, members=2)}


def idql(p, f, b, noise, step):
    value, q = values(p, f, b, activation=relu)
    t = jnp.floor(noise[0] * T)
    steps = np.arange(1, T + 1)
    alphas = np.exp(-0.1 / T - 0.5 * (10 - 0.1) * (2 * steps - 1) / T**2)
    left = jnp.asarray(np.cumprod(alphas))[t.astype(int)]
    z = noise[1]
    phase = 2 * np.pi * t * p["noise_time"][0][0]["kernel"]
    features = jnp.concatenate([jnp.cos(phase), jnp.sin(phase)], -1)
    noisy = jnp.sqrt(left) * b["a"] + jnp.sqrt(1 - left) * z
    error = predict(p, b["s"], noisy, features, dropout(noise[2:])) - z
    actor = (error**2).sum(-1).mean()
    return value + q + actor, {"value/value_loss": value, "critic/critic_loss": q, "actor/actor_loss": actor}


def marginal(t):
    alpha = jnp.exp(-0.25 * t**2 * (20 - 0.1) - 0.5 * t * 0.1)
    return alpha, jnp.sqrt(1 - alpha**2)


def fixed_features(f, t):
    phase = t * f["noise_time"][0][0]["kernel"] * 2 * np.pi
    return jnp.concatenate([jnp.sin(phase), jnp.cos(phase)], -1)


def srpo(normalise, beta, masked=True, start=0):
    def loss(p, f, b, noise, step):
        value, q = values(p, f, b, activation=relu)
        t, z = noise[0] * (1 - 1e-3) + 1e-3, noise[1]
        alpha, sigma = marginal(t)
        masks = dropout(noise[2:2 + BLOCKS]) if masked else None
        error = predict(p, b["s"], alpha * b["a"] + sigma * z, fixed_features(f, t), masks) - z
        behaviour = (error**2).sum(-1).mean()

        u, z = noise[-2:]
        t = u * 0.96 + 0.02
        alpha, sigma = marginal(t)
        policy = lambda nets: jnp.tanh(apply(nets["actor"], b["s"], activation=relu))
        a, at = policy(p), policy(f)
        score = predict(f, b["s"], alpha * at + sigma * z, fixed_features(f, t), None)
        of_action = lambda a: apply(f["q_target"], b["s"], a, activation=relu).mean(-1).sum()
        g = jax.grad(of_action)(at)
        if normalise:
            g = g / jnp.sqrt((g**2).mean(-1, keepdims=True))
        actor = (sigma[:, 0] ** 2 * (score * a).sum(-1) - beta * (g * a).sum(-1)).mean()
        metrics = {"actor/actor_loss": actor, "actor/behavior_loss": behaviour, "critic/critic_loss": q,
                   "actor/q": of_action(at) / ROWS}
        return value + q + behaviour + (actor if step >= start else 0.0), metrics
    return loss


def main():
    rng = np.random.default_rng(11)
    uniform = lambda rng, cols: rng.uniform(size=(ROWS, cols))
    masks = lambda rng: [uniform(rng, W) for _ in range(BLOCKS)]
    values_target = {"q_target": ("q", 0.005)}
    nets = {**critic(rng), **noise_net(rng)}
    averages = {n.replace("noise_", "ema_"): (n, 0.01) for n in nets if n.startswith("noise_")}
    # A decay of the size that is usual would not show in 20 updates.
    decay = {n: 10.0 for n in nets if n.startswith("noise_")}
    record("idql", "idql", SIZES + 'ema_rate = 0.01\nweight_decay = 10.0\nlr_decay = "none"', nets, idql,
           lambda rng: [uniform(rng, 1), rng.normal(size=(ROWS, A)), *masks(rng)], targets={**values_target, **averages},
           decay=decay, cycle=1)

    make = lambda: {**critic(rng), **noise_net(rng, False), "actor": network(rng, S, A, [10])}
    constants = lambda: {"noise_time": [[{"kernel": single(30 * rng.normal(size=(1, FEATURES // 2)))}]]}
    draws = lambda masks: lambda rng: [uniform(rng, 1), rng.normal(size=(ROWS, A)), *masks(rng), uniform(rng, 1),
                                       rng.normal(size=(ROWS, A))]
    common = SIZES + 'policy_hidden = [10]\nlr_decay = "none"\n'
    record("srpo", "srpo", common + "beta = 0.3\nnormalize_guidance = false\npolicy_from = 4", make(),
           srpo(False, 0.3, start=4), draws(masks), targets=values_target, constants=constants())
    record("srpo-normalized", "srpo", common + "beta = 0.5\nnormalize_guidance = true\ndropout = 0.0", make(),
           srpo(True, 0.5, masked=False), draws(lambda rng: []), targets=values_target, constants=constants())


if __name__ == "__main__":
    main()
