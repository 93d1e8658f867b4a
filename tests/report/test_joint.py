"""Tables of three columns that a workload asks for: means and rates by two, as a card, and held to what can be."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec
from dpmodels.contract.remarks import NOT_HANDED_OVER
from dpmodels.contract.schema import Schema
from dpmodels.hand_off.columns.check_joint import are_joint, are_joint_figures
from dpmodels.methods.registry import create
from dpmodels.pages.figures.asked_for import figures_together
from dpmodels.pages.figures.joint import ACROSS, joint_cards
from dpmodels.pages.report import render
from tests.kit.reports import facts_of

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

SCHEMA, _ = parse("""
name: visits
target: admitted
workload:
- {columns: [ward, price]}
- {columns: [price, ward, floor], joint: true}
- {columns: [insured, ward, floor], joint: true, weight: 2}
- {columns: [ward, unit, shift], joint: true, weight: 2}
- {columns: [ward, floor, shift, insured], joint: true, weight: 2}
columns:
  ward: {type: categorical, values: [north, south, east]}
  floor: {type: categorical, values: [first, second]}
  shift: {type: categorical, values: [day, night, rest]}
  unit: {type: categorical, values: [a, b, c]}
  insured: {type: boolean}
  price: {type: number, min: 0, max: 200, round: 2}
  admitted: {type: boolean}
