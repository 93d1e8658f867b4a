"""DPKG beside the GAN that it starts from: judges of images, an attack, its four ideas one by one, Adult, and time.

Every part but ``speed`` judges synthetic data against real test data; all rows of a table are made in one run by one
setting. ``--setting reduced`` is what two CPU cores finish, ``--setting full`` is for a GPU. Numbers of two settings
must not be put beside each other. ``--kept FOLDER`` keeps what was found of each release of images, so that a run that
was cut off goes on, and a table can be given more seeds; use a new folder after a change of the code. ``--quick`` runs
some of the rows, which go every way through the code.

    table       Inception Score's formula with a LeNet, accuracy of a CNN, LeNet-FID, and what two attacks find that see
                as many images as the CNN: who was in the training set, and who in the test set?
    ablation    each idea of the paper added alone to dp-gan, and taken from dpkg; and GANs that are not told the class,
                to which clusters may give what classes give ours; theirs have one label, so no CNN learns from them
    warm        what nacre-images' share gives alone, and refined
    adult       four classifiers, beside p3gm and nacre
    speed       a step of the critic under DP-SGD beside the same step without privacy
"""

import hashlib
import json
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from pydantic import BaseModel

from benchmarks import adult
from benchmarks.common import Table, data_dir, parse, report
from benchmarks.images import load
from benchmarks.judge_images import ImageJudge, Images, LeNetScore
from benchmarks.trainings import exact
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec, Records
from dpmodels.comparison.frame import ParquetBatches, Rows
from dpmodels.comparison.report import Options, evaluate_table, load_real
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.vectors import transform_targets, transform_vectors
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.mechanisms.dp_sgd.spec import Noise
from dpmodels.mechanisms.dp_sgd.training import DpSgd
from dpmodels.methods.registry import create
from dpmodels.methods.trained.private_training import PrivateTraining
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.draw import Desk
from dpmodels.releases.release import read_release
from dpmodels.releases.system import Craft, Generator

Changes = Mapping[str, Any]
DELTA = 1e-5
ADULT_EPSILON = 1.0
SETS = ("mnist", "fashion_mnist")
SEEDS = (0, 1, 2)
ATTACK = "membership inference"
ATTACKS = ("distance", "relative_density")


@dataclass(frozen=True)
class Setting:
    """How long methods train and how long judges look; changes are made to the parameters of both GANs."""

    rows: int
    epochs: int
    changes: Changes = field(default_factory=dict)
    steps: int | None = None
    """Of DP-SGD in the ablation; the method's own if None."""
    tables: Changes = field(default_factory=dict)


def merged(first: Changes, second: Changes) -> Changes:
    """Merge changes; those of the same parameters' parameters are put together."""
    both = {key: {**first[key], **second[key]} for key in first if isinstance(second.get(key), Mapping)}
    return {**first, **second, **both}


