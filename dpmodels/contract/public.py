"""Public tables beside a tree of tables, such as districts or airports, and how private rows refer to their rows.

All of a public table is public by declaration: its rows are part of the contract, cost nothing and are handed over as
they are. A private row names one of them by its key, or none where that is allowed. Which one it names is measured as a
category: the key itself, or where there are more keys than ``groups`` the group that it is in. Groups are runs of rows
that are alike, of the table sorted by its columns; in a synthetic row each key of a group is as likely as the others.

Privacy: a row's category is a function of that row and of public tables alone.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, field_validator

from dpmodels.arrays import Whole
from dpmodels.contract.base import Modelled
from dpmodels.contract.columns import Categorical, Column, Derived, Discrete, Identifier, Image
from dpmodels.frozen import Strict
from dpmodels.limits import LARGEST_YAML

MOST_TEXT = LARGEST_YAML // 2
"""Bytes of all public rows as text: they are part of schema.yaml, and nobody reads one of more than twice that."""
Names = Annotated[tuple[str, ...], Field(strict=False)]


def _is_value(value: Any) -> Any:
    """Refuse what no cell of a table holds."""
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError("must be text, a number, true, false or null")


Value = Annotated[Any, BeforeValidator(_is_value)]


class Reference(Strict):
    """Which public table the rows of a private one refer to, and by which of their columns."""

    to: Annotated[str, Field(description="The public table.")]
    by: Annotated[Names, Field(min_length=1, description="The columns that name its row, as its key does.")]
    nullable: Annotated[bool, Field(description="Whether a row may name none.")] = False
    unknown: Annotated[
        Literal["refuse", "null"], Field(description="What becomes of a key that the public table lacks.")
    ] = "refuse"

    @field_validator("by", mode="before")
    @classmethod
    def _read_one(cls, names: Any) -> Any:
        return (names,) if isinstance(names, str) else names

    @property
    def name(self) -> str:
        """The name of the column that is measured."""
        return "+".join(self.by)


class PublicTable(Strict):
    """A table whose rows are public."""

    key: Annotated[Names, Field(min_length=1, description="The columns that name a row, to which private rows refer.")]
    columns: Annotated[dict[str, Column], Field(min_length=1, description="The columns, in their order.")]
    groups: Annotated[
        int, Field(ge=1, le=4096, description="The most keys that are told apart when they are measured.")
    ] = 256
    rows: Annotated[
        dict[str, Annotated[tuple[Value, ...], Field(strict=False)]],
        Field(
            default={},
            description="The rows, by column; they are read from the file of the table where they are left out.",
        ),
    ]

    @field_validator("key", mode="before")
    @classmethod
    def _read_one(cls, names: Any) -> Any:
        return (names,) if isinstance(names, str) else names

    @cached_property
    def size(self) -> int:
        """Count the rows."""
        return len(next(iter(self.rows.values()), ()))

    @cached_property
    def keys(self) -> list[tuple[Value, ...]]:
        """List the keys of the rows."""
        return list(zip(*(self.rows[name] for name in self.key), strict=True)) if self.rows else []

    @cached_property
    def labels(self) -> list[str]:
        """Write each key as one text."""
        return [" / ".join(map(str, key)) for key in self.keys]

    @cached_property
    def sorted_rows(self) -> list[int]:
        """Number the rows in the order of their columns, the first before the others, and then of their keys."""
        ranks = [_ranks(one, self.rows[name]) for name, one in self.columns.items() if isinstance(one, Modelled)]
        return sorted(range(self.size), key=lambda row: (*(rank[row] for rank in ranks), self.labels[row]))

    @cached_property
    def group_of(self) -> Whole:
        """Number the group of each row. Shapes: [rows]."""
        groups, count = np.arange(self.size), min(self.groups, self.size)
        if count < self.size:
            groups[self.sorted_rows] = np.arange(self.size) * count // self.size
        return groups

    def column(self, nullable: bool) -> Categorical:
        """Return the column of the keys, one value a row."""
        return Categorical(type="categorical", values=tuple(self.labels) or ("none",), nullable=nullable)

    def grouped(self, nullable: bool) -> Categorical:
        """Return the column that is measured: of the keys, or of groups, which are called by their first and last."""
        if self.size <= self.groups:
            return self.column(nullable)
        ends = dict[int, list[str]]()
        for row in self.sorted_rows:
            ends.setdefault(int(self.group_of[row]), []).append(self.labels[row])
        names = tuple(f"{each[0]} to {each[-1]}" if len(each) > 1 else each[0] for each in ends.values())
        return Categorical(type="categorical", values=names, nullable=nullable)


def _ranks(column: Modelled, values: Sequence[Value]) -> list[Any]:
    """Return what the values of a column are sorted by, whatever their types; null comes last."""
    listed = {value: place for place, value in enumerate(column.values)} if isinstance(column, Discrete) else {}
    places = [listed.get(value, value) for value in values]
    return [(one is None, isinstance(one, str), 0 if one is None else one) for one in places]


def public_faults(name: str, table: PublicTable) -> Iterator[tuple[str, str]]:
    """List what is wrong with a public table, as (place in the table, message)."""
    if missing := [column for column in table.key if column not in table.columns]:
        yield "key", f"`{missing[0]}` must be a column of this table"
        return
    for column, one in table.columns.items():
        if isinstance(one, Image | Derived):
            yield f"columns.{column}.type", "must be another: a public table has neither images nor derived columns"
        if getattr(one, "unique", False):
            yield f"columns.{column}.unique", "must be left out: `key` of a public table names each row once"
    if not table.rows:
        return
    if table.rows.keys() != table.columns.keys() or len({len(values) for values in table.rows.values()}) != 1:
        yield "rows", "must have as many values of each column as of the others"
    elif not table.size:
        yield "rows", "must be some, since others refer to them"
    elif any(None in key for key in table.keys) or min(len(set(table.labels)), len(set(table.keys))) < table.size:
        yield "key", f"must name each row of {name} once, and never be null"
    elif any(type(one) is int and not -(2**63) <= one < 2**63 for values in table.rows.values() for one in values):
        yield "rows", "must hold whole numbers below 2**63; write larger ones as text"


def size_faults(tables: Mapping[str, PublicTable]) -> Iterator[tuple[str, str]]:
    """Say whether public tables are too large to be part of a contract."""
    text = json.dumps([table.rows for table in tables.values()], ensure_ascii=False)
    if tables and len(text.encode(errors="replace")) > MOST_TEXT:
        yield (
            "public",
            f"must have rows of {MOST_TEXT // 2**10} KiB as text at most: every plan and hand-off holds them",
        )


def reference_faults(
    references: Sequence[Reference], columns: Mapping[str, Any], keys: Sequence[str], public: Mapping[str, PublicTable]
) -> Iterator[tuple[str, str]]:
    """List what is wrong with the references of a private table, whose own keys are ``keys``."""
    names = list[str](keys)
    for index, one in enumerate(references):
        if one.to not in public:
            yield f"refers.{index}.to", f"`{one.to}` must be a table of `public`"
            continue
        if len(one.by) != len(public[one.to].key):
            yield f"refers.{index}.by", f"must name as many columns as the key of `{one.to}` has"
        for column in one.by:
            if not isinstance(columns.get(column), Identifier):
                yield f"refers.{index}.by", f"`{column}` must be a column of this table, of type identifier"
            elif column in names:
                yield f"refers.{index}.by", f"`{column}` must not be part of another key or reference"
        if one.name in names or (len(one.by) > 1 and one.name in columns):
            yield f"refers.{index}.by", f"`{one.name}` must not be the name of a column or of another reference"
        names += [*one.by, one.name]
        if one.unknown == "null" and not one.nullable:
            yield f"refers.{index}.unknown", "`null` goes with `nullable: true`"
