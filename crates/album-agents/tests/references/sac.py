"""SAC with an entropy target, and with one critic without a target network."""

import numpy as np
from common import *

H = 0.5


def sample(output, eps):
    """Actions and their log-density, by the definition: the density of the Gaussian over |d tanh(u) / du|."""
    mean, log_std = output[:, :A], jnp.clip(output[:, A:], -5, 2)
    std = jnp.exp(log_std)
    u = mean + std * eps
    a = jnp.tanh(u)
    density = jnp.exp(-0.5 * ((u - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi))
    return a, jnp.log(density / (1 - a**2)).sum(-1, keepdims=True)


def loss(p, f, b, noise, step, target="q_target"):
    alpha = lambda nets: jnp.exp(nets["alpha"][0][0]["kernel"])
    a_next, log_next = sample(apply(f["actor"], b["s_next"]), noise[0])
    y = b["r"] + GAMMA * b["m"] * (low(apply(f[target], b["s_next"], a_next)) - alpha(f) * log_next)
    critic = ((apply(p["q"], b["s"], b["a"]) - y) ** 2).mean()

    a, log_pi = sample(apply(p["actor"], b["s"]), noise[1])
    actor = (alpha(f) * log_pi - low(apply(f["q"], b["s"], a))).mean()
    _, log_fixed = sample(apply(f["actor"], b["s"]), noise[1])
    entropy = -log_fixed.mean()
    temperature = (alpha(p) * (entropy + H * A)).sum()
    metrics = {
        "critic/critic_loss": critic,
        "actor/actor_loss": actor,
        "actor/entropy": entropy,
        "actor/alpha": alpha(p).sum(),
        "actor/alpha_loss": temperature,
    }
    return critic + actor + temperature, metrics


def main():
    rng = np.random.default_rng(18)
    nets = lambda members: {
        "q": network(rng, S + A, 1, members=members),
        "actor": network(rng, S, 2 * A),
        # A single number, of which alpha is the exponential.
        "alpha": [[{"kernel": single([[-0.7]])}]],
    }
    draws = lambda rng: [rng.normal(size=(ROWS, A)), rng.normal(size=(ROWS, A))]
    targets = {"q_target": ("q", 0.005)}
    record("sac", "sac", "lr = 3e-4\n", nets(2), loss, draws, targets=targets)
    alone = lambda *args: loss(*args, target="q")
    record("sac-alone", "sac", "lr = 3e-4\nensemble = 1\ntarget_network = false", nets(1), alone, draws)


if __name__ == "__main__":
    main()
