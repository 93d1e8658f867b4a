"""What a report draws first since its schema asks for it: a card a pair, in the workload's order, and nothing twice."""

import copy
import re
from typing import Any

import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec
from dpmodels.contract.remarks import NOT_HANDED_OVER
from dpmodels.contract.schema import Schema
from dpmodels.hand_off.check_words import _asked
from dpmodels.hand_off.columns.check_groups import are_called, are_means
from dpmodels.hand_off.columns.check_sums import add_up
from dpmodels.methods.registry import create
from dpmodels.pages.by_column import by_column
from dpmodels.pages.figures.apart import NONE_APART, NOT_CERTAIN, Interval, apart_in_words
from dpmodels.pages.figures.asked_for import NO_MEANS, OF_SHARES, asked_names, figures_together
from dpmodels.pages.figures.group_means import ROUGH, farthest_in_rows, mean_figures
from dpmodels.pages.figures.group_means import note_of as note_of_means
from dpmodels.pages.figures.group_verdicts import grade_of, group_means
from dpmodels.pages.figures.open_means import DOUBTED
from dpmodels.pages.figures.rate_groups import why_pale
from dpmodels.pages.figures.rate_pictures import note_of
from dpmodels.pages.report import render
from dpmodels.pages.tiles import tiles
from dpmodels.report.groups.means import ALIKE
from tests.kit.reports import facts_of

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

SCHEMA, _ = parse("""
name: visits
target: admitted
workload:
- {columns: [price, persons]}
- {columns: [ward, insured]}
- {columns: [ward, floor]}
- {columns: [hidden, ward]}
- {columns: [age, young]}
columns:
  ward: {type: categorical, values: [north, south, east]}
  floor: {type: categorical, values: [first, second, third]}
  insured: {type: boolean}
  persons: {type: integer, min: 1, max: 6}
  price: {type: number, min: 0, max: 200, round: 2}
  age: {type: integer, min: 0, max: 99}
  hidden: {type: number, min: 0, max: 10, computed: age / 10, keep: drop}
  young: {type: integer, min: 0, max: 1, computed: "age < 26", keep: drop}
  admitted: {type: boolean}
""")
assert isinstance(SCHEMA, Schema)
ROWS = 4000


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    ward, persons, age = rng.integers(0, 3, ROWS), rng.integers(1, 7, ROWS), rng.integers(0, 100, ROWS)
    table = {
        "ward": np.array(["north", "south", "east"])[ward],
        "floor": np.array(["first", "second", "third"])[rng.integers(0, 3, ROWS)],
        "insured": rng.random(ROWS) < 0.3 + 0.3 * (ward == 1),
        "persons": persons,
        "price": (20 + 15 * persons + rng.gamma(2, 5, ROWS)).clip(0, 200).round(2),
        "age": age,
        "hidden": age / 10,
        "young": (age < 26).astype(np.int64),
        "admitted": rng.random(ROWS) < age / 100,
    }
    records = Codec(SCHEMA).encode(pa.table(table))
    made = facts_of(create("nacre", {}, {}), records, records, SCHEMA)
    return {**made, "cautions": [NOT_HANDED_OVER.format(name=name) for name in ("hidden", "young")]}


def test_each_pair_of_a_workload_has_one_card_in_its_order_or_a_line_that_says_why_not(facts: dict[str, Any]) -> None:
    together = figures_together(facts)
    asked = together.asked
    assert asked is not None
    titles = [drawn.title for drawn in asked.cards]
    of_two = ["price by persons", "insured = true, by ward", "ward with floor"]
    assert titles == [*of_two, "hidden by ward", "young by age"] and not asked.unanswered
    assert "nobody is handed hidden" in asked.cards[3].foot and not asked.cards[2].foot.count("nobody")
    without = {**facts, "groups": [means for means in facts["groups"] if means["column"] != "hidden"]}
    less = figures_together(without).asked
    assert less is not None
    (one,) = less.unanswered
    assert (one.pair, one.command) == ("hidden with ward", "nacre marginals RUN hidden ward")
    assert "hidden" in one.why
    assert asked.of_target == "admitted = true" and asked.rates[0].title == "age"
    assert facts["asked"] == _asked(SCHEMA)  # by which a report is checked


