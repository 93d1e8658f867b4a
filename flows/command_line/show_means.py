"""Means of groups on the terminal: each with as many digits as what it is within tells."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from dpmodels.clock import clock_of, has_seconds, time_of_day
from dpmodels.pages.figures.amounts import amount, error
from dpmodels.pages.page import beside, percent, percent_up, short_up
from dpmodels.plural import counted, listed
from dpmodels.report.groups.cells import apart
from flows.command_line.console import print_json, print_table
from flows.command_line.printing import echo
from tasks.stages.bands import VALUE
from tasks.stages.totals import TOTAL, TOTAL_WITHIN

if TYPE_CHECKING:
    import pandas as pd

UNSPLIT = ("standard_error", "noise", "inside")
"""What a person is not shown, since ``within`` is made of it; a file and JSON have it."""
OFF = {"mean": "within", "within": "within", TOTAL: TOTAL_WITHIN, TOTAL_WITHIN: TOTAL_WITHIN}
"""What says how many digits of a figure are written."""
SHARE_FORMS = {"mean": percent, "within": percent_up}
"""How a mean that is a share is written, and what it is within."""


def show_means(means: "pd.DataFrame", out: Path | None, as_json: bool, contract: Any, column: str) -> None:
    """Print means with what they are within and why to distrust them, or where they were written.

    Times of day, and what they are within, are printed as a report has them; JSON and files have numbers.
    """
    rows: list[dict[Any, Any]] = means.astype(object).where(means.notna(), None).to_dict("records")
    if as_json:
        of = {} if VALUE not in means.attrs else {apart(VALUE, [*map(str, means)]): means.attrs[VALUE]}
        return print_json([{name: _plain(value) for name, value in row.items()} | of for row in rows])
    if out is not None:
        return echo(f"{counted(len(means), 'mean')} in {out}")
    table, names = Table(), [str(name) for name in means if str(name).removesuffix("_") not in UNSPLIT]
    for name in names:
        table.add_column(escape(name), justify="left" if means[name].dtype == object else "right")
    columns = _columns_of(contract)
    clocks = {end: columns[name] for name in names if name in columns for end in (f"{name}_low", f"{name}_high")}
    if VALUE not in means.attrs:
        clocks |= dict.fromkeys(("mean", "within", "mean_", "within_"), columns.get(column))
    for row in rows:
        shown = _as_shares(row) if VALUE in means.attrs else row
        table.add_row(*(escape(_written(shown, name, clocks.get(name))) for name in names))
    print_table(table)


def without_nulls(contract: Any, column: str) -> str:
    """Say of which rows means and shares are, where some have no value of a column; empty where all have one."""
    columns = _columns_of(contract)
    names = [
        name
        for name in getattr(columns.get(column), "operands", (column,))
        if getattr(columns.get(name), "nullable", False)
    ]
    if not names:
        return ""
    return f"each is of the rows in which {listed(names, 'and')} {'is' if len(names) == 1 else 'are'} not null"


def _columns_of(contract: Any) -> Mapping[str, Any]:
    """Return the columns of a schema, of a tree those of its root."""
    table = contract.tables[contract.root] if contract.kind == "tree" else contract
    columns: Mapping[str, Any] = getattr(table, "columns", {})
    return columns


def _plain(value: Any) -> Any:
    """Return a figure as JSON has it, which has no dates."""
    return value if isinstance(value, int | float | None) else str(value)


def _as_shares(row: Mapping[str, Any]) -> dict[str, Any]:
    """Write a mean that is a share, and what it is within, in percent as a page has them."""
    forms = {f"{name}_" if f"{name}_" in row else name: form for name, form in SHARE_FORMS.items()}
    return {
        name: form(value) if (form := forms.get(name)) and isinstance(value, float) else value
        for name, value in row.items()
    }


def _written(row: Mapping[str, Any], name: str, column: Any = None) -> str:
    """Write a figure: a count as a whole number, a mean as a page has it, a total to two digits of what it is within.

    A ``column`` of the schema that a figure is of may count times of day.
    """
    value, of = row[name], OFF.get(name.removesuffix("_"), "within")
    within = row.get(f"{of}_", row.get(of))
    if not isinstance(value, float):
        return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
    if name.removesuffix("_") == "count":
        return f"{value:,.0f}"
    figure, clock = name.removesuffix("_"), clock_of(column)
    if clock and figure in ("mean", "within"):
        return amount({"clock": clock}, value, within) if figure == "mean" else error({"clock": clock}, value)
    if clock:
        return time_of_day(value, clock, has_seconds(column))
    if figure not in OFF or not isinstance(within, float) or not within > 0:
        return f"{value:,.10g}"
    if figure == of:
        return short_up(within)
    if figure == "mean":
        return beside(value, within)
    digits = 1 - math.floor(math.log10(within))
    return f"{round(value, digits):,.{max(digits, 0)}f}"
