"""One ALBUM update in JAX: the peer that `album-nn`'s example `album_step` is measured against.

    python album_step_jax.py --rounds 60 --json

The same networks, losses, batch and Adam; only `jax` and `numpy` are needed. `record_trace.py` uses
`update` to write the trace that `album-nn`'s tests compare with.
"""

import argparse
import json
import os
import resource
import statistics
import time

OBSERVATION, ACTION, LAYERS = 29, 8, 4
GAMMA, K = 0.995, 25
OMEGA_Q, OMEGA_V = 0.05, 0.1
LAMBDA_B, LAMBDA_E, LAMBDA_K = 2.5, 2.5, 1.0
ALPHA_BC = 0.01
RATES = {"q": 1e-4, "v": 1e-4, "actor": 3e-4}


def init_network(rng, inputs, width, layers, outputs, norm, scale=1.0):
    """Glorot uniform kernels, zero biases; a list of dictionaries, one per layer."""
    import numpy as np

    network = []
    widths = [inputs] + [width] * layers + [outputs]
    for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:])):
        hidden = i < layers
        limit = np.sqrt(3.0 * (1.0 if hidden else scale) / ((fan_in + fan_out) / 2))
        layer = {
            "kernel": rng.uniform(-limit, limit, (fan_in, fan_out)).astype(np.float32),
            "bias": np.zeros(fan_out, np.float32),
        }
        if norm and hidden:
            layer["norm_scale"] = np.ones(fan_out, np.float32)
            layer["norm_bias"] = np.zeros(fan_out, np.float32)
        network.append(layer)
    return network


def init_agent(rng, width, observation=OBSERVATION, action=ACTION, layers=LAYERS):
    return {
        "q": init_network(rng, observation + action, width, layers, 1, True),
        "v": init_network(rng, observation, width, layers, 1, True),
        "actor": init_network(rng, observation, width, layers, action, False, 0.01),
    }


def make_batch(rng, rows, observation=OBSERVATION, action=ACTION):
    import numpy as np

    r_k = -(1 - GAMMA**K) / (1 - GAMMA)
    return {
        "s": rng.standard_normal((rows, observation)).astype(np.float32),
        "s_1": rng.standard_normal((rows, observation)).astype(np.float32),
        "s_k": rng.standard_normal((rows, observation)).astype(np.float32),
        "a": np.clip(rng.standard_normal((rows, action)), -1, 1).astype(np.float32),
        "r_1": np.full((rows, 1), -1.0, np.float32),
        "r_k": np.full((rows, 1), r_k, np.float32),
    }


def apply(network, x):
    import jax
    import jax.numpy as jnp

    for layer in network[:-1]:
        x = jax.nn.gelu(x @ layer["kernel"] + layer["bias"], approximate=True)
        if "norm_scale" in layer:
            mean = x.mean(-1, keepdims=True)
            variance = jnp.square(x - mean).mean(-1, keepdims=True)
            x = (x - mean) * jax.lax.rsqrt(variance + 1e-6) * layer["norm_scale"] + layer["norm_bias"]
    return x @ network[-1]["kernel"] + network[-1]["bias"]


def loss(agent, batch, squash):
    import jax
    import jax.numpy as jnp

    stop, relu = jax.lax.stop_gradient, jax.nn.relu
    rows = batch["s"].shape[0]
    q = apply(agent["q"], jnp.concatenate([batch["s"], batch["a"]], 1))
    v, v_1 = jnp.split(apply(agent["v"], jnp.concatenate([batch["s"], batch["s_1"]])), [rows])
    y_1 = batch["r_1"] + GAMMA * v_1
    y_k = stop(batch["r_k"] + GAMMA**K * apply(stop(agent["v"]), batch["s_k"]))
    critic = (
        OMEGA_Q * q.mean()
        + OMEGA_V * v.mean()
        + LAMBDA_B * relu(y_1 - q).mean()
        + LAMBDA_E * relu(q - v).mean()
        + LAMBDA_K * (relu(y_k - q).mean() + relu(y_k - v).mean())
    )
    pi = apply(agent["actor"], batch["s"])
    if squash == "tanh":
        pi = jnp.tanh(pi)
    q_pi = apply(stop(agent["q"]), jnp.concatenate([batch["s"], jnp.clip(pi, -1, 1)], 1))
    bc = jnp.square(pi - batch["a"]).sum(1).mean()
    actor = -q_pi.mean() / (stop(jnp.abs(q_pi).mean()) + 1e-6) + ALPHA_BC * bc
    return critic + actor, (critic, actor)


def update(state, batch, squash="clip"):
    """(agent, moments, step) -> the same after one step of Adam, and the two losses."""
    import jax
    import jax.numpy as jnp

    agent, first, second, step = state
    (_, losses), gradients = jax.value_and_grad(loss, has_aux=True)(agent, batch, squash)
    step = step + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + (1 - 0.9) * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + (1 - 0.999) * g * g, second, gradients)
    c1, c2 = 1 - 0.9**step, 1 - 0.999**step
    move = lambda rate: lambda p, m, v: p - rate * (m / c1) / (jnp.sqrt(v / c2) + 1e-8)
    agent = {name: jax.tree.map(move(RATES[name]), agent[name], first[name], second[name]) for name in agent}
    return (agent, first, second, step), losses


def initial_state(agent):
    import jax
    import jax.numpy as jnp

    agent = jax.tree.map(jnp.asarray, agent)
    zeros = lambda: jax.tree.map(jnp.zeros_like, agent)
    return agent, zeros(), zeros(), jnp.zeros((), jnp.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as there are processors")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.threads:
        # XLA sizes its pool by the processors it may use.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

    import jax
    import numpy as np

    rng = np.random.default_rng(0)
    state = initial_state(init_agent(rng, arguments.width))
    batches = [jax.tree.map(jax.numpy.asarray, make_batch(rng, arguments.batch)) for _ in range(4)]
    step = jax.jit(update, donate_argnums=0)
    times = []
    for i in range(arguments.rounds + 5):
        started = time.perf_counter()
        state, losses = step(state, batches[i % 4])
        jax.block_until_ready((state, losses))
        times.append(1e3 * (time.perf_counter() - started))
    times = times[5:]
    result = {
        "engine": "jax",
        "version": jax.__version__,
        "ms_per_step": statistics.median(times),
        "ms_best": min(times),
        "batch": arguments.batch,
        "width": arguments.width,
        "threads": len(os.sched_getaffinity(0)),
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "loss": float(losses[0]),
    }
    print(json.dumps(result) if arguments.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
