"""What a report and a card say in figures and pictures is of columns that somebody receives."""

import html
import json
import re
from typing import Any

from dpmodels.contract.remarks import FALLS_APART, NOT_HANDED_OVER
from dpmodels.hand_off.card import _quality
from dpmodels.pages.card import render_sheet, render_statement
from dpmodels.pages.figures.named import farther
from dpmodels.pages.figures.ruled import EVERY_ROW, ruled_pairs
from dpmodels.pages.glance import glance, warnings_of
from dpmodels.pages.multiples import pair_tables
from dpmodels.report.within import drawn
from tests.hand_off.make_golden import GOLDEN

REPORT = GOLDEN / "LAYOUT-26" / "targeted" / "report.json"


def without(name: str) -> dict[str, Any]:
    """Return a report whose column of this name nobody receives."""
    report: dict[str, Any] = json.loads(REPORT.read_text())
    report["cautions"] = [NOT_HANDED_OVER.format(name=name)]
    return report


def test_no_figure_and_no_picture_of_a_pair_is_of_a_column_that_nobody_receives() -> None:
    report, whole = without("age"), json.loads(REPORT.read_text())
    farthest, *others = sorted(((one["distance_to_release"], one["name"]) for one in whole["columns"]), reverse=True)
    assert farthest[1] == "age" and _quality(whole)["farthest_column"] == farthest[0]
    assert _quality(report)["farthest_column"] == others[0][0] < farthest[0]
    assert "age" in farther(whole) and "age" not in farther(report)
    for facts, is_there in ((whole, True), (report, False)):
        assert ("age" in glance(facts)["worst columns"]) is is_there
        assert any("age" in drawn.title.split(" with ") for drawn in pair_tables(facts).values()) is is_there
    assert pair_tables(report)


def test_a_pair_with_such_a_column_takes_no_room_of_others_unless_a_workload_names_it() -> None:
    distances = [[0, other, 0, 0, 0, 0.1, 0.5, 0.5, 0.0, 0.1] for other in range(1, 4)]
    distances += [[1, 2, 0, 0, 0, 0.05, 0.4, 0.4, 0.0, 0.1]]
    assert drawn(distances, dropped=[0]) == [(1, 2)]
    assert drawn(distances, {(0, 3)}, dropped=[0]) == [(0, 3), (1, 2)]


def text_of(page: str) -> str:
    """Return what a person reads on a page."""
    return " ".join(html.unescape(re.sub("<[^>]+>", "", page.partition("</style>")[2])).split())


def test_pages_agree_on_what_is_left_out_and_say_who_says_that_a_unit_is_a_person() -> None:
    card = json.loads((REPORT.parent / "model-card.json").read_text())
    card["content"]["left_out"] = []
    assert "No column of schema.yaml was left out; what else" in text_of(render_statement(card))
    card["quality"]["cautions"] = [NOT_HANDED_OVER.format(name="dose")]
    for unit, unique, said in (
        ("record", [], "did not check it: the schema names no identifier as unique."),
        ("record", ["stay"], "That no two raw rows have the same stay was checked, since a run refuses a table"),
        ("user (patient, at most 3 rows)", [], "That each user is one person is declared"),
    ):
        card["hand_off"]["unit"], card["content"]["unique"] = unit, unique
        for page in (render_statement(card), render_sheet(card)):
            terms = "not proved to be one person: that no two raw rows have the same stay was checked, whose"
            assert (terms in text_of(page)) is bool(unique and page.count("Ten questions"))
            assert page.count("have the same stay") <= 1 or page.count("Ten questions")
            assert text_of(page).count(said) == 1 and "Measured, and not handed over: dose." in text_of(page)
    assert "No column of schema.yaml was left out as an identifier;" in text_of(render_statement(card))


