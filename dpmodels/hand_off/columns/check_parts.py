"""Name what a report on a table leaves out that a release which counted its pairs always has.

What is missing is as good as said to be in order: nobody looks for a rate that is not there.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmodels.contract.columns import Boolean, Discrete, helpers
from dpmodels.contract.derivation.reach import reach
from dpmodels.contract.schema import Schema

LEAST_AXIS = 1e-9
"""Length of an axis that is surely drawn, and one by the length of the longest."""
FAR_OUT = 2
"""Times as far out of its noise as a count must be to be known, from which on it surely is."""
Facts = Mapping[str, Any]


def left_out(report: Facts, table: Schema) -> Iterator[str]:
    """Name the parts of a report that are not all there; of a table whose rows are all alike."""
    from dpmodels.report.groups.joint import asked_joint
    from dpmodels.report.groups.stated import asked_names
    from dpmodels.report.pairs import MOST_COLUMNS

    columns, distances = report["columns"], (report["pairs"] or {}).get("distances", ())
    if not distances or any("table" in one for one in columns):
        return
    varied = [place for place, one in enumerate(columns[:MOST_COLUMNS]) if len(one["labels"]) > 1]
    named = [{key: one[key] for key in ("columns", "place")} for one in report.get("joint", ())]
    parts = {
        "asked": report.get("asked", []) == asked_names(table, table.columns),
        "joint": named == asked_joint(table, table.columns)
        and all("column" in one or not is_due(one["columns"], report) for one in report.get("joint", ())),
        "rates": _has_rates(report, table, varied),
        "asked_rates": "drowned" in report or {*_due(report, table)} <= {*_rated(report.get("asked_rates", ()))},
        "derived": not report["synthetic_rows"]
        or {*_shown(table)} <= {one["name"] for one in report.get("derived", ())},
    }
    yield from (name for name, is_whole in parts.items() if not is_whole)


def _has_rates(report: Facts, table: Schema, varied: Sequence[int]) -> bool:
    """Tell whether the target, which is counted with every other column, has a rate by each that makes groups.

    Categories do; so do numbers, unless most of these lie in one cell. Where noise hides all, nothing has a rate.
    """
    target, columns = table.target_index, report["columns"]
    if table.classes < 2 or target not in varied or "drowned" in report:
        return True
    rated = {by for _, by in _rated([report["rates"]] if report.get("rates") else [])}
    return all(by in rated or by == target or not _makes_groups(columns[by]) for by in varied)


def _makes_groups(column: Facts) -> bool:
    """Tell whether what was counted of a column surely makes two groups: none of its cells holds half of the rows."""
    largest = column.get("largest_cell", {}).get("share", 1.0)
    return column.get("cells", 1) > 1 and (largest < 1 / 2 or not (column["ordered"] or "counted_together" in column))


def _rated(every: Sequence[Facts]) -> Iterator[tuple[int, int]]:
    yield from ((rates["target"], one["column"]) for rates in every for one in rates["columns"])


def _due(report: Facts, table: Schema) -> Iterator[tuple[int, int]]:
    """Yield the columns of two classes, each counted apart, and those that a workload names them with."""
    pairs, columns, names = report["pairs"], report["columns"], list(table.modelled)
    dropped = helpers(table.columns)
    for drawn in pairs.get("tables", ())[: pairs.get("asked_for", 0)]:
        sides = [*zip(drawn["columns"], drawn["labels"], strict=True)]
        for (place, _), (by, labels) in (sides, sides[::-1]):
            column, is_handed_over = table.modelled[names[place]], dropped.isdisjoint((names[place], names[by]))
            if place != pairs.get("target") and is_handed_over and _has_two(column, columns[place]) and len(labels) > 1:
                yield place, by


def is_due(names: Sequence[str], report: Facts) -> bool:
    """Tell whether a joint table of three columns of categories surely has rates, by what was counted of each.

    Of two of its columns each group of one has an even part of its rows at least in some group of the other. So two
    combinations are known if that part of the second largest group stands far out of the noise.
    """
    from dpmodels.report.groups.joint import MOST_CELLS, MOST_SIDE, THREE
    from dpmodels.report.numbers import STANDS

    columns = {one["name"]: one for one in report["columns"]}
    text = f"({' by '.join(names)})"
    noises = [one for name, one in report["noise_stddev"].items() if text in name and "departs" not in name]
    if len(names) != THREE or not noises or not {*names} <= columns.keys() or "drowned" in report:
        return False
    if any(columns[one]["ordered"] or "counted_together" in columns[one] for one in names):
        return False
    target = next((one for one in _classed(report) if one in names), None)
    sides = [columns[one]["released"] for one in names if one != target]
    sizes = [*map(len, sides)]
    if target is None or not 1 < min(sizes) <= max(sizes) <= MOST_SIDE or math.prod(sizes) > MOST_CELLS:
        return False
    off = max(noises) * math.sqrt(len(columns[target]["labels"]))
    parts = [sorted(one)[-2] / other for one, other in zip(sides, sizes[::-1], strict=True)]
    return bool(max(parts) * report["released_records"] > FAR_OUT * STANDS * off)


def _classed(report: Facts) -> Iterator[str]:
    """Yield the columns that a report has rates of, the target first."""
    for rates in ([report["rates"]] if report.get("rates") else []) + [*report.get("asked_rates", ())]:
        yield report["columns"][rates["target"]]["name"]


def _has_two(column: Any, facts: Facts) -> bool:
    is_of_two = isinstance(column, Boolean) or (isinstance(column, Discrete) and len(column.keys) == 2)
    return is_of_two and "counted_together" not in facts


def _shown(table: Schema) -> Iterator[str]:
    """Yield the derived columns that follow from columns which were measured, and whose values an axis surely holds.

    Others follow from a key, or have values too large or too near to each other to be drawn.
    """
    for name, one in table.derived.items():
        ends = (0.0, 1.0) if one.formula is None else reach(str(one.formula), table.columns)
        is_drawn = LEAST_AXIS < ends[1] - ends[0] < 1 / LEAST_AXIS
        if is_drawn and {*one.operands} <= {*table.modelled}:
            yield name
