"""The first minute of an officer: purpose and limits, laws, children, several records, which means hold, and rules."""

import json
import math
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from dpmodels.authoring.lint import parse
from dpmodels.contract.remarks import NOT_HANDED_OVER
from dpmodels.hand_off.card import _quality
from dpmodels.hand_off.card_content import content_of
from dpmodels.hand_off.manifest import CARD
from dpmodels.pages.asked.columns import columns_by_need
from dpmodels.pages.asked.limits import hard_limits
from dpmodels.pages.asked.not_for import not_for
from dpmodels.pages.asked.several import delta_of_records
from dpmodels.pages.card import render_card, render_sheet, render_statement
from dpmodels.pages.figures.group_verdicts import group_means
from dpmodels.pages.figures.moments import uncounted_moments
from dpmodels.pages.report import render as render_report
from tests.hand_off.make_golden import GOLDEN

EXAMPLE = Path(__file__).parents[2] / "docs" / "example"


def text_of(page: str) -> str:
    """Return what a page says, without tags."""
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", "", page.split("</style>")[1])))


def facts() -> dict[str, Any]:
    """Return the facts of a golden card."""
    card: dict[str, Any] = json.loads((GOLDEN / "LAYOUT-26" / "laid-out" / CARD).read_text())
    return card


def answer(page: str, number: int) -> str:
    """Return the answer to one of the ten questions."""
    row = re.search(rf'<tr><th scope="row">{number}\. [^<]+</th><td>(.*?)<span class="more">', page, re.DOTALL)
    assert row
    return unescape(row[1]).strip()


@pytest.mark.parametrize(
    ("ranges", "lost"),
    [
        (["2025-01-01 to 2025-01-23", "2025-01-24"], "weekdays"),
        (["2025-01-01", "2025-01-02", "null"], ""),
        (["2025-01-01 00:00 to 2025-01-23 19:29"], "weekdays and hours"),
        (["2025-01-01 00:00 to 2025-01-01 11:59", "2025-01-01 12:00 to 2025-01-01 23:59"], "hours"),
        (["2025-01-01 08:00 to 2025-01-01 08:59", "2025-01-01 09:00"], ""),
    ],
)
def test_weekdays_and_hours_of_a_moment_are_lost_unless_days_and_hours_were_counted(
    ranges: list[str], lost: str
) -> None:
    column = {"name": "arrival", "type": "datetime", "labels": ["2025-01-01 08:00"], "ranges": ranges}
    assert uncounted_moments({"columns": [column]}) == ({lost: ["arrival"]} if lost else {})
    unreceived = [NOT_HANDED_OVER.format(name="arrival")]
    assert uncounted_moments({"columns": [column, {"name": "n", "type": "integer"}], "cautions": unreceived}) == {}


def test_the_purpose_stands_above_the_limits_on_statement_and_sheet_and_an_officer_ticks_it() -> None:
    card = facts()
    card["quality"].pop("not_for", None)  # which names what is lost of moments besides
    card["quality"] |= {
        "pale": {"ward": ["eyes", "bones"]},
        "marked": {
            "by itself": {"good": {"age": "2 %"}, "bad": {"dose": "54 %"}},
            "means, totals": {"care": {"age": "9 % of spread, if its values thin out"}, "bad": {"dose": "not known"}},
            "rate of sick = true": {"bad": {"age": "5"}},
        },
        "moments": {"weekdays": ["visit"]},
    }
    marks = "– shares and quantiles of dose; – means and totals of dose; – rate of sick = true by age; – weekdays of "
    marks += "visit; – means and totals of age, unless values thin out (become rarer"
    for purpose, declared in (("Shifts by weekday", "“Shifts by weekday”"), ("", "none is stated, so there is")):
        card["given"]["purpose"] = purpose
        for page in (render_statement(card), render_sheet(card)):
            said = text_of(page)
            held = (
                said.partition("Declared purpose: ")[2]
                .partition("such as a tariff or a quota")[0]
                .partition("Name, day")[0]
            )
            assert held.startswith(declared) and "Not good for, whatever the purpose is" in held
            boxes = len(hard_limits(card)) + len(columns_by_need(card)) + 2  # and none, or one of the limits
            assert held.count("☐") == ("statement for" in said) * boxes
            assert "a decision about a single person" in held and "linking these rows with other files" in held
            assert "groups of few rows, such as ward (eyes, bones)" in held
            assert f"to be used: {marks if 'statement for' in said else 'named below.'}" in held
            assert said.count("Shifts by weekday") == bool(purpose)
            assert "such as a tariff or a quota, is the recipient's" in said
    del card["quality"]["marked"], card["quality"]["moments"]  # as of page layouts up to 24
    assert "what report.html marks" not in text_of(render_statement(card))


