"""Means by groups in a report: of which pairs they are, how close they come, and what a page shows of them."""

import copy
import re
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.derive import derive
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.columns import Datetime, Derived, Integer
from dpmodels.contract.schema import Schema
from dpmodels.hand_off.columns.check_derived import _is_counted
from dpmodels.hand_off.columns.check_groups import are_called, are_means
from dpmodels.hand_off.columns.check_sums import _values, add_up
from dpmodels.methods.registry import create
from dpmodels.pages.figures.asked_for import figures_together
from dpmodels.pages.figures.group_means import TABLES, called, mean_figures, told_apart
from dpmodels.pages.figures.rate_pictures import asked_rate_figures
from dpmodels.pages.report import render
from dpmodels.pages.uses import uses
from dpmodels.report.bins import group_labels
from dpmodels.report.derived.means import of_copy
from dpmodels.report.groups.cells import Way, keys_of
from dpmodels.report.groups.means import DOUBTED, DROWNED, WIDE, Measured, Term, doubted
from dpmodels.report.groups.ranges import RANGES, SINGLE, best_ranges, cells_of_ranges, grouped_by, ranges_of
from dpmodels.report.groups.stated import _each_once, pairs_of
from flows.command_line.show_means import without_nulls
from tests.kit.reports import facts_of

SCHEMA, _ = parse("""
name: stays
workload:
- {columns: [city, nights, price], joint: true}
- {columns: [city, bill_counted]}
- {columns: [rate, room]}
- {columns: [came, code]}
- {columns: [code, room]}
- {columns: [card, price]}
- {columns: [card, city]}
columns:
  city: {type: categorical, values: [Rome, Milan, Lyon]}
  room: {type: categorical, values: [single, double]}
  nights: {type: integer, min: 1, max: 14, nullable: true}
  price: {type: number, min: 0, max: 500, round: 2}
  rate: {type: categorical, values: [0, 30, 65]}
  code: {type: categorical, values: [13, 75]}
  came: {type: integer, min: 0, max: 86399, dtype: "time32[s]", resolution: minute}
  card: {type: categorical, values: ['no', 'yes'], nullable: true}
  paid: {type: derived, formula: "price * (1 - rate / 100)", round: 2}
  value: {type: derived, formula: "price * nights", round: 2}
  bill: {type: derived, formula: "price * (1 - rate / 100) + 9", round: 2}
  bill_counted: {type: number, min: 0, max: 509, round: 2, computed: bill, keep: drop}
  country: {type: derived, of: city, values: {Rome: IT, Milan: IT, Lyon: FR}}
""")
assert isinstance(SCHEMA, Schema)
ROWS, MOST_OF_A_NUMBER = 6000, SINGLE + 1


def make_stays(seed: int) -> tuple[pd.DataFrame, Records]:
    rng = np.random.default_rng(seed)
    city = rng.choice(3, ROWS, p=[0.5, 0.2, 0.3])
    price = (np.array([60, 100, 150])[city] * rng.lognormal(0, 0.2, ROWS)).clip(0, 500).round(2)
    rate = rng.choice([0, 30, 65], ROWS)
    table = {
        "city": pa.array(np.array(["Rome", "Milan", "Lyon"])[city]),
        "room": pa.array(np.where(rate > 0, "single", "double")),
        "nights": pa.array(rng.integers(1, 7, ROWS) + city, mask=rng.random(ROWS) < 0.1),
        "price": pa.array(price),
        "rate": pa.array(rate),
        "code": pa.array(np.where(city > 0, 13, 75)),
        "card": pa.array(np.where(price > 100, "yes", "no"), mask=rng.random(ROWS) < 0.1),
        "came": pa.array(
            ((8 + 4 * (city > 0)) * 3600 + rng.integers(0, 60, ROWS) * 60).astype("int32"), pa.time32("s")
        ),
        "bill_counted": pa.array((price * (1 - rate / 100) + 9).round(2)),
    }
    computed = {name: derive(SCHEMA.derived[name], SCHEMA.columns, pa.table(table)) for name in SCHEMA.derived}
    whole = pa.table(table | computed)
    return whole.to_pandas(), Codec(SCHEMA).encode(whole)


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    """Return the report of a release whose synthetic rows are those of another draw of the same table."""
    return facts_of(create("nacre", {}, {}), make_stays(0)[1], make_stays(1)[1], SCHEMA)


