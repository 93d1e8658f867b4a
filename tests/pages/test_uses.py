"""What synthetic rows may be used for: each column and pair is sorted by what it is within, and nothing twice."""

from dataclasses import replace
from typing import Any

import numpy as np

from dpmodels.contract.remarks import FIRST_ROWS, NOT_HANDED_OVER
from dpmodels.pages.by_column import by_column, marked
from dpmodels.pages.figures.categories import EVERY_ROW, absent
from dpmodels.pages.figures.named import farther
from dpmodels.pages.figures.rate_groups import counting
from dpmodels.pages.figures.rates import giving_away, without_outcome, worst_rate
from dpmodels.pages.figures.relations import chance_of_rates, likely_relations, most_by_noise, relations
from dpmodels.pages.figures.ruled import ruled_pairs
from dpmodels.pages.uses import uses
from dpmodels.report.verdicts import headline
from dpmodels.statistics.dependence import dependence
from tests.kit.every_kind import make
from tests.kit.judged import column, report


def said(lines: tuple[str, ...]) -> str:
    return " | ".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def test_columns_are_sorted_by_what_they_are_within() -> None:
    columns = column("near", 0.03), column("far", 0.1), column("lost", 0.3), column("warned", 0.01, warning="w")
    sorted_columns = uses(report(*columns))
    assert sorted_columns is not None
    assert "shares and quantiles of near (within 3 %)" in said(sorted_columns.good)
    assert said(sorted_columns.care) == "shares and quantiles of far (within 10 %)"
    assert said(sorted_columns.never).startswith("questions about warned and lost |")
    assert "anything about a single person" in sorted_columns.never[-1]


def test_a_column_whose_bound_was_discovered_is_to_be_used_with_care() -> None:
    sorted_columns = uses(report(column("opened", 0.01, discovered_bounds=["max"]), column("near", 0.01)))
    assert sorted_columns is not None and "of opened (within 5 %)" in said(sorted_columns.care)
    assert "shares and quantiles of near (within 1 %)" in said(sorted_columns.good)


def test_of_a_number_the_larger_of_both_figures_counts_and_what_to_avoid_is_named() -> None:
    number = column("age", 0.01, ordered=True, quantiles_within=0.1, avoid=["mean", "p99"])
    sorted_columns = uses(report(number))
    assert sorted_columns is not None and "of age (within 10 %)" in said(sorted_columns.care)
    assert "means, totals and 99 % quantiles of age (not known)" in said(sorted_columns.never)


KEPT, WEAKER, HIDDEN = (0.5, 0.5, 0.01, 0.02), (0.5, 0.1, 0.01, 0.02), (0.02, 0.0, 0.02, 0.03)
"""Dependence as released and of synthetic rows, and what noise makes of it: on average, and in one of twenty."""


def test_pairs_are_counted_and_relations_named_by_whether_they_are_kept() -> None:
    distances = [[0, 1, 0, 0, 0, 0.01, *KEPT], [0, 2, 0, 0, 0, 0.1, *WEAKER], [1, 2, 0, 0, 0, 0.5, *HIDDEN]]
    sorted_pairs = uses(report(*(column(name, 0.01) for name in "abc"), distances=distances, target=0))
    assert sorted_pairs is not None
    assert "tables of two columns in broad groups, in 1 of 3 pairs (within 5 % of all rows)" in said(sorted_pairs.good)
    assert "go together, and how in groups of many rows, at least 80 % as strong as released: a with b |" in said(
        sorted_pairs.good
    )
    assert "two columns together in 1 more pair (within 20 %)" in said(sorted_pairs.care)
    for within, is_good in ((0.1, True), (0.11, False)):  # a relation may be kept in a table that is far off
        distances[0][5] = within
        sorted_pairs = uses(report(*(column(name, 0.01) for name in "abc"), distances=distances, target=0))
        assert sorted_pairs is not None and ("as strong as released: a with b" in said(sorted_pairs.good)) == is_good
        assert ("or for every single category: a with b" in said(sorted_pairs.care)) != is_good
    assert "weaker in these rows than as released: a with c" in said(sorted_pairs.care)
    assert "tables of two columns in 1 pair (beyond 20 %)" in said(sorted_pairs.never)
    hidden = (
        "whether two columns depend on each other, in 1 of the 3 pairs (b with c): noise and chance make as much, so"
    )
    assert hidden in said(sorted_pairs.never)


