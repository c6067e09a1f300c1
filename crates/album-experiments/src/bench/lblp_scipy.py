"""The Lifted Bellman LP of a tabular dataset by NumPy and scipy.optimize.linprog(method="highs").

The peer of `album bench solve`: it counts, assembles and solves, as a careful NumPy user would. Reads the dataset once,
then for every line on standard input does one round and prints {"assembly": s, "solution": s, "objective": x, ...}.

    python lblp_scipy.py DATA.npz GAMMA K OMEGA_Q OMEGA_V
"""

import json
import sys
import time

import numpy as np
import scipy
import scipy.sparse as sp
from scipy.optimize import linprog


def assemble(data, gamma, k, omega_q, omega_v):
    states, actions = data["states"], data["actions"]
    decision = np.unique(states)
    n = len(decision)
    s = np.searchsorted(decision, states)
    nxt = np.searchsorted(decision, data["next_states"]).clip(max=n - 1)
    onward = decision[nxt] == data["next_states"]  # the others are absorbing: V = 0

    width = actions.max() + 1
    keys, pair, counts = np.unique(s * width + actions, return_inverse=True, return_counts=True)
    pair_state = keys // width
    p = len(keys)
    m = len(states)
    reward = np.bincount(pair, weights=data["rewards"], minlength=p) / counts
    kernel = sp.csr_matrix((np.ones(onward.sum()), (pair[onward], nxt[onward])), shape=(p, n))
    kernel = sp.diags_array(1.0 / counts) @ kernel
    state_counts = np.bincount(s, minlength=n)
    beta = sp.csr_matrix((counts / state_counts[pair_state], (pair_state, np.arange(p))), shape=(n, p))

    # y_K = offset + weight V: y_1 = R + gamma P V, then one step of the behaviour policy at a time.
    step = gamma * kernel
    offset, weight = np.zeros(n), sp.identity(n, format="csr")
    for _ in range(k - 1):
        offset, weight = beta @ (reward + step @ offset), beta @ (step @ weight)
    offset, weight = reward + step @ offset, step @ weight

    q = sp.identity(p, format="csr")
    v = sp.csr_matrix((np.ones(p), (np.arange(p), pair_state)), shape=(p, n))
    rows = sp.vstack(
        [
            sp.hstack([-q, step]),
            sp.hstack([q, -v]),
            sp.hstack([-q, weight]),
            sp.hstack([sp.csr_matrix((p, p)), weight - v]),
        ],
        format="csr",
    )
    rhs = np.concatenate([-reward, np.zeros(p), -offset, -offset])
    cost = np.concatenate([omega_q * counts / m, omega_v * state_counts / m])
    return cost, rows, rhs, p


def main():
    path, gamma, k, omega_q, omega_v = sys.argv[1:]
    gamma, k, omega_q, omega_v = float(gamma), int(k), float(omega_q), float(omega_v)
    with np.load(path) as f:
        data = {key: f[key] for key in f.files}
    print(json.dumps({"scipy": scipy.__version__, "numpy": np.__version__}), flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        cost, rows, rhs, p = assemble(data, gamma, k, omega_q, omega_v)
        assembled = time.perf_counter()
        # The costs are frequencies; scaled to at least 1, the solver's absolute tolerances mean something.
        scale = cost.min()
        result = linprog(cost / scale, A_ub=rows, b_ub=rhs, bounds=(None, None), method="highs")
        solved = time.perf_counter()
        print(
            json.dumps(
                {
                    "assembly": assembled - start,
                    "solution": solved - assembled,
                    "objective": float(cost @ result.x),
                    "v_sum": float(result.x[p:].sum()),
                    "variables": len(cost),
                    "nonzeros": int(rows.nnz),
                    "status": int(result.status),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
