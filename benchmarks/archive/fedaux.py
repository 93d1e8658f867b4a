"""Federations that are private end to end, one release a client on frozen features, beside sums of moments.

20 clients of equal size, split by class with a Dirichlet distribution; a ResNet-8 pre-trained on public images without
labels (400 steps) and frozen, 64 features; a fifth of the public images are negatives. Each client pays epsilon from
its own account at delta 1e-5, sizes are private (add or remove one record), all take part once (C = 1). Each exact
optimum or sum is computed once, and the product's mechanism adds the noise of every epsilon to it.

    FedDF+P   mean of the clients' logits, without noise; on a frozen network FedAvg+P is the same function
    FedAUX    weighted by certainty; sharp: by its eighth power, the default
    moments   Gaussians of the classes, with a covariance for each or, the product's default, one for all; local: noise
              of every client; central: one noise for all
"""

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from benchmarks.archive import fedaux_dask
from benchmarks.archive.fedaux_data import (
    AUXILIARY,
    CLASSES,
    Arrays,
    embedded_texts,
    labeled_features,
    prepared,
    weights,
)
from benchmarks.archive.fedaux_rounds import QUICK, Course, Setting, Wards, one_shot
from benchmarks.common import Table, parse, plot_sweep, report
from benchmarks.dirichlet import dirichlet_split
from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent, leaves
from dpmodels.arrays import Floats, Whole
from dpmodels.contract.federation import Federation
from dpmodels.embeddings.frozen import digest_of
from dpmodels.mechanisms.gaussian import lattice_noise_stddev, measure_gaussian
from dpmodels.methods.federations.heads import (
    SHARPNESS,
    FederatedHeads,
    HeadsMeasurement,
    certainty,
    weighted_ensemble,
)
from dpmodels.methods.federations.models import Architecture
from dpmodels.methods.federations.moments_head import ClientMoments, discriminant
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.statistics.class_moments import ClassMoments
from dpmodels.statistics.logistic import Logistic, with_bias

CLIENTS, DELTA, BIAS = 20, 1e-5, 0.3
FREE = {"score_lambda": 0.01, "head_lambda": 0.002}
"""What is best where nothing has noise."""
MOST_RECORDS = 20_000
"""Of a client: the product's default, unless all of them together have fewer."""
ALPHAS, EPSILONS, SEEDS = (0.01, 0.1, 1.0, 100.0), (0.1, 0.5, 1.0, 3.0), (0, 1, 2)
WITHOUT = ["FedDF+P", "FedAUX", "FedAUX sharp"]
PRIVATE = ["FedAUX", "FedAUX sharp", "moments local", "moments central"]
PRIVATE += [f"moments {trust}, one covariance" for trust in ("local", "central")]
FREE_MOMENTS = ["moments, no noise", "moments, one covariance, no noise"]
HEAD = ["alpha", *(f"{name}, no noise" for name in WITHOUT), *FREE_MOMENTS, *PRIVATE, "sharp, distilled"]
DISTILLED = 5000
PARTS = ["heads", "rounds", "participation", "mixed", "linear", "texts", "dask"]
SHARES = (0.2, 0.4, 0.8)
RANDOM = "none: random weights"
ARCHITECTURES: tuple[Architecture, ...] = ("resnet8", "mobilenet", "shufflenet")
BEGUN = ("FedAvg+P", "FedProx+P", "FedDF+P", "FedBE+P", "FedAUX, power 1", "FedAUX (default)")
"""Methods that begin with the pre-trained networks."""
MIXED = ("FedDF", "FedAvg+P", "FedDF+P", "FedAUX, power 1", "FedAUX (default)")
"""Methods that the paper has where clients' networks are of several architectures."""


def distil_head(z: Whole, soft: Floats, strength: float = 1e-4, bias: float = 0.3) -> tuple[Logistic, Floats]:
    """Fit one multinomial head to soft labels of public vectors (post-processing). Shapes: [n, d], [n, classes].

    Returns:
        The problem, whose ``features`` the head is for, and W [classes, d + 1].
    """
    problem = Logistic(z.shape[1], soft.shape[1], strength * len(z), bias, False, len(z), tolerance=1e-2)
    weights = problem.solve(problem.features(z), soft)
    if weights is None:
        raise SystemExit("no head fits the soft labels; give a stronger regularization")
    return problem, weights


