"""The table of what each column may be used for says what the sentences say, and a page what a terminal says."""

import json
from pathlib import Path
from typing import Any

import pytest

from dpmodels.contract.remarks import FIRST_ROWS
from dpmodels.pages.by_column import AT_ONCE, ByColumn, by_column, not_for
from dpmodels.pages.figures.group_means import mean_figures
from dpmodels.pages.figures.open_means import AS_STATED, IF_THIN, THIN_OUT
from dpmodels.pages.figures.rates import with_few
from dpmodels.pages.glance import IN_SHORT, glance, sentences_in_short
from dpmodels.pages.report import render
from dpmodels.pages.uses import uses
from dpmodels.pages.words import is_of_years
from dpmodels.report.groups.means import DOUBTED
from tests.kit.judged import column, report

ROOT = Path(__file__).parents[2]


def cells(table: ByColumn | None, name: str) -> list[list[tuple[str, str]]]:
    assert table is not None
    of_column = dict(table.lines)[name]
    return [[(one.kind, one.words.replace("\N{NO-BREAK SPACE}", " ")) for one in cell] for cell in of_column]


def test_each_column_is_judged_by_itself_as_the_sentences_judge_it() -> None:
    columns = column("near", 0.03), column("far", 0.1), column("lost", 0.3), column("warned", 0.01, warning="w")
    facts = report(*columns)
    table, sentences = by_column(facts), uses(facts, is_tabled=True)
    assert [cells(table, name)[0] for name in ("near", "far", "lost", "warned")] == [
        [("good", "3 %")],
        [("care", "10 %")],
        [("bad", "30 %")],
        [("bad", "not resolved")],
    ]
    assert sentences is not None and not any("near" in line for line in (*sentences.good, *sentences.never))


def test_a_column_that_is_mostly_empty_has_two_figures_and_one_without_counts_none() -> None:
    amounts: dict[str, Any] = {"ordered": True, "labels": ["1 to 9", "exactly 0"], "synthetic": [0.2, 0.8]}
    bill = column("bill", 0.01, released=[0.2, 0.8], quantiles_within=0.02, **amounts)
    bare = column("bare", 0.01)
    del bare["released"]
    table = by_column(report(bill, bare))
    assert cells(table, "bill") == [[("good", "1 % for 0"), ("care", "20 % of others")]]
    assert cells(table, "bare") == [[("bad", "not known")]]
    ruled = {"name": "late", "type": "derived", "ordered": False, "labels": ["no"], "follows": ["bill"]}
    table = by_column({**report(bill), "derived": [{**ruled, "shares_within": 0.01}]})
    assert cells(table, "late") == [[("good", "1 % ‡")]] and table is not None and table.marks == "‡"
    owed = {"name": "owed", "type": "derived", "follows": ["bill"], "quantiles_within": 0.02, **amounts}
    table, sentences = by_column({**report(bill), "derived": [owed]}), uses({**report(bill), "derived": [owed]})
    assert cells(table, "owed")[0] == [("good", "2 % for 0 ‡"), ("care", "20 % of others ‡")]
    assert sentences is not None and "how often bill and owed are 0" in " ".join(sentences.good)


def test_means_are_judged_as_parts_of_themselves_and_rates_in_points() -> None:
    figure = {"estimate": 100.0, "expected_error": 5.0, "synthetic": 100.0}
    number: dict[str, Any] = {"ordered": True, "labels": ["1 to 9", "10 to 99"], "quantiles_within": 0.01}
    wage = column("wage", 0.01, mean=figure, p99=figure, **number)
    doubted = column("doubted", 0.01, mean=figure, p99=figure, avoid=["mean"], **number)
    groups = {"released": [0.5] * 2, "synthetic": [0.5] * 2, "stddev": [0.01] * 2, "share": [0.5] * 2}
    one = {"column": 0, "labels": [["a"], ["b"]], "within": [0.02, 0.03], **groups}
    facts = report(wage, doubted, column("sick", 0.01)) | {"rates": {"target": 2, "class": "a", "columns": [one]}}
    table = by_column(facts)
    assert table is not None and [kind for kind, _ in table.kinds] == [
        "by itself",
        "means, totals",
        "99 % quantiles",
        "rate of sick = a",
    ]
    assert cells(table, "wage")[1:] == [[("care", "9.8 %")], [("care", "9.8 %")], [("good", "3")]]
    assert cells(table, "doubted")[1] == [("bad", "not known")] and cells(table, "sick")[1] == []
    first = by_column({**facts, "cautions": [FIRST_ROWS]})
    assert first is not None and first.kinds[1][0] == "means"


def test_many_columns_are_seen_in_part() -> None:
    table = by_column(report(*(column(f"c{n}", 0.01) for n in range(40))))
    assert table is not None and table.at_once == AT_ONCE and len(table.lines) == 40
    few = by_column(report(*(column(f"c{n}", 0.01) for n in range(AT_ONCE + 2))))
    assert few is not None and few.at_once == AT_ONCE + 2 and by_column({"columns": []}) is None


def test_a_page_has_every_clause_of_what_a_terminal_says_in_short() -> None:
    headline = "Shares within 1 %; pairs within 5 %. In 2 of 3 pairs it shows; with sick in 1 of 2. "
    headline += "Not for means and totals: fee."
    facts = {"headline": headline, "privacy": {"spent_epsilon": 1, "delta": 1e-5, "unit": "record"}}
    assert glance(facts)[IN_SHORT] == headline
    said = sentences_in_short(facts)
    assert said == [
        "Shares within 1 %.",
        "pairs within 5 %.",
        "In 2 of 3 pairs it shows; with sick in 1 of 2.",
        "Not for means and totals: fee.",
    ]
    figure = {"estimate": 100.0, "expected_error": 50.0}
    ages = column("age", 0.01, ordered=True, quantiles_within=0.01, mean={**figure, "expected_error": 0.1}, p99=figure)
    fees = column("fee", 0.01, ordered=True, quantiles_within=0.01, mean=figure, p99=figure, avoid=["mean"])
    judged = ["Not for means and totals: fee", "Not for 99 % quantiles: age and fee"]
    assert not_for(report(ages, fees)) == judged and not_for({"columns": []}) == []


