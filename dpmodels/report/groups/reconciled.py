"""Means by groups that agree with each other: with formulas, rules and bounds of the schema, and with the mean of all.

Each mean is measured by itself, with noise of its own, so that pay comes out below the base pay that is a part of it,
and the parts of a table do not add up to the whole. Every amount is a sum of multiples of products of columns
(derivation/polynomial.py), whose means by group are the unknowns. What is stated is the estimate of these that fits all
measured means best (least_squares.py): one for every amount and group, and one of every amount over all groups.

Privacy: post-processing of released counts, public noise scales and the public schema.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpmodels.arrays import Floats, Mask
from dpmodels.contract.columns import Continuous, Datetime, Derived, Discrete, Modelled, copy_of, helpers
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.derivation.polynomial import Polynomial, Product, polynomial_of, reach_of_product, settled
from dpmodels.contract.derivation.reach import Ends, reach
from dpmodels.contract.derivation.unstated import CHANGED
from dpmodels.contract.formula import moment_of, names_in
from dpmodels.report.groups.cells import Inside
from dpmodels.report.groups.least_squares import Sums, estimate
from dpmodels.report.groups.means import INTERVAL, Measured, Term

if TYPE_CHECKING:
    import pandas as pd

Facts = Mapping[str, Any]
MOST_UNKNOWNS, MOST_RELATED = 400, 12
"""Means of products by groups that are estimated together, and amounts whose means these make up, at most."""
ALIKE = 0.5
"""Correlation of what two amounts of a group are off by since their values lie at an end of a wide cell: a measured
rule, and no proof."""
ROUNDING, EXACT, MISSED = 1e-9, 1e-4, 1e-6
"""Part of the largest value that is nothing, of an error that rounding leaves of one which is none, and of the largest
value by which an estimate may miss an end that it is held to."""


def polynomials_of(columns: Mapping[str, Any]) -> dict[str, Polynomial]:
    """Write every amount out that is known in all rows as it is counted, as a sum of multiples of products of columns.

    An amount that may be null, or that values outside of the schema changed, is a product of its own.
    """
    dropped, written = helpers(columns), dict[str, Polynomial]()
    for name, column in columns.items():
        if isinstance(column, Derived):
            if column.formula is not None and moment_of(column.formula, columns) is None:
                operands = [columns[one] for one in column.operands]
                written[name] = polynomial_of(column.formula) if all(map(_is_whole, operands)) else {(name,): 1.0}
        elif not isinstance(column, Datetime) and _is_number(column):
            written[name] = {(name,): 1.0}
    return {name: one for name, one in written.items() if name not in dropped or not _stands_for(name, columns)}


def _is_number(column: Any) -> bool:
    return isinstance(column, Continuous) or (isinstance(column, Discrete) and column.kind in ("integer", "number"))


def _is_whole(column: Any) -> bool:
    """Tell whether every raw row has a value of a column, which is counted as it is."""
    return column.null_state is None and getattr(column, "outside", "") not in CHANGED


def _stands_for(name: str, columns: Mapping[str, Any]) -> bool:
    """Tell whether a column is counted in the place of a derived one."""
    return any(copy_of(other, columns) == name for other in columns if other != name)


def ends_of_values(columns: Mapping[str, Any], column: str) -> Ends:
    """Return between what the values of a number lie by the schema."""
    one = columns[column]
    return reach(str(one.formula) if isinstance(one, Derived) else column, columns)


def related(column: str, columns: Mapping[str, Any], pairs: Sequence[Constraint]) -> list[str]:
    """Name the amounts whose means bear on that of one: they share products with it, or a rule orders them.

    It goes first, then the others as the schema lists them.
    """
    written = polynomials_of(columns)
    if column not in written:
        return [column]
    linked, products = [column], {*written[column]} - {()}
    ordered = [pair for pair in pairs if is_of_all_rows(pair, columns)]
    while more := [
        name
        for name, polynomial in written.items()
        if name not in linked and (products & {*polynomial} or any(_orders(pair, name, linked) for pair in ordered))
    ]:
        linked += more
        products |= {one for name in more for one in written[name]} - {()}
    return linked[:MOST_RELATED]


def is_of_all_rows(pair: Constraint, columns: Mapping[str, Any]) -> bool:
    """Tell whether a rule orders two columns in every row, so that it orders their means."""
    return all(isinstance(one := columns[name], Modelled) and _is_whole(one) for name in (pair.lower, pair.upper))


def _orders(pair: Constraint, name: str, others: Sequence[str]) -> bool:
    """Tell whether a rule orders an amount and one of some others."""
    return (pair.lower == name and pair.upper in others) or (pair.upper == name and pair.lower in others)


class MeanOfAll(NamedTuple):
    """The mean of all rows, its standard error, and whether groups have to make it up."""

    mean: float
    error: float
    is_exact: bool = False


class PartMean(NamedTuple):
    """The mean of several groups together, as another table tells it.

    Attributes:
        groups: which groups these are. Shape: [groups].
        mean, error: what was measured, and its standard error.
        common: the part of the error that is of where values lie.
    """

    groups: Mask
    mean: float
    error: float
    common: float


class _Datum(NamedTuple):
    """A measured mean by groups, its error and the part of that which is of where values lie. Shapes: [groups] each."""

    of: Polynomial
    mean: Floats
    error: Floats
    common: Floats


class _Sum(NamedTuple):
    """A measured sum of the unknowns.

    Attributes:
        of: what each unknown is multiplied with. Shape: [unknowns].
        mean, error: what was measured, and its standard error.
        common: the part of the error that is of where values lie, so that all sums of a group may be off by it alike.
        group: the place of the group; -1 of all rows.
    """

    of: Floats
    mean: float
    error: float
    common: float = 0.0
    group: int = -1


def reconciled(
    measured: Mapping[str, Measured],
    wholes: Mapping[str, MeanOfAll],
    columns: Mapping[str, Any],
    inside: Inside,
    parts: Sequence[PartMean] = (),
) -> Term:
    """Return the means of an amount by groups as they agree with those of others, and with the mean of all rows.

    The noise of what was measured is independent. Where values lie in a wide cell is not: of a group whose values are
    at its far end the base, and the pay that it is a part of, are both measured too small. What they are off by is
    reckoned with the errors of the means of all rows; what groups move by to make these up is added to it.

    Args:
        measured: the amount, and those whose means bear on it.
        wholes: means of all rows by amount.
        columns: those of the schema.
        inside: which cells are in each group, and the rules of the rows.
        parts: means of the amount in several groups together.
    """
    (name, asked), *_ = measured.items()
    index, written = asked.whole.groups.index, polynomials_of(columns)
    alike = {one: each for one, each in measured.items() if {*each.whole.groups.index} == {*index} and one in written}
    data = list(_data(alike, written, columns, index))
    products = list(dict.fromkeys(one for datum in data for one in datum.of if one))
    ends, unknowns = [reach_of_product(one, columns) for one in products], len(products) * len(index)
    decimals = decimals_of(columns[name])
    if name not in alike or not 0 < unknowns <= MOST_UNKNOWNS or not np.isfinite(ends).all():
        return _rounded(asked.whole, decimals)
    layout = _Layout(products, list(alike.values()), index)
    bounds = list(layout.bounds(ends, {one: written[one] for one in alike}, columns, index, inside))
    sums = [*layout.measured(data, ends), *layout.of_parts(parts, written[name], asked.whole.groups["mean"])]
    sums += [_Sum(row, least, 0.0) for row, least, most in bounds if math.isclose(least, most, abs_tol=ROUNDING)]
    known = _independent(wholes, {one: written[one] for one in alike}, columns)
    of_all = list(layout.of_all(data, known))
    low, high = (np.repeat([end[side] for end in ends], len(index)) for side in (0, 1))
    limits, of = _stacked(bounds, unknowns), layout.rows(written[name])
    means, gains = estimate(_stacked([*sums, *of_all], unknowns), limits, low, high)
    errors = _errors(of @ gains, [*sums, *of_all])
    if any(one.is_exact for _, one in known.values()):
        both, freely = zip(of_all, known.values(), strict=True), means
        exact = [one._replace(error=one.error * (not whole.is_exact)) for one, (_, whole) in both]
        means, _ = estimate(_stacked([*sums, *exact], unknowns), limits, low, high)
        errors = np.hypot(errors, of @ (means - freely) / INTERVAL)
    return _rounded(_with_means(asked.whole, of @ means + written[name].get((), 0.0), errors), decimals)


def _errors(gains: Floats, sums: Sequence[_Sum]) -> Floats:
    """Return what means by groups are off by. Shapes: ``gains``, what each moves by with each sum, [groups, sums]."""
    of, error, common = (np.array([one[part] for one in sums]) for part in (4, 2, 3))
    variances = gains**2 @ (error**2 - common**2)
    for group in {*of.tolist()}:
        alike = gains[:, of == group] * common[of == group]
        variances += (1 - ALIKE) * (alike**2).sum(axis=1) + ALIKE * alike.sum(axis=1) ** 2
    errors: Floats = np.sqrt(np.maximum(variances, 0.0))
    return errors


def _independent(
    wholes: Mapping[str, MeanOfAll], written: Mapping[str, Polynomial], columns: Mapping[str, Any]
) -> dict[str, tuple[Polynomial, MeanOfAll]]:
    """Return means of all rows but those that follow from others, and have no counts of their own."""
    kept = dict[str, tuple[Polynomial, MeanOfAll]]()
    for name in sorted(written, key=lambda one: (isinstance(columns[one], Derived), [*columns].index(one))):
        others = [kept[one][0] for one in kept]
        if name in wholes and (copy_of(name, columns) or not _follows(written[name], others)):
            kept[name] = written[name], wholes[name]
    return kept


def _data(
    measured: Mapping[str, Measured],
    written: Mapping[str, Polynomial],
    columns: Mapping[str, Any],
    index: "pd.Index[Any]",
) -> Iterator[_Datum]:
    """Yield what was measured, nothing twice: of the same columns, no sum that follows from the others of these."""
    kept = dict[frozenset[str], list[Polynomial]]()
    for name in sorted(measured, key=lambda one: (isinstance(columns[one], Derived), [*columns].index(one))):
        is_alone = written[name] == {(name,): 1.0}
        for formula, term in [("", measured[name].whole)] if is_alone else measured[name].parts:
            of = written[name] if formula in ("", name, copy_of(name, columns)) else polynomial_of(formula)
            others = kept.setdefault(frozenset(names_in(formula) if formula else (name,)), [])
            if _follows(of, others):
                continue
            others.append(of)
            groups = term.groups.reindex(index)
            errors, noise = errors_of_groups(groups), groups["noise"].to_numpy(dtype=np.float64)
            common = np.sqrt(np.maximum(errors**2 - noise**2, 0.0))
            yield _Datum(of, groups["mean"].to_numpy(dtype=np.float64), errors, common)


def _follows(of: Polynomial, others: Sequence[Polynomial]) -> bool:
    """Tell whether a sum of products is a sum of multiples of others, and a constant."""
    products = list(dict.fromkeys(one for each in (of, *others) for one in each if one))
    rows = np.array([[each.get(one, 0.0) for one in products] for each in (*others, of)])
    scaled = rows / np.maximum(np.abs(rows).max(axis=1, initial=0.0, keepdims=True), 1e-300)
    return bool(np.linalg.matrix_rank(scaled) <= len(others)) if products else True


def errors_of_groups(groups: "pd.DataFrame") -> Floats:
    """Return the standard errors of means. Shapes: [groups]."""
    whole = (groups["noise"] ** 2 + groups["inside"] ** 2) ** 0.5 + groups["shift"] / INTERVAL
    return np.asarray(whole, dtype=np.float64)


class _Layout:
    """Where the mean of each product in each group stands among the unknowns: of the first product all groups first."""

    def __init__(self, products: Sequence[Product], measured: Sequence[Measured], index: "pd.Index[Any]") -> None:
        self.products, self.groups = products, len(index)
        best = min((one.whole.groups for one in measured), key=lambda groups: float(groups["off"].sum()))
        counts = np.maximum(best["count"].reindex(index).to_numpy(dtype=np.float64), 0.0)
        self.records = max(float(counts.sum()), 1.0)
        self.shares, self.noise = counts / self.records, best["off"].reindex(index).to_numpy(dtype=np.float64)

    def rows(self, of: Polynomial) -> Floats:
        """Return what the unknowns are multiplied with in each group. Shapes: [groups, unknowns]."""
        factors = np.array([of.get(one, 0.0) for one in self.products])
        return np.kron(factors, np.eye(self.groups))

    def measured(self, data: Sequence[_Datum], ends: Sequence[Ends]) -> Iterator[_Sum]:
        """Yield measured sums by group with their standard errors.

        A product in a group that nothing was measured of is about in the middle of its range, which ``ends`` has.
        """
        known = np.zeros(len(self.products) * self.groups, dtype=np.bool_)
        for of, means, errors, common in data:
            figures = zip(self.rows(of), means - of.get((), 0.0), errors, common, strict=True)
            for group, (row, mean, error, alike) in enumerate(figures):
                if math.isfinite(mean) and math.isfinite(error):
                    known |= row != 0
                    yield _Sum(row, float(mean), float(error), float(alike), group)
        for place in np.flatnonzero(~known).tolist():
            low, high = ends[place // self.groups]
            yield _Sum(np.eye(len(known))[place], (low + high) / 2, (high - low) / 2)

    def of_all(self, data: Sequence[_Datum], wholes: Mapping[str, tuple[Polynomial, MeanOfAll]]) -> Iterator[_Sum]:
        """Yield sums over all groups, each with its standard error."""
        for of, (mean, error, _) in wholes.values():
            row = self.shares @ self.rows(of)
            by_group = next((datum.mean for datum in data if datum.of == of), np.full(self.groups, mean))
            shares_off = np.nan_to_num(self.noise * (by_group - mean)) / self.records
            yield _Sum(row, mean - of.get((), 0.0), math.hypot(error, float(np.sqrt(shares_off @ shares_off))), error)

    def of_parts(self, parts: Sequence[PartMean], of: Polynomial, means: "pd.Series[float]") -> Iterator[_Sum]:
        """Yield the means of several groups together, as sums; how many rows each group has is off, too.

        A group whose mean is not known may differ from the others by as much as any that is.
        """
        by_group = means.to_numpy(dtype=np.float64)
        for groups, mean, error, common in parts:
            rows = self.shares * groups
            if not rows.sum() > 0:
                continue
            apart = np.abs(by_group - mean)
            apart = np.where(np.isfinite(apart), apart, np.nanmax(apart, initial=0.0))
            shares_off = self.noise * groups * apart / (self.records * rows.sum())
            off = math.hypot(error, float(np.sqrt(np.nansum(shares_off**2))))
            yield _Sum(rows @ self.rows(of) / rows.sum(), mean - of.get((), 0.0), off, common)

    def bounds(
        self,
        ends: Sequence[Ends],
        written: Mapping[str, Polynomial],
        columns: Mapping[str, Any],
        index: "pd.Index[Any]",
        inside: Inside,
    ) -> Iterator[tuple[Floats, float, float]]:
        """Yield sums with the bounds that the schema and its rules set to them in each group."""
        of_products = [("*".join(f"({one})" for one in product), {product: 1.0}) for product in self.products]
        of_amounts = [(str(getattr(columns[name], "formula", name)), of) for name, of in written.items()]
        of_all = [*ends, *(ends_of_values(columns, name) for name in written)]
        for (formula, of), (low, high) in zip([*of_products, *of_amounts], of_all, strict=True):
            for group, row in zip(index, self.rows(of), strict=True):
                left = inside.between(group, formula)
                least, most = max(low, left[0]), min(high, left[1])
                least, most = (least, most) if least <= most else (low, high)
                yield row, least - of.get((), 0.0), most - of.get((), 0.0)
        factors = {one for product in self.products for one in product}
        for place, group in enumerate(index):
            fixed = inside.fixed(group, factors)
            yield from ((row, 0.0, 0.0) for row in self._alike(place, fixed))
        for pair in inside.rules.pairs:
            if {pair.lower, pair.upper} <= written.keys() and is_of_all_rows(pair, columns):
                lower, upper = written[pair.lower], written[pair.upper]
                apart = upper.get((), 0.0) - lower.get((), 0.0)
                for row in self.rows(lower) - self.rows(upper):
                    yield row, -math.inf, apart

    def _alike(self, group: int, fixed: Mapping[str, float]) -> Iterator[Floats]:
        """Yield differences that are 0, of products in a group in which some columns have a single value each."""
        for place, product in enumerate(self.products):
            other, factor = next(iter(settled({product: 1.0}, fixed).items()), ((), 0.0))
            if other != product and other in self.products:
                row = np.zeros(len(self.products) * self.groups)
                row[place * self.groups + group] = 1.0
                row[self.products.index(other) * self.groups + group] = -factor
                yield row


def _stacked(sums: Sequence[_Sum | tuple[Floats, float, float]], unknowns: int) -> Sums:
    of = np.array([one[0] for one in sums]).reshape(-1, unknowns)
    return Sums(of, *(np.array([one[part] for one in sums], dtype=np.float64) for part in (1, 2)))


def _with_means(term: Term, means: Floats, errors: Floats) -> Term:
    """Return means as they were estimated, where they were known, with what is left of the parts of their errors.

    A cell of few values may have most of them at its far end: what is beyond the means of all cells, and within its
    error of them, stays as it is, since the groups would no longer make up the mean of all rows.
    """
    groups, before = term.groups.copy(), errors_of_groups(term.groups)
    with np.errstate(invalid="ignore", divide="ignore"):
        left = np.where((errors > EXACT * before) & (before > 0), errors / before, 0.0)
    ends, largest = means.clip(term.least, term.most), max(abs(term.least), abs(term.most))
    means = np.where(np.abs(means - ends) <= MISSED * largest, ends, means)
    means = np.where(np.abs(means) < ROUNDING * largest, 0.0, means)
    groups["mean"] = np.where(np.isfinite(before), means, np.nan)
    for part in ("noise", "inside", "shift"):
        groups[part] *= left
    near = means[np.abs(means - ends) <= INTERVAL * left * before]
    return term._replace(groups=groups, least=min([term.least, *near]), most=max([term.most, *near]))


def decimals_of(column: Any) -> int | None:
    """Return how many decimals a derived column keeps of what its formula gives; None of all, and of other columns."""
    if not isinstance(column, Derived):
        return None
    return 0 if column.dtype == "int64" else column.round


def _rounded(term: Term, decimals: int | None) -> Term:
    """Return means of values that are rounded: by half a unit they may all be off alike, but where they are exact."""
    if decimals is None:
        return term
    groups, is_exact = term.groups.copy(), errors_of_groups(term.groups) == 0
    groups["mean"] = groups["mean"].where(~is_exact, groups["mean"].round(decimals))
    groups["shift"] += np.where(is_exact, 0.0, 0.5 / 10**decimals)
    return term._replace(groups=groups)
