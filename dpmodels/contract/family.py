"""Two tables under a unit of users: a parents' table of one row a user, and the children's table of a user's rows.

The schema of both is one file. Its key ``users`` names the columns of the parents' table, which
are the same in all rows of a user, and the column by which a user's rows are in order. All other columns are the
children's; the column that names the user is in both, and joins them.

Everything after ingest works on one flat table, in which a user has a row for each child, or one row without a child:

    flat   parents' columns, CHILDREN: how many, the children's columns (null without a child), POSITION: 1, 2, 3, ...

Privacy: what a user's rows in the flat table are depends on that user's own rows alone. They are ``max(n, 1)`` rows for
    a user with n children, n is at most ``max_rows``, and each of them holds n. So each row can weigh
    ``1 / max(n, 1)``, and a user weighs 1 in all (embeddings/per_user.py).
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from dpmodels.contract.base import Modelled
from dpmodels.contract.columns import Categorical, Column, Continuous, Derived, Identifier, Image
from dpmodels.contract.identifiers.identifier import uniques_of
from dpmodels.frozen import Strict
from dpmodels.privacy import PrivacyUnit

CHILDREN, POSITION = "children", "position"
"""Columns of the flat table: how many children the user has, and which of them the row is, from 1 on; 0 for none."""
MOST_CHILDREN = 100
"""Upper bound on ``max_rows``: lattice steps are whole, and a hundredth of a row's is exact to a thousandth."""
ALONE = "must be left out: it is not supported beside `users`; {instead}"
TREE = "two tables under `tables` (docs/tables.md) have one, as has one table without `users`"
BEFORE = "write it into the data before, which `--query` can"
INSTEAD = {
    "target": TREE,
    "constraints": "two tables under `tables` (docs/tables.md) keep rules, as does one table without `users`",
    "rows": "count the rows before the run",
    "partition": "leave `users` out, or the partition",
    "workload": "leave `users` out, or the workload",
}
"""Keys that do not go with ``users``, and what to do instead of each."""


class Users(Strict):
    """Which columns are the same in all rows of a user, and by which column these rows are in order."""

    columns: Annotated[
        tuple[str, ...],
        Field(strict=False, description="The columns that are the same in all rows of a user: the parents' table."),
    ] = ()
    order: Annotated[str | None, Field(description="The column by which the rows of a user are in order.")] = None

    @property
    def fewest(self) -> int:
        """Return the fewest children of a user: without columns of its own, a user is known by its rows alone."""
        return 0 if self.columns else 1


def flat_columns(users: Users, user: str, max_rows: int, columns: Mapping[str, Column]) -> dict[str, Any]:
    """Return the columns of the flat table; a child's are null where a user has none."""
    numbers = Categorical(type="categorical", values=tuple(range(users.fewest, max_rows + 1)))
    absent = {"nullable": True} if users.fewest == 0 else {}
    user_columns = {name: columns[name] for name in columns if name in (user, *users.columns)}
    others = {
        name: column.model_copy(update=absent) if isinstance(column, Modelled) else column
        for name, column in columns.items()
        if name not in user_columns
    }
    return {**user_columns, CHILDREN: numbers, **others, POSITION: numbers}


def one_row_faults(unit: PrivacyUnit, columns: Mapping[str, Column]) -> Iterator[tuple[str, str]]:
    """Refuse users who may have several rows, and whom the schema says to be in one each, as (key, message)."""
    if unit.max_rows > 1 and unit.user in uniques_of(columns):
        yield f"columns.{unit.user}.unique", "says that a user has one row: write `max_rows: 1`, or leave it out"


def users_faults(users: Users, user: str | None, max_rows: int, columns: Mapping[str, Column]) -> list[tuple[str, str]]:
    """List what is wrong with the key ``users`` of a schema, as (key, message)."""
    if user is None:
        return [("users", "goes with `unit: {user: COLUMN, max_rows: N}`, which says whose rows they are")]
    return [*_own_faults(users, user, max_rows, columns), *_column_faults(users, user, columns)]


def _own_faults(users: Users, user: str, max_rows: int, columns: Mapping[str, Column]) -> Iterator[tuple[str, str]]:
    if max_rows > MOST_CHILDREN:
        yield "unit", f"with `users` a user has {MOST_CHILDREN} rows at most; write a smaller `max_rows`"
    for name in users.columns:
        if name not in columns or name == user:
            yield "users.columns", f"`{name}` must be another column of the schema than the user's"
    order = columns.get(users.order) if users.order else None
    zero = getattr(order, "zero_inflated", False)
    if users.order and (users.order in users.columns or not isinstance(order, Continuous) or zero):
        kind = "a number or a datetime of the rows, without `zero_inflated`, and not of the user"
        yield "users.order", f"`{users.order}` must be {kind}"
    parents = [isinstance(columns.get(name), Modelled) for name in users.columns]
    if parents and not any(parents):
        yield "users.columns", "must have at least one column that is neither an identifier nor derived, or be left out"
    if not any(isinstance(column, Modelled) for name, column in columns.items() if name not in users.columns):
        yield "users.columns", "must leave the rows at least one column that is neither an identifier nor derived"


def _column_faults(users: Users, user: str, columns: Mapping[str, Column]) -> Iterator[tuple[str, str]]:
    user_column = columns.get(user)
    if isinstance(user_column, Identifier) and (user_column.keep == "drop" or user_column.keep.startswith("text:")):
        yield f"columns.{user}.keep", "must be regenerate or a pattern: with `users`, fresh names join both tables"
    for name, column in columns.items():
        key = f"columns.{name}"
        if name in (CHILDREN, POSITION):
            yield key, f"must have another name: with `users`, `{name}` is a column of the flat table"
        if isinstance(column, Image):
            yield f"{key}.type", "must be another: there are no images beside `users`"
        if getattr(column, "outside", "") == "reject-row":
            yield f"{key}.outside", "must be another policy: beside `users` no row is rejected"
        if getattr(column, "computed", None) is not None:
            yield f"{key}.computed", f"must be left out: beside `users` no column is computed; {BEFORE}"
        if getattr(column, "unique", False):
            yield f"{key}.unique", "must be left out: beside `users` no identifier is held to different values"
        if isinstance(column, Derived) and column.is_bounded:
            yield (
                key,
                f"must have neither min nor max: beside `users` none is held to bounds; or {BEFORE}",
            )
        if getattr(column, "max_null_share", None) is not None:
            yield f"{key}.max_null_share", "must be left out: beside `users` no share of nulls is held to"
        if isinstance(column, Derived):
            apart = [other for other in column.operands if (other in users.columns) != (name in users.columns)]
            if apart:
                yield key, f"must follow from columns of its own table, and `{apart[0]}` is in the other; or {BEFORE}"
