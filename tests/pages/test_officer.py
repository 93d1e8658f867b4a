"""What an officer finds on every page: figures of several records, limits by number, what is open, and what is next."""

import json
import math
import re
from html import unescape
from pathlib import Path
from typing import Any

from dpmodels import amounts
from dpmodels.hand_off.manifest import CARD
from dpmodels.hand_off.pages import render_pages
from dpmodels.pages.card_words import after_at_worst
from tests.hand_off.make_golden import GOLDEN

FOLDER = GOLDEN / "LAYOUT-25" / "laid-out"
PAGES = ("report.html", "statement.html", "data-sheet.html", "model-card.html")


def facts(folder: Path = FOLDER) -> dict[str, Any]:
    """Return the facts of a golden card."""
    return json.loads((folder / CARD).read_text())


def said(card: dict[str, Any]) -> dict[str, str]:
    """Return what each page of a hand-off says, without tags."""
    pages = render_pages(card, json.loads((FOLDER / "report.json").read_text()))
    return {name: text_of(pages[name]) for name in PAGES}


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", "", page.split("</style>")[1])))


def test_the_figure_of_one_record_stands_nowhere_without_those_of_several() -> None:
    card = facts()
    epsilon = float(amounts.spent(card["hand_off"]["epsilon"]))
    two, three, five = (after_at_worst(math.exp(2 * number * epsilon)) for number in (2, 3, 5))
    for name, page in said(card).items():
        if name == "statement.html":
            assert all(f"somebody with {number} records {one} at most" in page for number, one in ((2, two), (5, five)))
        else:
            assert f"{two} with 2, {three} with 3 and {five} with 5 records" in page, name
    assert said(card)["data-sheet.html"].count("Nothing proves that a record is a person") == 1
    assert re.search(
        r"of somebody with more it is at most [\d.]+ % with 2, .* % with 5 records", said(card)["report.html"]
    )
    card["hand_off"]["unit"] = "user (patient, at most 3 rows)"
    assert not any("with 5 records" in said(card)[name] for name in ("data-sheet.html", "model-card.html"))
    assert "Nothing proves that a" not in said(card)["data-sheet.html"]


def test_a_statement_says_which_figure_to_quote_to_whom_and_why() -> None:
    card = facts()
    page = said(card)["statement.html"]
    assert page.count("To people, boards and authorities quote what a guess on a value becomes by these files (") == 1
    assert "only if each person has one record, and else a row of several): it follows from ε and δ alone" in page
    assert "Bets by the noise that was drawn, below the table and on the other pages, are smaller" in page
    card["meaning"]["right_guesses"] = card["meaning"]["right_guesses_of_budget"]
    assert "are smaller, and for experts" not in said(card)["statement.html"]


def test_the_first_screen_of_a_report_says_that_a_record_is_no_person_and_leads_an_officer_on() -> None:
    card = facts()
    page = render_pages(card, json.loads((FOLDER / "report.json").read_text()))["report.html"]
    first = page.partition("<header>")[2].partition("</header>")[0]
    assert '<strong class="bad">Hidden is one record, not proved to be one person' in first
    assert '<a href="#officer">' in first and '<a href="statement.html">' in first
    card["hand_off"]["unit"] = "user (patient, at most 3 rows)"
    assert "Hidden is" not in said(card)["report.html"] and "For an officer: " in said(card)["report.html"]
