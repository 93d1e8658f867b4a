"""Nacre for images: a noisy basis, the moments of each class in it, one charge, and Gaussians drawn as ink.

    measure   C = sum_x [ (a ; b code) (x) e_class ; code code' ]  + noise       -> class means, within-class variance
              V = the d directions that vary most within a class, each times variance^(-alpha / 2)
              s = sum_x [ a ; b z ; z z' ] (x) e_class,  z = clip((code - mean_class) V)  + noise
    fit       covariances without their noise; Gaussians whose images have them        generators/image_matching.py

Centering by class halves the norm that must be covered. Bringing the variances of the directions closer to each other
(alpha) makes the same noise hurt alike the many weak directions, which tell classes apart, and the few strong ones,
which classes share.

Privacy: both looks get discrete Gaussian noise, of multipliers z / sqrt(share) and z / sqrt(1 - share) over their
sensitivities (proof: embeddings/image_moments.py). The second look may depend on the released first; two Gaussian
mechanisms of mu_1^2 + mu_2^2 = 1 / z^2 together cost no more than one of multiplier z (Dong, Roth and Su
2019, corollary 3.3).
"""

import hashlib
import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Annotated

import numpy as np
from pydantic import Field

from dpmodels.accounting.events import ComposedEvent
from dpmodels.accounting.split import split
from dpmodels.arrays import Floats, Whole
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.image_moments import (
    CODE_BITS,
    DIRECTION_BITS,
    NOT_FLIPPED,
    UNIT,
    ClipSpec,
    Flipped,
    ImageCode,
    ImageMoments,
    flipped_bases,
)
from dpmodels.embeddings.pose import Frame
from dpmodels.errors import ArtifactError
from dpmodels.frozen import Frozen
from dpmodels.generators.image_matching import MatchingSpec, match
from dpmodels.generators.images import ImageModel, Painter
from dpmodels.methods.parts.marginals import Marginals, of_classes
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Keep, NoisySum, Programme, Sum
from dpmodels.releases.system import Craft, Synthesizer, without_color
from dpmodels.statistics.symmetric import DIAGONAL, principal_directions, shrink_classes

MOST_SIGNS = 2**15
"""How many choices of signs are tried to find those by which a release was measured: each costs a millisecond."""
TEXTURE = 0.235


