"""Nacre for images: a noisy basis, the moments of each class in it, one charge, and Gaussians drawn as ink.

    measure   C = sum_x [ (a ; b code) (x) e_class ; code code' ]  + noise       -> class means, within-class variance
              V = the d directions that vary most within a class, each times variance^(-alpha / 2)
              s = sum_x [ a ; b z ; z z' ] (x) e_class,  z = clip((code - mean_class) V)  + noise
    fit       covariances without their noise; Gaussians whose images have them        generators/image_matching.py

Centring by class halves the norm that must be covered, and evening the directions out (alpha) makes the same noise hurt
them alike: between the many weak directions that tell classes apart and the few strong ones that they share.

Privacy: both looks get discrete Gaussian noise, of multipliers z / sqrt(share) and z / sqrt(1 - share) over their
sensitivities (proof: embeddings/image_moments.py). The second look may depend on the released first; two Gaussian
mechanisms of mu_1^2 + mu_2^2 = 1 / z^2 together cost no more than one of multiplier z (Dong, Roth and Su
2019, corollary 3.3).
"""

import hashlib
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, GaussianEvent
from dpmodels.embeddings.image_moments import (
    CODE_BITS,
    DIRECTION_BITS,
    UNIT,
    ClipSpec,
    ImageCode,
    ImageMoments,
)
from dpmodels.errors import ArtifactError
from dpmodels.generators.image_matching import MatchingSpec, match
from dpmodels.generators.images import ImageModel, Painter
from dpmodels.generators.loop import Progress
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Plan, check_unit
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Keep, Programme, Sum
from dpmodels.releases.system import Synthesizer
from dpmodels.schema.schema import Schema
from dpmodels.statistics.symmetric import DIAGONAL, principal_directions, shrink_classes
from dpmodels.synthesizers.marginals import Marginals, of_classes

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class ImageMeasurement(BaseModel):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        coefficients: of the public basis; smoothness: its length scale, in pixels of a 28 x 28 image.
        pose_weight: one public spread of a pose, in the norm of an image with one pixel of full ink (28 x 28).
        directions: kept from the first look.
        basis_share: share of the squared sensitivity (so of the budget, mu squared) that the first look takes.
        basis_radius: norm that codes are clipped to at the first look, in root mean square ink a pixel.
        class_radius: norm clipped to at the second look, in the root mean square norm that the first look foresees.
        evening: alpha above; 0 leaves the directions as they vary, 1 brings all to the same variance.
        count_weight, mean_weight: of count and first moment beside a second moment.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    coefficients: Annotated[int, Field(ge=1, le=400)] = 100
    smoothness: Annotated[float, Field(ge=0.5, le=20)] = 1.5
    pose_weight: Annotated[float, Field(gt=0, le=100)] = 1.0
    directions: Annotated[int, Field(ge=1, le=400)] = 60
    basis_share: Annotated[float, Field(ge=0.01, le=0.9)] = 0.25
    basis_radius: Annotated[float, Field(gt=0, le=1)] = 0.39
    class_radius: Annotated[float, Field(gt=0, le=10)] = 1.0
    evening: Annotated[float, Field(ge=0, le=1)] = 0.5
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.15
    mean_weight: Annotated[float, Field(gt=0, le=10)] = 0.6


