"""Columns that follow from others, as a schema declares them: ``hour = sched // 100``, or an airport's city.

They are never modeled, and exact in every synthetic row. What a column follows from is in the schema, so it is public.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from dpmodels.contract.base import DTYPE, ColumnFaults
from dpmodels.contract.formula import LONGEST, Misread, names_in
from dpmodels.frozen import Strict


class Derived(Strict):
    """A column whose value a formula or a lookup gives.

    Attributes:
        formula: of columns on an interval; its parts are in ``dpmodels/contract/formula.py``.
        of: the categorical or boolean column that ``values`` is looked up by.
        values: what each of that column's values stands for; null stands for null.
        dtype: of a formula: int64 where it gives whole numbers, else float64, unless another is named.
    """

    type: Annotated[Literal["derived"], Field(description="What follows from other columns, and is never modeled.")]
    formula: Annotated[str | None, Field(max_length=LONGEST, description="What it is, of columns on an interval.")] = (
        None
    )
    of: Annotated[str | None, Field(description="The column that its values are looked up by.")] = None
    values: Annotated[
        dict[str, StrictBool | StrictInt | StrictFloat | StrictStr] | None,
        Field(min_length=1, description="What each value of that column stands for."),
    ] = None
    dtype: Annotated[Literal["int64", "float64", "float32"] | None, Field(description=DTYPE)] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.formula is None) == (self.values is None) or (self.of is None) != (self.values is None):
            raise ColumnFaults([("formula", "or else `of` and `values` must say what the column follows from")])
        if self.values is not None and len({type(value) for value in self.values.values()}) > 1:
            raise ColumnFaults([("values", "must be all text, all numbers of one kind or all true/false")])
        if self.values is not None and self.dtype is not None:
            raise ColumnFaults([("dtype", "goes with `formula`; a lookup has the type of its values")])
        if self.formula is not None:
            try:
                names_in(self.formula)
            except Misread as fault:
                raise ColumnFaults([("formula", f"`{self.formula}` {fault}")]) from None
        return self

    @property
    def operands(self) -> tuple[str, ...]:
        """Name the columns that it follows from."""
        return tuple(names_in(self.formula)) if self.formula is not None else (str(self.of),)

    @property
    def kind(self) -> str:
        """Name what its values are: text, boolean or number."""
        names = {str: "text", bool: "boolean"}
        return names.get(type(next(iter(self.values.values()))), "number") if self.values else "number"

    @property
    def rule(self) -> str:
        """Say in words which values the schema admits."""
        return f"must be `{self.formula}`" if self.formula is not None else f"must be what `{self.of}` stands for"
