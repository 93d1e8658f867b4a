"""Means of groups on the terminal: each with as many digits as what it is within tells."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from dpmodels.plural import counted, listed
from flows.command_line.console import print_json, print_table
from flows.command_line.printing import echo

if TYPE_CHECKING:
    import pandas as pd

UNSPLIT = ("standard_error", "noise", "inside")
"""What a person is not shown, since ``within`` is made of it; a file and JSON have it."""


def show_means(means: "pd.DataFrame", out: Path | None, as_json: bool) -> None:
    """Print means with what they are within and why to distrust them, or where they were written."""
    rows: list[dict[Any, Any]] = means.astype(object).where(means.notna(), None).to_dict("records")
    if as_json:
        return print_json([{name: _plain(value) for name, value in row.items()} for row in rows])
    if out is not None:
        return echo(f"{counted(len(means), 'mean')} in {out}")
    table, names = Table(), [str(name) for name in means if str(name).removesuffix("_") not in UNSPLIT]
    for name in names:
        table.add_column(escape(name), justify="left" if means[name].dtype == object else "right")
    for row in rows:
        table.add_row(*(escape(_written(row, name)) for name in names))
    print_table(table)


def moved_bands(means: "pd.DataFrame", groups: Mapping[str, object]) -> str:
    """Say which bands begin elsewhere than they were asked to, since ranges were counted whole; empty of none.

    Args:
        means: of groups; those of a number in bands have where each begins.
        groups: what was asked for: of each column the edges of its bands, a width, categories, or nothing.
    """
    said = list[str]()
    for name, edges in groups.items():
        lows = means.get(f"{name}_low")
        if lows is None or not isinstance(edges, list | tuple):
            continue
        begins = list(dict.fromkeys(_begin(one) for one in lows.dropna()))
        if any(_begin(one) not in begins for one in edges[1:-1]):
            said.append(f"{name} at {', '.join(begins)}")
    if not said:
        return ""
    return f"the release counts ranges, and joins them whole: bands begin for {' and for '.join(said)}"


def without_nulls(contract: Any, column: str) -> str:
    """Say of which rows means and shares are, where some have no value of a column; empty where all have one."""
    table = contract.tables[contract.root] if contract.kind == "tree" else contract
    columns: Mapping[str, Any] = getattr(table, "columns", {})
    names = [
        name
        for name in getattr(columns.get(column), "operands", (column,))
        if getattr(columns.get(name), "nullable", False)
    ]
    if not names:
        return ""
    return f"each is of the rows in which {listed(names, 'and')} {'is' if len(names) == 1 else 'are'} not null"


def _begin(edge: object) -> str:
    """Write where a band begins: a number, or of a date the day."""
    try:
        return f"{float(str(edge)):.10g}"
    except ValueError:
        return str(edge)[:10]


def _plain(value: Any) -> Any:
    """Return a figure as JSON has it, which has no dates."""
    return value if isinstance(value, int | float | None) else str(value)


def _written(row: Mapping[str, Any], name: str) -> str:
    """Write a figure: a count as a whole number, a mean and what it is within to two digits of that."""
    value, within = row[name], row.get("within_", row.get("within"))
    if not isinstance(value, float):
        return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
    if name.removesuffix("_") == "count":
        return f"{value:,.0f}"
    if name.removesuffix("_") not in ("mean", "within") or not isinstance(within, float) or not within > 0:
        return f"{value:,.10g}"
    return f"{value:,.{max(1 - math.floor(math.log10(within)), 0)}f}"