def test_a_sheet_says_in_one_place_which_means_hold_of_all_rows_and_by_group() -> None:
    card = facts()
    card["quality"] |= {
        "marked": {
            "means, totals": {"care": {"age": "9 % of spread, if its values thin out"}, "bad": {"dose": "not known"}},
            "99 % quantiles": {"bad": {"age": "30 %"}},
        },
        "group_means": {"hold": ["age by ward"], "if values thin out": ["dose by ward"]},
        "avoid": {"dose": ["mean"]},
        "far": {"p99": {"age": "30 %"}},
    }
    said = text_of(render_sheet(card))
    of_all = (
        "Means and totals of all rows: not to be used unless values thin out, which nothing here shows: "
        "age (then within 9 % of spread); not to be"
    )
    assert f"{of_all} used: dose.Means by group, as report.html states them" in said
    assert "hold: age by ward; hold only if values thin out (become rarer" in said and "no other is known." in said
    assert "so the first may hold where the second is to be used with care." in said
    assert "99 % quantiles of all rows: not to be used: age." in said
    assert "Use no mean" not in said and "Use no 99 %" not in said
    card["quality"].pop("marked")
    assert "Use no mean" in text_of(render_sheet(card)) and "Which means hold" not in text_of(render_sheet(card))


def test_the_box_asks_who_checked_that_rules_and_formulas_are_public() -> None:
    card = facts()
    card["quality"] |= {"rules": ["`a <= b`", "`c < d`"]}
    card["content"]["columns"].append({"name": "copay", "type": "derived"})
    box = text_of(render_statement(card)).partition("Ten questions")[0]
    assert "who checked that its 2 rules (constraints of schema.yaml) and its 1 formula are public: nacre" in box
    assert "among them 2 rules (constraints of schema.yaml)" in text_of(render_card(card))
    card["quality"] |= {"rules": []}
    card["content"]["columns"].pop()
    assert "who checked that" not in text_of(render_statement(card))


def test_bounds_of_a_formula_are_no_rule_wherever_rules_are_counted() -> None:
    texts = ["a <= b", "when sick then fee > 0", "2020-01-01 <= leaves <= 2025-12-31", "leaves <= 2025-12-31"]
    gate = [{"rule": f"`{text}` must hold in every row"} for text in texts]
    assert _quality({"gate": gate, "derived": []})["rules"][2:]
    assert _quality({"gate": gate, "derived": [{"name": "leaves"}]})["rules"] == [f"`{text}`" for text in texts[:2]]


def test_a_column_that_follows_from_others_is_not_said_to_be_hidden() -> None:
    card = facts()
    card["quality"]["cautions"] = [NOT_HANDED_OVER.format(name=name) for name in ("stay", "share")]
    card["content"]["reckoned"] = {"stay": ["arrival", "departure"]}
    for render in (render_statement, render_sheet, render_card):
        said = text_of(render(card))
        assert "Measured, and not handed over: share." in said
        assert "so whoever has the files can reckon them: stay (from arrival and departure)." in said
    follows = "These are no columns of the files, but follow from columns that are: stay (from arrival and departure)."
    assert follows in answer(render_statement(card), 8)
    report = json.loads((GOLDEN / "LAYOUT-26" / "laid-out" / "report.json").read_text())
    of_officer = text_of(render_report(report, card)).partition("For an officer")[2]
    assert "No column of the files, and it follows from columns that are: stay (from arrival" in of_officer