class ImageLooks:
    """The two embeddings of a plan; the second exists once the first is released."""

    def __init__(self, spec: ImageMeasurement, schema: Schema) -> None:
        self.spec, self.classes, self.max_rows = spec, schema.classes, schema.unit.max_rows
        self.code = ImageCode(schema, spec.coefficients, spec.smoothness, spec.pose_weight)
        self.size = min(spec.directions, self.code.dim)
        identity = np.eye(self.code.dim, dtype=np.int64) << DIRECTION_BITS
        centres = np.zeros((self.classes, self.code.dim), dtype=np.int64)
        radius = round(spec.basis_radius * UNIT * math.sqrt(len(self.code.basis)))
        self.first = self._moments(identity, centres, radius, pooled=True)

    def choose(self, first: Whole, noise_stddev: float) -> Whole:
        """Return directions, class centres and clip radius of the second look as whole numbers (post-processing).

        They are kept with the release: an eigenvector of another machine may differ by a rounding.
        ``noise_stddev``: of the first look, in lattice steps; what is below it is not divided by.
        """
        counts, sums, moments = self.first.unpack(first)
        means = sums / at_least_noise(counts, noise_stddev, self.first)[:, None]
        means /= np.maximum(1.0, np.linalg.norm(means, axis=1, keepdims=True))  # as of vectors of norm 1
        total = max(float(counts.sum()), 1.0)
        within = moments[0] / total - np.einsum("c,ci,cj->ij", counts.clip(min=0) / total, means, means)
        directions = principal_directions(within, self.size)
        variances = np.einsum("ij,ik,kj->j", directions, within, directions)
        floor = _unit_noise(noise_stddev) * math.sqrt(2 * len(within)) / total / 3
        variances = variances.clip(min=floor)
        weights = (variances / variances.min()) ** (-self.spec.evening / 2)
        radius = self.spec.class_radius * math.sqrt((variances * weights**2).sum()) * self.first.clip.radius
        whole = np.rint(np.ldexp(directions * weights, DIRECTION_BITS))
        centres = np.rint(means * self.first.clip.radius)
        return np.concatenate([whole.ravel(), centres.ravel(), [max(1, round(radius))]]).astype(np.int64)

    def second(self, chosen: Whole) -> ImageMoments:
        """Return the second embedding, made of what ``choose`` returned."""
        rows = self.code.dim
        directions, centres, radius = np.split(chosen, np.cumsum([rows * self.size, self.classes * rows]))
        shaped = directions.reshape(rows, self.size), centres.reshape(self.classes, rows)
        return self._moments(*shaped, int(radius[0]), pooled=False)

    def noise_multipliers(self, noise_multiplier: float) -> tuple[float, float]:
        """Split one Gaussian of this noise multiplier into the two looks, by the share of the first."""
        share = self.spec.basis_share
        return noise_multiplier / math.sqrt(share), noise_multiplier / math.sqrt(1 - share)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the public basis; part of the plan, so that a changed basis cannot pass."""
        return hashlib.sha256(np.ascontiguousarray(self.code.basis, dtype="<i8").tobytes()).hexdigest()

    def _moments(self, directions: Whole, centres: Whole, radius: int, *, pooled: bool) -> ImageMoments:
        clip = ClipSpec(directions, centres, radius, self.spec.count_weight, self.spec.mean_weight)
        return ImageMoments(self.code, clip, self.max_rows, pooled=pooled)

    @classmethod
    def of(cls, plan: Plan) -> "ImageLooks":
        """Rebuild the looks of a plan."""
        looks = cls(ImageMeasurement.model_validate(plan.measurement), plan.table)
        if looks.fingerprint() != plan.fingerprint:
            raise ArtifactError("the release was measured in another basis than this version computes")
        return looks


@dataclass(frozen=True)
class NacreImages(Synthesizer):
    """The three verbs of nacre for images."""

    measurement: ImageMeasurement = field(default_factory=ImageMeasurement)
    training: MatchingSpec = field(default_factory=MatchingSpec)

    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge: two composed Gaussian events, whatever the data; touches no data.

        Raises:
            InvalidArgument: the budget's unit is not the schema's, or the schema has no image.
        """
        check_unit(schema, budget)
        looks = ImageLooks(self.measurement, schema)
        noise_multiplier = gaussian_noise_multiplier(budget)
        parts = zip(looks.noise_multipliers(noise_multiplier), ("basis", "moments by class"), strict=True)
        return Plan(
            method="nacre-images",
            table=schema,
            budget=budget,
            event=ComposedEvent(events=tuple(GaussianEvent(noise_multiplier=z, mechanism=name) for z, name in parts)),
            noise_multiplier=noise_multiplier,
            l2_sensitivity=looks.first.l2_sensitivity,  # of either look: both clip to the same number of steps
            measurement=self.measurement.model_dump(mode="json"),
            fingerprint=looks.fingerprint(),
        )

    def programme(self, plan: Plan) -> Programme:
        """Sum the second moments of all images, then those of each class along the directions that vary most."""
        looks, l2 = ImageLooks.of(plan), plan.l2_sensitivity
        one, two = looks.noise_multipliers(plan.noise_multiplier)
        first = yield Sum.of(looks.first, 1, l2, one)
        chosen = yield Keep(looks.choose(first, self._steps(looks, plan)[0]))
        yield Sum.of(looks.second(chosen), 2, l2, two)

    def fit(
        self,
        release: Released[Release],
        *,
        seed: int,
        device: str,
        checkpoint: Path,
        progress: Progress | None = None,
    ) -> ImageModel:
        """Shrink the released covariances and fit the Gaussians whose images have them; seconds, so no checkpoint.

        Privacy: post-processing.
        """
        plan = release.value.plan
        looks = ImageLooks.of(plan)
        embedding = looks.second(release.value.chosen)
        counts, sums, moments = embedding.unpack(release.value.vector[looks.first.dim :])
        steps = self._steps(looks, plan)[1]
        divisor = at_least_noise(counts, steps, embedding)
        means = sums / divisor[:, None]
        covariances = moments / divisor[:, None, None] - means[:, :, None] * means[:, None, :]
        shrunk = shrink_classes(covariances, _unit_noise(steps) / divisor, divisor)
        clip = embedding.clip
        decoder = np.linalg.pinv(np.ldexp(clip.directions, -DIRECTION_BITS)) * clip.radius
        painter = Painter(looks.code, decoder, clip.centres.astype(np.float64), self.training.contrast)
        both, targets = (looks.first, embedding), (means, shrunk)
        painter, means, factors = match(both, painter, targets, self.training, seed, progress)
        spec = self.measurement
        settings = {key: getattr(spec, key) for key in ("coefficients", "smoothness", "pose_weight")}
        return ImageModel(plan.table, settings, painter, means, factors, counts, release.value.entry)

    def marginals(self, release: Release) -> Marginals | None:
        """Return the counts of the classes, of the second look (post-processing)."""
        plan, looks = release.plan, ImageLooks.of(release.plan)
        embedding = looks.second(release.chosen)
        counts = embedding.unpack(release.vector[looks.first.dim :])[0]
        return of_classes(plan.table, counts, self._steps(looks, plan)[1] / embedding.count_step)

    def noise(self, plan: Plan) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise."""
        looks = ImageLooks.of(plan)
        first, second = self._steps(looks, plan)
        return {
            "images in a class, first look": first / looks.first.count_step,
            "sum of squares of a code over all images, where the clip norm is 1": _unit_noise(first),
            "images in a class, second look": second / looks.first.count_step,
            "sum of squares of a code over a class, where the clip norm is 1": _unit_noise(second),
        }

    def _steps(self, looks: ImageLooks, plan: Plan) -> tuple[float, float]:
        """Return the noise standard deviations of the two looks, in lattice steps."""
        first, second = looks.noise_multipliers(plan.noise_multiplier)
        return lattice_noise_stddev(plan.l2_sensitivity, first), lattice_noise_stddev(plan.l2_sensitivity, second)


def at_least_noise(counts: Floats, noise_stddev: float, embedding: ImageMoments) -> Floats:
    """Return released counts as divisors: no less than their own noise, so that a tiny class cannot explode."""
    divisor: Floats = counts.clip(min=max(1.0, noise_stddev / embedding.count_step))
    return divisor


def _unit_noise(noise_stddev: float) -> float:
    """Return lattice steps of noise in squares of a code, where the clip norm is 1."""
    return noise_stddev / (DIAGONAL * 4.0**CODE_BITS)
