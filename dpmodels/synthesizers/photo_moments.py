"""Nacre for photographs, in color or gray: the moments of each class and of all in public cosines, in one look.

    measure   s = sum_x [ (a ; b t ; t t') (x) e_class ; t t' ]  + noise            embeddings/photo_moments.py
    fit       W   = the covariance of all within their classes, from the matrix of all and those of the classes
              T_y = W with the variances of class y, as far as they stand out of their noise
              C_y = T_y + what of the class's own covariance stands out of the noise
              Gaussians N(mean_y, C_y) of the cosines, and public texture           generators/photos.py

Few images or a small budget leave the classes their means and variances, more of both their own covariances.

Privacy: one Gaussian mechanism on one sum of proved norm; fitting is post-processing.
"""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent
from dpmodels.embeddings.image_moments import CODE_BITS
from dpmodels.embeddings.photo_moments import PhotoCode, PhotoMoments
from dpmodels.generators.photos import PhotoModel
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import NoisySum, Programme, Sum
from dpmodels.releases.system import Craft, Synthesizer, fingerprint_of
from dpmodels.schema.schema import Schema
from dpmodels.statistics.symmetric import DIAGONAL, shrink
from dpmodels.synthesizers.marginals import Marginals, of_classes

Floats = NDArray[np.float64]
MOST_RATIO = 10.0
"""A class's variance is within this factor of that of all."""


class PhotoMeasurement(BaseModel):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        coefficients: number of cosines that are coded; the rest is texture.
        chroma: public variance of the first color beside that of brightness; the second color has a fourth of it.
        evening: 0 leaves the cosines as they vary by the prior, 1 weights them to the same variance.
        radius: norm that codes are clipped to, as a multiple of the root mean square norm that the prior expects.
        count_weight, mean_weight: weights of a count and of a first moment, where a second moment has 1.
        texture: standard deviation of the public texture, as a multiple of what the prior says.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    coefficients: Annotated[int, Field(ge=1, le=400)] = 100
    chroma: Annotated[float, Field(gt=0, le=1)] = 0.06
    evening: Annotated[float, Field(ge=0, le=1)] = 0.5
    radius: Annotated[float, Field(gt=0, le=10)] = 1.0
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.15
    mean_weight: Annotated[float, Field(gt=0, le=10)] = 0.6
    texture: Annotated[float, Field(ge=0, le=4)] = 1.0


class PhotoTraining(BaseModel):
    """How the fit is made; free, since it reads the release only.

    Attributes:
        shrinkage: share of the noise's edge that covariances are shrunk by.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    shrinkage: Annotated[float, Field(ge=0, le=2)] = 0.3


@dataclass(frozen=True)
class NacrePhotos(Synthesizer[PhotoMoments]):
    """Nacre for photographs; its design is the embedding."""

    method = "nacre-photos"
    measurement: PhotoMeasurement = field(default_factory=PhotoMeasurement)
    training: PhotoTraining = field(default_factory=PhotoTraining)

    def design(self, spec: PhotoMeasurement, contract: Schema) -> PhotoMoments:
        """Make the public code; the schema must have an image."""
        code = PhotoCode(contract, spec.coefficients, spec.chroma, spec.evening)
        weights = spec.count_weight, spec.mean_weight
        return PhotoMoments(code, contract.classes, spec.radius * code.usual_norm, weights, contract.unit.max_rows)

    def event(self, design: PhotoMoments, budget: PrivacyBudget) -> GaussianEvent:
        """Charge one Gaussian event."""
        return GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget))

    def programme(self, design: PhotoMoments) -> Programme:
        """Sum the moments once."""
        yield Sum.of(design)

    def fit(self, release: Released[Release], craft: Craft) -> PhotoModel:
        """Estimate a Gaussian for each class; in seconds, without checkpoints.

        Privacy: post-processing.
        """
        line, (once,) = release.value.line, self.answers(release.value)
        spec = PhotoMeasurement.model_validate(line.measurement)
        return fitted(once, spec, self.training, line.table, release.value.entry)

    def marginals(self, release: Release) -> Marginals | None:
        """Return the counts of the classes (post-processing)."""
        (once,) = self.answers(release)
        counts = once.embedding.unpack_all(once.vector)[0]
        return of_classes(release.line.table, counts, once.noise_stddev / once.embedding.count_step)

    def noise(self, line: Line) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise."""
        moments = self.of(line)
        steps = line.noise_stddev(0, moments.l2_sensitivity)
        return {
            "images in a class": steps / moments.count_step,
            "sum of squares of a code over a class, where the clip norm is 1": _unit_noise(steps),
            "sum of squares of a code over all images, where the clip norm is 1": _unit_noise(steps),
        }

    def fingerprint(self, design: PhotoMoments) -> str:
        """Hash the basis, the clip norm and the weights."""
        steps = design.radius_steps, design.count_step, design.mean_step
        return fingerprint_of(design.code.basis.tolist(), *steps)