def test_a_column_that_is_left_out_follows_only_from_columns_that_are_all_handed_over() -> None:
    schema, faults = parse("""
name: stays
columns:
  name: {type: identifier}
  arrival: {type: datetime, min: 2025-01-01, max: 2025-12-31}
  stay: {type: integer, min: 0, max: 90, computed: "days_between(arrival, departure)", keep: drop}
  departure: {type: derived, formula: "add_days(arrival, stay)"}
  cents: {type: integer, min: 0, max: 99, computed: "paid - 100 * floor(paid / 100)", keep: drop}
  share: {type: number, min: 0, max: 1, computed: "cost / max(paid, 1)", keep: drop}
  cost: {type: derived, formula: "share * 100"}
  paid: {type: integer, min: 0, max: 9999}
""")
    assert not faults
    content = content_of(schema, {"synthetic_rows": 3, "asked": [["age", "act"]]})
    assert content["reckoned"] == {
        "stay": ["arrival", "departure"],
        "cents": ["paid"],
        "share": ["cost", "paid"],
    }
    kept = schema.model_copy(update={"columns": {name: schema.columns[name] for name in ("name", "arrival", "paid")}})
    assert "reckoned" not in content_of(kept, {"synthetic_rows": 3})


def test_what_a_release_of_records_means_for_two_and_three_of_them_is_a_bound() -> None:
    card = facts()
    epsilon, delta = float(card["hand_off"]["epsilon"]), card["hand_off"]["delta"]
    for number in (2, 3):
        whole = delta * (math.exp(number * epsilon) - 1) / (math.exp(epsilon) - 1)
        assert delta_of_records(epsilon, delta, number) == pytest.approx(whole)
        said = re.search(rf"{number} records ε = ([\d.]+) and δ = ([\d.e-]+)", text_of(render_statement(card)))
        assert said and float(said[1]) >= number * epsilon and whole <= float(said[2]) < 1.1 * whole
    assert delta_of_records(1000.0, 1e-5, 3) == 1.0 and delta_of_records(1.0, 0.0, 3) == 0.0
    card["hand_off"]["unit"] = "user (patient, at most 3 rows)"
    assert "2 records ε" not in text_of(render_statement(card))


def test_the_laws_are_named_before_what_is_to_be_obtained_and_the_sheet_warns_of_the_fit() -> None:
    card = facts()
    first = text_of(render_statement(card)).partition("To obtain before the files leave")[0]
    assert all(law in first for law in ("recital 26", "Art. 35 (DPIA)", "45 CFR 164.514(b)(1)", "it cannot show"))
    card["quality"] |= {"fit": [{"look": "zoom", "left": 2.0, "explained": 1.0}], "headline": "All within 5 %."}
    warned = "The synthetic rows are farther from the released rough counts of single columns than noise explains."
    assert warned in text_of(render_sheet(card)) and warned in text_of(render_card(card))


def test_children_are_asked_for_in_answer_5_and_what_an_answer_looks_like() -> None:
    card = {**facts(), "given": {}}
    page = render_statement(card)
    assert "children or other vulnerable people are among them. Nacre cannot know it" in answer(page, 5)
    assert '--minors "None: all were 18 or older"' in text_of(page).partition("Ten questions")[0]
    page = render_statement({**card, "given": {"minors": "None: all were 18 or older"}})
    assert "of children among them: “None: all were 18 or older”." in answer(page, 5)


