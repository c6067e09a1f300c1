"""One update of IQL, ReBRAC or FQL in JAX: the peers that `album bench cost` is measured against.

    python baseline_step_jax.py --agent fql --rounds 40 --json
    python baseline_step_jax.py --agent fql --check crates/album-agents/tests/data/fql.npz

The same networks, losses, targets, noise and Adam as in album, compiled as one function; ensembles are one vectorised
network. `--check` repeats a trace that album's tests repeat as well. Only `jax` and `numpy` are needed.
"""

import argparse
import json
import os
import resource
import statistics
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

from album_step_jax import ACTION, LAYERS, OBSERVATION, apply, init_network

GAMMA, TAU, RATE = 0.99, 0.005, 3e-4
stop = jax.lax.stop_gradient


def cat(*parts):
    return jnp.concatenate(parts, -1)


def ensemble(networks):
    return jax.tree.map(lambda *x: jnp.stack(x), *networks)


def members(network, *parts):
    """The outputs of an ensemble, one row of values for each member."""
    return jax.vmap(apply, (0, None))(network, cat(*parts))[..., 0]


def iql(p, t, b, noise, update_actor, c):
    v = apply(p["v"], b["s"])[:, 0]
    q_bar = members(t["q"], b["s"], b["a"]).min(0)
    u = stop(q_bar) - v
    value = (jnp.where(u >= 0, 0.9, 0.1) * u**2).mean()
    q = members(p["q"], b["s"], b["a"])
    y = b["r"] + c["gamma"] * b["m"] * apply(stop(p["v"]), b["s_next"])[:, 0]
    critic = ((q - y) ** 2).sum(0).mean()
    w = stop(jnp.minimum(jnp.exp(c["alpha"] * (q.min(0) - v)), 100))
    log_density = (-0.5 * (b["a"] - apply(p["actor"], b["s"])) ** 2 - 0.5 * np.log(2 * np.pi)).sum(-1)
    return value + critic - (w * log_density).mean()


def rebrac(p, t, b, noise, update_actor, c):
    eps = jnp.clip(0.2 * noise[0], -0.5, 0.5)
    a_next = jnp.clip(jnp.tanh(apply(t["actor"], b["s_next"])) + eps, -1, 1)
    penalty = ((a_next - b["a_next"]) ** 2).sum(-1)
    y = b["r"] + c["gamma"] * b["m"] * (members(t["q"], b["s_next"], a_next).min(0) - c["alpha_critic"] * penalty)
    loss = ((members(p["q"], b["s"], b["a"]) - y) ** 2).mean()
    if update_actor:
        pi = jnp.tanh(apply(p["actor"], b["s"]))
        q = members(stop(p["q"]), b["s"], pi).min(0)
        loss += -q.mean() / stop(jnp.abs(q).mean()) + c["alpha_actor"] * ((pi - b["a"]) ** 2).sum(-1).mean()
    return loss


def fql(p, t, b, noise, update_actor, c):
    z_next, x_0, time_, z = noise
    a_next = jnp.clip(apply(stop(p["actor"]), cat(b["s_next"], z_next)), -1, 1)
    y = b["r"] + c["gamma"] * b["m"] * members(t["q"], b["s_next"], a_next).mean(0)
    critic = ((members(p["q"], b["s"], b["a"]) - y) ** 2).mean()
    x_t = (1 - time_) * x_0 + time_ * b["a"]
    flow = ((apply(p["flow"], cat(b["s"], x_t, time_)) - (b["a"] - x_0)) ** 2).mean()
    x = z
    for i in range(10):
        x = x + apply(stop(p["flow"]), cat(b["s"], x, jnp.full((len(x), 1), i / 10))) / 10
    mu = apply(p["actor"], cat(b["s"], z))
    distill = ((mu - stop(jnp.clip(x, -1, 1))) ** 2).mean()
    q = members(stop(p["q"]), b["s"], jnp.clip(mu, -1, 1)).mean(0)
    return critic + flow + c["alpha"] * distill - q.mean()


LOSSES = {"iql": iql, "rebrac": rebrac, "fql": fql}
TARGETS = {"iql": ["q"], "rebrac": ["q", "actor"], "fql": ["q"]}
SETTINGS = {
    "iql": {"gamma": GAMMA, "alpha": 10.0},
    "rebrac": {"gamma": GAMMA, "alpha_actor": 0.003, "alpha_critic": 0.01},
    "fql": {"gamma": GAMMA, "alpha": 10.0},
}


def networks(name, rng, width):
    s, a = OBSERVATION, ACTION
    critic = ensemble([init_network(rng, s + a, width, LAYERS, 1, True) for _ in range(2)])
    if name == "fql":
        return {
            "q": critic,
            "flow": init_network(rng, s + a + 1, width, LAYERS, a, False),
            "actor": init_network(rng, s + a, width, LAYERS, a, False),
        }
    out = {"q": critic, "actor": init_network(rng, s, width, LAYERS, a, False, 0.01)}
    if name == "iql":
        out["v"] = init_network(rng, s, width, LAYERS, 1, True)
    return out


def draw(name, key, rows, a):
    keys = jax.random.split(key, 4)
    normal = lambda i: jax.random.normal(keys[i], (rows, a))
    if name == "fql":
        return normal(0), normal(1), jax.random.uniform(keys[2], (rows, 1)), normal(3)
    return (normal(0),) if name == "rebrac" else ()


