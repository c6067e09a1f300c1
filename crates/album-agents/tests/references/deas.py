"""DEAS: IQL on sequences of actions with categorical values, and the actor of FQL."""

from distilled import *
from jax.scipy.stats import norm
from qc_fql import QC, wide

HALF = [12, 8]
GAMMA_1 = 0.8


def percentiles(h):
    """The range of values: the returns of the recorded data, one sequence after the other."""
    data = dataset(np.random.default_rng(0))
    returns, begin = [], 0
    for end in np.flatnonzero(data["terminals"]):
        r, m = data["rewards"][begin:end].astype(float), data["masks"][begin:end]
        for t in range(len(r)):
            total, factor, at = 0.0, 1.0, t
            while at < len(r):
                window = r[at : at + h]
                total += factor * sum(GAMMA_1**k * x for k, x in enumerate(window))
                if (m[at : at + h] == 0).any():
                    break
                factor *= GAMMA ** len(window)
                at += len(window)
            returns.append(total)
        begin = end + 1
    returns = np.sort(returns)
    rank = lambda share: int(share * (len(returns) - 1) + 0.5)
    return returns[rank(0.01)], returns[rank(0.99)]


def agent(h, lowest, highest, bins, alpha, tau, sigma=0.75, agg="mean"):
    edges = jnp.linspace(lowest, highest, bins + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    width = edges[1] - edges[0]

    def logs(net, *inputs):
        """log probabilities: (rows, members, bins)"""
        out = apply(net, *inputs).reshape(ROWS, -1, bins)
        return jax.nn.log_softmax(out, -1)

    def number(log_p):
        return (jnp.exp(log_p) * centres).sum(-1)

    def projection(y):
        """(rows, 1) to (rows, bins)"""
        y = jnp.clip(y, lowest, highest)
        cumulated = norm.cdf((edges - y) / (sigma * width))
        return jnp.diff(cumulated, axis=-1) / (cumulated[:, -1:] - cumulated[:, :1])

    def loss(p, f, b, noise, step):
        w = b["w_k"]
        # Rows that count have whole windows: the bootstrap is gamma_2^h unless the task was solved.
        y = b["r_k"] + GAMMA**h * (b["g_k"] > 0) * number(logs(f["v"], b["s_last"]))
        q = logs(p["q"], b["s"], b["chunk"])
        critic = (w * -(projection(y)[:, None] * q).sum(-1)).mean()
        q_bar = logs(f["q_target"], b["s"], b["chunk"])
        numbers = number(q_bar)
        if agg == "mean":
            target, level = jnp.exp(q_bar).mean(1), numbers.mean(1)
        else:
            least = numbers.argmin(1)
            target, level = jnp.exp(q_bar)[jnp.arange(ROWS), least], numbers.min(1)
        v = logs(p["v"], b["s"])[:, 0]
        weight = jnp.where(level >= number(logs(f["v"], b["s"]))[:, 0], tau, 1 - tau)
        value = (w[:, 0] * weight * -(target * v).sum(-1)).mean()
        score = lambda c: number(logs(f["q"], b["s"], c)).mean(-1, keepdims=True)
        actor, parts = fql_actor(
            p, f, ("flow", "actor"), b["s"], b["chunk"], wide(b["valids"]), noise, score, alpha, 10
        )
        return critic + value + actor, {
            "critic/critic_loss": critic,
            "critic/q_mean": number(q).mean(),
            "value/value_loss": value,
            "value/v_max": number(v).max(),
            "actor/actor_loss": actor,
            "actor/bc_flow_loss": parts[0],
            "actor/q_loss": parts[2],
        }
    return loss


def main():
    rng = np.random.default_rng(14)
    def nets(h, bins):
        x = h * A
        return {
            "v": network(rng, S, bins, hidden=HALF, layer_norm=True),
            "q": network(rng, S + x, bins, hidden=HALF, layer_norm=True, members=2),
            "flow": network(rng, S + x + 1, x, hidden=HALF),
            "actor": network(rng, S + x, x, hidden=HALF),
        }
    draws = lambda h: lambda rng: actor_noise(rng, h * A)
    targets = {"q_target": ("q", 0.005)}
    shared = f"gamma_1 = {GAMMA_1}\nalpha = 2.0\n"
    record(
        "deas", "deas", shared + "h = 3\nbins = 9", nets(3, 9), agent(3, *percentiles(3), 9, 2.0, 0.9), draws(3),
        targets=targets, cycle=1, hidden=HALF, k=3, chunk=3, gamma=GAMMA_1, **QC,
    )
    record(
        "deas-given", "deas",
        shared + 'h = 4\nbins = 6\nsupport = "given"\nv_min = -5.0\nv_max = 1.0\nexpectile = 0.7\nsigma = 1.1\nq_agg = "min"',
        nets(4, 6), agent(4, -5.0, 1.0, 6, 2.0, 0.7, 1.1, "min"), draws(4),
        targets=targets, cycle=1, hidden=HALF, k=4, chunk=4, gamma=GAMMA_1, **QC,
    )


if __name__ == "__main__":
    main()