def test_a_column_for_figures_alone_has_its_rate_where_a_workload_names_it_and_no_other(facts: dict[str, Any]) -> None:
    (young,) = [means for means in facts["groups"] if means["column"] == "young"]
    low, high = young["groups"][-1], young["groups"][0]
    assert high["released"] > 0.9 and low["released"] < 0.3 and young["by"] == "age"
    assert are_means(facts, SCHEMA) and add_up(facts, SCHEMA) and are_called(facts, SCHEMA)
    assert {means["by"] for means in facts["groups"]}.isdisjoint({"hidden", "young"})
    assert not any("young" in line or "hidden" in line for lines in group_means(facts).values() for line in lines)
    assert render(facts).count("<figcaption>young by age") == 1


def test_what_was_asked_for_stands_before_all_else_and_once(facts: dict[str, Any]) -> None:
    page, together = render(facts), figures_together(facts)
    assert '<li><a href="#asked">Asked</a></li>' in page
    assert page.index('id="asked"') < page.index('id="use"') < page.index('id="columns"')
    for title in ("price by persons", "insured = true, by ward", "ward with floor"):
        assert page.count(f"<figcaption>{title}") == 1
    assert together.asked is not None and together.rates is not None
    shown = {drawn.title for drawn in together.asked.rates}
    assert not shown & {drawn.title for drawn in together.rates.figures}
    assert "Further rates of admitted = true" in page and "Further means by group" in page
    assert f"{len(together.tables)} further pair" in page and "that nobody asked for; the clearest: " in page


def test_three_bullets_and_no_small_pictures_stand_before_the_answers_on_a_phone(facts: dict[str, Any]) -> None:
    page = render({**facts, "headline": "One. Two. Three. Four. Five."})
    head = page[: page.index('id="asked"')]
    seen, *folds = head.split('<details class="on-phone"><summary>')
    assert [fold.split("<")[0] for fold in folds] == ["Every column, small", "More in short"]
    assert "<li>Four.</li>" in folds[1] and "<li>Three.</li>" in folds[0].split("</details>")[1]
    assert 'class="strip' in folds[0].split("</details>")[0] and 'class="strip' not in seen
    assert "More in short" not in render({**facts, "headline": "One. Two. Three."})


def test_rates_and_means_of_the_target_are_cards_where_a_workload_names_it_and_stand_once(
    facts: dict[str, Any],
) -> None:
    asked = [["admitted", "floor"], ["admitted", "age"], ["price", "admitted"], *facts["asked"]]
    named = {**facts, "asked": asked}
    together = figures_together(named)
    assert together.asked is not None and together.rates is not None
    titles = [drawn.title for drawn in together.asked.cards]
    rated = ["admitted = true, by floor", "admitted = true, by age"]  # floor says nothing
    assert titles[:4] == [*rated, "price by admitted", "price by persons"]
    assert len(together.asked.grades) == len(asked)  # one for each pair, whatever else is known of it
    others = [drawn.title for drawn in together.asked.others]
    assert {"age by admitted", "admitted = true, by price"} <= {*others}
    assert list(together.asked.with_target) == ["floor", "age", "price"]
    further = [drawn.title for drawn in (*together.asked.rates, *together.rates.figures)]
    assert not {"floor", "age", "price"} & {*further}
    assert together.asked.no_rates and sorted(together.rated) == sorted(figures_together(facts).rated)
    page = render(named)
    assert "by the other columns by which that differs most clearly" in page
    assert "those by which it differs clearly are above. The others are" in page
    assert page.count("<figcaption>admitted = true, by age") == 1 and page.count("<figcaption>age by admitted") == 1