def updater(name, settings):
    """(state, batch, noise, update_actor) -> the state after one update, and the loss."""

    def update(state, batch, noise, update_actor):
        p, t, first, second, step = state
        loss, g = jax.value_and_grad(LOSSES[name])(p, t, batch, noise, update_actor, settings)
        step = step + 1
        if update_actor:
            t = {key: jax.tree.map(lambda t, p: TAU * p + (1 - TAU) * t, t[key], p[key]) for key in t}
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, g)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, g)
        c1, c2 = 1 - 0.9**step, 1 - 0.999**step
        p = jax.tree.map(lambda p, m, v: p - RATE * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), p, first, second)
        return (p, t, first, second, step), loss

    return update


def initial(name, p):
    p = jax.tree.map(jnp.asarray, p)
    zeros = lambda: jax.tree.map(jnp.zeros_like, p)
    targets = {key: jax.tree.map(jnp.copy, p[key]) for key in TARGETS[name]}
    return p, targets, zeros(), zeros(), jnp.zeros((), jnp.float32)


def check(name, path):
    """Repeats a recorded trace; the losses must agree."""
    trace = np.load(path)
    text = bytes(trace["config"]).decode()
    settings = {**SETTINGS[name]}
    for line in text.splitlines():
        key, _, value = line.partition(" = ")
        if key in settings:
            settings[key] = float(value)

    def network(when, net):
        prefix = f"{when}.{net}."
        keys = [k[len(prefix):] for k in trace.files if k.startswith(prefix)]
        def one(part):
            layers = sorted({k.split(".")[0] for k in part})
            return [{k.split(".")[1]: part[k] for k in part if k.startswith(layer + ".")} for layer in layers]
        if keys[0].startswith("member"):
            groups = sorted({k.split(".")[0] for k in keys})
            return ensemble([one({k[len(g) + 1:]: trace[prefix + k] for k in keys if k.startswith(g)}) for g in groups])
        return one({k: trace[prefix + k] for k in keys})

    names = [n for n in ["q", "v", "actor", "flow"] if f"initial.{n}.layer0.kernel" in trace.files or f"initial.{n}.member0.layer0.kernel" in trace.files]
    p, _, first, second, step = initial(name, {n: network("initial", n) for n in names})
    state = (p, {n: jax.tree.map(jnp.asarray, network("initial", n + "_target")) for n in TARGETS[name]}, first, second, step)
    rows = np.flatnonzero(trace["terminals"] == 0)
    ends = np.flatnonzero(trace["terminals"] == 1)
    update = jax.jit(updater(name, settings), static_argnums=3)
    for i, expected in enumerate(trace["losses"]):
        at = rows[trace[f"indices.{i}"]]
        last = np.array([ends[ends > row][0] - 1 for row in at])
        batch = {
            "s": trace["observations"][at],
            "a": trace["actions"][at],
            "r": trace["rewards"][at],
            "m": trace["masks"][at],
            "s_next": trace["observations"][at + 1],
            "a_next": trace["actions"][np.minimum(at + 1, last)],
        }
        noise = []
        while f"noise.{i}.{len(noise)}" in trace.files:
            noise.append(trace[f"noise.{i}.{len(noise)}"])
        state, loss = update(state, batch, tuple(noise), name != "rebrac" or i % 2 == 0)
        assert abs(float(loss) - expected) <= 1e-3 * max(abs(expected), 1e-2), (i, float(loss), expected)
    print(f"{name}: {len(trace['losses'])} updates agree with {os.path.basename(path)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--agent", choices=LOSSES, required=True)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", metavar="TRACE")
    arguments = parser.parse_args()
    name = arguments.agent
    if arguments.check:
        return check(name, arguments.check)

    rng = np.random.default_rng(0)
    rows, s, a = arguments.batch, OBSERVATION, ACTION
    normal = lambda *shape: jnp.asarray(rng.standard_normal(shape), jnp.float32)
    action = lambda: jnp.tanh(normal(rows, a))
    batches = [
        {"s": normal(rows, s), "a": action(), "r": -jnp.ones(rows), "m": jnp.ones(rows), "s_next": normal(rows, s), "a_next": action()}
        for _ in range(4)
    ]
    update = updater(name, SETTINGS[name])

    def step(state, key, batch, update_actor):
        key, drawn = jax.random.split(key)
        state, loss = update(state, batch, draw(name, drawn, rows, a), update_actor)
        return state, key, loss

    step = jax.jit(step, static_argnums=3, donate_argnums=0)
    state, key, times = initial(name, networks(name, rng, arguments.width)), jax.random.PRNGKey(0), []
    for i in range(arguments.rounds + 6):
        started = time.perf_counter()
        state, key, loss = step(state, key, batches[i % 4], name != "rebrac" or i % 2 == 0)
        jax.block_until_ready((state, loss))
        times.append(1e3 * (time.perf_counter() - started))
    pairs = [0.5 * (x + y) for x, y in zip(times[6::2], times[7::2])]
    result = {
        "engine": "jax",
        "version": jax.__version__,
        "agent": name,
        "ms_per_step": statistics.median(pairs),
        "ms_best": min(pairs),
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "loss": float(loss),
    }
    print(json.dumps(result) if arguments.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
