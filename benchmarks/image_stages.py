"""Where images lose what a CNN learns from: real ones through each stage of nacre-images, and releases of two recipes.

Every image is coded once, so that a release takes seconds and many can be compared. A release here is what the command
line releases: the same plan, the same sums, the same exact noise, the same fit; only no ledger pays, because the data
sets are public.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.judge_images import Images
from dpmodels.accounting.events import leaves
from dpmodels.arrays import Whole
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.image_moments import BLOCK_ROWS, DIRECTION_BITS, ImageCode, ImageMoments
from dpmodels.generators.images import ImageModel, Painter, textured
from dpmodels.mechanisms.gaussian import lattice_noise_stddev, measure_gaussian
from dpmodels.methods.images.image_moments import NacreImages
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.steps import NoisySum
from dpmodels.releases.system import Craft

Looks = tuple[NoisySum, NoisySum]
NO_NOISE = 1.0
"""Standard deviation, in lattice steps, that stands for none where something is divided by it."""


class Studio:
    """One data set, coded as one recipe codes it."""

    def __init__(self, images: Images, schema: Schema, system: NacreImages, budget: PrivacyBudget) -> None:
        self.images, self.system, self.budget = images, system, budget
        self.line = system.plan(schema, budget)
        self.looks = system.of(self.line)

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """The codes of all images, which fit into 32 bits. Shapes: [n, dim]."""
        pixels = np.rint(255 * self.images.x).astype(np.uint8)
        return np.concatenate([self.looks.code.encode(part).astype(np.int32) for part in _blocks(pixels)])

    @cached_property
    def first(self) -> Whole:
        """The exact sum of the first look, which no release changes."""
        return self._sum(self.looks.first)

    def release(self, *, noise: bool = True) -> Looks:
        """Take both looks, with the noise of the plan or without any."""
        events = [event.noise_multiplier for event in leaves([self.line.event])]  # type: ignore[union-attr]
        first = self._released(self.looks.first, self.first, events[0], noise)
        second = self.looks.second(self.looks.choose(first.vector, first.noise_stddev))
        return first, self._released(second, self._sum(second), events[1], noise)

    def fit(self, looks: Looks, seed: int) -> ImageModel:
        """Fit the generator to a release."""
        return self.system.fit_looks(self.looks, *looks, Craft(seed=seed))

    def sample(self, model: ImageModel, rows: int, seed: int) -> Images:
        """Sample images."""
        made = list(model.sample(rows, seed))
        pixels = np.concatenate([batch.pixels for batch in made if batch.pixels is not None])
        return _images(pixels, np.concatenate([batch.states[:, 0] for batch in made]))

    def through(self, painter: Painter, texture: float, rows: int, seed: int, turned: Whole | None = None) -> Images:
        """Draw real images from their codes, or from what is left of the codes along some directions.

        Shapes: ``turned`` [dim, d], in steps of ``2**-DIRECTION_BITS``.
        """
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(len(self.codes))[:rows]
        codes, labels = self.codes[chosen].astype(np.float64), self.images.y[chosen]
        if turned is not None:
            codes = (codes - painter.centres[labels]) @ np.ldexp(turned.astype(np.float64), -DIRECTION_BITS)
        drawn = [painter.paint(z, y) for z, y in zip(_blocks(codes), _blocks(labels), strict=True)]
        return _images(textured(np.concatenate(drawn), texture, rng), labels)

    def _sum(self, embedding: ImageMoments) -> Whole:
        total = np.zeros(embedding.dim, dtype=np.int64)
        for codes, labels in zip(_blocks(self.codes), _blocks(self.images.y), strict=True):
            total += embedding.total(embedding.bounded(codes.astype(np.int64), labels), labels)
        return total

    def _released(self, embedding: ImageMoments, exact: Whole, multiplier: float, noise: bool) -> NoisySum:
        if not noise:
            return NoisySum(exact, NO_NOISE, embedding)
        scale = self.looks.first.l2_sensitivity, multiplier
        noisy = measure_gaussian(Sensitive(exact), l2_sensitivity=scale[0], noise_multiplier=multiplier).value
        return NoisySum(noisy, lattice_noise_stddev(*scale), embedding)


def stages(studio: Studio, rows: int, seed: int) -> list[tuple[str, Callable[[], Images]]]:
    """Name the stages of the generator, with what makes real images as each leaves them; the last alone has noise.

    The texture is free and the same for all, so it is left out once where it shows what it is worth.
    """
    looks = studio.release(noise=False)
    exact, clip = studio.fit(looks, seed), looks[1].embedding.clip
    noisy = studio.fit(studio.release(), seed)
    whole, texture = _whole(studio.looks.code, exact.painter), exact.texture
    inverse = np.linalg.pinv(np.ldexp(clip.directions.astype(np.float64), -DIRECTION_BITS))
    along = replace(exact.painter, decoder=inverse, centres=clip.centres.astype(np.float64))
    size, kept = studio.looks.code.basis.shape[1], studio.looks.size
    return [
        ("real images", lambda: studio.images),
        (f"code of {size} functions, no texture", lambda: studio.through(whole, 0.0, rows, seed)),
        (f"code of {size} functions", lambda: studio.through(whole, texture, rows, seed)),
        (f"and {kept} directions", lambda: studio.through(along, texture, rows, seed, clip.directions)),
        ("and one Gaussian a class", lambda: studio.sample(exact, rows, seed)),
        ("and noise", lambda: studio.sample(noisy, rows, seed)),
        ("and noise, no texture", lambda: studio.sample(replace(noisy, texture=0.0), rows, seed)),
    ]


def _whole(code: ImageCode, painter: Painter) -> Painter:
    """Return a painter that draws codes themselves, so that its latent vectors are codes."""
    return replace(painter, decoder=np.eye(code.dim), centres=np.zeros_like(painter.centres))


def _images(pixels: NDArray[np.uint8], labels: NDArray[np.int64] | NDArray[np.int32]) -> Images:
    return Images(pixels.astype(np.float32) / 255, labels.astype(np.int64))


def _blocks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (array[start : start + BLOCK_ROWS] for start in range(0, len(array), BLOCK_ROWS))