def test_every_page_says_alike_of_a_mean_that_noise_leaves_open_whether_its_means_by_group_hold() -> None:
    """A reader met "not for means" in one place, and a mean by group with its error in another."""
    mean = {"estimate": 100.0, "expected_error": 1.0, "synthetic": 100.0}
    terms = {**mean, "expected_error": None, "expected_error_if_thinning_out": 1.0}
    number: dict[str, Any] = {"ordered": True, "quantiles_within": 0.01}
    vague = {**terms, "expected_error_if_thinning_out": 60.0}
    columns = [
        column("far", 0.01, mean={**mean, "expected_error": 50.0}, **number),
        column("open", 0.01, mean=terms, unseen={"open": True, "means": [90.0, 900.0]}, avoid=["mean"], **number),
        column("alone", 0.01, mean=terms, unseen={"open": True, "means": [90.0, 900.0]}, avoid=["mean"], **number),
        column("lost", 0.01, mean=mean, avoid=["mean"], **number),
        column("vague", 0.01, mean=vague, unseen={"open": True, "means": [1.0, 900.0]}, avoid=["mean"], **number),
    ]
    group = {"labels": ["a"], "share": 0.5, "released": 100.0, "within": 1.0, "synthetic": 100.0, "reason": ""}
    doubtful = {**group, "reason": DOUBTED}
    groups = [
        {"column": name, "by": "far", "groups": [one, one]}
        for name, one in (("far", group), ("open", doubtful), ("lost", doubtful))
    ]
    facts = report(*columns) | {"groups": groups}
    assert not_for(facts) == [
        f"Not for means and totals, but {AS_STATED}: far (by far)",
        "Not for means and totals: lost and vague",
        f"Only if {THIN_OUT}: means and totals, by group too, of open",
        "Only if values thin out: means and totals of alone",
    ]
    table, sentences = by_column(facts), uses(facts)
    assert table is not None and sentences is not None
    means = {name: (one.kind, one.words, one.of) for name, (_, (one,), *_) in table.lines}
    assert means["open"] == ("care", "2\N{NO-BREAK SPACE}%", IF_THIN) and means["lost"] == ("bad", "not known", "")
    never = [one for one in sentences.never if one.startswith("means")]
    assert f"means and totals of far (beyond 20\N{NO-BREAK SPACE}%, but {AS_STATED})" in never
    assert not any("open" in one or "alone" in one for one in never)
    care = [one for one in sentences.care if one.startswith("means")]
    assert f"only if {THIN_OUT}, and then within 2\N{NO-BREAK SPACE}%, means by group too)" in " ".join(care)
    assert "means and totals of lost (not known)" in never
    notes = {drawn.title: drawn.note for drawn in mean_figures(facts).values()}
    assert IF_THIN in notes["open by far"] and IF_THIN not in notes["far by far"]


@pytest.mark.parametrize(
    ("labels", "is_year"),
    [(["1930 to 1943", "1944", "null"], True), (["900 to 1999"], False), (["1000.50 to 1900.00"], False), ([], False)],
)
def test_values_may_be_years_from_1000_to_2999(labels: list[str], is_year: bool) -> None:
    assert is_of_years({"ordered": True, "labels": labels}) is is_year
    assert not is_of_years({"ordered": False, "labels": labels})


def test_rates_by_a_column_say_where_noise_hides_that_they_differ() -> None:
    facts = json.loads((ROOT / "docs" / "example" / "report.json").read_text())
    names, target = [one["name"] for one in facts["columns"]], facts["rates"]["target"]
    hidden = names.index("school_years")
    for pair in facts["pairs"]["distances"]:
        if {hidden, target} == {*pair[:2]}:
            pair[6] = 0.0  # the dependence as released, of which noise alone makes more
    for one in facts["rates"]["columns"]:
        if one["column"] == hidden:
            one["released"] = [0.5] * len(one["released"])
    table = by_column(facts)
    assert table is not None and table.kinds[-1][0] == "rate of married = true"
    said = {name for name, line in table.lines if line[-1] and line[-1][0].words.endswith(" *")}
    assert "school_years" in said and len(said) < len(names) - 2 and "*" in table.marks
    note = "chance could make it, though of two groups by themselves the intervals may still lie apart."
    assert note in render(facts)


def test_where_groups_are_left_out_it_is_said() -> None:
    facts = json.loads((ROOT / "docs" / "example" / "report.json").read_text())
    few = with_few(facts)
    table = by_column(facts)
    assert table is not None
    marked = [name for name, line in table.lines if line[-1] and "\N{DAGGER}" in line[-1][0].words]
    assert sorted(marked) == sorted(few) and ("\N{DAGGER}" in table.marks) is bool(few)
    two = {"labels": [["a"], ["b"]], "share": [0.5] * 2, **{key: [0.5] * 2 for key in ("released", "synthetic")}}
    alike = {"column": 0, "stddev": [0.01] * 2, "within": [0.02] * 2, **two}
    evenly = by_column({**facts, "rates": {**facts["rates"], "columns": [alike]}})
    assert evenly is not None and "\N{DAGGER}" not in evenly.marks
