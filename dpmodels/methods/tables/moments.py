"""Moments: all one- and two-way marginals of every class on public cells, one look, one charge.

    measure   s = sum_x [ b onehot(x) ; onehot(x) onehot(x)' ] (x) e_class  + noise          embeddings/moments.py
    fit       the mixture of nacre                                                           generators/mixture.py

This baseline shows what nacre's first look is worth: it has none, and cuts interval columns into equal widths.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated

import numpy as np
from pydantic import Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import VALUE_BITS
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.frozen import Frozen
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.moment_matching import MixtureSpec, MomentMatching
from dpmodels.generators.targets import moment_target
from dpmodels.late import torch
from dpmodels.methods.parts.marginals import Marginals, NoisyTable, moment_tables, of_moments
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Programme, Sum
from dpmodels.releases.system import Craft, Synthesizer, fingerprint_of, without_image

PAIR_LIMIT = 2**20
"""Upper bound on the second moments of all classes, each pair of cells counted in both orders.

It bounds memory and the time of a training step.
"""


class MomentsMeasurement(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        cells: number of cells of equal width that an interval column is cut into.
        one_way_weight: weight of a first moment, where a second moment has 1.
    """

    cells: Annotated[int, Field(ge=2, le=4096)] = 32
    one_way_weight: Annotated[float, Field(ge=0.01, le=100)] = 1.0


@dataclass(frozen=True)
class MomentsSystem(Synthesizer[Moments]):
    """Moments; its design is the embedding."""

    method = "moments"
    measurement: MomentsMeasurement = field(default_factory=MomentsMeasurement)
    training: MixtureSpec = field(default_factory=MixtureSpec)

    def design(self, spec: MomentsMeasurement, contract: Schema) -> Moments:
        """Make the embedding of a schema, on public cells, conditional on the target where the target has classes.

        Raises:
            InvalidArgument, Unsuitable: the schema has an image, no column besides the target, or too many cells.
        """
        partition = Partition.fine(without_image(contract, self.method), spec.cells)
        if not partition.sizes:
            raise Unsuitable(f"schema {contract.name} has no column besides the target; add one, or name no target")
        if sum(partition.sizes) ** 2 * partition.classes > PAIR_LIMIT:
            raise InvalidArgument("cells", spec.cells, "be fewer: the second moments of this schema are too many")
        two_way = 1 << VALUE_BITS
        return Moments(partition, max(1, round(spec.one_way_weight * two_way)), two_way, contract.unit.max_rows)

    def event(self, design: Moments, budget: PrivacyBudget) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget))

    def programme(self, design: Moments) -> Programme:
        """Sum the moments once."""
        yield Sum.of(design)

    def fit(self, release: Released[Release], craft: Craft) -> MixtureModel:
        """Denoise the release and fit a mixture to it, resuming from the checkpoint if there is one.

        Privacy: post-processing.
        """
        line, (once,) = release.value.line, self.answers(release.value)
        moments = once.embedding
        target, counts = moment_target(None, moments, once.vector, once.noise_stddev)
        matching = MomentMatching(target, self.training, seed=craft.seed, device=craft.device)
        probabilities = matching.run(craft.checkpoint, craft.progress)
        even = [np.ones((moments.partition.classes, size)) for size in moments.partition.sizes]
        cells, totals = line.measurement["cells"], torch.from_numpy(counts)
        return MixtureModel(line.table, cells, moments.partition, probabilities, even, totals, release.value.entry)

    def marginals(self, release: Release) -> Marginals:
        """Return every column's counts (post-processing)."""
        (once,) = self.answers(release)
        return of_moments(once.embedding, once.vector, once.noise_stddev)

    def tables(self, release: Release) -> Iterator[NoisyTable]:
        """Return the counts of every column and pair of columns, by class (post-processing)."""
        return chain.from_iterable(map(moment_tables, self.answers(release)))

    def noise(self, line: Line) -> dict[str, float]:
        moments = self.of(line)
        steps = line.noise_stddev(0, moments.l2_sensitivity)
        return {
            "records in a cell of one column and class": steps / moments.one_way,
            "records in a pair of cells of two columns and class": steps / moments.two_way,
        }

    def fingerprint(self, design: Moments) -> str:
        cells = design.partition
        return fingerprint_of(cells.sizes, cells.classes, design.one_way, design.two_way)
