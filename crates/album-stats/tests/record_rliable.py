"""Records what the package rliable answers on small matrices of scores.

    pip install rliable==1.2.0 arch==7.2.0 numpy==2.4.6 scipy==1.17.1 'pandas<3'
    python tests/record_rliable.py > tests/data/rliable.json

takes some minutes. tests/rliable.rs holds album's statistics against the file.
rliable 1.2.0 draws from numpy's global generator whatever its random_state, so that is what is seeded.
"""

import json
import sys
from importlib.metadata import version

import numpy as np
from rliable import library, metrics

RESAMPLES = 50_000
RESAMPLES_IMPROVEMENT = 20_000  # a rank test for each task of each resample is slow


def matrices():
    """Name -> (scale of the scores, runs x tasks)."""
    rng = np.random.RandomState(0)
    # Success rates of 50 episodes with a difficulty for each task: the shape of the paper's main table.
    suite = 100 * rng.binomial(50, rng.beta(0.5, 0.7, 50), (8, 50)) / 50
    other = 100 * rng.binomial(50, rng.beta(0.5, 0.9, 5), (4, 5)) / 50
    return {
        "suite": (100, suite),
        "five tasks": (100, suite[:, 5:10]),
        "five tasks of another": (100, other),
        # Steps of 4, because with few possible values of a statistic the ends of its interval are a matter
        # of luck: with steps of 50 rliable's were one value (1.25) off the exact ones.
        "mostly ties": (100, 20.0 * np.arange(5) + 4.0 * rng.randint(0, 3, (8, 5))),
        "unit": (1, rng.uniform(0, 1, (10, 6))),
        "heavy tail": (100, np.minimum(100, 10 * np.abs(rng.standard_cauchy((7, 3))))),
        "not divisible by four": (100, rng.normal(50, 20, (5, 3))),
        "below zero": (100, rng.normal(-30, 25, (6, 4))),
        "one run": (100, rng.uniform(0, 100, (1, 6))),
        "one task": (100, rng.uniform(0, 100, (9, 1))),
        "one score": (100, np.array([[37.5]])),
        "all equal": (100, np.full((4, 3), 12.3)),
    }


PAIRS = [
    ("five tasks", "five tasks of another"),
    ("mostly ties", "five tasks"),
    ("five tasks", "five tasks"),
    ("mostly ties", "mostly ties"),
    ("not divisible by four", "heavy tail"),
    ("one task", "one score"),
    ("all equal", "all equal"),
]

PROFILES = ["suite", "mostly ties", "unit", "one run", "below zero", "all equal"]


def aggregates(scale):
    return {
        "mean": metrics.aggregate_mean,
        "median": metrics.aggregate_median,
        "iqm": metrics.aggregate_iqm,
        "optimality_gap": lambda scores: metrics.aggregate_optimality_gap(scores, gamma=scale),
    }


def intervals(scores, function, resamples):
    np.random.seed(1)
    point, interval = library.get_interval_estimates({"it": scores}, function, reps=resamples)
    return point["it"], interval["it"]


def main():
    scores = matrices()
    record = {
        "versions": {name: version(name) for name in ["rliable", "arch", "numpy", "scipy"]},
        "matrices": {},
        "improvement": [],
        "profiles": [],
    }
    for name, (scale, matrix) in scores.items():
        functions = aggregates(scale)
        point, interval = intervals(
            matrix, lambda x: np.array([function(x) for function in functions.values()]), RESAMPLES
        )
        entry = {
            "scale": scale,
            "scores": matrix.tolist(),
            "std": np.std(matrix, axis=0).tolist(),
            # Of one run it is not defined.
            "sample_std": np.std(matrix, axis=0, ddof=1).tolist() if len(matrix) > 1 else None,
        }
        for i, aggregate in enumerate(functions):
            entry[aggregate] = [point[i], interval[0, i], interval[1, i]]
        record["matrices"][name] = entry
        print(name, file=sys.stderr)
    for x, y in PAIRS:
        # Columns are compared pairwise: as many as both have.
        tasks = min(scores[x][1].shape[1], scores[y][1].shape[1])
        pair = [scores[x][1][:, :tasks], scores[y][1][:, :tasks]]
        point, interval = intervals(
            pair, lambda a, b: np.array([metrics.probability_of_improvement(a, b)]), RESAMPLES_IMPROVEMENT
        )
        record["improvement"].append(
            {"x": x, "y": y, "tasks": tasks, "answer": [point[0], interval[0, 0], interval[1, 0]]}
        )
        print(x, "/", y, file=sys.stderr)
    for name in PROFILES:
        scale, matrix = scores[name]
        taus = (np.linspace(-0.5, 1, 16) * scale).round(3)
        point, interval = intervals(matrix, lambda x: library.score_distributions(x, taus), RESAMPLES)
        record["profiles"].append(
            {
                "matrix": name,
                "taus": taus.tolist(),
                "point": point.tolist(),
                "low": interval[0].tolist(),
                "high": interval[1].tolist(),
            }
        )
        print("profile of", name, file=sys.stderr)
    json.dump(record, sys.stdout)
    print()


if __name__ == "__main__":
    main()
