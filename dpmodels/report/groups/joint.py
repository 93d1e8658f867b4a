"""The tables of three columns that a workload asks for: means, or rates, by two columns together.

The target that has classes has its rate, else a number its mean, else a column of two classes its rate, by the other
two where these make few groups. Means are those of ``nacre.means``. With N the records of a combination and c those of
the class, the rate is R = c / N, and its noise as in rates.py.

Privacy: post-processing of released counts, public noise scales and synthetic rows.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.columns import copy_of, helpers
from dpmodels.contract.workload import Tables, in_order
from dpmodels.errors import Unsuitable
from dpmodels.report.bins import group_labels
from dpmodels.report.counts.noisy_tables import Counted
from dpmodels.report.groups.cells import Inside, Way, ways_of
from dpmodels.report.groups.means import DROWNED, Measured, Names, Term, best_of, doubted, judged, means_of_groups
from dpmodels.report.groups.rates import noise_of_rate
from dpmodels.report.groups.reconciled import PartMean, ends_of_values, errors_of_groups, reconciled, related
from dpmodels.report.groups.stated import (
    LEAST,
    MOST_BY,
    cut_at,
    figures_of_mean,
    groups_drawn,
    handed_over,
    is_amount,
    values_of,
)
from dpmodels.report.groups.wholes import wholes_of
from dpmodels.report.numbers import STANDS
from dpmodels.report.within import DIGITS, rate_within

Facts = Mapping[str, Any]
THREE = 3
"""Columns of a table whose figures a report states."""
MOST_SIDE, MOST_CELLS = 24, 72
"""Groups of one column, and of both together, at most."""


def asked_joint(contract: Any, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the joint tables that a workload asks for, by the names of what is handed over.

    With each stands how many of the pairs of ``asked_names`` come before it.
    """
    if not contract.workload:
        return []
    target = contract.target if contract.classes > 1 else None
    numbers = [name for name in columns if is_amount(name, columns)][:MOST_BY]
    listed = list[dict[str, Any]]()
    for at, tables in enumerate(contract.workload):
        if tables.joint and {*tables.columns} <= columns.keys():
            before = _pairs(contract.workload[:at], numbers, target, columns)
            listed.append({"columns": [handed_over(name, columns) for name in tables.columns], "place": before})
    return listed


def _pairs(workload: Sequence[Tables], numbers: Sequence[str], target: str | None, columns: Mapping[str, Any]) -> int:
    """Count the pairs of columns that some entries of a workload ask for."""
    return sum({*pair} <= columns.keys() for pair in in_order(workload, numbers, target))


def joint_facts(counted: Counted, codec: Codec, records: Records, facts: Facts) -> list[dict[str, Any]]:
    """Return the joint tables of a report, with the means or rates of those that are of three columns.

    Args:
        counted: the tables of the release.
        codec: of the columns that were measured.
        records: synthetic rows.
        facts: what the report says of columns, of rates, and of what was asked for.
    """
    cells = codec.to_cells(records).astype(np.int64)
    return [{**one, **_answer(counted, codec, records, cells, one["columns"], facts)} for one in facts["joint"]]


def _answer(
    counted: Counted, codec: Codec, records: Records, cells: Whole, names: Sequence[str], facts: Facts
) -> dict[str, Any]:
    """Return the figures of the first column that has some by the two others; nothing where none has."""
    if len(names) != THREE or not {*names}.isdisjoint(helpers(counted.columns)):
        return {}
    for column, of_class in _asked_of(names, counted.columns, facts):
        by = [name for name in names if name != column]
        try:  # no figure is worth a hand-off that was paid for
            with np.errstate(over="ignore", invalid="ignore"):
                if of_class:
                    return _rates(counted, codec, cells, column, of_class, by)
                values = values_of(counted.columns, codec, records, column)
                return _means(counted, codec, cells, column, by, values, facts)
        except (Unsuitable, ValueError, ArithmeticError, KeyError, pa.ArrowException):
            continue
    return {}