def test_the_statement_names_all_that_a_report_says_rows_are_not_for() -> None:
    report, card = json.loads((EXAMPLE / "report.json").read_text()), facts()
    card["quality"] = _quality(report) | {"weakest": {}}
    clauses = not_for(report)
    assert clauses[-1] == "what only three or more columns show together" and card["quality"]["not_for"] == clauses
    assert len(clauses) > 2 and not any(": " in one for one in clauses)
    never = " ".join(card["quality"]["uses"]["never"])
    assert all(one.partition(" of ")[0].partition(",")[0] in never for one in clauses)
    page = render_statement(card)
    said = text_of(page)
    unstated = "means by group that report.html does not state, or states pale"
    assert f"what report.html lists as “Not for” besides: – {'; – '.join([*clauses, unstated])}." in said
    numbered = page.partition("<ol>")[2].partition("</ol>")[0].count("<li>")
    assert f'--reason "YOUR WORDS: how the purpose was compared with limits 1 to {numbered}"' in said
    assert "“Not for” besides: named below." in text_of(render_sheet(card))


def test_means_by_group_hold_where_nothing_speaks_against_any_group() -> None:
    def groups(*some: tuple[float, str]) -> list[dict[str, Any]]:
        return [{"share": share, "reason": why, "released": 1.0} for share, why in some]

    def terms(*some: tuple[float, str]) -> list[str]:
        return [*group_means({"groups": [{"column": "age", "by": "sick", "groups": groups(*some)}]})]

    assert terms((0.03, ""), (0.97, "")) == ["hold"]
    assert terms((0.03, "its error exceeds what groups surely differ by"), (0.97, "")) == ["in some groups"]
    assert terms((0.03, ""), (0.97, "its error exceeds the mean itself")) == []
    assert terms((0.3, ""), (0.3, ""), (0.4, "its error exceeds the mean itself")) == ["in some groups"]
    assert terms((0.03, "of few rows"), (0.97, "its error exceeds the mean itself")) == []


def test_ages_ties_and_what_is_measured_most_closely_are_asked_about() -> None:
    schema, faults = parse("""
name: visits
target: sick
columns:
  age: {type: integer, min: 0, max: 110}
  wage: {type: integer, min: 0, max: 9000}
  âge_du_conjoint: {type: integer, min: 18, max: 110}
  act: {type: categorical, values: [eyes, bones]}
  visits: {type: integer, min: 1, max: 9}
  sick: {type: categorical, values: [ill, well]}
constraints:
- when act = eyes then visits = 1
workload:
- columns: [age, act]
""")
    assert not faults
    content = content_of(schema, {"synthetic_rows": 3, "asked": [["age", "act"]]})
    assert content["ages"] == {"age": 0} and content["workload"] == [["age", "act"]]
    assert content["ties"] == {"act": ["visits"], "visits": ["act"]}
    card = facts()
    card["content"], card["given"] = content, {"special_categories": "act: health"}
    page = render_statement(card)
    assert "By the schema age may hold ages from 0: ask whether minors are among them." in answer(page, 5)
    assert "Tied by a rule or formula of the schema to act: visits: ask whether these are" in answer(page, 4)
    assert "Tied by a rule or formula" in text_of(render_sheet(card))
    closely = "Measured most closely: sick (the target); age with act (the workload): are these what the purpose asks?"
    needed = (
        "Columns handed over: tick what the purpose needs (GDPR, Art. 5(1)(c)). ☐ special category, declared or tied: "
        "act and visits;"
    )
    others = (
        "☐ quasi-identifiers, by type or name (dates, ages, places, sex): age and âge_du_conjoint; ☐ the rest: wage"
    )
    assert f"{closely} {needed} {others} and sick." in text_of(page)
    columns = text_of(render_card(card)).partition("What is in it")[2].partition("The target is")[0]
    assert "actcategoricalspecial category, as declared" in columns and "sickcategoricaltarget" in columns
    assert "visitsintegertied by a rule or formula to act, declared special" in columns
    card["given"] = {"special_categories": "act and visits: health", "minors": "None: all were 18 or older"}
    page = render_statement(card)
    assert "Tied by" not in page and "may hold ages" not in answer(page, 5)  # it was answered
