"""Of which derived columns a report will state no mean, and which columns are counted for figures alone."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dpmodels.contract.columns import Continuous, Derived, computed, copy_of
from dpmodels.contract.derivation.affine import affine_of
from dpmodels.contract.derivation.nested import in_names
from dpmodels.contract.derivation.terms import is_reckoned, may_have_mean, terms_of
from dpmodels.contract.formula import moment_of, names_in
from dpmodels.contract.workload import FEWEST_JOINT, MOST_JOINT
from dpmodels.plural import listed

CHANGED = ("clip", "other", "nearest")
"""What a schema does with values outside of it by which raw rows follow from other values than were counted."""
NO_MEAN = (
    "of {names} a report states no mean: where a study asks for it, count it beside, as `{name}_counted: {{computed: "
    "{name}, keep: drop, ...}}`{joint} (docs/columns-that-depend.md#a-column-for-figures-alone)"
)
OR_JOINT = ", or all that {name} follows from in one `joint` table"
BY_ITS_COLUMNS = (
    "of {name} the `joint` table of {columns} tells the mean: a report states that of all rows, and "
    "`nacre means RUN {name} --by {by}` that by each of these columns"
)
BY_ANOTHER = (
    "of {name} the `joint` table of {columns} tells the mean by {others} and not that of all rows: "
    "`nacre means RUN {name} --by {by}` states it"
)
NO_MEAN_BY_GROUP = (
    "{name} has no mean by group{but}, since {null} may be null: have it counted beside, as `{name}_counted: "
    "{{computed: {name}, keep: drop, nullable: true, ...}}` (docs/columns-that-depend.md#a-column-for-figures-alone)"
)
OF_CHANGED = (
    "of {names} a report states no mean, since `outside: {outside}` has {column} counted by other values than {it} "
    "from: where all its values lie within its bounds, leave `outside` out"
)
NOT_IN_REPORT = ", and a report does not"
FIGURES_ALONE = (
    "{names}, with `keep: drop` and nothing derived from {it}, nobody is handed: counted for figures alone, such as "
    "those of `nacre means`, {it_takes} part of the budget"
)


def of_products(columns: Mapping[str, Any], target: str | None, joint: Sequence[Sequence[str]] = ()) -> list[str]:
    """Name the derived numbers of whose means a report says nothing, and what joint tables tell of such.

    ``joint``: the columns of each joint table that a workload asks for.
    """
    formulas = {name: one.formula for name, one in columns.items() if isinstance(one, Derived) and one.formula}
    numbers = {name: text for name, text in formulas.items() if moment_of(text, columns) is None}
    unknown = [name for name, text in numbers.items() if affine_of(text) is None and not _is_multiple(name, columns)]
    names = [
        name for name in unknown if not may_have_mean(numbers[name], columns, target) and not copy_of(name, columns)
    ]
    operands = {name: list(dict.fromkeys(names_in(numbers[name]))) for name in names}
    reckoned = [name for name in names if is_reckoned(numbers[name], columns)]
    tables = {name: table for name in reckoned for table in joint if {*operands[name]} <= {*table}}
    told = [_of_joint(name, operands[name], table, columns) for name, table in tables.items()]
    if not (rest := [name for name in names if name not in tables]):
        return told
    few = [one for one in rest if one in reckoned and target not in operands[one]]
    few = [one for one in few if FEWEST_JOINT <= len(operands[one]) <= MOST_JOINT]
    more = OR_JOINT.format(name=few[0]) if few else ""
    return [NO_MEAN.format(names=listed(rest, "and"), name=rest[0], joint=more), *told]


def with_nulls(columns: Mapping[str, Any], target: str | None, joint: Sequence[Sequence[str]] = ()) -> list[str]:
    """Say of which derived sums there is no mean by group, since their terms are not of the same rows.

    ``joint``: the columns of each joint table that a workload asks for, which tells the mean by the others of it.
    """
    remarks = list[str]()
    for name, one in columns.items():
        if not isinstance(one, Derived) or not one.formula or copy_of(name, columns):
            continue
        nulls = [each for each in one.operands if getattr(columns.get(each), "nullable", False)]
        if not nulls or moment_of(one.formula, columns) or len(terms_of(one.formula)) < 2:
            continue
        others = {each: None for table in joint if {*one.operands} < {*table} for each in table}
        but = list(others.keys() - {*one.operands})
        if target is not None and target not in one.operands and len(one.operands) == 2:
            but.append(target)
        but = [each for each in columns if each in but]
        said = f" but by {listed(but, 'and')}" if but else ""
        remarks.append(NO_MEAN_BY_GROUP.format(name=name, but=said, null=listed(nulls, "or")))
    return remarks


def of_changed(columns: Mapping[str, Any]) -> list[str]:
    """Say of which derived numbers there is no mean, since a column that they follow from is clipped or the like."""
    follows = dict[str, list[str]]()
    for name, one in columns.items():
        if isinstance(one, Derived) and one.formula and not copy_of(name, columns):
            changed = [each for each in one.operands if getattr(columns.get(each), "outside", "") in CHANGED]
            if changed and moment_of(one.formula, columns) is None:
                follows.setdefault(changed[0], []).append(name)
    return [
        OF_CHANGED.format(
            names=listed(names, "and"),
            outside=columns[column].outside,
            column=column,
            it="it follows" if len(names) == 1 else "they follow",
        )
        for column, names in follows.items()
    ]


def _is_multiple(name: str, columns: Mapping[str, Any]) -> bool:
    """Tell whether a derived number is a fixed multiple of a derived one in whose place a column is counted.

    A constant may be added to it: its mean follows from the other's.
    """
    written = affine_of(str(in_names(name, columns).formula))
    return written is not None and len(written.slopes) == 1 and bool(copy_of(next(iter(written.slopes)), columns))


def _of_joint(name: str, operands: Sequence[str], table: Sequence[str], columns: Mapping[str, Any]) -> str:
    """Say how the mean of a derived number is told by a joint table of all that it follows from."""
    others = [one for one in table if one not in operands]
    by = others or operands[:1]
    is_stated = len(by) == 1 and not isinstance(columns[by[0]], Continuous)  # a report makes groups of one category
    said = (BY_ANOTHER if others else BY_ITS_COLUMNS) + NOT_IN_REPORT * (not is_stated)
    named = listed(list(table), "and")
    return said.format(name=name, columns=named, others=" and ".join(others), by=" --by ".join(by))


def for_figures_alone(columns: Mapping[str, Any], asked: Collection[str] = ()) -> str:
    """Name the columns that are counted, of which nothing is handed over; but those that a workload asks for."""
    operands = {name for one in columns.values() if isinstance(one, Derived) for name in one.operands}
    names = [name for name in computed(columns) if columns[name].keep and name not in {*operands, *asked}]
    if not names:
        return ""
    it, takes = ("it", "it takes") if len(names) == 1 else ("them", "they take")
    return FIGURES_ALONE.format(names=listed(names, "and"), it=it, it_takes=takes)
