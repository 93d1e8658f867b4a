"""The page of a gate: every expectation, what it asks for, and how many rows broke it. Counts, never values."""

from dpmodels.gate.expectations import Verdicts
from dpmodels.gate.suite import ROW_COUNT
from dpmodels.pages.leaving import AT_MAKING
from dpmodels.pages.page import coded, render_page


def render_checks(gate: Verdicts) -> str:
    """Lay the outcome of a gate out as one self-contained page.

    Privacy: exact counts. The page of a raw table is as sensitive as the table and says so on a red banner.
    """
    counted = not gate.raw and any(one.rule.expectation == ROW_COUNT for one in gate.outcomes)
    return render_page("checks.html", gate=gate, counted=counted, at_making="" if gate.raw else coded(AT_MAKING))
