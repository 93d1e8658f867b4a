"""What will be asked of the synthetic table, so that it is measured more closely than the rest.

    workload:
    - {by: region}                             tables of any column by region: every pair of region and another column
    - {columns: [age, income, job], weight: 4} tables of these: every pair of them
    - {columns: [age, income, job], joint: true} and what only all of them together show, in a few cells of each

Pairs that are asked for get ``weight`` times less noise than the others, out of the same charge: whatever is not asked
for gets a little more. A joint table costs as much as one more pair of its weight. A target that has classes is named
to have its answer in the report: every column is counted with it anyway, so naming it weighs nothing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from dpmodels.arrays import Whole
from dpmodels.errors import near
from dpmodels.frozen import Strict
from dpmodels.plural import listed

MOST_WEIGHT = 10
FEWEST_JOINT, MOST_JOINT = 3, 5
"""Columns of a joint table: two are a pair, and the cells of six or more hold less than their noise."""
MOST_JOINT_TABLES = 16
"""So many are fitted in reasonable time."""

MOST_NAMED = 12
"""Columns that a refusal names."""
OF_IMAGE = "`{name}` is an image, which is in no table: leave it out"
WITH_CLASSES = ("categorical", "boolean")
"""Types of a target with whose classes every column is counted."""
OF_THREE = (
    "names the target `{target}`, by whose classes {others} are counted together anyway: leave `joint` out, or name "
    f"{FEWEST_JOINT} columns or more beside it"
)
NOT_MEASURED = {
    "identifier": "`{name}` is an identifier, of which nothing is measured: leave it out",
    "derived": (
        "`{name}` is derived, so it is not measured: name what it follows from; or, of numbers, have it counted "
        "beside, as `{name}_counted: {{type: number, min: LEAST, max: MOST, computed: {name}, keep: drop}}`, and name "
        "`{name}_counted` (docs/columns-that-depend.md#a-column-for-figures-alone)"
    ),
}
"""Why a column is not measured, and what to write, by its type."""


class Tables(Strict):
    """Tables that will be asked for: of some columns together, or of any column by one."""

    columns: Annotated[
        tuple[str, ...],
        Field(exclude_if=lambda names: not names, strict=False, description="Columns that are looked at together."),
    ] = ()
    by: Annotated[
        str | None,
        Field(exclude_if=lambda name: name is None, description="A column by whose values others are looked at."),
    ] = None
    joint: Annotated[
        bool,
        Field(exclude_if=lambda joint: not joint, description="Whether all of the columns are counted together too."),
    ] = False
    weight: Annotated[
        int, Field(ge=2, le=MOST_WEIGHT, description="How many times less noise these pairs of columns get.")
    ] = 3

    @property
    def text(self) -> str:
        """Name the tables, as a plan does."""
        return f"any column by {self.by}" if self.by is not None else " by ".join(self.columns)

    def pairs(self, names: Sequence[str]) -> Iterator[tuple[int, int]]:
        """List the pairs of columns, by their places among ``names``; columns that are not there have none."""
        if self.by in names:
            at = names.index(str(self.by))
            yield from ((min(at, other), max(at, other)) for other in range(len(names)) if other != at)
        yield from combinations(sorted(names.index(name) for name in self.columns if name in names), 2)


def pair_weights(workload: Sequence[Tables], names: Sequence[str]) -> Whole:
    """Return the weight of every pair of columns: the largest that is asked for, else 1. Shapes: [F, F] symmetric."""
    weights = np.ones((len(names), len(names)), dtype=np.int64)
    for tables in workload:
        for i, j in tables.pairs(names):
            weights[i, j] = weights[j, i] = max(weights[i, j], tables.weight)
    return weights


def named_pairs(workload: Sequence[Tables], names: Sequence[str]) -> frozenset[tuple[int, int]]:
    """Return the pairs of columns that are asked for by name, by their places among ``names``."""
    every = [sorted(names.index(name) for name in tables.columns if name in names) for tables in workload]
    return frozenset(pair for places in every for pair in combinations(places, 2))


def weighed(contract: Any) -> tuple[Tables, ...]:
    """Return what of a contract's workload is measured more closely: all but a target that has classes."""
    if not contract.workload or contract.classes < 2:
        return tuple(contract.workload)
    return tuple(without for tables in contract.workload if (without := _without(tables, contract.target)))