def test_rates_of_the_target_by_what_is_counted_for_figures_alone_stand_where_a_workload_names_it(
    facts: dict[str, Any],
) -> None:
    assert "hidden" not in figures_together(facts).rated
    together = figures_together({**facts, "asked": [["admitted", "hidden"], *facts["asked"]]})
    assert together.asked is not None and "hidden" in together.rated
    first = together.asked.cards[0]
    assert first.title == "admitted = true, by hidden" and "nobody is handed hidden" in first.foot
    tenth = {"name": "tenth", "type": "derived", "follows": ["age"], "ordered": True, "counted_as": "hidden"}
    derived = {**facts, "asked": [["admitted", "tenth"]], "derived": [{**tenth, "labels": ["0 to 10"]}]}
    of_derived = figures_together(derived).asked
    assert of_derived is not None and not of_derived.unanswered
    assert [drawn.title for drawn in of_derived.cards] == ["admitted = true, by tenth"]
    assert of_derived.cards[0].rows == first.rows


def test_a_report_of_which_nothing_was_asked_has_no_such_section(facts: dict[str, Any]) -> None:
    bare = copy.deepcopy(facts)
    del bare["asked"], bare["rates"], bare["asked_rates"]
    bare["pairs"].pop("asked_for")
    page = render(bare)
    assert figures_together(bare).asked is None
    assert 'id="asked"' not in page and "Further means" not in page and ">Means by group<" in page


def test_reports_of_earlier_versions_draw_what_was_asked_in_the_order_of_their_tables(facts: dict[str, Any]) -> None:
    earlier = {key: one for key, one in facts.items() if key != "asked"}
    names = asked_names(earlier)
    assert {frozenset(pair) for pair in names} == {frozenset(pair) for pair in facts["asked"]}
    assert render(earlier)


def test_two_numbers_without_a_mean_that_is_known_have_their_table_and_it_says_so(facts: dict[str, Any]) -> None:
    without = {**facts, "groups": [one for one in facts["groups"] if one["by"] != "persons"]}
    asked = figures_together(without).asked
    assert asked is not None
    first = asked.cards[0]
    assert first.title in ("persons with price", "price with persons") and NO_MEANS in first.foot


def _means(column: str, by: str, released: list[float], reason: str = "") -> dict[str, Any]:
    groups = [
        {"labels": [str(place)], "share": 0.3, "released": one, "within": one / 10, "synthetic": one, "reason": reason}
        for place, one in enumerate(released)
    ]
    return {"column": column, "by": by, "groups": groups}


def test_means_that_hold_on_terms_are_told_apart_on_these_terms() -> None:
    mean = {"estimate": 9.0, "expected_error": None, "synthetic": 9.0, "expected_error_if_thinning_out": 1.0}
    paid = {"name": "paid", "type": "number", "ordered": True, "mean": mean, "unseen": {"open": True, "means": [1, 99]}}
    for released, is_apart in (([10.0, 100.0, 1000.0], True), ([10.0, 10.1, 10.2], False)):
        means = [_means("paid", "care", released, DOUBTED)]
        figure = mean_figures({"columns": [paid], "groups": means}, [("paid", "care")])["paid", "care"]
        assert ("no two groups differ" in figure.note) is not is_apart and "thin out" in figure.note
        assert 'class="bar rest"' not in figure.svg
    plain = {"name": "paid", "type": "number", "ordered": True}
    figure = mean_figures({"columns": [plain], "groups": [_means("paid", "care", [1.0, 9.0], "its error exceeds")]})
    assert 'class="bar rest"' in figure["paid", "care"].svg