SETTINGS = {
    "reduced": Setting(20_000, 3, steps=1000),
    "full": Setting(60_000, 10, {"sgd": {"steps": 20_000}}),
}
"""The reduced one is the methods' own, whose rates and sizes were chosen with MNIST's test images in view."""
WARM = {"warm_share": 0.1}
CLUSTERS = {"clusters": 2}
"""Of images: the fewest there can be, for each critic learns from its own cluster alone, under the same noise."""
BASELINE = "baseline [8]"
"""Groups, counted bounds and a warm start without clusters, as the paper describes its baseline."""
METHODS: dict[str, tuple[str, Changes]] = {
    "dp-gan, constant rate": ("dp-gan", {"sgd": {"schedule": "constant"}}),
    "dp-gan": ("dp-gan", {}),
    "dpkg": ("dpkg", CLUSTERS),
    "dpkg, the paper's rate": ("dpkg", {**CLUSTERS, "sgd": {"schedule": "dpkg"}}),
    "dpkg, one group, fixed bound": ("dpkg", {**CLUSTERS, "sgd": {"groups": "one", "bounds": "fixed"}}),
    "dpkg, warm": ("dpkg", {**CLUSTERS, **WARM}),
    BASELINE: ("dpkg", {"clusters": 1, **WARM, "sgd": {"bounds": "quantile"}}),
    "dpkg, warm (paper's rate)": ("dpkg", {**CLUSTERS, **WARM, "sgd": {"schedule": "dpkg"}}),
    "nacre-images": ("nacre-images", {}),
}
QUICK_METHODS = ["dp-gan", "dpkg"]
UNTOLD = "without classes"
WITHOUT_CLASSES = f"dp-gan, {UNTOLD}"
"""As the papers' are: the target is a column as any other."""
COUNTED = {"sgd": {"bounds": "quantile"}}
ADULT: dict[str, tuple[str, Changes]] = {
    "dp-gan": ("dp-gan", {}),
    WITHOUT_CLASSES: ("dp-gan", {}),
    "dpkg": ("dpkg", {}),
    "dpkg, wgan-gp": ("dpkg", {"gan": {"loss": "wgan-gp"}}),
    "dpkg, groups by density": ("dpkg", {"sgd": {"groups": "density"}}),
    "dpkg, counted bounds": ("dpkg", COUNTED),
    "dpkg, two clusters": ("dpkg", CLUSTERS),
    "dpkg, two clusters, counted bounds": ("dpkg", {**CLUSTERS, **COUNTED}),
    "dpkg, counted bounds, warm": ("dpkg", {**COUNTED, "warm_share": 0.3}),
    "p3gm": ("p3gm", {}),
    "nacre": ("nacre", {}),
}
"""Rows of the part on Adult. Counted bounds with a warm start and one cluster are the paper's baseline [8]."""
QUICK_VARIANTS = ["dp-gan", WITHOUT_CLASSES, "dpkg, counted bounds, warm"]
IDEAS = {"cluster first": "clusters", "clip per group": "groups", "adapt the bounds": "bounds", "decay": "schedule"}
"""The paper's ideas and the parameter that each is; the last three are those of DP-SGD."""
PLAIN = {"clusters": 1, "groups": "one", "bounds": "fixed", "schedule": "constant"}
PAPER = {"clusters": 2, "groups": "layers-biases", "bounds": "quantile", "schedule": "dpkg"}


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--setting", default="reduced", choices=list(SETTINGS))
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[4.0, 10.0])
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), help="of the table")
    parser.add_argument("--variants", nargs="+", choices=list(ADULT), help="rows of Adult")
    parser.add_argument("--kept", type=Path, help="folder of what was found of each release of images")
    parser.add_argument("--rows", type=int, help="of the ablation, from the first; all of them if left out")
    parser.add_argument("--seeds", nargs="+", type=int, help="of each row; one is no result")


def setting_of(args: Namespace) -> Setting:
    """Return the setting that is named; ``--quick`` only shows that it runs."""
    return Setting(600, 1, {"sgd": {"steps": 20}}, 20, {"sgd": {"steps": 20}}) if args.quick else SETTINGS[args.setting]


@dataclass(frozen=True)
class Made:
    """Synthetic images, and what making them took."""

    images: Images
    records: Records
    seconds: float
    images_a_second: float


class Scores(BaseModel):
    """One release as the judges see it, what each attack found, and what making it took."""

    lenet_score: float
    cnn: float
    lenet_fid: float
    attacks: dict[str, dict[str, Any]]
    seconds: float
    images_a_second: float

    @property
    def worst(self) -> Mapping[str, Any]:
        """What the attack found whose interval begins higher."""
        return max(self.attacks.values(), key=lambda facts: float(facts["accuracy_interval"][0]))


