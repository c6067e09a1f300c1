"""DQC for single tasks: a critic of chunks, distilled into one of their first actions, and a flow."""

from distilled import *
from qc_fql import QC

HALF = [12, 8]


def quantile(u, kappa):
    return jnp.where(u >= 0, kappa, 1 - kappa) * jnp.abs(u)


def agent(h, ha, kappa_b, kappa_d, gamma_1, backup=quantile, distill=expectile, agg=avg):
    def loss(p, f, b, noise, step):
        w, head = b["w_k"], b["chunk"][:, : ha * A]
        # Rewards have a discount of their own; `g_k` is its power, or 0.
        y = b["r_k"] + b["g_k"] / gamma_1**h * GAMMA**h * apply(f["v"], b["s_last"])
        chunk = (w * (apply(p["q_chunk"], b["s"], b["chunk"]) - y) ** 2).mean()
        q = apply(p["q"], b["s"], head)
        critic = (w * distill(apply(f["q_chunk"], b["s"], b["chunk"]) - q, kappa_d)).mean()
        v = apply(p["v"], b["s"])
        value = (w * backup(agg(apply(f["q_target"], b["s"], head)) - v, kappa_b)).mean()
        flow = (w * flow_errors(p["flow"], b["s"], head, *noise)).mean()
        return chunk + critic + value + flow, {
            "chunk_critic/critic_loss": chunk,
            "critic/critic_loss": critic,
            "value/value_loss": value,
            "actor/bc_flow_loss": flow,
            "critic/q_mean": q.mean(),
            "value/v_mean": v.mean(),
        }
    return loss


def main():
    rng = np.random.default_rng(13)
    def nets(h, ha):
        make = lambda inputs, outputs, **options: network(rng, inputs, outputs, hidden=HALF, layer_norm=True, **options)
        return {
            "q_chunk": make(S + h * A, 1, members=2),
            "q": make(S + ha * A, 1, members=2),
            "v": make(S, 1),
            "flow": make(S + ha * A + 1, ha * A),
        }
    draws = lambda ha: lambda rng: [rng.normal(size=(ROWS, ha * A)), rng.uniform(size=(ROWS, 1))]
    targets = {"q_target": ("q", 0.005)}
    record(
        "dqc", "dqc", "h = 5\nkappa_b = 0.9\nkappa_d = 0.6\ngamma_1 = 0.8",
        nets(5, 1), agent(5, 1, 0.9, 0.6, 0.8), draws(1), targets=targets, cycle=1, hidden=HALF, k=5, chunk=5,
        **{**QC, "gamma": 0.8},
    )
    record(
        "dqc-options", "dqc",
        'h = 4\nha = 2\nkappa_b = 0.7\nkappa_d = 0.8\nbackup = "expectile"\ndistill = "quantile"\nq_agg = "min"\ngamma_1 = 0.9',
        nets(4, 2), agent(4, 2, 0.7, 0.8, 0.9, expectile, quantile, low), draws(2), targets=targets, cycle=1, hidden=HALF, k=4, chunk=4, **QC,
    )


if __name__ == "__main__":
    main()
