"""Policies that are flows: FQL with its ensembles and targets, IFQL, IFQL with ALBUM's critic, FBRAC, FAWAC."""

import numpy as np
from common import *
from common import record as record_steps
from iql import values

FLOW_STEPS = 10


def record(*args, **kwargs):
    """All steps are alike."""
    record_steps(*args, cycle=1, **kwargs)


def clip(a):
    return jnp.clip(a, -1, 1)


def flow(net, s, x):
    """Euler's method. A scan, because ten copies of a network take long to compile."""
    def step(x, t):
        return x + apply(net, s, x, jnp.full((len(s), 1), t)) / FLOW_STEPS, None
    return clip(jax.lax.scan(step, x, jnp.arange(FLOW_STEPS) / FLOW_STEPS)[0])


def matching(net, b, x_0, t):
    """The error of flow matching, a mean over action dimensions for each row."""
    x_t = (1 - t) * x_0 + t * b["a"]
    return avg((apply(net, b["s"], x_t, t) - (b["a"] - x_0)) ** 2)


def temporal_difference(p, f, b, a_next, agg):
    target = f.get("q_target", f["q"])
    y = b["r"] + GAMMA * b["m"] * agg(apply(target, b["s_next"], a_next))
    return ((apply(p["q"], b["s"], b["a"]) - y) ** 2).mean()


def fql(agg=avg, normalized=False, alpha=3.0):
    def loss(p, f, b, noise, step):
        z_next, x_0, t, z = noise
        critic = temporal_difference(p, f, b, clip(apply(f["actor"], b["s_next"], z_next)), agg)
        bc = matching(p["flow"], b, x_0, t).mean()
        mu = apply(p["actor"], b["s"], z)
        distill = ((mu - flow(f["flow"], b["s"], z)) ** 2).mean()
        q = avg(apply(f["q"], b["s"], clip(mu)))
        size = jnp.abs(avg(apply(f["q"], b["s"], clip(apply(f["actor"], b["s"], z))))).mean() if normalized else 1.0
        climb = -q.mean() / size
        actor = bc + alpha * distill + climb
        return critic + actor, {
            "critic/critic_loss": critic,
            "actor/actor_loss": actor,
            "actor/bc_flow_loss": bc,
            "actor/distill_loss": distill,
            "actor/q_loss": climb,
            "actor/q": q.mean(),
        }
    return loss


def ifql(p, f, b, noise, step):
    value, critic = values(p, f, b)
    bc = matching(p["flow"], b, *noise).mean()
    return value + critic + bc, {"value/value_loss": value, "critic/critic_loss": critic, "actor/bc_flow_loss": bc}


def ifql_album(p, f, b, noise, step, omega_q=0.1, omega_v=0.05, lambda_b=2.5, lambda_e=2.0, lambda_k=1.5):
    q, v = apply(p["q"], b["s"], b["a"]), apply(p["v"], b["s"])
    y_1 = b["r"] + GAMMA * b["m"] * apply(p["v"], b["s_next"])
    y_k = b["r_k"] + b["g_k"] * apply(f["v"], b["s_last"])
    hinge_k = relu(y_k - q).mean() + relu(y_k - v).mean()
    critic = (
        omega_q * q.mean() + omega_v * v.mean()
        + lambda_b * relu(y_1 - q).mean() + lambda_e * relu(q - v).mean() + lambda_k * hinge_k
    )
    bc = matching(p["flow"], b, *noise).mean()
    return critic + bc, {"critic/critic_loss": critic, "actor/bc_flow_loss": bc}


