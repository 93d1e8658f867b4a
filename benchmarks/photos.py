"""CIFAR-10 (a sample of 15,000 images) by nacre-photos: judged by a CNN and by the light judge, and where it loses.

scores     the command line's releases at each epsilon with every seed, beside the real images
ceilings   real images through each stage of the generator, without noise up to the last, by the light judge
"""

import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.common import ROOT, Table, data_dir, parse, report
from benchmarks.images import DELTA, load, synthesize
from benchmarks.judge_images import ImageJudge, Images, LightJudge
from dpmodels.accounting.events import leaves
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.photo_moments import UNIT, PhotoCode, PhotoMoments
from dpmodels.generators.photos import PhotoModel
from dpmodels.mechanisms.gaussian import lattice_noise_stddev, measure_gaussian
from dpmodels.methods.images.photo_moments import NacrePhotos, fitted
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.steps import NoisySum

TRAIN, TEST = "cifar10_train15k.parquet", "cifar10_test5k.parquet"
EPSILONS, ROWS, FILTERS = (1.0, 10.0), 15_000, 32


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1], help="of nacre-photos")
    parser.add_argument("--stages", nargs="+", default=[""], help="of the ceilings: those whose names hold such a word")
    parser.add_argument("--epochs", type=int, default=5, help="of the CNN; 0 leaves it out")


class Jury:
    """Both judges."""

    def __init__(self, epochs: int) -> None:
        self.real, test = load(data_dir() / TRAIN), load(data_dir() / TEST)
        self.epochs, self.cnn, self.light = epochs, ImageJudge(test, None), LightJudge(test, filters=FILTERS)

    def scores(self, made: Images, seed: int) -> list[float]:
        """Return the accuracy of the CNN, and of the light judge, on the real test images."""
        cnn = [self.cnn.judge(made, ROWS, self.epochs, seed).cnn] if self.epochs else []
        return [*cnn, self.light.accuracy(made)]


def scores_table(args: Namespace) -> Table:
    """Judge releases of the command line beside the real images."""
    jury = Jury(args.epochs)
    title = f"cifar10, CNN on {ROWS} images and {args.epochs} epochs, delta={DELTA}"
    columns = ["method", "epsilon", *["CNN"][: args.epochs], "light judge", "seconds", "peak MiB"]
    table = Table(title, columns, digits=4)
    table.add("real data", "–", *jury.scores(jury.real, 0), "–", "–")
    print(table.rows[-1], file=sys.stderr, flush=True)
    for epsilon in args.epsilons:
        found: list[list[float]] = []
        for seed in args.seeds:
            with tempfile.TemporaryDirectory() as folder:
                made, seconds, peak = synthesize("cifar10", epsilon, seed, Path(folder), "nacre-photos", TRAIN)
            found.append([*jury.scores(made, seed), seconds, peak])
            print(f"epsilon={epsilon} seed={seed}: {found[-1]}", file=sys.stderr, flush=True)
        table.add("nacre-photos", epsilon, *map(list, zip(*found, strict=True)))
    return table


def ceilings_table(args: Namespace) -> Table:
    """Judge real images after each stage of the generator."""
    jury = Jury(0)
    schema = load_schema(ROOT / "benchmarks" / "schemas" / "cifar10.yaml")
    table = Table("cifar10, ceilings, light judge", ["stage", "accuracy"], digits=4)
    for stage, images in stages(jury.real, schema, args.epsilons):
        if any(word in stage for word in args.stages):
            table.add(stage, [jury.light.accuracy(images()) for _ in args.seeds[: None if "noise" in stage else 1]])
            print(table.rows[-1], file=sys.stderr, flush=True)
    return table


def stages(real: Images, schema: Schema, epsilons: list[float]) -> Iterator[tuple[str, Callable[[], Images]]]:
    """Name the stages, with what makes real images as each leaves them; the last have noise, drawn anew each time."""
    pixels = np.rint(255 * real.x).astype(np.uint8)
    records = Records(real.y.astype(np.int32)[:, None], np.zeros((len(real.y), 1)), pixels)
    system = NacrePhotos()
    looks, spec, rows = system.design(system.measurement, schema), system.measurement, len(real.y)

    @cache
    def exact() -> tuple[PhotoMoments, np.ndarray]:
        first = looks.first.lattice_sum(records).numpy()
        second = looks.second(looks.choose(first, 1.0))
        return second, second.lattice_sum(records).numpy()

    def fit(epsilon: float | None) -> PhotoModel:
        embedding, total = exact()
        if epsilon is None:  # a noise so small that it stands for none
            return fitted(NoisySum(total, 1.0, embedding), spec, system.training, schema)
        event = list(leaves([system.plan(schema, PrivacyBudget(epsilon=epsilon, delta=DELTA)).event]))[1]
        scale = embedding.l2_sensitivity, event.noise_multiplier  # type: ignore[union-attr]
        noisy = measure_gaussian(Sensitive(total), l2_sensitivity=scale[0], noise_multiplier=scale[1]).value
        return fitted(NoisySum(noisy, lattice_noise_stddev(*scale), embedding), spec, system.training, schema)

    yield "real images", lambda: real
    yield f"{looks.code.dim} cosines, no texture", lambda: coded(looks.code, real, pixels, 0.0)
    yield f"{looks.code.dim} cosines", lambda: coded(looks.code, real, pixels, spec.texture)
    yield "and one Gaussian a class", lambda: sample(fit(None), rows)
    for epsilon in epsilons:
        name = f"and noise of epsilon {epsilon:g}"
        yield name, lambda epsilon=epsilon: sample(fit(epsilon), rows)  # type: ignore[misc]
    yield f"{name}, no texture", lambda: sample(replace(fit(epsilons[-1]), texture=0.0), rows)


def coded(code: PhotoCode, real: Images, pixels: np.ndarray, texture: float) -> Images:
    """Draw real images from their codes."""
    rng, parts = np.random.default_rng(0), []
    for block in np.array_split(pixels, 16):
        every = rng.standard_normal((len(block), len(code.prior)), dtype=np.float32)
        every *= (texture * np.sqrt(code.prior)).astype(np.float32)
        every[:, code.flat_indices] = code.encode(block) / UNIT / code.weights
        parts.append(code.draw(every))
    return Images(np.concatenate(parts).astype(np.float32) / 255, real.y)


def sample(model: PhotoModel, rows: int) -> Images:
    """Sample images."""
    made = Records.concat(list(model.sample(rows, 0)))
    if made.pixels is None:
        raise ValueError("the model made no images")
    return Images(made.pixels.astype(np.float32) / 255, made.states[:, 0].astype(np.int64))


PARTS = {"scores": scores_table, "ceilings": ceilings_table}


def main() -> None:
    args = parse(__doc__, options)
    report("photos", [PARTS[part](args) for part in args.parts], args.seeds, args)


if __name__ == "__main__":
    main()