def _asked_of(names: Sequence[str], columns: Mapping[str, Any], facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the columns whose figures may be meant, each with the class whose rate it has; empty of a mean."""
    listed = [one["name"] for one in facts["columns"]]
    rated = {listed[one["target"]]: one["class"] for one in facts.get("asked_rates", ())}
    if (rates := facts.get("rates")) and listed[rates["target"]] in names:
        yield listed[rates["target"]], rates["class"]
    yield from ((name, "") for name in names if is_amount(copy_of(name, columns) or name, columns))
    yield from ((name, rated[name]) for name in names if name in rated)


def _means(
    counted: Counted, codec: Codec, cells: Whole, column: str, by: list[str], values: Floats, facts: Facts
) -> dict[str, Any]:
    """Return the means of a column by two others, with those of the synthetic rows.

    Raises:
        Unsuitable: they are not counted together, or tell too little.
    """
    measured, merged = _measured(counted, column, by)
    every = {column: measured}
    for one in () if measured.is_dated else related(column, counted.columns, counted.rules.pairs)[1:]:
        with suppress(Unsuitable):
            every[one] = _measured(counted, one, by)[0]
    inside = Inside.of(counted, by, merged)
    parts, of_parts = _parts(counted, column, by, measured)
    term = reconciled(every, wholes_of(facts, every, counted.columns), counted.columns, inside, parts)
    term = term._replace(
        least=min([term.least, *(one.least for one in of_parts)]),
        most=max([term.most, *(one.most for one in of_parts)]),
    )
    means = doubted(judged(term, measured.is_dated), facts, column, counted.columns)
    sides = [groups_drawn(counted, codec, cells, name, merged) for name in by]
    ends = ends_of_values(counted.columns, column)
    in_all, lines = max(float(means["count"].clip(lower=0).sum()), 1.0), list[dict[str, Any]]()
    of_groups = {tuple(map(str, key)): one for key, one in zip(means.index, means.to_dict("records"), strict=True)}
    for first, second in product(*(side.order for side in sides)):
        mean = of_groups.get((sides[0].keys[first], sides[1].keys[second]))
        if mean is not None:
            is_inside = (sides[0].rows == first) & (sides[1].rows == second) & np.isfinite(values)
            labels = [sides[0].labels[first], sides[1].labels[second]]
            lines.append({"labels": labels, **figures_of_mean(mean, values[is_inside], in_all, ends)})
    return _stated(column, by, lines, len(of_groups)) | cut_at(lines, ends)


def _parts(counted: Counted, column: str, by: Sequence[str], measured: Measured) -> tuple[list[PartMean], list[Term]]:
    """Return the means of a column by each of two others, whose tables have finer ranges, and noise of their own.

    They are those of categories that are counted alike in both tables.
    """
    parts, terms = list[PartMean](), list[Term]()
    for level, name in enumerate(by) if not measured.is_dated else ():
        with suppress(Unsuitable):
            term = _measured(counted, column, [name])[0].whole
            labels = np.array([str(key[level]) for key in measured.whole.groups.index])
            errors, noise = errors_of_groups(term.groups), term.groups["noise"].to_numpy(dtype=np.float64)
            common = np.sqrt(np.maximum(errors**2 - noise**2, 0.0))
            figures = zip(term.groups.index, term.groups["mean"], errors, common, strict=True)
            of_groups = [
                PartMean(labels == str(key), float(mean), float(off), float(one)) for key, mean, off, one in figures
            ]
            parts += [one for one in of_groups if math.isfinite(one.mean) and math.isfinite(one.error)]
            terms.append(term)
    return parts, terms


def _measured(counted: Counted, column: str, by: list[str]) -> tuple[Measured, dict[str, Whole]]:
    """Return what was measured of a column by others, and the cells that the groups are.

    Raises:
        Unsuitable: they are not counted together.
    """
    names = Names.of(column, [*by, column])

    def means_by(way: Callable[[], Way]) -> tuple[Measured, dict[str, Whole]]:
        tables, merged = way()
        frames = {term: one.to_pandas(date_as_object=False) for term, one in tables.items()}
        return means_of_groups(frames, by, column, names), merged

    return best_of([partial(means_by, way) for way in ways_of(counted, by, column)])


def _rates(counted: Counted, codec: Codec, cells: Whole, column: str, of_class: str, by: list[str]) -> dict[str, Any]:
    """Return the rates of a class by two columns, with those of the synthetic rows.

    Raises:
        Unsuitable: they are not counted together, or the classes are not counted each by itself.
    """
    best, of = counted.over([*by, column]), codec.columns[column]
    if best is None or not (best[1].cells_of[2] == np.arange(of.size)).all():
        raise Unsuitable(f"the release counts {column} beside {' and '.join(by)} in no table")
    totals, table = best[1].total_variance([column]), counted.likely(best[1].compared([column]))
    stddev = np.broadcast_to(table.stddev, table.counts.shape)
    names, drawn = list(codec.columns), np.zeros_like(table.counts)
    places = [cells[:, names.index(name)] for name in (*by, column)]
    np.add.at(drawn, tuple(merge[place] for merge, place in zip(table.cells_of, places, strict=True)), 1.0)
    target = getattr(counted.contract, "target", None)
    classes = [label for (label,) in group_labels(of, np.arange(of.size))]
    is_value = [label != "null" or column == target for label in classes]  # as rates.py has it
    sides = [groups_drawn(counted, codec, cells, name, dict(zip(by, table.cells_of, strict=False))) for name in by]
    in_all, taken = max(float(table.counts[..., is_value].clip(min=0).sum()), 1.0), classes.index(of_class)
    lines = list[dict[str, Any]]()
    for place in product(*(side.order for side in sides)):
        labels = [side.labels[at] for side, at in zip(sides, place, strict=True)]
        counts, noise, rows = (np.where(is_value, each[place], 0.0) for each in (table.counts, stddev, drawn))
        of_all = float(totals[place]) if all(is_value) else float((noise**2).sum())
        lines.append({"labels": labels, **_rate(counts, noise, rows, taken, in_all, of_all)})
    return {**_stated(column, by, lines, len(lines)), "class": of_class}


def _rate(
    counts: Floats, stddev: Floats, drawn: Floats, taken: int, in_all: float, total_variance: float
) -> dict[str, Any]:
    """State the rate of a class in one combination; unknown where noise hides how many rows that has.

    ``total_variance``: of the noise of all classes together. Shapes: ``counts``, their ``stddev`` as they are compared
    with each other, and those of the synthetic rows, [classes].
    """
    records, others = max(float(counts.sum()), 0.0), np.arange(len(counts)) != taken
    synthetic = round(float(drawn[taken] / drawn.sum()), DIGITS) if drawn.sum() > 0 else None
    facts = {"share": round(records / in_all, DIGITS), "released": None, "within": None, "synthetic": synthetic}
    if records <= STANDS * math.sqrt(total_variance) or records == 0:
        return {**facts, "reason": DROWNED}
    rate = min(max(float(counts[taken]) / records, 0.0), 1.0)
    variances = (stddev[taken] ** 2, (stddev[others] ** 2).sum(), total_variance)
    noise = float(noise_of_rate(np.asarray(rate), *map(np.asarray, variances))) / records
    within = rate_within(rate, min(noise, 1.0), rate)
    return {**facts, "released": round(rate, DIGITS), "within": within, "reason": ""}


def _stated(column: str, by: Sequence[str], lines: Sequence[Facts], number: int) -> dict[str, Any]:
    """Return figures as a report has them.

    Raises:
        Unsuitable: they are too many, or too few are known, or two groups are called alike.
    """
    sides = [len({tuple(one["labels"][side]) for one in lines}) for side in (0, 1)]
    known = sum(one["released"] is not None for one in lines)
    if known < LEAST or len(lines) < number or len(lines) > MOST_CELLS or not 1 < min(sides) <= max(sides) <= MOST_SIDE:
        raise Unsuitable(f"the groups of {' and '.join(by)} are too many, or tell too little")
    return {"column": column, "by": [*by], "groups": [*lines]}
