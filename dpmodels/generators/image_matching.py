"""Fit the Gaussians of an image generator so that its images have the released moments (post-processing).

Drawing clips ink to [0, 1], resamples and rounds; an image's moments are therefore not those of the latent Gaussian.
So each round draws images, measures them as the real ones were measured, and moves the Gaussian by what is missing:

    mean <- mean + rate (released mean - drawn mean)      covariance <- [covariance + rate (released - drawn)]+

The round that came closest is kept, class by class.
"""

from collections.abc import Callable
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dpmodels.embeddings.image_moments import CODE_BITS, ImageMoments
from dpmodels.generators.images import Painter

Floats = NDArray[np.float64]
Progress = Callable[[int, int, float], None]


class MatchingSpec(BaseModel):
    """How the fit is made; free, since it reads the release only.

    Attributes:
        rounds: how often images are drawn and compared.
        images: drawn a class and round.
        rate: share of the missing moments that a round adds.
        contrast: of the drawn ink about one half; above 1 it makes up for the smoothness of the basis.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    rounds: Annotated[int, Field(ge=0, le=1000)] = 10
    images: Annotated[int, Field(ge=100, le=100_000)] = 1000
    rate: Annotated[float, Field(gt=0, le=1)] = 0.7
    contrast: Annotated[float, Field(ge=1, le=10)] = 1.3


def match(
    embedding: ImageMoments,
    painter: Painter,
    targets: tuple[Floats, Floats],
    spec: MatchingSpec,
    seed: int,
    progress: Progress | None = None,
) -> tuple[Floats, Floats]:
    """Return the mean and a factor of the covariance of each class's Gaussian.

    Shapes: ``targets`` and result are [classes, d] and [classes, d, d].
    """
    means, covariances = targets[0].copy(), targets[1].copy()
    best_means, best_covariances, least = means.copy(), covariances.copy(), np.full(len(means), np.inf)
    rng = np.random.default_rng(seed)
    draws = _white(rng.standard_normal((max(spec.images, 4 * embedding.size), embedding.size)))
    for step in range(spec.rounds):
        for label, (mean, covariance) in enumerate(zip(*targets, strict=True)):
            z = means[label] + draws @ _factor(covariances[label]).T
            drawn = np.ldexp(embedding.bounded(embedding.code.encode(painter.paint(z))).astype(np.float64), -CODE_BITS)
            lack_mean, lack = mean - drawn.mean(axis=0), covariance - np.cov(drawn.T, ddof=0)
            missing = float(np.linalg.norm(lack) / np.linalg.norm(covariance) + lack_mean @ lack_mean)
            if missing < least[label]:  # what ink cannot show is never reached, and chasing it would lose the rest
                least[label] = missing
                best_means[label], best_covariances[label] = means[label], covariances[label]
            means[label] += spec.rate * lack_mean
            factor = _factor(covariances[label] + spec.rate * lack)
            covariances[label] = factor @ factor.T
        if progress:
            progress(step + 1, spec.rounds, float(least.mean()))
    return best_means, np.stack([_factor(covariance) for covariance in best_covariances])


def _factor(covariance: Floats) -> Floats:
    """Return F with F F' = covariance, negative eigenvalues taken for 0."""
    values, vectors = np.linalg.eigh(covariance)
    result: Floats = vectors * np.sqrt(np.maximum(values, 0))
    return result


def _white(draws: Floats) -> Floats:
    """Give draws mean 0 and covariance 1 exactly, so that a round sees no chance deviations of its own."""
    draws = draws - draws.mean(axis=0)
    result: Floats = np.linalg.solve(np.linalg.cholesky(np.cov(draws.T, ddof=0)), draws.T).T
    return result
