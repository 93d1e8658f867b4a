"""Nacre for photographs, in color or gray: the moments of each class and of all in public cosines, in one charge.

    measure   the mean and the mean squared norm of all codes + noise       -> a center, and a clip norm R
              s = sum_x [ (a ; b t ; t t') (x) e_class ; t t' ],  t = clip_R(code - center)  + noise
                                                                            embeddings/photo_moments.py
    fit       W   = the covariance of all within their classes, from the matrix of all and those of the classes
              T_y = W with the variances of class y, as far as they stand out of their noise
              C_y = T_y + what of the class's own covariance stands out of the noise
              Gaussians N(mean_y, C_y) of the cosines, and public texture           generators/photos.py

Few images or a small budget leave the classes their means and variances, more of both their own covariances.

Privacy: both looks get discrete Gaussian noise, of multipliers z / sqrt(share) and z / sqrt(1 - share) over their
sensitivities; the second may depend on the released first, and together they cost no more than one of multiplier z
(methods/images/image_moments.py).
"""

import hashlib
import math
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from pydantic import Field

from dpmodels.accounting.events import ComposedEvent
from dpmodels.accounting.split import split
from dpmodels.arrays import Floats, Whole
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.image_moments import CODE_BITS
from dpmodels.embeddings.photo_moments import COUNTED, UNIT, PhotoCode, PhotoMoments, PhotoSpread
from dpmodels.frozen import Frozen
from dpmodels.generators.photos import PhotoModel
from dpmodels.methods.parts.marginals import Marginals, of_classes
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Keep, NoisySum, Programme, Sum
from dpmodels.releases.system import Craft, Synthesizer, fingerprint_of
from dpmodels.statistics.symmetric import DIAGONAL, factor_of, shrink

MOST_RATIO, MOST_UNUSUAL = 10.0, 4.0
"""A class's variance is within the first factor of that of all; the norm of codes within the second of the prior's."""


