"""Nacre, the default for tables: two looks at low-order moments, one charge, and a mixture that reproduces them.

    measure   h = sum_x a onehot_fine(x) (x) e_class                       + noise      where the mass of each column is
              cells = merge(h)                                             released     thin cells merged, from h alone
              s = sum_x [ b onehot(x) ; c onehot(x) onehot(x)' ] (x) e_class  + noise   all 1-way, 2-way, label-3-way
    denoise   average what measures the same, shrink what is noise         generators/denoise.py
    fit       a mixture of product distributions to the moments            generators/moment_matching.py

Privacy: both looks get discrete Gaussian noise of one scale z * Delta, with Delta^2 = Delta_h^2 + Delta_s^2 (proofs:
embeddings/moments.py). They are Gaussian mechanisms of mu_h = Delta_h / (z Delta) and mu_s = Delta_s / (z Delta); the
second may depend on the released first, and mu_h^2 + mu_s^2 <= 1 / z^2: together they cost no more than one Gaussian
of noise multiplier z (Dong, Roth and Su 2019, corollary 3.3).
"""

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, GaussianEvent
from dpmodels.embeddings.base import VALUE_BITS
from dpmodels.embeddings.moments import Moments, pairs_within
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.generators.loop import Progress
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.moment_matching import MixtureSpec, MomentMatching
from dpmodels.generators.targets import details, moment_target
from dpmodels.late import torch
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.mechanisms.lattice import integer_radius
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Plan, check_unit
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Programme, Sum
from dpmodels.releases.system import Synthesizer
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.marginals import Marginals, of_moments, with_pairs

FINE_LIMIT = 2**17
"""Fine cells of all classes and columns together."""
PAIR_LIMIT = 2**19
"""Second moments of all classes together; it bounds noise draws and the time of a training step."""
SQUARE_LIMIT = 2**23
"""Cells squared, of all classes together; it bounds memory."""
PAIRED_COLUMNS = 64
"""Columns up to which all are paired with each other; in wider tables the pairs would drown in their noise."""


SMALL_CLASS = 60
"""Standard deviations of a second moment's noise below which a class is small."""
MOST_WEIGHT = 3
"""How much more a first moment may weigh then."""
RESOLVED = 0.25
"""Association of two columns, in runs of equal mass, that should stand out of the noise of their second moments."""
LEAST_RUNS = 8
"""Runs that an interval column is cut into however large the noise is."""


