"""What the reference implementations share: networks, Adam, batches, and the recording of a trace.

The references are written in JAX in double precision, from the papers' equations, independently of the Rust code. A trace
holds a small dataset, the rows of every batch, all random numbers, the initial weights, and what 20 updates make of them.

A loss takes the parameters twice: `p`, by which it is differentiated, and `f`, the same numbers held fixed, for everything
that an algorithm treats as a constant. No stop_gradient is needed then, and finite differences by `p` are the gradient.
"""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

S, A, ROWS, STEPS = 5, 2, 16, 20
HIDDEN = [16, 12]
GAMMA = 0.9


# Networks: a network is a list of members, a member a list of layers, a layer a dict of tensors.

def network(rng, inputs, outputs, hidden=HIDDEN, layer_norm=False, members=1, bias=True):
    """Random weights, all of them away from special values, and numbers that single precision can hold."""
    widths = [inputs, *hidden, outputs]
    def layer(i):
        n, m = widths[i], widths[i + 1]
        tensors = {"kernel": rng.uniform(-1, 1, (n, m)) * np.sqrt(6 / (n + m))}
        if bias:
            tensors["bias"] = 0.1 * rng.normal(size=m)
        if layer_norm and i + 1 < len(widths) - 1:
            tensors["norm_scale"] = 1 + 0.1 * rng.normal(size=m)
            tensors["norm_bias"] = 0.1 * rng.normal(size=m)
        return {k: single(v) for k, v in tensors.items()}
    return [[layer(i) for i in range(len(widths) - 1)] for _ in range(members)]


def single(x):
    return jnp.asarray(np.asarray(x, np.float32), jnp.float64)