def test_relations_that_are_not_certain_are_likely_by_how_seldom_noise_makes_as_much() -> None:
    likely, hidden = (0.033, 0.05, 0.02, 0.03), (0.02, 0.0, 0.02, 0.03)
    pairs = [(first, second) for first in range(4) for second in range(first)]
    distances = [[one, two, 0, 0, 0, 0.01, *(hidden if place else KEPT)] for place, (one, two) in enumerate(pairs)]
    columns = [column(name, 0.01) for name in "abcd"]
    facts = report(*columns, distances=distances)
    assert [one.columns for one in relations(facts).values() if one.is_certain] == [(1, 0)]
    assert likely_relations(facts) == {}
    distances[1][6:] = distances[2][6:] = likely
    assert set(likely_relations(facts)) == {(2, 0), (2, 1)}
    sorted_pairs = uses(facts)
    assert sorted_pairs is not None and "noise less clearly, of which one in 10 may be noise: " in said(
        sorted_pairs.care
    )
    assert "in 3 of the 6 pairs (" in said(sorted_pairs.never)


def test_where_all_that_is_real_is_certain_hardly_any_report_calls_another_relation_likely() -> None:
    rng, mean, likely = np.random.default_rng(7), 0.02, 0.03
    shape = (1.645 * mean / (likely - mean)) ** 2
    pairs = [(first, second) for first in range(20) for second in range(first)]
    columns, listed = [column(str(place), 0.01) for place in range(20)], 0
    for _ in range(100):
        noise = rng.gamma(shape, mean / shape, len(pairs))
        noise[:60] = 0.5
        distances = [
            [*pair, 0, 0, 0, 0.01, one, 0.5, mean, likely] for pair, one in zip(pairs, noise.tolist(), strict=True)
        ]
        listed += bool(likely_relations(report(*columns, distances=distances)))
    assert listed < 20, listed  # .1 of the reports, and three standard deviations of how many of 100 that are


def test_rates_of_the_target_show_a_relation_that_the_noise_of_whole_tables_hides() -> None:
    facts = report(*(column(name, 0.01) for name in "ab"), distances=[[0, 1, 0, 0, 0, 0.01, *HIDDEN]])
    groups: dict[str, Any] = {"column": 1, "stddev": [0.01, 0.01], "share": [0.5, 0.5], "within": [0.01, 0.01]}
    for released, shown in (([0.1, 0.2], True), ([0.1, 0.11], False)):
        rates = {"target": 0, "class": "b", "columns": [{**groups, "released": released, "labels": [["a"], ["b"]]}]}
        assert bool(likely_relations({**facts, "rates": rates})) == shown
    assert chance_of_rates({"released": [0.1], "stddev": [0.01], "share": [1.0]}, 1000) == 1


def test_rows_without_a_value_of_the_target_are_said_to_count_in_its_rates() -> None:
    target = column("late", 0.01, labels=["no", "yes", "null"], synthetic=[0.55, 0.1, 0.35])
    facts = report(target, column("ward", 0.01)) | {"rates": {"target": 0, "class": "yes", "columns": []}}
    note = without_outcome(facts).replace("\N{NO-BREAK SPACE}", " ")
    assert note.startswith(
        "A rate is a part of all rows, and 35 % of the synthetic ones have null for late: of the others"
    )
    target |= {"synthetic": [0.85, 0.145, 0.005]}
    assert not without_outcome(facts)
    target |= {"labels": ["no", "yes"], "synthetic": [0.9, 0.1]}
    assert not without_outcome(report(target) | {"rates": facts["rates"]}) and not without_outcome(report(target))


