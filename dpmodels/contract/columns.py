"""The kinds of column a schema may declare: categorical, boolean, identifier, image, derived, and on an interval."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from pydantic import AfterValidator, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from dpmodels.contract.base import DTYPE, OUTSIDE, Modelled, overflow
from dpmodels.contract.continuous import Continuous
from dpmodels.contract.datetimes import Datetime
from dpmodels.contract.derivation.bounds import bound_faults
from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.derivation.nested import (
    circle_of,
    followed,
    names_derived,
    nested_fault,
    not_of_file,
    words_fault,
    written_out,
)
from dpmodels.contract.formula import faults_of, is_whole, moment_of
from dpmodels.contract.identifiers.identifier import Identifier
from dpmodels.contract.image import Image
from dpmodels.contract.numbers import Integer, IntegerType, Number

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
FloatType = Literal["float32", "float64"]
TextType = Literal["string", "large_string"]
EXACT = 2**53 - 1  # the largest integer a float64 tells from its neighbors
ONE_KIND = (
    "must be all text, all numbers or all true/false; put quotes around text that YAML reads as a number or as true or "
    'false, such as "12" or "true"'
)
NEAREST = "nearest"  # what becomes of a number that is not among those listed


class Categorical(Modelled):
    """A column with a listed set of values, in the order of its states."""

    type: Annotated[Literal["categorical"], Field(description="One of a list of values.")]
    values: Annotated[
        tuple[Scalar, ...],
        # one fault of a list is enough: a hundred thousand of them are a gigabyte of sentences
        Field(min_length=1, strict=False, fail_fast=True, description="All values, in their order."),
    ]
    outside: Annotated[Literal["refuse", "reject-row", "other", "nearest"], Field(description=OUTSIDE)] = "refuse"
    other: Annotated[Scalar | None, Field(description="The listed value that replaces unlisted ones.")] = None
    dtype: Annotated[
        TextType | IntegerType | FloatType | Literal["dictionary", "bool"] | None, Field(description=DTYPE)
    ] = None

    @cached_property
    def kind(self) -> str:
        """Name what the values are: text, integer, number, boolean, or mixed."""
        kinds = frozenset(map(type, self.values))
        names: dict[frozenset[type], str] = {
            frozenset({str}): "text",
            frozenset({int}): "integer",
            frozenset({bool}): "boolean",
            frozenset({float}): "number",
            frozenset({int, float}): "number",
        }
        return names.get(kinds, "mixed")

    @property
    def states(self) -> int:
        """Count the listed values, and null if allowed."""
        return len(self.values) + self.nullable

    @property
    def resolved_dtype(self) -> str:
        """Name the output type; by default that of the values."""
        return self.dtype or {"text": "string", "integer": "int64", "number": "float64", "boolean": "bool"}[self.kind]

    @property
    def rule(self) -> str:
        return "must be one of the listed values"

    @property
    def keys(self) -> list[Any]:
        """List the values as they are compared: text and booleans as they are, numbers as float64 of the dtype."""
        if self.kind in ("text", "boolean"):
            return list(self.values)
        width = np.float32 if self.resolved_dtype == "float32" else np.float64
        return [float(width(value)) for value in self.values]

    def _faults(self) -> Sequence[tuple[str, str]]:
        if self.kind == "mixed":
            return [("values", ONE_KIND)]
        if self.kind == "integer" and max(map(abs, map(int, self.values))) > EXACT:
            return [("values", "must stay within 2**53; an identifier is no categorical column")]
        faults = []
        if message := _misfit(self.kind, self.resolved_dtype, self.values):
            faults.append(("dtype", message))
        elif len(set(self.keys)) < len(self.keys):
            faults.append(("values", "lists a value twice"))
        if (self.outside == "other") != (self.other is not None):
            faults.append(("other", "names the value that replaces unlisted ones: it goes with `outside: other`"))
        if self.outside == NEAREST and self.kind not in ("integer", "number"):
            faults.append(("outside", "can be nearest where the values are numbers"))
        if self.other is not None and (type(self.other), self.other) not in [(type(v), v) for v in self.values]:
            faults.append(("other", "must be one of the listed values"))
        return faults


def _misfit(kind: str, dtype: str, values: Sequence[Any]) -> str:
    """Say why categories of this kind cannot be stored as ``dtype``, or return an empty text."""
    fits = {
        "text": ("string", "large_string", "dictionary"),
        "boolean": ("bool",),
        "number": ("float32", "float64"),
        "integer": ("dictionary", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    }[kind]
    if dtype not in fits:
        return f"cannot hold these values; write one of {', '.join(fits)}"
    if kind == "number":
        most = float(np.finfo(dtype).max)
        fault = f"cannot hold numbers as large as these; they must be within {most:.1e}"
        return "" if all(-most <= value <= most for value in values) else fault  # also false of what is no number
    return overflow(dtype, min(values), max(values)) if kind == "integer" else ""


class Boolean(Modelled):
    """A column of false (state 0) and true (state 1)."""

    kind: ClassVar[str] = "boolean"
    values: ClassVar[tuple[bool, ...]] = (False, True)
    keys: ClassVar[list[Any]] = [False, True]
    type: Annotated[Literal["boolean"], Field(description="True or false.")]
    outside: Annotated[Literal["refuse", "reject-row"], Field(description=OUTSIDE)] = "refuse"
    dtype: Annotated[Literal["bool"] | None, Field(description=DTYPE)] = None

    @property
    def states(self) -> int:
        """Count false, true, and null if allowed."""
        return 2 + self.nullable

    @property
    def resolved_dtype(self) -> str:
        return "bool"

    @property
    def rule(self) -> str:
        return "must be true or false"


Discrete = Categorical | Boolean


def names_of(column: Modelled) -> list[str]:
    """Write the values that a column lists, false and true as in YAML; none of a column on an interval."""
    values = column.values if isinstance(column, Discrete) else ()
    if set(map(type, values)) == {str}:
        return list(cast(tuple[str, ...], values))
    return [str(value).lower() if isinstance(value, bool) else str(value) for value in values]


def raw_columns(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that a raw table has: what is computed as it is read is none of them.

    What a formula derives is, of the raw table, a column like others: a datetime of the kind of the one that is added
    to, or a number, whose bounds nobody knows.
    """
    known = computed(columns)
    return {name: _as_read(column, columns) for name, column in columns.items() if name not in known}


