"""Quantiles are off by what lies below them: what is expected of noise is what noise does, on cells of every kind."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpmodels.methods.parts.marginals import Marginal
from dpmodels.pages.glance import rank_error
from dpmodels.report.ranks import BRIDGE, expected_inside, rank_distances
from tests.kit.every_kind import one

COLUMN = one("{type: number, min: 0, max: 100, round: 0, cells: 100}").modelled["x"]
ROWS = 1000.0
DISTANCES = {"expected_rank_distance", "noise_rank_distance_95", "rank_distance_to_release"}


def marginal(counts: np.ndarray, runs: np.ndarray, narrow: float, whole: float, rng: np.random.Generator) -> Marginal:
    """Release counts of narrow cells, and better ones of what they are joined to."""
    pooled = np.bincount(runs, counts)
    noisy = counts + rng.normal(0, narrow, len(counts))
    return Marginal(noisy, narrow, runs, pooled + rng.normal(0, whole, len(pooled)), np.full(len(pooled), whole))


@pytest.mark.parametrize("width", [1, 5, 25])
@pytest.mark.parametrize("records_stddev", [0.0, 2.0, 20.0])
def test_what_noise_is_said_to_do_is_what_it_does(width: int, records_stddev: float) -> None:
    rng, shares = np.random.default_rng(0), np.linspace(0.5, 1.5, COLUMN.size) / COLUMN.size
    runs = np.arange(COLUMN.size) // width
    drawn = []
    for _ in range(1000):
        records = ROWS + rng.normal(0, records_stddev)
        noisy = marginal(ROWS * shares, runs, 3.0, 2.0, rng)
        facts = rank_distances(COLUMN, noisy, shares, records, records_stddev)
        drawn.append(facts["rank_distance_to_release"])
        assert facts.keys() == {*DISTANCES, "quantiles_within"}
    assert 0.55 < np.mean(drawn) / facts["expected_rank_distance"] < 1.08  # 1000 draws
    assert np.mean(np.array(drawn) > facts["noise_rank_distance_95"]) < 0.07  # one in twenty at most
    assert facts["noise_rank_distance_95"] < 2 * np.quantile(drawn, 0.95)


@pytest.mark.parametrize("width", [1, 5, 25])
@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_a_quantile_is_as_close_as_it_is_said_to_be_whatever_part_of_the_noise_a_fit_follows(
    width: int, part: float
) -> None:
    rng, shares = np.random.default_rng(0), np.full(COLUMN.size, 1 / COLUMN.size)
    biased = shares * np.linspace(0.98, 1.02, COLUMN.size)
    runs, beyond = np.arange(COLUMN.size) // width, 0
    for _ in range(500):
        noisy = marginal(ROWS * shares, runs, 3.0, 2.0, rng)
        followed = noisy.counts + ((noisy.pooled - np.bincount(runs, noisy.counts)) / width)[runs]
        fitted = (1 - part) * biased + part * followed / followed.sum()
        facts = rank_distances(COLUMN, noisy, fitted, ROWS, 0.0)
        beyond += np.abs(np.cumsum(fitted - shares)).max() > rank_error(facts)
    assert beyond <= 0.07 * 500  # one in twenty at most


def test_reports_of_earlier_layouts_are_read_as_they_were_written() -> None:
    facts = {"expected_rank_distance": 0.01, "noise_rank_distance_95": 0.03, "rank_distance_to_release": 0.02}
    assert rank_error(facts) == pytest.approx(0.05)
    assert rank_error(facts | {"quantiles_within": 0.036}) == 0.036
    del facts["noise_rank_distance_95"]
    assert rank_error(facts) == pytest.approx(0.03)


def test_a_cell_that_holds_less_than_the_noise_within_it_counts_as_a_whole() -> None:
    rng, shares = np.random.default_rng(0), np.full(COLUMN.size, 0.0)
    shares[:2], shares[50:] = 0.475, 0.001
    runs = np.minimum(np.arange(COLUMN.size) // 50, 1)
    noisy = marginal(ROWS * shares, runs, 20.0, 2.0, rng)
    facts = rank_distances(COLUMN, noisy, shares, ROWS, 0.0)
    assert "rank_distance_in_a_cell" not in facts  # the first cell holds nearly all
    states = replace(noisy, cell_of=np.where(runs == 0, np.arange(COLUMN.size), COLUMN.size))
    cells, cell_of = np.unique(states.cell_of, return_inverse=True)
    pooled = np.bincount(cell_of, noisy.counts)
    few = replace(noisy, cell_of=cell_of, pooled=pooled, pooled_stddev=np.full(len(cells), 2.0))
    facts = rank_distances(COLUMN, few, shares, ROWS, 0.0)
    assert facts["rank_distance_in_a_cell"] == pytest.approx(0.05)
    assert facts["quantiles_within"] == pytest.approx(
        math.hypot(facts["noise_rank_distance_95"], facts["rank_distance_to_release"]) + 0.05
    )


def test_what_is_right_of_joined_cells_is_not_lost_in_the_noise_of_narrow_ones() -> None:
    rng, shares = np.random.default_rng(0), np.full(COLUMN.size, 1 / COLUMN.size)
    runs = np.arange(COLUMN.size) // 10
    joined = rank_distances(COLUMN, marginal(ROWS * shares, runs, 20.0, 1.0, rng), shares, ROWS, 0.0)
    alone = rank_distances(COLUMN, Marginal.plain(ROWS * shares, 20.0), shares, ROWS, 0.0)
    assert joined["expected_rank_distance"] < 0.7 * alone["expected_rank_distance"]
    moved = np.roll(shares * (np.arange(COLUMN.size) < 50) * 2, 50)  # all of it in the upper half
    far = rank_distances(COLUMN, marginal(ROWS * shares, runs, 0.1, 0.1, rng), moved, ROWS, 0.0)
    assert far["rank_distance_to_release"] == pytest.approx(0.5, abs=0.02)


def test_cells_that_are_no_runs_are_counted_one_by_one_and_categories_have_no_order() -> None:
    shares = np.full(COLUMN.size, 1 / COLUMN.size)
    mixed = marginal(ROWS * shares, np.arange(COLUMN.size)[::-1] // 2, 1.0, 0.1, np.random.default_rng(0))
    assert rank_distances(COLUMN, mixed, shares, ROWS, 0.0)["expected_rank_distance"] == pytest.approx(
        BRIDGE * math.sqrt(COLUMN.size) / ROWS, abs=1e-8
    )
    assert expected_inside(np.ones(3)) == 0
    word = one("{type: categorical, values: [a, b]}").modelled["x"]
    assert rank_distances(word, Marginal.plain(np.ones(2), 1.0), np.full(2, 0.5), 2.0, 0.0) == {}