def _without(tables: Tables, target: str) -> Tables | None:
    """Leave a target out of tables; None where no pair of columns is left."""
    if target not in (tables.by, *tables.columns):
        return tables
    others = tuple(name for name in tables.columns if name != target)
    return tables.model_copy(update={"columns": others}) if len(others) > 1 else None


def in_order(workload: Sequence[Tables], numbers: Sequence[str], target: str | None = None) -> list[tuple[str, str]]:
    """Return the names of the pairs that are asked for, as the workload lists them, each pair once.

    Of any column ``by`` one these are the ``numbers``, whose means are asked for. A ``target`` that is named beside a
    column is the first of the two: its rate by that column is asked for.
    """
    once = dict[frozenset[str], tuple[str, str]]()
    for first, second in (pair for tables in workload for pair in _asked_by(tables, numbers, target)):
        once.setdefault(frozenset((first, second)), (first, second))
    return [*once.values()]


def _asked_by(tables: Tables, numbers: Sequence[str], target: str | None) -> Iterator[tuple[str, str]]:
    if tables.by is not None:
        yield from ((number, tables.by) for number in numbers if number != tables.by)
    yield from ((pair[1], pair[0]) if pair[1] == target else pair for pair in combinations(tables.columns, 2))


def cell_weights(workload: Sequence[Tables], names: Sequence[str], numbers: Collection[str]) -> list[int]:
    """Return for each column the largest weight with which it is named together with a category, else 1.

    ``numbers`` are the columns that are none. Two of them gain more by less noise than by more cells.
    """
    weights = dict.fromkeys(names, 1)
    for tables in workload:
        if set(tables.columns) - set(numbers):
            weights |= {name: max(weights[name], tables.weight) for name in tables.columns if name in weights}
    return [weights[name] for name in names]


def joint_tables(workload: Sequence[Tables], names: Sequence[str]) -> list[tuple[tuple[int, ...], int]]:
    """Return the columns of every joint table that is asked for, by their places among ``names``, and its weight."""
    asked = [tables for tables in workload if tables.joint]
    return [(tuple(sorted(names.index(name) for name in tables.columns)), tables.weight) for tables in asked]


def workload_faults(
    workload: Sequence[Tables], modelled: Collection[str], target: str | None, kinds: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """List what is wrong with a workload, as (place in the file, why)."""
    if sum(tables.joint for tables in workload) > MOST_JOINT_TABLES:
        yield "workload", f"must ask for {MOST_JOINT_TABLES} tables that are `joint` at most"
    for index, tables in enumerate(workload):
        place = f"workload.{index}"
        if (tables.by is None) == (not tables.columns):
            yield place, "must have either `by` or `columns`"
        elif tables.columns and len(set(tables.columns)) < max(2, len(tables.columns)):
            yield f"{place}.columns", "must name two columns or more, each once"
        elif tables.joint and not FEWEST_JOINT <= len(tables.columns) <= MOST_JOINT:
            yield place, f"must name {FEWEST_JOINT} to {MOST_JOINT} `columns` for a table that is `joint`"
        elif (
            tables.joint
            and len(tables.columns) == FEWEST_JOINT
            and target in (names := tables.columns)
            and (kinds.get(str(target)) in WITH_CLASSES)
        ):
            yield place, OF_THREE.format(target=target, others=listed([one for one in names if one != target], "and"))
        for name in [name for name in (tables.by, *tables.columns) if name is not None]:
            if name not in kinds:
                others = ", ".join([*modelled][:MOST_NAMED])
                yield place, f"`{name}` is no column of this schema{near(name, kinds) or f'; measured are {others}'}"
            elif name not in modelled:
                yield place, NOT_MEASURED.get(kinds[name], OF_IMAGE).format(name=name)