def test_a_card_names_all_columns_of_what_rows_may_and_may_not_be_used_for() -> None:
    report = json.loads(REPORT.read_text())
    names = [f"column {place}" for place in range(30)]
    report["columns"] += [{**report["columns"][0], "name": name} for name in names]
    uses = _quality(report)["uses"]
    named = " ".join([*uses["good"], *uses["care"], *uses["never"]])
    assert all(name in named for name in names) and not re.search(r"\d more(?! pair)", named)
    card = json.loads((REPORT.parent / "model-card.json").read_text())
    long = [f"{name} of {60 * 'x'}" for name in names]
    earlier = {**card, "quality": {**card["quality"], "avoid": {name: ["mean"] for name in long}}}
    del earlier["quality"]["marked"]
    sheet = render_sheet(earlier)
    assert "which model-card.html names" not in text_of(sheet) and f"{names[-1]} of xxx" in sheet
    card["quality"]["marked"] = {"means, totals": {"bad": dict.fromkeys(long, "not known")}}
    sheet = text_of(render_sheet(card))
    assert all(f"{name} of xxx" in sheet for name in names) and not re.search(r"not to be used: [^.;]* \d+ more", sheet)


def test_a_derived_column_is_warned_of_whose_mean_noise_leaves_open_or_may_put_far_off() -> None:
    report = json.loads(REPORT.read_text())
    mean = {"estimate": 250.0, "expected_error": 1.1, "synthetic": 251.0, "synthetic_stddev": 90.0}
    opened = mean | {"expected_error": None, "expected_error_if_thinning_out": 1.1}
    whole = {"type": "derived", "follows": ["age", "dose"], "labels": ["0 to 900"], "values": 1, "ordered": True}
    report["derived"] = [
        whole | {"name": "sure", "mean": mean, "unseen": {"means": [249.0, 255.0]}},
        whole | {"name": "far", "mean": mean, "unseen": {"means": [248.0, 320.0], "far": True}},
        whole | {"name": "open", "mean": opened, "unseen": {"means": [248.0, 620.0], "open": True}},
    ]
    warned = [one for one in warnings_of(report) if one.split(":")[0] in ("column sure", "column far", "column open")]
    assert [one.partition(", ")[0] for one in warned] == [
        "column far: Its mean is about 250",
        "column open: Use no mean and no total of it",
    ]
    assert (
        "not by group either, unless you know that its values thin out towards the ends of what they can be"
        in warned[-1]
    )
    assert all("For the next release, declare narrower public bounds for age and dose" in one for one in warned)
    category = next(one["name"] for one in report["columns"] if not one["ordered"])
    for follows, says in (
        (["age", category], "bounds for age, which"),
        ([category], "For the next release, spend more."),
    ):
        of_category = {**report, "derived": [report["derived"][1] | {"follows": follows}]}
        (told,) = [one for one in warnings_of(of_category) if one.startswith("column far")]
        assert says in told
    assert _quality(report)["warnings"][-2:] == [one.removeprefix("column ") for one in warned]


def test_what_follows_from_two_rules_or_from_a_formula_is_no_finding() -> None:
    gate = [{"rule": f"`{text}` {EVERY_ROW}"} for text in (
        "ordered <= shipped", "shipped < delivered", "when kind = a then city = x", "when city = x then fast = true",
        "when lot = z then not fast", "when city = y then lot = q", "paid >= billed",
        "when kind = b and city = y then rate = 3",
    )]  # fmt: skip
    names = ["ordered", "shipped", "delivered", "kind", "city", "fast", "lot", "paid", "billed", "rate", "hours"]
    computed = FALLS_APART.format(name="hours", others="paid and rate")
    report = {"columns": [{"name": name} for name in names], "gate": gate, "cautions": [computed]}
    pairs = {frozenset(names[place] for place in pair) for pair in ruled_pairs(report)}
    of_rules = ["ordered shipped", "shipped delivered", "kind city", "city fast", "lot fast", "city lot", "paid billed"]
    chained = ["ordered delivered", "kind fast", "kind lot"]  # of lot = z no row has kind = a
    of_formula = ["hours paid", "hours rate"]
    assert pairs == {frozenset(one.split()) for one in (*of_rules, *chained, *of_formula)}
