"""A tree of tables: one table of units, and tables whose rows each belong to one row of another.

    customer ──▶ order ──▶ item            the unit is a customer, with all orders and all items of these orders
             └─▶ complaint

The schema of all tables is one file, whose key ``tables`` names them. The one without a parent is the root. Everything
is measured and drawn table by table. For each table there is a flat schema, whose rows are those of the table:

    flat   all columns of the rows above (parent, its parent, ...), and how many children of each kind they have;
           POSITION: which of its parent's rows the row is; of the columns in ``follows`` those of the row before;
           its own columns, and how many children of each kind it has

A table of at most one row a parent that has no children of its own, such as a customer's address, is part of its
parent's flat table: its columns are null where there is none. So other tables are drawn given these columns too.

Privacy: what a unit's rows are in any flat table depends on that unit's own rows alone. A row weighs one over the
    number of rows that its parent has in the table, times what its parent weighs; a unit's row in the root weighs 1. So
    a unit weighs at most 1 in each flat table, whatever it holds (embeddings/branch.py has the proof).
"""

import hashlib
import json
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from dpmodels.contract.base import CanonicalContract, ColumnFaults, Modelled, columns_in_short
from dpmodels.contract.branch import MOST_ROWS, POSITION, PREVIOUS, ROWS, Branch, column_faults
from dpmodels.contract.columns import Column, Identifier
from dpmodels.contract.discovery.discovery_charge import Discovered, Sources, discovery_faults
from dpmodels.contract.identifiers.identifier import too_few
from dpmodels.contract.numbers import Integer
from dpmodels.contract.public import PublicTable, Reference, public_faults, reference_faults, size_faults
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.text_form import Text, TextForm, as_written
from dpmodels.contract.tree_rules import NamedRule, named_rules, rule_faults
from dpmodels.errors import near_or_listed
from dpmodels.limits import LONGEST_NAME
from dpmodels.plain_yaml import write_yaml
from dpmodels.plural import counted
from dpmodels.privacy import Adjacency, PrivacyUnit

MOST_TABLES = 50
TABLE_NAME = r"^[a-z][a-z0-9_]*$"


