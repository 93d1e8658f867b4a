"""The schema: a data set's columns, its privacy unit and its target, read from a file a person wrote."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, field_serializer, field_validator, model_validator

from dpmodels.contract.base import ColumnFaults, columns_in_short
from dpmodels.contract.columns import (
    Columns,
    Derived,
    Discrete,
    Identifier,
    Image,
    Modelled,
    computed,
    derived_faults,
    helper_faults,
    raw_columns,
)
from dpmodels.contract.constraints import Constraint, constraint_faults
from dpmodels.contract.derivation.bounds import DerivedBound, bounds_of
from dpmodels.contract.derivation.following import unread_with
from dpmodels.contract.discovery.discovery_charge import Discovered, Sources, discovery_faults
from dpmodels.contract.family import ALONE, INSTEAD, Users, flat_columns, one_row_faults, users_faults
from dpmodels.contract.formula import names_in
from dpmodels.contract.identifiers.identifier import too_few
from dpmodels.contract.implications import Implication, is_implication
from dpmodels.contract.partition import Partition, narrowed, partition_faults
from dpmodels.contract.remarks import remarks_of
from dpmodels.contract.text_forms.text_form import Text, as_written
from dpmodels.contract.workload import Tables, workload_faults
from dpmodels.errors import InvalidArgument, Unsuitable, near, near_or_listed
from dpmodels.frozen import Strict
from dpmodels.limits import LONGEST_NAME, MOST_RULES
from dpmodels.plain_yaml import write_yaml
from dpmodels.plural import counted
from dpmodels.privacy import Adjacency, PrivacyUnit

PARTITION_NAME = re.compile(r"[a-z0-9_-]+")  # it becomes part of the data set's name
UNMODELLED = ("identifier", "derived")
CONSTRAINT = "^(when .+ then .+|.+(<|>).+)$"
LEFT_OUT, UNREAD = (Identifier(type="identifier", keep=one) for one in ("drop", "text:derived of what is not read"))
VALUE_SUFFIX = ":value"  # of the encoded value that stands beside a continuous column's state


class RowCount(Strict):
    """How many rows the raw table should have, from public knowledge: a gate, never a parameter of the noise."""

    min: Annotated[int, Field(ge=0, description="The fewest rows.")] = 0
    max: Annotated[int | None, Field(ge=0, description="The most rows.")] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max is not None and self.min > self.max:
            raise ColumnFaults([("min", f"{self.min} is above max {self.max}: the bounds are reversed")])
        return self


def _written(description: str, **more: Any) -> Any:
    """Describe a key that is written where it is given, and left out where it is empty."""
    return Field(exclude_if=lambda value: not value, description=description, **more)


class Schema(Strict):
    """The public contract of one table; everything in it is public by declaration, including the column names."""

    written: ClassVar[str] = "table"
    about: ClassVar[Literal["a table"]] = "a table"
    is_table: ClassVar[Literal[True]] = True
    client: ClassVar[str] = ""

    name: Annotated[
        str,
        Field(
            pattern=r"^[a-z0-9_-]+$",
            max_length=LONGEST_NAME,
            description="The name of the data set and of its account.",
        ),
    ]
    unit: Annotated[PrivacyUnit, Field(description="Whose presence is hidden: a record, or a user.")] = PrivacyUnit()
    target: Annotated[str | None, Field(description="The column to be predicted from the others.")] = None
    columns: Annotated[Columns, Field(description="The columns, in their order.")]
    # left out where they are not given, so that a schema without them keeps the hash it had before they existed
    constraints: Annotated[
        tuple[Annotated[str, Field(json_schema_extra={"pattern": CONSTRAINT})], ...],
        _written(
            "Rules that every row keeps, such as start <= end, or when sick then fee > 0.",
            strict=False,
            fail_fast=True,
            max_length=MOST_RULES,
        ),
    ] = ()
    rows: Annotated[RowCount | None, _written("How many rows the raw table may have.")] = None
    partition: Annotated[Partition | None, _written("The column whose values cut the table into parts.")] = None
    users: Annotated[
        Users | None, _written("Which columns are the user's own, where users have rows of their own.")
    ] = None
    workload: Annotated[
        tuple[Tables, ...],
        _written(
            "What will be asked of the synthetic table, and is measured more closely.",
            strict=False,
            fail_fast=True,
            max_length=MOST_RULES,
        ),
    ] = ()
    sources: Sources = ()
    discovered: Discovered = ()
    text: Text = None

    def __repr__(self) -> str:
        target = f", target {self.target}" if self.target else ""
        columns = columns_in_short(self.columns)
        return f"<schema {self.name}, unit {self.unit}{target}, {counted(len(self.columns), 'column')}: {columns}>"

    __str__ = __repr__

    def to_yaml(self) -> str:
        """Write the schema as the YAML that reads back equal to it."""
        content = self.model_dump(exclude_defaults=True) | as_written(self.text)
        return write_yaml(content, default_flow_style=None, width=120)

    @property
    def kind(self) -> Literal["table", "images", "users"]:
        """The kind of data: a table, images, or users who have rows of their own."""
        return "images" if self.image else "users" if self.users else "table"

    @property
    def whole(self) -> "Schema":
        """The schema itself: it is of no client."""
        return self

    @property
    def makes_rows_alone(self) -> bool:
        """Whether users have several rows of which no synthetic user has any."""
        return self.unit.user is not None and self.users is None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is no fault, and yet not what most would expect."""
        return tuple(remarks_of(self.columns, self.unit, self.rules, self.partition is not None))

    @cached_property
    def modelled(self) -> dict[str, Modelled]:
        """Return the modeled columns in the order of the file, without identifiers, the image and what is derived."""
        return {name: column for name, column in self.columns.items() if isinstance(column, Modelled)}

    @cached_property
    def derived(self) -> dict[str, Derived]:
        """Return the columns that follow from others."""
        return {name: column for name, column in self.columns.items() if isinstance(column, Derived)}

    @cached_property
    def raw(self) -> dict[str, Any]:
        """Return the columns that a raw table has, without those that are computed as it is read."""
        return raw_columns(self.columns)

    @cached_property
    def image(self) -> tuple[str, Image] | None:
        """Return the image column and its name, if there is one."""
        return next(((name, column) for name, column in self.columns.items() if isinstance(column, Image)), None)

    @cached_property
    def flat(self) -> "Schema":
        """Return the schema of the one table that is encoded: the schema itself, or with ``users`` the flat table.

        There a user is one record, whose rows weigh one in all (contract/family.py), so its unit is a record.
        """
        if self.users is None:
            return self
        columns = flat_columns(self.users, str(self.unit.user), self.unit.max_rows, self.columns)
        return Schema(name=self.name, columns=columns)

    @cached_property
    def parents(self) -> "Schema":
        """Return the schema of the table of one row a user; only for a schema whose users have columns of their own."""
        return self._part([str(self.unit.user), *(self.users or Users()).columns], PrivacyUnit())

    @cached_property
    def children(self) -> "Schema":
        """Return the schema of the table of the users' rows, without the columns of the parents' table."""
        user_columns = (self.users or Users()).columns
        return self._part([name for name in self.columns if name not in user_columns], self.unit)

    @cached_property
    def joined(self) -> "Schema":
        """Return the schema of users' rows that hold the columns of their user as well, where both are one table."""
        return self._part(list(self.columns), self.unit)

    def _part(self, names: list[str], unit: PrivacyUnit) -> "Schema":
        columns = {name: column for name, column in self.columns.items() if name in names}
        return Schema(name=self.name, unit=unit, columns=columns, text=self.text)

    @cached_property
    def rules(self) -> tuple[Constraint, ...]:
        """Return the constraints between two columns, read."""
        pairs = (Constraint.parse(text) for text in self.constraints if not is_implication(text))
        return tuple(rule for rule in pairs if rule)

    @cached_property
    def implications(self) -> tuple[Implication, ...]:
        """Return the constraints of the form ``when ... then ...``, read."""
        return tuple(Implication.parse(text, self.columns) for text in self.constraints if is_implication(text))

    @cached_property
    def derived_bounds(self) -> tuple[DerivedBound, ...]:
        """Return the bounds of derived columns, as rules of the columns that these follow from."""
        return tuple(bounds_of(self.columns))

    @cached_property
    def null_limits(self) -> dict[str, float]:
        """Return the share of nulls that each column may have, where the schema limits it."""
        shares = {name: column.max_null_share for name, column in self.modelled.items()}
        return {name: share for name, share in shares.items() if share is not None}

    def refusing(self) -> "Schema":
        """Return the same schema for a table whose every value must lie within it."""
        if not self.modelled:
            return self  # of a tree's table whose columns are all keys
        strict = {"outside": "refuse", "other": None}
        columns = {
            name: column.model_copy(update={key: strict[key] for key in strict if hasattr(column, key)})
            for name, column in self.columns.items()
        }
        return Schema(name=self.name, unit=self.unit, target=self.target, columns=columns, constraints=self.constraints)

    def without(self, names: Collection[str]) -> "Schema":
        """Return the schema of a table of which some columns are looked at by name alone, with no rule about them."""
        formulas = {name: {*names_in(one)} for name, one in computed(self.columns).items()}
        unread = unread_with(names, formulas | {name: {*one.operands} for name, one in self.derived.items()})
        aside = {name: UNREAD if name in self.derived and name not in names else LEFT_OUT for name in unread}
        read = {name: one for name, one in self.columns.items() if not formulas.get(name, set()) & unread}
        columns = {name: aside.get(name, one) for name, one in read.items()}
        rules = tuple(text for text in self.constraints if not unread & columns_in(text, self.columns))
        part = None if self.partition is None or self.partition.column in unread else self.partition
        return Schema.model_construct(
            name=self.name, unit=self.unit, columns=columns, constraints=rules, rows=self.rows, partition=part
        )

    def of_partition(self, value: str) -> "Schema":
        """Return the schema of one partition, named after it; its column is narrowed to the partition's value.

        Raises:
            Unsuitable: the schema has no partition column.
            InvalidArgument: its partitions have no such value, or its unit is a user, who may be in several.
        """
        if self.unit.user is not None:
            raise InvalidArgument("partitions", "disjoint", "be sequential for a unit of users, who may come back")
        if self.partition is None or self.partition.value is not None:
            raise Unsuitable(
                f"schema {self.name} is not divided into partitions; write `partition: COLUMN`, without a value"
            )
        part = self.partition.model_copy(update={"value": value})
        faults = partition_faults(part, self.columns, self.target, self.unit.user)
        if faults or not PARTITION_NAME.fullmatch(value):
            because = faults[0][1] if faults else "it may hold only the characters a-z, 0-9, _ and -"
            raise InvalidArgument("partition", value, f"be one that the schema admits: {because}")
        columns = {**self.columns, part.column: narrowed(self.columns[part.column], value)}
        changes = {"name": f"{self.name}-{value}", "columns": columns, "partition": part}
        try:
            return Schema.model_validate({**{name: getattr(self, name) for name in Schema.model_fields}, **changes})
        except ValidationError as error:
            because = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise InvalidArgument("partition", value, f"be one that the schema admits: {because}") from None

    @property
    def adjacency(self) -> Adjacency:
        """How two neighbouring tables differ."""
        return Adjacency.ADD_OR_REMOVE_ONE

    @property
    def part(self) -> str:
        """The kind of part that the table is of a larger one: its partition column; empty for a whole table."""
        return self.partition.column if self.partition and self.partition.value is not None else ""

    @property
    def classes(self) -> int:
        """Count the states of a categorical or boolean target; 1 without one."""
        column = self.modelled[self.target] if self.target else None
        return column.states if isinstance(column, Discrete) else 1

    @property
    def target_index(self) -> int | None:
        """Return the target's place among the modeled columns."""
        return list(self.modelled).index(self.target) if self.target else None

    @property
    def class_index(self) -> int | None:
        """Return the target's place among the modeled columns, if it has classes to tell apart."""
        return self.target_index if self.classes > 1 else None

    @cached_property
    def hash(self) -> str:
        """Return the sha256 of the schema's canonical JSON; column order counts."""
        canonical = json.dumps(self.model_dump(mode="json"), separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @field_validator("unit", mode="before", json_schema_input_type=Literal["record"] | PrivacyUnit)
    @classmethod
    def _read_unit(cls, unit: Any) -> Any:
        if isinstance(unit, str) and unit != "record":
            raise ValueError("must be record, or a mapping such as {user: patient_id, max_rows: 4}")
        return PrivacyUnit() if unit == "record" else unit

    @field_serializer("unit")
    def _write_unit(self, unit: PrivacyUnit) -> str | dict[str, Any]:
        return "record" if unit.user is None else unit.model_dump()

    @field_validator("partition", mode="before", json_schema_input_type=str | Partition | None)
    @classmethod
    def _read_partition(cls, partition: Any) -> Any:
        return Partition(column=partition) if isinstance(partition, str) else partition

    @field_serializer("partition")
    def _write_partition(self, partition: Partition | None) -> str | dict[str, Any] | None:
        if partition is None:
            return None
        return partition.column if partition.value is None else partition.model_dump()

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        if not self.unit.is_of_rows:
            raise ValueError(f"the unit of a table is a record or a user, and not a {self.unit}")
        kinds = {name: column.type for name, column in self.columns.items()}
        faults = [*name_faults(kinds, self.target, self.unit.user), *one_row_faults(self.unit, self.columns)]
        faults += constraint_faults(self.constraints, self.columns)
        faults = faults or [*derived_faults(self.columns), *helper_faults(self.columns, self.target)]
        faults += workload_faults(self.workload, self.modelled, self.target, kinds)
        if self.partition is not None and not faults:
            faults = partition_faults(self.partition, self.columns, self.target, self.unit.user)
            faults += self._bound_to_parts(self.partition.column)
        if self.rows is not None and self.rows.max is not None and not faults:
            faults = self.too_few(self.rows.max)
        if self.users is not None and not faults:
            faults = [(key, ALONE.format(instead=other)) for key, other in INSTEAD.items() if getattr(self, key)]
            faults += users_faults(self.users, self.unit.user, self.unit.max_rows, self.columns)
        faults += discovery_faults(self.discovered, self.unit)
        if faults:
            raise ColumnFaults(faults)
        return self

    def _bound_to_parts(self, column: str) -> list[tuple[str, str]]:
        """List the rules that name the partition column, of which each part holds a single value."""
        bound = {rule.text for rule in self.implications if column in rule.columns}
        why = f"names the partition column `{column}`, which has one value in each part; leave the rule out"
        indices = [index for index, text in enumerate(self.constraints) if text.strip() in bound]
        return [(f"constraints.{index}", f"`{self.constraints[index]}` {why}") for index in indices]

    def too_few(self, rows: int) -> list[tuple[str, str]]:
        """List the columns whose pattern makes fewer identifiers than there are rows, as (place in the file, why)."""
        if self.users is None:
            return too_few(self.columns, rows)
        names = {self.unit.user, *self.users.columns}
        of_users = {name: one for name, one in self.columns.items() if name in names}
        of_rows = {name: one for name, one in self.columns.items() if name not in names}
        return [*too_few(of_users, rows), *too_few(of_rows, rows * self.unit.max_rows)]


def name_faults(kinds: Mapping[str, str], target: str | None, user: str | None) -> list[tuple[str, str]]:
    """List what is wrong with the column names and with the names that refer to them, as (key, message)."""
    faults = [("columns", f"`{name}` is no usable column name") for name in kinds if not _usable(name)]
    if all(kind in UNMODELLED for kind in kinds.values()):
        faults.append(("columns", "must have at least one column that is neither an identifier nor derived"))
    if target is not None and target not in kinds:
        faults.append(("target", f"`{target}` is no column of this schema{near_or_listed(target, kinds)}"))
    elif target is not None and kinds[target] in (*UNMODELLED, "image"):
        faults.append(("target", f"`{target}` must be a column that is no identifier, no image and not derived"))
    faults += _image_faults(kinds, target)
    if user is not None and kinds.get(user, "absent") not in ("identifier", ""):
        meant = near(user, [] if user in kinds else [name for name, kind in kinds.items() if kind == "identifier"])
        faults.append(("unit", f"the user column `{user}` must be a column of type identifier{meant}"))
    return faults


def _image_faults(kinds: Mapping[str, str], target: str | None) -> list[tuple[str, str]]:
    """Hold a schema with images to what can be synthesized: one image column and its label."""
    modelled = [name for name, kind in kinds.items() if kind not in (*UNMODELLED, "image")]
    images = [name for name, kind in kinds.items() if kind == "image"]
    if len(images) > 1:
        return [("columns", f"`{images[1]}` is a second image column; there can be one")]
    if images and (modelled != [target] or kinds[modelled[0]] not in ("categorical", "boolean", "")):
        return [("target", "beside an image there must be one categorical or boolean column, the target")]
    return []


def columns_in(rule: str, columns: Mapping[str, Any]) -> set[str]:
    """Name the columns that a rule of a schema, which was checked with it, is about."""
    if is_implication(rule):
        return {*Implication.parse(rule, columns).columns}
    pair = Constraint.parse(rule)
    return {pair.lower, pair.upper} if pair else set()


def _usable(name: str) -> bool:
    return bool(name.strip()) and name.isprintable() and not name.endswith(VALUE_SUFFIX)
