"""Quantiles are off by what lies below them: what is expected of noise is what noise does, on cells of every kind."""

import numpy as np
import pytest

from dpmodels.methods.parts.marginals import Marginal
from dpmodels.report.ranks import expected_of_sums, expected_within, rank_distances, rank_error
from tests.kit.every_kind import one

COLUMN = one("{type: number, min: 0, max: 100, round: 0, cells: 100}").modelled["x"]
ROWS = 1000.0


def marginal(counts: np.ndarray, runs: np.ndarray, narrow: float, whole: float, rng: np.random.Generator) -> Marginal:
    """Release counts of narrow cells, and better ones of what they are joined to."""
    pooled = np.bincount(runs, counts)
    noisy = counts + rng.normal(0, narrow, len(counts))
    return Marginal(noisy, narrow, runs, pooled + rng.normal(0, whole, len(pooled)), np.full(len(pooled), whole))


@pytest.mark.parametrize("width", [1, 5, 25])
def test_the_distance_to_be_expected_is_about_the_one_that_noise_makes(width: int) -> None:
    rng, shares = np.random.default_rng(0), np.full(COLUMN.size, 1 / COLUMN.size)
    runs = np.arange(COLUMN.size) // width
    drawn = []
    for _ in range(1000):
        facts = rank_distances(COLUMN, marginal(ROWS * shares, runs, 3.0, 2.0, rng), shares, ROWS)
        drawn.append(facts["rank_distance_to_release"])
    assert 0.55 < np.mean(drawn) / facts["expected_rank_distance"] < 1.08  # 1000 draws
    assert np.mean(np.array(drawn) > facts["noise_rank_distance_95"]) < 0.07  # one in twenty at most
    assert facts["noise_rank_distance_95"] < 3 * np.quantile(drawn, 0.95)
    assert rank_error(facts) == facts["noise_rank_distance_95"] + facts["rank_distance_to_release"]
    del facts["noise_rank_distance_95"]
    assert rank_error(facts) == facts["expected_rank_distance"] + facts["rank_distance_to_release"]


def test_what_is_right_of_joined_cells_is_not_lost_in_the_noise_of_narrow_ones() -> None:
    rng, shares = np.random.default_rng(0), np.full(COLUMN.size, 1 / COLUMN.size)
    runs = np.arange(COLUMN.size) // 10
    joined = rank_distances(COLUMN, marginal(ROWS * shares, runs, 20.0, 1.0, rng), shares, ROWS)
    alone = rank_distances(COLUMN, Marginal.plain(ROWS * shares, 20.0), shares, ROWS)
    assert joined["expected_rank_distance"] < 0.7 * alone["expected_rank_distance"]
    moved = np.roll(shares * (np.arange(COLUMN.size) < 50) * 2, 50)  # all of it in the upper half
    far = rank_distances(COLUMN, marginal(ROWS * shares, runs, 0.1, 0.1, rng), moved, ROWS)
    assert far["rank_distance_to_release"] == pytest.approx(0.5, abs=0.02)


def test_cells_that_are_no_runs_are_counted_one_by_one_and_categories_have_no_order() -> None:
    shares = np.full(COLUMN.size, 1 / COLUMN.size)
    mixed = marginal(ROWS * shares, np.arange(COLUMN.size)[::-1] // 2, 1.0, 0.1, np.random.default_rng(0))
    assert rank_distances(COLUMN, mixed, shares, ROWS)["expected_rank_distance"] == pytest.approx(
        expected_of_sums(np.ones(COLUMN.size)) / ROWS, abs=1e-8
    )
    assert expected_within(np.ones(3)) == 0
    word = one("{type: categorical, values: [a, b]}").modelled["x"]
    assert rank_distances(word, Marginal.plain(np.ones(2), 1.0), np.full(2, 0.5), 2.0) == {}
