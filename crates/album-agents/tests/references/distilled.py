"""The actor of FQL over any number of columns: what the references of windows and chunks share."""

from common import *


def euler(net, s, z, steps):
    """A scan, because copies of a network take long to compile."""
    def step(x, t):
        return x + apply(net, s, x, jnp.full((len(s), 1), t)) / steps, None
    return jnp.clip(jax.lax.scan(step, z, jnp.arange(steps) / steps)[0], -1, 1)


def flow_errors(net, s, a, x_0, t):
    v = apply(net, s, (1 - t) * x_0 + t * a, t)
    return (v - (a - x_0)) ** 2


def fql_actor(p, f, names, s, a, mask, noise, value, alpha, steps, normalize=False):
    """Flow matching under a mask, distillation, ascent of `value(actions)` as (rows, 1)."""
    flow, policy = names
    x_0, t, z = noise
    cloning = (mask * flow_errors(p[flow], s, a, x_0, t)).mean()
    mu = apply(p[policy], s, z)
    distillation = ((mu - euler(f[flow], s, z, steps)) ** 2).mean()
    size = jnp.abs(value(jnp.clip(apply(f[policy], s, z), -1, 1))).mean() if normalize else 1.0
    ascent = -value(jnp.clip(mu, -1, 1)).mean() / size
    return cloning + alpha * distillation + ascent, (cloning, distillation, ascent)


def actor_noise(rng, x):
    """x_0, t and z."""
    return [rng.normal(size=(ROWS, x)), rng.uniform(size=(ROWS, 1)), rng.normal(size=(ROWS, x))]