def test_the_page_says_to_take_released_means_and_which_one_the_rows_miss_most(facts: dict[str, Any]) -> None:
    plain = {"name": "paid", "type": "number", "ordered": True}
    means = _means("paid", "care", [385.0, 260.0, 100.0])
    of = {"columns": [plain, {**plain, "name": "care"}], "groups": [means]}
    assert farthest_in_rows(of, {("paid", "care")}) == ""
    means["groups"][1] |= {"synthetic": 385.0}
    means["groups"][2] |= {"synthetic": 900.0, "reason": "it is pale"}
    said = "paid by care, 1: 385 in the rows, 260 released"
    assert farthest_in_rows(of, {("paid", "care")}) == said and farthest_in_rows(of, {("care", "paid")}) == ""
    assert farthest_in_rows({**of, "cautions": [NOT_HANDED_OVER.format(name="paid")]}, {("paid", "care")}) == ""
    changed = copy.deepcopy(facts)
    (price,) = [one for one in changed["groups"] if (one["column"], one["by"]) == ("price", "persons")]
    price["groups"][0] |= {"synthetic": 150.0, "released": 20.0, "within": 1.0, "reason": ""}
    page = render(changed)
    line = page.index("<strong>Take the released figures</strong>: means of the rows (synthetic) have no stated error")
    assert page.index('id="asked"') < line < page.index("<figcaption>price by persons")
    assert "(price by persons, 1: 150 in the rows, 20 released)." in page
    asked = figures_together(facts).asked
    assert asked is not None
    (table,) = [one for one in asked.others if {*one.title.split(" with ")} == {"price", "persons"}]
    assert OF_SHARES in table.foot


def test_means_that_others_would_make_a_speck_have_an_axis_of_their_own() -> None:
    plain = {"name": "paid", "type": "number", "ordered": True}
    means = [_means("paid", "care", [100.0, 1000.0]), _means("paid", "plan", [90.0, 110.0])]
    drawn = mean_figures({"columns": [plain], "groups": means})
    assert ">1,200<" in drawn["paid", "care"].svg and ">1,200<" not in drawn["paid", "plan"].svg
    assert not drawn["paid", "care"].foot


def _ends(svg: str) -> list[str]:
    return re.findall(r'<text x="[\d.]+" y="[\d.]+" text-anchor="(?:start|end)">([^<]+)</text>', svg)[-2:]


def test_what_was_asked_for_has_an_axis_of_its_own_and_axes_end_at_round_values() -> None:
    plain = {"name": "paid", "type": "number", "ordered": True}
    means = [_means("paid", "care", [108.3, 118.0]), _means("paid", "plan", [112.0, 140.0])]
    shared = mean_figures({"columns": [plain], "groups": means})
    assert {(*_ends(figure.svg),) for figure in shared.values()} == {("90", "160")}
    asked = mean_figures({"columns": [plain], "groups": means}, [("paid", "care"), ("paid", "plan")])
    assert _ends(asked["paid", "care"].svg) == ["95", "130"] and _ends(asked["paid", "plan"].svg) == ["100", "160"]
    clock = {"name": "paid", "type": "integer", "ordered": True, "clock": 1}
    hours = _means("paid", "care", [9 * 3600.0, 13.2 * 3600.0])
    assert _ends(mean_figures({"columns": [clock], "groups": [hours]})["paid", "care"].svg) == ["08:00", "15:00"]
    figure = mean_figures({"columns": [plain], "groups": [_means("paid", "care", [0.031, 0.052])]})["paid", "care"]
    assert _ends(figure.svg) == ["0.025", "0.06"]


def _marks(svg: str) -> list[float]:
    return [float(x) for x in re.findall(r'class="bar(?: rest)?" x="([\d.]+)"', svg)]


def test_means_of_very_different_sizes_have_a_logarithmic_axis_that_ends_behind_every_whisker() -> None:
    plain = {"name": "paid", "type": "number", "ordered": True}
    means = [_means("paid", "care", [10.0, 100.0, 1000.0])]
    (figure,) = mean_figures({"columns": [plain], "groups": means}).values()
    low, middle, high = _marks(figure.svg)
    assert middle - low == pytest.approx(high - middle, abs=0.2) and "logarithmic" in figure.foot
    assert [">100<" in figure.svg, ">2,000<" in figure.svg] == [True, True]  # of 1,000 within 100
    held = [means[0] | {"values_from_to": [8.0, 1500.0]}]
    (figure,) = mean_figures({"columns": [plain], "groups": held}).values()
    assert [f">{end}<" in figure.svg for end in ("8", "5", "1,500", "2,000")] == [True, False, True, False]
    means[0]["groups"][0]["released"] = -10.0
    (linear,) = mean_figures({"columns": [plain], "groups": means}).values()
    assert "logarithmic" not in linear.foot
    wide = _means("paid", "care", [10.0, 11.0])
    wide["groups"][1]["within"] = 500.0
    (figure,) = mean_figures({"columns": [plain], "groups": [wide]}).values()
    assert ">600<" in figure.svg


