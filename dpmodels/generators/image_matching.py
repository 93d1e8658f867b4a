"""Fit the Gaussians of an image generator so that its images have the released moments (post-processing).

Drawing clips ink to [0, 1], resamples and rounds; an image's moments are therefore not those of the latent Gaussian.
So each round draws images, measures them as the real ones were measured, and moves the Gaussian by what is missing:

    mean <- mean + rate (released mean - drawn mean)      covariance <- [covariance + rate (released - drawn)]+

and the center of a class likewise, in what the directions of the second look leave out, by the means of the first.

The round that came closest is kept, class by class.
"""

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from dpmodels.arrays import Floats
from dpmodels.embeddings.image_moments import CODE_BITS, DIRECTION_BITS, ImageMoments
from dpmodels.frozen import Frozen
from dpmodels.generators.images import Painter
from dpmodels.generators.loop import Progress
from dpmodels.statistics.symmetric import factor_of


class MatchingSpec(Frozen):
    """How the fit is made; free, since it reads the release only.

    Attributes:
        rounds: how often images are drawn and compared.
        images: drawn a class and round.
        rate: share of the missing moments that a round adds.
        contrast: of the drawn ink about one half; above 1 it makes up for the smoothness of the basis.
        shrinkage: share of the noise's edge that covariances are shrunk by. At 1 the error of a covariance is least;
            with less, images vary more like real ones.
    """

    rounds: Annotated[int, Field(ge=0, le=1000)] = 10
    images: Annotated[int, Field(ge=100, le=100_000)] = 1000
    rate: Annotated[float, Field(gt=0, le=1)] = 0.7
    contrast: Annotated[float, Field(ge=1, le=10)] = 1.3
    shrinkage: Annotated[float, Field(ge=0, le=2)] = 0.3


def match(
    looks: tuple[ImageMoments, ImageMoments],
    painter: Painter,
    targets: tuple[Floats, Floats],
    spec: MatchingSpec,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Painter, Floats, Floats]:
    """Return the painter with the centres it needs, and the mean and a factor of the covariance of each class.

    Shapes: ``targets`` and result are [classes, d] and [classes, d, d].
    """
    first, second = looks
    now = painter.centres.copy(), targets[0].copy(), targets[1].copy()
    best, least = tuple(part.copy() for part in now), np.full(len(now[0]), np.inf)
    # what a center may move by: the directions themselves are moved by the mean
    turned = np.ldexp(second.clip.directions, -DIRECTION_BITS)
    outside = np.eye(len(turned)) - turned @ np.linalg.pinv(turned)
    draws = _white(np.random.default_rng(seed).standard_normal((max(spec.images, 4 * second.size), second.size)))
    for step in range(spec.rounds):
        centres, means, covariances = now
        for label, (mean, covariance) in enumerate(zip(*targets, strict=True)):
            labels = np.full(len(draws), label)
            z = means[label] + draws @ factor_of(covariances[label]).T
            codes = second.code.encode(replace(painter, centres=centres).paint(z, labels))
            pixels = np.ldexp(second.bounded(codes, labels).astype(np.float64), -CODE_BITS)
            centre = np.ldexp(first.bounded(codes, labels).mean(axis=0), -CODE_BITS) * first.clip.radius
            lack_mean, lack = mean - pixels.mean(axis=0), covariance - np.cov(pixels.T, ddof=0)
            missing = float(np.linalg.norm(lack) / np.linalg.norm(covariance) + lack_mean @ lack_mean)
            if missing < least[label]:  # what clipped ink cannot show is never reached
                least[label] = missing
                for image, part in zip(best, now, strict=True):
                    image[label] = part[label]
            centres[label] += spec.rate * (second.clip.centres[label] - centre) @ outside
            means[label] += spec.rate * lack_mean
            factor = factor_of(covariances[label] + spec.rate * lack)
            covariances[label] = factor @ factor.T
        if progress:
            progress(step + 1, spec.rounds, float(least.mean()))
    centres, means, covariances = best
    return replace(painter, centres=centres), means, np.stack([factor_of(covariance) for covariance in covariances])


def _white(draws: Floats) -> Floats:
    """Give draws mean 0 and covariance 1 exactly, so that a round sees no chance deviations of its own."""
    draws = draws - draws.mean(axis=0)
    result: Floats = np.linalg.solve(np.linalg.cholesky(np.cov(draws.T, ddof=0)), draws.T).T
    return result