def test_rates_of_groups_that_do_not_differ_are_called_different_as_seldom_as_they_should() -> None:
    rng, share, records = np.random.default_rng(3), np.array([0.5, 0.3, 0.2]), 4000
    chances = []
    for _ in range(4000):
        real = rng.binomial((share * records).astype(int), 0.1) / (share * records)
        rates = {"released": real + rng.normal(0, 0.02, 3), "stddev": [0.02] * 3, "share": share}
        chances.append(chance_of_rates(rates, records))
    assert 0.04 < np.mean(np.array(chances) < 0.05) < 0.06


def test_a_relation_of_a_pair_that_is_far_off_is_certain_and_of_unknown_strength() -> None:
    facts = report(*(column(name, 0.01) for name in "ab"), distances=[[0, 1, 0, 0, 0, 0.21, *KEPT]])
    sorted_pairs = uses(facts)
    assert sorted_pairs is not None and "a with b" not in said(sorted_pairs.good)
    assert "relations that are there for certain, though not how strong they are: a with b" in said(sorted_pairs.care)


def test_how_far_apart_dates_of_a_rule_are_is_not_to_be_asked() -> None:
    columns = [column(name, 0.01) for name in ("begin", "end")]
    schema = "name: t\nconstraints: [begin <= end]\ncolumns:\n" + "".join(
        f"  {name}: {{type: datetime, min: 2020-01-01, max: 2024-12-31}}\n" for name in ("begin", "end")
    )
    sorted_columns = uses({**report(*columns), "cautions": list(make(schema).remarks)})
    assert sorted_columns is not None and "how far apart begin and end are" in said(sorted_columns.never)
    without = uses({**report(*columns), "cautions": ["something else"]})
    assert without is not None and "how far apart" not in said(without.never)


def test_a_relation_whose_categories_are_judged_together_is_to_be_used_with_care() -> None:
    five = column("product", 0.01, labels=list("vwxyz"), synthetic=[0.2] * 5, released=[0.2] * 5)
    facts = report(column("a", 0.01), five, distances=[[0, 1, 0, 0, 0, 0.01, *KEPT]])
    sorted_pairs = uses(facts)
    assert sorted_pairs is not None and "a with product" not in said(sorted_pairs.good)
    assert "not in every group, or for every single category: a with product" in said(sorted_pairs.care)
    assert "how single categories of product differ in another column: they" in said(sorted_pairs.never)
    groups: dict[str, Any] = {"column": 1, "labels": [[name] for name in "vwxyz"], "released": [0.5] * 5}
    groups |= {"synthetic": [0.5] * 5, "stddev": [0.1] * 5, "share": [0.2] * 5, "within": [0.1] * 5}
    by_each = uses({**facts, "rates": {"target": 0, "class": "b", "columns": [groups]}})
    assert by_each is not None and "differ in another column, but in rates of the target: they" in said(by_each.never)


def test_columns_whose_categories_are_joined_to_groups_are_named() -> None:
    columns = [column("a", 0.01), column("ward", 0.01), column("age", 0.01, ordered=True, quantiles_within=0.01)]
    groups, names = [["w1"], ["w2", "w3"]], ("released", "synthetic", "stddev", "share", "within")
    figures = {name: [0.1, 0.1] for name in names}
    rates = {"target": 0, "class": "b", "columns": [{"column": one, "labels": groups, **figures} for one in (1, 2)]}
    sorted_rates = uses({**report(*columns), "rates": rates})
    assert sorted_rates is not None and "how single categories of ward differ in another" in said(sorted_rates.never)
    rates["columns"][0]["labels"] = [["w1"], ["w2"]]
    one_by_one = uses({**report(*columns), "rates": rates})
    assert one_by_one is not None and "single categories" not in said(one_by_one.never)
    in_pairs = uses(report(*columns, tables=[{"columns": [0, 1], "labels": [[["a"], ["b"]], groups]}]))
    assert in_pairs is not None and "how single categories of ward differ in another" in said(in_pairs.never)