def fitted(
    once: NoisySum, spec: PhotoMeasurement, training: PhotoTraining, schema: Schema, entry: str = ""
) -> PhotoModel:
    """Fit a Gaussian for each class to the released sum (post-processing)."""
    counts, means, covariances = estimated(once, training.shrinkage)
    scale = once.embedding.radius / once.embedding.code.weights
    factors = np.stack([scale[:, None] * _factor(covariance) for covariance in covariances])
    settings = {key: getattr(spec, key) for key in ("coefficients", "chroma", "evening")}
    return PhotoModel(schema, settings, means * scale, factors, spec.texture, counts, entry)


def estimated(once: NoisySum, shrinkage: float) -> tuple[Floats, Floats, Floats]:
    """Return the released count, and the mean and the covariance of each class where the clip norm is 1.

    Shapes: [classes], [classes, d], [classes, d, d].
    """
    moments, noise = once.embedding, _unit_noise(once.noise_stddev)
    counts, sums, squares, every = moments.unpack_all(once.vector)
    size = counts.clip(min=max(1.0, once.noise_stddev / moments.count_step))
    means = sums / size[:, None]
    means /= np.maximum(1.0, np.linalg.norm(means, axis=1, keepdims=True))  # codes have norm at most 1
    classes, total = len(size), size.sum()
    # of two estimates of one matrix the one of all has 1 / classes of the variance that the classes' sum has
    best, own = (classes * every + squares.sum(axis=0)) / (classes + 1), noise * (classes / (classes + 1)) ** 0.5
    within = best / total - np.einsum("c,ci,cj->ij", size / total, means, means)
    edge = shrinkage * own / total
    within = shrink(within, edge, np.diag(np.diag(within).clip(min=edge)))
    variances = np.diag(within).clip(min=1e-12)
    covariances = squares / size[:, None, None] - means[:, :, None] * means[:, None, :]
    result = []
    for covariance, stddev in zip(covariances, noise / size, strict=True):
        excess = np.diag(covariance) / variances - 1
        signal = max(0.0, 1 - float(((stddev / variances) ** 2).sum() / np.maximum((excess**2).sum(), 1e-12)))
        ratio = np.sqrt((1 + signal * excess).clip(1 / MOST_RATIO, MOST_RATIO))
        result.append(shrink(covariance, shrinkage * stddev, within * np.outer(ratio, ratio)))
    return counts, means, np.stack(result)


def _factor(covariance: Floats) -> Floats:
    """Return F with F F' = covariance."""
    values, vectors = np.linalg.eigh(covariance)
    result: Floats = vectors * np.sqrt(np.maximum(values, 0))
    return result


def _unit_noise(noise_stddev: float) -> float:
    """Convert noise from lattice steps to units of a code's square, where the clip norm is 1."""
    return noise_stddev / (DIAGONAL * 4.0**CODE_BITS)
