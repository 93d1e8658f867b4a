"""What all columns share: nullability, discrete states, and faults that name the key they are about."""

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from dpmodels.frozen import Frozen, Strict
from dpmodels.limits import LONGEST_FORMULA
from dpmodels.plain_yaml import write_yaml

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Parts of a second."""
OUTSIDE = "What becomes of a value that the schema does not admit."
DTYPE = "The type of the synthetic column, where it is not the usual one."


def _check_length(formula: str) -> str:
    if len(formula) > LONGEST_FORMULA:
        raise ValueError(f"has {len(formula):,} characters, and a formula may have {LONGEST_FORMULA:,} at most")
    return formula


OF_WORDS = "words of a list are `{type: categorical, values: [...]}`; free text is `{type: identifier}`, and left out"
"""What a column of text may be."""
FormulaText = Annotated[
    str, AfterValidator(_check_length), WithJsonSchema({"type": "string", "maxLength": LONGEST_FORMULA})
]


class CanonicalContract(Frozen):
    """A contract that is not of a table: its hash, how it is written, and that it has nothing that only tables have."""

    is_table: ClassVar[Literal[False]] = False
    users: ClassVar[None] = None
    image: ClassVar[None] = None
    partition: ClassVar[None] = None
    workload: ClassVar[tuple[()]] = ()
    makes_rows_alone: ClassVar[bool] = False
    remarks: ClassVar[tuple[str, ...]] = ()

    @property
    def client(self) -> str:
        """The client of a federation that the contract is about; empty for whole data."""
        return ""

    @property
    def whole(self) -> Self:
        """The contract of the data that a client's belongs to."""
        return self

    @property
    def flat(self) -> Self:
        """The contract of the records that are encoded."""
        return self

    @property
    def part(self) -> str:
        """The kind of part that is charged on its own; empty where all data is charged at once."""
        return ""

    @cached_property
    def hash(self) -> str:
        """Return the SHA-256 of the contract's canonical JSON."""
        content = json.dumps(self.model_dump(mode="json"), separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def to_yaml(self) -> str:
        """Write the contract as the YAML that reads back equal to it."""
        content = self.model_dump(mode="json", exclude_defaults=True)
        return write_yaml(content, width=120)


class UndiscoveredContract(CanonicalContract):
    """A contract of which no key can be discovered under a charge."""

    discovered: ClassVar[tuple[()]] = ()
    sources: ClassVar[tuple[()]] = ()


class ColumnFaults(ValueError):
    """Faults of one column that only show when its keys are read together: pairs of (key, message)."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{key} {message}" for key, message in faults))
        self.faults = tuple(faults)


class Modelled(Strict):
    """What every modeled column has: discrete states, the last of which is null when the column is nullable."""

    continuous: ClassVar[bool] = False
    nullable: Annotated[bool, Field(description="Whether values may be missing.")] = False
    # left out at its default, so that a schema without it keeps the hash it had before this key existed
    max_null_share: Annotated[
        float | None,
        Field(ge=0, lt=1, exclude_if=lambda share: share is None, description="The largest share of values missing."),
    ] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = list(self._faults())
        if self.max_null_share is not None and not self.nullable:
            faults.append(("max_null_share", "goes with `nullable: true`; without it no null is allowed"))
        if faults:
            raise ColumnFaults(faults)
        return self

    def _faults(self) -> Sequence[tuple[str, str]]:
        return []

    @property
    @abstractmethod
    def states(self) -> int:
        """Count the discrete states."""

    @property
    @abstractmethod
    def resolved_dtype(self) -> str:
        """Name the output type, declared or by default."""

    @property
    @abstractmethod
    def rule(self) -> str:
        """Say in words which values the schema admits."""

    @property
    def null_state(self) -> int | None:
        """Return the state that stands for null, if the column may be null."""
        return self.states - 1 if self.nullable else None

    @property
    def size(self) -> int:
        """Count the cells: the states, with "has a value" split into its value cells."""
        return self.states


def columns_in_short(columns: Mapping[str, Any]) -> str:
    """Name columns with their types, as a person looks at a schema."""
    return ", ".join(f"{name} ({column.type})" for name, column in columns.items())


def of_form(pattern: str, words: str) -> AfterValidator:
    """Hold a dtype that has parts to its form."""

    def check(dtype: str) -> str:
        if not re.fullmatch(pattern, dtype):
            raise ValueError(f"must be {words}")
        return dtype

    return AfterValidator(check)


def zone_of(dtype: str) -> str | None:
    """Return the time zone of a dtype such as ``timestamp[us, tz=UTC]``, if it has one."""
    match = re.search(r"tz=([^\]]+)\]", dtype)
    return match and match[1]


def decimal_digits(dtype: str) -> tuple[int, int] | None:
    """Return digits and decimals of a dtype such as ``decimal(12, 2)``; None for any other."""
    match = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", dtype)
    return (int(match[1]), int(match[2])) if match else None


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type is text, in any of the ways in which Arrow lays text out."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


APART = "give every part a column of its own, or leave it out with `type: identifier`"
"""What to do about a column whose values are made of parts."""


def described(dtype: pa.DataType) -> str:
    """Name a type that a data file has, without any name or text that the file gives to parts of it."""
    if pa.types.is_dictionary(dtype):
        return described(dtype.value_type)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype):
        return f"lists of {described(dtype.value_type)}"
    if pa.types.is_nested(dtype) or isinstance(dtype, pa.BaseExtensionType):
        return "values made of parts"
    if pa.types.is_timestamp(dtype):
        return "times with a zone" if dtype.tz is not None else "times without a zone"
    words = {"text": is_text, "true and false": pa.types.is_boolean, "dates": pa.types.is_date}
    words |= {"whole numbers": pa.types.is_integer, "numbers": pa.types.is_floating}
    return next((word for word, is_kind in words.items() if is_kind(dtype)), str(dtype))


def overflow(dtype: str, low: float, high: float) -> str:
    """Say that an integer ``dtype`` is too narrow for the bounds, or return an empty text."""
    if dtype.startswith("float") or dtype == "dictionary":
        limit = 2**24 if dtype == "float32" else 2**53
        return "" if max(-low, high) < limit else f"{dtype} cannot tell integers of this size apart"
    if dtype.startswith("time"):
        last = 86_400 * UNITS[dtype[7:-1]] - 1
        return "" if low >= 0 and high <= last else f"{dtype} holds the times of a day, which are 0 to {last}"
    info = np.iinfo("int64" if dtype.startswith("duration") else dtype)
    return "" if info.min <= low and high <= info.max else f"{dtype} cannot hold {low} to {high}"