def test_values_within_one_range_that_was_counted_with_other_columns_are_said_to_tell_no_category() -> None:
    ranges = {"ordered": True, "quantiles_within": 0.01, "ranges": ["0 to 17", "18 to 110"]}
    age, ward, smoker, distances = column("age", 0.01, **ranges), column("ward", 0.01), column("smoker", 0.01), [[0, 1]]
    plain, dropped = column("age", 0.01, ordered=True, quantiles_within=0.01), NOT_HANDED_OVER.format(name="ward")
    alike = "such as 0 to 17 of age, go with which category: there the rows of every category are spread alike"
    for columns, more, cautions, end in (
        ((age, ward), {}, [], " |"),
        ((age, ward, smoker), {"target": 1}, [], ", but for those of the target |"),
        ((age, ward), {"target": 1}, [], None),  # the classes of a target are counted within ranges
        ((age, ward), {}, [dropped], None),
        ((plain, ward), {}, [], None),
        ((age, {**age, "name": "dose"}), {}, [], None),
    ):
        facts = report(*columns, distances=[[*one, *[0.0] * 4] for one in distances], **more)
        ruled = uses({**facts, "cautions": cautions, "gate": [{"rule": f"x {EVERY_ROW}"}]})
        assert ruled is not None and ("what a rule of the schema says |" in said(ruled.never)) == (end is not None)
        sorted_uses = uses({**facts, "cautions": cautions})
        assert sorted_uses is not None and ("within one range" in said(sorted_uses.never)) == (end is not None)
        assert end is None or f"{alike}{end}" in said(sorted_uses.never)


def test_a_relation_is_certain_beyond_noise_and_weaker_where_rows_have_less_of_it_than_as_released() -> None:
    facts = report(*(column(name, 0.01) for name in "ab"), distances=[[0, 1, 0, 0, 0, 0.01, *KEPT]])
    (kept,) = relations(facts).values()
    assert kept.is_certain and not kept.is_weakened
    noisy = replace(kept, released=0.3, likely=0.15, most=0.19, synthetic=0.13)
    assert noisy.is_certain and noisy.is_weakened and replace(noisy, synthetic=0.24).is_kept  # .3 may be real
    assert not replace(noisy, released=0.18, synthetic=0).is_weakened
    for synthetic, noise, is_stronger in ((0.37, 0.05, False), (0.39, 0.05, True), (0.39, 0.1, False)):
        rows = replace(noisy, synthetic=synthetic, noise=noise)
        assert (rows.is_stronger, rows.is_kept, rows.is_weakened) == (is_stronger, not is_stronger, False)
    assert relations(report(column("a", 0.01), distances=[[0, 1, 0, 0, 0, 0.01]])) == {}


def test_the_strongest_of_many_independent_pairs_is_called_noise() -> None:
    rng, number = np.random.default_rng(1), 60
    alone = np.full((4, 4), 1 / 16)
    shown = [dependence(alone + rng.normal(0, 0.02, (4, 4))) for _ in range(20_000)]
    most = most_by_noise(float(np.mean(shown)), float(np.quantile(shown, 0.95)), number)
    strongest = np.reshape(shown[: 300 * number], (300, number)).max(axis=1)
    assert 0.01 < np.mean(strongest > most) < 0.1, np.mean(strongest > most)


