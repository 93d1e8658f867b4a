"""What a schema leaves to be discovered: keys whose value is the word ``discover``, and the contract that they make.

    carrier: {type: categorical, values: discover}
    delay: {type: integer, min: discover, max: discover, nullable: true, max_null_share: discover}

A file with such a word is the draft of a schema. It is fit for one command alone, which releases what is missing under
a charge (methods/tables/thresholded_counts.py) and writes it into the file (authoring/completion.py).
"""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from dpmodels.clock import WRITTEN
from dpmodels.contract.base import UndiscoveredContract
from dpmodels.contract.columns import Column, Identifier
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.plain_columns import plain_column
from dpmodels.contract.tree import Tree
from dpmodels.frozen import Frozen
from dpmodels.limits import LONGEST_NAME
from dpmodels.plain_yaml import write_yaml
from dpmodels.privacy import Adjacency, PrivacyUnit

WORD = "discover"
SHARE = "max_null_share"
MARKABLE: dict[str, tuple[str, ...]] = {
    "categorical": ("values", SHARE),
    "boolean": (SHARE,),
    "integer": ("min", "max", SHARE),
    "number": ("min", "max", SHARE),
    "datetime": ("min", "max", SHARE),
}
"""The keys that may be left to be discovered, by the type of their column."""
GROUPS = 3
"""Digits behind each mark of thousands, and the `round` from which on a schema says that so many are decimals."""
COMMAND = "nacre schema discover DATA --schema THIS_FILE --epsilon 0.1 --delta 1e-6"
WAITING = f"holds `{WORD}`, which waits for a charged release: {COMMAND}"


class MarkedKeys(Frozen):
    """What is to be discovered of one column: the keys that the draft marks."""

    type: Literal["categorical", "boolean", "integer", "number", "datetime"]
    keys: tuple[str, ...]

    @property
    def counts(self) -> str:
        """What is counted besides nulls: ``values`` that the data names, ``cells`` of numbers, ``years`` or nothing."""
        if "values" in self.keys:
            return "values"
        return {"datetime": "years"}.get(self.type, "cells") if {"min", "max"} & {*self.keys} else ""


class JoinedTable(Frozen):
    """A table of a tree as a discovery reads it: how its rows join those of its parent, and its columns."""

    parent: str | None = None
    key: tuple[str, ...] = ()
    parent_key: tuple[str, ...] = ()
    orphans: Literal["refuse", "drop"] = "refuse"
    columns: tuple[str, ...]


class Discovery(UndiscoveredContract):
    """The public contract of a discovery: the data set, whose presence is hidden, and what is asked of which column.

    It holds nothing else of the draft, so that a draft may be changed elsewhere and what was paid for still fits. Of a
    tree of tables it has the tables, and a column is called by its table and itself, as ``account.opened``.
    """

    written: ClassVar[str] = "discovery"
    kind: ClassVar[Literal["discovery"]] = "discovery"
    about: ClassVar[Literal["a discovery"]] = "a discovery"
    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]+$", max_length=LONGEST_NAME)]
    unit: PrivacyUnit = PrivacyUnit()
    columns: tuple[str, ...]
    wanted: Annotated[dict[str, MarkedKeys], Field(min_length=1)]
    tables: dict[str, JoinedTable] = Field(default_factory=dict, exclude_if=lambda tables: not tables)

    @property
    def adjacency(self) -> Adjacency:
        """How two neighboring tables differ."""
        return Adjacency.ADD_OR_REMOVE_ONE

    @property
    def rows_of_a_unit(self) -> int:
        """The most rows of a unit that are counted: of a tree one in each table."""
        return 1 if self.tables else self.unit.max_rows

    def reading(self, decimals: Collection[str] = ()) -> Schema:
        """What a table is read by: a schema that holds no value to anything, and so is none for a run.

        The columns of which something is to be discovered are kept, and no other is looked at. ``decimals`` names those
        that declare three decimals or more, which is no part of the contract, since the draft may say so afterwards.
        """
        return self._read_for(self.name, self.unit, self.columns, {name: name for name in self.wanted}, decimals)

    def wanted_of(self, table: str) -> dict[str, str]:
        """Return the columns of a tree's table of which something is to be discovered, and what each is called here."""
        return {one: name for one in self.tables[table].columns if (name := f"{table}.{one}") in self.wanted}

    def reading_of(self, table: str, decimals: Collection[str] = ()) -> Schema:
        """What a table of a tree is read by; its keys are kept too."""
        branch = self.tables[table]
        keys = {*branch.key, *branch.parent_key}
        return self._read_for(table, PrivacyUnit(), branch.columns, self.wanted_of(table), decimals, keys)

    def to_yaml(self) -> str:
        """Write the contract as YAML."""
        return write_yaml(self.model_dump(mode="json"))

    def _read_for(
        self,
        name: str,
        unit: PrivacyUnit,
        columns: Collection[str],
        marked: Mapping[str, str],
        decimals: Collection[str],
        keys: Collection[str] = (),
    ) -> Schema:
        """Return a schema that keeps the marked columns, by what each is called here, and the keys."""
        every: dict[str, Column] = {}
        for one in columns:
            kind = (
                Identifier
                if one not in marked
                else plain_column(self.wanted[marked[one]].counts, marked[one] in decimals)
            )
            every[one] = kind(type="identifier", keep="regenerate" if one in marked or one in keys else "drop")
        return Schema.model_construct(name=name, unit=unit, columns=every)


