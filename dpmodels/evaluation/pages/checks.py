"""The page of a gate: every expectation, what it asks for, and how many rows broke it. Counts, never values."""

from dpmodels.evaluation.pages.page import render_page, thousands
from dpmodels.schema.expectations import Gate, Outcome


def render_checks(gate: Gate) -> str:
    """Lay the outcome of a gate out as one self-contained page.

    Privacy: exact counts. The page of a raw table is as sensitive as the table and says so on a red banner.
    """
    rows = [
        (_place(outcome), outcome.rule.text, outcome.rule.expectation, *_verdict(outcome)) for outcome in gate.outcomes
    ]
    broken = len(gate.broken)
    return render_page("checks.html", name=gate.schema.name, raw=gate.raw, rows=rows, broken=broken)


def _place(outcome: Outcome) -> str:
    return outcome.rule.column or " and ".join(outcome.rule.columns) or "the table"


def _verdict(outcome: Outcome) -> tuple[str, str, bool]:
    """Return rows checked, rows that failed, and whether the rule holds."""
    counted = bool(outcome.rule.columns)
    return thousands(outcome.checked), thousands(outcome.failed) if counted else "", outcome.passed