def test_an_interval_is_cut_where_values_end_and_nowhere_else() -> None:
    plain = {"name": "paid", "type": "number", "ordered": True}
    means = _means("paid", "care", [10.0, 30.0]) | {"values_from_to": [2.0, None]}
    means["groups"][0]["within"] = 13.0
    (figure,) = mean_figures({"columns": [plain], "groups": [means]}).values()
    assert [row[2] for row in figure.rows] == ["13, at least 2", "3"]
    assert "10 (2 to 23)" in figure.svg and "30 \N{PLUS-MINUS SIGN} 3" in figure.svg
    del means["values_from_to"]
    (figure,) = mean_figures({"columns": [plain], "groups": [means]}).values()
    assert figure.rows[0][2] == "13" and "10 \N{PLUS-MINUS SIGN} 13" in figure.svg


@pytest.mark.parametrize(
    ("released", "within", "reasons", "said"),
    [
        ([10.0, 11.0], [2.0, 2.0], ["", ""], NONE_APART),
        ([10.0, 11.0], [2.0, 2.0], ["", "pale"], NONE_APART),
        ([10.0, 11.0], [2.0, 2.0], ["", ALIKE], NONE_APART),
        ([10.0, 20.0], [2.0, 2.0], ["", ""], ""),
        ([10.0, 20.0], [2.0, 2.0], ["", "pale"], NOT_CERTAIN),
        ([10.0, 20.0], [2.0, 6.0], ["", "pale"], NOT_CERTAIN),
        ([20.4, 30.8, 41.8], [4.8, 8.2, 15.0], ["", "", ""], NOT_CERTAIN),  # they meet once they are widened
    ],
)
def test_a_picture_says_that_no_groups_differ_only_where_all_intervals_meet(
    released: list[float], within: list[float], reasons: list[str], said: str
) -> None:
    groups = [
        {"labels": [str(at)], "share": 0.3, "released": mean, "within": off, "synthetic": mean, "reason": reason}
        for at, (mean, off, reason) in enumerate(zip(released, within, reasons, strict=True))
    ]
    plain = {"name": "paid", "type": "number", "ordered": True}
    (figure,) = mean_figures(
        {"columns": [plain], "groups": [{"column": "paid", "by": "care", "groups": groups}]}
    ).values()
    rates = {
        "released": [one / 100 for one in released],
        "stddev": [one / 200 for one in within],
        "synthetic": [one / 100 for one in released],
        "share": [1 / len(released)] * len(released),
        "within": [one / 100 for one in within],
    }
    assert (ALIKE in figure.note) is (ALIKE in reasons)
    assert (f"each mean by itself, not to compare: {said}" in figure.note) is bool(said and figure.grade != "bad")
    certain = "2 differs from all other rows for certain, no two groups from each other"
    assert (certain in note_of(rates, {}, "2")) is bool(
        apart_in_words([Interval(mean, off) for mean, off in zip(released, within, strict=True)])
    )
    ends = f"{min(within):g} to {max(within):g}" if min(within) < max(within) else f"{within[0]:g}"
    assert figure.note.startswith(f"within {ends}") and note_of(rates, {}).startswith(f"within {ends} points")
    pale = {at: reason for at, reason in enumerate(reasons) if reason}
    for note in (figure.note, note_of(rates, pale)):
        assert [one for one in (NONE_APART, NOT_CERTAIN) if one in note] == ([said] if said else [])


def test_each_card_wears_the_word_that_the_tiles_count(facts: dict[str, Any]) -> None:
    asked = figures_together(facts).asked
    assert asked is not None and len(asked.grades) == len(asked.cards) + len(asked.unanswered)
    (tile,) = [one for one in tiles(facts, by_column(facts), asked.grades) if "asked for" in one.words]
    assert (tile.good, tile.care, tile.bad) == tuple(map(asked.grades.count, ("good", "care", "bad")))
    page = render(facts)
    section = page[page.index('id="asked"') : page.index('id="use"')].split("further figures")[0]
    shown = [section.count(f'<figcaption>{one.title} <b class="grade {one.grade}">') for one in asked.cards]
    assert shown == [1] * len(asked.cards)