def settle(method: str, schema: Schema, changes: Changes) -> dict[str, Any]:
    """Return a method's parameters for a schema, less those that are its own, with changes to some of them."""
    told = {key: value for key, value in changes.items() if not isinstance(value, Mapping)}
    settled = create(method, told, {}).settled(schema).model_dump(mode="json")
    for key, value in changes.items():
        settled[key] = {**(settled[key] or {}), **value} if isinstance(value, Mapping) else value
    return settled


def run(method: str, changes: Changes, data: str, epsilon: float, seed: int, classes: bool = True) -> Generator:
    """Plan, measure and fit in this process, the ledger in a folder that is thrown away; for public data only."""
    schema, records = public(data, classes)
    measurement = settle(method, schema, changes)
    if "gan" in measurement:
        measurement["gan"]["seed"] = seed
    system = create(method, measurement, {})
    plan = system.plan(schema, PrivacyBudget(epsilon=epsilon, delta=DELTA))
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        ledger.open_account("benchmark", dataset=schema.name, budget_cap=plan.budget)
        charge = Charge(
            account="benchmark",
            dataset=schema.name,
            mechanism=method,
            event=plan.event,
            budget=plan.budget,
            plan_hash=plan.hash,
            schema_hash=schema.hash,
            run="benchmark",
        )
        places = Path(folder) / "private" / "release.parquet", Path(folder) / "public" / "release.parquet"
        system.measure(Sensitive([records]), plan, Desk(ledger, charge, *places))
        return system.fit(read_release(places[1]), Craft(seed=seed))


@cache
def public(data: str, classes: bool = True) -> tuple[Schema, Records]:
    """Read the training rows of a public data set, with or without classes.

    Without them a table's target is a column as any other, and images, which must have one, are all of the first.
    """
    schema = load_schema(adult.SCHEMAS / f"{data}.yaml")
    if not classes and schema.image is None:
        schema = schema.model_copy(update={"target": None})
    records = Codec(schema).encode(pq.read_table(data_dir() / f"{data}_train.parquet").combine_chunks())
    if not classes and records.pixels is not None:
        records = Records(np.zeros_like(records.states), records.values, records.pixels)
    return schema, records


def make(method: str, changes: Changes, data: str, epsilon: float, seed: int, rows: int, classes: bool) -> Made:
    """Make images."""
    began = time.perf_counter()
    model = run(method, changes, data, epsilon, seed, classes)
    fitted = time.perf_counter()
    made = Records.concat(list(model.sample(rows, seed)))
    pixels = made.pixels
    if pixels is None:
        raise SystemExit(f"{data} has no images")
    images = Images((pixels / 255).astype(np.float32), made.states[:, 0].astype(np.int64))
    return Made(images, made, fitted - began, rows / (time.perf_counter() - fitted))


class Judges:
    """All that judges images of one data set."""

    def __init__(self, data: str, setting: Setting, kept: Path | None) -> None:
        self.data, self.setting, self.kept, weights = data, setting, kept, data_dir() / "lenet5_mnist.safetensors"
        self.images = ImageJudge(load(data_dir() / f"{data}_test.parquet"), weights)
        taught = load(data_dir() / f"{data}_train.parquet")
        self.lenet = LeNetScore(self.images.weights) if data == "mnist" else LeNetScore.taught(taught, epochs=3)
        self.schema, paths = public(data)[0], [data_dir() / f"{data}_{part}.parquet" for part in ("train", "test")]
        real, held = (Sensitive(Rows(self.schema, ParquetBatches(path, self.schema))) for path in paths)
        self.options = Options(workers=1, only=(ATTACK,))
        self.real = load_real(real, held, self.schema, self.options)

    def judge(self, made: Made, seed: int) -> Scores:
        """Score one release."""
        verdict = self.images.judge(made.images, self.setting.rows, self.setting.epochs, seed)
        found = evaluate_table(self.real, Rows(self.schema, [made.records]), self.options).reveal()["metrics"][ATTACK]
        if found["status"] != "done":
            raise SystemExit(f"the attack failed: {found}")
        attacks = {name: found["result"][name] for name in ATTACKS}
        return Scores(
            lenet_score=self.lenet.score(made.images.x),
            cnn=verdict.cnn,
            lenet_fid=verdict.lenet_fid,
            attacks=attacks,
            seconds=made.seconds,
            images_a_second=made.images_a_second,
        )


