"""What other bounds on the rows of a user cost: the noise of one count at each, from public inputs alone."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dpmodels.contract.schema import Schema
from dpmodels.methods.registry import system_of
from dpmodels.releases.plan import Line

COUNTS = ("records", "images", "number of records")
"""How the names of noises begin that are those of a count."""
OF_ONE_COLUMN = "of one column"
HEADINGS = ("max_rows", "noise of a count (rows)", "relative to row-level")
LEFT_OUT = (
    "`max_rows` keeps the first rows of each {user} that are read and leaves all further ones out, uncounted: sort the "
    "data for others. Set it, by public knowledge, before the first charge, since an account is for one `max_rows`"
)
USERS = (
    "`users` (docs/schema.md) costs no more noise for more rows and keeps how many each {user} has; beside it there is "
    "no `target`, `constraints`, `rows`, `partition`, `computed` column, `outside: reject-row`, `max_null_share`, "
    "`report_epsilon` or other method than nacre (docs/tables.md)"
)


def is_of_bounded_rows(line: Line) -> bool:
    """Tell whether a user may have more rows, for more noise: of one table, where ``users`` does not weigh them."""
    contract = line.contract
    if not contract.is_table or contract.unit.user is None or contract.users or contract.whole is not contract:
        return False
    return not getattr(contract.columns[contract.unit.user], "unique", None)  # a user has one row then


def noise_by_max_rows(line: Line, noise_of: Callable[[Line], Mapping[str, float]]) -> list[dict[str, Any]]:
    """Return the noise of one count beside other values of ``max_rows``: 1, half, the line's and its double.

    The count is the one that is least noisy, of those of one column if there is any. Nothing is returned of a release
    that states the noise of no count.
    """
    if not is_of_bounded_rows(line) or not (name := _count_in(noise_of(line))):
        return []
    given = line.contract.unit.max_rows
    noise = {rows: noise_of(_with(line, rows))[name] for rows in sorted({1, max(1, given // 2), given, 2 * given})}
    return [
        {"max_rows": rows, "of": name, "noise_stddev": stddev, "relative": stddev / noise[1], "planned": rows == given}
        for rows, stddev in noise.items()
    ]


def table_of(prices: list[dict[str, Any]], user: str) -> Iterator[str]:
    """Lay the prices out as lines of text below their headings, with what the bound leaves out."""
    if not prices:
        return
    yield " | ".join(HEADINGS)
    for one in prices:
        cells = (f"{one['max_rows']:,}", f"{one['noise_stddev']:,.3g}", f"{one['relative']:.2g} times")
        row = " | ".join(cell.rjust(len(heading)) for cell, heading in zip(cells, HEADINGS, strict=True))
        yield row + " (this plan)" * one["planned"]
    yield LEFT_OUT.format(user=user)
    yield USERS.format(user=user)


def _count_in(noise: Mapping[str, float]) -> str:
    """Name the count with the least noise; empty where there is none."""
    counts = [name for name in noise if name.startswith(COUNTS)]
    counts = [name for name in counts if OF_ONE_COLUMN in name] or counts
    return min(counts, key=noise.__getitem__, default="")


def _with(line: Line, max_rows: int) -> Line:
    """Plan the same line again under another bound on the rows of a user."""
    unit = line.contract.unit.model_copy(update={"max_rows": max_rows})
    schema = line.contract.whole
    fields = {name: getattr(schema, name) for name in schema.model_fields_set}
    system = system_of(line.method, line.measurement)
    return system.plan(Schema(**{**fields, "unit": unit}), line.budget.model_copy(update={"unit": unit}))
