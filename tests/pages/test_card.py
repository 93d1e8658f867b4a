"""A data sheet has room for one page, and what it says of a column is whole."""

import json

from dpmodels.pages.card import MOST_WARNED, render_sheet
from tests.hand_off.make_golden import GOLDEN

FAR = (
    "The error stated of its mean, 2.1, holds where its values thin out towards the bounds; where a few lie far away "
    "from the others, which noise would hide, its mean lies anywhere from 248 to 320, and not at about 250."
)
ADVICE = "For the next release, declare narrower public bounds or spend more."


def sheet(*warnings: str, **numbers: object) -> str:
    """Return the data sheet of a table with these warnings."""
    card = json.loads((GOLDEN / "LAYOUT-9" / "laid-out" / "model-card.json").read_text())
    card["quality"] |= {"warnings": list(warnings), "numbers": numbers}
    return " ".join(render_sheet(card).split())


def test_a_warning_is_whole_but_for_the_advice_to_whoever_makes_the_next_release() -> None:
    page = sheet(f"price: {FAR} {ADVICE}", *(f"c{n}: {FAR} {ADVICE}" for n in range(4)))
    assert f"<strong>price: {FAR}</strong>" in page and "next release" not in page
    assert "3 more columns have a warning, which report.html shows" in page
    assert len(FAR) < MOST_WARNED and "…" in sheet("x: " + 999 * "a")


def test_bounds_are_named_of_columns_that_are_warned_of_too() -> None:
    fact = {"estimate": 2.0, "expected_error": None, "expected_error_if_thinning_out": 1.0}
    page = sheet(x={"mean": fact, "p99": fact, "clipped": [0.0, 1000.0], "unseen": {"open": True, "quantile": True}})
    assert "Values beyond 0 to 1,000 of x, if there were any, were set to the bound" in page


def test_the_warning_of_a_mean_stands_beside_that_of_a_quantile() -> None:
    fact = {"estimate": 2.0, "expected_error": 0.1}
    numbers = {"x": {"mean": fact, "p99": fact, "unseen": {"far": True, "quantile": True}}}
    card = json.loads((GOLDEN / "LAYOUT-9" / "laid-out" / "model-card.json").read_text())
    card["quality"] |= {"warnings": [f"x: {FAR}"], "numbers": numbers, "avoid": {"x": ["p99"]}}
    page = " ".join(render_sheet(card).split())
    assert "Use no 99 % quantile of x" in page and FAR in page
    card["quality"]["avoid"] = {"x": ["mean", "total", "p99"]}
    assert FAR not in " ".join(render_sheet(card).split())
