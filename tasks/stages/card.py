"""The model card, the statement for an officer and the data sheet: the same public facts, laid out three times."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmodels.hand_off.card import describe
from dpmodels.hand_off.manifest import CARD, Line, Manifest
from dpmodels.hand_off.pages import render_pages
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Balance, Standing
from dpmodels.pages.glance import weakest
from dpmodels.releases.contract import Contract
from tasks.run.home import ledger_of
from tasks.run.store import Run


def write_card(run: Run, manifest: Manifest, folder: Path) -> None:
    """Write the facts of a run's hand-off that has its report, and the pages."""
    lay_out(folder, manifest, run.plan.whole, *_accounts(run, manifest))


def lay_out(
    folder: Path,
    manifest: Manifest,
    contract: Contract,
    accounts: Sequence[tuple[Standing, Any]] = (),
    above: Sequence[Balance] = (),
) -> None:
    """Write the facts of a hand-off that has its report, and the pages; no accounts where no ledger is at hand.

    The report's page is made again as well: an earlier version may have begun the run, in another layout.
    """
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    facts = describe(manifest, contract, report, accounts, above, weakest(report))
    facts = json.loads(json.dumps(facts))  # the pages show what the file says
    (folder / CARD).write_text(json.dumps(facts, indent=1), encoding="utf-8")
    for name, page in render_pages(facts, report).items():
        (folder / name).write_text(page, encoding="utf-8")


def _accounts(run: Run, manifest: Manifest) -> tuple[list[tuple[Standing, Any]], list[Balance]]:
    """Return where the accounts that paid stood, and the accounts above; nothing where their ledger is not at hand."""
    if manifest.ledger.account is None:
        return [], []
    ledger = ledger_of(run)
    if manifest.clients:
        stood = [(ledger.standing(line.charge), _signed(ledger, line)) for line in manifest.clients]
    else:
        stood = [(ledger.standing(*(line.charge for line in manifest.lines_of_run)), None)]
    above, name = list[Balance](), stood[0][0].account
    while name := ledger.account(name).parent:
        above.append(ledger.balance(name))
    return stood, above


def _signed(ledger: Ledger, line: Line) -> dict[str, str] | None:
    """Return who signed for a client's charge, which the manifest of a federation does not name."""
    signed = ledger.approval(line.charge)
    return {"officer": signed["officer"], "public_key": signed["public_key"]} if signed else None
