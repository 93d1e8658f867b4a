"""Nacre for images: a noisy basis, the moments of each class in it, one charge, and Gaussians drawn as ink.

    measure   C = sum_x [ count ; code ; code code' ]                        + noise    -> mean and d directions V
              s = sum_x [ a ; b z ; z z' ] (x) e_class,  z = clip((code - mean) V)   + noise
    fit       covariances without their noise; Gaussians whose images have them       generators/image_matching.py

Privacy: both looks get discrete Gaussian noise, of multipliers z / sqrt(share) and z / sqrt(1 - share) over their
sensitivities (proof: embeddings/image_moments.py). The second look may depend on the released first; two Gaussian
mechanisms of mu_1^2 + mu_2^2 = 1 / z^2 together cost no more than one of multiplier z (Dong, Roth and Su
2019, corollary 3.3).
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, GaussianEvent
from dpmodels.accounting.ledger import Charge, Ledger
from dpmodels.embeddings.image_moments import (
    BASIS_BITS,
    CODE_BITS,
    UNIT,
    ClipSpec,
    ImageCode,
    ImageMoments,
)
from dpmodels.errors import ArtifactError
from dpmodels.generators.image_matching import MatchingSpec, Progress, match
from dpmodels.generators.images import ImageModel, Painter
from dpmodels.mechanisms.dp_pca import DIAGONAL, principal_directions, shrink
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.schema.encode import Records
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.base import Choose, Look, Plan, Release, check_unit, measure_looks

Whole = NDArray[np.int64]


class ImageMeasurement(BaseModel):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        coefficients: of the public basis; smoothness: its length scale, in pixels of a 28 x 28 image.
        pose_weight: one public spread of a pose, in the norm of an image with one pixel of full ink (28 x 28).
        directions: kept from the first look.
        basis_share: share of the squared sensitivity (so of the budget, mu squared) that the first look takes.
        basis_radius, class_radius: norms that codes are clipped to at the two looks, in root mean square ink a pixel.
        count_weight, mean_weight: of count and first moment beside a second moment.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    coefficients: Annotated[int, Field(ge=1, le=400)] = 100
    smoothness: Annotated[float, Field(ge=0.5, le=20)] = 1.5
    pose_weight: Annotated[float, Field(gt=0, le=100)] = 1.0
    directions: Annotated[int, Field(ge=1, le=400)] = 60
    basis_share: Annotated[float, Field(ge=0.01, le=0.9)] = 0.25
    basis_radius: Annotated[float, Field(gt=0, le=1)] = 0.39
    class_radius: Annotated[float, Field(gt=0, le=1)] = 0.25
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.15
    mean_weight: Annotated[float, Field(gt=0, le=10)] = 0.6


class Looks:
    """The two embeddings of a plan; the second exists once the first is released."""

    def __init__(self, spec: ImageMeasurement, schema: Schema) -> None:
        self.spec, self.classes, self.max_rows = spec, schema.classes, schema.unit.max_rows
        self.code = ImageCode(schema, spec.coefficients, spec.smoothness, spec.pose_weight)
        self.side = UNIT * math.sqrt(len(self.code.basis))
        identity = np.eye(self.code.dim, dtype=np.int64) << BASIS_BITS
        self.first = self._moments(identity, np.zeros(self.code.dim, dtype=np.int64), spec.basis_radius, 1)

    def second(self, first: Whole) -> ImageMoments:
        """Return the second embedding, turned to the directions of the released first vector (post-processing)."""
        counts, sums, moments = self.first.unpack(first)
        count, radius = max(float(counts[0]), 1.0), self.first.clip.radius
        mean = sums[0] / count
        mean /= max(
            1.0, float(np.linalg.norm(mean))
        )  # the mean of vectors of norm 1: this keeps a tiny table's in bounds
        directions = principal_directions(moments[0] / count - np.outer(mean, mean), self.spec.directions)
        whole = np.rint(np.ldexp(directions, BASIS_BITS)).astype(np.int64)
        return self._moments(whole, np.rint(mean * radius).astype(np.int64), self.spec.class_radius, self.classes)

    def noise_multipliers(self, noise_multiplier: float) -> tuple[float, float]:
        """Split one Gaussian of this noise multiplier into the two looks, by the share of the first."""
        share = self.spec.basis_share
        return noise_multiplier / math.sqrt(share), noise_multiplier / math.sqrt(1 - share)

    def fingerprint(self) -> str:
        """Return the SHA-256 of the public basis; part of the plan, so that a changed basis cannot pass."""
        return hashlib.sha256(np.ascontiguousarray(self.code.basis, dtype="<i8").tobytes()).hexdigest()

    def _moments(self, directions: Whole, centre: Whole, radius: float, classes: int) -> ImageMoments:
        clip = ClipSpec(directions, centre, radius * self.side, self.spec.count_weight, self.spec.mean_weight)
        return ImageMoments(self.code, clip, classes, self.max_rows)

    @classmethod
    def of(cls, plan: Plan) -> "Looks":
        """Rebuild the looks of a plan."""
        looks = cls(ImageMeasurement.model_validate(plan.measurement), plan.table)
        if looks.fingerprint() != plan.fingerprint:
            raise ArtifactError("the release was measured in another basis than this version computes")
        return looks


@dataclass(frozen=True)
class NacreImages:
    """The three verbs of nacre for images."""

    measurement: ImageMeasurement = field(default_factory=ImageMeasurement)
    training: MatchingSpec = field(default_factory=MatchingSpec)

    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge: two composed Gaussian events, whatever the data; touches no data.

        Raises:
            InvalidArgument: the budget's unit is not the schema's, or the schema has no image.
        """
        check_unit(schema, budget)
        looks = Looks(self.measurement, schema)
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

    def measure(
        self,
        sensitive: Sensitive[Iterable[Records]],
        plan: Plan,
        *,
        ledger: Ledger,
        charge: Charge,
        staged: Path,
        released: Path,
        device: str = "cpu",
    ) -> Released[Path]:
        """Look twice, each time summing exactly and adding noise once, all inside one ledger charge.

        Privacy: add or remove one unit. Releases both sums through the discrete Gaussian; charges the two Gaussians of
            ``plan.event``. The directions of the second look are read off the released first.
        """
        return measure_looks(
            sensitive,
            plan,
            self.looks(plan),
            ledger=ledger,
            charge=charge,
            staged=staged,
            released=released,
            device=device,
        )

    def looks(self, plan: Plan) -> Sequence[Choose]:
        """List the two sums: the moments of all images, then those of each class in the directions found."""
        looks = Looks.of(plan)
        first, second = looks.noise_multipliers(plan.noise_multiplier)
        return [lambda _: Look(looks.first, first), lambda before: Look(looks.second(before[0]), second)]

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
        looks = Looks.of(plan)
        embedding = looks.second(release.value.vector[: looks.first.dim])
        counts, sums, moments = embedding.unpack(release.value.vector[looks.first.dim :])
        steps = self._steps(looks, plan)[1]
        # a class that is all noise is given no less than the noise of its own count, so that it cannot explode
        divisor = counts.clip(min=max(1.0, steps / embedding.count_step))
        means = sums / divisor[:, None]
        noise = steps / (DIAGONAL * 4.0**CODE_BITS) / divisor
        covariances = moments / divisor[:, None, None] - means[:, :, None] * means[:, None, :]
        shrunk = np.stack([shrink(c, s) for c, s in zip(covariances, noise, strict=True)])
        decoder = np.ldexp(embedding.clip.directions.T * embedding.clip.radius, -BASIS_BITS)
        painter = Painter(looks.code, decoder, embedding.clip.centre.astype(np.float64), self.training.contrast)
        means, factors = match(embedding, painter, (means, shrunk), self.training, seed, progress)
        spec = self.measurement
        settings = {key: getattr(spec, key) for key in ("coefficients", "smoothness", "pose_weight")}
        return ImageModel(plan.table, settings, painter, means, factors, counts, release.value.entry)

    def noise(self, plan: Plan) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise."""
        looks = Looks.of(plan)
        first, second = self._steps(looks, plan)
        one = DIAGONAL * 4.0**CODE_BITS
        return {
            "images in all": first / looks.first.count_step,
            "sum of squares of a code over all images, where the clip norm is 1": first / one,
            "images in a class": second / looks.first.count_step,
            "sum of squares of a code over a class, where the clip norm is 1": second / one,
        }

    def _steps(self, looks: Looks, plan: Plan) -> tuple[float, float]:
        """Return the noise standard deviations of the two looks, in lattice steps."""
        first, second = looks.noise_multipliers(plan.noise_multiplier)
        return lattice_noise_stddev(plan.l2_sensitivity, first), lattice_noise_stddev(plan.l2_sensitivity, second)
