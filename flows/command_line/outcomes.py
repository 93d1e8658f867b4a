"""What a run came to, for a program: whether it finished, where the hand-off lies, and what it cost."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dpmodels.errors import AwaitsOfficer, NacreError
from dpmodels.pages.advice import drowned_in_words
from dpmodels.pages.notes import notes_of
from flows.command_line.console import print_json
from flows.description import warnings_in
from tasks.run.runs import inside, is_paid, resume_command, stays_inside
from tasks.run.store import Run

FINISHED, WAITING, FAILED = "finished", "waiting", "failed"
"""States of a run when the command ends: a run that waits for an officer's signature has neither failed nor ended."""


def outcome_of(run: Run, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the facts of a run that finished; ``files`` are those of its hand-off, if it has one."""
    facts: dict[str, Any] = {"run": run.name, "state": FINISHED, "hand_off": None}
    if run.settings.federation:
        return facts | {"release": str(run.place("sanitize"))}
    if stays_inside(run):
        folder = inside(run)
        return facts | {"stays_inside": True, "models": str(folder), "page": str(folder / "rounds.html"), **_payer(run)}
    return facts | _handed_over(run, files)


def _handed_over(run: Run, files: Mapping[str, str]) -> dict[str, Any]:
    """Return files by the names of identifiers, and what the report says in figures."""
    report = json.loads((run.place("validate") / "report.json").read_text(encoding="utf-8"))
    privacy, internal = report["privacy"], run.sensitive / "internal-report.html"
    return {
        **{name.replace(" ", "_").replace("-", "_"): place for name, place in files.items()},
        **({"internal_report": str(internal)} if internal.exists() else {}),
        "hand_off": run.settings.bucket or str(run.settings.out),
        "folder": str(run.settings.out),
        **_payer(run),
        "epsilon": float(privacy.get("total_epsilon", privacy["spent_epsilon"])),
        "delta": float(privacy.get("total_delta", privacy["delta"])),
        "unit": privacy["unit"],
        "rows": report.get("synthetic_rows"),
        "checks": len(report.get("gate", ())),
        "headline": report.get("headline"),
        "warnings": [*filter(None, [drowned_in_words(report)]), *warnings_in(report)],
        "notes": notes_of(report),
    }


def _payer(run: Run) -> dict[str, str | None]:
    paid = not run.settings.is_paid_elsewhere and bool(run.plan.lines)
    return {"ledger": str(run.ledger) if paid else None, "account": run.settings.account if paid else None}


@contextmanager
def failing(run: Run, as_json: bool) -> Iterator[None]:
    """Print, to a program that asked for JSON, how a run stands that the block could not take to its end."""
    try:
        yield
    except NacreError as error:
        if as_json and run.exists:
            state = WAITING if isinstance(error, AwaitsOfficer) else FAILED
            facts = {"run": run.name, "state": state, "hand_off": None, "charged": is_paid(run)}
            print_json({**facts, "error": str(error), "next": resume_command(run)})
        raise
