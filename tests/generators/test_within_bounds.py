"""No row has a derived value outside its bounds, and what it follows from keeps what it was drawn with."""

from pathlib import Path

import numpy as np
import pytest

from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.gate.expectations import Gate
from dpmodels.generators.constraints import Rules, caution_of_rules, sample_valid
from dpmodels.generators.refinements import within_bounds
from dpmodels.generators.sampling import Sampler
from dpmodels.hand_off.check_words import are_cautions
from tests.kit.every_kind import make as make_schema

MEMBERS = """
name: members
target: plan
{constraints}
columns:
  joined: {{type: datetime, min: 2015-01-01, max: 2024-12-31}}
  active: {{type: integer, min: 0, max: 3653, nullable: true, computed: "days_between(joined, seen)"}}
  seen: {{type: derived, formula: "add_days(joined, active)"{bounds}}}
  plan: {{type: categorical, values: [basic, gold]}}
"""


def members(bounds: str = ", max: 2024-12-31", constraints: str = "") -> Schema:
    return make_schema(MEMBERS.format(bounds=bounds, constraints=constraints))


class Late(Sampler):
    """Draws when members joined, and for how long they were active, each without a look at the other."""

    batch_rows = 4096

    def __init__(self, schema: Schema, mean: float = 6.0, first: int = 0) -> None:
        self.schema, self.mean, self.first = schema, mean, first

    def save(self, path: Path) -> None:
        raise NotImplementedError

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        joined, plan = rng.integers(self.first, 32, rows), rng.random(rows) < 0.3
        active = np.minimum(rng.exponential(self.mean * (1 + plan)), 31).astype(int)
        active = np.where(rng.random(rows) < 0.1 * self.schema.columns["active"].nullable, 32, active)
        return Codec(self.schema).from_cells(np.stack([joined, active, plan], axis=1).astype(np.int32), rng)


def draw(model: Sampler, rows: int = 4096, seed: int = 0) -> Records:
    return Records.concat(list(sample_valid(model, rows, seed)))


def shares(schema: Schema, records: Records, column: int) -> np.ndarray:
    cells = Codec(schema).to_cells(records)[:, column]
    return np.cumsum(np.bincount(cells, minlength=33)) / len(cells)


@pytest.mark.parametrize("mean", [2.0, 4.0])
def test_no_member_is_seen_after_the_last_day_and_the_columns_keep_their_cells(mean: float) -> None:
    schema = members()
    model = Late(schema, mean)
    (plain,) = model.sample(4096, 0)
    assert 0.05 < 1 - Rules(schema).hold(plain).mean() < 0.5  # the generator itself knows of no last day
    records = draw(model)
    gate = Gate(schema, raw=False, rows=4096)
    assert gate.check(Codec(schema).decode(records)) and not gate.broken
    for column in range(3):
        assert np.abs(shares(schema, plain, column) - shares(schema, records, column)).max() < 0.02
    long = [np.bincount(one.states[:, 2], one.values[:, 1]) / np.bincount(one.states[:, 2]) for one in (plain, records)]
    assert np.abs(long[0] - long[1]).max() < 0.015  # within each class
    again = draw(model)
    assert np.array_equal(again.states, records.states) and np.array_equal(again.values, records.values)


def test_those_who_joined_early_get_no_longer_times_because_late_ones_may_not_have_them(monkeypatch) -> None:
    """Where what was drawn is cut at the last day in truth, exchanged times are nearer to it than rows drawn anew."""
    schema = members()
    (plain,) = Late(schema, 4.0).sample(4096, 0)
    joined, active = (Rules(schema).numbers(plain, name) for name in ("joined", "active"))
    last = schema.derived_bounds[0].high
    truth = np.minimum(active, last - joined)

    def by_year(times: np.ndarray, begun: np.ndarray) -> np.ndarray:
        year, known = ((begun - schema.columns["joined"].low) // 365.25).astype(int), ~np.isnan(times)
        return np.bincount(year[known], times[known], 10)[:10] / np.bincount(year[known], minlength=10)[:10]

    def error() -> float:
        records = draw(Late(schema, 4.0))
        made = [Rules(schema).numbers(records, name) for name in ("active", "joined")]
        return float(np.abs(by_year(made[0], made[1]) - by_year(truth, joined)).mean())

    exchanged = error()
    monkeypatch.setattr(Rules, "exchange", lambda self, records: records)
    assert exchanged < 0.8 * error()


def test_an_exchange_keeps_every_value_within_its_class_and_touches_rows_without_need_of_it_once() -> None:
    schema = members()
    rules, (plain,) = Rules(schema), Late(schema).sample(4096, 0)
    records = Records(plain.states.copy(), plain.values.copy())
    broken = int((~rules.hold(records)).sum())
    within_bounds.exchange(records, schema.derived_bounds[0], rules)
    left = int((~rules.hold(records)).sum())
    assert left < 0.2 * broken
    changed = (records.values != plain.values).any(axis=1)
    assert changed.sum() <= 2 * (broken - left) and not (records.states[:, [0, 2]] != plain.states[:, [0, 2]]).any()
    for plan in (0, 1):
        members_of = plain.states[:, 2] == plan
        one, other = (np.sort(each.values[members_of, 1]) for each in (plain, records))
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("bounds", "constraints"),
    [
        (", min: 2020-01-01", ""),
        (", min: 2018-01-01, max: 2019-12-31", ""),
        (", max: 2024-12-31", "constraints: [when plan = gold then active > 100]"),
    ],
)
def test_bounds_go_with_each_other_and_with_other_rules(bounds: str, constraints: str) -> None:
    schema = members(bounds, constraints)
    gate = Gate(schema, raw=False, rows=3000)
    assert gate.check(Codec(schema).decode(draw(Late(schema), 3000))) and not gate.broken