def budget_of(epsilon: float, delta: float = DELTA) -> PrivacyBudget:
    return PrivacyBudget(epsilon=epsilon, delta=delta)


def noisy(vector: np.ndarray, sensitivity: int, multiplier: float) -> np.ndarray:
    """Add the product's noise; none where the multiplier is 0."""
    if not multiplier:
        return vector
    return measure_gaussian(Sensitive(vector), l2_sensitivity=sensitivity, noise_multiplier=multiplier).value


class Split:
    """One split of one data set, with what its clients' records say exactly."""

    def __init__(
        self, data: Arrays, alpha: float, seed: int, shared: dict[tuple[int, float, int, bool], list[float]]
    ) -> None:
        self.seed, self.shared = seed, shared
        self.clients, self.classes = int(data.get("clients", CLIENTS)), int(data.get("classes", CLASSES))
        self.data, self.parts = data, dirichlet_split(data["y"], self.clients, alpha, seed)
        self.negatives = data["auxiliary"][: len(data["auxiliary"]) // 5]
        self.found: dict[tuple[int, float], list[np.ndarray]] = {}

    @cached_property
    def contract(self) -> Federation:
        names = [{"name": f"c{place}"} for place in range(self.clients)]
        own = {"features": self.data["z"].shape[1], "classes": [str(label) for label in range(self.classes)]}
        own |= {"most_records": min(len(self.data["y"]), MOST_RECORDS)}
        public = {"negatives": len(self.negatives), "auxiliary": digest_of(self.negatives)}
        return Federation(name="bench", clients=names, extractor=str(self.data["extractor"]), **own, **public)

    def optimum(self, problem: Logistic) -> list[np.ndarray]:
        """Return every client's exact optimum, in lattice steps."""
        key = (problem.outputs, problem.strength)
        if key not in self.found:
            self.found[key] = [self._solved(problem, part) for part in self.parts]
        return self.found[key]

    def _solved(self, problem: Logistic, part: np.ndarray) -> np.ndarray:
        z, label = self.data["z"][part], self.data["y"][part]
        if problem.outputs == 1:
            label = np.repeat([1, 0], [len(z), len(self.negatives)])
            z = np.concatenate([z, self.negatives])
        return problem.whole(problem.features(z), problem.targets(label))

    def heads(self, budget: PrivacyBudget, noise: bool = True, **given: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return every client's certainty and classifying head as they would be released, or without noise."""
        system = FederatedHeads(HeadsMeasurement(records=len(self.data["y"]) // self.clients, **given), self.negatives)
        line = system.plan(self.contract.of("c0"), budget)
        problems, found = system.of(line), []
        events = [each for each in leaves([line.event]) if isinstance(each, GaussianEvent)]
        for problem, event in zip((problems.score, problems.head), events, strict=True):
            multiplier = event.noise_multiplier if noise else 0.0
            drawn = [noisy(own, problem.l2_sensitivity, multiplier) for own in self.optimum(problem)]
            found.append([problem.weights(own) for own in drawn])
        return [(score[0], head) for score, head in zip(*found, strict=True)]

    def gaussians(self, budget: PrivacyBudget | None, releases: int, pooled: bool = False) -> float:
        """Return the accuracy of Gaussians from sums with the noise of so many releases; no split changes the sums."""
        kept = self.shared.setdefault((self.seed, budget.epsilon if budget else 0.0, releases, pooled), [])
        if kept:
            return kept[0]
        spec = ClientMoments(pooled=pooled)
        weights = spec.count_weight, spec.mean_weight
        moments = ClassMoments(self.classes, self.data["z"].shape[1], *weights, pooled=pooled)
        multiplier = gaussian_noise_multiplier(budget) if budget else 0.0
        drawn = moments.total(self.data["z"], self.data["y"])
        for _ in range(releases):
            drawn = drawn + noisy(np.zeros_like(drawn), moments.l2_sensitivity, multiplier)
        stddev = math.sqrt(releases) * lattice_noise_stddev(moments.l2_sensitivity, multiplier) if budget else 0.0
        kept.append(self.right(discriminant(moments, drawn, stddev, spec.floor).logits(self.data["z_test"])))
        return kept[0]

    def all_gaussians(self, budget: PrivacyBudget) -> list[float]:
        """Return the accuracies of all moments of ``PRIVATE``."""
        return [self.gaussians(budget, number, pooled) for pooled in (False, True) for number in (self.clients, 1)]

    def ensemble(self, heads: Sequence[tuple[np.ndarray, np.ndarray]], z: np.ndarray, power: float) -> np.ndarray:
        """Return what an ensemble says of vectors; power 0 weighs all clients alike."""
        phi = with_bias(z, BIAS)
        logits, sure = [phi @ head.T for _, head in heads], [certainty(score, phi) for score, _ in heads]
        return weighted_ensemble(logits, sure if power else None, power or 1.0)

    def accuracy(self, heads: Sequence[tuple[np.ndarray, np.ndarray]], power: float) -> float:
        return self.right(self.ensemble(heads, self.data["z_test"], power))

    def distilled(self, heads: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
        """Return the accuracy of one head that was distilled from the sharp ensemble on public images."""
        shown = self.data["auxiliary"][len(self.negatives) :][:DISTILLED]
        problem, w = distil_head(shown, self.ensemble(heads, shown, SHARPNESS))
        return self.right(problem.features(self.data["z_test"]) @ w.T)

    def right(self, said: np.ndarray) -> float:
        return 100 * float((said.argmax(axis=1) == self.data["y_test"]).mean())


def compare(split: Split) -> list[float]:
    """Return the accuracies of one row of the table at epsilon 1."""
    exact, drawn = split.heads(budget_of(1.0), noise=False, **FREE), split.heads(budget_of(1.0))
    found = [split.accuracy(exact, power) for power in (0.0, 1.0, SHARPNESS)] + [
        split.gaussians(None, 1, pooled) for pooled in (False, True)
    ]
    found += [split.accuracy(drawn, power) for power in (1.0, SHARPNESS)]
    return [*found, *split.all_gaussians(budget_of(1.0)), split.distilled(drawn)]


def curve(splits: Mapping[float, Sequence[Split]]) -> Table:
    """Return accuracy by epsilon of what is private."""
    table = Table("Accuracy by epsilon, per cent", ["alpha", "epsilon", *PRIVATE], digits=1)
    for alpha, own in splits.items():
        for epsilon in EPSILONS:
            budget, rows = budget_of(epsilon), []
            for split in own:
                heads = split.heads(budget)
                rows.append([split.accuracy(heads, 1.0), split.accuracy(heads, SHARPNESS)])
                rows[-1] += split.all_gaussians(budget)
            table.add(f"{alpha:g}", f"{epsilon:g}", *map(list, zip(*rows, strict=True)))
    return table


def ablation(own: Sequence[Split], alpha: float) -> Table:
    """Return the accuracy of sharp FedAUX by lambda of both heads, epsilon and delta (the paper's figure 5)."""
    lambdas = (0.003, 0.01, 0.03, 0.1, None)
    names = [f"lambda {each:g}" if each else "by noise" for each in lambdas]
    table = Table(
        f"FedAUX sharp by lambda, epsilon and delta at alpha {alpha:g}", ["epsilon", "delta", *names], digits=1
    )
    for epsilon in EPSILONS:
        for delta in (1e-3, 1e-5, 1e-7):
            cells = []
            for each in lambdas:
                given = {"score_lambda": each, "head_lambda": each} if each else {}
                cells.append([one.accuracy(one.heads(budget_of(epsilon, delta), **given), SHARPNESS) for one in own])
            table.add(f"{epsilon:g}", f"{delta:g}", *cells)
    return table


def targets(table: Table) -> Table:
    """Return what the paper's pattern asks of the table, what was measured, and whether it is met."""
    found = Table(f"Targets: {table.title}", ["target", "alpha", "measured", "met"])
    for row in table.rows:
        mean = {name: float(np.mean(cell)) for name, cell in zip(HEAD[1:], row[1:], strict=True)}  # type: ignore[arg-type]
        free, plain, alpha = mean["FedAUX sharp, no noise"], mean["FedDF+P, no noise"], str(row[0])
        asked = {"FedAUX >= FedDF+P": (free - plain, 0.0)}
        if alpha == "0.01":
            asked["FedAUX 20 points above FedAvg+P and FedDF+P"] = free - plain, 20.0
        if alpha == "100":
            asked["FedAUX within 1 point of the best"] = free - max(mean[f"{name}, no noise"] for name in WITHOUT), -1.0
        asked["private at epsilon 1 within 3 points of no noise"] = mean["FedAUX sharp"] - free, -3.0
        asked["private not below moments local"] = mean["FedAUX sharp"] - mean["moments local"], 0.0
        for name, (measured, least) in asked.items():
            found.add(name, alpha, f"{measured:+.1f}", "yes" if measured >= least else "no")
    return found


def rounds(data: Arrays, pretrained: Any, seeds: Sequence[int], quick: bool) -> Table:
    """Return the comparison of whole networks, in the reduced setting that its title names."""
    setting = QUICK if quick else Setting(10_000, 5000, 4, 4)
    alphas = 0.01, 100.0
    columns = [f"{what}, alpha {alpha:g}" for alpha in alphas for what in ("server", "ensemble")]
    table = Table(
        f"Whole networks, Fashion-MNIST, one round without privacy ({setting})", ["method", *columns], digits=1
    )
    start = {"resnet8": pretrained}
    runs = {
        alpha: [one_shot(Wards("fashion", data, start, alpha, seed, setting)) for seed in seeds] for alpha in alphas
    }
    for name in runs[alphas[0]][0]:
        table.add(name, *(cell for alpha in alphas for cell in cells(runs[alpha], name)))
    return table


def cells(runs: Sequence[Mapping[str, tuple[float, float | None]]], name: str) -> list[object]:
    """Return a method's accuracies of several seeds: of its server, and of its ensemble where it has one."""
    pairs = [list(cell) for cell in zip(*(run[name] for run in runs), strict=True)]
    return [cell if cell[0] is not None else "–" for cell in pairs]


def participation(data: Arrays, pretrained: Any, seeds: Sequence[int], args: Namespace) -> Table:
    """Return what several rounds give at shares of the clients that the paper has."""
    setting, number = (QUICK, 2) if args.quick else (Setting(4000, 2000, 2, 2), args.rounds)
    table = Table(
        f"Share C of 20 clients in each of {number} rounds, alpha .01, Fashion-MNIST, without privacy ({setting})",
        ["method", *(f"{what}, C = {share:g}" for share in args.shares for what in ("server", "last ensemble"))],
        digits=1,
    )
    wards = [Wards("fashion", data, {"resnet8": pretrained}, 0.01, seed, setting) for seed in seeds]
    runs = {share: [one_shot(each, Course(number, share), args.begun) for each in wards] for share in args.shares}
    for name in args.begun:
        table.add(name, *(cell for share in args.shares for cell in cells(runs[share], name)))
    return table


def mixed(data: Arrays, pretrained: Any, seeds: Sequence[int], steps: int, quick: bool) -> Table:
    """Return the one-shot comparison where the clients' networks are of three architectures.

    Of fewer records and public images than in ``rounds``, for three networks are trained, distilled and judged.
    """
    setting = QUICK if quick else Setting(4000, 2000, 4, 4)
    table = Table(
        f"Clients of three architectures in turn ({', '.join(ARCHITECTURES)}), Fashion-MNIST, one round ({setting})",
        ["method", *(f"{what}, alpha {alpha:g}" for alpha in (0.01, 100.0) for what in ("servers", "ensemble"))],
        digits=1,
    )
    starts = {"resnet8": pretrained} | {
        each: weights("fashion", "mnist", each, steps, 2000 if quick else 60_000) for each in ARCHITECTURES[1:]
    }
    course = Course(architectures=ARCHITECTURES)
    runs: dict[float, list[dict[str, tuple[float, float | None]]]] = {alpha: [] for alpha in (0.01, 100.0)}
    for seed, alpha in product(seeds, runs):
        runs[alpha].append(one_shot(Wards("fashion", data, starts, alpha, seed, setting), course, MIXED))
        print(f"mixed, alpha {alpha:g}, seed {seed}: {runs[alpha][-1]}", file=sys.stderr, flush=True)
    for name in MIXED:
        table.add(name, *(cell for alpha in runs for cell in cells(runs[alpha], name)))
    return table


def linear(sets: Sequence[str], public: Sequence[str], steps: int, quick: bool) -> Table:
    """Return what a linear classifier of all labels reaches on features of public sets, which is the ceiling."""
    most = 2000 if quick else 60_000
    table = Table(
        f"Linear evaluation: features of networks pre-trained for {steps} steps on public images, all labels, per cent",
        ["clients' images", "public images", "accuracy"],
        digits=1,
    )
    for name in sets:
        for auxiliary in public:
            known, taken = ("", 0) if auxiliary == RANDOM else (auxiliary, steps)
            z, y, z_test, y_test = labeled_features(name, known, taken, most)
            classifier = LogisticRegression(C=1.0, max_iter=300).fit(z, y)
            table.add(name, auxiliary, 100 * float(classifier.score(z_test, y_test)))
            print(f"linear: {table.rows[-1]}", file=sys.stderr, flush=True)
    return table


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=400, help="of contrastive pre-training")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep features there")
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--sets", nargs="+", default=["fashion", "cifar"], choices=["fashion", "cifar"])
    parser.add_argument("--public", nargs="+", default=[*AUXILIARY, RANDOM], choices=[*AUXILIARY, RANDOM])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS), help="of splits and noise")
    parser.add_argument("--rounds", type=int, default=8, help="of participation")
    parser.add_argument("--shares", nargs="+", type=float, default=list(SHARES), help="of clients in a round")
    parser.add_argument("--begun", nargs="+", choices=BEGUN, default=list(BEGUN), help="methods of participation")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw accuracy against epsilon at alpha 0.01")


def texts(seeds: Sequence[int], quick: bool) -> Table:
    """Return the accuracies of one shot on frozen embeddings of texts (the paper's Figure 4 has a transformer)."""
    data, shared = embedded_texts(500 if quick else None), {}
    table = Table("AG News: accuracy on test texts at epsilon 1, per cent", HEAD, digits=1)
    for alpha in (0.01, 1.0):
        rows = [compare(Split(data, alpha, seed, shared)) for seed in seeds]
        table.add(f"{alpha:g}", *map(list, zip(*rows, strict=True)))
        print(table.markdown().splitlines()[-1], file=sys.stderr, flush=True)
    return table


def of_heads(name: str, data: Arrays, seeds: Sequence[int], plots: Path | None) -> list[Table]:
    """Return all tables of one data set on frozen features."""
    shared: dict[tuple[int, float, int, bool], list[float]] = {}
    splits = {alpha: [Split(data, alpha, seed, shared) for seed in seeds] for alpha in ALPHAS}
    table = Table(f"{name}: accuracy on test images at epsilon 1, per cent", HEAD, digits=1)
    for alpha, own in splits.items():
        table.add(f"{alpha:g}", *map(list, zip(*map(compare, own), strict=True)))
        print(table.markdown().splitlines()[-1], flush=True)
    swept = curve({alpha: splits[alpha] for alpha in (0.01, 1.0)})
    swept.title = f"{name}: {swept.title}"
    if plots:
        rows = [row for row in swept.rows if row[0] == "0.01"]
        shown = {each: [(float(str(row[1])), float(np.mean(row[place]))) for row in rows]  # type: ignore[arg-type]
                 for place, each in enumerate(PRIVATE, 2) if each != "FedAUX"}  # fmt: skip
        first = {own: float(np.mean(cell)) for own, cell in zip(HEAD, table.rows[0], strict=True) if own != "alpha"}  # type: ignore[arg-type]
        ceilings = {"FedAUX sharp": first["FedAUX sharp, no noise"], "moments local": first["moments, no noise"]}
        plot_sweep(plots / f"fedaux-{name}.svg", shown, ceilings, "accuracy, per cent")
    return [table, targets(table), swept, *([ablation(splits[0.01], 0.01)] if name == "fashion" else [])]


def main() -> None:
    args = parse(__doc__, configure)
    torch.set_num_threads(1)
    tables, seeds = [], args.seeds[:1] if args.quick else args.seeds
    steps = 5 if args.quick else args.steps
    for name in args.sets if set(PARTS[:4]) & set(args.parts) else ():
        data, pretrained = prepared(name, *((5, args.cache, 2000) if args.quick else (args.steps, args.cache)))
        if "heads" in args.parts:
            tables += of_heads(name, data, seeds, args.plots)
        if "rounds" in args.parts and name == "fashion":
            tables.append(rounds(data, pretrained, seeds, args.quick))
        if "participation" in args.parts and name == "fashion":
            tables.append(participation(data, pretrained, seeds, args))
        if "mixed" in args.parts and name == "fashion":
            tables.append(mixed(data, pretrained, seeds, steps, args.quick))
    if "linear" in args.parts:
        tables.append(linear(args.sets, args.public, steps, args.quick))
    if "texts" in args.parts:
        tables.append(texts(seeds, args.quick))
    if "dask" in args.parts:
        tables.append(fedaux_dask.measured(args.quick))
    report("fedaux", tables, seeds, args)


if __name__ == "__main__":
    main()
