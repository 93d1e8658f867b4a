"""What a declared answer asks of a person in turn, and what pages say on when something goes wrong."""

import json
import re
from html import unescape
from typing import Any

import pytest

from dpmodels.authoring.lint import parse
from dpmodels.contract.special import MOST, hints
from dpmodels.pages.asked.prompts import prompts
from dpmodels.pages.card import render_sheet, render_statement
from dpmodels.pages.report import render as render_report
from tests.hand_off.make_golden import GOLDEN, SHAPES

NEWEST = GOLDEN / max(SHAPES, key=lambda name: int(name.rpartition("-")[2])) / "laid-out"


def facts() -> dict[str, Any]:
    return json.loads((NEWEST / "model-card.json").read_text())


def text_of(page: str) -> str:
    """Return the words of a page."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.partition("</head>")[2])).split())


@pytest.mark.parametrize(
    ("basis", "asked"),
    [
        ("GDPR, Art. 6(1)(f): research on lending", "balancing"),
        ("Art. 6 (1) lit. f DSGVO", "balancing"),
        ("berechtigtes Interesse", "balancing"),
        ("Art. 6(1)(a), 9(2)(a)", "withdrawn"),
        ("Einwilligung, Art. 6(1)", "withdrawn"),
        ("Art. 6(1)(e), 89(1)", ""),
        ("", ""),
    ],
)
def test_a_legal_basis_asks_for_what_it_needs(basis: str, asked: str) -> None:
    card = facts()
    card["given"] = {"legal_basis": basis}
    said = " ".join(prompts(card))
    assert asked in said if asked else not said
    assert not asked or asked in text_of(render_statement(card)).partition("To obtain")[2].partition("Ten questions")[0]


def test_an_adviser_and_children_are_asked_about_in_the_box() -> None:
    card = facts()
    card["given"] = {"minors": "None: all were 18 or older"}
    card["hand_off"]["approved"] = None
    assert not prompts(card)
    card["given"] = {"minors": "Children insured with a parent are among them"}
    card["hand_off"]["approved"] = {"officer": "C. Martin, DPO", "key": "a" * 64}
    asked = [
        "which safeguards hold for the children or others",
        "who decides that the files leave, since the officer's",
    ]
    assert all(one in " ".join(prompts(card)) for one in asked)
    card["given"] |= {"recipient_retention": "Until 2028-12-31", "release_retention": "2027-12-31"}
    assert "may keep the rows until 2028-12-31, and the release they are drawn from" in prompts(card)[-1]
    card["given"]["recipient_retention"] = "2027-12-31"
    assert "may keep the rows" not in prompts(card)[-1]


def test_words_of_a_schema_that_speak_against_a_declared_none_are_asked_about() -> None:
    schema, faults = parse("""
name: loans
columns:
  age: {type: integer, min: 18, max: 85}
  purpose: {type: categorical, values: [car, medical, holiday]}
  religion: {type: categorical, values: [a, b]}
  Gewerkschaft: {type: boolean}
  diagnosis: {type: categorical, values: [x, y]}
""")
    assert not faults
    named = hints(schema.columns)
    assert named == ["“medical” in column purpose", "column religion", "column Gewerkschaft"] and len(named) == MOST
    card = facts()
    card["content"]["may_be_special"] = named
    for words, asks in (("none", True), ("None: no such column", True), ("purpose: health", False), ("", False)):
        card["given"] = {"special_categories": words}
        assert any("“medical” in column purpose" in one for one in prompts(card)) is asks, words


def test_pages_say_whom_to_tell_when_something_goes_wrong_what_the_files_are_and_what_an_officer_looks_for() -> None:
    card: dict[str, Any] = facts()
    card["given"] = {"contact": "privacy@clinic.example", "license": "for this study", "recipient_retention": "2028"}
    sheet = text_of(render_sheet(card))
    wrong = sheet.partition("If something goes wrong")[2].partition("The files")[0]
    assert "FAULTY" in wrong and "tell privacy@clinic.example at once" in wrong and "72 hours" in wrong
    assert "officer.sig" in sheet.partition("The files")[2].partition("If you pass it on")[0]
    report = json.loads((NEWEST / "report.json").read_text())
    officer = text_of(render_report(report, card)).partition("For an officer")[2].partition("The budget")[0]
    assert "Contact: “privacy@clinic.example”; Terms: “for this study”; May be kept: “2028”." in officer
    assert "whoever holds these files and knows all else" in officer and "%" in officer
    card["given"] = {}
    assert "tell whoever gave it to you at once" in text_of(render_sheet(card))
