"""DP-MERF on Adult with the kernel that it was published with: one of numbers plus one of categories.

    phi(x) = ( Fourier features of the numbers ; a one for each category / sqrt(columns) ) / sqrt(2),  ||phi(x)|| <= 1

for each class, and the counts of the classes, with noise of the product's Gaussian; then the paper's generator, fitted
to the means. The sum of two kernels knows how a number goes with the class, and a category with the class, but not how
the two go with each other; the product's ``dp-merf`` has one kernel of all columns. Numbers are scaled by the schema's
bounds. The paper's bandwidth is the median distance of two private records: here it is given exactly and free of
charge, beside the public one of 1. For public data only.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from benchmarks.adult import DELTA, EPSILON, PUBLISHED, SCHEMAS, official_judge
from benchmarks.common import Table, data_dir, parse, report
from benchmarks.judge import Verdict, hard_label_scores
from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.authoring.lint import load_schema
from dpmodels.contract.columns import Categorical
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.privacy import PrivacyBudget, Sensitive

FREQUENCIES, GRAIN, COUNT_WEIGHT = 1000, 2**20, 0.05
STEPS, QUICK_STEPS, BATCH, NORMALS, HIDDEN = 1000, 50, 400, 10, 200
PUBLIC, MEDIAN = "bandwidth 1", "the median distance, given for nothing"


class Columns:
    """Numbers between 0 and 1 and codes of categories, and back; bounds and categories are the schema's."""

    def __init__(self, schema: str) -> None:
        contract = load_schema(SCHEMAS / schema)
        self.target, rest = contract.target, {k: v for k, v in contract.columns.items() if k != contract.target}
        self.labels = list(contract.columns[contract.target].values)
        self.categories = {name: list(c.values) for name, c in rest.items() if isinstance(c, Categorical)}
        numbers = {name: c for name, c in rest.items() if name not in self.categories}
        self.bounds = {name: (float(c.min), float(c.max), c.scale == "log") for name, c in numbers.items()}

    def numbers(self, rows: pd.DataFrame) -> Tensor:
        """Return the numbers by their public bounds. Shapes: [n, numbers]."""
        scaled = []
        for name, (low, high, log) in self.bounds.items():
            over = rows[name].to_numpy(dtype=float).clip(low, high) - low
            scaled.append(np.log1p(over) / np.log1p(high - low) if log else over / (high - low))
        return torch.from_numpy(np.stack(scaled, axis=1)).float()

    def ones(self, rows: pd.DataFrame) -> Tensor:
        """Return a one for each category. Shapes: [n, all categories]."""
        return torch.cat([_one_hot(rows[name], values) for name, values in self.categories.items()], dim=1)

    def table(self, numbers: np.ndarray, codes: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
        """Return made rows as the file has them."""
        made = {}
        for at, (name, (low, high, log)) in enumerate(self.bounds.items()):
            over = np.expm1(numbers[:, at] * np.log1p(high - low)) if log else numbers[:, at] * (high - low)
            made[name] = np.rint(low + over).astype(np.int64)
        made |= {name: np.array(values)[codes[:, at]] for at, (name, values) in enumerate(self.categories.items())}
        return pd.DataFrame(made | {self.target: np.array(self.labels)[labels]})


class Kernel:
    """The features of both kernels side by side."""

    def __init__(self, numbers: int, categories: int, bandwidth: float, seed: int) -> None:
        self.columns = categories
        draw = torch.Generator().manual_seed(seed)
        self.frequencies = torch.randn(numbers, FREQUENCIES, generator=draw) / bandwidth

    def features(self, numbers: Tensor, ones: Tensor) -> Tensor:
        """Return features of norm 1. Shapes: [n, 2 FREQUENCIES + all categories]."""
        angles = numbers @ self.frequencies
        waves = torch.cat([angles.cos(), angles.sin()], dim=1) / FREQUENCIES**0.5
        return torch.cat([waves, ones / self.columns**0.5], dim=1) / 2**0.5


def measured(features: Tensor, label: np.ndarray, classes: int, epsilon: float) -> tuple[Tensor, np.ndarray]:
    """Return the noisy means of features by class, and the noisy counts.

    Privacy: a record adds a vector of norm at most 1, truncated, and one weighted count, so the sensitivity is at most
    sqrt(1 + w^2) under add-or-remove of a record.
    """
    whole = np.trunc(features.double().numpy() * (GRAIN * (1 - 1e-6))).astype(np.int64)
    weight = int(COUNT_WEIGHT * GRAIN)
    sums = np.stack([whole[label == each].sum(axis=0) for each in range(classes)])
    vector = np.concatenate([sums.ravel(), weight * np.bincount(label, minlength=classes)])
    sensitivity = int(np.ceil(np.hypot(GRAIN, weight)))
    multiplier = gaussian_noise_multiplier(PrivacyBudget(epsilon=epsilon, delta=DELTA))
    noisy = measure_gaussian(Sensitive(vector), l2_sensitivity=sensitivity, noise_multiplier=multiplier).value
    counts = np.maximum(noisy[-classes:] / weight, 1.0)
    means = noisy[:-classes].reshape(classes, -1) / GRAIN / counts[:, None]
    return torch.from_numpy(means).float(), counts


def generator(columns: Columns) -> nn.Sequential:
    """Return the paper's network: two hidden layers with batch normalization."""
    inputs, outputs = NORMALS + len(columns.labels), len(columns.bounds) + sum(map(len, columns.categories.values()))
    layers: list[nn.Module] = []
    for size in (HIDDEN, HIDDEN):
        layers += [nn.Linear(inputs, size), nn.BatchNorm1d(size), nn.ReLU()]
        inputs = size
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


def proposed(columns: Columns, network: nn.Module, label: Tensor, draw: torch.Generator) -> tuple[Tensor, list[Tensor]]:
    """Return numbers, and for each column of categories their probabilities."""
    z = torch.randn(len(label), NORMALS, generator=draw)
    said = network(torch.cat([z, nn.functional.one_hot(label, len(columns.labels)).float()], dim=1))
    numbers, *parts = said.split([len(columns.bounds), *map(len, columns.categories.values())], dim=1)
    return numbers.sigmoid(), [part.softmax(dim=1) for part in parts]


def synthesized(rows: pd.DataFrame, schema: str, median: bool, epsilon: float, seed: int, steps: int) -> pd.DataFrame:
    """Measure once, fit and draw as many rows as were counted."""
    columns = Columns(schema)
    numbers, ones = columns.numbers(rows), columns.ones(rows)
    label = _one_hot(rows[columns.target], columns.labels).argmax(dim=1).numpy()
    bandwidth = float(torch.pdist(numbers[:2000]).median()) if median else 1.0
    kernel, classes = Kernel(numbers.shape[1], len(columns.categories), bandwidth, seed), len(columns.labels)
    means, counts = measured(kernel.features(numbers, ones), label, classes, epsilon)
    torch.manual_seed(seed)
    network, draw = generator(columns), torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(network.parameters(), 1e-3)
    wanted = torch.arange(classes).repeat_interleave(BATCH // classes)
    for _ in range(steps):
        made = kernel.features(*(part if torch.is_tensor(part) else torch.cat(part, dim=1)
                                 for part in proposed(columns, network, wanted, draw)))  # fmt: skip
        loss = (made.view(classes, -1, made.shape[1]).mean(dim=1) - means).square().sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
    drawn = torch.from_numpy(np.repeat(np.arange(classes), np.rint(counts).astype(int)))
    with torch.no_grad():
        numbers, parts = proposed(columns, network.eval(), drawn, draw)
    codes = torch.cat([torch.multinomial(part, 1, generator=draw) for part in parts], dim=1)
    return columns.table(numbers.numpy(), codes.numpy(), drawn.numpy())


def _one_hot(column: pd.Series, values: Sequence[object]) -> Tensor:
    codes = pd.Categorical(column, categories=values).codes.astype(np.int64)
    return nn.functional.one_hot(torch.from_numpy(codes), len(values)).float()


def tables_of(args: Namespace, seeds: Sequence[int], steps: int) -> list[Table]:
    """Judge both bandwidths by both protocols."""
    at = f"epsilon={EPSILON}, delta={DELTA}"
    title = f"Adult, PEARL's balanced subset, predicted labels of ten classifiers, {at}"
    hard = Table(title, ["method", "ROC", "PRC"], 4)
    hard.add("DP-MERF, as published", *PUBLISHED["DP-MERF, as published"])
    columns = ["method", "AUROC", "AUPRC", "TVD 1-way", "TVD 2-way"]
    scores = Table(f"Adult, official split, scores of four classifiers, {at}", columns, 4)
    few, few_test = (pd.read_parquet(data_dir() / f"adult_pearl_{part}.parquet") for part in ("train", "test"))
    judge, full = official_judge(), pd.read_parquet(data_dir() / "adult_train.parquet")
    labels: dict[str, list[np.ndarray]] = {name: [] for name in (PUBLIC, MEDIAN)}
    verdicts: dict[str, list[Verdict]] = {name: [] for name in labels}
    for seed, name in product(seeds, labels):
        made = synthesized(few, "adult_pearl.yaml", name == MEDIAN, EPSILON, seed, steps)
        labels[name].append(np.mean(hard_label_scores(made, few_test, "label"), axis=0))
        verdicts[name].append(judge.judge(synthesized(full, "adult.yaml", name == MEDIAN, EPSILON, seed, steps)))
        print(f"{name}, seed {seed}: {labels[name][-1]} {verdicts[name][-1]}", file=sys.stderr, flush=True)
    for name in labels:
        hard.add(f"its kernel, {name}", *np.transpose(labels[name]).tolist())
        found = [[getattr(v, each) for v in verdicts[name]] for each in ("auroc", "auprc", "tvd_1_way", "tvd_2_way")]
        scores.add(f"its kernel, {name}", *found)
    return [hard, scores]


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])


def main() -> None:
    args = parse(__doc__, options)
    torch.set_num_threads(1)
    seeds = args.seeds[:1] if args.quick else args.seeds
    report("merf", tables_of(args, seeds, QUICK_STEPS if args.quick else STEPS), seeds, args)


if __name__ == "__main__":
    main()