def _as_read(column: Any, columns: Mapping[str, Any]) -> Any:
    if not isinstance(column, Derived) or column.formula is None or faults_of(column.formula, columns):
        return column
    if moment := moment_of(column.formula, columns):
        return moment
    whole = is_whole(column.formula, columns) and column.dtype in (None, "int64")
    kind: Any = Integer if whole else Number
    return kind.model_construct(type="integer" if whole else "number", min=-EXACT, max=EXACT)


def computed(columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns that are computed as a raw table is read, with their formulas."""
    return {name: one.computed for name, one in columns.items() if isinstance(one, Integer | Number) and one.computed}


def helpers(columns: Mapping[str, Any]) -> frozenset[str]:
    """Name the columns that are computed and modeled for the sake of others alone, and not handed over."""
    return frozenset(name for name in computed(columns) if columns[name].keep)


def derived_faults(columns: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name what is wrong with derived and computed columns of a schema, as (place in the file, message).

    Nothing is said of a column that follows from one whose own formula or lookup is wrong.
    """
    if circle := circle_of(columns):
        place = next(key for key in ("formula", "computed", "of") if getattr(columns[circle[0]], key, None))
        yield f"columns.{circle[0]}.{place}", CIRCLE.format("`, which follows from `".join(circle[1:]))
        return
    flat = written_out({**columns})
    raw = raw_columns(flat) if computed(flat) else {}
    faults = {name: list(_faults_of(name, flat, raw)) for name in columns}
    wrong = {name for name, found in faults.items() if any(key in CAUSES for key, _ in found)}
    for name, follows in followed(columns).items():
        yield from ((f"columns.{name}.{key}", fault) for key, fault in faults[name] if not follows & wrong)


def _faults_of(name: str, columns: Mapping[str, Any], raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name what is wrong with one column, as (key, message); nothing of one that is neither derived nor computed."""
    column = columns[name]
    is_computed = isinstance(column, Integer | Number) and column.computed is not None
    if is_computed and (message := _computed_fault(column, columns, raw)):
        yield "computed", f"`{column.computed}` {message}"
    if not isinstance(column, Derived):
        return
    if column.formula is not None:
        if message := _formula_fault(column, columns):
            yield "formula", f"`{column.formula}` {message}"
        elif moment_of(column.formula, columns) and (column.dtype or column.round is not None):
            yield "formula", f"`{column.formula}` gives a datetime: leave out `dtype` and `round`"
        else:
            yield from bound_faults(name, column, columns)
        return
    other = columns.get(str(column.of))
    if not isinstance(other, Discrete):
        yield "of", f"`{column.of}` must be a categorical or boolean column"
    elif missing := [one for one in names_of(other) if one not in (column.values or {})]:
        yield "values", f"must say what `{missing[0]}` of `{column.of}` stands for"


def _formula_fault(column: Derived, columns: Mapping[str, Any]) -> str:
    """Say what is wrong with the formula of a derived column, or return an empty text."""
    formula = str(column.formula)
    known = raw_columns(columns) if names_derived(formula, columns) else columns
    return words_fault(formula, columns) or faults_of(formula, known) or nested_fault(formula, columns)


def copy_of(name: str, columns: Mapping[str, Any]) -> str:
    """Return the column that is counted in place of a derived one, as it is computed from that alone; empty without."""
    same = (other for other, one in columns.items() if (getattr(one, "computed", None) or "").strip() == name)
    return next(same, "")


def helper_faults(columns: Mapping[str, Any], target: str | None) -> list[tuple[str, str]]:
    """Refuse a target that nobody is handed."""
    is_helper = target in helpers(columns)
    return [("target", f"`{target}` has `keep: drop`: it is not handed over")] if is_helper else []


def _computed_fault(column: Integer | Number, columns: Mapping[str, Any], raw: Mapping[str, Any]) -> str:
    """Say why the rows of a raw table do not tell a computed column, or return an empty text."""
    formula = str(column.computed)
    if message := faults_of(formula, raw):
        if names_derived(formula, raw):
            return ""  # the fault is that column's, and stands there
        return not_of_file(formula, computed(columns), raw) or re.sub(
            r"is no column(?=$|; did)", "is no column of the file", message
        )
    if moment_of(formula, raw):
        return "gives a datetime, and this column is of numbers; such as `days_between(start, end)`"
    return "" if isinstance(column, Number) or is_whole(formula, raw) else NOT_WHOLE.format(formula)


CAUSES = frozenset({"formula", "computed", "of", "values"})
"""Keys that say what a column follows from: a fault in one is one of all that follows from the column."""
CIRCLE = "follows from `{}`, and so from itself: write what one of them follows from else"
NOT_WHOLE = "gives numbers that are not whole: write `floor({})`, or `type: number`"
Column = Annotated[
    Categorical | Boolean | Integer | Number | Datetime | Identifier | Image | Derived,
    Field(discriminator="type"),
]
Columns = Annotated[dict[str, Column], AfterValidator(written_out)]
"""The columns of a table by name, in their order; what is derived follows from none that is derived itself."""
__all__ = [
    "Boolean",
    "Categorical",
    "Column",
    "Columns",
    "Continuous",
    "Datetime",
    "Derived",
    "Discrete",
    "Identifier",
    "Image",
    "Integer",
    "Modelled",
    "Number",
]
