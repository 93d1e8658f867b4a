"""A warm start: nacre's one-shot release, from a share of the budget, and records sampled from it.

The sampled records are post-processing, so a network may be trained on them without noise for as long as it takes;
DP-SGD then only refines it. Tables have nacre's release and images that of nacre-images.

Privacy: both have two Gaussian looks (nacre.py and image_moments.py have the proofs), which together cost
one Gaussian of multiplier z; with noise 1 / sqrt(share) times as large they cost one of multiplier z / sqrt(share).
"""

from collections.abc import Generator, Sequence
from typing import Any

from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.errors import Unsuitable
from dpmodels.generators.image_matching import MatchingSpec
from dpmodels.generators.moment_matching import MixtureSpec
from dpmodels.generators.sampling import Sampler
from dpmodels.methods.images.image_moments import ImageMeasurement, NacreImages
from dpmodels.methods.tables.looks import NacreMeasurement
from dpmodels.methods.tables.nacre import Nacre
from dpmodels.methods.trained.private_training import Look
from dpmodels.releases.steps import NoisySum, Step, Sum
from dpmodels.releases.system import Craft

SAMPLED_ROWS = 40_000
"""Number of records that a decoder is pre-trained on."""


class WarmStart:
    """Nacre's looks as the first of another system.

    Attributes:
        looks: the size, sensitivity and share of each look; the size of the second depends on the first.
    """

    def __init__(self, schema: Schema, measurement: NacreMeasurement | ImageMeasurement, share: float) -> None:
        if not share:
            raise Unsuitable("what a warm start measures is named and gets no share; give warm_share or leave warm out")
        self.nacre: Nacre | NacreImages
        if isinstance(measurement, ImageMeasurement):
            self.nacre = NacreImages(measurement, MatchingSpec())
            self.design: Any = self.nacre.design(measurement, schema)
            parts = [("basis", measurement.basis_share), ("moments by class", 1 - measurement.basis_share)]
            radii = [self.design.first.l2_sensitivity] * 2
        else:
            self.nacre = Nacre(measurement, MixtureSpec(strong_steps=0))  # releases were trained from such a fit
            self.design = self.nacre.design(measurement, schema)
            zooms, left = self.design.zooms, 1 - measurement.zoom_share * self.design.zooms
            radii = [self.design.first.l2_sensitivity, self.design.second_radius]
            first, second = (left * (radius / self.design.l2_sensitivity) ** 2 for radius in radii)
            parts = [("zoom", measurement.zoom_share)] * zooms + [("fine one-way", first), ("one- and two-way", second)]
            radii = [self.design.zoom_radius] * zooms + radii
        self._fitted: tuple[Any, Sampler] | None = None
        dims = [self.design.first.dim] + [0] * (len(parts) - 1)
        self.looks = tuple(
            Look(f"nacre, {name}", dim, radius, share * part)
            for (name, part), dim, radius in zip(parts, dims, radii, strict=True)
        )

    def programme(self) -> Generator[Step, Any, list[NoisySum]]:
        """Take nacre's steps; return what its looks released."""
        programme, looks = self.nacre.programme(self.design), list[NoisySum]()
        step = next(programme, None)
        while step is not None:
            answer = yield step
            if isinstance(step, Sum):
                looks.append(answer)
            try:
                step = programme.send(answer)
            except StopIteration:
                break
        return looks

    def fit(self, released: Sequence[NoisySum], seed: int) -> Sampler:
        """Fit nacre to its released looks, once for all that start from it (post-processing)."""
        key = seed, *(look.vector.tobytes() for look in released[: len(self.looks)])
        if self._fitted is None or self._fitted[0] != key:
            looks = released[: len(self.looks)]
            fit: Any = self.nacre.fit_looks  # tables have as many looks as there are zooms, and images two
            self._fitted = key, fit(self.design, *looks, craft=Craft(seed=seed))
        return self._fitted[1]

    def sample(self, released: Sequence[NoisySum], seed: int) -> Records:
        """Fit nacre and sample records (post-processing)."""
        return Records.concat(list(self.fit(released, seed).sample(SAMPLED_ROWS, seed)))
