"""The most likely counts of a table: those of least squares among the counts that can be."""

import numpy as np
import pytest
from scipy.optimize import nnls

from dpmodels.authoring.lint import parse
from dpmodels.contract.derivation.polynomial import moved_by_rounding, polynomial_of
from dpmodels.contract.derivation.reach import reach
from dpmodels.contract.schema import Schema
from dpmodels.methods.parts.marginals import NoisyTable
from dpmodels.report.counts.likely import Side, likely, side_of, spread

SHAPES = ((2, 5), (6, 13), (3, 4, 5))


def made(shape: tuple[int, ...], seed: int) -> tuple[NoisyTable, dict[int, Side]]:
    """Return noisy counts of which most are next to nothing, and sums of the true ones along each axis, with noise."""
    rng = np.random.default_rng(seed)
    true, stddev = rng.dirichlet(np.full(np.prod(shape), 0.2)).reshape(shape) * 5000, rng.uniform(5, 20, shape)
    stddev[rng.random(shape) < 0.1] = 0.0
    true[stddev == 0] = 0.0
    counts = true + rng.normal(size=shape) * stddev
    table = NoisyTable(tuple("abc"[: len(shape)]), tuple(map(np.arange, shape)), counts, stddev)
    records, sides = float(true.sum()), dict[int, Side]()
    for axis, size in enumerate(shape):
        sums = np.moveaxis(true, axis, 0).reshape(size, -1).sum(axis=1)
        one = NoisyTable((table.names[axis],), (np.arange(size),), sums + rng.normal(0, 6, size), 6.0)
        side = side_of(table, one, records, are_exact=axis < len(shape) - 1)
        assert side is not None
        sides[axis] = side
    return table, sides


@pytest.mark.parametrize("shape", SHAPES)
def test_they_are_those_of_least_squares_none_below_0_and_add_up_to_what_is_exact(shape: tuple[int, ...]) -> None:
    for seed in range(5):
        table, sides = made(shape, seed)
        stddev, rows, sums = np.asarray(table.stddev).ravel(), list[np.ndarray](), list[float]()
        is_noisy, places = stddev > 0, np.indices(shape).reshape(len(shape), -1)
        for axis, side in sides.items():
            weights = np.full(len(side.rows), 1e3) if side.are_exact else 1 / np.sqrt(side.variances)
            rows += [weight * (places[axis] == cell) for cell, weight in enumerate(weights)]
            sums += (weights * side.rows).tolist()
        known = np.where(is_noisy, stddev, 1.0)
        of = np.vstack([np.diag(1 / known), *rows])[:, is_noisy]
        expected, _ = nnls(of, np.concatenate([(table.counts.ravel() / known), sums]), maxiter=10_000)
        counts = likely(table, sides).counts
        assert counts.ravel()[is_noisy] == pytest.approx(expected, abs=0.05)
        assert counts[np.asarray(table.stddev) > 0].min() >= 0
        exact = [axis for axis, side in sides.items() if side.are_exact]
        for axis in exact:
            added = np.moveaxis(counts, axis, 0).reshape(shape[axis], -1).sum(axis=1)
            assert added == pytest.approx(sides[axis].rows, abs=1e-2)


def test_rows_of_a_column_add_up_to_all_and_cells_of_a_table_are_joined_as_it_joins_them() -> None:
    table = NoisyTable(("a", "b"), (np.array([0, 0, 1]), np.arange(2)), np.zeros((2, 2)), 3.0)
    one = NoisyTable(("a",), (np.arange(3),), np.array([60.0, -20.0, 50.0]), np.array([1.0, 1.0, 2.0]))
    side = side_of(table, one, 100.0, True)
    assert side is not None and side.rows == pytest.approx([100 * 40 / 90, 100 * 50 / 90])
    assert side.variances.tolist() == [2, 4] and spread(side.variances, (0,), table).tolist() == [1, 1, 2, 2]
    halves = NoisyTable(("a",), (np.array([0, 1, 1]),), np.array([10.0, 50.0]), 1.0)
    assert side_of(table, halves, 100.0, True) is None  # a half of these is in two cells of the table


def test_noise_below_0_far_out_does_not_pull_a_mean_below_all_its_values() -> None:
    counts = np.array([[900.0, 80.0, -25.0], [10.0, 400.0, 610.0]])
    table = NoisyTable(("group", "amount"), (np.arange(2), np.arange(3)), counts, 20.0)
    sides = {0: Side(np.array([980.0, 1000.0]), np.ones(2), True)}
    most = likely(table, sides).counts
    assert most[0] == pytest.approx([900, 80, 0]) and counts[0] @ [10, 50, 1000] < 0 < 980 * 10 < most[0] @ [
        10,
        50,
        1000,
    ]


def test_a_table_that_the_group_looks_up_and_what_it_multiplies_rounded_are_written_out() -> None:
    schema, _ = parse("""
name: claims
columns:
  act: {type: categorical, values: [visit, surgery]}
  contract: {type: categorical, values: [plain, full]}
  cost: {type: number, min: 0, max: 1000, round: 2}
  paid: {type: derived, formula: "round(cost * {'visit': 70, 'surgery': 80}[act]) / 100"}
  fund: {type: derived, formula: "round((cost - paid) * {'plain': 50, 'full': 100}[contract]) / 100"}
  rest: {type: derived, formula: "cost - paid - fund", round: 2}
""")
    assert isinstance(schema, Schema)
    act, contract = "{'visit': 70, 'surgery': 80}[act]", "{'plain': 50, 'full': 100}[contract]"
    paid, fund, rest = (polynomial_of(schema.columns[name].formula or "") for name in ("paid", "fund", "rest"))
    assert paid == pytest.approx({("cost", act): 0.01})
    assert fund == pytest.approx({("cost", contract): 0.01, ("cost", contract, act): -1e-4})
    assert rest == pytest.approx({("cost",): 1, **{of: -one for of, one in (*paid.items(), *fund.items())}})
    assert len(polynomial_of("round(cost * 100) / 100 * size")) == 1  # nobody knows how far that moves
    assert ("cost",) not in polynomial_of("round(cost * 100) / 100 * size")
    assert ("cost",) not in polynomial_of("round(cost * 100) / 100 * {'a': 1, 'b': 101}[size]")
    assert moved_by_rounding("round(cost * 100) / 100 * 50 - 1") == pytest.approx(0.25)
    assert moved_by_rounding("round(round(cost * 100) / 100 * 50) / 100") == pytest.approx(0.0075)
    assert moved_by_rounding("round(cost * 100) / 100 * size") == moved_by_rounding("cost * size") == 0
    full = schema.columns["contract"].model_copy(update={"values": ("full",)})
    assert reach(contract, schema.columns) == (50, 100) and reach(contract, {"contract": full}) == (100, 100)
