"""P3GM beside its baselines: its table, convergence by epoch, RDP beside PLD, and what a private step costs.

The tables are the paper's data sets; Credit and ISOLET are the partial public files unless NACRE_DATA holds full ones
(benchmarks/tables.py names the files).
Images are judged by a CNN on 60,000 synthetic ones, with --quick on fewer; and --quick runs the first method, set and
table alone unless others are named.
"""

import math
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
from dp_accounting.rdp import RdpAccountant
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from benchmarks import adult, images, tables
from benchmarks.common import ROOT, Table, data_dir, first_alone, parse, report
from benchmarks.judge_images import ImageJudge
from benchmarks.trainings import exact
from dpmodels.accounting.composition import pld_epsilon, renyi_epsilon
from dpmodels.accounting.events import GaussianEvent, SampledGaussianEvent, leaves
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.generators.vae_model import VaeModel
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.mechanisms.dp_sgd.spec import Noise
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from dpmodels.methods.registry import create
from dpmodels.methods.trained.private_training import PrivateTraining
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.releases.draw import Desk
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release, read_release
from dpmodels.releases.state import DrawState
from dpmodels.releases.steps import NoisySum, Step, Sum
from dpmodels.releases.system import Craft

Judge = Callable[[Records], float]
BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
AT = f"epsilon={BUDGET.epsilon}, delta={BUDGET.delta}"
SCHEMAS = ROOT / "benchmarks" / "schemas"
METHODS, SETS = ["p3gm", "p3gm-ae", "dp-vae", "dp-gm"], ["mnist", "fashion_mnist"]
SEEDS = (0, 1, 2)
LOOK_ROWS = 4000
"""Synthetic records that are judged after each epoch."""
MEASURE = {"adult": "AUROC of boosted trees", "mnist": "accuracy of logistic regression"}
CURVE_STEPS, QUICK_STEPS = {"adult": 600, "mnist": 300}, 100
PUBLISHED = {
    "adult": {"P3GM": (0.8321, 0.5917), "PrivBayes": (0.8530, 0.6374), "DP-GM": (0.7806, 0.4502)},
    "mnist": {"P3GM": 0.7946, "DP-GM": 0.4973, "VAE without privacy": 0.8571},
    "fashion_mnist": {"P3GM": 0.7311, "DP-GM": 0.5200, "VAE without privacy": 0.7854},
}


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--tables", nargs="+", default=list(tables.TASKS))
    parser.add_argument("--curves", nargs="+", default=list(MEASURE), choices=list(MEASURE), help="of convergence")
    parser.add_argument("--seeds", nargs="+", type=int, help="of each row; one is no result")
    parser.add_argument("--epsilon", type=float, default=BUDGET.epsilon, help="of images; 1000 stands for no privacy")
    parser.add_argument("--warm-share", type=float, default=0.3, help="of the budget, for the warm start that is tried")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="also draw the curves, as SVG files")


