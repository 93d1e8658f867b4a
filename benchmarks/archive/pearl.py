"""PEARL's Table 1: FID and KID on MNIST and Fashion-MNIST by the features of its LeNet-5, beside the paper's figures.

Every image comes out of the command line at the defaults of the product; "without critic" sets that alone, and "mean
distance" puts the mean distance of two private images, without noise and free of charge, in place of the public one. An
epsilon of 1000 stands for the paper's infinity: next to no noise is left there. FID: mean and deviation over 10
bootstrap resamplings of the made images; KID: over 10 draws of 100 made and 100 real ones, without replacement. Both
are against the real test images. Records of --json are put together by --join.
"""

import json
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.common import Table, data_dir, parse, report
from benchmarks.images import load, synthesize
from benchmarks.judge_images import ImageJudge, Images
from dpmodels.contract.image import Image
from dpmodels.embeddings.pixels import PixelSpec, distance

INFINITE = 1000.0
EPSILONS = (INFINITE, 10.0, 1.0, 0.2)
BOOTSTRAPS, QUICK_BOOTSTRAPS = 10, 2
PAPER = {
    "mnist": {"DP-MERF": (49.9, 148), "PEARL, without critic": (3.79, 77.8), "PEARL": (3.52, 70.5)},
    "fashion_mnist": {"DP-MERF": (37.0, 1220), "PEARL, without critic": (1.99, 24.0), "PEARL": (1.92, 26.9)},
}
"""Table 1 of the paper, at epsilon 1: FID, and KID times 1000."""
METHODS = ("dp-merf", "pearl, without critic", "pearl, mean distance", "pearl", "nacre-images")


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", default=list(PAPER), choices=list(PAPER))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--join", nargs="+", type=Path, metavar="FILE.json", help="run nothing: show these records")


def settings(method: str, real: Images, quick: bool) -> dict[str, Any]:
    """Return what a row sets of the model beside the product's defaults."""
    training: dict[str, Any] = {"critic": False} if method == "pearl, without critic" else {}
    if quick and not method.startswith("nacre"):
        training["steps"] = 5
    if method != "pearl, mean distance":
        return {"training": training}
    ratio, usual = distance(Image(type="image", height=28, width=28)) / mean_distance(real), PixelSpec()
    scales = {"scale_low": ratio * usual.scale_low, "scale_high": ratio * usual.scale_high}
    return {"training": training, "measurement": {"frequencies": scales}}


def mean_distance(images: Images, pairs: int = 20_000) -> float:
    """Return the mean distance of two images, of pairs that are drawn."""
    first, second = np.random.default_rng(0).integers(0, len(images.x), (2, pairs))
    return float(np.linalg.norm(images.x[first] - images.x[second], axis=1).mean())


def table_of(name: str, args: Namespace) -> Table:
    """Judge every method at every epsilon on one data set."""
    table = Table(f"{name}, delta=1e-5", ["method", "epsilon", "FID", "KID x 1000", "seconds", "peak MiB"], digits=2)
    for method, (frechet, kernel) in PAPER[name].items():
        table.add(f"{method}, as published", 1.0, frechet, float(kernel), "–", "–")
    judge = ImageJudge(load(data_dir() / f"{name}_test.parquet"), data_dir() / "lenet5_mnist.safetensors")
    real = load(data_dir() / f"{name}_train.parquet")
    for method in args.methods:
        for epsilon in args.epsilons:
            with tempfile.TemporaryDirectory() as folder:
                config = Path(folder) / "config.yaml"
                config.write_text(yaml.safe_dump({"model": settings(method, real, args.quick)}))
                base = method.split(",")[0]
                made, seconds, peak = synthesize(name, epsilon, args.seed, Path(folder), base, config=config)
            distances, kernels = scores(judge, made, QUICK_BOOTSTRAPS if args.quick else BOOTSTRAPS)
            table.add(method, epsilon, distances, kernels, seconds, peak)
            print(f"{name} {' | '.join(table.shown(table.rows[-1]))}", file=sys.stderr, flush=True)
    return table


def scores(judge: ImageJudge, made: Images, times: int) -> tuple[list[float], list[float]]:
    """Return FID and 1000 KID of resamplings."""
    features, rng = judge.features(made.x), np.random.default_rng(0)
    resampled = [features[rng.integers(0, len(features), len(features))] for _ in range(times)]
    return [judge.frechet_of(one) for one in resampled], [1000 * judge.kernel(features, rng) for _ in range(times)]


def join(records: Sequence[dict[str, Any]]) -> list[Table]:
    """Put the rows of several runs together, one table for each data set."""
    tables: dict[str, Table] = {}
    for one in (table for record in records for table in record["tables"]):
        table = tables.setdefault(one["title"], Table(one["title"], one["columns"], one["digits"]))
        table.rows += [row for row in one["rows"] if row not in table.rows]
    names = [f"{paper}, as published" for paper in PAPER["mnist"]] + list(METHODS)
    for table in tables.values():
        table.rows.sort(key=lambda row: (names.index(str(row[0])), -float(str(row[1]))))
    return list(tables.values())


def main() -> None:
    args = parse(__doc__, options)
    if args.quick:
        args.sets, args.epsilons = args.sets[:1], args.epsilons[:1]
    records = [json.loads(path.read_text()) for path in args.join or ()]
    tables = join(records) if records else [table_of(name, args) for name in args.sets]
    report("pearl", tables, [args.seed], args)


if __name__ == "__main__":
    main()
