"""What synthetic rows may be used for: each column and pair is sorted by what it is within, and nothing twice."""

from typing import Any

import numpy as np
import pytest

from dpmodels.pages.uses import absent, dependence_by_noise, farther, most_by_noise, uses, weakened
from dpmodels.statistics.dependence import dependence


def column(name: str, within: float, **more: Any) -> dict[str, Any]:
    facts = {"name": name, "ordered": False, "labels": ["a", "b"], "synthetic": [0.5, 0.5], "released": [0.5, 0.5]}
    return {**facts, "shares_within": within, "expected_distance": 0.01, "distance_to_release": 0.01, **more}


def report(*columns: dict[str, Any], **pairs: Any) -> dict[str, Any]:
    return {"columns": list(columns), "pairs": {"distances": [], **pairs}}


def said(lines: tuple[str, ...]) -> str:
    return " | ".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def test_columns_are_sorted_by_what_they_are_within() -> None:
    columns = column("near", 0.03), column("far", 0.1), column("lost", 0.3), column("warned", 0.01, warning="w")
    sorted_columns = uses(report(*columns))
    assert sorted_columns is not None
    assert "shares and quantiles of near (within 5 %)" in said(sorted_columns.good)
    assert said(sorted_columns.care) == "shares and quantiles of far (within 20 %)"
    assert said(sorted_columns.never).startswith("questions about warned and lost |")
    assert "anything about a single person" in sorted_columns.never[-1]


def test_of_a_number_the_larger_of_both_figures_counts_and_what_to_avoid_is_named() -> None:
    number = column("age", 0.01, ordered=True, quantiles_within=0.1, avoid=["mean", "p99"])
    sorted_columns = uses(report(number))
    assert sorted_columns is not None and "of age (within 20 %)" in said(sorted_columns.care)
    assert "means and totals of age | 99 % quantiles of age" in said(sorted_columns.never)


def test_pairs_are_counted_and_those_with_the_target_apart() -> None:
    distances = [[0, 1, 0, 0, 0, 0.01], [0, 2, 0, 0, 0, 0.1], [1, 2, 0, 0, 0, 0.5]]
    sorted_pairs = uses(report(*(column(name, 0.01) for name in "abc"), distances=distances, target=0))
    assert sorted_pairs is not None
    tables = "tables of two columns in broad groups, in 1 of 3 pairs, 1 of 2 of these with a, the target (within 5 %)"
    assert tables in said(sorted_pairs.good)
    assert "two columns together in 1 more pair (within 20 %)" in said(sorted_pairs.care)
    assert "two columns together in 1 pair (beyond 20 %): b with c" in said(sorted_pairs.never)


def test_a_relation_that_lost_strength_beyond_its_noise_is_named() -> None:
    strong, level = np.diag([0.5, 0.5]), np.full((2, 2), 0.25)
    table = {"columns": [0, 1], "released": strong, "synthetic": (strong + level) / 2, "stddev": np.full((2, 2), 0.01)}
    listed = [[0, 1, 0.01, 0.2, 0.02, 0.2]]
    assert weakened(table, listed) and not weakened({**table, "synthetic": strong}, listed)
    assert not weakened({**table, "stddev": np.full((2, 2), 0.4)}, listed)  # noise may have made all of it
    assert dependence_by_noise(table) == pytest.approx(0.5 * 0.7979 * 0.04 / 2, rel=1e-3)
    distances = [[0, 1, 0.01, 0.2, 0.02, 0.2]]
    named = uses(report(column("a", 0.01), column("b", 0.01), distances=distances, tables=[table]))
    assert named is not None and "weaker in these rows than as released: a with b" in said(named.care)


def test_what_noise_alone_shows_of_independent_columns_is_what_is_said() -> None:
    rng, deviations = np.random.default_rng(0), np.full((4, 3), 0.002)
    alone = np.outer([0.1, 0.2, 0.3, 0.4], [0.5, 0.3, 0.2])
    noisy = [dependence(alone + rng.normal(0, deviations)) for _ in range(400)]
    assert np.mean(noisy) == pytest.approx(dependence_by_noise({"stddev": deviations}), rel=0.1)


def test_the_strongest_of_many_independent_pairs_is_called_noise() -> None:
    """As on a page, where those are drawn that depend most on each other; the noise of a pair's shares is independent."""
    rng, number = np.random.default_rng(1), 60
    alone, deviations = np.full((4, 4), 1 / 16), np.full((4, 4), 0.02)
    halves = np.abs(rng.normal(0, deviations, (20000, 4, 4))).sum((1, 2)) / 2
    distances = [[0, one, float(halves.mean()), 0.2, float(np.quantile(halves, 0.95)), 0.2] for one in range(1, number)]
    table = {"columns": [0, 1], "stddev": deviations}
    most = most_by_noise(table, distances)
    strongest = [max(dependence(alone + rng.normal(0, deviations)) for _ in range(number)) for _ in range(100)]
    assert sum(each > most for each in strongest) <= 12 and most < 2.2 * dependence_by_noise(table)


def test_columns_that_are_off_by_more_than_their_noise_and_categories_that_no_row_has_are_named() -> None:
    moved = column("opened", 0.08, distance_to_release=0.06)
    gone = column("race", 0.04, synthetic=[1.0, 0.0], labels=["a", "b"])
    assert farther(report(moved, gone)) == ["opened"] and absent(gone) == ["b"] and absent(moved) == []
    assert absent({**gone, "ordered": True}) == [] and absent({**gone, "labels": ["a", "null"]}) == []
    named = uses(report(moved, gone))
    assert named is not None and "opened: farther from the release than its noise explains" in said(named.care)
    assert "whether race is ever b: no row has it" in said(named.never)


def test_a_report_that_says_nothing_of_columns_or_is_noise_has_no_such_list() -> None:
    assert uses({"columns": []}) is None and uses({**report(column("a", 0.01)), "drowned": "lost"}) is None
