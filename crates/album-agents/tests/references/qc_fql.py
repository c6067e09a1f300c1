"""QC-FQL and NFQL: FQL with targets of windows, on chunks and on single actions."""

from distilled import *

QC = dict(tail="qc_valid", after_goal="qc_sum")


def wide(valids):
    """Flags of actions for all of their columns."""
    return jnp.repeat(valids, A, axis=-1)


def window_fql(p, f, b, noise, alpha, steps, agg=avg, normalize=False, prefix=""):
    q, target, flow, actor = (prefix + x for x in ["q", "q_target", "flow", "actor"])
    z_next, *rest = noise
    c_next = jnp.clip(apply(f[actor], b["s_last"], z_next), -1, 1)
    y = b["r_k"] + b["g_k"] * agg(apply(f[target], b["s_last"], c_next))
    predicted = apply(p[q], b["s"], b["chunk"])
    critic = (b["w_k"] * (predicted - y) ** 2).mean()
    value = lambda c: avg(apply(f[q], b["s"], c))
    total, parts = fql_actor(
        p, f, (flow, actor), b["s"], b["chunk"], wide(b["valids"]), rest, value, alpha, steps, normalize
    )
    return critic, total, parts, predicted


def agent(alpha, steps, **options):
    def loss(p, f, b, noise, step):
        critic, actor, parts, q = window_fql(p, f, b, noise, alpha, steps, **options)
        return critic + actor, {
            "critic/critic_loss": critic,
            "critic/q_mean": q.mean(),
            "critic/q_max": q.max(),
            "actor/actor_loss": actor,
            "actor/bc_flow_loss": parts[0],
            "actor/distill_loss": parts[1],
            "actor/q_loss": parts[2],
        }
    return loss


def main():
    rng = np.random.default_rng(11)
    def nets(chunk, layer_norm=False):
        x = chunk * A
        return {
            "q": network(rng, S + x, 1, layer_norm=True, members=2),
            "flow": network(rng, S + x + 1, x, layer_norm=layer_norm),
            "actor": network(rng, S + x, x, layer_norm=layer_norm),
        }
    def draws(chunk):
        return lambda rng: [rng.normal(size=(ROWS, chunk * A)), *actor_noise(rng, chunk * A)]
    targets = {"q_target": ("q", 0.005)}
    record("qc-fql", "qc-fql", "h = 3\nalpha = 2.0", nets(3), agent(2.0, 10), draws(3), targets=targets, cycle=1, k=3, chunk=3, **QC)
    record(
        "qc-fql-options", "qc-fql",
        'h = 3\nalpha = 0.5\nflow_steps = 4\nq_agg = "min"\nnormalize_q_loss = true\nactor_layer_norm = true',
        nets(3, True), agent(0.5, 4, agg=low, normalize=True), draws(3), targets=targets, cycle=1, k=3, chunk=3, **QC,
    )
    record("nfql", "nfql", "h = 4\nalpha = 2.0", nets(1), agent(2.0, 10), draws(1), targets=targets, cycle=1, k=4, **QC)


if __name__ == "__main__":
    main()