class Tree(CanonicalContract):
    """The public contract of a tree of tables; everything in it is public by declaration."""

    written: ClassVar[str] = "tree"
    about: ClassVar[Literal["a tree of tables"]] = "a tree of tables"
    kind: ClassVar[Literal["tree"]] = "tree"

    name: Annotated[
        str,
        Field(
            pattern=r"^[a-z0-9_-]+$", max_length=LONGEST_NAME, description="The name of the data set and its account."
        ),
    ]
    tables: Annotated[
        dict[Annotated[str, Field(pattern=TABLE_NAME, max_length=LONGEST_NAME)], Branch],
        Field(min_length=1, max_length=MOST_TABLES, description="The tables, a parent before its children."),
    ]
    target: Annotated[
        str | None,
        Field(exclude_if=lambda target: target is None, description="The column to be predicted, as `loan.status`."),
    ] = None
    sources: Sources = ()
    discovered: Discovered = ()
    text: Text = None
    public: Annotated[
        dict[Annotated[str, Field(pattern=TABLE_NAME, max_length=LONGEST_NAME)], PublicTable],
        Field(
            default={},
            exclude_if=lambda tables: not tables,
            max_length=MOST_TABLES,
            description="Tables whose rows are public, to which rows of the others refer.",
        ),
    ]

    def __repr__(self) -> str:
        tables = "".join(f"\n  {name}: {columns_in_short(one.columns)}" for name, one in self.tables.items())
        public = f"\n  public: {', '.join(self.public)}" if self.public else ""
        return f"<schema {self.name}, unit {self.unit}, {counted(len(self.tables), 'table')}:{tables}{public}>"

    __str__ = __repr__

    def to_yaml(self) -> str:
        """Write the contract as the YAML that reads back equal to it."""
        content = self.model_dump(exclude_defaults=True) | as_written(self.text)
        for name, branch in self.tables.items():
            content["tables"][name] |= as_written(branch.text)
        return write_yaml(content, default_flow_style=None, width=120)

    @cached_property
    def hash(self) -> str:
        """Return the SHA-256 of the contract's canonical JSON; the order of tables and of columns counts."""
        content = json.dumps(self.model_dump(mode="json"), separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def root(self) -> str:
        """The table of units."""
        return next(name for name, branch in self.tables.items() if branch.parent is None)

    @property
    def without_rows(self) -> list[str]:
        """Name the public tables whose rows are not here yet."""
        return [name for name, table in self.public.items() if not table.rows]

    @property
    def unit(self) -> PrivacyUnit:
        """Whose presence is hidden: a row of the root with all rows below it, in every table.

        It is named by the table and its key: a customer is another unit than one of a customer's orders.
        """
        return PrivacyUnit(user=".".join([self.root, *self.tables[self.root].key]), max_rows=self.rows_below)

    @property
    def adjacency(self) -> Adjacency:
        """How two neighboring trees differ."""
        return Adjacency.ADD_OR_REMOVE_ONE

    def above(self, name: str) -> tuple[str, ...]:
        """List the tables above one, from the root on."""
        parent = self.tables[name].parent
        return () if parent is None else (*self.above(parent), parent)

    def children(self, name: str) -> tuple[str, ...]:
        """List the tables whose rows belong to rows of one."""
        return tuple(child for child, branch in self.tables.items() if branch.parent == name)

    def keys_of(self, name: str) -> tuple[str, ...]:
        """List the columns of a table that hold its parent's key."""
        branch = self.tables[name]
        return branch.parent_key or (self.tables[branch.parent].key if branch.parent else ())

    def joins(self, name: str) -> tuple[str, ...]:
        """List the columns that join a table with others."""
        return (
            *self.tables[name].key,
            *(column for column in self.keys_of(name) if column not in self.tables[name].key),
        )

    def key_columns(self, name: str) -> tuple[str, ...]:
        """List the columns of a table that join it with others or name rows of public tables."""
        return (*self.joins(name), *(column for one in self.tables[name].refers for column in one.by))

    def reference_by(self, name: str, column: str) -> Reference | None:
        """Return the reference that a column of a table is part of."""
        return next((one for one in self.tables[name].refers if column in one.by), None)

    def rows_of_a_unit(self, name: str) -> int:
        """Return the most rows that a unit has in a table."""
        branch = self.tables[name]
        return 1 if branch.parent is None else branch.most * self.rows_of_a_unit(branch.parent)

    def followed(self, name: str) -> tuple[str, ...]:
        """List the columns of a table that depend on those of the row before; a unique order always does."""
        branch = self.tables[name]
        by_order = (branch.order,) if branch.unique and branch.order and branch.order not in branch.follows else ()
        return (*branch.follows, *by_order)

    def too_few(self, units: int) -> list[tuple[str, str]]:
        """List the columns whose pattern makes fewer identifiers than units need that have all rows they may have."""
        faults = list[tuple[str, str]]()
        for name, branch in self.tables.items():
            rows, keys = units * self.rows_of_a_unit(name), self.keys_of(name)
            made = {key: one for key, one in branch.columns.items() if key not in keys}
            faults += [(f"tables.{name}.{place}", why) for place, why in too_few(made, rows)]
        return faults

    @property
    def rows_below(self) -> int:
        """Return the most rows that a unit has in all tables together."""
        return sum(self.rows_of_a_unit(name) for name in self.tables)

    def is_part(self, name: str) -> bool:
        """Tell whether a table is part of its parent's flat table: at most one row each, and no children."""
        branch = self.tables[name]
        return branch.parent is not None and branch.most == 1 and not self.children(name)

    @property
    def measured(self) -> tuple[str, ...]:
        """List the tables that have a flat table of their own."""
        return tuple(name for name in self.tables if not self.is_part(name))

    def parts(self, name: str) -> tuple[str, ...]:
        """List the tables that are part of one's flat table."""
        return tuple(child for child in self.children(name) if self.is_part(child))

    def schema_of(self, name: str) -> Schema:
        """Return the schema of one table's files, with the rules that name no other table.

        All columns may be identifiers where some refer to a public table, which is measured.
        """
        return self._schema(name, self.tables[name].columns)

    def text_of(self, name: str) -> TextForm | None:
        """Return how the text of a table is written: as it says itself, or else as the tree does."""
        own = self.tables[name].text
        return self.text if own is None else own

    def _schema(self, name: str, columns: dict[str, Column]) -> Schema:
        """Return the schema of some columns of a table, which were checked with it."""
        alone = tuple(rule.alone for rule in self.rules_of(name) if rule.alone is not None)
        short = f"{self.name}-{name}".replace("_", "-")[:LONGEST_NAME]
        build = Schema if any(isinstance(one, Modelled) for one in columns.values()) else Schema.model_construct
        return build(name=short, columns=columns, constraints=alone, text=self.text_of(name))

    def handed_over(self, name: str) -> Schema:
        """Return the schema of one table as it is handed over: the columns that name its parent are there too."""
        branch, keys = self.tables[name], self.keys_of(name)
        by = (column for one in branch.refers for column in one.by)
        made = {key: Identifier(type="identifier", keep="regenerate") for key in (*keys, *by)}
        return self._schema(name, {**branch.columns, **made})

    def rules_of(self, name: str) -> list[NamedRule]:
        """List the rules of a table's rows."""
        return named_rules(self.tables[name].constraints, name, self.tables[name].columns, self._columns_above(name))

    def ruled(self, name: str) -> Schema:
        """Return the schema of the flat table that a table's rows are in, with their rules."""
        flat = self.flat_of(str(self.tables[name].parent) if self.is_part(name) else name)
        return Schema(name=flat.name, columns=flat.columns, constraints=tuple(one.flat for one in self.rules_of(name)))

    def _columns_above(self, name: str) -> dict[str, Any]:
        """Return the columns that are drawn before those of a table: of the tables above it, and of their parts."""
        columns = dict[str, Any]()
        for table in self.above(name):
            for part in (table, *self.parts(table)):
                if part == name:
                    break
                columns |= {key: one for key, one in self.attributes(table).items() if key.startswith(f"{part}.")}
        return {key: one for key, one in columns.items() if key.rpartition(".")[2] != ROWS}

    @property
    def handed_over_columns(self) -> dict[str, Column]:
        """Return the columns of all tables that are handed over, by the names of table and column."""
        columns = {(name, key): one for name in self.tables for key, one in self.handed_over(name).columns.items()}
        return {f"{name}.{key}": one for (name, key), one in columns.items() if not _is_left_out(one)}

    @property
    def left_out(self) -> list[str]:
        """Name the columns of all tables that are not handed over."""
        every = [f"{name}.{key}" for name, branch in self.tables.items() for key in branch.columns]
        return [key for key in every if key not in self.handed_over_columns]

    def attributes(self, name: str) -> dict[str, Any]:
        """Return what a flat table says of rows of a table themselves: columns, children, and tables that are part."""
        columns: dict[str, Any] = {f"{name}.{column}": one for column, one in self.tables[name].grouped.items()}
        for child in self.children(name):
            columns[f"{child}.{ROWS}"] = _count(0, self.tables[child].most)
        for part in self.parts(name):
            for column, one in self.tables[part].grouped.items():
                columns[f"{part}.{column}"] = one.model_copy(update={"nullable": True})
        return columns

    def given(self, name: str) -> dict[str, Any]:
        """Return what is known of a row of a table before it is drawn: the rows above, its place, the row before."""
        branch, columns = self.tables[name], dict[str, Any]()
        for table in self.above(name):
            columns |= self.attributes(table)
        if branch.parent is not None:
            columns[f"{name}.{POSITION}"] = _count(1, branch.most)
        for column in self.followed(name):
            columns[f"{name}.{column}.{PREVIOUS}"] = branch.grouped[column].model_copy(update={"nullable": True})
        return columns

    def flat_of(self, name: str) -> Schema:
        """Return the schema of a table's flat table, in which a unit weighs at most one record.

        The target is one of the table that it is drawn with, and another column of those below.
        """
        attributes = self.attributes(name)
        target = self.target if self.target in attributes else None
        return Schema(name=self.schema_of(name).name, columns={**self.given(name), **attributes}, target=target)

    @cached_property
    def overview(self) -> Schema:
        """Return the schema of all attributes of all tables, as a report lists them."""
        columns = {key: column for name in self.measured for key, column in self.attributes(name).items()}
        return Schema(name=self.name, columns=columns)

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = list(self._tree_faults()) or list(self._public_faults())
        if not faults:
            for branch in self.tables.values():
                branch._public = self.public
            faults = list(self._faults()) or list(self._target_faults())
            faults += discovery_faults(self.discovered, self.unit)
        if faults:
            raise ColumnFaults(faults)
        return self

    def _tree_faults(self) -> Iterator[tuple[str, str]]:
        """List what makes the tables no tree."""
        roots = [name for name, branch in self.tables.items() if branch.parent is None]
        if len(roots) != 1:
            named = ", ".join(roots) or "none"
            yield "tables", f"must have one table without `parent`, that of the units; here it is {named}"
        before = set[str]()
        for name, branch in self.tables.items():
            if branch.parent is not None and branch.parent not in before:
                yield f"tables.{name}.parent", f"`{branch.parent}` must be a table that stands before `{name}`"
            before.add(name)

    def _public_faults(self) -> Iterator[tuple[str, str]]:
        """List what is wrong with public tables, and with the references to them."""
        for name, table in self.public.items():
            if name in self.tables:
                yield f"public.{name}", "must have another name: a table of `tables` is called so"
            yield from ((f"public.{name}.{key}", message) for key, message in public_faults(name, table))
        yield from size_faults(self.public)
        for name, branch in self.tables.items():
            for key, message in reference_faults(branch.refers, branch.columns, self.joins(name), self.public):
                yield f"tables.{name}.{key}", message

    def _target_faults(self) -> Iterator[tuple[str, str]]:
        """Say whether the target is a column of a table that is measured."""
        targets = [f"{name}.{key}" for name, branch in self.tables.items() for key in branch.modelled]
        if self.target is not None and self.target not in targets:
            yield (
                "target",
                f"`{self.target}` must be a table and a column of it, as `loan.status`, that is no identifier"
                + near_or_listed(self.target, targets),
            )

    def _faults(self) -> Iterator[tuple[str, str]]:
        for name, branch in self.tables.items():
            faults = [*self._key_faults(name, branch), *column_faults(branch)]
            faults = faults or [*rule_faults(branch.constraints, name, branch.columns, self._columns_above(name))]
            for key, message in faults:
                yield f"tables.{name}.{key}", message
            if self.rows_of_a_unit(name) > MOST_ROWS:
                rows = self.rows_of_a_unit(name)
                yield f"tables.{name}.most", f"lets a unit have {rows} rows of this table, and {MOST_ROWS} is the most"

    def _key_faults(self, name: str, branch: Branch) -> Iterator[tuple[str, str]]:
        if self.children(name) and not branch.key:
            yield "key", "must name the columns that other tables refer to"
        for column in branch.key:
            one = branch.columns.get(column)
            by_order = branch.unique and column == branch.order
            if (
                not by_order
                and column not in self.keys_of(name)
                and not (isinstance(one, Identifier) and not _is_dropped(one))
            ):
                yield (
                    "key",
                    f"`{column}` must be an identifier with `keep: regenerate` or a pattern, or a unique `order`",
                )
        if branch.key and not set(branch.key) - set(self.keys_of(name)):
            yield "key", "must have a column of its own, besides those that name the parent"
        if branch.parent is None:
            if branch.parent_key or branch.order or branch.follows or branch.unique or branch.most != 1:
                yield (
                    "parent",
                    "is missing: `parent_key`, `most`, `order`, `unique` and `follows` are of rows of a parent",
                )
            return
        on, key = self.keys_of(name), self.tables[branch.parent].key
        if len(on) != len(key):
            yield (
                "parent_key",
                f"must name as many columns as the key of `{branch.parent}` has, which is {', '.join(key)}",
            )
        for column in on:
            if not isinstance(branch.columns.get(column), Identifier):
                yield "parent_key", f"`{column}` must be a column of this table, of type identifier"


def _count(low: int, high: int) -> Integer:
    """Return a column of whole numbers from ``low`` to ``high``."""
    return Integer(type="integer", min=low, max=max(high, low + 1))


def _is_left_out(column: Any) -> bool:
    return isinstance(column, Identifier) and column.keep == "drop"


def _is_dropped(column: Identifier) -> bool:
    return column.keep == "drop" or column.keep.startswith("text:")
