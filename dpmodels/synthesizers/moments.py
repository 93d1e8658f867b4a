"""Moments: all one- and two-way marginals of every class on public cells, one look, one charge.

    measure   s = sum_x [ b onehot(x) ; onehot(x) onehot(x)' ] (x) e_class  + noise          embeddings/moments.py
    fit       the mixture of nacre                                                           generators/mixture.py

The baseline that says what nacre's first look is worth: interval columns are cut into equal widths, known in advance.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent
from dpmodels.embeddings.base import VALUE_BITS
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.generators.loop import Progress
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.moment_matching import MixtureSpec, MomentMatching
from dpmodels.generators.targets import moment_target
from dpmodels.late import torch
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Plan, check_unit
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Programme, Sum
from dpmodels.releases.system import Synthesizer
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.marginals import Marginals, of_moments

PAIR_LIMIT = 2**20
"""Second moments of all classes together, counted both ways; it bounds memory and the time of a training step."""


class MomentsMeasurement(BaseModel):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        cells: of equal width that an interval column is cut into.
        one_way_weight: weight of a first moment, where a second moment has 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    cells: Annotated[int, Field(ge=2, le=4096)] = 32
    one_way_weight: Annotated[float, Field(ge=0.01, le=100)] = 1.0


def embedding_of(spec: MomentsMeasurement, schema: Schema) -> Moments:
    """Make the embedding of a schema: public cells, and conditional on the target where it has classes."""
    partition = Partition.fine(schema, spec.cells)
    if not partition.sizes:
        raise InvalidArgument("schema", schema.name, "have at least one column besides the target")
    if sum(partition.sizes) ** 2 * partition.classes > PAIR_LIMIT:
        raise InvalidArgument("cells", spec.cells, "be fewer: the second moments of this schema are too many")
    two_way = 1 << VALUE_BITS
    return Moments(partition, max(1, round(spec.one_way_weight * two_way)), two_way, schema.unit.max_rows)


@dataclass(frozen=True)
class MomentsSystem(Synthesizer):
    """The three verbs of moments."""

    measurement: MomentsMeasurement = field(default_factory=MomentsMeasurement)
    training: MixtureSpec = field(default_factory=MixtureSpec)

    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge: one Gaussian event, whatever the data; touches no data.

        Raises:
            InvalidArgument: the budget's unit is not the schema's, the schema has an image, or too many cells.
        """
        check_unit(schema, budget)
        if schema.image:
            raise InvalidArgument("method", "moments", "be nacre-images for a schema with a column of type image")
        embedding, noise_multiplier = embedding_of(self.measurement, schema), gaussian_noise_multiplier(budget)
        return Plan(
            method="moments",
            table=schema,
            budget=budget,
            event=GaussianEvent(noise_multiplier=noise_multiplier),
            noise_multiplier=noise_multiplier,
            l2_sensitivity=embedding.l2_sensitivity,
            measurement=self.measurement.model_dump(mode="json"),
            fingerprint=_fingerprint(embedding),
        )

    def programme(self, plan: Plan) -> Programme:
        """Sum the moments once."""
        yield Sum.of(_embedding(plan), 1, plan.l2_sensitivity, plan.noise_multiplier)

    def fit(
        self,
        release: Released[Release],
        *,
        seed: int,
        device: str,
        checkpoint: Path,
        progress: Progress | None = None,
    ) -> MixtureModel:
        """Denoise the release and fit a mixture to it, resuming from the checkpoint if there is one.

        Privacy: post-processing.
        """
        plan, moments = release.value.plan, _embedding(release.value.plan)
        noise = lattice_noise_stddev(plan.l2_sensitivity, plan.noise_multiplier)
        target, counts = moment_target(None, moments, release.value.vector, noise)
        probabilities = MomentMatching(target, self.training, seed=seed, device=device).run(checkpoint, progress)
        even = [np.ones((moments.partition.classes, size)) for size in moments.partition.sizes]
        cells, totals = self.measurement.cells, torch.from_numpy(counts)
        return MixtureModel(plan.table, cells, moments.partition, probabilities, even, totals, release.value.entry)

    def marginals(self, release: Release) -> Marginals:
        """Return every column's counts (post-processing)."""
        plan = release.plan
        return of_moments(
            _embedding(plan), release.vector, lattice_noise_stddev(plan.l2_sensitivity, plan.noise_multiplier)
        )

    def noise(self, plan: Plan) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise."""
        moments, steps = _embedding(plan), lattice_noise_stddev(plan.l2_sensitivity, plan.noise_multiplier)
        return {
            "records in a cell of one column and class": steps / moments.one_way,
            "records in a pair of cells of two columns and class": steps / moments.two_way,
        }


def _embedding(plan: Plan) -> Moments:
    moments = embedding_of(MomentsMeasurement.model_validate(plan.measurement), plan.table)
    if _fingerprint(moments) != plan.fingerprint:
        raise ArtifactError("the release was planned with other cells than this version cuts")
    return moments


def _fingerprint(moments: Moments) -> str:
    facts = [moments.partition.sizes, moments.partition.classes, moments.one_way, moments.two_way]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
