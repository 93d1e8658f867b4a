"""The model card and the page for a data-protection officer, which every hand-off has: public facts, laid out twice."""

import json
from pathlib import Path
from typing import Any

from dpmodels.evaluation.pages.card import render_card, render_statement
from dpmodels.hand_off.card import describe
from dpmodels.hand_off.manifest import CARD, PAGES, Line, Manifest
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Balance, Standing
from tasks.home import ledger_of
from tasks.store import Run, write_text


def write_card(run: Run, manifest: Manifest, folder: Path) -> None:
    """Write the facts of a hand-off that has its report, and the two pages."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    given = {name: said for name in ("purpose", "license", "retention") if (said := getattr(run.settings, name))}
    facts = describe(manifest, run.plan.whole, report, *_accounts(run, manifest), given)
    facts = json.loads(json.dumps(facts))  # the pages show what the file says
    card, statement = PAGES
    write_text(folder / CARD, json.dumps(facts, indent=1))
    write_text(folder / card, render_card(facts))
    write_text(folder / statement, render_statement(facts))


def _accounts(run: Run, manifest: Manifest) -> tuple[list[tuple[Standing, Any]], list[Balance]]:
    """Return where the accounts that paid stood, and the accounts above; nothing where their ledger is not at hand."""
    if manifest.ledger.account is None:
        return [], []
    ledger = ledger_of(run)
    if manifest.clients:
        stood = [(ledger.standing(line.ledger.charge), _signed(ledger, line)) for line in manifest.clients]
    else:
        stood = [(ledger.standing(*(line.ledger.charge for line in manifest.lines)), None)]
    above, name = list[Balance](), stood[0][0].account
    while name := ledger.account(name).parent:
        above.append(ledger.balance(name))
    return stood, above


def _signed(ledger: Ledger, line: Line) -> dict[str, str] | None:
    """Return who signed for a client's charge, which the manifest of a federation does not name."""
    signed = ledger.approval(line.ledger.charge)
    return {"officer": signed["officer"], "public_key": signed["public_key"]} if signed else None