COLUMNS = ["LeNet score", "CNN", "LeNet-FID", "MIA accuracy", "its 95 % interval", "seconds", "images/s"]


def cells(judged: Sequence[Scores]) -> list[Any]:
    """Lay the scores of all seeds out under ``COLUMNS``."""
    scores = [[getattr(one, name) for one in judged] for name in ("lenet_score", "cnn", "lenet_fid")]
    low, high = (fmean(one.worst["accuracy_interval"][end] for one in judged) for end in (0, 1))
    mia = [one.worst["accuracy"] for one in judged]
    seconds, speed = [[round(getattr(one, name)) for one in judged] for name in ("seconds", "images_a_second")]
    return [*scores, mia, f"{low:.3f} to {high:.3f}", seconds, speed]


def attack_rows(table: Table, row: str, epsilon: float, judged: Sequence[Scores]) -> None:
    """Add what each attack found."""
    for name in ATTACKS:
        found = [one.attacks[name] for one in judged]
        low, high = (fmean(facts["auroc_interval"][end] for facts in found) for end in (0, 1))
        shares = [
            [facts[key] for facts in found] for key in ("true_positives_at_1_percent_false", "epsilon_lower_bound")
        ]
        auroc, right = ([facts[key] for facts in found] for key in ("auroc", "accuracy"))
        table.add(row, f"{epsilon:g}", name.replace("_", " "), auroc, f"{low:.3f} to {high:.3f}", right, *shares)


def release(judges: Judges, method: str, changes: Changes, epsilon: float, seed: int, classes: bool = True) -> Scores:
    """Make and judge one release and say so, or read what was kept of it."""
    setting = judges.setting
    settled = settle(method, public(judges.data, classes)[0], changes)
    release = f"{judges.data} {method} {json.dumps(settled)} {epsilon} {seed} {setting.rows} {setting.epochs}"
    release += "" if classes else " without classes"
    place = judges.kept / f"{hashlib.sha256(release.encode()).hexdigest()[:16]}.json" if judges.kept else None
    if place and place.exists():
        return Scores.model_validate_json(place.read_bytes())
    scores = judges.judge(make(method, changes, judges.data, epsilon, seed, setting.rows, classes), seed)
    if place:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(scores.model_dump_json())
    said = f"score {scores.lenet_score:.3f} CNN {scores.cnn:.4f} FID {scores.lenet_fid:.3f}"
    said += f" MIA {scores.worst['accuracy']:.3f} in {scores.seconds:.0f} s"
    print(f"{judges.data} {method} {dict(changes)} epsilon={epsilon} seed={seed}: {said}", file=sys.stderr, flush=True)
    return scores


def with_setting(method: str, changes: Changes, setting: Setting) -> Changes:
    """Add a setting's changes to those of a row; nacre-images has no such parameters."""
    return changes if method == "nacre-images" else merged(setting.changes, changes)


