"""What PrivBayes measures: cells, families, prices and weights, from public inputs and earlier releases alone."""

import hashlib
import itertools
import json
import math
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dpmodels.accounting.events import ComposedEvent, GaussianEvent
from dpmodels.embeddings.base import VALUE_BITS
from dpmodels.embeddings.contingency import SCORE_STEP, SHARE_BITS, Family, Views
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Counts, Partition
from dpmodels.errors import ArtifactError
from dpmodels.generators.denoise import project
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.mechanisms.lattice import integer_radius
from dpmodels.releases.plan import Plan
from dpmodels.schema.schema import Schema

FINE_LIMIT = 2**17
"""Fine cells of all columns together."""
FAMILY_LIMIT = 2**17
"""Families scored in all; it bounds time. The degree is lowered until they fit, at last to 1 with the first column as
the only parent: of so many families the selection would tell little, and the first is the target."""
TABLE_LIMIT = 2**14
"""Cells of one family's table."""


class PrivBayesMeasurement(BaseModel):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        degree: most parents of a column.
        fine_cells: cells of an interval column at the first look.
        fine_share: share of the budget (mu squared) that the first look takes.
        select_share: share that all selections take together.
        runs: merged cells that the values of an interval column are cut into, where the mass allows.
        least_noise: what a merged cell should hold at least, in standard deviations of a table's noise.
        groups: coarse cells of a column as a parent, beside its merged cells.
        price: weight of the error that a table's noise is expected to cause, against what the table says.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    degree: Annotated[int, Field(ge=0, le=8)] = 3
    fine_cells: Annotated[int, Field(ge=2, le=4096)] = 256
    fine_share: Annotated[float, Field(ge=0.01, le=0.45)] = 0.15
    select_share: Annotated[float, Field(ge=0.01, le=0.45)] = 0.1
    runs: Annotated[int, Field(ge=2, le=4096)] = 24
    least_noise: Annotated[float, Field(ge=0, le=100)] = 2.0
    groups: Annotated[int, Field(ge=2, le=64)] = 6
    price: Annotated[float, Field(ge=0, le=100)] = 0.25


