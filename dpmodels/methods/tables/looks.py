"""The looks of nacre: what is measured, and how each look follows from what those before it released.

Everything here is public parameters or released: no look reads data until it is summed. The proofs of the norms stand
with the embeddings (embeddings/moments.py, residuals.py, products.py, cell_counts.py), that of the charge in nacre.py.
"""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from dpmodels.arrays import Whole
from dpmodels.contract.columns import Continuous
from dpmodels.contract.schema import Schema
from dpmodels.contract.workload import cell_weights, joint_tables, pair_weights, weighed
from dpmodels.embeddings.base import VALUE_BITS
from dpmodels.embeddings.interactions import Interactions, JointTable
from dpmodels.embeddings.moments import Moments, band, pairs_within
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.per_user import UserMoments, UserResiduals, UserZoomCounts
from dpmodels.embeddings.products import Products, UserProducts, halves_of
from dpmodels.embeddings.residuals import Residuals, mix_of, scaled_to, squared_mix
from dpmodels.embeddings.zoom import Zoom, ZoomCounts
from dpmodels.errors import InvalidArgument
from dpmodels.frozen import Frozen
from dpmodels.mechanisms.lattice import integer_radius
from dpmodels.releases.steps import NoisySum

PAIR_BITS = 26
"""A residual weighs 2**26 lattice steps, to be divided by the numbers of cells of both columns. With default settings
no coordinate of a record of up to 64 columns reaches 2**28.6, so a sum of 10**10 records stays below 2**62.
"""


MOST_GROUPS, MOST_CELLS = 16, 2**16
"""Upper bounds on the groups that a column of a joint table has, and on the cells of one: of five columns, 8 groups."""
WIDE_BITS = 2
"""Bits fewer where all pairs of a wide table, of up to 512 columns, are measured: first moments weigh so much more."""


