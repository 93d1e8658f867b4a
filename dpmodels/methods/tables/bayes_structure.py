"""What PrivBayes measures: cells, families, prices and weights, from public inputs and earlier releases alone."""

import itertools
import math
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmodels.accounting.events import ComposedEvent, GaussianEvent
from dpmodels.arrays import Whole
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import VALUE_BITS
from dpmodels.embeddings.contingency import SCORE_STEP, SHARE_BITS, Family, Views
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.frozen import Frozen
from dpmodels.generators.denoise import project
from dpmodels.mechanisms.lattice import integer_radius
from dpmodels.releases.steps import NoisySum
from dpmodels.releases.system import fingerprint_of


class PrivBayesMeasurement(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        degree: largest number of parents of a column.
        fine_cells: number of cells that the first look cuts an interval column into.
        fine_share: share of the budget (mu squared) that the first look takes.
        select_share: share of the budget that all selections take together.
        runs: number of merged cells that the values of an interval column are cut into, where the mass allows.
        least_noise: mass that a merged cell should hold at least, in standard deviations of a table's noise.
        groups: number of coarse cells that a column may have as a parent, instead of its merged cells.
        price: weight, in the score of a family, of the error that the noise of its table is expected to cause.
        fine_limit: upper bound on the fine cells of all columns; table_limit: on the cells of one family's table.
        family_limit: upper bound on the families that are scored, and so on time. The degree is lowered until they fit,
            at last to 1 with the first column, the target, as the only parent: a selection among more families would
            tell little.
    """

    degree: Annotated[int, Field(ge=0, le=8)] = 3
    fine_cells: Annotated[int, Field(ge=2, le=4096)] = 256
    fine_share: Annotated[float, Field(ge=0.01, le=0.45)] = 0.15
    select_share: Annotated[float, Field(ge=0.01, le=0.45)] = 0.1
    runs: Annotated[int, Field(ge=2, le=4096)] = 24
    least_noise: Annotated[float, Field(ge=0, le=100)] = 2.0
    groups: Annotated[int, Field(ge=2, le=64)] = 6
    price: Annotated[float, Field(ge=0, le=100)] = 0.25
    fine_limit: Annotated[int, Field(ge=16, le=2**24)] = 2**17
    family_limit: Annotated[int, Field(ge=1, le=2**24)] = 2**17
    table_limit: Annotated[int, Field(ge=4, le=2**24)] = 2**14


class Network:
    """What a plan measures, step by step: each step is a function of public parameters and of earlier releases."""

    def __init__(self, spec: PrivBayesMeasurement, schema: Schema) -> None:
        columns = len(schema.modelled)
        self.spec, self.max_rows, self.columns = spec, schema.unit.max_rows, columns
        self.root = schema.target_index or 0
        self.most_fine = min(spec.fine_cells, max(16, spec.fine_limit // columns))
        self.fine = Partition.fine(schema, self.most_fine, conditional=False)
        self.degree = min(spec.degree, columns - 1)
        while self.degree > 1 and _families(columns, self.degree) > spec.family_limit:
            self.degree -= 1
        self.star = _families(columns, self.degree) > spec.family_limit
        self.select_share = select_share = spec.select_share if columns > 1 else 0.0
        self.unit = 1 << VALUE_BITS
        share = spec.fine_share / (1 - spec.fine_share - select_share)
        self.first = Moments(self.fine, round(math.sqrt(share) * self.unit), 0, self.max_rows)
        self.tables_radius = self.max_rows * integer_radius(columns * self.unit**2)
        looks = self.first.l2_sensitivity**2 + self.tables_radius**2
        self.l2_sensitivity = math.ceil(math.sqrt(looks / (1 - select_share)))

    def event(self, noise_multiplier: float) -> ComposedEvent:
        """Return the Gaussians that are charged: one for each of two vectors of one noise scale and each selection."""
        scale = noise_multiplier * self.l2_sensitivity
        vectors = (("fine one-way", self.first.l2_sensitivity), ("tables of the network", self.tables_radius))
        events = [GaussianEvent(noise_multiplier=scale / radius, mechanism=name) for name, radius in vectors]
        covered = "exponential, as the Gaussian that covers it"
        if steps := self.columns - 1:
            selection = noise_multiplier * math.sqrt(steps / self.select_share)
            events[1:1] = [GaussianEvent(noise_multiplier=selection, mechanism=covered)] * steps
        return ComposedEvent(events=tuple(events))

    def views(self, first: NoisySum) -> tuple[Views, list[Whole]]:
        """Return cells, coarse cells and the shares of the cells, from the released first vector."""
        least = math.ceil(self.spec.least_noise * first.noise_stddev * self.first.one_way / self.unit)
        histograms = np.split(first.vector, self.fine.offsets[1:-1])
        partition = self.fine.merged(histograms, least, self.spec.runs, self.columns * self.spec.runs * 4)
        merged = [np.bincount(m, h).astype(np.int64) for m, h in zip(partition.merge, histograms, strict=True)]
        return Views.of(partition, merged, self.spec.groups), [_shares(counts) for counts in merged]

    def openings(self) -> list[Family]:
        """List the families without parents, one for each column but the first; any step may select one of them."""
        return [Family(column, ()) for column in range(self.columns) if column != self.root]

    def joining(self, views: Views, placed: list[int]) -> list[Family]:
        """List the families that became possible last: their parents are the newest column and some placed before."""
        *older, newest = placed
        if self.star and newest != self.root:
            return []
        parents = [
            views_of_columns
            for size in range(self.degree)
            for columns in itertools.combinations(older, size)
            for views_of_columns in itertools.product(*map(views.of_column, (*columns, newest)))
        ]
        children = [column for column in range(self.columns) if column not in placed]
        families = [Family(child, views_of_columns) for child in children for views_of_columns in parents]
        return [family for family in families if math.prod(views.shape(family)) <= self.spec.table_limit]

    def penalty(self, views: Views, noise_stddev: float, family: Family) -> int:
        """Return half the expected L1 norm of the noise of a family's table, times the price, in score steps."""
        noise = noise_stddev / self.unit / math.sqrt(2 * math.pi)
        return round(float(self.spec.price * math.prod(views.shape(family)) * noise * SCORE_STEP))

    def steps(self, views: Views, families: list[Family]) -> list[int]:
        """Return the lattice steps of a record in each table, in proportion to the cube root of the table's cells.

        This makes the expected L1 norm of the noise of all tables least.

        Privacy: sum steps^2 <= F unit^2 = tables_radius^2 / m^2, for F families and m rows of a unit.
        """
        weights = np.cbrt([math.prod(views.shape(family)) for family in families])
        scale = self.unit * math.sqrt(len(families)) / float(np.linalg.norm(weights))
        return [int(step) for step in np.floor(weights * scale * (1 - 1e-9))]

    def fingerprint(self) -> str:
        """Return the SHA-256 of the cells and weights that schema and parameters lead to."""
        sizes = [self.fine.sizes, self.root, self.degree, self.star]
        return fingerprint_of(*sizes, self.first.one_way, self.unit, self.l2_sensitivity)


def write_family(family: Family, degree: int) -> NDArray[np.int64]:
    """Write a family as numbers: its child and its parents' views, -1 where there is none."""
    return np.array([family.child, *family.parents, *[-1] * (degree - len(family.parents))], dtype=np.int64)


def read_family(written: NDArray[np.int64]) -> Family:
    """Read a family back."""
    child, *parents = written.tolist()
    return Family(child, tuple(view for view in parents if view >= 0))


def _families(columns: int, degree: int) -> int:
    """Bound the number of scored families: sets of columns whose last is the child, parents at one of two levels."""
    return sum(math.comb(columns, size + 1) * 2**size for size in range(degree + 1))


def _shares(counts: Whole) -> Whole:
    """Turn released counts into shares: non-negative whole multiples of 2**-16 that sum to 1."""
    clean = project(counts.astype(np.float64))
    clean = clean / clean.sum() if clean.sum() > 0 else np.full(len(clean), 1 / len(clean))
    edges = np.rint(np.cumsum(clean) * 2**SHARE_BITS).astype(np.int64)
    edges[-1] = 2**SHARE_BITS
    shares: Whole = np.diff(edges, prepend=0)
    return shares