def test_where_hardly_any_row_keeps_them_rows_are_made_to_fit_and_it_is_said() -> None:
    text = MEMBERS.format(bounds=", max: 2015-01-20", constraints="").replace("nullable: true, ", "")
    schema = make_schema(text)
    model = Late(schema, mean=20.0, first=20)  # all joined years later
    records = draw(model, 300)
    assert Rules(schema).hold(records).all()
    caution = caution_of_rules(model, 300, 0)
    assert (
        "`seen <= 2015-01-20`" in caution
        and "made to fit" in caution
        and are_cautions([*schema.remarks, caution], schema)
    )


NUMBERS = """
name: shop
columns:
  price: {type: number, min: 0, max: 100, dtype: float32}
  fee: {type: number, min: 0, max: 50, zero_inflated: true}
  share: {type: derived, formula: fee / price, max: 0.3}
  total: {type: derived, formula: price + fee, round: 1, min: 20, max: 90}
"""


class Uniform(Sampler):
    """Draws cells of two columns evenly."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def save(self, path: Path) -> None:
        raise NotImplementedError

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        sizes = Codec(self.schema).cell_sizes
        cells = np.stack([rng.integers(0, size, rows) for size in sizes], axis=1).astype(np.int32)
        return Codec(self.schema).from_cells(cells, rng)


def test_numbers_keep_their_bounds_to_the_last_bit() -> None:
    schema = make_schema(NUMBERS)
    table = Codec(schema).decode(draw(Uniform(schema), 20_000))
    assert max(table["share"].to_pylist()) <= 0.3
    assert min(table["total"].to_pylist()) >= 20 and max(table["total"].to_pylist()) <= 90
    assert Gate(schema, raw=False).check(table)


class Given(Sampler):
    """Draws the same few cells for every row, the first row's apart."""

    batch_rows = 4096

    def __init__(self, schema: Schema, cells: tuple[int, int, int], first: tuple[int, int, int]) -> None:
        self.schema, self.cells, self.first = schema, cells, first

    def save(self, path: Path) -> None:
        raise NotImplementedError

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        cells = np.full((rows, 3), self.cells, dtype=np.int32)
        cells[0] = self.first
        return Codec(self.schema).from_cells(cells, rng)


EARLY, LATE, NULL = (0, 0), (31, 31), (31, 32)


@pytest.mark.parametrize("rows", [1, 2, 300])
@pytest.mark.parametrize(
    ("of_all", "of_first"),
    [
        ((*LATE, 1), (*EARLY, 0)),  # one class has nothing to exchange
        ((*EARLY, 0), (*LATE, 1)),  # a class of one row, which is outside
        ((*LATE, 0), (*LATE, 0)),  # every row is outside
        ((*NULL, 0), (*LATE, 1)),  # nothing but nulls to exchange with
        ((*NULL, 0), (*NULL, 1)),
    ],
)
@pytest.mark.nightly_if("*-2")  # beside one row and many
def test_rows_are_made_whatever_a_class_has_to_exchange(
    rows: int, of_all: tuple[int, int, int], of_first: tuple[int, int, int]
) -> None:
    schema = members()
    records = draw(Given(schema, of_all, of_first), rows)
    assert len(records) == rows and Rules(schema).hold(records).all()


@pytest.mark.parametrize("rows", [1, 2])
def test_a_bound_and_a_rule_that_undo_each_other_in_one_column_are_kept_by_another(rows: int) -> None:
    schema = members(constraints="constraints: [when plan = gold then active > 3000]")
    records = draw(Given(schema, (*LATE, 1), (*LATE, 1)), rows)
    assert len(records) == rows and Rules(schema).hold(records).all()


def test_a_class_that_no_rule_allows_gives_way_even_where_it_is_all_of_a_batch() -> None:
    rule = "constraints: [when plan = gold then active > 3000]"
    schema = make_schema(MEMBERS.format(bounds=", max: 2016-12-31", constraints=rule).replace("nullable: true, ", ""))
    records = draw(Given(schema, (*LATE, 0), (*LATE, 1)), 1)
    assert Rules(schema).hold(records).all()
