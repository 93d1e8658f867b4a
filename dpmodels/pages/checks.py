"""The page of a gate: every expectation, what it asks for, and how many rows broke it. Counts, never values."""

from dpmodels.gate.expectations import Verdicts
from dpmodels.gate.suite import ROW_COUNT
from dpmodels.pages.asked.declared_rules import declared_rules, rules_in_words
from dpmodels.pages.leaving import AT_MAKING
from dpmodels.pages.page import coded, render_page


def render_checks(gate: Verdicts) -> str:
    """Lay the outcome of a gate out as one self-contained page.

    Privacy: exact counts. The page of a raw table is as sensitive as the table and says so on a red banner.
    """
    counted = not gate.raw and any(one.rule.expectation == ROW_COUNT for one in gate.outcomes)
    rules = declared_rules((one.rule.text for one in gate.outcomes), getattr(gate.contract, "derived", ()))
    return render_page(
        "checks.html",
        gate=gate,
        counted=counted,
        rules=coded(rules_in_words(len(rules))),
        at_making="" if gate.raw else coded(AT_MAKING),
    )