""")
assert isinstance(SCHEMA, Schema)
ROWS = 60_000
Json = dict[str, Any]


def _table() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    ward, floor = rng.integers(0, 3, ROWS), rng.integers(0, 2, ROWS)
    return {
        "ward": np.array(["north", "south", "east"])[ward],
        "floor": np.array(["first", "second"])[floor],
        "shift": np.array(["day", "night", "rest"])[rng.integers(0, 3, ROWS)],
        "unit": np.array(["a", "b", "c"])[rng.integers(0, 3, ROWS)],
        "insured": rng.random(ROWS) < 0.2 + 0.4 * ((ward == 1) & (floor == 1)),
        "price": (40 + 60 * ((ward + floor) % 2) + rng.gamma(2, 5, ROWS)).clip(0, 200).round(2),
        "admitted": rng.random(ROWS) < 0.3,
    }


@pytest.fixture(scope="module")
def facts() -> Json:
    records = Codec(SCHEMA).encode(pa.table(_table()))
    return facts_of(create("nacre", {}, {}), records, records, SCHEMA)


def test_means_and_rates_by_two_columns_together_are_those_of_the_rows(facts: Json) -> None:
    means, rates, *others = facts["joint"]
    table, off = _table(), list[float]()
    assert (means["column"], means["by"]) == ("price", ["ward", "floor"])
    assert (rates["column"], rates["by"], rates["class"]) == ("insured", ["ward", "floor"], "true")
    for one in (means, rates):
        for group in one["groups"]:
            ward, floor = group["labels"]
            real = table[one["column"]][np.isin(table["ward"], ward) & np.isin(table["floor"], floor)].mean()
            off.append(abs(group["released"] - real) / group["within"])
            assert group["synthetic"] == pytest.approx(real, abs=1e-3)
    assert len(off) > 4 and max(off) < 1.6
    assert [one.keys() for one in others] == [{"columns", "place"}] * 2  # no number, no classes of two; and of four
    assert [one["place"] for one in facts["joint"]] == [1, 3, 5, 8]
    assert facts["asked"][1] == ["price", "floor"] and facts["asked"][3] == ["insured", "ward"]


def test_a_joint_table_has_a_card_in_the_place_of_its_entry_or_the_command_that_answers(facts: Json) -> None:
    asked = figures_together(facts).asked
    assert asked is not None
    titles = [one.title for one in asked.cards]
    assert titles[1] == "price by ward and floor" and "insured = true, by ward and floor" in titles
    means = asked.cards[1]
    assert means.grade == "good" and len(means.rows) == len(facts["joint"][0]["groups"])
    assert means.svg.count("\N{PLUS-MINUS SIGN}") == len(means.rows)
    (three,) = [one for one in asked.cards if one.title == "ward, unit and shift"]
    (four,) = [one for one in asked.cards if one.title == "ward, floor, shift and insured"]
    assert "nacre marginals RUN ward unit shift</code>: every combination" in three.svg
    assert four.grade == "bad" and "three columns" in four.note and not four.rows
    page = render(facts)
    assert page.count("<figcaption>price by ward and floor") == 1
    earlier = {key: one for key, one in facts.items() if key != "joint"}
    assert joint_cards(earlier) == {} and "price by ward and floor" not in render(earlier)


def test_a_card_of_three_columns_says_what_was_joined_and_what_is_pale(facts: Json) -> None:
    means = copy.deepcopy(facts["joint"][0])
    labels = [[["north"], ["first"]], [["north"], ["second"]], [["south", "east"], ["first"]]]
    groups = [
        {"labels": one, "share": 0.4, "released": 100.0, "within": 9.0, "synthetic": 90.0, "reason": ""}
        for one in labels
    ]
    groups[2] |= {"reason": "it is far off"}
    changed = {**facts, "joint": [{**means, "groups": groups}]}
    ((figure,),) = joint_cards(changed).values()
    assert figure.foot == "ward: south, east counted as one" and figure.above == "Of south, east; first: it is far off."
    assert "1 of 3 pale: it is far off" in figure.note and figure.grade == "care"
    assert figure.svg.count('class="track"') == 1
    assert figure.note.startswith("2 of 3 of ward joined; ") and "2 joined:" in figure.svg
    groups[2] |= {"reason": ""}
    ((joined,),) = joint_cards(changed).values()
    assert joined.grade == "care"  # nobody knows the figures of south and of east
    rates = {**copy.deepcopy(facts["joint"][1]), "groups": [{**one, "released": 0.3, "within": 0.01} for one in groups]}
    ((joined,),) = joint_cards({**facts, "joint": [rates]}).values()
    assert joined.grade == "care" and joined.note.startswith("2 of 3 of ward joined; ")
    many = [{**groups[0], "labels": [[str(i)], [str(j)]]} for i in range(8) for j in range(ACROSS + 1)]
    ((command,),) = joint_cards({**facts, "joint": [{**means, "groups": many}]}).values()
    assert "nacre means RUN price --by ward --by floor</code>: the mean of price" in command.svg
    without = [{"columns": ["ward", "floor", "shift"], "place": 0}]
    dropped = {**facts, "joint": without, "cautions": [NOT_HANDED_OVER.format(name="shift")]}
    ((command,),) = joint_cards(dropped).values()
    assert command.note == "nobody is handed shift"


def test_the_pairs_of_a_joint_table_with_figures_are_no_cards_of_their_own(facts: Json) -> None:
    asked = figures_together(facts).asked
    assert asked is not None
    titles, further = ([one.title for one in some] for some in (asked.cards, asked.others))
    assert titles[:3] == ["price by ward", "price by ward and floor", "insured = true, by ward and floor"]
    assert {"price by floor", "insured = true, by ward"} <= {*further} and "unit with ward" not in further
    assert {"ward with unit", "shift with unit"} <= {*titles}  # of a table without figures of its own
    bare = {**facts, "joint": [{key: one[key] for key in ("columns", "place")} for one in facts["joint"]]}
    alone = figures_together(bare).asked
    assert alone is not None and "price by floor" in [one.title for one in alone.cards]


def test_a_grid_leaves_out_the_lines_that_a_rule_fixes_and_names_them_once(facts: Json) -> None:
    rates = copy.deepcopy(facts["joint"][1])
    for group in rates["groups"]:
        if group["labels"][0] != ["north"]:
            group |= {"released": 0.0, "within": 0.0, "synthetic": 0.0, "reason": ""}
    ((figure,),) = joint_cards({**facts, "joint": [rates]}).values()
    assert figure.foot == "south, east: 0 by a rule" and len(figure.rows) == len(rates["groups"])
    assert ">north<" in figure.svg and ">south<" not in figure.svg and "within 0 " not in figure.note
    assert "narrow" not in figure.svg and '"cell"' not in figure.svg
    for group in rates["groups"]:
        group |= {"released": 0.0, "within": 0.0, "synthetic": 0.0, "reason": ""}
    ((figure,),) = joint_cards({**facts, "joint": [rates]}).values()
    assert ">south<" in figure.svg


def test_joint_tables_of_a_release_are_found_sound(facts: Json) -> None:
    assert are_joint(facts, SCHEMA) and are_joint_figures(facts, SCHEMA)
    assert are_joint({}, SCHEMA) and are_joint_figures({}, SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        lambda joint: joint.pop(),
        lambda joint: joint[0].update(place=0),
        lambda joint: joint[0].update(columns=["price", "ward", "shift"]),
        lambda joint: joint[0].update(column="ward"),
        lambda joint: joint[0].update(by=["ward", "shift"]),
        lambda joint: joint[0].update(said="anything"),
        lambda joint: joint[0]["groups"][0].update(reason="anything"),
        lambda joint: joint[0]["groups"][0].update(labels=[["west"], ["first"]]),
        lambda joint: joint[0]["groups"].append(joint[0]["groups"][0]),
        lambda joint: joint[1].update({"class": "maybe"}),
    ],
)
def test_words_of_joint_tables_that_no_release_has_are_a_fault(facts: Json, change: Callable[[Any], object]) -> None:
    changed = copy.deepcopy(facts)
    change(changed["joint"])
    assert not are_joint(changed, SCHEMA)


@pytest.mark.parametrize(
    "change",
    [
        lambda joint: joint[0]["groups"][0].update(released=201.0),
        lambda joint: joint[0]["groups"][0].update(within=-1.0),
        lambda joint: joint[0]["groups"][0].update(share=0.9),
        lambda joint: joint[0].update(values_from_to=[10.0, 20.0]),
        lambda joint: joint[1]["groups"][0].update(released=1.2),
        lambda joint: joint[1]["groups"][0].update(synthetic=-0.1),
        lambda joint: [one.update(released=None, within=None) for one in joint[1]["groups"]],
    ],
)
def test_figures_of_joint_tables_that_no_release_has_are_a_fault(facts: Json, change: Callable[[Any], object]) -> None:
    changed = copy.deepcopy(facts)
    change(changed["joint"])
    assert not are_joint_figures(changed, SCHEMA)
