"""One ALBUM update in PyTorch: the peer that `album-nn`'s example `album_step` is measured against.

    python album_step_torch.py --rounds 60 --json

The same networks, losses, batch and Adam (fused). `--compile` runs the losses through `torch.compile`,
which needs a C++ compiler. `--bf16` runs the step under autocast to bfloat16. `--check TRACE` repeats a
trace of `record_trace.py` instead and compares.
"""

import argparse
import json
import os
import resource
import statistics
import time

import numpy as np
import torch
from torch.nn import functional

from album_step_jax import (
    ALPHA_BC,
    GAMMA,
    K,
    LAMBDA_B,
    LAMBDA_E,
    LAMBDA_K,
    OMEGA_Q,
    OMEGA_V,
    RATES,
    init_agent,
    make_batch,
)


def to_tensors(network):
    return [{name: torch.tensor(value, requires_grad=True) for name, value in layer.items()} for layer in network]


def parameters(network):
    return [value for layer in network for value in layer.values()]


def apply(network, x):
    for layer in network[:-1]:
        x = functional.gelu(torch.addmm(layer["bias"], x, layer["kernel"]), approximate="tanh")
        if "norm_scale" in layer:
            x = functional.layer_norm(x, x.shape[-1:], layer["norm_scale"], layer["norm_bias"], 1e-6)
    return torch.addmm(network[-1]["bias"], x, network[-1]["kernel"])


def critic_loss(q_net, v_net, batch):
    rows = batch["s"].shape[0]
    q = apply(q_net, torch.cat([batch["s"], batch["a"]], 1))
    v, v_1 = apply(v_net, torch.cat([batch["s"], batch["s_1"]])).split(rows)
    y_1 = batch["r_1"] + GAMMA * v_1
    with torch.no_grad():
        y_k = batch["r_k"] + GAMMA**K * apply(v_net, batch["s_k"])
    return (
        OMEGA_Q * q.mean()
        + OMEGA_V * v.mean()
        + LAMBDA_B * torch.relu(y_1 - q).mean()
        + LAMBDA_E * torch.relu(q - v).mean()
        + LAMBDA_K * (torch.relu(y_k - q).mean() + torch.relu(y_k - v).mean())
    )


def actor_loss(actor, q_net, batch):
    pi = apply(actor, batch["s"])
    q_pi = apply(q_net, torch.cat([batch["s"], pi.clamp(-1, 1)], 1))
    bc = (pi - batch["a"]).square().sum(1).mean()
    return -q_pi.mean() / (q_pi.abs().mean().detach() + 1e-6) + ALPHA_BC * bc


def check(path):
    """Repeats a recorded trace; the largest relative differences must be within the tests' tolerances."""
    with open(path) as file:
        trace = json.load(file)
    shape = trace["shape"]
    rng = np.random.default_rng(0)
    sizes = (shape["width"], shape["observation"], shape["action"], shape["layers"])
    agent = {name: to_tensors(network) for name, network in init_agent(rng, *sizes).items()}
    for name, network in agent.items():
        for parameter, values in zip(parameters(network), trace["initial"][name], strict=True):
            parameter.data.copy_(torch.tensor(values).reshape(parameter.shape))
    batches = [
        {name: torch.tensor(values).reshape(shape["rows"], -1) for name, values in batch.items()}
        for batch in trace["batches"]
    ]

    def difference(expected):
        pairs = [
            (parameter.detach().ravel(), torch.tensor(values))
            for name in agent
            for parameter, values in zip(parameters(agent[name]), expected[name], strict=True)
        ]
        return max(float((x - y).abs().max() / y.abs().max()) for x, y in pairs)

    step = make_step(agent, lambda f: f)
    worst = 0.0
    for i, expected in enumerate(trace["losses"]):
        losses = step(batches[i % len(batches)])
        worst = max(worst, *(abs(x.item() - y) / max(1.0, abs(y)) for x, y in zip(losses, expected)))
        if i == 0:
            first = difference(trace["after_first"])
    last = difference(trace["after_last"])
    print(json.dumps({"losses": worst, "weights_after_first": first, "weights_after_last": last}))
    return worst < 1e-3 and first < 1e-5 and last < 1e-3


def make_step(agent, wrap):
    """A function that updates the agent by one batch and returns the losses of critic and actor."""
    groups = [{"params": parameters(agent[name]), "lr": rate} for name, rate in RATES.items()]
    optimiser = torch.optim.Adam(groups, eps=1e-8, fused=True)
    critic_parameters = parameters(agent["q"]) + parameters(agent["v"])
    actor_parameters = parameters(agent["actor"])
    critic, actor = wrap(critic_loss), wrap(actor_loss)

    def step(batch):
        # `grad` computes only what is asked for: no weight gradients of Q in the actor's loss.
        losses = critic(agent["q"], agent["v"], batch), actor(agent["actor"], agent["q"], batch)
        gradients = torch.autograd.grad(losses[0], critic_parameters)
        gradients += torch.autograd.grad(losses[1], actor_parameters)
        for parameter, gradient in zip(critic_parameters + actor_parameters, gradients):
            parameter.grad = gradient
        optimiser.step()
        return losses

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as there are processors")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", metavar="TRACE")
    arguments = parser.parse_args()
    if arguments.check:
        raise SystemExit(0 if check(arguments.check) else 1)
    torch.set_num_threads(arguments.threads or len(os.sched_getaffinity(0)))

    rng = np.random.default_rng(0)
    agent = {name: to_tensors(network) for name, network in init_agent(rng, arguments.width).items()}
    batches = [
        {name: torch.tensor(value) for name, value in make_batch(rng, arguments.batch).items()} for _ in range(4)
    ]
    step = make_step(agent, torch.compile if arguments.compile else lambda f: f)
    times = []
    for i in range(arguments.rounds + 5):
        started = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=arguments.bf16):
            loss, _ = step(batches[i % 4])
        times.append(1e3 * (time.perf_counter() - started))
    times = times[5:]
    result = {
        "engine": "torch",
        "version": torch.__version__,
        "ms_per_step": statistics.median(times),
        "ms_best": min(times),
        "batch": arguments.batch,
        "width": arguments.width,
        "threads": torch.get_num_threads(),
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "loss": loss.item(),
    }
    print(json.dumps(result) if arguments.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
