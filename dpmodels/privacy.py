"""What is protected and who may see it: unit, adjacency, budget, and the line between sensitive and released."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, NoReturn, TypeVar

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from dpmodels import amounts
from dpmodels.frozen import Frozen

T = TypeVar("T", covariant=True)


class Adjacency(StrEnum):
    """How two neighbouring data sets differ: by a unit that one of them lacks, or by one that is another in each.

    Nothing converts one into the other. What replaces a unit removes one and adds one, so a sum of vectors of norm at
    most b moves by 2b where adding or removing moves it by b: the sensitivity is another, and the price of a ratio to
    the sensitivity is the same.
    """

    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    REPLACE_ONE = "replace_one"

    def of(self, unit: object) -> str:
        """Say in words how two data sets differ by one such unit, with the name of it behind."""
        change = "added or removed" if self is Adjacency.ADD_OR_REMOVE_ONE else "replaced by another"
        return f"one {unit} {change} ({self.value})"


class PrivacyUnit(Frozen):
    """Whose presence is hidden: one record, all the rows of one user, a sentence of a document, or a document.

    Attributes:
        user: name of the user column; ``None`` when the unit is another than a user.
        max_rows: rows kept per user (ingest drops the rest); 1 for any other unit. The sensitivity of any sum of
            per-row features of norm ``b`` is ``max_rows * b`` by the triangle inequality.
        kind: what the unit is. It is not written for records and users, whose form is older than the field and is
            hashed in plans, ledgers and releases.
    """

    user: Annotated[str | None, Field(description="The identifier column that tells whose row it is.")] = None
    max_rows: Annotated[int, Field(ge=1, description="The most rows of a user that are used.")] = 1
    kind: Literal["record", "user", "sentence", "document"] = "record"

    @model_validator(mode="before")
    @classmethod
    def _of_a_user(cls, settings: Any) -> Any:
        return (
            {"kind": "user", **settings}
            if isinstance(settings, dict) and settings.get("user") is not None
            else settings
        )

    @model_validator(mode="after")
    def _only_users_have_rows(self) -> "PrivacyUnit":
        if (self.kind == "user") != (self.user is not None):
            raise ValueError("a user unit has a user column, and no other unit has one")
        if self.user is None and self.max_rows != 1:
            raise ValueError(f"max_rows needs a user column; for the {self.kind} unit it is 1")
        return self

    @model_serializer(mode="wrap")
    def _without_an_old_kind(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        return {key: written[key] for key in ("user", "max_rows")} if self.is_of_rows else {"kind": self.kind}

    @property
    def is_of_rows(self) -> bool:
        """Tell whether it is a unit of a table: one record, or a user's rows."""
        return self.kind in ("record", "user")

    @property
    def code(self) -> str:
        """The unit as ledgers have it in an account's row, where it never changes."""
        return self.kind if self.user is None else f"user:{self.user}:{self.max_rows}"

    def __str__(self) -> str:
        if self.user is not None:
            return f"user ({self.user}, at most {self.max_rows} row{'s' * (self.max_rows > 1)})"
        return "sentence of a document" if self.kind == "sentence" else self.kind


class PrivacyBudget(Frozen):
    """An (epsilon, delta) target under one adjacency and unit; the only form in which epsilon travels to a plan.

    A delta of 0 is pure differential privacy, which only pure releases keep: those of the Laplace and the exponential
    mechanism and whatever is made of them.
    """

    epsilon: Annotated[float, Field(ge=1e-3, le=1e3)]
    delta: Annotated[float, Field(ge=0, lt=1)]
    adjacency: Adjacency = Adjacency.ADD_OR_REMOVE_ONE
    unit: PrivacyUnit = PrivacyUnit()

    def __repr__(self) -> str:
        if "epsilon" not in self.__dict__:  # a debugger may look at what was refused
            return "<budget>"
        amount = f"epsilon={amounts.written(self.epsilon_exact)} at delta={amounts.written(self.delta_exact)}"
        return f"<budget: {amount}, unit {self.unit}, {self.adjacency}>"

    @property
    def epsilon_exact(self) -> Decimal:
        """Epsilon as the decimal that was written, not as its nearest float; amounts are compared as decimals."""
        return exact_decimal(self.epsilon)

    @property
    def delta_exact(self) -> Decimal:
        """Delta as the decimal that was written."""
        return exact_decimal(self.delta)


def exact_decimal(value: float) -> Decimal:
    """Return the decimal that was written for a float, which is its shortest one."""
    return Decimal(repr(value))


class Sensitive(Generic[T]):
    """A value that exists only inside the sensitive zone: no repr, no pickling, no equality on content.

    ``reveal`` is called in schema, text, embeddings, statistics, mechanisms and evaluation only; a test on the
    syntax tree holds that line.
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