def columns_of(data: Any) -> dict[str, tuple[Any, tuple[str, ...]]]:
    """Return the columns of a schema's file by name, and where each stands; of a tree they are those of all tables."""
    tables: Any = data.get("tables") if is_map(data) and "columns" not in data else None
    parts: dict[str, tuple[tuple[str, ...], Any]] = {"": ((), data)}
    if is_map(tables):
        parts = {f"{name}.": (("tables", name), one) for name, one in tables.items()}
    maps = {begin: (place, part["columns"]) for begin, (place, part) in parts.items() if has_columns(part)}
    return {
        f"{begin}{name}" if begin else name: (column, (*place, "columns", name))
        for begin, (place, columns) in maps.items()
        for name, column in columns.items()
    }


def has_columns(part: Any) -> bool:
    """Tell whether a part of a schema's file has columns."""
    return is_map(part) and is_map(part.get("columns"))


def marks(data: Any) -> dict[str, tuple[str, ...]]:
    """Return the marked keys of each column of a schema's file; empty where nothing is left to be discovered."""
    return {name: keys for name, (column, _) in columns_of(data).items() if (keys := marked_keys(column))}


def marked_keys(column: Any) -> tuple[str, ...]:
    """Return the keys of a column of a file that are left to be discovered."""
    if not (is_map(column) and isinstance(column.get("type"), str)) or "computed" in column:
        return ()
    return tuple(key for key in MARKABLE.get(column["type"], ()) if column.get(key) == WORD)


def is_map(node: Any) -> bool:
    """Tell whether a part of a file has keys."""
    return isinstance(node, Mapping)


def is_derived(column: Any) -> bool:
    """Tell whether a column of a file is a derived or a computed one, which waits for what it follows from."""
    return is_map(column) and (column.get("type") == "derived" or "computed" in column)


def contract_of(data: Mapping[str, Any], checked: Schema | Tree) -> Discovery:
    """Return the contract of a draft whose stand-in was checked."""
    columns, tree = columns_of(data), checked if checked.kind == "tree" else None
    return Discovery(
        name=checked.name,
        unit=checked.unit,
        columns=tuple(name for name, (column, _) in columns.items() if "computed" not in column),
        wanted={name: MarkedKeys(type=columns[name][0]["type"], keys=keys) for name, keys in marks(data).items()},
        tables={} if tree is None else {name: _joined_table(tree, name, data) for name in tree.tables},
    )


def with_decimals(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Name the columns of a draft that say of their numbers that three decimals or more stand behind a point."""
    rounded = {name: column.get("round") for name, (column, _) in columns_of(data).items() if is_map(column)}
    return tuple(name for name, one in rounded.items() if isinstance(one, int) and one >= GROUPS)


def _joined_table(tree: Tree, name: str, data: Mapping[str, Any]) -> JoinedTable:
    branch, columns = tree.tables[name], data["tables"][name]["columns"]
    return JoinedTable(
        parent=branch.parent,
        key=branch.key,
        parent_key=tree.keys_of(name),
        orphans=branch.orphans,
        columns=tuple(one for one in branch.columns if not is_derived(columns[one])),
    )


def editor_schema() -> dict[str, Any]:
    """Return the JSON Schema of a schema's file, in which the markable keys may hold the word."""
    written = Schema.model_json_schema()
    for title, definition in written["$defs"].items():
        for key in MARKABLE.get(title.lower(), ()):
            key_schema = definition["properties"][key]
            about = key_schema.pop("description", "")
            description = f"{about} `{WORD}` leaves it to a charged release, `nacre schema discover`."
            clock = [{"type": "string", "pattern": f"^{WRITTEN.pattern}$"}] * (title == "Integer" and key != SHARE)
            forms = [key_schema, *clock, {"const": WORD}]
            definition["properties"][key] = {"anyOf": forms, "description": description}
    return written