def adult_table(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Adult by the four classifiers, with the wall clock of the whole command."""
    table = adult.scores_table(Namespace(epsilon=BUDGET.epsilon, methods=args.methods, peers=[]), seeds)
    for name, (auroc, auprc) in PUBLISHED["adult"].items():
        table.add(f"{name}, as published", auroc, auprc, *["–"] * 4)
    return [table]


def warm_start(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Adult with and without a decoder that learned nacre's samples first, at the same whole budget."""
    rows = {"inverse projection": {}, f"nacre's samples, share {args.warm_share}": {"warm_share": args.warm_share}}
    return [adult_by_setting("Adult, P3GM by its start", "start", rows, seeds)]


def mixtures(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Adult by the components that DP-EM has in each class, and by its iterations, at the same whole budget."""
    sizes = ((1, 1), (2, 5), (3, 5), (3, 20), (10, 20))[:: 3 if args.quick else 1]
    rows = {f"{k}, {n}": {"components": k, "iterations": n} for k, n in sizes}
    return [adult_by_setting("Adult, P3GM by its mixture", "components, iterations", rows, seeds)]


def adult_by_setting(title: str, what: str, rows: Mapping[str, Mapping[str, Any]], seeds: Sequence[int]) -> Table:
    """Adult by P3GM's settings, one a row."""
    schema, table = load_schema(SCHEMAS / "adult.yaml"), pq.read_table(data_dir() / "adult_train.parquet")
    judge = adult.official_judge()
    result = Table(title, [what, "AUROC", "AUPRC", "TVD 1-way", "TVD 2-way"], digits=4)
    for name, settings in rows.items():
        cells = []
        for seed in seeds:
            with tempfile.TemporaryDirectory() as folder:
                system, release = measure("p3gm", schema, Codec(schema).encode(table), Path(folder), **settings)
                model = system.fit(release, Craft(seed=seed))
            made = Codec(schema).decode(Records.concat(list(model.sample(model.default_rows(), seed))))
            verdict = judge.judge(made.to_pandas())
            cells.append((verdict.auroc, verdict.auprc, verdict.tvd_1_way, verdict.tvd_2_way))
        result.add(name, *(list(column) for column in zip(*cells, strict=True)))
        print(f"{title}: {result.rows[-1]}", file=sys.stderr, flush=True)
    return result


def other_tables(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """ESR, Credit and ISOLET, each seed with its own split."""
    most = tables.QUICK_ROWS if args.quick else None
    return [tables.run_table(name, args.methods, BUDGET.epsilon, tuple(seeds), most) for name in args.tables]


def image_tables(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Accuracy of a CNN trained on synthetic images."""
    rows, epochs = images.QUICK if args.quick else images.FULL
    made = []
    for name in args.sets:
        judge = ImageJudge(images.load(data_dir() / f"{name}_test.parquet"), data_dir() / "lenet5_mnist.safetensors")
        title = f"{name}, CNN on {rows} synthetic images and {epochs} epochs, epsilon={args.epsilon:g}, delta=1e-05"
        table = Table(title, ["method", "CNN", "CNN, last epoch", "LeNet-FID", "seconds", "peak MiB"], digits=4)
        for method, accuracy in PUBLISHED[name].items():
            table.add(f"{method}, as published", accuracy, *["–"] * 4)
        for method in args.methods:
            cells = []
            for seed in seeds:
                with tempfile.TemporaryDirectory() as folder:
                    found, seconds, peak = images.synthesize(name, args.epsilon, seed, Path(folder), method)
                verdict = judge.judge(found, rows, epochs, seed)
                cells.append((verdict.cnn, verdict.cnn_last, verdict.lenet_fid, seconds, peak))
            table.add(method, *(list(column) for column in zip(*cells, strict=True)))
        made.append(table)
    return made


def measure(
    method: str,
    schema: Schema,
    records: Records,
    folder: Path,
    look: Callable[[int, VaeModel], None] = lambda epoch, model: None,
    **measurement: object,
) -> tuple[PrivateTraining, Released[Release]]:
    """Measure in this process and hand over the generator as it stands after each epoch; for public data only."""
    system = create(method, measurement, {})
    if not isinstance(system, PrivateTraining):
        raise SystemExit(f"{method} has no epochs")
    plan = system.plan(schema, BUDGET)
    ledger = Ledger(folder / "ledger.sqlite")
    ledger.open_account("benchmark", dataset=schema.name, budget_cap=BUDGET)
    charge = Charge(
        account="benchmark",
        dataset=schema.name,
        mechanism=method,
        event=plan.event,
        budget=BUDGET,
        plan_hash=plan.hash,
        schema_hash=schema.hash,
        run="benchmark",
    )
    staged, released = folder / "private" / "release.parquet", folder / "public" / "release.parquet"
    epoch = system.of(plan).sgd.epoch

    def progress(step: int, _steps: int) -> None:
        if step % epoch == 0:
            look(step // epoch, model_so_far(system, plan, DrawState(staged.parent, charge.key, plan.hash)))

    system.measure(Sensitive([records]), plan, Desk(ledger, charge, staged, released, progress=progress))
    return system, read_release(released)


def model_so_far(method: PrivateTraining, plan: Line, state: DrawState) -> VaeModel:
    """Return the generator that the state of an unfinished draw holds."""
    system, vectors = method.of(plan), state.vectors()
    noise = [plan.noise_stddev(step, look.l2_sensitivity) for step, look in enumerate(system.looks)]
    looks = (NoisySum(*look) for look in zip(vectors, noise, strict=True))

    def answer(step: Step) -> NoisySum | None:
        look = next(looks, None)
        return replace(look, embedding=step.embedding) if look and isinstance(step, Sum) else look

    built = system.networks(system.estimate(answer), start=False)
    objective, saved = built.objectives[0], state.training(0)
    with torch.no_grad():
        for index, parameter in enumerate(objective.parameters()):
            parameter.copy_(saved[f"mean/{index}"])
    return VaeModel(system.vectors, [objective.decoder], [objective.prior], built.counts, built.stddev, "")


def convergence(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Figures 3 and 4: quality after each epoch. Not the judges of the tables, but one quick classifier each."""
    judges = {"adult": _judge_adult, "mnist": _judge_images}
    made = []
    for name in args.curves:
        judge, steps = judges[name](), QUICK_STEPS if args.quick else CURVE_STEPS[name]
        schema = load_schema(SCHEMAS / f"{name}.yaml")
        records = Codec(schema).encode(pq.read_table(data_dir() / f"{name}_train.parquet"))
        curves: dict[str, list[float]] = {}
        for method in ("dp-vae", "p3gm", "p3gm-ae"):
            scores = curves.setdefault(method, [])

            def look(epoch: int, model: VaeModel, scores: list[float] = scores, judge: Judge = judge) -> None:
                scores.append(judge(Records.concat(list(model.sample(LOOK_ROWS, seed=0)))))

            with tempfile.TemporaryDirectory() as folder:
                measure(method, schema, records, Path(folder), look, sgd={"steps": steps})
        table = Table(
            f"{name}: {MEASURE[name]} by epoch, on {LOOK_ROWS} synthetic records", ["epoch", *curves], digits=4
        )
        for epoch, values in enumerate(zip(*curves.values(), strict=True), start=1):
            table.add(epoch, *values)
        if args.plots:
            _plot(args.plots / f"p3gm-{name}.svg", curves, MEASURE[name])
        made.append(table)
    return made


def _judge_adult() -> Judge:
    codec = Codec(load_schema(SCHEMAS / "adult.yaml"))
    real = codec.encode(pq.read_table(data_dir() / "adult_test.parquet"))
    target = codec.schema.target_index

    def features(records: Records) -> np.ndarray:
        return np.delete(np.concatenate([records.states, records.values], axis=1), target, axis=1)

    def judge(made: Records) -> float:
        model = XGBClassifier(n_jobs=1, random_state=0, n_estimators=50)
        labels = made.states[:, target]
        if len(np.unique(labels)) < 2:
            return 0.5
        scores = model.fit(features(made), labels).predict_proba(features(real))[:, 1]
        return float(roc_auc_score(real.states[:, target], scores))

    return judge


def _judge_images() -> Judge:
    real = images.load(data_dir() / "mnist_test.parquet")

    def judge(made: Records) -> float:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=20))
        return float(model.fit(made.pixels / 255, made.states[:, 0]).score(real.x, real.y))

    return judge


def _plot(path: Path, curves: dict[str, list[float]], measure: str) -> None:
    """Draw a score by epoch, a line a method."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "nacre"}
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3))
    for colour, (name, curve) in zip(("#33658a", "#d1495b", "#5b8c5a"), curves.items(), strict=True):
        axes.plot(range(1, 1 + len(curve)), curve, "o-", color=colour, label=name)
    axes.set(xlabel="epoch", ylabel=measure)
    axes.legend(frameon=False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def accounting(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Figure 5: what P3GM's plan costs at other noise multipliers of DP-SGD, by four ways of adding up."""
    plan = create("p3gm", {}, {}).plan(load_schema(SCHEMAS / "adult.yaml"), BUDGET)
    *looks, steps = leaves([plan.event])
    columns = ["noise multiplier of DP-SGD", "PLD (the ledger's)", "RDP (the paper's)", "phases apart, RDP each"]
    columns.append("zCDP and a moments accountant (the paper's baseline)")
    table = Table(f"epsilon of the whole plan at delta={BUDGET.delta}", columns, digits=4)
    delta = Decimal(str(BUDGET.delta))
    for noise in (1.0, 1.5, 2.0, steps.noise_multiplier, 3.0, 4.0, 6.0):
        whole = [*looks, steps.model_copy(update={"noise_multiplier": noise})]
        apart = renyi_epsilon(whole[:-1], delta / 2) + renyi_epsilon(whole[-1:], delta / 2)
        sums = [float(one(whole, delta)) for one in (pld_epsilon, renyi_epsilon)]
        table.add(float(noise), *sums, float(apart), _concentrated(looks, whole[-1], BUDGET.delta))
    return [table]


def _concentrated(looks: Sequence[GaussianEvent], steps: SampledGaussianEvent, delta: float) -> float:
    """Add what Gaussian looks cost by zCDP to what DP-SGD costs by moments of whole orders, each at half of delta."""
    rho = sum(0.5 / look.noise_multiplier**2 for look in looks)
    sampled = PoissonSampledDpEvent(steps.sampling_probability, GaussianDpEvent(steps.noise_multiplier))
    accountant = RdpAccountant(range(2, 65)).compose(sampled, steps.steps)
    tail = math.log(2 / delta)
    moments = min(
        divergence + tail / (order - 1)
        for order, divergence in zip(accountant._orders, accountant._rdp, strict=True)  # it shows them nowhere else
    )
    return rho + 2 * math.sqrt(rho * tail) + float(moments)


def speed(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """A private step beside the same step without privacy, in turns, in one process."""
    table = Table("milliseconds a step, medians", ["data set", "batch", "DP-SGD", "not private", "ratio"], digits=2)
    for name in ("adult", "mnist"):
        schema = load_schema(SCHEMAS / f"{name}.yaml")
        records = Codec(schema).encode(pq.read_table(data_dir() / f"{name}_train.parquet"))
        table.add(name, *step_times(schema, records, 10 if args.quick else 60))
    return [table]


def step_times(schema: Schema, records: Records, repeats: int) -> tuple[int, float, float, float]:
    """Return the batch size, the median milliseconds of both steps, and their ratio."""
    method = create("p3gm", {}, {})
    if not isinstance(method, PrivateTraining):
        raise SystemExit("p3gm is not trained in private")
    line = method.plan(schema, BUDGET)
    system = method.of(line)
    noise = (line.noise_stddev(step, look.l2_sensitivity) for step, look in enumerate(system.looks))
    phase_one, data = exact(system, records, noise)
    private, plain = (system.networks(phase_one, start=False).objectives[0] for _ in range(2))
    stepping = DpSgd(private, system.sgd, Noise(2.0, len(records)), bytes(32)).train(data)
    adam, size = torch.optim.Adam(plain.parameters()), round(system.sgd.sampling_probability * len(records))
    rng, randomness, times = np.random.default_rng(0), torch.Generator().manual_seed(0), []
    for _ in range(repeats):
        began = time.perf_counter()
        next(stepping)
        middle = time.perf_counter()
        batch = torch.from_numpy(rng.choice(len(records), size, replace=False))
        xi = torch.randn((size, *plain.normals), generator=randomness)
        plain(*(tensor[batch] for tensor in data.reveal()), xi).mean().backward()
        adam.step()
        adam.zero_grad()
        times.append((middle - began, time.perf_counter() - middle))
    private_ms, plain_ms = 1000 * np.median(times, axis=0)
    return size, float(private_ms), float(plain_ms), float(private_ms / plain_ms)


PARTS: dict[str, Callable[[Namespace, Sequence[int]], list[Table]]] = {
    "adult": adult_table,
    "warm": warm_start,
    "mixtures": mixtures,
    "tables": other_tables,
    "images": image_tables,
    "convergence": convergence,
    "accounting": accounting,
    "speed": speed,
}


def main() -> None:
    args = parse(__doc__, options)
    seeds = args.seeds or SEEDS[: 1 if args.quick else None]
    if args.quick:
        first_alone(args, methods=METHODS, sets=SETS, tables=list(tables.TASKS), curves=list(MEASURE))
    report("p3gm", [table for part in args.parts for table in PARTS[part](args, seeds)], seeds, args)


if __name__ == "__main__":
    main()