@pytest.mark.parametrize(
    ("shares", "reasons", "on_terms", "within", "word"),
    [
        ([0.5, 0.47, 0.03], ["", "", ""], False, 0.1, "good"),
        ([0.5, 0.47, 0.03], ["", "", "why"], False, 0.1, "good"),
        ([0.5, 0.4, 0.1], ["", "", "why"], False, 0.1, "care"),
        ([0.5, 0.47, 0.03], ["", "", ""], True, 0.1, "care"),
        ([0.5, 0.47, 0.03], [DOUBTED] * 3, True, 0.1, "care"),  # which is what a card says already
        ([0.5, 0.47, 0.03], [DOUBTED] * 3, False, 0.1, "bad"),
        ([0.97, 0.03], ["", "why"], False, 0.1, "care"),  # of two groups both are to be sound
        ([0.4, 0.6], ["", "why"], False, 0.1, "bad"),
        ([0.5, 0.47, 0.03], ["", "", ""], False, 0.3, "care"),  # the last is rough
    ],
)
def test_means_are_good_where_nothing_speaks_against_nearly_all(
    shares: list[float], reasons: list[str], on_terms: bool, within: float, word: str
) -> None:
    offs = [0.1] * (len(shares) - 1) + [within]
    groups = [
        {"labels": ["a"], "share": share, "released": 1.0, "within": off, "synthetic": 1.0, "reason": reason}
        for share, reason, off in zip(shares, reasons, offs, strict=True)
    ]
    assert grade_of(groups, on_terms) == word
    note = note_of_means(groups, {"name": "paid", "type": "number", "ordered": True}, on_terms)
    assert (ROUGH in note) is (within > 0.2)  # a card says why it is to be used with care
    apart = [{**groups[0], "released": 3.0}, *groups[1:]]  # by which even a rough one is told from the others
    assert grade_of(apart, on_terms) == ("good" if within > 0.2 else word)


def test_a_mean_or_a_rate_of_0_by_a_rule_is_never_pale() -> None:
    plain = {"name": "paid", "type": "number", "ordered": True}
    means = _means("paid", "care", [0.0, 12.0, 14.0])
    means["groups"][0] |= {"reason": "its error exceeds the mean itself"}
    (figure,) = mean_figures({"columns": [plain], "groups": [means]}).values()
    assert "pale" not in figure.note and "bar rest" not in figure.svg and not figure.above and figure.grade == "good"
    means["groups"][0]["within"] = 0.01
    (figure,) = mean_figures({"columns": [plain], "groups": [means]}).values()
    assert "1 of 3 pale" in figure.note
    rates = {"share": [0.6, 0.37, 0.03], "within": [0.1] * 3, "released": [0.3, 0.2, 0.0], "stddev": [0.01, 0.01, 0.0]}
    assert why_pale(rates) == {} and why_pale({**rates, "stddev": [0.01] * 3}).keys() == {2}


def test_a_reason_is_said_once_and_the_least_sure_group_is_named() -> None:
    plain = {"name": "paid", "type": "number", "ordered": True}
    means = _means("paid", "care", [10.0, 12.0, 14.0, 16.0], "it is pale")
    (figure,) = mean_figures({"columns": [plain], "groups": [means]}).values()
    assert figure.above == "Of every group: it is pale." and "but" not in figure.header
    assert "all 4 pale: it is pale" in figure.note
    means["groups"][0] |= {"reason": "another", "within": 9.0}
    (figure,) = mean_figures({"columns": [plain], "groups": [means]}).values()
    assert figure.above == "Of 1, 2 and 3: it is pale."
    assert [row[-1] for row in figure.rows] == ["another", "", "", ""] and figure.header[-1] == "but"
    assert "16 within 1.6 at 3, and the least sure: 10 within 9 at 0" in figure.svg