def test_rates_are_sorted_by_what_they_are_within_of_the_rate_of_all_rows() -> None:
    alike = {"released": [0.1] * 2, "synthetic": [0.1] * 2}
    groups: dict[str, Any] = {**alike, "stddev": [0.01] * 2, "share": [0.5] * 2, "labels": [["g"], ["h"]]}
    small = {
        "released": [0.1] * 3,
        "synthetic": [0.1] * 3,
        "stddev": [0.01] * 3,
        "share": [0.5, 0.46, 0.04],
        "labels": [["g"], ["h"], ["i"]],
    }
    rates = {
        "target": 0,
        "class": "true",
        "columns": [
            {"column": place, "within": within, **groups}
            for place, within in ((1, [0.02, 0.01]), (2, [0.02, 0.05]), (3, [0.3, 0.01]), (7, [0.02, 0.07]))
        ]
        + [{"column": 4, "within": [0.02, 0.01, 0.9], **small}]
        + [{"column": 5, "within": [0.01, 0.01], **groups}]
        + [{"column": 6, "within": [0.001, 0.9], **groups, "share": [0.97, 0.03]}],
    }
    columns = [column(name, 0.01) for name in "abcdefgh"]
    columns[0].update(labels=["false", "true"], synthetic=[0.9, 0.1])
    hidden = [[0, 5, 0, 0, 0, 0.01, *HIDDEN]]
    sorted_rates = uses({**report(*columns, distances=hidden), "rates": rates})
    assert sorted_rates is not None
    rows = "rates of a = true, 10 % of the synthetic rows, by"
    assert f"{rows} b and e (within 2 points)" in said(sorted_rates.good)
    assert f"{rows} f and c (within 1 to 5 points)" in said(sorted_rates.care)
    far = "(within 7 to 90 points, more than half of the rate, or of what is left, and of what groups differ by)"
    assert f"{rows} h, d and g {far}" in said(sorted_rates.never)
    table = by_column({**report(*columns, distances=hidden), "rates": rates})
    assert table is not None
    kinds = {name: cells[-1][0].kind for name, cells in table.lines if cells[-1]}
    assert kinds == dict(b="good", e="good", f="care", c="care", h="bad", d="bad", g="bad")
    pale = "rates in the pale groups, of few rows or less sure (some of e): see their whiskers"
    assert pale in said(sorted_rates.care)
    joint = {"records in a joint table that the workload asks for (a by b by c) departs from its pairs, at most": 1.0}
    tabled = uses({**report(*columns, distances=hidden), "rates": rates, "noise_stddev": joint})
    assert "together (but for the joint table of a by b by c), rare combinations" in said(tabled.never)


def test_rates_that_differ_by_far_more_than_they_are_within_are_of_use_whatever_the_rate_of_all_is() -> None:
    apart = {"released": [0.01, 0.2, 0.24], "synthetic": [0.02, 0.19, 0.25], "stddev": [0.01] * 3, "within": [0.04] * 3}
    one = {"column": 1, "labels": [["g"], ["h"], ["i"]], "share": [0.8, 0.1, 0.1], **apart}
    rates = {"target": 0, "class": "true", "columns": [one, {**one, "column": 2, "synthetic": [0.05, 0.06, 0.05]}]}
    columns = [column(name, 0.01) for name in "abc"]
    columns[0].update(labels=["false", "true"], synthetic=[0.95, 0.05])
    sorted_rates = uses({**report(*columns), "rates": rates})
    assert sorted_rates is not None and "by b (within 4 points)" in said(sorted_rates.good)
    assert "by c (within 4 points, more than half" in said(sorted_rates.never)


def test_means_and_quantiles_whose_errors_are_large_beside_them_are_named() -> None:
    rough = {"estimate": 100.0, "expected_error": 47.0}
    columns = [
        column("value", 0.01, ordered=True, quantiles_within=0.01, mean={**rough, "expected_error": 5.0}, p99=rough),
        column("avoided", 0.01, ordered=True, quantiles_within=0.01, mean=rough, p99=rough, avoid=["mean", "p99"]),
        column("open", 0.01, ordered=True, quantiles_within=0.01, mean=rough, p99=rough, unseen={"quantile": True}),
    ]
    sorted_columns = uses(report(*columns))
    assert sorted_columns is not None
    never = said(sorted_columns.never)
    assert "means and totals of open (beyond 20 %)" in never
    assert "means, totals and 99 % quantiles of avoided (not known)" in never
    assert "99 % quantiles of value (beyond 20 %)" in never and never.count("99 % quantiles") == 2


