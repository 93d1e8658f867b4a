"""MNIST and Fashion-MNIST: accuracy of a CNN trained on synthetic images, and the LeNet distance of PEARL.

At epsilon 1 with every seed, beside published numbers and the real training set; at the other epsilons with the first.
Runs of parts, each kept with --json, are put together by --join.
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
from benchmarks.judge_images import ImageJudge, Images, Verdict

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
    parser.add_argument("--epochs", type=int, help="of the CNN, as judge_images.py --epochs")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw accuracy against epsilon")
    parser.add_argument("--join", nargs="+", type=Path, metavar="FILE.json", help="run nothing: show these records")


def load(path: Path) -> Images:
    """Read images and labels from a Parquet file or folder."""
    table = pq.read_table(path)
    pixels = table["image"].combine_chunks().flatten().to_numpy().reshape(table.num_rows, -1)
    return Images(pixels.astype(np.float32) / 255, table["label"].to_numpy().astype(np.int64))


def synthesize(
    name: str, epsilon: float, seed: int, folder: Path, method: str = "nacre-images"
) -> tuple[Images, float, float]:
    """Run the command line in a process of its own: the images, wall seconds, peak MiB."""
    words = {
        "--schema": ROOT / "benchmarks" / "schemas" / f"{name}.yaml",
        "--target-epsilon": epsilon,
        "--delta": DELTA,
        "--method": method,
        "--seed": seed,
        "--out": folder / "out",
        "--home": folder / "home",
    }
    data = data_dir() / f"{name}_train.parquet"
    command = [sys.executable, "-m", "nacre", "synthesize", data, "--no-prefect"]
    ran = measure([str(word) for word in [*command, *(w for pair in words.items() for w in pair)]], cwd=ROOT)
    if ran.code:
        raise SystemExit(f"nacre synthesize failed:\n{ran.output}")
    return load(folder / "out" / "synthetic"), ran.seconds, ran.peak_mib


def scores_table(name: str, args: Namespace, seeds: Sequence[int]) -> Table:
    """Judge one data set; published numbers are at epsilon 1."""
    usual = QUICK if args.quick else FULL
    rows, epochs = args.rows or usual[0], args.epochs or usual[1]
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
        tables = [scores_table(name, args, seeds) for name in args.sets]
        report("images", tables, seeds, args)
    if args.plot:
        plot(tables, args.plot)


if __name__ == "__main__":
    main()
