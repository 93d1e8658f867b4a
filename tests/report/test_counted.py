"""What a formula gives in the cells of columns that were counted together, and the terms it is written out as."""

import math
from typing import Any

import numpy as np
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.contract.derivation.terms import may_have_mean, needs_values, terms_of
from dpmodels.contract.formula import names_in, reckon
from dpmodels.contract.schema import Schema
from dpmodels.errors import Unsuitable
from dpmodels.methods.parts.marginals import Marginal, NoisyTable
from dpmodels.report.counts.cell_values import CellValues
from dpmodels.report.derived.counted import Moments, _two_points, labels_of, mean_of, moments_of, tails_joined

SCHEMA, _ = parse("""
name: shop
columns:
  bags: {type: categorical, values: [0, 1, 2, 3]}
  cabin: {type: categorical, values: [Y, W, J], nullable: true}
  age: {type: integer, min: 0, max: 9}
  fee: {type: derived, formula: "bags * {'Y': 25, 'W': 10, 'J': 0}[cabin]", dtype: float64}
  zone: {type: derived, of: cabin, values: {Y: back, W: front, J: front}}
  many: {type: derived, formula: "bags > 1"}
  band: {type: derived, formula: "age // 5"}
""")
assert isinstance(SCHEMA, Schema)
VALUES = CellValues({name: SCHEMA.columns[name] for name in ("bags", "cabin", "age")}, {})


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("a * (1 - b)", ["a * (1 - b)"]),
        ("a * (1 - b) - 2 * c + 3", ["a * (1 - b) + 3", "-(2 * c)"]),
        ("(a + b) * c / 2", ["a * c / 2", "b * c / 2"]),
        ("max(a, b) + c - d / e", ["max(a, b)", "-(d / e)", "c"]),
        ("-(a - b * c) + c", ["--(b * c) + c", "-a"]),
        ("a * b * c", ["a * b * c"]),
        ("(a > b) + a + c + d * e", ["(a > b) + a", "d * e", "c"]),
    ],
)
def test_a_formula_is_the_sum_of_its_terms_each_of_as_few_columns_as_may_be(formula: str, terms: list[str]) -> None:
    assert terms_of(formula) == terms
    rng = np.random.default_rng(0)
    numbers = {name: rng.uniform(1, 9, 5) for name in names_in(formula)}
    assert np.allclose(sum(reckon(one, numbers, {}) for one in terms), reckon(formula, numbers, {}))


def test_a_formula_of_which_counts_tell_no_mean_is_known_before_a_charge() -> None:
    odd = "a % 7 + b ** c + weekday(d) + (e > 3) + max(f, 0) * days_between(g, h)"
    assert sorted(needs_values(odd)) == ["a", "b", "c", "d", "e"]
    for formula, target, may in (
        ("age * bags", None, True), ("age * bags * {'Y': 25, 'W': 10, 'J': 0}[cabin]", None, False),
        ("age * bags * {'Y': 25, 'W': 10, 'J': 0}[cabin]", "cabin", True),
        ("age % 2", None, False), ("bags % 2", None, True), ("age / bags", None, False),
    ):  # fmt: skip
        assert may_have_mean(formula, SCHEMA.columns, target) == may, (formula, target)


@pytest.mark.parametrize(("mean", "stddev"), [(5.0, 1.0), (1.0, 2.5), (9.5, 1.5), (0.0, 0.0), (5.0, 4.9)])
def test_two_values_have_the_moments_of_a_cell_and_lie_in_it(mean: float, stddev: float) -> None:
    values, weights = _two_points(mean, stddev, 0.0, 10.0)
    assert values.min() >= -1e-9 and values.max() <= 10 + 1e-9 and weights.sum() == pytest.approx(1)
    assert weights @ values == pytest.approx(mean)
    assert math.sqrt(weights @ (values - mean) ** 2) == pytest.approx(stddev, abs=1e-9)


def table(counts: Any, **cells: Any) -> NoisyTable:
    return NoisyTable(tuple(cells), tuple(np.array(one) for one in cells.values()), np.array(counts, float), 2.0)