def gelu(x):
    return 0.5 * x * (1 + jnp.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def relu(x):
    return jnp.maximum(x, 0)


def mish(x):
    return x * jnp.tanh(jnp.logaddexp(x, 0.0))


def apply_member(layers, x, activation=gelu):
    for i, layer in enumerate(layers):
        x = x @ layer["kernel"] + layer.get("bias", 0.0)
        if i + 1 < len(layers):
            x = activation(x)
            if "norm_scale" in layer:
                mean = x.mean(-1, keepdims=True)
                var = ((x - mean) ** 2).mean(-1, keepdims=True)
                x = (x - mean) / jnp.sqrt(var + 1e-6) * layer["norm_scale"] + layer["norm_bias"]
    return x


def apply(net, *inputs, activation=gelu):
    """The outputs of all members side by side."""
    x = jnp.concatenate(inputs, -1)
    return jnp.concatenate([apply_member(layers, x, activation) for layers in net], -1)


def tensors(net):
    """Tensors by name, in the order of album's files."""
    out = {}
    for m, layers in enumerate(net):
        for i, layer in enumerate(layers):
            for name in ["kernel", "bias", "norm_scale", "norm_bias"]:
                if name in layer:
                    prefix = f"member{m}/" if len(net) > 1 else ""
                    out[f"{prefix}layer{i}/{name}"] = layer[name]
    return out


# Data: three episodes of 12 to 20 steps; the task is solved on the way in one of them.

def dataset(rng):
    lengths = [20, 12, 16]
    rows = sum(n + 1 for n in lengths)
    terminals = np.zeros(rows, np.float32)
    terminals[np.cumsum([n + 1 for n in lengths]) - 1] = 1
    solved = np.zeros(rows, bool)
    solved[[14, 15, 27]] = True
    return {
        "observations": rng.normal(size=(rows, S)).astype(np.float32),
        "actions": np.clip(rng.normal(size=(rows, A)) * 0.6, -0.99, 0.99).astype(np.float32),
        "rewards": np.where(solved, 0, -rng.uniform(0.5, 1.5, rows)).astype(np.float32),
        "masks": np.where(solved, 0, 1).astype(np.float32),
        "terminals": terminals,
    }


def starts(data):
    """Rows of transitions: all but the last row of each episode."""
    return np.flatnonzero(data["terminals"] == 0)


def gather(data, indices, k=1, chunk=1, gamma=GAMMA, tail="truncate", after_goal="stop"):
    """The batch of some transitions: one step, windows of k steps and chunks of actions."""
    rows = starts(data)
    ends = np.flatnonzero(data["terminals"] == 1)
    out = {name: [] for name in ["s", "a", "r", "m", "s_next", "a_next", "s_last", "r_k", "g_k", "w_k", "chunk", "valids"]}
    for i in indices:
        row = rows[i]
        end = ends[ends > row][0]          # the last state of the episode
        left = end - row                   # transitions from here on
        h = min(k, left)
        goals = [j for j in range(h) if data["masks"][row + j] == 0]
        if goals and after_goal == "stop":
            h = goals[0] + 1
        whole = left >= k
        counts = {"truncate": True, "drop": whole or (bool(goals) and after_goal == "stop"), "qc_valid": whole}[tail]
        out["s"].append(data["observations"][row])
        out["a"].append(data["actions"][row])
        out["r"].append([data["rewards"][row]])
        out["m"].append([data["masks"][row]])
        out["s_next"].append(data["observations"][row + 1])
        out["a_next"].append(data["actions"][min(row + 1, end - 1)])
        out["s_last"].append(data["observations"][row + h])
        out["r_k"].append([sum(gamma**j * data["rewards"][row + j] for j in range(h))])
        out["g_k"].append([0.0 if goals else gamma**h])
        out["w_k"].append([float(counts)])
        out["chunk"].append(np.concatenate([data["actions"][min(row + j, end - 1)] for j in range(chunk)]))
        out["valids"].append([float(row + j < end) for j in range(chunk)])
    return {name: jnp.asarray(np.array(x), jnp.float64) for name, x in out.items()}


# Adam, and the recording.

def adam(p, m, v, g, t, lr, decay=0.0):
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    def move(p, m, v):
        return p - lr * ((m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8) + decay * p)
    return jax.tree.map(move, p, m, v), m, v


def clipped(g, most, first):
    """Gradients with the norm of those in `first`, and that of the others, at most `most`."""
    out = {}
    for group in [[n for n in g if n in first], [n for n in g if n not in first]]:
        if group:
            norm = jnp.sqrt(sum((x**2).sum() for n in group for x in jax.tree.leaves(g[n])))
            out.update({n: jax.tree.map(lambda x: x * jnp.minimum(1.0, most / (norm + 1e-6)), g[n]) for n in group})
    return {n: out[n] for n in g}


def zeros(tree):
    return jax.tree.map(jnp.zeros_like, tree)


def direction(net):
    """A fixed direction in the space of a network's weights, to differentiate along."""
    values = tensors(net)
    out, at = {}, 0
    for name, x in values.items():
        out[name] = jnp.sin(1.0 + at + jnp.arange(x.size)).reshape(x.shape)
        at += x.size
    return out


def shifted(net, along, eps):
    flat = iter(along.values())
    order = ["kernel", "bias", "norm_scale", "norm_bias"]
    return [[{n: layer[n] + eps * next(flat) for n in order if n in layer} for layer in layers] for layers in net]


def record(
    file, agent, config, nets, loss, draws, lr=3e-4, targets=None, moves=lambda target, step: True, seed=0, cycle=STEPS,
    hidden=HIDDEN, constants=None, max_norm=None, decay=None, **windows,
):
    """Writes data/FILE.npz.

    agent, config: what album is told; `config` is TOML without the common part.
    nets: trained networks by name, in album's order.
    loss(p, f, batch, noise, step) -> (total, {metric: value}); f holds the targets too. Or a list of stages (names, loss):
    each updates the networks of these names before the next, and targets follow the new weights.
    draws(rng) -> the arrays of one update's noise, in the order in which album draws them.
    cycle: the loss is told the step modulo this number, and compiled for each of them.
    constants: networks that never change. max_norm: what the gradient of the networks in `max_norm[1]`, and that of all
    others, is scaled down to (`max_norm[0]`).
    decay: weight decay by network (AdamW).
    lr: a number, or one by network. targets: {name: (online, tau)}. hidden: of all networks. windows: what `gather` is told.
    """
    rng = np.random.default_rng(seed)
    data = dataset(rng)
    n = len(starts(data))
    targets = targets or {}
    out = {"agent": text(agent), "config": text(common(hidden) + config), **data}
    p = nets
    fixed = {name: jax.tree.map(lambda x: x, nets[online]) for name, (online, _) in targets.items()}
    # A target that differs from its network from the start shows where the two are mixed up.
    fixed = {name: jax.tree.map(lambda x: single(x * 0.9 + 0.02), net) for name, net in fixed.items()}
    fixed.update(constants or {})
    def keep(when, trees):
        for name, net in trees.items():
            for tensor, x in tensors(net).items():
                out[f"{when}/{name}/{tensor}"] = np.asarray(x, np.float32)
    keep("initial", {**p, **fixed})
    m, v = zeros(p), zeros(p)
    rates = lr if isinstance(lr, dict) else {name: lr for name in p}
    at_once = not isinstance(loss, list)
    stages = [(list(p), loss)] if at_once else loss
    values = [jax.jit(loss, static_argnums=4) for _, loss in stages]
    differentiates = [jax.jit(jax.value_and_grad(loss, has_aux=True), static_argnums=4) for _, loss in stages]
    decay = decay or {}
    losses = []

    def track(step):
        for name, (online, tau) in targets.items():
            if moves(name, step):
                fixed[name] = jax.tree.map(lambda t, x, tau=tau: tau * x + (1 - tau) * t, fixed[name], p[online])

    for step in range(STEPS):
        indices = rng.integers(0, n, ROWS)
        batch = gather(data, indices, **windows)
        noise = [np.asarray(x, np.float32) for x in draws(rng)]
        out[f"indices/{step}"] = indices.astype(np.int64)
        for i, x in enumerate(noise):
            out[f"noise/{step}/{i}"] = x
        noise = [jnp.asarray(x, jnp.float64) for x in noise]
        if step == 0:
            # Of all stages at the initial weights.
            f = {**p, **fixed}
            for (names, _), value, differentiate in zip(stages, values, differentiates):
                _, g = differentiate(p, f, batch, noise, 0)
                keep("gradient", {name: g[name] for name in names})
                for name in names:
                    net = p[name]
                    along, eps = direction(net), 1e-6
                    up = value({**p, name: shifted(net, along, eps)}, f, batch, noise, step)[0]
                    down = value({**p, name: shifted(net, along, -eps)}, f, batch, noise, step)[0]
                    slope = float((up - down) / (2 * eps))
                    exact = float(sum(jnp.vdot(tensors(g[name])[k], along[k]) for k in along))
                    assert abs(slope - exact) < 1e-5 * (1 + abs(exact)), (file, name, slope, exact)
                    out[f"slope/{name}"] = np.float64(slope)
        losses.append(0.0)
        measured = {}
        for (names, _), differentiate in zip(stages, differentiates):
            (total, metrics), g = differentiate(p, {**p, **fixed}, batch, noise, step % cycle)
            losses[-1] += float(total)
            measured.update({k: float(x) for k, x in metrics.items()})
            if at_once:
                # Targets mix in the weights that the losses were computed with.
                track(step)
            g = {name: g[name] for name in names}
            if max_norm:
                g = clipped(g, *max_norm)
            for name in names:
                p = dict(p)
                rate, wd = rates[name], decay.get(name, 0.0)
                p[name], m[name], v[name] = adam(p[name], m[name], v[name], g[name], step + 1, rate, wd)
        if not at_once:
            track(step)
        if step == 0:
            out["metrics"] = text(json.dumps(measured))
        if step == 0:
            keep("first", {**p, **fixed})
    keep("last", {**p, **fixed})
    out["losses"] = np.array(losses)
    path = pathlib.Path(__file__).parent.parent / "data" / f"{file}.npz"
    np.savez_compressed(path, **{name.replace('/', '.'): x for name, x in out.items()})
    print(f"{path.name}: {path.stat().st_size // 1024} KiB, loss {losses[0]:.5f} to {losses[-1]:.5f}")


def common(hidden):
    return f"hidden = {hidden}\nbatch_size = {ROWS}\ngamma = {GAMMA}\n"


def text(x):
    return np.frombuffer(x.encode(), np.uint8)


# Pieces that several algorithms share.

def expectile(u, tau):
    return jnp.where(u >= 0, tau, 1 - tau) * u**2


def log_normal(a, mean):
    return (-0.5 * (a - mean) ** 2 - 0.5 * np.log(2 * np.pi)).sum(-1, keepdims=True)


def low(q):
    return q.min(-1, keepdims=True)


def avg(q):
    return q.mean(-1, keepdims=True)