def test_means_are_of_numbers_beside_categories_that_are_drawn_and_of_what_follows_from_both(
    facts: dict[str, Any],
) -> None:
    drawn = {(one["column"], one["by"]) for one in facts["groups"]}
    assert add_up(facts, SCHEMA)
    asked = {(column, by) for by in ("city", "country") for column in ("nights", "price", "value", "bill")}
    assert asked | {("rate", "room"), ("came", "code")} <= drawn <= {*pairs_of(SCHEMA.columns, facts)}
    assert not any("bill_counted" in pair for pair in drawn)  # nobody is handed it
    assert ("code", "room") not in pairs_of(SCHEMA.columns, facts)  # numbers that no formula reckons with may be codes


def _are_in(values: "pd.Series[Any]", labels: list[str]) -> "pd.Series[bool]":
    """Tell which values of a column are in a group that is called so."""
    if values.name != "nights":
        return values.astype(object).fillna("null").astype(str).isin(labels)
    ends = [[float(end) for end in label.split(" to ")] for label in labels if label != "null"]
    inside = [values.between(each[0], each[-1]) for each in ends] + [values.isna()] * ("null" in labels)
    return pd.concat(inside, axis=1).any(axis=1)


def test_of_two_numbers_that_a_workload_names_the_one_of_fewer_values_makes_groups_of_the_other(
    facts: dict[str, Any],
) -> None:
    stated = {(one["column"], one["by"]): one for one in facts["groups"]}
    means = stated["price", "nights"]
    assert ("nights", "price") not in stated
    named = [group["labels"] for group in means["groups"]]
    assert named[0] == ["1"] and named[-1] == ["null"] and 3 < len(named) <= MOST_OF_A_NUMBER
    assert are_called(facts, SCHEMA) and are_means(facts, SCHEMA)
    assert ["price", "nights"] not in facts["asked"] and facts["asked"][:3] == [
        ["city", "nights"],
        ["city", "price"],
        ["nights", "price"],
    ]
    assert ["city", "bill"] in facts["asked"]  # which `bill_counted` stands for


@pytest.mark.parametrize(
    "labels", [["0"], ["99"], ["2"], ["1 to 3"], ["exactly 0"], ["1 to 15"], ["-1 to 1"], ["2 to 1"], ["many"]]
)
def test_ranges_that_a_number_cannot_have_are_no_groups(facts: dict[str, Any], labels: list[str]) -> None:
    forged = copy.deepcopy(facts)
    means = next(one for one in forged["groups"] if one["by"] == "nights")
    means["groups"][0]["labels"] = labels
    assert not are_called(forged, SCHEMA)


def test_a_group_of_zeros_and_of_small_values_is_called_as_elsewhere() -> None:
    assert called(["0.01 to 9.99", "exactly 0"]) == "exactly 0, or 0.01 to 9.99"
    assert called(["north", "south"]) == "north, south"


def test_ranges_behind_a_group_of_zeros_are_masks_of_all_fine_cells() -> None:
    column = Integer(type="integer", min=0, max=99, zero_inflated=True)
    masks = cells_of_ranges([["exactly 0"], ["1 to 49"], ["50 to 99"]], column)
    assert masks is not None and [len(one) for one in masks] == [column.size] * 3
    assert masks[0].nonzero()[0].tolist() == [column.size - 1] and not masks[1][-1] and not masks[2][-1]


def test_a_group_that_holds_one_value_of_a_number_keeps_what_a_formula_makes_of_it() -> None:
    assert _values(SCHEMA.columns["nights"], "nights", ["3"]) == {"nights": 3.0}
    assert _values(SCHEMA.columns["nights"], "nights", ["3 to 4"]) == {}


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("nights", "price"), ("price", "nights")),
        (("price", "nights"), ("price", "nights")),
        (("nights", "came"), ("nights", "came")),  # both are whole and many: as they are named
        (("came", "nights"), ("came", "nights")),
        (("few", "came"), ("came", "few")),
        (("few", "born"), ("few", "born")),
        (("bill", "nights"), ("bill", "nights")),
        (("nights", "bill"), ("bill", "nights")),
        (("value", "nights"), None),  # nothing is counted in its place
        (("born", "born"), None),
        (("city", "price"), None),
    ],
)
def test_which_of_two_numbers_makes_groups_is_a_matter_of_the_schema(
    pair: tuple[str, str], expected: tuple[str, str] | None
) -> None:
    few, born = Integer(type="integer", min=1, max=6), Datetime(type="datetime", min="2000-01-01", max="2020-01-01")
    assert grouped_by(*pair, {**SCHEMA.columns, "few": few, "born": born}) == expected