def test_of_categories_a_formula_is_exact_and_of_joined_ones_as_far_off_as_they_are() -> None:
    fee = str(SCHEMA.derived["fee"].formula)
    counted = table([[100, 0, 0, 50], [0, 100, 0, 0], [0, 0, 50, 0]], bags=[0, 1, 2, 2], cabin=[0, 1, 2, 3])
    means, stddevs, shifts = moments = moments_of(fee, counted, VALUES, SCHEMA.columns)
    assert np.isnan(means[:, 3]).all() and means[:, 0].tolist() == [0, 25, 62.5] and stddevs[2, 0] == 12.5
    assert not shifts[:, :3].any()
    mean, error = mean_of(counted, moments) or (0, 0)
    assert mean == (100 * 10) / 250 and error == pytest.approx(
        math.sqrt(sum(4 * (m - mean) ** 2 for m in means[:, :3].ravel())) / 250
    )
    assert mean_of(table([[3]], bags=[0] * 4), Moments(*[np.zeros((1, 1))] * 3)) is None  # drowned
    halves = table([[1, 2]], bags=[0] * 4, cabin=[0, 1, 1, 1])
    with pytest.raises(Unsuitable, match="cabin in cells that hold nulls among values"):
        moments_of(fee, halves, VALUES, SCHEMA.columns)


def test_a_derived_column_names_the_cells_of_its_column_where_each_has_one_value() -> None:
    zone, many, band = (SCHEMA.derived[name] for name in ("zone", "many", "band"))
    assert labels_of(zone, np.array([0, 1, 1, 2]), VALUES) == ["back", "front", "null"]
    assert labels_of(many, np.array([0, 1, 2, 2]), VALUES) == ["0", "0", "1"]
    assert labels_of(band, np.array([0, 0, 0, 0, 1, 2, 2, 2, 3, 3]), VALUES) == ["0", "0", "1", "1"]
    for column, numbers, cell in ((zone, [0, 0, 1, 2], "Y or W"), (band, [0, 0, 0, 0, 1, 1, 1, 1, 1, 2], "4 to 8")):
        with pytest.raises(Unsuitable, match=f"in cells such as {cell}, in which it has several values: group by"):
            labels_of(column, np.array(numbers), VALUES)


def test_the_ends_of_a_long_tail_add_no_noise_of_their_own() -> None:
    rng = np.random.default_rng(1)
    schema = Schema.model_validate(
        {"name": "bills", "columns": {"paid": {"type": "number", "min": 0, "max": 5000, "round": 0, "nullable": True}}}
    )
    column = schema.columns["paid"].cut(np.arange(0, 5001, 50))
    true = np.append(np.histogram(rng.exponential(90, 4000), np.arange(0, 5001, 50))[0], 500.0)
    released = Marginal.plain(true + rng.normal(0, 20, len(true)), 20.0)
    values = CellValues({"paid": column}, {"paid": released})
    cells = np.arange(len(true))
    whole = NoisyTable(("paid",), (cells,), released.counts, 20.0)
    joined = tails_joined(whole, ("paid",), values)
    assert joined.counts.size < 30 and joined.counts.sum() == pytest.approx(whole.counts.sum())
    assert joined.counts[-1] == whole.counts[-1] and joined.cells_of[0][-1] == joined.counts.size - 1
    assert (joined.stddev**2).sum() == pytest.approx(len(true) * 400) and joined.stddev[0] == 20
    errors = [(mean_of(one, moments_of("paid", one, values, schema.columns)) or (0, 0)) for one in (whole, joined)]
    assert abs(errors[1][0] - 90) < 3 * errors[1][1] < errors[0][1]
    assert tails_joined(whole, (), values).counts.tolist() == whole.counts.tolist()


def test_a_mean_is_off_by_as_much_as_numbers_that_rise_or_fall_together_in_a_cell_make_of_it() -> None:
    schema = Schema.model_validate(
        {
            "name": "bills",
            "columns": {one: {"type": "number", "min": 0, "max": 100, "round": 2} for one in ("due", "paid")},
        }
    )
    columns = {name: column.cut(column.edges[[0, -1]]) for name, column in schema.columns.items()}
    values = CellValues(columns, {name: Marginal.plain(np.array([5000.0]), 2.0) for name in columns})
    counted = table([[5000]], due=[0], paid=[0])
    due = np.random.default_rng(0).uniform(0, 100, 5000)
    for formula, linear in (("max(due - paid, 0)", False), ("due * paid / 100", False), ("due + paid", True)):
        moments = moments_of(formula, counted, values, schema.columns)
        mean, error = mean_of(counted, moments) or (0, 0)
        assert (moments.shift[0, 0] == pytest.approx(0, abs=1e-9)) == linear
        for paid in (due, 100 - due, np.random.default_rng(1).permutation(due)):
            true = reckon(formula, {"due": due, "paid": paid}, schema.columns).mean()
            assert abs(mean - true) < 2 * error + 0.02 * linear * mean, formula
