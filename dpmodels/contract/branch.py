"""One table of a tree of tables: whose rows its rows are of, its columns, and what it says of both."""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, field_validator

from dpmodels.contract.base import Modelled
from dpmodels.contract.columns import Columns, Continuous, Derived, Image, derived_faults
from dpmodels.contract.public import PublicTable, Reference
from dpmodels.contract.schema import CONSTRAINT
from dpmodels.contract.text_forms.text_form import Text
from dpmodels.frozen import Strict
from dpmodels.limits import MOST_RULES

ROWS, POSITION, PREVIOUS = "rows", "position", "previous"
"""Last parts of the names of columns that only flat tables have; no column of a table may be called so."""
MOST_ROWS = 1000
"""Upper bound on the rows of a unit in a table: lattice steps are whole, and one of so many rows keeps 99 % of its."""

Names = Annotated[tuple[str, ...], Field(strict=False)]


class Branch(Strict):
    """One table of a tree: whose rows its rows are of, how many there may be, and its columns."""

    parent: Annotated[
        str | None, Field(description="The table that the rows belong to; none for the table of units.")
    ] = None
    key: Annotated[Names, Field(description="The columns that name a row, where other tables refer to it.")] = ()
    parent_key: Annotated[
        Names, Field(description="The columns that name the parent's row. (default: called as its key is)")
    ] = ()
    most: Annotated[int, Field(ge=1, le=MOST_ROWS, description="The most rows of one parent that are used.")] = 1
    order: Annotated[str | None, Field(description="The column by which the rows of one parent are in order.")] = None
    unique: Annotated[bool, Field(description="Whether no two rows of one parent have the same value of `order`.")] = (
        False
    )
    follows: Annotated[Names, Field(description="The columns that depend on those of the row before.")] = ()
    orphans: Annotated[
        Literal["refuse", "drop"], Field(description="What becomes of rows that name no row of the parent.")
    ] = "refuse"
    columns: Annotated[Columns, Field(min_length=1, description="The columns, in their order.")]
    # left out where there are none, so that a tree without them keeps the hash that it had before they existed
    refers: Annotated[
        tuple[Reference, ...],
        Field(exclude_if=lambda one: not one, strict=False, description="The public tables that the rows refer to."),
    ] = ()
    constraints: Annotated[
        tuple[Annotated[str, Field(json_schema_extra={"pattern": CONSTRAINT})], ...],
        Field(
            exclude_if=lambda rules: not rules,
            strict=False,
            fail_fast=True,
            max_length=MOST_RULES,
            description="Rules that every row keeps, such as date >= account.date, with columns of the tables above.",
        ),
    ] = ()
    text: Text = None
    _public: dict[str, PublicTable] = PrivateAttr({})

    @field_validator("key", "parent_key", mode="before")
    @classmethod
    def _read_one(cls, names: Any) -> Any:
        return (names,) if isinstance(names, str) else names

    @cached_property
    def modelled(self) -> dict[str, Modelled]:
        """Return the columns that are encoded and drawn: a reference has a value for each row of its public table."""
        columns: dict[str, Modelled] = {name: one for name, one in self.columns.items() if isinstance(one, Modelled)}
        return columns | {one.name: self.public_of(one).column(one.nullable) for one in self.refers}

    @cached_property
    def grouped(self) -> dict[str, Modelled]:
        """Return the columns that are measured: of a public table with many keys, the groups that they are in."""
        return self.modelled | {one.name: self.public_of(one).grouped(one.nullable) for one in self.refers}

    def public_of(self, reference: Reference) -> PublicTable:
        """Return the public table that a reference is to."""
        return self._public[reference.to]


def column_faults(branch: Branch) -> Iterator[tuple[str, str]]:
    """List what is wrong with the columns of a table, as (place in the table, message)."""
    order = branch.columns.get(branch.order) if branch.order else None
    if branch.order and not (isinstance(order, Continuous) and not order.nullable and order.zero_state is None):
        yield "order", f"`{branch.order}` must be a number or a datetime of this table that is never null or inflated"
    if branch.unique and not branch.order:
        yield "unique", "goes with `order`, whose values it is about"
    for name in branch.follows:
        if name not in branch.modelled:
            yield "follows", f"`{name}` must be a column of this table that is neither an identifier nor derived"
    if not branch.modelled:
        yield "columns", "must have at least one that is neither an identifier nor derived"
    for name, column in branch.columns.items():
        key = f"columns.{name}"
        if name.rpartition(".")[2] in (ROWS, POSITION, PREVIOUS) or not name.isprintable() or not name.strip():
            yield key, f"must have another name: flat tables have columns called {ROWS}, {POSITION} and {PREVIOUS}"
        if isinstance(column, Image):
            yield f"{key}.type", "must be another: there are no images in a tree of tables"
        if getattr(column, "outside", "") == "reject-row":
            yield f"{key}.outside", "must be another policy: in a tree of tables no row is rejected"
        if getattr(column, "max_null_share", None) is not None:
            yield f"{key}.max_null_share", "must be left out: in a tree of tables no share of nulls is held to"
        if getattr(column, "computed", None) is not None:
            yield f"{key}.computed", "must be left out: in a tree of tables no column is computed; compute it before"
        if getattr(column, "unique", False):
            yield f"{key}.unique", "must be left out: in a tree of tables `key` names each row once"
        if isinstance(column, Derived) and column.is_bounded:
            yield key, "must have neither min nor max: in a tree of tables nothing holds derived columns to bounds"
    yield from derived_faults(branch.columns)
