"""Columns that follow from others, as a schema declares them: ``hour = sched // 100``, or an airport's city.

They are never modeled, and exact in every synthetic row. What a column follows from is in the schema, so it is public.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from dpmodels.contract.base import DTYPE, ColumnFaults, FormulaText, decimal_digits, of_form
from dpmodels.contract.continuous import MAX, MIN
from dpmodels.contract.datetimes import Bound
from dpmodels.contract.formula import Misread, names_in
from dpmodels.contract.numbers import ExactInteger
from dpmodels.frozen import Strict

FormulaType = Annotated[
    str, of_form(r"int64|float64|float32|decimal\(\d+, ?\d+\)", "int64, float64, float32 or decimal(DIGITS, DECIMALS)")
]
BOUNDS = ("min", "max")
CLOSE, CLOSE_FLOAT = {"int64": 0.0, "float32": 1e-5}, 1e-9
"""How far a raw number may lie from its formula, relative to it: by another order of the same sums."""


def _read_bound(given: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Read a bound; of what is none, say in one sentence what there is, whatever the formula gives."""
    try:
        return read(given)
    except ValidationError:
        raise ValueError("must be a date such as 2024-12-31, or a number") from None


PublicBound = Annotated[ExactInteger | StrictFloat | Bound | None, WrapValidator(_read_bound)]


def _as_written(given: Any) -> Any:
    """Write keys that are numbers, true or false as the text that stands for them; anything else is left as it is."""
    if not isinstance(given, dict) or not any(isinstance(key, bool | int | float) for key in given):
        return given
    texts = [str(key).lower() if isinstance(key, bool) else str(key) for key in given]
    if len({*texts}) < len(given):
        raise ValueError("names a value twice, once in quotes")
    return dict(zip(texts, given.values(), strict=True))


def _of_one_kind(values: dict[str, Any] | None) -> dict[str, Any] | None:
    """Write whole numbers beside others as 0.0."""
    if values is None or {*map(type, values.values())} != {int, float}:
        return values
    return {key: float(value) for key, value in values.items()}


def _is_absent(given: object) -> bool:
    """Tell whether a key is to be left out, so that a schema keeps the hash it had before the key existed."""
    return given is None


class Derived(Strict):
    """A column whose value a formula or a lookup gives.

    Attributes:
        formula: of numbers, listed or between bounds, and datetimes; its parts are in ``dpmodels/contract/formula.py``.
        of: the categorical or boolean column that ``values`` is looked up by.
        values: what each of that column's values stands for; null stands for null.
        round: decimals that a formula's numbers keep, as of money; without it they are as float64 reckons them.
        min, max: what a formula gives lies between them: dates for a date, numbers for a number; public.
        dtype: of a formula: int64 where it gives whole numbers, else float64, unless another is named.
    """

    type: Annotated[Literal["derived"], Field(description="What follows from other columns, and is never modeled.")]
    formula: Annotated[FormulaText | None, Field(description="What it is, of numbers and datetimes.")] = None
    of: Annotated[str | None, Field(description="The column that its values are looked up by.")] = None
    values: Annotated[
        dict[str, StrictBool | StrictInt | StrictFloat | StrictStr] | None,
        Field(min_length=1, description="What each value of that column stands for."),
        BeforeValidator(_as_written),
        AfterValidator(_of_one_kind),
    ] = None
    round: Annotated[
        int | None, Field(ge=0, le=12, exclude_if=_is_absent, description="Decimals that the numbers keep.")
    ] = None
    min: Annotated[PublicBound, Field(exclude_if=_is_absent, description=MIN)] = None
    max: Annotated[PublicBound, Field(exclude_if=_is_absent, description=MAX)] = None
    dtype: Annotated[FormulaType | None, Field(description=DTYPE)] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults = [*self._form_faults(), *self._decimal_faults()]
        if self.formula is not None:
            try:
                names_in(self.formula)
            except Misread as fault:
                faults.append(("formula", f"`{self.formula}` {fault}"))
        if faults:
            raise ColumnFaults(faults)
        return self

    def _form_faults(self) -> list[tuple[str, str]]:
        """Name what is wrong with the keys that say what it follows from, and with those that go with a formula."""
        if (self.formula is None) == (self.values is None) or (self.of is None) != (self.values is None):
            return [("formula", "or else `of` and `values` must say what the column follows from")]
        if self.values is None:
            return []
        is_mixed = len({type(value) for value in self.values.values()}) > 1
        faults = [("values", "must be all text, all numbers or all true/false")] * is_mixed
        for key in ("dtype", "round", *BOUNDS):
            if getattr(self, key) is not None:
                what = "gives its values alone" if key in BOUNDS else "has the type of its values"
                faults.append((key, f"goes with `formula`; a lookup {what}"))
        return faults

    def _decimal_faults(self) -> list[tuple[str, str]]:
        if self.dtype == "int64" and self.round is not None:
            return [("round", "goes with numbers that have decimals, not with int64")]
        if (precision := decimal_digits(self.dtype or "")) is None:
            return []
        digits, scale = precision
        if self.round is None or self.round > scale:
            return [("round", f"must be given with {self.dtype}, and be at most {scale}")]
        return (
            []
            if scale < digits <= 38
            else [("dtype", f"{self.dtype} must have 38 digits at most, and one before the point")]
        )

    @property
    def operands(self) -> tuple[str, ...]:
        """Name the columns that it follows from."""
        return tuple(names_in(self.formula)) if self.formula is not None else (str(self.of),)

    @property
    def is_bounded(self) -> bool:
        """Tell whether it has bounds."""
        return self.min is not None or self.max is not None

    @property
    def kind(self) -> str:
        """Name what its values are: text, boolean or number."""
        names = {str: "text", bool: "boolean"}
        return names.get(type(next(iter(self.values.values()))), "number") if self.values else "number"

    @property
    def rule(self) -> str:
        """Say in words which values the schema admits."""
        if self.formula is None:
            return f"must be what `{self.of}` stands for"
        return f"must be `{self.formula}`" + ("" if self.round is None else f", to {self.round} decimals")
