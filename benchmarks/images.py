"""MNIST and Fashion-MNIST: accuracy of a CNN trained on synthetic images, and the LeNet distance of PEARL.

scores     at epsilon 1 with every seed, beside published numbers and the real training set; at the other epsilons with
           the first. Runs of parts of these, each kept with --json, are put together by --join.
ceilings   real images through each stage of the generator, without noise up to the last: which stage loses
paired     releases of the method as it is beside those of --recipes, seed by seed
"""

import json
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.common import ROOT, Table, data_dir, measure, parse, plot_sweep, report
from benchmarks.image_stages import Looks, Studio, stages
from benchmarks.judge_images import ImageJudge, Images, LightJudge, Verdict
from dpmodels.authoring.lint import load_schema
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget

EPSILON, DELTA = 1.0, 1e-5
EPSILONS = (0.2, 1.0, 3.0, 10.0)
SEEDS, QUICK_SEEDS = (0, 1, 2), (0,)
FULL, QUICK = (60_000, 10), (20_000, 3)
"""Synthetic images and epochs of the CNN."""
PUBLISHED = {
    "mnist": {"PEARL": (0.782, 3.52), "DPDM": (0.953, "–")},
    "fashion_mnist": {"PEARL": (0.683, 1.92), "DPDM": (0.794, "–")},
}
METHODS = ("real data", "nacre-images")
SCORES = ("cnn", "cnn_last", "lenet_fid")


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, help="of nacre-images; one is no result")
    parser.add_argument("--rows", type=int, help="images that the CNN is trained on")
    parser.add_argument("--epochs", type=int, help="of the CNN; 0 leaves the CNN out of ceilings and pairs")
    parser.add_argument("--parts", nargs="+", default=["scores"], choices=list(PARTS))
    parser.add_argument("--recipes", nargs="+", type=json.loads, default=[], help="measurement and training, as JSON")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw accuracy against epsilon")
    parser.add_argument("--join", nargs="+", type=Path, metavar="FILE.json", help="run nothing: show these records")


def load(path: Path) -> Images:
    """Read images and labels from a Parquet file or folder."""
    table = pq.read_table(path)
    pixels = table["image"].combine_chunks().flatten().to_numpy().reshape(table.num_rows, -1)
    return Images(pixels.astype(np.float32) / 255, table["label"].to_numpy().astype(np.int64))


def synthesize(
    name: str,
    epsilon: float,
    seed: int,
    folder: Path,
    method: str = "nacre-images",
    file: str = "",
    config: Path | None = None,
) -> tuple[Images, float, float]:
    """Run the command line in a process of its own: the images, wall seconds, peak MiB."""
    words = {
        "--schema": ROOT / "benchmarks" / "schemas" / f"{name}.yaml",
        "--epsilon": epsilon,
        "--delta": DELTA,
        "--method": method,
        "--seed": seed,
        "--out": folder / "out",
        "--home": folder / "home",
    }
    data = data_dir() / (file or f"{name}_train.parquet")
    command = [sys.executable, "-m", "nacre", "synthesize", data, "--no-prefect"]
    if config:
        words["--config"] = config
    ran = measure([str(word) for word in [*command, *(w for pair in words.items() for w in pair)]], cwd=ROOT)
    if ran.code:
        raise SystemExit(f"nacre synthesize failed:\n{ran.output}")
    return load(folder / "out" / "synthetic"), ran.seconds, ran.peak_mib


def scores_table(name: str, args: Namespace, seeds: Sequence[int]) -> Table:
    """Judge one data set; published numbers are at epsilon 1."""
    rows, epochs = effort(args)
    judge = ImageJudge(load(data_dir() / f"{name}_test.parquet"), data_dir() / "lenet5_mnist.safetensors")
    title = f"{name}, CNN on {rows} images and {epochs} epochs, delta={DELTA}"
    table = Table(title, ["method", "epsilon", "CNN", "CNN, last epoch", "LeNet-FID", "seconds", "peak MiB"], digits=4)
    for method, (accuracy, distance) in PUBLISHED[name].items():
        table.add(f"{method}, as published", EPSILON, accuracy, "–", distance, "–", "–")
    if "real data" in args.methods:
        real = judge.judge(load(data_dir() / f"{name}_train.parquet"), rows, epochs)
        table.add("real data", "–", *(getattr(real, score) for score in SCORES), "–", "–")
    for epsilon in args.epsilons if "nacre-images" in args.methods else ():
        verdicts: list[Verdict] = []
        seconds, peaks = [], []
        for seed in seeds if epsilon == EPSILON else seeds[:1]:
            with tempfile.TemporaryDirectory() as folder:
                made, second, peak = synthesize(name, epsilon, seed, Path(folder))
            verdicts.append(judge.judge(made, rows, epochs, seed))
            seconds.append(second)
            peaks.append(peak)
            print(
                f"{name} epsilon={epsilon} seed={seed}: {verdicts[-1]} in {second:.0f} s", file=sys.stderr, flush=True
            )
        scores = [[getattr(v, score) for v in verdicts] for score in SCORES]
        table.add("nacre-images", epsilon, *scores, seconds, peaks)
    return table


def effort(args: Namespace) -> tuple[int, int]:
    """Return the number of images and of epochs that the CNN is given."""
    rows, epochs = QUICK if args.quick else FULL
    return args.rows or rows, epochs if args.epochs is None else args.epochs