def test_ranges_of_many_values_are_of_about_equal_size_and_have_the_ends_of_cells() -> None:
    column = Integer(type="integer", min=0, max=99)
    merge = np.arange(column.cells)
    counts = np.where(merge < column.cells // 2, 3.0, 1.0)
    group = ranges_of(column, merge, counts)
    sizes = np.bincount(group, counts)
    assert len(sizes) == RANGES and sizes.max() < 2 * sizes.min()
    labels = group_labels(column, group)
    assert [int(mask.sum()) for mask in cells_of_ranges(labels, column) or ()] == np.bincount(group).tolist()
    assert cells_of_ranges(labels[::-1], column) is None


def test_a_derived_column_has_the_figures_of_the_one_that_is_counted_in_its_place(facts: dict[str, Any]) -> None:
    copied = next(one for one in facts["columns"] if one["name"] == "bill_counted")
    bill = next(one for one in facts["derived"] if one["name"] == "bill")
    seen = {
        "name": "bill_counted",
        "unseen": {"means": [1.0, 90.0], "far": True, "records": 3},
        "p99": {"estimate": 200.0},
    }
    assert of_copy({**seen, "p99": {"estimate": 200.0, "expected_error": 3.0}}) == {
        "unseen": {"means": [1.0, 90.0], "far": True},
        "p99": {"estimate": 200.0, "expected_error": 3.0},
    }
    assert of_copy({**seen, "avoid": ["p99"], "unseen": {}}) == {}
    assert {key: bill[key] for key in bill.keys() & {"unseen", "p99"}} == of_copy(copied)
    off = 2 * copied["mean"]["expected_error"]  # it agrees with those of other columns besides
    assert bill["mean"]["estimate"] == pytest.approx(copied["mean"]["estimate"], abs=off)
    assert _is_counted(bill, SCHEMA.derived["bill"], SCHEMA, facts)
    assert not _is_counted(
        {**bill, "p99": {"estimate": 9.0, "expected_error": 0.1}}, SCHEMA.derived["bill"], SCHEMA, facts
    )


def test_categories_that_are_renamed_one_to_one_are_no_further_groups(facts: dict[str, Any]) -> None:
    columns = dict(SCHEMA.columns)
    renamed = Derived(type="derived", of="city", values={"Rome": "R", "Milan": "M", "Lyon": "L"})
    pairs = {("price", "city"): True, ("price", "letter"): True, ("price", "country"): True}
    kept = [pair for pair, _ in _each_once(pairs, {**columns, "letter": renamed})]
    assert kept == [("price", "city"), ("price", "country")]


def test_every_mean_is_within_what_is_stated_and_nulls_are_of_no_group(facts: dict[str, Any]) -> None:
    real, drawn = (make_stays(seed)[0] for seed in (0, 1))
    off = list[float]()
    for one in facts["groups"]:
        if one["column"] == "came":
            hours = [group["released"] / 3600 for group in one["groups"]]
            assert one["by"] != "code" or hours == pytest.approx([12.5, 8.5], abs=0.5)
            continue
        kept = real.dropna(subset=one["column"])
        for group in one["groups"]:
            rows = _are_in(kept[one["by"]], group["labels"])
            if group["released"] is None:
                assert one["by"] == "nights"
                continue
            off.append(abs(group["released"] - kept[one["column"]][rows].mean()) / group["within"])
            assert group["share"] == pytest.approx(rows.mean(), abs=0.05)
            synthetic = drawn[one["column"]][_are_in(drawn[one["by"]], group["labels"])].mean()
            assert group["synthetic"] == pytest.approx(synthetic, rel=1e-5)
    assert len(off) > 20
    assert max(off) < 2.5  # they share noise, as a city and its country do, so several may be beyond at once
    assert 0.02 < np.median(off) < 0.8


def test_a_mean_by_groups_is_drawn_with_what_it_is_within_and_listed_with_why_not_to_rely_on_it(
    facts: dict[str, Any],
) -> None:
    one = next(one for one in facts["groups"] if (one["column"], one["by"]) == ("price", "city"))
    figures = {drawn.title: drawn for drawn in mean_figures(facts).values()}
    drawn = figures["price by city"]
    assert [row[0] for row in drawn.rows] == ["Rome", "Milan", "Lyon"]
    assert drawn.svg.count('class="whisker"') == drawn.svg.count('class="mark"') == 3
    assert [float(row[3]) for row in drawn.rows] == pytest.approx([each["synthetic"] for each in one["groups"]], 1e-3)
    poor = {**one, "groups": [{**group, "reason": WIDE} for group in one["groups"]]}
    lost = {**poor["groups"][0], "released": None, "within": None, "synthetic": None, "reason": DROWNED}
    some = {**facts, "groups": [{**poor, "groups": [lost, *poor["groups"][1:]]}]}
    (first,), (second,) = (mean_figures(each).values() for each in ({**facts, "groups": [one]}, some))
    assert "bar rest" not in first.svg
    assert second.svg.count("bar rest") == second.svg.count('class="whisker"') == 2
    assert second.svg.count("not known") == 1
    assert [row[-1] for row in second.rows] == [DROWNED, "", ""] and second.above == f"Of Milan and Lyon: {WIDE}."
    assert second.rows[0][1:4] == ("", "", "")
    assert "price by city" in told_apart(facts)
    assert "means of groups as the report states them, not those of the rows: " in " ".join(uses(facts).good)
    far = {**facts, "columns": [{**one, "unseen": {"far": True, "means": [0, 9]}} for one in facts["columns"]]}
    assert "price by city" not in told_apart(far) and "price by city" in told_apart(far, on_terms=True)
    assert "not those of the rows, if values thin out: " in " ".join(uses(far).care)
    few = {**one, "groups": [*one["groups"][:2], {**one["groups"][2], "share": 0.02, "reason": WIDE}]}
    many = {**few, "groups": [*few["groups"][:2], {**few["groups"][2], "share": 0.2}]}
    assert told_apart({"groups": [few]}) == ["price by city"] and told_apart({"groups": [many]}) == []
    assert told_apart({"groups": [many]}, but_some=True) == ["price by city (not Lyon)"]
    assert "but for some groups: price by city (not Lyon)" in " ".join(uses({**facts, "groups": [many]}).care)
    assert told_apart({"groups": [{**poor, "groups": [lost, *poor["groups"][1:]]}]}) == []
    page = render(some)
    assert 'id="asked"' in page and "synthetic rows has no stated error: use the released one." in page
    assert page.count("price by city") >= 2
    assert 'id="groups"' not in render({key: facts[key] for key in facts.keys() - {"groups"}})


def test_figures_stand_above_the_whiskers_of_a_picture_and_pictures_stand_as_the_schema_lists_them(
    facts: dict[str, Any],
) -> None:
    every = [*mean_figures(facts).values()]
    drawn = next(one for one in every if one.title == "price by city")
    marks = [float(y) for y in re.findall(r'class="mark" d="M[\d.]+ ([\d.]+)v', drawn.svg)]
    figures = [float(y) for y in re.findall(r'y="([\d.]+)" text-anchor="end" class="second"', drawn.svg)][1:]
    assert len(marks) == len(figures) == 3
    assert all(mark - figure >= 5 for mark, figure in zip(marks, figures, strict=True))  # its letters go down by 3
    assert all(figure - 10 - (mark + 14) >= 2 for mark, figure in zip(marks, figures[1:], strict=False))
    names = [one["name"] for one in (*facts["columns"], *facts["derived"])]
    places = [tuple(map(names.index, one.title.split(" by ")[::-1])) for one in every]
    assert places[:TABLES] == sorted(places[:TABLES]) and places[TABLES:] == sorted(places[TABLES:])
    for some in (every[:TABLES], every[TABLES:]):  # pictures of a column that are seen at once have one scale
        scales = dict[str, set[tuple[str, ...]]]()
        for one in some:
            ends = tuple(re.findall(r">([^<]+)</text>", one.svg)[-2:])
            scales.setdefault(one.title.split(" by ")[0], set()).add(ends)
        assert len(some) > len(scales) and all(len(one) == 1 for one in scales.values())


def test_a_column_of_two_classes_that_a_workload_names_has_rates_by_the_other(facts: dict[str, Any]) -> None:
    names = [one["name"] for one in facts["columns"]]
    rates = {names[one["target"]]: one for one in facts["asked_rates"]}["card"]
    assert rates["class"] == "yes"
    assert [names[one["column"]] for one in rates["columns"]] == ["price", "city"]
    real = make_stays(0)[0]
    prices, cities = rates["columns"]
    assert prices["synthetic"] == pytest.approx(sorted(prices["synthetic"]), abs=0.05)
    figures = (cities[key] for key in ("labels", "released", "synthetic", "within"))
    for city, released, synthetic, within in zip(*figures, strict=True):
        true = (real["card"][real["city"].isin(city)].dropna() == "yes").mean()
        assert abs(synthetic - true) < 1.5 * within
        assert released == pytest.approx(true, abs=0.1)
    titles = [drawn.title for drawn in asked_rate_figures(facts).values()]
    assert {"card = yes, by price", "card = yes, by city"} <= {*titles}
    page = render(facts)
    of_asked = page[page.index('id="asked"') : page.index('id="use"')]
    asked = figures_together(facts).asked
    assert of_asked.count("<figure>") == len(asked.cards) + len(asked.others)


def test_what_a_report_says_of_a_column_is_said_of_its_means_by_groups() -> None:
    means = pd.DataFrame({"reason": ["", WIDE]})
    about = {"columns": [{"name": "price", "avoid": ["mean"]}, {"name": "bill_counted", "unseen": {"open": True}}]}
    for column, says in (("price", DOUBTED), ("value", DOUBTED), ("nights", ""), ("bill_counted", DOUBTED)):
        assert doubted(means.copy(), about, column, SCHEMA.columns)["reason"].tolist() == [says, WIDE], column
    about["columns"].pop()  # a derived column that another one is counted in the place of is doubted as that is
    assert doubted(means.copy(), about, "bill", SCHEMA.columns)["reason"].tolist() == ["", WIDE]
    assert doubted(means.copy(), {}, "price", SCHEMA.columns)["reason"].tolist() == ["", WIDE]


def test_no_mean_is_beyond_what_values_can_be_whoever_asks_for_it() -> None:
    means = pd.DataFrame({"mean": [-6e-5, 0.4, 1e6, np.nan], "reason": ""})
    for column, most in (("price", 500.0), ("value", 7000.0), ("card", 1.0), ("rate", 65.0), ("city", 1.0)):
        clipped = doubted(means.copy(), {}, column, SCHEMA.columns)["mean"].tolist()
        assert clipped[:3] == [0.0, 0.4, most] and np.isnan(clipped[3]), column
    said = {column: without_nulls(SCHEMA, column) for column in ("nights", "value", "price", "card")}
    assert said["price"] == "" and said["nights"] == said["value"] == "each is of the rows in which nights is not null"
    assert said["card"] == "each is of the rows in which card is not null"
    for column in ("country", "unknown"):
        assert doubted(means.copy(), {}, column, SCHEMA.columns)["mean"][1] == 0.4


def test_means_of_pairs_that_nobody_named_are_stated_only_where_groups_differ_by_more_than_noise_makes() -> None:
    """Chosen by their own noise, far more than one in twenty of these lay beyond what was stated."""
    rng, rows = np.random.default_rng(5), 3000
    kinds = {f"kind{place}": rng.choice(list("abcd"), rows) for place in range(4)}
    amounts = {f"amount{place}": rng.normal(50, 15, rows).clip(0, 100).round(1) for place in range(4)}
    amounts["apart"] = (rng.normal(30, 5, rows) + 30 * (kinds["kind0"] == "a")).clip(0, 100).round(1)
    columns: dict[str, Any] = {name: {"type": "categorical", "values": list("abcd")} for name in kinds}
    columns |= {name: {"type": "number", "min": 0, "max": 100, "round": 1} for name in amounts}
    schema = Schema.model_validate({"name": "kinds", "columns": columns})
    records = Codec(schema).encode(pa.table(kinds | amounts))
    stated = [
        (one["column"], one["by"])
        for _ in range(2)
        for one in facts_of(create("nacre", {}, {}), records, records, schema).get("groups", ())
    ]
    assert stated.count(("apart", "kind0")) == 2
    assert len(stated) <= 3


def test_ranges_are_of_the_table_whose_means_have_the_least_error_and_not_of_the_most_cells() -> None:
    column = Integer(type="integer", min=0, max=79)

    def table(cells: int) -> Way:
        return Way({}, {"m2": np.arange(column.size) * cells // column.size})

    def means_by(way: Way, group: Any) -> tuple[Measured, Any]:
        merge = way.merged["m2"] if group is None else group
        cells, groups = int(way.merged["m2"].max()) + 1, int(merge.max()) + 1
        figures = {"count": 4e3 / groups, "mean": 0.1, "noise": 0.01 * cells / groups, "inside": 0.0, "shift": 0.0}
        term = Term(pd.DataFrame(figures | {"off": 9.0}, index=pd.Index(keys_of(column, merge))), 0.0, 1.0)
        return Measured(term, [("", term)], is_dated=False), {"m2": merge}

    group, merge = best_ranges([lambda: table(column.size), lambda: table(10)], "m2", column, means_by)
    assert merge.max() == 9 and group.tolist() == merge.tolist()
