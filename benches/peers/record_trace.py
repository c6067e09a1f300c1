"""Records 100 ALBUM updates of small networks in JAX, for the tests of `album-nn`.

    python record_trace.py ../../crates/album-nn/tests/data/album_trace.json

The trace holds the initial weights, the batches (used in turn), the losses of every step, and the
weights after the first and the last step, each tensor row by row: with a clipped mean of the policy, and under
"tanh" with a squashed one.
"""

import json
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np

from album_step_jax import init_agent, initial_state, make_batch, update

OBSERVATION, ACTION, LAYERS, WIDTH, ROWS, BATCHES, STEPS = 5, 2, 3, 20, 24, 4, 100


def numbers(x):
    """The shortest decimals that give the same f32 back."""
    return [float(str(v)) for v in np.asarray(x, np.float32).ravel()]


def tensors(network):
    order = ["kernel", "bias", "norm_scale", "norm_bias"]
    return [numbers(layer[name]) for layer in network for name in order if name in layer]


def weights(agent):
    return {name: tensors(network) for name, network in agent.items()}


def record(agent, batches, squash):
    state, trace = initial_state(agent), {"losses": []}
    step = jax.jit(update, static_argnames="squash")
    for i in range(STEPS):
        state, losses = step(state, batches[i % BATCHES], squash=squash)
        trace["losses"].append([float(str(np.float32(x))) for x in losses])
        if i == 0:
            trace["after_first"] = weights(state[0])
    trace["after_last"] = weights(state[0])
    return trace


def main():
    rng = np.random.default_rng(7)
    agent = init_agent(rng, WIDTH, OBSERVATION, ACTION, LAYERS)
    # Away from zero biases and unit scales, so that every parameter matters from the first step.
    agent = jax.tree.map(lambda x: x + rng.normal(0, 0.1, x.shape).astype(np.float32), agent)
    batches = [make_batch(rng, ROWS, OBSERVATION, ACTION) for _ in range(BATCHES)]
    for batch in batches:
        batch["r_1"] = rng.uniform(-1, 0, (ROWS, 1)).astype(np.float32)
        batch["r_k"] = rng.uniform(-3, 1, (ROWS, 1)).astype(np.float32)
    trace = {
        "shape": {"observation": OBSERVATION, "action": ACTION, "layers": LAYERS, "width": WIDTH, "rows": ROWS},
        "jax": jax.__version__,
        "batches": [{name: numbers(value) for name, value in batch.items()} for batch in batches],
        "initial": weights(agent),
        **record(agent, batches, "clip"),
        "tanh": record(agent, batches, "tanh"),
    }
    with open(sys.argv[1], "w") as file:
        json.dump(trace, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