class ImageMeasurement(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        coefficients: number of coefficients of the public basis; smoothness: the length scale of that basis, in pixels
            of a 28 x 28 image.
        pose_weight: norm of one public spread of a pose, where one pixel of full ink (28 x 28) has norm 1.
        directions: number of directions that are kept from the first look.
        basis_share: share of the squared sensitivity (so of the budget, mu squared) that the first look takes.
        basis_radius: norm that codes are clipped to at the first look, in root mean square ink a pixel.
        class_radius: norm that codes are clipped to at the second look, as a multiple of the root mean square norm that
            the first look predicts.
        evening: alpha above; 0 leaves the directions as they vary, 1 brings all to the same variance.
        count_weight, mean_weight: weights of a count and of a first moment, where a second moment has 1.
        floor: a direction's variance is taken to be at least the edge of the noise divided by this.
        texture: standard deviation of the public noise that the ink of a drawn image is multiplied with. It costs
            nothing, and is in the plan so that a release is always drawn alike: one without it is of a version that
            drew none.
    """

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
    floor: Annotated[float, Field(gt=0, le=100)] = 3.0
    texture: Annotated[float, Field(ge=0, le=1)] | None = None


class ImageLooks:
    """The two embeddings of a plan; the second exists once the first is released."""

    def __init__(self, spec: ImageMeasurement, schema: Schema, flipped: Flipped = NOT_FLIPPED) -> None:
        self.spec, self.schema, self.classes, self.max_rows = spec, schema, schema.classes, schema.unit.max_rows
        self.code = ImageCode(schema, spec.coefficients, spec.smoothness, spec.pose_weight, flipped)
        self.size = min(spec.directions, self.code.dim)
        identity = np.eye(self.code.dim, dtype=np.int64) << DIRECTION_BITS
        centres = np.zeros((self.classes, self.code.dim), dtype=np.int64)
        radius = round(spec.basis_radius * UNIT * math.sqrt(len(self.code.basis)))
        self.first = self._moments(identity, centres, radius, pooled=True)

    def choose(self, first: Whole, noise_stddev: float) -> Whole:
        """Return directions, class centres and clip radius of the second look as whole numbers (post-processing).

        They are kept with the release, since an eigenvector that another machine computes may differ by a rounding.

        Units: ``noise_stddev`` of the first look, in lattice steps.
        """
        counts, sums, moments = self.first.unpack(first)
        means = sums / at_least_noise(counts, noise_stddev, self.first)[:, None]
        means /= np.maximum(1.0, np.linalg.norm(means, axis=1, keepdims=True))  # codes have norm at most 1
        total = max(float(counts.sum()), 1.0)
        within = moments[0] / total - np.einsum("c,ci,cj->ij", counts.clip(min=0) / total, means, means)
        directions = principal_directions(within, self.size)
        variances = np.einsum("ij,ik,kj->j", directions, within, directions)
        floor = _unit_noise(noise_stddev) * math.sqrt(2 * len(within)) / total / self.spec.floor
        variances = variances.clip(min=floor)
        weights = (variances / variances.min()) ** (-self.spec.evening / 2)
        radius = self.spec.class_radius * math.sqrt((variances * weights**2).sum()) * self.first.clip.radius
        whole = np.rint(np.ldexp(directions * weights, DIRECTION_BITS))
        centres = np.rint(means * self.first.clip.radius)
        return np.concatenate([whole.ravel(), centres.ravel(), [max(1, round(radius))]]).astype(np.int64)

    def second(self, parameters: Whole) -> ImageMoments:
        """Return the second embedding, made of what ``choose`` returned."""
        rows = self.code.dim
        directions, centres, radius = np.split(parameters, np.cumsum([rows * self.size, self.classes * rows]))
        shaped = directions.reshape(rows, self.size), centres.reshape(self.classes, rows)
        return self._moments(*shaped, int(radius[0]), pooled=False)

    def _moments(self, directions: Whole, centres: Whole, radius: int, *, pooled: bool) -> ImageMoments:
        clip = ClipSpec(directions, centres, radius, self.spec.count_weight, self.spec.mean_weight)
        return ImageMoments(self.code, clip, self.max_rows, pooled=pooled)


@dataclass(frozen=True)
class NacreImages(Synthesizer[ImageLooks]):
    """Nacre for images; its design is the two looks, whose sensitivities are equal, since they clip to one norm."""

    method = "nacre-images"
    measurement: ImageMeasurement = field(default_factory=ImageMeasurement)
    training: MatchingSpec = field(default_factory=MatchingSpec)

    def settled(self, contract: Schema) -> ImageMeasurement:
        """Set the texture that a new plan has, unless one was given."""
        measurement = self.measurement
        return measurement if measurement.texture is not None else measurement.model_copy(update={"texture": TEXTURE})

    def design(self, spec: ImageMeasurement, contract: Schema) -> ImageLooks:
        """Compute the public basis; the schema must have a gray image."""
        return ImageLooks(spec, without_color(contract, self.method))

    def of(self, line: Line) -> ImageLooks:
        """Make the design of a line again, with the signs that the machine which planned it gave to eigenvectors.

        Raises:
            ArtifactError: there are no such signs, since another version makes other looks.
        """
        design = self.design(ImageMeasurement.model_validate(line.measurement), line.table)
        if self.fingerprint(design) == line.fingerprint:
            return design
        return ImageLooks(design.spec, design.schema, _flipped(design, line.fingerprint, line.method))

    def event(self, design: ImageLooks, budget: PrivacyBudget) -> ComposedEvent:
        """Charge two Gaussians: the first takes ``basis_share`` of the budget's squared mu, the second the rest."""
        share = design.spec.basis_share
        return split(budget, {"basis": share, "moments by class": 1 - share})

    def programme(self, design: ImageLooks) -> Programme:
        """Sum the second moments of all images, then those of each class along the directions that vary most."""
        first = yield Sum.of(design.first)
        parameters = yield Keep.of(design.choose(first.vector, first.noise_stddev))
        yield Sum.of(design.second(parameters), design.first.l2_sensitivity)

    def fit(self, release: Released[Release], craft: Craft) -> ImageModel:
        """Shrink the released covariances and fit Gaussians whose images have them; in seconds, without checkpoints.

        Privacy: post-processing.
        """
        first, _, second = self.answers(release.value)
        return self.fit_looks(self.of(release.value.line), first, second, craft, release.value.entry)

    def fit_looks(
        self, looks: ImageLooks, first: NoisySum, second: NoisySum, craft: Craft, entry: str = ""
    ) -> ImageModel:
        """Fit Gaussians to two released looks, of which the second holds all that is fitted (post-processing)."""
        embedding, steps = second.embedding, second.noise_stddev
        counts, sums, moments = embedding.unpack(second.vector)
        divisor = at_least_noise(counts, steps, embedding)
        means = sums / divisor[:, None]
        covariances = moments / divisor[:, None, None] - means[:, :, None] * means[:, None, :]
        shrunk = shrink_classes(covariances, self.training.shrinkage * _unit_noise(steps) / divisor, divisor)
        clip = embedding.clip
        decoder = np.linalg.pinv(np.ldexp(clip.directions, -DIRECTION_BITS)) * clip.radius
        painter = Painter(looks.code, decoder, clip.centres.astype(np.float64), self.training.contrast)
        both, targets = (looks.first, embedding), (means, shrunk)
        painter, means, factors = match(both, painter, targets, self.training, craft.seed, craft.progress)
        settings = {key: getattr(looks.spec, key) for key in ("coefficients", "smoothness", "pose_weight")}
        settings["flipped"] = looks.code.flipped
        return ImageModel(looks.schema, settings, painter, means, factors, looks.spec.texture or 0.0, counts, entry)

    def marginals(self, release: Release) -> Marginals | None:
        """Return the counts of the classes that the second look released (post-processing)."""
        _, _, second = self.answers(release)
        counts = second.embedding.unpack(second.vector)[0]
        return of_classes(release.line.table, counts, second.noise_stddev / second.embedding.count_step)

    def noise(self, line: Line) -> dict[str, float]:
        looks = self.of(line)
        first, second = (line.noise_stddev(step, looks.first.l2_sensitivity) for step in (0, 1))
        return {
            "images in a class, first look": first / looks.first.count_step,
            "sum of squares of a code over all images, where the clip norm is 1": _unit_noise(first),
            "images in a class, second look": second / looks.first.count_step,
            "sum of squares of a code over a class, where the clip norm is 1": _unit_noise(second),
        }

    def fingerprint(self, design: ImageLooks) -> str:
        """Hash the public basis, so that a changed one cannot pass."""
        return _hash(design.code.basis)


def _hash(basis: Whole) -> str:
    return hashlib.sha256(np.ascontiguousarray(basis, dtype="<i8").tobytes()).hexdigest()


def _flipped(design: ImageLooks, fingerprint: str, method: str) -> Flipped:
    """Return which eigenvectors are turned round in the basis of a fingerprint.

    Raises:
        ArtifactError: none of the ways that are tried has this fingerprint.
    """
    key = design.code.frame, design.code.basis.shape[1], design.spec.smoothness
    if (signs := _search(*key, fingerprint)) is None:
        raise ArtifactError(f"the release of {method} was planned with other cells or features than these")
    return signs


@lru_cache(maxsize=64)
def _search(frame: Frame, count: int, smoothness: float, fingerprint: str) -> Flipped | None:
    bases = islice(flipped_bases(frame, count, smoothness), MOST_SIGNS)
    return next((flipped for flipped, basis in bases if _hash(basis) == fingerprint), None)


def at_least_noise(counts: Floats, noise_stddev: float, embedding: ImageMoments) -> Floats:
    """Raise released counts to at least their own noise, so that no quotient explodes where a class is tiny."""
    divisor: Floats = counts.clip(min=max(1.0, noise_stddev / embedding.count_step))
    return divisor


def _unit_noise(noise_stddev: float) -> float:
    """Convert noise from lattice steps to units of a code's square, where the clip norm is 1."""
    return noise_stddev / (DIAGONAL * 4.0**CODE_BITS)