def fbrac(agg=avg, normalized=False, alpha=2.0):
    def loss(p, f, b, noise, step):
        z_next, x_0, t, z = noise
        critic = temporal_difference(p, f, b, flow(f["flow"], b["s_next"], z_next), agg)
        bc = matching(p["flow"], b, x_0, t).mean()
        q = apply(f["q"], b["s"], flow(p["flow"], b["s"], z)).mean()
        size = jnp.abs(avg(apply(f["q"], b["s"], flow(f["flow"], b["s"], z)))).mean() if normalized else 1.0
        actor = alpha * bc - q / size
        return critic + actor, {
            "critic/critic_loss": critic, "actor/actor_loss": actor, "actor/bc_flow_loss": bc, "actor/q": q,
        }
    return loss


def fawac(agg=avg, alpha=1.5):
    def loss(p, f, b, noise, step):
        z_next, x_0, t = noise
        critic = temporal_difference(p, f, b, flow(f["flow"], b["s_next"], z_next), agg)
        q_bar = agg(apply(f.get("q_target", f["q"]), b["s"], b["a"]))
        value = ((apply(p["v"], b["s"]) - q_bar) ** 2).mean()
        advantage = avg(apply(f["q"], b["s"], b["a"])) - apply(f["v"], b["s"])
        w = jnp.minimum(jnp.exp(alpha * advantage), 100)
        actor = (w * matching(p["flow"], b, x_0, t)).mean()
        return critic + value + actor, {
            "critic/critic_loss": critic, "value/value_loss": value, "actor/actor_loss": actor,
            "actor/adv": advantage.mean(),
        }
    return loss


def main():
    rng = np.random.default_rng(2)
    q = lambda members=2: network(rng, S + A, 1, layer_norm=True, members=members)
    v = lambda: network(rng, S, 1, layer_norm=True)
    field = lambda: network(rng, S + A + 1, A)
    # Some actions of the one-step policy lie beyond the bounds.
    actor = lambda: network(rng, S + A, A)
    targets = {"q_target": ("q", 0.005)}
    z = lambda rng: rng.normal(size=(ROWS, A))
    matched = lambda rng: [z(rng), rng.uniform(size=(ROWS, 1))]
    three = lambda rng: [z(rng), *matched(rng)]
    four = lambda rng: [*three(rng), z(rng)]

    def record_fql(file, members, with_target, config="", **how):
        nets = {"q": q(members), "flow": field(), "actor": actor()}
        switches = f"ensemble = {members}\ntarget_network = {str(with_target).lower()}\n"
        record(file, "fql", "alpha = 3.0\n" + switches + config, nets, fql(**how), four,
               targets=targets if with_target else None)

    record_fql("fql", 2, True)
    record_fql("fql-single", 1, True)
    record_fql("fql-untargeted", 2, False, 'q_agg = "min"', agg=low)
    record_fql("fql-single-untargeted", 1, False)
    record_fql("fql-min-normalized", 2, True, 'q_agg = "min"\nnormalize_q_loss = true', agg=low, normalized=True)
    record("ifql", "ifql", "", {"v": v(), "q": q(), "flow": field()}, ifql, matched, targets=targets)
    record("ifql-album", "ifql-album",
           "k = 4\nomega_q = 0.1\nomega_v = 0.05\nlambda_b = 2.5\nlambda_e = 2.0\nlambda_k = 1.5",
           {"q": q(1), "v": v(), "flow": field()}, ifql_album, matched, lr={"q": 1e-4, "v": 1e-4, "flow": 3e-4}, k=4)
    record("fbrac", "fbrac", "alpha = 2.0", {"q": q(), "flow": field()}, fbrac(), four, targets=targets)
    record("fbrac-min-normalized", "fbrac", 'alpha = 0.5\nq_agg = "min"\nnormalize_q_loss = true',
           {"q": q(), "flow": field()}, fbrac(low, True, 0.5), four, targets=targets)
    record("fawac", "fawac", "alpha = 1.5", {"q": q(), "v": v(), "flow": field()}, fawac(), three, targets=targets)
    record("fawac-untargeted", "fawac", 'alpha = 1.5\nq_agg = "min"\ntarget_network = false',
           {"q": q(), "v": v(), "flow": field()}, fawac(low), three)


if __name__ == "__main__":
    main()