def test_what_a_percentage_is_of_is_said_of_every_figure_that_is_no_part_of_itself() -> None:
    """A mean is a part of its spread where that is less, whatever noise hides too; near 0, of large values."""
    mean, p99 = {"estimate": 100.0, "expected_error": 1.0}, {"estimate": 110.0, "expected_error": 0.1}
    number: dict[str, Any] = {"ordered": True, "quantiles_within": 0.01, "p99": p99}
    columns = [
        column("age", 0.01, mean=mean, **number),
        column("bmi", 0.01, mean={**mean, "synthetic_stddev": 50.0}, **number),
        column("pay", 0.01, mean={**mean, "synthetic_stddev": 50.0}, unseen={"means": [97.0, 102.0]}, **number),
        column("gain", 0.01, mean={"estimate": 0.1, "expected_error": 0.1}, **number),
    ]
    facts = report(*columns)
    sentences, table = uses(facts), by_column(facts)
    assert sentences is not None and table is not None
    assert "means and totals of age (within 2 %) |" in said(sentences.good)
    assert "means and totals of bmi (within 4 % of its spread)" in said(sentences.good)
    hidden = "means and totals of pay (within 4 % of its spread, and farther off if noise hides large values)"
    assert hidden in said(sentences.care)
    assert "means and totals of gain (within 3.6 % of its 99 % quantile / 20)" in said(sentences.good)
    cells = {name: (cell[1][0].kind, cell[1][0].words, cell[1][0].of) for name, cell in table.lines}
    assert {name: (kind, said((words,)), of) for name, (kind, words, of) in cells.items()} == {
        "age": ("good", "2 %", ""),
        "bmi": ("good", "4 %", "of spread"),
        "pay": ("care", "4 %", "of spread, or 6\N{NO-BREAK SPACE}% at the farthest"),
        "gain": ("good", "3.6 %", "of 99 % quantile / 20"),
    }


def test_means_whose_errors_are_small_beside_them_are_of_use() -> None:
    columns = [
        column(name, 0.01, ordered=True, quantiles_within=0.01, mean=figure, p99=figure)
        for name, figure in (
            ("age", {"estimate": 50.0, "expected_error": 1.01}),
            ("pay", {"estimate": 100.0, "expected_error": 9.0}),
        )
    ]
    sorted_columns = uses(report(*columns))
    assert sorted_columns is not None
    words = "means, totals and 99 % quantiles of"
    assert f"{words} age (within 4 %)" in said(sorted_columns.good)
    assert f"{words} pay (within 18 %)" in said(sorted_columns.care)
    sorted_columns = uses(report({**columns[0], "clock": 3600.0}, columns[1]))
    assert sorted_columns is not None
    assert "means and 99 % quantiles of age" in said(sorted_columns.good) and "totals" not in said(sorted_columns.good)


def test_a_mean_is_known_no_better_than_values_that_noise_hides_leave_it() -> None:
    mean = {"estimate": 2.7, "expected_error": 0.02}
    days = column("days", 0.01, ordered=True, quantiles_within=0.01, mean=mean, p99=mean, avoid=["p99"])
    known = uses(report(days))
    hidden = uses(report({**days, "unseen": {"means": [2.6, 3.1], "far": True}}))
    assert known is not None and "means and totals of days (within 1.5 %)" in said(known.good)
    first = uses({**report(days), "cautions": [FIRST_ROWS]})
    assert (
        first is not None
        and "means of days (within" in said(first.good)
        and "totals, and how many" in said(first.never)
    )
    farther = "means and totals of days (within 1.5 %, and farther off if noise hides large values)"
    assert hidden is not None and farther in said(hidden.care)
    far_off = uses(report({**days, "unseen": {"means": [2.6, 4.1], "far": True}}))
    assert far_off is not None and "means and totals of days (only if values thin out" in said(far_off.care)
    marks = marked(report({**days, "unseen": {"means": [2.6, 3.1]}}))["means, totals"]["care"]["days"]
    assert marks == "1.5\N{NO-BREAK SPACE}% or 15\N{NO-BREAK SPACE}% at the farthest"