def _square(columns: int, paired: int) -> int:
    """Return how many cells squared, of all classes together, the limits leave room for."""
    return min(SQUARE_LIMIT, PAIR_LIMIT * columns**2 // max(pairs_within(columns, paired), 1))


def reach(columns: int) -> int:
    """Return how many of the next columns a column is paired with: as many as leave no more pairs than the limit has.

    The schema's order is what a wide table (a signal, a spectrum, a questionnaire) publicly says of its dependence.
    """
    return columns - 1 if columns <= PAIRED_COLUMNS else max(1, PAIRED_COLUMNS * (PAIRED_COLUMNS - 1) // 2 // columns)


class NacreMeasurement(BaseModel):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        fine_cells: cells of an interval column at the first look.
        fine_share: share of the squared sensitivity (so of the budget, mu squared) that the first look takes.
        one_way_weight: weight of a first moment at the second look, where a second moment has 1; up to ``MOST_WEIGHT``
            times as much where the first look finds a small class.
        runs: merged cells that the values of an interval column are cut into, where mass and noise allow.
        least_noise: what a merged cell should hold at least, in standard deviations of a second moment's noise.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    fine_cells: Annotated[int, Field(ge=2, le=4096)] = 256
    fine_share: Annotated[float, Field(ge=0.01, le=0.9)] = 0.3
    one_way_weight: Annotated[float, Field(ge=0.01, le=100)] = 1.0
    runs: Annotated[int, Field(ge=2, le=4096)] = 32
    least_noise: Annotated[float, Field(ge=0, le=100)] = 2.0


class Looks:
    """The two embeddings of a plan; the second exists once the first is released."""

    def __init__(self, spec: NacreMeasurement, schema: Schema) -> None:
        columns, labelled = len(schema.modelled), schema.classes > 1
        self.reach = reach(columns - labelled)
        square = _square(columns - labelled, self.reach)
        conditional = columns > labelled and schema.classes * (2 * (columns - labelled)) ** 2 <= square
        if labelled and not conditional:  # the target is a column like others, and must be paired with all of them
            self.reach = columns - 1
            square = _square(columns, self.reach)
        columns -= labelled and conditional
        classes = schema.classes if conditional else 1
        self.spec, self.max_rows = spec, schema.unit.max_rows
        self.most_fine = min(spec.fine_cells, max(16, FINE_LIMIT // (classes * columns)))
        self.most_cells = math.isqrt(square // classes)
        self.fine = Partition.fine(schema, self.most_fine, conditional)
        self.two_way = 1 << VALUE_BITS
        self.one_way = max(1, round(spec.one_way_weight * self.two_way))
        pairs = pairs_within(columns, self.reach)
        self.columns, self.pairs = columns, pairs
        second = columns * self.one_way**2 + pairs * self.two_way**2
        step = round(math.sqrt(spec.fine_share / (1 - spec.fine_share) * second / columns))
        self.first = Moments(self.fine, step, 0, self.max_rows)
        self.second_radius = self.max_rows * integer_radius(second)
        self.l2_sensitivity = integer_radius(self.first.l2_sensitivity**2 + self.second_radius**2)

    def second(self, first: NDArray[np.int64], noise_stddev: float) -> Moments:
        """Return the second embedding, on cells merged and with weights set by the released first vector.

        Privacy: post-processing of the first look; whatever it says, the norm stays within ``second_radius``.
        """
        counts = first.reshape(self.fine.classes, -1)
        records = counts.sum(axis=1) / (len(self.fine.sizes) * self.first.one_way)
        one_way, two_way = self.weights(float(records.min()), noise_stddev / self.two_way)
        runs = self.runs(float(records.sum()), noise_stddev / two_way)
        least = math.ceil(self.spec.least_noise * noise_stddev * self.first.one_way / two_way)
        histograms = np.split(counts.sum(axis=0), self.fine.offsets[1:-1])
        partition = self.fine.merged(histograms, least, runs, self.most_cells)
        return Moments(partition, one_way, two_way, self.max_rows, self.reach)

    def weights(self, smallest: float, noise: float) -> tuple[int, int]:
        """Return the steps of a first and of a second moment: where a class is small, its margins come first.

        Units: records; ``smallest`` has the smallest class, ``noise`` is the standard deviation of a second moment's.
        """
        factor = min(max(SMALL_CLASS * noise / max(smallest, noise), 1.0), MOST_WEIGHT)
        one, two = round(factor * self.one_way), self.two_way
        planned, squared = (self.columns * steps**2 + self.pairs * two**2 for steps in (self.one_way, one))
        scaled = math.isqrt(two**2 * planned // squared)
        return scaled * one // two, scaled

    def runs(self, records: float, noise: float) -> int:
        """Return how many runs an interval column is cut into: fewer where second moments would drown in their noise.

        Two columns of k runs each and association rho differ from independent ones by one direction of norm
        rho records / k, and the noise of their k x k moments reaches 2 noise sqrt(k) in some direction.

        Units: records; ``noise`` is the standard deviation of a second moment's.
        """
        runs = self.spec.runs
        while runs > LEAST_RUNS and runs**3 * (2 * noise) ** 2 > (RESOLVED * max(records, 0.0)) ** 2:
            runs -= 1
        return runs

    def event(self, noise_multiplier: float) -> ComposedEvent:
        """Return the two Gaussians that are charged."""
        scale = noise_multiplier * self.l2_sensitivity
        parts = (("fine one-way", self.first.l2_sensitivity), ("one- and two-way", self.second_radius))
        return ComposedEvent(events=tuple(GaussianEvent(noise_multiplier=scale / r, mechanism=m) for m, r in parts))

    def fingerprint(self) -> str:
        """Return the SHA-256 of the cells and weights that schema and parameters lead to."""
        cells = [self.fine.sizes, self.fine.classes, self.most_cells, self.reach]
        rules = [SMALL_CLASS, MOST_WEIGHT, RESOLVED, LEAST_RUNS]
        facts = [*cells, self.first.one_way, self.one_way, self.two_way, *rules]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    @classmethod
    def of(cls, plan: Plan) -> "Looks":
        """Rebuild the looks of a plan."""
        looks = cls(NacreMeasurement.model_validate(plan.measurement), plan.table)
        if looks.fingerprint() != plan.fingerprint:
            raise ArtifactError("the release was planned with other cells than this version cuts")
        return looks


@dataclass(frozen=True)
class Nacre(Synthesizer):
    """The three verbs of nacre."""

    measurement: NacreMeasurement = field(default_factory=NacreMeasurement)
    training: MixtureSpec = field(default_factory=MixtureSpec)

    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge: two composed Gaussian events, whatever the data; touches no data.

        Raises:
            InvalidArgument: the budget's unit is not the schema's, or the schema has an image.
        """
        check_unit(schema, budget)
        if schema.image:
            raise InvalidArgument("method", "nacre", "be nacre-images for a schema with a column of type image")
        looks = Looks(self.measurement, schema)
        noise_multiplier = gaussian_noise_multiplier(budget)
        return Plan(
            method="nacre",
            table=schema,
            budget=budget,
            event=looks.event(noise_multiplier),
            noise_multiplier=noise_multiplier,
            l2_sensitivity=looks.l2_sensitivity,
            measurement=self.measurement.model_dump(mode="json"),
            fingerprint=looks.fingerprint(),
        )

    def programme(self, plan: Plan) -> Programme:
        """Sum the fine histograms, then the moments on cells that their noisy sum sets."""
        looks, l2, z = Looks.of(plan), plan.l2_sensitivity, plan.noise_multiplier
        fine = yield Sum.of(looks.first, 1, l2, z)
        yield Sum.of(looks.second(fine, lattice_noise_stddev(l2, z)), 2, l2, z)

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
        plan, looks = release.value.plan, Looks.of(release.value.plan)
        noise = lattice_noise_stddev(plan.l2_sensitivity, plan.noise_multiplier)
        vector = release.value.vector
        moments = looks.second(vector[: looks.first.dim], noise)
        fine = looks.first.unpack(vector[: looks.first.dim])[0]
        target, counts = moment_target(looks.first, moments, vector, noise)
        training = MomentMatching(target, self.training, seed=seed, device=device)
        probabilities = training.run(checkpoint, progress)
        detail = details(moments.partition, fine, looks.fine.offsets, noise / looks.first.one_way)
        return MixtureModel(
            plan.table,
            looks.most_fine,
            moments.partition,
            probabilities,
            detail,
            torch.from_numpy(counts),
            release.value.entry,
        )

    def marginals(self, release: Release) -> Marginals:
        """Return every column's counts, averaged over both looks (post-processing)."""
        plan, looks = release.plan, Looks.of(release.plan)
        steps = lattice_noise_stddev(plan.l2_sensitivity, plan.noise_multiplier)
        fine, vector = np.split(release.vector, [looks.first.dim])
        once = of_moments(looks.first, fine, steps)
        return with_pairs(once, looks.first, fine, looks.second(fine, steps), vector, steps)

    def noise(self, plan: Plan) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise."""
        looks, steps = Looks.of(plan), lattice_noise_stddev(plan.l2_sensitivity, plan.noise_multiplier)
        _, two_way = looks.weights(0.0, steps / looks.two_way)
        return {
            "records in a fine cell of one column and class": steps / looks.first.one_way,
            "records in a merged cell of one column and class, at most": steps / looks.one_way,
            "records in a pair of merged cells of two columns and class, at most": steps / two_way,
        }