def main_table(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """All methods at all budgets."""
    setting, tables = setting_of(args), []
    for data in args.sets:
        judges = Judges(data, setting, args.kept)
        title = f"{data}, {setting.rows} synthetic images and {setting.epochs} epochs, {args.setting}, delta={DELTA}"
        table = Table(title, ["method", "epsilon", *COLUMNS])
        columns = ["method", "epsilon", "attack", "AUROC", "95 % interval", "accuracy", "found at 1 % false alarms"]
        attacks = Table(f"{data}, membership inference", [*columns, "epsilon shown (95 % confidence)"])
        real = load(data_dir() / f"{data}_train.parquet").take(np.random.default_rng(0).permutation(setting.rows))
        verdict = judges.images.judge(real, setting.rows, setting.epochs)
        table.add("real data", "–", judges.lenet.score(real.x), verdict.cnn, verdict.lenet_fid, *["–"] * 4)
        for epsilon in args.epsilons:
            for row in args.methods:
                method, changes = METHODS[row]
                changes = with_setting(method, changes, setting)
                judged = [release(judges, method, changes, epsilon, seed) for seed in seeds]
                table.add(row, f"{epsilon:g}", *cells(judged))
                attack_rows(attacks, row, epsilon, judged)
        tables += [table, attacks]
    return tables


def ablation(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Add each idea alone to dp-gan, take classes from it, and take each idea from dpkg; at the last budget."""
    setting, tables, epsilon = setting_of(args), [], args.epsilons[-1]
    for data in args.sets:
        judges = Judges(data, setting, args.kept)
        title = f"{data}, the ideas one by one, epsilon={epsilon:g}, {setting.steps or 'all'} steps, {args.setting}"
        table = Table(title, ["row", "clusters", "groups", "bounds", "rate", "told the class", *COLUMNS])
        for name, ideas in list(combinations().items())[: args.rows : 5 if args.quick else 1]:
            first = {"steps": setting.steps} if setting.steps else {}
            sgd = {**first, **{key: ideas[key] for key in ("groups", "bounds", "schedule")}}
            method = "dp-gan" if ideas["clusters"] == 1 else "dpkg"
            changes = {"sgd": sgd} | ({} if ideas["clusters"] == 1 else {"clusters": ideas["clusters"]})
            changes = with_setting(method, changes, setting)
            told = not name.startswith(UNTOLD)
            judged = [release(judges, method, changes, epsilon, seed, told) for seed in seeds]
            table.add(name, *(str(value) for value in ideas.values()), "yes" if told else "no", *cells(judged))
        tables.append(table)
    return tables


def combinations() -> dict[str, dict[str, Any]]:
    """Name what of the paper each row of the ablation has."""
    rows = {"none of them: dp-gan": PLAIN}
    rows |= {f"none but: {idea}": {**PLAIN, key: PAPER[key]} for idea, key in IDEAS.items()}
    rows |= {UNTOLD: PLAIN, f"{UNTOLD}, 2 clusters": {**PLAIN, "clusters": 2}}
    rows |= {f"{UNTOLD}, 10 clusters": {**PLAIN, "clusters": 10}, "all four of the paper": PAPER}
    return rows | {f"all but: {idea}": {**PAPER, key: PLAIN[key]} for idea, key in IDEAS.items()}


def warm(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Hold a refined release against what it started from: the same share of the budget, and the whole of it."""
    setting, tables = setting_of(args), []
    for data in args.sets:
        judges = Judges(data, setting, args.kept)
        title = f"{data}, warm start, {setting.rows} synthetic images and {setting.epochs} epochs, {args.setting}"
        table = Table(title, ["method", "epsilon", *COLUMNS])
        for epsilon in args.epsilons:
            for row, method, changes in (
                (
                    "its start, share of the budget",
                    "dpkg",
                    {**CLUSTERS, **WARM, "sgd": {"steps": 1, "learning_rate": 1e-9}},
                ),
                ("dpkg, warm", "dpkg", {**CLUSTERS, **WARM}),
                ("nacre-images, whole budget", "nacre-images", {}),
            ):
                judged = [
                    release(judges, method, merged(with_setting(method, {}, setting), changes), epsilon, seed)
                    for seed in seeds
                ]
                table.add(row, f"{epsilon:g}", *cells(judged))
        tables.append(table)
    return tables


def adult_table(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Adult by the four classifiers."""
    judge = adult.official_judge()
    columns = ["method", "AUROC", "AUPRC", "TVD 1-way", "TVD 2-way", "seconds"]
    table = Table(f"Adult, four classifiers, epsilon={ADULT_EPSILON:g}, delta={DELTA}", columns, digits=4)
    codec = Codec(public("adult")[0])
    for name in args.variants:
        method, varied = ADULT[name]
        changes = merged(setting_of(args).tables, varied) if method in ("dp-gan", "dpkg") else varied
        found = []
        for seed in seeds:
            began = time.perf_counter()
            model = run(method, changes, "adult", ADULT_EPSILON, seed, classes=name != WITHOUT_CLASSES)
            made = codec.decode(Records.concat(list(model.sample(model.default_rows(), seed)))).to_pandas()
            seconds, verdict = time.perf_counter() - began, judge.judge(made)
            found.append((verdict.auroc, verdict.auprc, verdict.tvd_1_way, verdict.tvd_2_way, seconds))
            print(f"adult {name} seed={seed}: {verdict}", file=sys.stderr, flush=True)
        table.add(name, *(list(column) for column in zip(*found, strict=True)))
    return [table]


def speed(args: Namespace, seeds: Sequence[int]) -> list[Table]:
    """Time both steps by turns, in one process, without the generator's."""
    columns = ["data set", "method", "batch", "DP-SGD", "not private", "ratio"]
    table = Table("milliseconds a step of the critic, medians", columns, digits=2)
    for data in ("mnist", "adult"):
        for method in ("dp-gan", "dpkg"):
            table.add(data, method, *step_times(method, data, 10 if args.quick else 40))
    return [table]


def step_times(method: str, data: str, repeats: int) -> tuple[int, float, float, float]:
    """Return the batch size, the median milliseconds of both steps, and their ratio."""
    schema, records = public(data)
    chosen = create(method, settle(method, schema, {"clusters": 2} if method == "dpkg" else {}), {})
    if not isinstance(chosen, PrivateTraining):
        raise SystemExit(f"{method} is not trained in private")
    system = chosen.design(chosen.settled(schema), schema)
    counts, _ = exact(system, records)
    private, plain = (system.networks(counts, start=False).objectives[0] for _ in range(2))
    for objective in (private, plain):
        objective.due = repeats + 1
    sgd = system.sgd.model_copy(update={"steps": repeats})
    own = transform_targets(transform_vectors(system.vectors, Sensitive([records])))
    stepping = DpSgd(private, sgd, Noise(1.0, len(records)), bytes(32)).train(own)
    adam, size = torch.optim.Adam(plain.critic.parameters()), round(sgd.sampling_probability * len(records))
    rng, randomness, times = np.random.default_rng(0), torch.Generator().manual_seed(0), []
    for _ in range(repeats):
        began = time.perf_counter()
        next(stepping)
        middle = time.perf_counter()
        batch = torch.from_numpy(rng.choice(len(records), size, replace=False))
        xi = torch.randn((size, *plain.normals), generator=randomness)
        plain(*(tensor[batch] for tensor in own.reveal()), xi).mean().backward()
        adam.step()
        adam.zero_grad()
        times.append((middle - began, time.perf_counter() - middle))
    private_ms, plain_ms = 1000 * np.median(times[2:], axis=0)
    return size, float(private_ms), float(plain_ms), float(private_ms / plain_ms)


PARTS: dict[str, Callable[[Namespace, Sequence[int]], list[Table]]] = {
    "table": main_table,
    "ablation": ablation,
    "warm": warm,
    "adult": adult_table,
    "speed": speed,
}


def main() -> None:
    args = parse(__doc__, options)
    seeds = args.seeds or SEEDS[: 1 if args.quick else None]
    args.methods = args.methods or (QUICK_METHODS if args.quick else list(METHODS))
    args.variants = args.variants or (QUICK_VARIANTS if args.quick else list(ADULT))
    if args.quick:
        args.sets, args.epsilons = args.sets[:1], args.epsilons[-1:]
    report("dpkg", [table for part in args.parts for table in PARTS[part](args, seeds)], seeds, args)


if __name__ == "__main__":
    main()