class NacreMeasurement(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        zooms: number of looks at single columns before the first, each on the cells that the one before led to; a table
            without a column that is zoomed into has none.
        zoom_values: number of values that an interval column may have without being zoomed into.
        zoom_share: share of the budget (mu squared) that each zoom takes.
        coarse_cells: number of equal cells that the first zoom cuts an interval column into.
        zoom_noise: what a part of a cell that is cut should hold, in standard deviations of a zoom's noise.
        fine_cells: number of cells that the first look cuts an interval column into; a zoom cuts into so many at most.
        fine_share: share of the squared sensitivity of first and second look (so of the budget that zooms leave) that
            the first look takes.
        one_way_weight: weight of a first moment at the second look, where a second moment has 1.
        pooled_share: share of a pair's squared norm at the second look that the residual of all classes together takes,
            about; None measures counts of pairs instead of residuals, each in the class of the record alone.
        small_class: size below which a class is small, in standard deviations of a second moment's noise.
        most_weight: upper bound on the extra weight of first moments where the first look finds a small class.
        runs: number of merged cells that the values of an interval column are cut into, where mass and noise allow.
        least_runs: lower bound on that number of cells, however large the noise is.
        resolved: association of two columns, cut into runs of equal mass, that should stand out of the noise of their
            second moments; columns are cut into fewer runs until it does.
        least_noise: mass that a merged cell should hold at least, in standard deviations of a second moment's noise.
        fine_limit: upper bound on the number of fine cells, over all classes and columns.
        pair_limit: upper bound on the number of second moments of all classes; it bounds the number of noise draws and
            the time of a training step.
        square_limit: upper bound on the square of the number of cells, added up over the classes; it bounds memory.
        paired_columns: number of columns up to which every column is paired with every other; in wider tables the
            noise would drown that many pairs.
        product_share: share of the squared norm of the second look that products of halves take in a wider table, where
            tables of all its pairs would drown; None pairs its columns with the few that follow them.
        product_columns: number of columns from which on they are paired with the few that follow them all the same.
        asked_cells: whether columns that a workload asks for are cut as finely as the noise of its pairs allows; by
            default they are. None, where there is no workload, is not dumped.
    """

    zooms: Annotated[int, Field(ge=0, le=4)] = 3
    zoom_share: Annotated[float, Field(ge=0.001, le=0.2)] = 0.03
    coarse_cells: Annotated[int, Field(ge=2, le=4096)] = 16
    zoom_values: Annotated[int, Field(ge=2, le=2**53)] = 64
    zoom_noise: Annotated[float, Field(ge=0, le=100)] = 3.0
    fine_cells: Annotated[int, Field(ge=2, le=4096)] = 256
    fine_share: Annotated[float, Field(ge=0.01, le=0.9)] = 0.3
    one_way_weight: Annotated[float, Field(ge=0.01, le=100)] = 1.0
    pooled_share: Annotated[float, Field(ge=0, le=0.95)] | None = 0.75
    small_class: Annotated[int, Field(ge=0, le=10**6)] = 60
    most_weight: Annotated[int, Field(ge=1, le=100)] = 3
    runs: Annotated[int, Field(ge=2, le=4096)] = 32
    least_runs: Annotated[int, Field(ge=1, le=4096)] = 8
    resolved: Annotated[float, Field(ge=0, le=100)] = 0.25
    least_noise: Annotated[float, Field(ge=0, le=100)] = 2.0
    fine_limit: Annotated[int, Field(ge=16, le=2**24)] = 2**17
    pair_limit: Annotated[int, Field(ge=16, le=2**24)] = 2**19
    square_limit: Annotated[int, Field(ge=16, le=2**26)] = 2**23
    paired_columns: Annotated[int, Field(ge=2, le=4096)] = 64
    product_share: Annotated[float, Field(ge=0.01, le=0.99)] | None = 0.35
    product_columns: Annotated[int, Field(ge=2, le=512)] = 160
    asked_cells: Annotated[bool | None, Field(exclude_if=lambda asked: asked is None)] = None

    def square(self, columns: int, paired: int) -> int:
        """Return the square of the number of cells, added up over the classes, that the limits leave room for."""
        return min(self.square_limit, self.pair_limit * columns**2 // max(pairs_within(columns, paired), 1))

    def reach(self, columns: int) -> int:
        """Return with how many of the columns that follow it a column is paired, within the limit on all pairs.

        In a wide table (a signal, a spectrum, a questionnaire) the schema's order is public and says which columns are
        likely to depend on each other.
        """
        most = self.paired_columns
        return columns - 1 if columns <= most else max(1, most * (most - 1) // 2 // columns)

    def takes_products(self, columns: int, classes: int) -> bool:
        """Tell whether all pairs of a wide table are measured: by a product each, or by tables where records are many.

        Public numbers decide: how many columns there are, and whether the limits leave room for all of their pairs.
        """
        wide = self.paired_columns < columns < self.product_columns
        takes = self.product_share is not None and self.pooled_share is not None
        return wide and takes and classes * (2 * columns) ** 2 <= self.square(columns, columns)


class Looks:
    """The embeddings of a plan; each exists once those before it are released."""

    moments: ClassVar[type[Moments]] = Moments
    products: ClassVar[type[Products]] = Products
    residuals: ClassVar[type[Residuals]] = Residuals
    zoom_counts: ClassVar[type[ZoomCounts]] = ZoomCounts

    def __init__(self, spec: NacreMeasurement, schema: Schema) -> None:
        columns, labelled = len(schema.modelled), schema.classes > 1
        self.all_pairs = spec.takes_products(columns - labelled, schema.classes)
        self.reach = columns if self.all_pairs else spec.reach(columns - labelled)
        square = spec.square(columns - labelled, self.reach)
        conditional = columns > labelled and schema.classes * (2 * (columns - labelled)) ** 2 <= square
        if labelled and not conditional:  # the target is then an ordinary column, paired with every other
            self.reach = columns - 1
            square = spec.square(columns, self.reach)
        columns -= labelled and conditional
        self.reach = min(self.reach, columns - 1) if self.all_pairs else self.reach
        classes = schema.classes if conditional else 1
        self.spec, self.schema, self.max_rows = spec, schema, schema.unit.max_rows
        self.most_fine = min(spec.fine_cells, max(16, spec.fine_limit // (classes * columns)))
        self.most_cells = math.isqrt(square // classes)
        self.fine = Partition.fine(schema, self.most_fine, conditional)
        self.coarse = Zoom.coarse(self.fine, spec.coarse_cells, spec.zoom_values)
        self.zoom_radius = self.zoom_counts(self.coarse, self.max_rows).l2_sensitivity
        self.zooms = spec.zooms if self.coarse.zoomed else 0
        self.mix = None if spec.pooled_share is None else mix_of(spec.pooled_share, classes)
        if weighed(schema) and not self.mix:
            raise InvalidArgument("pooled_share", spec.pooled_share, "be a share for a schema with `workload`")
        self.pair_weights = self.weights_of_pairs()
        bits = PAIR_BITS - WIDE_BITS * self.all_pairs if self.mix else VALUE_BITS
        self.two_way = (1 << bits) // int(self.pair_weights.max())
        if np.triu(self.pair_weights, self.reach + 1).max(initial=0) > 1:
            advice = f"be {columns} or more, since the workload asks for columns that are farther apart"
            raise InvalidArgument("paired_columns", spec.paired_columns, advice)
        pairs = pairs_within(columns, self.reach)
        self.columns, self.pairs = columns, pairs
        self.squares = sum(int((np.diagonal(self.pair_weights, k) ** 2).sum()) for k in range(1, self.reach + 1))
        # first moments keep their share of the norm, whatever a workload gives to some pairs
        average = math.sqrt(self.squares / pairs) if pairs else 1.0
        self.one_way = max(1, round(spec.one_way_weight * self.two_way * average))
        self.norm = columns * self.one_way**2 + self.squares * self.two_way**2
        step = round(math.sqrt(spec.fine_share / (1 - spec.fine_share) * self.norm / columns))
        self.first = self.moments(self.fine, step, 0, self.max_rows)
        self.second_radius = self.max_rows * integer_radius(self.norm)
        self._check_steps()
        self._weigh_joint_tables()
        radii = self.first.l2_sensitivity, self.second_radius, self.joint_radius
        self.l2_sensitivity = integer_radius(sum(radius**2 for radius in radii))

    def _weigh_joint_tables(self) -> None:
        """Give the joint tables that the workload asks for the norms of pairs of their weight."""
        self.joint = joint_tables(weighed(self.schema), self.fine.names)
        self.joint_norms = [weight * self.two_way for _, weight in self.joint]
        self.joint_radius = self.max_rows * integer_radius(sum(norm**2 for norm in self.joint_norms))
        if self.joint and self.all_pairs:
            advice = f"be {self.columns} or more, since the workload asks for tables that are `joint`"
            raise InvalidArgument("paired_columns", self.spec.paired_columns, advice)

    def weights_of_pairs(self) -> Whole:
        """Return how much more closely each pair of columns is measured: as the workload asks. Shapes: [F, F]."""
        return pair_weights(weighed(self.schema), self.fine.names)

    @property
    def cell_weights(self) -> tuple[list[int], list[int]]:
        """Return for each column the weights of the pairs whose noise decides how full cells are, and how many.

        They are those of columns that a workload names together. Those of all that it wants ``by`` one are not: cells
        that are finer everywhere lose more in all other pairs than they gain.
        """
        names = self.fine.names
        numbers = [name for name, each in zip(names, self.fine.columns, strict=True) if isinstance(each, Continuous)]
        weights = cell_weights(weighed(self.schema) if self.spec.asked_cells else (), names, numbers)
        return weights, weights

    @property
    def is_weighed(self) -> bool:
        """Whether some pairs of columns are measured more closely than others."""
        return bool(self.pair_weights.max() > 1)

    def _check_steps(self) -> None:
        """Refuse settings with which a residual could have so many cells that less than a step is left for each."""
        if not self.mix:
            return
        columns = zip(self.fine.columns, self.fine.sizes, strict=True)
        most = [self.spec.runs + c.states - 1 if isinstance(c, Continuous) else size for c, size in columns]
        cells = min(math.prod(sorted(most)[-2:]), (self.most_cells // 2) ** 2)
        if cells * self.spec.most_weight * math.isqrt(4 * squared_mix(self.mix, self.fine.classes)) > 2 * self.two_way:
            advice = "be smaller, or most_weight or pooled_share be less"
            raise InvalidArgument("square_limit", self.spec.square_limit, advice)

    def zoom(self, counted: NoisySum, cells: Zoom) -> Zoom:
        """Return the cells of the next zoom or of the first look (post-processing)."""
        return cells.cut(counted.vector, math.ceil(self.spec.zoom_noise * counted.noise_stddev), self.most_fine)

    def first_in(self, cells: Zoom) -> Moments:
        """Return the first look on zoomed cells; its norm is that of ``first``, whatever they are."""
        return self.moments(cells.partition, self.first.one_way, 0, self.max_rows)

    def second(self, once: NoisySum) -> Moments:
        """Return the second embedding, on cells merged and with weights set by the released first vector.

        Privacy: post-processing of the first look; whatever that released, the norm stays within ``second_radius``.
        """
        fine, noise_stddev = once.embedding.partition, once.noise_stddev
        counts = once.vector.reshape(fine.classes, -1)
        records = counts.sum(axis=1) / (len(fine.sizes) * self.first.one_way)
        one_way, two_way = self.weights(float(records.min()), noise_stddev / self.two_way)
        holds, number = self.cell_weights
        runs = [self.runs(float(records.sum()), noise_stddev / (two_way * weight)) for weight in number]
        least = self.spec.least_noise * noise_stddev * self.first.one_way / two_way
        leasts = [math.ceil(least / weight) for weight in holds]
        histograms = np.split(counts.sum(axis=0), fine.offsets[1:-1])
        if self.all_pairs and self.drowns(float(records.sum()), noise_stddev / two_way, self.spec.least_runs):
            return self.products_on(once, histograms)
        return self.second_on(fine.merged(histograms, leasts, runs, self.most_cells), one_way, two_way)

    def interactions(self, once: NoisySum, partition: Partition) -> Interactions:
        """Return the interactions in the joint tables that the workload asks for, on groups of the second look's cells.

        Privacy: post-processing of the first look; whatever that released, the norm stays within ``joint_radius``.
        """
        fine = once.embedding.partition
        counts = once.vector.reshape(fine.classes, -1)
        records = float(counts.sum()) / (len(fine.sizes) * self.first.one_way)
        histograms = np.split(counts.sum(axis=0), fine.offsets[1:-1])
        tables = []
        for (columns, _), norm in zip(self.joint, self.joint_norms, strict=True):
            most = self.most_groups(len(columns), records, once.noise_stddev / norm)
            groups = tuple(partition.groups(column, histograms[column], most) for column in columns)
            tables.append(JointTable(columns, groups))
        return Interactions(partition, tables, self.joint_norms, self.max_rows)

    def parted(self, released: Sequence[NoisySum]) -> tuple[Sequence[NoisySum], NoisySum, NoisySum | None, NoisySum]:
        """Return what was released by its looks: zooms, first look, joint tables if any were asked for, second look."""
        fine, *joint, second = released[self.zooms :]
        return released[: self.zooms], fine, joint[0] if joint else None, second

    def most_groups(self, order: int, records: float, noise: float) -> int:
        """Return how many groups each column of a joint table of ``order`` columns has at most: 2 to ``MOST_GROUPS``.

        Of a table of k^order cells, one direction of norm association times records / k^(order / 2) should stand out,
        and the noise of its k times k^(order - 1) matrix reaches 2 noise k^((order - 1) / 2) in some direction.

        Units: records; ``noise`` is the standard deviation of the noise of a count.
        """
        most = next(groups for groups in range(MOST_GROUPS, 0, -2) if groups**order <= MOST_CELLS)
        while most > 2 and most ** (order - 0.5) * 2 * noise > self.spec.resolved * max(records, 0.0):
            most -= 2  # an even number, for equal parts are then halves too
        return most

    @property
    def joint_stddevs(self) -> list[float]:
        """Return for each joint table what noise of one step makes of a cell's interactions at most, in records.

        A record weighs s sqrt(M free) steps, the largest that is at most ``norm`` with s a whole number, and free < M.
        """
        return [1 / (norm - MOST_CELLS) for norm in self.joint_norms]

    def products_on(self, once: NoisySum, histograms: list[Whole]) -> Products:
        """Return products of the halves of every two columns, on cells that may be half as thin as those of tables.

        Their squared norm is F a^2 + sum s^2 for the steps below, at most the planned one: divisions round down.
        """
        least = math.ceil(self.spec.least_noise * once.noise_stddev / 2)
        runs, most = 2 * self.spec.least_runs, 2 * self.most_cells  # they have no tables that would bound them
        partition = once.embedding.partition.merged(histograms, least, runs, most)
        merged = [np.zeros(size, dtype=np.int64) for size in partition.sizes]
        for counts, merge, fine in zip(merged, partition.merge, histograms, strict=True):
            np.add.at(counts, merge, fine)
        return self.products_in(partition, halves_of(merged))

    def products_in(self, partition: Partition, halves: tuple[Whole, ...]) -> Products:
        """Return products with weights within the planned norm."""
        share = self.spec.product_share or 0.0
        two_way = math.isqrt(int(share * self.norm) // self.squares)
        one_way = math.isqrt((self.norm - self.squares * two_way**2) // self.columns)
        weights = self.pair_weights if self.is_weighed else None
        return self.products(partition, halves, one_way, two_way, self.max_rows, weights)

    def second_on(self, partition: Partition, one_way: int, two_way: int) -> Moments:
        """Return the second embedding on merged cells, with weights within the planned norm."""
        if self.mix is None:
            return self.moments(partition, one_way, two_way, self.max_rows, band(self.columns, self.reach))
        weights = self.pair_weights if self.is_weighed else None
        paired = band(self.columns, self.reach)
        steps = scaled_to(self.norm, partition, paired, one_way, two_way, weights)
        return self.residuals(partition, *steps, self.max_rows, paired, self.mix, weights)

    def expected_second(self, smallest: float, noise_stddev: float) -> Moments:
        """Return the second embedding as it is likely to be: no category is thin, and intervals have middling runs.

        Units: records; ``smallest`` is the size of the smallest class, and ``noise_stddev`` in lattice steps.
        """
        runs = math.isqrt(self.spec.runs * self.spec.least_runs)
        even = [np.ones(size, dtype=np.int64) for size in self.fine.sizes]
        partition = self.fine.merged(even, 0, runs, self.most_cells)
        return self.second_on(partition, *self.weights(smallest, noise_stddev / self.two_way))

    def expected_products(self) -> Products:
        """Return the products that stand in for the tables of pairs where records are few."""
        even = [np.ones(size, dtype=np.int64) for size in self.fine.sizes]
        partition = self.fine.merged(even, 0, 2 * self.spec.least_runs, 2 * self.most_cells)
        return self.products_in(partition, halves_of([np.ones(size, dtype=np.int64) for size in partition.sizes]))

    def weights(self, smallest: float, noise: float) -> tuple[int, int]:
        """Return the lattice steps of one record in a first and in a second moment, within the planned norm.

        Where the smallest class is small, first moments get a larger part of that norm.

        Units: records; ``smallest`` is the size of the smallest class, ``noise`` the standard deviation of the noise of
        a second moment.
        """
        spec = self.spec
        factor = min(max(spec.small_class * noise / max(smallest, noise), 1.0), spec.most_weight)
        one, two = round(factor * self.one_way), self.two_way
        planned, squared = (self.columns * steps**2 + self.squares * two**2 for steps in (self.one_way, one))
        scaled = math.isqrt(two**2 * planned // squared)
        return scaled * one // two, scaled

    def runs(self, records: float, noise: float) -> int:
        """Return how many runs an interval column is cut into: fewer where second moments would drown in their noise.

        The second moments of two columns of k runs each and association rho differ from those of independent columns by
        one direction of norm rho records / k, and the noise of the k x k moments reaches 2 noise sqrt(k) in some
        direction.

        Units: records; ``noise`` is the standard deviation of the noise of a second moment.
        """
        runs = self.spec.runs
        while runs > self.spec.least_runs and self.drowns(records, noise, runs):
            runs -= 1
        return runs

    def drowns(self, records: float, noise: float, runs: int) -> bool:
        """Tell whether the noise of tables of so many runs hides the association that should stand out."""
        return runs**3 * (2 * noise) ** 2 > (self.spec.resolved * max(records, 0.0)) ** 2


class UserLooks(Looks):
    """The looks at the flat table of users and their rows, in which each user weighs one (embeddings/per_user.py)."""

    moments = UserMoments
    products = UserProducts
    residuals = UserResiduals
    zoom_counts = UserZoomCounts
