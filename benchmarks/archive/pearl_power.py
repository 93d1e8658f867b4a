"""The test power of frequencies, PEARL's figure 2 (appendix D): how often two Gaussians are told apart.

P and Q have unit variance in d dimensions and differ by a mean of 1 in the first. Twenty frequencies: ``unoptimized``
are 0 in the first dimension but for one, ``optimized`` keeps that one alone, and those of ``normal`` are normal in all
dimensions. The test is that of Chwialkowski and others (2015) on cosines and sines, at the level of .05.
"""

from argparse import Namespace

import numpy as np
from scipy.stats import chi2

from benchmarks.common import Table, parse, report
from dpmodels.arrays import Floats

DIMENSIONS = (2, 5, 10, 15, 20, 25, 30)
FREQUENCIES, SAMPLES, TRIALS, REPEATS, LEVEL = 20, 1000, 100, 5, 0.05
SETS = ("unoptimized", "normal", "optimized")


def frequencies(kind: str, dimensions: int, rng: np.random.Generator) -> Floats:
    """Draw the frequencies of one set. Shapes: [frequencies, d]."""
    t = rng.normal(size=(FREQUENCIES, dimensions))
    if kind != "normal":
        t[1:, 0] = 0
    return t[:1] if kind == "optimized" else t


def rejected(t: Floats, rng: np.random.Generator) -> bool:
    """Draw from both, and tell whether the test says that they differ."""
    x, y = rng.normal(size=(2, SAMPLES, t.shape[1]))
    y[:, 0] += 1
    differences = np.concatenate([np.cos(x @ t.T) - np.cos(y @ t.T), np.sin(x @ t.T) - np.sin(y @ t.T)], axis=1)
    mean, spread = differences.mean(axis=0), np.atleast_2d(np.cov(differences.T))
    statistic = SAMPLES * mean @ np.linalg.solve(spread + 1e-9 * np.eye(len(mean)), mean)
    return bool(statistic > chi2.ppf(1 - LEVEL, len(mean)))


def power(args: Namespace) -> Table:
    """Return the share of trials in which the two are told apart, by dimensions."""
    trials = 20 if args.quick else TRIALS
    table = Table(f"Rejection rate of {trials} trials, {REPEATS} times", ["dimensions", *SETS], digits=3)
    for dimensions in DIMENSIONS[:: 3 if args.quick else 1]:
        rates: dict[str, list[float]] = {kind: [] for kind in SETS}
        for repeat in range(REPEATS):
            rng = np.random.default_rng([dimensions, repeat])
            for kind, found in rates.items():
                found.append(float(np.mean([rejected(frequencies(kind, dimensions, rng), rng) for _ in range(trials)])))
        table.add(str(dimensions), *rates.values())
    return table


def main() -> None:
    args = parse(__doc__)
    report("pearl-power", [power(args)], range(REPEATS), args)


if __name__ == "__main__":
    main()
