"""Raking: columns have the numbers of rows that are wanted, or as nearly as can be, and no row is taken twice."""

import numpy as np

from dpmodels.generators.refinements.raking import choose, rake


def test_both_columns_have_the_numbers_that_were_drawn() -> None:
    rng = np.random.default_rng(0)
    drawn, spare = rng.choice(4, (1000, 2), p=[0.4, 0.3, 0.2, 0.1]), rng.integers(0, 4, (8000, 2))
    cells, group = np.concatenate([drawn, spare]), np.zeros(9000, dtype=np.int64)
    fit = drawn[:, 0] <= drawn[:, 1] + 1
    possible = np.concatenate([np.ones(1000, dtype=bool), spare[:, 0] <= spare[:, 1] + 1])
    chosen = choose([*cells[possible].T], group[possible], fit, rng)
    rows = cells[possible][chosen]
    assert len(np.unique(chosen)) == 1000 and (rows[:, 0] <= rows[:, 1] + 1).all()
    for column in range(2):
        assert np.abs(np.bincount(rows[:, column]) - np.bincount(drawn[:, column])).max() <= 5
    own = np.flatnonzero(chosen < 1000)
    assert np.array_equal(chosen[own], own) and len(own) > 0.7 * fit.sum()  # who stays keeps its place


def test_a_group_keeps_its_size_and_one_without_candidates_is_left_as_it_was_drawn() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2, 0, 1], [60, 30, 10, 200, 200])
    fit = np.arange(100) % 3 > 0
    fit[90:] = False
    chosen = choose([rng.integers(0, 3, 500)], group, fit, rng)
    assert np.array_equal(group[chosen], group[:100]) and np.array_equal(chosen[90:], np.arange(90, 100))
    unfit = np.flatnonzero(~fit[:90])
    assert (chosen[unfit] >= 100).all() and len(np.unique(chosen)) == 100
    alone = choose([np.arange(5)], np.zeros(5, dtype=np.int64), np.arange(4) > 2, rng)
    assert np.array_equal(alone, np.arange(4))


def test_numbers_that_cannot_be_had_together_are_missed_by_both_columns_alike() -> None:
    """Half of the rows are to be in cell 1 of the one column and of the other, but no candidate is in both or none."""
    cells = np.repeat([[0, 1], [1, 0]], 500, axis=0)
    targets = [np.array([10, 90]), np.array([10, 90])]
    single, group = np.ones(1000, dtype=np.int64), np.zeros(1000, dtype=np.int64)
    weights = rake(np.full(1000, 0.5), single, targets, list(cells.T), np.array([100]), group)
    assert abs(weights.sum() - 100) < 1e-6 and weights.max() <= 1
    shares = np.bincount(cells[:, 0], weights)
    assert abs(shares[0] - shares[1]) < 20  # by whole steps the last column would have 90 and the first 10


def test_candidates_of_one_kind_are_weighed_at_once_as_they_are_one_by_one() -> None:
    rng = np.random.default_rng(0)
    cells, members = rng.integers(0, 5, (30, 2)), rng.integers(1, 9, 30)
    group, counts = np.arange(30) % 2, np.array([40, 30])
    targets = [np.array([10, 10, 10, 20, 20]), np.array([20, 20, 10, 10, 10])]
    begin = np.full(30, 0.5)
    at_once = rake(begin, members, targets, list(cells.T), counts, group)
    each = np.repeat(np.arange(30), members)
    singly = rake(begin[each], np.ones(len(each), np.int64), targets, list(cells[each].T), counts, group[each])
    assert np.allclose(at_once[each], singly) and at_once.max() <= 1
    assert np.allclose(np.bincount(group, at_once * members), counts)