class PhotoMeasurement(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        coefficients: number of cosines that are coded; the rest is texture.
        chroma: public variance of the first color beside that of brightness; the second color has a fourth of it.
        evening: 0 leaves the cosines as they vary by the prior, 1 weights them to the same variance.
        first_share: share of the squared sensitivity (so of the budget, mu squared) that the first look takes.
        first_radius: norm that codes are clipped to at the first look, as a multiple of what the prior expects of it.
        radius: norm that codes are clipped to at the second look, as a multiple of the root mean square norm that the
            first look found about the center.
        count_weight, mean_weight: weights of a count and of a first moment, where a second moment has 1.
        texture: standard deviation of the public texture, as a multiple of what the prior says.
    """

    coefficients: Annotated[int, Field(ge=1, le=400)] = 100
    chroma: Annotated[float, Field(gt=0, le=1)] = 0.06
    evening: Annotated[float, Field(ge=0, le=1)] = 0.5
    first_share: Annotated[float, Field(ge=0.01, le=0.9)] = 0.05
    first_radius: Annotated[float, Field(gt=0, le=10)] = 1.5
    radius: Annotated[float, Field(gt=0, le=10)] = 0.8
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.15
    mean_weight: Annotated[float, Field(gt=0, le=10)] = 0.6
    texture: Annotated[float, Field(ge=0, le=4)] = 1.0


class PhotoTraining(Frozen):
    """How the fit is made; free, since it reads the release only.

    Attributes:
        shrinkage: share of the noise's edge that covariances are shrunk by.
    """

    shrinkage: Annotated[float, Field(ge=0, le=2)] = 0.3


class PhotoLooks:
    """The two embeddings of a plan; the second exists once the first is released."""

    def __init__(self, spec: PhotoMeasurement, schema: Schema) -> None:
        self.spec, self.schema = spec, schema
        self.code = PhotoCode(schema, spec.coefficients, spec.chroma, spec.evening)
        widest = min(round(spec.first_radius * self.code.usual_norm), self.code.longest)
        self.first = PhotoSpread(self.code, max(1, widest), schema.unit.max_rows)
        self.usual = self.second(np.array([*[0] * self.code.dim, round(self.code.usual_norm)]))

    def choose(self, first: Whole, noise_stddev: float) -> Whole:
        """Return the center and the clip norm of the second look, in steps of a code (post-processing).

        A center that does not stand out of its noise is none. Units: ``noise_stddev`` in lattice steps.
        """
        count, total, square = self.first.unpack(first)
        noise = noise_stddev * self.first.radius / 2.0**CODE_BITS
        images = max(count, noise_stddev / COUNTED, 1.0)
        center, error = total / images, (noise / images) ** 2 * self.code.dim
        center *= max(0.0, 1 - error / max(float(center @ center), 1e-12))
        center *= min(1.0, self.first.radius / max(float(np.linalg.norm(center)), 1e-12))
        norm = math.sqrt(max(0.0, square / images - float(center @ center)))
        usual = self.code.usual_norm
        radius = self.spec.radius * min(max(norm, usual / MOST_UNUSUAL), usual * MOST_UNUSUAL)
        return np.rint([*center, max(1.0, radius)]).astype(np.int64)

    def second(self, parameters: Whole) -> PhotoMoments:
        """Return the second embedding, made of what ``choose`` returned."""
        weights, rows = (self.spec.count_weight, self.spec.mean_weight), self.schema.unit.max_rows
        return PhotoMoments(self.code, self.schema.classes, parameters[:-1], int(parameters[-1]), weights, rows)


@dataclass(frozen=True)
class NacrePhotos(Synthesizer[PhotoLooks]):
    """Nacre for photographs; its design is the two looks, and the second's sensitivity is known beforehand."""

    method = "nacre-photos"
    measurement: PhotoMeasurement = field(default_factory=PhotoMeasurement)
    training: PhotoTraining = field(default_factory=PhotoTraining)

    def design(self, spec: PhotoMeasurement, contract: Schema) -> PhotoLooks:
        """Make the public code; the schema must have an image."""
        return PhotoLooks(spec, contract)

    def event(self, design: PhotoLooks, budget: PrivacyBudget) -> ComposedEvent:
        """Charge two Gaussians: the first takes ``first_share`` of the budget's squared mu, the second the rest."""
        share = design.spec.first_share
        return split(budget, {"center": share, "moments by class": 1 - share})

    def programme(self, design: PhotoLooks) -> Programme:
        """Sum the codes and their norms, then the moments about the center."""
        first = yield Sum.of(design.first)
        parameters = yield Keep.of(design.choose(first.vector, first.noise_stddev))
        yield Sum.of(design.second(parameters))

    def fit(self, release: Released[Release], craft: Craft) -> PhotoModel:
        """Estimate a Gaussian for each class; in seconds, without checkpoints.

        Privacy: post-processing.
        """
        line, (_, _, second) = release.value.line, self.answers(release.value)
        spec = PhotoMeasurement.model_validate(line.measurement)
        return fitted(second, spec, self.training, line.table, release.value.entry)

    def marginals(self, release: Release) -> Marginals | None:
        """Return the counts of the classes (post-processing)."""
        _, _, second = self.answers(release)
        counts = second.embedding.unpack_all(second.vector)[0]
        return of_classes(release.line.table, counts, second.noise_stddev / second.embedding.count_step)

    def noise(self, line: Line) -> dict[str, float]:
        looks = self.of(line)
        first = line.noise_stddev(0, looks.first.l2_sensitivity)
        steps = line.noise_stddev(1, looks.usual.l2_sensitivity)
        return {
            "images, first look": first / COUNTED,
            "sum of codes over all images, where the clip norm is 1": first / 2.0**CODE_BITS,
            "images in a class": steps / looks.usual.count_step,
            "sum of squares of a code over a class, where the clip norm is 1": _unit_noise(steps),
            "sum of squares of a code over all images, where the clip norm is 1": _unit_noise(steps),
        }

    def fingerprint(self, design: PhotoLooks) -> str:
        basis = hashlib.sha256(np.ascontiguousarray(design.code.basis, dtype="<i8").tobytes()).hexdigest()
        return fingerprint_of(basis, design.first.radius, design.usual.count_step, design.usual.mean_step)


def fitted(
    once: NoisySum, spec: PhotoMeasurement, training: PhotoTraining, schema: Schema, entry: str = ""
) -> PhotoModel:
    """Fit a Gaussian for each class to the released sum (post-processing)."""
    counts, means, covariances = estimated(once, training.shrinkage)
    scale = 1 / (UNIT * once.embedding.code.weights)
    means = (once.embedding.center + once.embedding.radius * means) * scale
    factors = np.stack([(once.embedding.radius * scale)[:, None] * factor_of(each) for each in covariances])
    settings = {key: getattr(spec, key) for key in ("coefficients", "chroma", "evening")}
    return PhotoModel(schema, settings, means, factors, spec.texture, counts, entry)


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
    best, class_noise = (
        (classes * every + squares.sum(axis=0)) / (classes + 1),
        noise * (classes / (classes + 1)) ** 0.5,
    )
    within = best / total - np.einsum("c,ci,cj->ij", size / total, means, means)
    edge = shrinkage * class_noise / total
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


def _unit_noise(noise_stddev: float) -> float:
    """Convert noise from lattice steps to units of a code's square, where the clip norm is 1."""
    return noise_stddev / (DIAGONAL * 4.0**CODE_BITS)
