"""One ALBUM update in PyTorch: the peer that `album-nn`'s example `album_step` is measured against.

    python album_step_torch.py --rounds 60 --json

The same networks, losses, batch and Adam (fused). `--compile` runs the losses through `torch.compile`,
which needs a C++ compiler.
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
    ACTION,
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as there are processors")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads or len(os.sched_getaffinity(0)))

    rng = np.random.default_rng(0)
    agent = {name: to_tensors(network) for name, network in init_agent(rng, arguments.width).items()}
    batches = [
        {name: torch.tensor(value) for name, value in make_batch(rng, arguments.batch).items()} for _ in range(4)
    ]
    groups = [{"params": parameters(agent[name]), "lr": rate} for name, rate in RATES.items()]
    optimiser = torch.optim.Adam(groups, eps=1e-8, fused=True)
    critic_parameters = parameters(agent["q"]) + parameters(agent["v"])
    actor_parameters = parameters(agent["actor"])
    wrap = torch.compile if arguments.compile else lambda f: f
    critic, actor = wrap(critic_loss), wrap(actor_loss)

    times = []
    for i in range(arguments.rounds + 5):
        started = time.perf_counter()
        batch = batches[i % 4]
        # `grad` computes only what is asked for: no weight gradients of Q in the actor's loss.
        loss = critic(agent["q"], agent["v"], batch)
        gradients = torch.autograd.grad(loss, critic_parameters)
        gradients += torch.autograd.grad(actor(agent["actor"], agent["q"], batch), actor_parameters)
        for parameter, gradient in zip(critic_parameters + actor_parameters, gradients):
            parameter.grad = gradient
        optimiser.step()
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