class Jury:
    """The judges of one data set, and studios that make images for them."""

    def __init__(self, name: str, args: Namespace) -> None:
        test = load(data_dir() / f"{name}_test.parquet")
        self.name, (self.rows, self.epochs) = name, effort(args)
        self.judge = ImageJudge(test, data_dir() / "lenet5_mnist.safetensors")
        self.light = LightJudge(test)
        self.real = load(data_dir() / f"{name}_train.parquet")
        self.schema = load_schema(ROOT / "benchmarks" / "schemas" / f"{name}.yaml")

    def studio(self, recipe: dict[str, Any]) -> Studio:
        """Return a studio for settings as a configuration file has them."""
        system = create("nacre-images", recipe.get("measurement", {}), recipe.get("training", {}))
        return Studio(self.real, self.schema, system, PrivacyBudget(epsilon=EPSILON, delta=DELTA))

    def scores(self, made: Images, seed: int) -> list[float]:
        """Return what the CNN, if it has epochs, the light judge and the LeNet say."""
        made = made.take(np.random.default_rng(seed).permutation(len(made.x))[: self.rows])
        cnn = [self.judge.judge(made, self.rows, self.epochs, seed).cnn] if self.epochs else []
        return [*cnn, self.light.accuracy(made), self.judge.frechet(made.x)]

    def table(self, what: str, label: str) -> Table:
        """Return an empty table of these judges."""
        title = f"{self.name}, {what}, CNN on {self.rows} images and {self.epochs} epochs, delta={DELTA}"
        return Table(title, [label, *["CNN"][: self.epochs], "light judge", "LeNet-FID"], digits=4)


def ceilings_table(name: str, args: Namespace, seeds: Sequence[int]) -> Table:
    """Judge real images after each stage of the generator; each loses what the one before it lost, and something."""
    jury = Jury(name, args)
    table, studio = jury.table("ceilings", "stage"), jury.studio({})
    found: dict[str, list[list[float]]] = {}
    for seed in seeds:
        for stage, images in stages(studio, jury.rows, seed):
            found.setdefault(stage, []).append(jury.scores(images(), seed))
            print(f"{name} seed={seed} {stage}: {found[stage][-1]}", file=sys.stderr, flush=True)
    for stage, scores in found.items():
        table.add(stage, *zip(*scores, strict=True))
    return table


def paired_table(name: str, args: Namespace, seeds: Sequence[int]) -> Table:
    """Judge releases of the method as it is and of other recipes, and what each gains seed by seed.

    Recipes that measure the same are fitted to the same release.
    """
    jury = Jury(name, args)
    recipes = {"as it is": {}, **{json.dumps(recipe): recipe for recipe in args.recipes}}
    studios = {label: jury.studio(recipe) for label, recipe in recipes.items()}
    found: dict[str, list[list[float]]] = {label: [] for label in recipes}
    for seed in seeds:
        released: dict[str, Looks] = {}
        for label, studio in studios.items():
            if studio.line.hash not in released:
                released[studio.line.hash] = studio.release()
            model = studio.fit(released[studio.line.hash], seed)
            found[label].append(jury.scores(studio.sample(model, jury.rows, seed), seed))
            print(f"{name} seed={seed} {label}: {found[label][-1]}", file=sys.stderr, flush=True)
    table, first = jury.table("paired", "recipe"), np.array(found["as it is"])
    for label, scores in found.items():
        table.add(label, *zip(*scores, strict=True))
        if label != "as it is":
            table.add("gain", *(np.array(scores) - first).T)
    return table


PARTS = {"scores": scores_table, "ceilings": ceilings_table, "paired": paired_table}


def join(records: Sequence[dict[str, Any]]) -> list[Table]:
    """Put the tables of several runs of one judge together, one for each data set; runs of one row become one."""
    tables: dict[str, Table] = {}
    for found in (table for record in records for table in record["tables"]):
        title = found["title"]
        table = tables.setdefault(title.split(",")[0], Table(title, found["columns"], found["digits"]))
        if table.title != title:
            raise SystemExit(f"not of one judge: {table.title!r} and {title!r}")
        for row in found["rows"]:
            same = [old for old in table.rows if old[:2] == row[:2]]
            if not same:
                table.rows.append(list(row))
            elif row[0] == "nacre-images":
                same[0][2:] = [old + new for old, new in zip(same[0][2:], row[2:], strict=True)]
    for table in tables.values():
        table.rows.sort(key=lambda row: (row[0] == "nacre-images", row[0] == "real data", row[1]))
    return list(tables.values())


def plot(tables: Sequence[Table], path: Path) -> None:
    """Draw the accuracy of nacre-images against epsilon, and the real data's as a dashed line."""
    curves, ceilings = {}, {}
    for table in tables:
        name = table.title.split(",")[0]
        curves[name] = [(row[1], float(np.mean(row[2]))) for row in table.rows if row[0] == "nacre-images"]
        for row in (row for row in table.rows if row[0] == "real data"):
            ceilings[name] = float(np.mean(row[2]))
    judge = tables[0].title.split(",")[1].strip()
    plot_sweep(path, curves, ceilings, f"accuracy, {judge}".replace(" images and", "\nimages and"))


def main() -> None:
    args = parse(__doc__, options)
    seeds = args.seeds or (QUICK_SEEDS if args.quick else SEEDS)
    if args.join:
        records = [json.loads(path.read_text()) for path in args.join]
        tables = join(records)
        print("\n\n".join(table.markdown() for table in tables) + "\n")
        print("\n".join(sorted({f"{of['date'][:10]}, commit {of['commit']}, seeds {of['seeds']}" for of in records})))
    else:
        tables = [PARTS[part](name, args, seeds) for part in args.parts for name in args.sets]
        report("images", tables, seeds, args)
    if args.plot:
        plot(tables, args.plot)


if __name__ == "__main__":
    main()
