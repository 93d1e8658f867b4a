"""A warm start for a decoder: nacre's one-shot release, from a share of the budget, and records sampled from it.

The sampled records are post-processing, so a decoder may be trained on them without noise for as long as it takes;
DP-SGD then only refines it.

Privacy: nacre's two sums are two Gaussian looks (synthesizers/nacre.py has the proofs). Both get noise of one scale, so
together they cost one Gaussian of multiplier z / sqrt(share).
"""

from collections.abc import Sequence
from dataclasses import replace

from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.summation import transform_sum
from dpmodels.embeddings.vectors import VectorRows, transform_records
from dpmodels.generators.moment_matching import MixtureSpec
from dpmodels.privacy import Sensitive
from dpmodels.releases.steps import NoisySum
from dpmodels.releases.system import Craft
from dpmodels.schema.encode import Records
from dpmodels.schema.schema import Schema
from dpmodels.statistics.component_moments import Whole
from dpmodels.synthesizers.nacre import Nacre, NacreMeasurement
from dpmodels.synthesizers.private_training import Phase

SAMPLED_ROWS = 40_000
"""Number of records that a decoder is pre-trained on."""


class WarmStart:
    """Nacre's looks as the first phases of another system."""

    def __init__(self, schema: Schema, measurement: NacreMeasurement, share: float) -> None:
        self.nacre = Nacre(measurement, MixtureSpec(steps=300))
        self.looks = self.nacre.design(measurement, schema)
        radii = self.looks.first.l2_sensitivity, self.looks.second_radius
        first, second = (share * (radius / self.looks.l2_sensitivity) ** 2 for radius in radii)
        self.phases = (
            Phase("nacre, fine one-way", self.looks.first.dim, radii[0], first),
            Phase("nacre, one- and two-way", 0, radii[1], second),  # size unknown: its cells depend on the first look
        )

    def embedding(self, released: Sequence[NoisySum]) -> Moments:
        """Return the embedding that the next look sums."""
        return self.looks.second(released[0].vector, released[0].noise_stddev) if released else self.looks.first

    def statistic(self, rows: Sensitive[VectorRows], released: Sequence[NoisySum]) -> Sensitive[Whole]:
        """Return the sum of the next look."""
        return transform_sum(self.embedding(released), transform_records(rows))

    def sample(self, released: Sequence[NoisySum], seed: int) -> Records:
        """Fit nacre to its released looks and sample records (post-processing)."""
        fine, second = released
        second = replace(second, embedding=self.embedding([fine]))
        model = self.nacre.fit_looks(self.looks, fine, second, Craft(seed=seed))
        return Records.concat(list(model.sample(SAMPLED_ROWS, seed)))
