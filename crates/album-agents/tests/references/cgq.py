"""CGQ: QC-FQL and FQL, the critic of single actions drawn towards that of chunks."""

from qc_fql import *

HALF = [8]


def agent(alpha, step_alpha, beta, expectile_of_anchor, beta_td=1.0, steps=10):
    def loss(p, f, b, noise, step):
        chunk_critic, chunk_actor, chunk_parts, _ = window_fql(p, f, b, noise[:4], alpha, steps, prefix="chunk_")
        z_next, *rest = noise[4:]
        a_next = jnp.clip(apply(f["actor"], b["s_next"], z_next), -1, 1)
        y = b["r"] + GAMMA * b["m"] * avg(apply(f["q_target"], b["s_next"], a_next))
        q = apply(p["q"], b["s"], b["a"])
        td = ((q - y) ** 2).mean()
        gap = apply(f["chunk_q"], b["s"], b["chunk"]) - q
        anchor = (b["w_k"] * expectile(gap, expectile_of_anchor)).mean()
        critic = beta_td * td + beta * anchor
        value = lambda a: avg(apply(f["q"], b["s"], a))
        actor, parts = fql_actor(p, f, ("flow", "actor"), b["s"], b["a"], 1.0, rest, value, step_alpha, steps)
        return chunk_critic + chunk_actor + critic + actor, {
            "chunk_critic/critic_loss": chunk_critic,
            "chunk_actor/actor_loss": chunk_actor,
            "chunk_actor/bc_flow_loss": chunk_parts[0],
            "critic/td_loss": td,
            "critic/anchor_loss": anchor,
            "critic/critic_loss": critic,
            "actor/actor_loss": actor,
            "actor/distill_loss": parts[1],
        }
    return loss


def main():
    rng = np.random.default_rng(12)
    def nets(h):
        make = lambda inputs, outputs, **options: network(rng, inputs, outputs, hidden=HALF, layer_norm=True, **options)
        out = {}
        for prefix, x in [("chunk_", h * A), ("", A)]:
            out[prefix + "q"] = make(S + x, 1, members=2)
            out[prefix + "flow"] = make(S + x + 1, x)
            out[prefix + "actor"] = make(S + x, x)
        return out
    def draws(h):
        def of(rng):
            return [noise for x in [h * A, A] for noise in [rng.normal(size=(ROWS, x)), *actor_noise(rng, x)]]
        return of
    targets = {"chunk_q_target": ("chunk_q", 0.005), "q_target": ("q", 0.005)}
    record(
        "cgq", "cgq", "h = 2\nflow_steps = 5\nalpha = 2.0\nstep_alpha = 0.7\nbeta = 0.3\nanchor_expectile = 0.8\nbeta_td = 0.9",
        nets(2), agent(2.0, 0.7, 0.3, 0.8, 0.9, 5), draws(2), targets=targets, cycle=1, hidden=HALF, k=2, chunk=2, **QC,
    )


if __name__ == "__main__":
    main()