def test_quantiles_of_a_column_that_is_mostly_zeros_are_said_of_its_other_values() -> None:
    shares = {"labels": ["1 to 9", "10 to 99", "exactly 0"], "released": [0.1] * 3, "ordered": True}
    columns = [
        column(name, 0.01, quantiles_within=within, synthetic=synthetic, **shares)
        for name, within, synthetic in (
            ("near", 0.02, [0.1, 0.1, 0.8]),
            ("far", 0.03, [0.1, 0.02, 0.88]),
            ("few zeros", 0.03, [0.5, 0.1, 0.4]),
        )
    ]
    sorted_columns = uses(report(*columns))
    assert sorted_columns is not None
    assert "quantiles of near among the values that are not 0 (within 20 % of these)" in said(sorted_columns.care)
    assert "quantiles of far among the values that are not 0 (beyond 20 % of these)" in said(sorted_columns.never)
    assert "few zeros among" not in said((*sorted_columns.care, *sorted_columns.never))
    assert "how often near and far are 0 (within 1 %)" in said(sorted_columns.good)
    assert "shares and quantiles of few zeros (within" in said(sorted_columns.good)


def test_a_relation_of_a_column_that_is_mostly_null_is_one_of_whether_there_is_a_value() -> None:
    rare = column("left", 0.01, ordered=True, quantiles_within=0.02, labels=["1 to 9", "null"], synthetic=[0.15, 0.85])
    rare["released"] = [0.15, 0.85]
    pairs = [[0, 1, 0, 0, 0, 0.01, *KEPT], [0, 2, 0, 0, 0, 0.01, *KEPT]]
    sorted_pairs = uses(report(column("a", 0.01), column("b", 0.01), rare, distances=pairs))
    assert sorted_pairs is not None
    assert "as strong as released: a with b |" in said(sorted_pairs.good)
    assert "whether there is a value at all, or 0: a with left" in said(sorted_pairs.care)
    assert "quantiles of left among the values that are not null (beyond 20 % of these)" in said(sorted_pairs.never)


def test_the_groups_that_are_known_worst_do_not_judge_a_column_alone() -> None:
    rates = {"share": [0.4, 0.3, 0.22, 0.08], "within": [0.01, 0.02, 0.03, 0.5]}
    assert counting(rates) == [0, 1, 2] and worst_rate(rates) == 0.03
    assert counting({**rates, "share": [0.4, 0.3, 0.18, 0.12]}) == [0, 1, 2, 3]


def test_a_column_that_gives_the_target_away_is_named_unless_the_target_hardly_varies() -> None:
    target = column("died", 0.01, labels=["no", "yes"], synthetic=[0.7, 0.3])
    sure = {
        "column": 1,
        "labels": [["a"], ["b"]],
        "share": [0.7, 0.3],
        "released": [0.01, 1.02],
        "within": [0.01, 0.01],
    }
    vague = {**sure, "column": 2, "released": [0.05, 0.9]}
    rates = {"target": 0, "class": "yes", "columns": [{**one, "synthetic": one["released"]} for one in (sure, vague)]}
    facts = report(target, column("discharge", 0.01), column("ward", 0.01)) | {"rates": rates}
    assert giving_away(facts) == ["discharge"]
    sorted_columns = uses(facts)
    assert sorted_columns is not None
    assert "models of died that see discharge, which settles in 98 % of the rows or more whether it is yes" in said(
        sorted_columns.care
    )
    after = {"name": "notice", "ordered": False, "labels": ["a"], "follows": ["died"], "shares_within": 0.01}
    derived = uses(facts | {"derived": [after, {**after, "name": "other", "follows": ["ward"]}]})
    assert "models of died that see notice, which the schema derives from it" in said(derived.care)
    target["synthetic"] = [0.96, 0.04]
    assert giving_away(facts) == [] == giving_away(report(target))


def test_derived_columns_are_sorted_by_what_they_are_within_and_those_of_no_known_error_are_used_with_care() -> None:
    net = {"name": "net", "labels": ["1 to 2"], "ordered": True, "follows": ["price", "tax"]}
    start = {
        "name": "start",
        "ordered": True,
        "labels": ["2020-01-01 to 2020-02-01"],
        "synthetic": [1.0],
        "follows": ["end"],
        "quantiles_within": 0.03,
    }
    country = {"name": "country", "ordered": False, "labels": ["IT", "FR"], "follows": ["city"], "shares_within": 0.3}
    sorted_columns = uses({**report(column("a", 0.01)), "derived": [net, start, country]})
    assert sorted_columns is not None
    assert "shares and quantiles of start and a (within 3 %)" in said(sorted_columns.good)
    assert "shares of net, which follow from other columns: no error of them is known" in said(sorted_columns.never)
    assert "questions about country by itself" in said(sorted_columns.never)
    assert "how many rows share one day of start: a computed day spreads" in said(sorted_columns.never)
    assert "means, totals and 99 % quantiles of net, which follow from others" in said(sorted_columns.never)


