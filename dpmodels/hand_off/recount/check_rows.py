"""Check that the synthetic figures of a report are those of the rows that are handed over with it."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpmodels.errors import NacreError
from dpmodels.files import open_plain
from dpmodels.hand_off.manifest import Manifest, printable
from dpmodels.hand_off.recount.check_product import PART
from dpmodels.hand_off.recount.figures import differing
from dpmodels.hand_off.recount.rows import HandedOver, OfUsers
from dpmodels.hand_off.recount.trees import differing_in_tree
from dpmodels.hand_off.verification import Verification
from dpmodels.limits import LARGEST_REPORT, read_json
from dpmodels.releases.contract import Contract, table_of

Bar = Callable[[str], AbstractContextManager[Callable[[float, float], None]]]
"""Shows how far something is for as long as it lasts."""
MANY, MOST, MOST_JOINED = 250_000, 10_000_000, 1_000_000
"""Rows from which on the count is shown, and up to which there is one: of one table, and of users of several."""
OF_FACTS = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError)
"""What facts and rows of any shape raise where they are counted."""
UNREADABLE = "the rows in synthetic/ cannot be counted as columns of schema.yaml"
ELSEWHERE = "the synthetic figures of report.json were not counted again: the rows do not lie in this folder"
TOO_MANY = "the synthetic figures of report.json were not counted again: there are more than {most:,} rows"
OTHER_KIND = "the synthetic figures of report.json were not counted again, as those of one table are"


def check_rows(
    folder: Path, manifest: Manifest, contract: Contract, check: Verification, bar: Bar | None = None
) -> None:
    """Count the figures of the synthetic rows again, of a hand-off without a fault whose facts are those of today."""
    from dpmodels.pages.page import LAYOUT

    parts = sorted(name for name in manifest.artifacts if PART.fullmatch(name))
    if check.faults or manifest.layout != LAYOUT or not parts:
        return
    if not contract.is_table and contract.kind != "tree":
        check.notes.append(OTHER_KIND)
    elif not all((folder / name).is_file() for name in parts):
        check.notes.append(ELSEWHERE)
    else:
        _count(folder, parts, contract, check, bar)


def _count(folder: Path, parts: list[str], contract: Contract, check: Verification, bar: Bar | None) -> None:
    """Name the first figure that is not that of the rows."""
    with open_plain(folder, folder / "report.json") as file:
        report = read_json(file.read(LARGEST_REPORT))
    is_joined = contract.kind == "tree" or bool(contract.users)
    schema = contract.flat_of(contract.root) if contract.kind == "tree" else table_of(contract)
    rows = (OfUsers if is_joined and contract.is_table else HandedOver)(folder, parts, schema)
    try:
        number, most = rows.count(), MOST_JOINED if is_joined else MOST
        if number > most:
            check.notes.append(TOO_MANY.format(most=most))
            return
        with bar("counting") if bar and number > MANY else nullcontext(_silent) as tick:
            rows = rows.reporting(lambda done: tick(done, number))
            every = differing(report, rows) if contract.kind != "tree" else differing_in_tree(report, rows, contract)
            first = next(every, None)
    except (NacreError, OSError, pa.ArrowException, *OF_FACTS):
        check.faults.append(UNREADABLE)
        return
    if first is not None:
        stated, counted = _written(first.stated), _written(first.counted)
        check.faults.append(
            f"report.json says that in the synthetic rows {printable(first.what, 300)} is {stated}, and the rows in "
            f"synthetic/ make it {counted}"
        )


def _written(figure: Any) -> str:
    return "unknown" if figure is None else f"{figure:.6g}" if isinstance(figure, int | float) else printable(figure)


def _silent(_done: float, _total: float) -> None:
    """Tell nobody how far it is."""