class Network:
    """What a plan measures, step by step: each step is a function of public parameters and of earlier releases."""

    def __init__(self, spec: PrivBayesMeasurement, schema: Schema, noise_multiplier: float) -> None:
        columns = len(schema.modelled)
        self.spec, self.max_rows, self.columns = spec, schema.unit.max_rows, columns
        self.root = schema.target_index or 0
        self.most_fine = min(spec.fine_cells, max(16, FINE_LIMIT // columns))
        self.fine = Partition.fine(schema, self.most_fine, conditional=False)
        self.degree = min(spec.degree, columns - 1)
        while self.degree > 1 and _families(columns, self.degree) > FAMILY_LIMIT:
            self.degree -= 1
        self.star = _families(columns, self.degree) > FAMILY_LIMIT
        select_share = spec.select_share if columns > 1 else 0.0
        self.unit = 1 << VALUE_BITS
        share = spec.fine_share / (1 - spec.fine_share - select_share)
        self.first = Moments(self.fine, round(math.sqrt(share) * self.unit), 0, self.max_rows)
        self.tables_radius = self.max_rows * integer_radius(columns * self.unit**2)
        looks = self.first.l2_sensitivity**2 + self.tables_radius**2
        self.l2_sensitivity = math.ceil(math.sqrt(looks / (1 - select_share)))
        self.noise_stddev = lattice_noise_stddev(self.l2_sensitivity, noise_multiplier)
        self.noise_multiplier = noise_multiplier
        self.selection = noise_multiplier * math.sqrt((columns - 1) / select_share) if columns > 1 else math.inf

    def event(self) -> ComposedEvent:
        """Return the Gaussians that are charged: two vectors, and every selection as one."""
        scale = self.noise_multiplier * self.l2_sensitivity
        vectors = (("fine one-way", self.first.l2_sensitivity), ("tables of the network", self.tables_radius))
        events = [GaussianEvent(noise_multiplier=scale / radius, mechanism=name) for name, radius in vectors]
        covered = "exponential, as the Gaussian that covers it"
        steps = range(self.columns - 1)
        events[1:1] = [GaussianEvent(noise_multiplier=self.selection, mechanism=covered) for _ in steps]
        return ComposedEvent(events=tuple(events))

    def views(self, first: NDArray[np.int64]) -> tuple[Views, list[Counts]]:
        """Return cells, coarse cells and the shares of the cells, from the released first vector."""
        least = math.ceil(self.spec.least_noise * self.noise_stddev * self.first.one_way / self.unit)
        histograms = np.split(first, self.fine.offsets[1:-1])
        partition = self.fine.merged(histograms, least, self.spec.runs, self.columns * self.spec.runs * 4)
        merged = [np.bincount(m, h).astype(np.int64) for m, h in zip(partition.merge, histograms, strict=True)]
        return Views.of(partition, merged, self.spec.groups), [_shares(counts) for counts in merged]

    def openings(self) -> list[Family]:
        """List the families without parents, one a column but the first; they may come whenever."""
        return [Family(column, ()) for column in range(self.columns) if column != self.root]

    def joining(self, views: Views, placed: list[int]) -> list[Family]:
        """List the families that the column placed last makes possible: it and others with a place are the parents."""
        *older, newest = placed
        if self.star and newest != self.root:
            return []
        parents = [
            chosen
            for size in range(self.degree)
            for columns in itertools.combinations(older, size)
            for chosen in itertools.product(*map(views.of_column, (*columns, newest)))
        ]
        children = [column for column in range(self.columns) if column not in placed]
        families = [Family(child, chosen) for child in children for chosen in parents]
        return [family for family in families if math.prod(views.shape(family)) <= TABLE_LIMIT]

    def penalty(self, views: Views, family: Family) -> int:
        """Return half the expected L1 norm of a table's noise, times the price, in score steps."""
        noise = self.noise_stddev / self.unit / math.sqrt(2 * math.pi)
        return round(float(self.spec.price * math.prod(views.shape(family)) * noise * SCORE_STEP))

    def steps(self, views: Views, families: list[Family]) -> list[int]:
        """Share the tables' sensitivity among them: steps a record in proportion to the cube root of a table's cells.

        That makes the expected L1 norm of all noise least. Privacy: sum steps^2 <= F unit^2 = tables_radius^2 / m^2.
        """
        weights = np.cbrt([math.prod(views.shape(family)) for family in families])
        scale = self.unit * math.sqrt(len(families)) / float(np.linalg.norm(weights))
        return [int(step) for step in np.floor(weights * scale * (1 - 1e-9))]

    def fingerprint(self) -> str:
        """Return the SHA-256 of the cells and weights that schema and parameters lead to."""
        facts = [self.fine.sizes, self.root, self.degree, self.star, self.first.one_way, self.unit, self.l2_sensitivity]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    @classmethod
    def of(cls, plan: Plan) -> "Network":
        """Rebuild the network of a plan."""
        spec = PrivBayesMeasurement.model_validate(plan.measurement)
        network = cls(spec, plan.table, plan.noise_multiplier)
        if network.fingerprint() != plan.fingerprint:
            raise ArtifactError("the release was planned with other cells than this version cuts")
        return network


def write_families(families: list[Family], degree: int) -> NDArray[np.int64]:
    """Write a network as numbers: for each family its child and its parents' views, -1 where there is none."""
    rows = [[family.child, *family.parents, *[-1] * (degree - len(family.parents))] for family in families]
    return np.array(rows, dtype=np.int64).ravel()


def read_families(structure: NDArray[np.int64], columns: int) -> list[Family]:
    """Read a network back."""
    rows = structure.reshape(columns, -1).tolist()
    return [Family(child, tuple(view for view in parents if view >= 0)) for child, *parents in rows]


def _families(columns: int, degree: int) -> int:
    """Bound the families that are scored: a set of columns, the last of which is the child, parents at two levels."""
    return sum(math.comb(columns, size + 1) * 2**size for size in range(degree + 1))


def _shares(counts: Counts) -> Counts:
    """Turn released counts into shares: non-negative whole multiples of 2**-16 that sum to 1."""
    clean = project(counts.astype(np.float64))
    clean = clean / clean.sum() if clean.sum() > 0 else np.full(len(clean), 1 / len(clean))
    edges = np.rint(np.cumsum(clean) * 2**SHARE_BITS).astype(np.int64)
    edges[-1] = 2**SHARE_BITS
    shares: Counts = np.diff(edges, prepend=0)
    return shares