def test_columns_that_are_off_by_more_than_their_noise_and_categories_that_no_row_has_are_named() -> None:
    moved = column("opened", 0.08, distance_to_release=0.06)
    gone = column("race", 0.04, synthetic=[1.0, 0.0], labels=["a", "b"])
    assert farther(report(moved, gone)) == ["opened"] and absent(gone) == ["b"] and absent(moved) == []
    assert absent({**gone, "ordered": True}) == [] and absent({**gone, "labels": ["a", "null"]}) == []
    named = uses(report(moved, gone))
    assert named is not None and "whether race is ever b: no row has it" in said(named.never)


def test_a_report_that_says_nothing_of_columns_or_is_noise_has_no_such_list() -> None:
    assert uses({"columns": []}) is None and uses({**report(column("a", 0.01)), "drowned": "lost"}) is None


def test_names_that_a_sentence_leaves_out_stand_in_the_whole_sentences_and_the_other_sentences_do_not() -> None:
    names = [f"c{n}" for n in range(12)]
    pairs = [[n, n + 1, 0, 0, 0, 0.01, *KEPT] for n in range(6)]
    abridged = uses(report(*(column(name, 0.01) for name in names), distances=pairs))
    assert abridged is not None and abridged.whole is not None
    assert "and 4 more" in said(abridged.good) and "and 3 more" in said(abridged.good)
    assert len(abridged.whole.good) == 2 and "more" not in said(abridged.whole.good)
    assert all(name in said(abridged.whole.good[:1]) for name in names)
    assert "c5 with c6" in abridged.whole.good[1] and abridged.whole.care == abridged.whole.never == ()
    short = uses(report(*(column(name, 0.01) for name in names[:8])))
    assert short is not None and short.whole is None


def test_a_relation_that_a_rule_makes_is_no_finding_and_those_with_the_target_are_all_named() -> None:
    distances = [[one, two, 0, 0, 0, 0.01, *KEPT] for one in range(5) for two in range(one + 1, 5)]
    distances[0][7] = 0.1  # a with b, which a rule makes: it is weaker in the rows
    columns = (column(name, 0.01, type="x") for name in ("a", "a b", "c", "d", "e"))
    facts = report(*columns, distances=distances, target=4)
    facts["gate"] = [
        {"rule": f"`{text}` {EVERY_ROW}"}
        for text in (
            "when a = x then a b != null",
            "when not d then a b != null",
            "c <= a",
            "e < 3",
            "when f then e = 1",
            "when c = 1 and d then e = 3",  # of three columns, no two of which it relates
        )
    ] + [{"rule": "must lie between a and b"}]
    assert ruled_pairs(facts) == {(0, 1), (1, 3), (0, 2)}
    assert {pair for pair, one in relations(facts).items() if one.by_rule} == ruled_pairs(facts)
    found = uses(facts)
    assert (
        found is not None
        and "which hold in every row, and nothing more of how these columns go together: a with c and a b with d"
        in (said(found.good))
    )
    assert "by a rule of the schema that are weaker in these rows than as released: a with a b" in said(found.care)
    assert "as released: a with e, a b with e, c with e, d with e and 3 more" in said(found.good)
    assert headline(facts).endswith(
        "In all 7 pairs the columns depend on each other by more than noise shows; with e (the target) in 4 of 4; "
        "3 more pairs are related by a rule of the schema."
    )
    facts["columns"] = [one | {"name": f"t.{one['name']}"} for one in facts["columns"]]
    facts["gate"] = [{"rule": f"`when a = x then d != null` {EVERY_ROW} of table t"}]
    assert ruled_pairs(facts) == {(0, 3)}
