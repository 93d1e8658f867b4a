"""The noisy tables of a release as rows: columns, cells, count and standard error, for whoever wants just these.

Privacy: post-processing of released counts and public noise scales.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.columns import Continuous, Datetime, Derived, Discrete, copy_of, helpers
from dpmodels.contract.derivation.tariff import written_table
from dpmodels.contract.derivation.terms import terms_of
from dpmodels.contract.formula import names_in
from dpmodels.errors import Unsuitable, near
from dpmodels.methods.parts.marginals import Marginals, NoisyTable
from dpmodels.methods.registry import create, of_kind
from dpmodels.plural import listed
from dpmodels.releases.release import Release
from dpmodels.report.counts.cell_values import CellValues
from dpmodels.report.counts.likely import Side, likely, side_of, spread
from dpmodels.report.counts.table_rows import rows_of_table, side_by_side
from dpmodels.report.derived.counted import Moments, labels_of, mean_of, moments_of, tails_joined
from dpmodels.report.derived.possible import Rules

MEASURED, COMBINED = "measured", "combined"
"""A count as it was released; and the average of all that was released of the same cells of one column, or of it by the
classes of the target."""
LEAST_ROWS, MOST_EACH = 2**16, 3
"""Rows of tables that are written at once, at least; and tables of the least noise, and of the most cells, by which a
mean is tried."""
MOST_NAMED = 4  # columns that a refusal lists
TOGETHER = (
    "a call of `marginals` without columns lists its tables, and the next release counts three columns together that "
    "an entry of `workload` names with `joint: true`"
)
NOT_BESIDE = (
    "{what} follows from {operands}, which the release counts in no table together{groups}: of the synthetic rows its "
    "mean has no known error; for the next release have it counted beside "
    "(docs/columns-that-depend.md#a-column-for-figures-alone)"
)


class Counts(NamedTuple):
    """The rows of one table, and the ticks in which cells of its columns of dates are described, by column."""

    rows: pa.Table
    ticks: dict[str, str]


class Cells(NamedTuple):
    """A table of groups beside what something is in them, a row a cell.

    Attributes:
        counts: of all columns that were counted together for it.
        groups: what each row is called by a column that follows from another one, by the name of that column.
        moments: of what a formula gives in every row; None without a formula.
        totals: the part of each row in the number of rows of its group, and in the variance of that: of groups of one
            column as all tables tell them.
        ends: between what the values of the last column lie by the rules, where these say it and there is no formula.
        merged: the cell of each fine one, of every column that was counted. Shapes: [fine cells].
    """

    counts: Counts
    groups: dict[str, list[str]]
    moments: Moments | None
    ends: tuple[Floats, Floats] | None
    totals: tuple[Floats, Floats]
    merged: dict[str, Whole]


class Counted:
    """The tables that a release counts, and what the columns are that follow from counted ones.

    Raises:
        Unsuitable: its method releases no counts.
    """

    def __init__(self, release: Release, about: Collection[str] | None = None) -> None:
        """Read a release; of tables those that have only columns ``about`` which is asked, and classes of the target.

        Without ``about`` it is all tables.
        """
        self.contract = release.line.contract
        self.measured, self.combined, self.values, (self.records, self.records_stddev) = _tables_of(release, about)
        table: Any = self.contract.tables[self.contract.root] if self.contract.kind == "tree" else self.contract
        self.columns: Mapping[str, Any] = getattr(table, "columns", {})
        implications, pairs = (getattr(table, each, ()) for each in ("implications", "rules"))
        self.rules = Rules(implications, pairs, self.columns, self.values.columns)

    def over(self, names: Sequence[str]) -> tuple[str, NoisyTable] | None:
        """Return the table of some columns whose counts have the least noise, and its kind; None if there is none.

        Counts that were released by the classes of the target are added up where these are not asked for.
        """
        return min(self._every_over(names), key=_noise, default=None)

    def _every_over(self, names: Sequence[str]) -> list[tuple[str, NoisyTable]]:
        every = _of_kinds(self.measured, self.combined)
        return [(kind, each) for kind, table in every if (each := table.over(names)) is not None]

    def tables(self, names: Sequence[str], formula: str = "") -> list[tuple[str, NoisyTable]]:
        """Return tables of some columns and those of a formula: those of the least noise, and of the most cells.

        A mean may have the least error by any of them: few cells have little noise, and many tell where values lie.
        """
        every = self._every_over(self._bases(names, formula))
        few, many = sorted(every, key=_noise), sorted(every, key=lambda one: -one[1].counts.size)
        return [
            *few[:MOST_EACH],
            *(one for one in many[:MOST_EACH] if not any(one is other for other in few[:MOST_EACH])),
        ]

    def _bases(self, names: Sequence[str], formula: str) -> list[str]:
        """Name the columns that are counted for some columns and a formula."""
        follows = [one.operands[0] if isinstance(one := self.columns.get(name), Derived) else name for name in names]
        return list(dict.fromkeys([*follows, *(names_in(formula) if formula else ())]))

    def cells(
        self,
        names: Sequence[str],
        groups: Collection[str],
        formula: str = "",
        of: tuple[str, NoisyTable] | None = None,
        column: str = "",
    ) -> Cells:
        """Return the cells of columns, with what a formula gives in them.

        Args:
            names: the columns; one that follows from another one has its values.
            groups: those of them whose cells stay as they are; of all other columns the ends of long tails are joined.
            formula: of columns that are counted together with these; empty for none.
            of: the table of these columns, one of ``tables``; by default that of the least noise.
            column: that the formula is of, or is a term of, which a refusal names.

        Raises:
            Unsuitable: the columns are not counted together, or their cells tell too little.
        """
        _check_once(names)
        follows = {name: one for name in names if isinstance(one := self.columns.get(name), Derived)}
        for name, one in follows.items():
            if len(one.operands) > 1:
                raise Unsuitable(_uncounted(name, self._counted, self.contract))
        every = self._bases(names, formula)
        kept = {follows[name].operands[0] if name in follows else name for name in groups}
        kind, table = of or self._table(every, self._following(column, groups) if formula else "")
        beside, table = [name for name in every if name not in kept], self.rules.cleared(table)
        of_groups = table.total_variance(beside)
        table = tails_joined(table.compared(beside), beside, self.values)
        places, labels = np.indices(table.counts.shape).reshape(len(every), -1), dict[str, list[str]]()
        for name, one in follows.items():
            axis = every.index(one.operands[0])
            each = labels_of(one, table.cells_of[axis], self.values)
            labels[name] = [each[place] for place in places[axis]]
        moments = self.moments(formula, table) if formula else None
        ends = None if formula or names[-1] not in table.names else self.rules.ends(table, names[-1])
        merged = dict(zip(table.names, table.cells_of, strict=True))
        sides = self._sides(table)
        table = likely(table, sides)
        totals = _totals(table, [axis for axis, name in enumerate(every) if name in kept], of_groups, sides)
        return Cells(self._rows(kind, table), labels, moments, ends, totals, merged)

    def likely(self, table: NoisyTable) -> NoisyTable:
        """Return a table of the most likely counts, of which cells that no row can be in have none, and no noise."""
        cleared = self.rules.cleared(table)
        return likely(cleared, self._sides(cleared))

    def rows_of(self, name: str) -> Side | None:
        """Return how many rows each category of a column has; None where some are counted together, or none are."""
        one = self.over([name])
        is_whole = one is not None and one[1].counts.size == self.values.columns[name].size
        return side_of(one[1], one[1], self.records, are_exact=True) if one and is_whole else None

    def _sides(self, table: NoisyTable) -> dict[int, Side]:
        """Return how many rows each cell of the columns of a table has, by axis.

        Columns are left out of which no cells are counted that make these up.
        """
        every, sides = self.values.columns, dict[int, Side]()
        for axis, name in enumerate(table.names):
            one = self.over([name])
            if one and (side := side_of(table, one[1], self.records, not isinstance(every[name], Continuous))):
                sides[axis] = side
        return sides

    def moments(self, formula: str, table: NoisyTable) -> Moments:
        """Return what a formula gives in each cell of a table.

        Raises:
            Unsuitable: as ``moments_of``.
        """
        return self.rules.within(table, formula, moments_of(formula, table, self.values, self.columns))

    def ways(self, names: Sequence[str], column: str) -> list[list[str]]:
        """Return lists of formulas whose sum a column is that follows from others: one empty text for any other column.

        It is what is counted in its place, and the whole formula, where these are counted beside the columns in
        ``names``; and else the terms of the formula.
        """
        bases, one = self._bases(names, ""), self.columns.get(column)
        terms = self.terms(names, column)
        formula = getattr(one, "formula", None)
        is_whole = formula is not None and self.over(self._bases(bases, str(formula))) is not None
        return [terms, *([[str(formula)]] if is_whole and terms != [formula] else [])]

    def terms(self, names: Sequence[str], column: str) -> list[str]:
        """Return formulas whose sum a column that follows from others is; one empty text for any other column.

        It is the whole formula where its columns are counted together, beside those in ``names``, and else its terms.
        A column that is counted in its place goes first.
        """
        one = self.columns.get(column)
        if column in self._counted and isinstance(one, Discrete) and one.kind in ("integer", "number"):
            return [column]  # numbers that are listed: each by itself
        if not isinstance(one, Derived) or (one.values is not None and one.kind != "number"):
            return [""]
        bases = [base for name in names for base in getattr(self.columns.get(name), "operands", (name,))]
        if (copy := copy_of(column, self.columns)) and self.over(list(dict.fromkeys([*bases, copy]))) is not None:
            return [copy]
        if one.values is not None:
            return [written_table(str(one.of), {str(key): float(value) for key, value in one.values.items()})]
        formula = str(one.formula)
        is_whole = self.over(list(dict.fromkeys([*bases, *one.operands]))) is not None
        return [formula] if is_whole else terms_of(formula)

    def mean(self, column: str) -> tuple[float, float] | None:
        """Return the mean of a column that a formula gives, and by what standard deviation it is off; None if unknown.

        The mean of a sum is the sum of the means of its terms, where none of their columns has nulls. Of several
        tables it is by the one by which it is off least.
        """
        every = (self._mean(terms) for terms in self.ways((), column) if all(terms))
        return min((one for one in every if one), key=lambda one: one[1], default=None)

    def _mean(self, terms: Sequence[str]) -> tuple[float, float] | None:
        means, has_nulls = list[tuple[float, float] | None](), False
        for term in terms:
            tried = list[tuple[float, float]]()
            for of in self.tables((), term):
                try:
                    table = tails_joined(self.rules.cleared(of[1]), names_in(term), self.values)
                    moments = self.moments(term, table)
                except (Unsuitable, ValueError, ArithmeticError):
                    continue
                has_nulls |= bool(np.isnan(moments.mean).any())
                tried += [one] if (one := mean_of(table, moments)) else []
            means.append(min(tried, key=lambda one: one[1], default=None))
        if None in means or not means or (len(means) > 1 and has_nulls):
            return None
        return sum(one[0] for one in means if one), math.hypot(*(one[1] for one in means if one))

    def counts(self, names: Sequence[str]) -> Counts:
        """Return the rows of the table of some columns.

        Raises:
            Unsuitable: the columns are not counted together.
        """
        _check_once(names)
        return self._rows(*self._table(names))

    def likely_counts(self, names: Sequence[str]) -> Floats:
        """Return the most likely counts of the table of some columns, by which means and rates of it are reckoned.

        Shape: [cells], as ``counts`` lists them.

        Raises:
            Unsuitable: the columns are not counted together.
        """
        _, table = self._table(names)
        alone = side_of(table, table, self.records, are_exact=True) if len(names) == 1 else None
        return alone.rows if alone else self.likely(table).counts.ravel()

    def _following(self, column: str, groups: Collection[str]) -> str:
        """Say that a derived column follows from others that no table counts together, or not with those of groups."""
        operands = list(getattr(self.columns.get(column), "operands", ()))
        few = len(operands) <= MOST_NAMED
        words = listed(operands, "and") if few else f"{len(operands)} columns"
        beside = f" with {listed(list(groups), 'and')}" if groups else ""
        return NOT_BESIDE.format(what=column, operands=words, groups=beside)

    def _table(self, names: Sequence[str], refusal: str = "") -> tuple[str, NoisyTable]:
        for name in names:
            if name not in self._counted:
                raise Unsuitable(_uncounted(name, self._counted, self.contract))
        if (best := self.over(names)) is None:
            together = " and ".join(names)
            raise Unsuitable(refusal or f"the release counts {together} in no table together; {TOGETHER}")
        return best

    @cached_property
    def _counted(self) -> list[str]:
        return list(dict.fromkeys(name for table in (*self.measured, *self.combined) for name in table.names))

    def _rows(self, kind: str, table: NoisyTable) -> Counts:
        columns = {name: self.values.columns[name] for name in table.names}
        ticks = {name: column.tick for name, column in columns.items() if isinstance(column, Datetime)}
        return Counts(rows_of_table(0, kind, table, self.values, asked=True), ticks)


def _noise(one: tuple[str, NoisyTable]) -> tuple[float, int]:
    """Return what tables are chosen by: the least noise, then the most cells."""
    return float(np.mean(one[1].stddev)), -one[1].counts.size


def _totals(
    table: NoisyTable, axes: Sequence[int], variances: Floats, sides: Mapping[int, Side]
) -> tuple[Floats, Floats]:
    """Return the part of each cell in the rows of its group, and in their variance; ``axes``: that make the groups.

    Shapes: ``variances``, of these rows as the table alone tells them, [groups] -> [cells] both.
    """
    side = sides.get(axes[0]) if len(axes) == 1 else None
    rows = table.counts.sum(axis=tuple(axis for axis in range(table.counts.ndim) if axis not in axes))
    of_each = (side.rows, side.variances) if side else (rows, variances)
    return spread(of_each[0], axes, table), spread(of_each[1], axes, table)


def noisy_tables(release: Release) -> Iterator[pa.Table]:
    """Yield the rows of all tables that a release holds, some tables at a time.

    Raises:
        Unsuitable: its method releases no counts.
    """
    measured, combined, values, _ = _tables_of(release)
    rows, every = list[pa.Table](), _of_kinds(measured, combined)
    most = max((len(table.names) for _, table in every), default=0)
    for number, (kind, table) in enumerate(every):
        rows.append(side_by_side(rows_of_table(number, kind, table, values), most))
        if sum(map(len, rows)) >= LEAST_ROWS:
            yield pa.concat_tables(rows)
            rows = []
    if rows:
        yield pa.concat_tables(rows)


def _check_once(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise Unsuitable(f"name each of the columns {', '.join(names)} once")


def _uncounted(name: str, counted: Sequence[str], contract: Any) -> str:
    """Say why a column is not counted: it follows from others, or is left out, or is none."""
    table = contract.tables[contract.root] if contract.kind == "tree" else contract
    column = table.columns.get(name)
    if isinstance(column, Derived):
        operands = " and ".join(column.operands)
        not_counted = "not counted (the report draws it, and says within what it is where that is known)"
        instead = f"ask for {operands}, or take {name} of the synthetic rows, whose error is not known"
        counts = f"the release counts {', '.join(counted)}"
        return f"column {name} is derived from {operands}, and {not_counted}: {instead}; {counts}"
    if column is not None:
        return f"column {name} is not modeled, so not counted: the release counts {', '.join(counted)}"
    derived = [other for other, one in table.columns.items() if isinstance(one, Derived)]
    dropped = helpers(table.columns)
    there = [other for other in counted if other not in dropped]
    follow = f"; from these follow {', '.join(derived)}" if derived else ""
    return f"the release counts no column {name}, but {', '.join(there)}{follow}{near(name, [*there, *derived])}"


def _of_kinds(measured: Sequence[NoisyTable], combined: Sequence[NoisyTable]) -> list[tuple[str, NoisyTable]]:
    """Say of each table whether it is as it was released, as it is where nothing was combined."""
    kind = COMBINED if measured else MEASURED
    return [*((MEASURED, table) for table in measured), *((kind, table) for table in combined)]


def _tables_of(
    release: Release, about: Collection[str] | None = None
) -> tuple[list[NoisyTable], list[NoisyTable], CellValues, tuple[float, float]]:
    """Return the tables that a release measured, the combined counts of each column, what cells stand for, and rows.

    Of these it is the number, and the noise_stddev of that.
    """
    line = release.line
    system = create(line.method, line.measurement, {}) if line.method in of_kind("table") else None
    marginals = system.marginals(release) if system else None
    if system is None or marginals is None:
        raise Unsuitable(f"the release of {line.method} holds no counts of columns, so there are no tables to write")
    combined = [
        NoisyTable((name,), (one.cell_of,), one.pooled, one.pooled_stddev) for name, one in marginals.columns.items()
    ]
    combined += _by_class(marginals)
    kept = {*about, marginals.codec.schema.target} if about is not None else None
    measured = [table for table in system.tables(release) if kept is None or {*table.names} <= kept]
    rows = marginals.records, marginals.records_stddev
    return measured, combined, CellValues(marginals.codec.columns, marginals.columns), rows


def _by_class(marginals: Marginals) -> Iterator[NoisyTable]:
    """Yield the counts of each column by the classes of the target, where these were counted."""
    target = marginals.codec.schema.target
    classes = (np.arange(marginals.codec.schema.classes),)
    for name, one in marginals.columns.items():
        if target is not None and one.by_class is not None:
            yield NoisyTable((target, name), (*classes, one.cell_of), *one.by_class, independent=True)
