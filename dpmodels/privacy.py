"""What is protected and who may see it: unit, adjacency, budget, and the line between sensitive and released."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Generic, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

T = TypeVar("T", covariant=True)


class Adjacency(StrEnum):
    """How two neighbouring data sets differ."""

    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    REPLACE_ONE = "replace_one"


class PrivacyUnit(BaseModel):
    """Whose presence is hidden: one record, or all the rows of one user.

    Attributes:
        user: name of the user column; ``None`` when the unit is a single record.
        max_rows: rows kept per user (ingest drops the rest); 1 for the record unit. The sensitivity of any sum of
            per-row features of norm ``b`` is ``max_rows * b`` by the triangle inequality.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    user: str | None = None
    max_rows: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _record_is_one_row(self) -> "PrivacyUnit":
        if self.user is None and self.max_rows != 1:
            raise ValueError("max_rows needs a user column; for the record unit it is 1")
        return self

    def __str__(self) -> str:
        return "record" if self.user is None else f"user:{self.user}:{self.max_rows}"


class PrivacyBudget(BaseModel):
    """An (epsilon, delta) target under one adjacency and unit; the only form in which epsilon travels to a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    epsilon: Annotated[float, Field(ge=1e-3, le=1e3)]
    delta: Annotated[float, Field(gt=0, lt=1)]
    adjacency: Adjacency = Adjacency.ADD_OR_REMOVE_ONE
    unit: PrivacyUnit = PrivacyUnit()

    @property
    def epsilon_exact(self) -> Decimal:
        """Epsilon as the decimal that was written, not as its nearest float; amounts are compared as decimals."""
        return Decimal(repr(self.epsilon))

    @property
    def delta_exact(self) -> Decimal:
        """Delta as the decimal that was written."""
        return Decimal(repr(self.delta))


class Sensitive(Generic[T]):
    """A value that exists only inside the sensitive zone: no repr, no pickling, no equality on content.

    ``reveal`` is called only in ``schema``, ``mechanisms``, ``embeddings`` and ``evaluation``; a test on the syntax
    tree holds that line.
    """

    __slots__ = ("__value",)

    def __init__(self, value: T) -> None:
        self.__value = value

    def reveal(self) -> T:
        """Hand out the protected value. The caller is answerable for where it goes."""
        return self.__value

    def __repr__(self) -> str:
        return "Sensitive(<redacted>)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("Sensitive values are never pickled")


class Released(Generic[T]):
    """A value already paid for (or post-processed from one): free to store, log, copy and hand over."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Released({self.value!r})"
