"""Sampling under constraints: every row keeps them, the rest of the distribution stays, and the same seed repeats."""

import numpy as np
import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.generators.constraints import Rules, caution_of_rules, sample_valid
from dpmodels.generators.refinements import spares
from tests.kit.cells import TEXT, Cells, make
from tests.kit.errors import refused


def draw(model: Cells, rows: int, seed: int = 0) -> Records:
    return Records.concat(list(sample_valid(model, rows, seed)))


def stays(plain: Records, records: Records) -> np.ndarray:
    """Tell in which of the first rows nothing was changed."""
    count = min(len(plain), len(records))
    same = (plain.states[:count] == records.states[:count]) & (plain.values[:count] == records.values[:count])
    return np.asarray(same.all(axis=1))


def shift(schema: Schema, plain: Records, records: Records, name: str) -> float:
    """Return the largest difference of a column's running shares, null among its last cells."""
    sizes, at = Codec(schema).cell_sizes, list(schema.modelled).index(name)
    cells = [Codec(schema).to_cells(rows)[:, at] for rows in (plain, records)]
    one, other = (np.cumsum(np.bincount(column, minlength=sizes[at])) / len(column) for column in cells)
    return float(np.abs(one - other).max())


@pytest.mark.parametrize("rule", ["start <= end", "start < end"])
def test_every_row_keeps_the_constraint_and_passes_the_gate(rule: str) -> None:
    schema = make(f"[{rule}]")
    model = Cells(schema)
    plain = next(model.sample(4096, 0))
    broken = ~Rules(schema).hold(plain)
    assert 0.1 < broken.mean() < 0.6  # the generator itself does not know the rule
    records = draw(model, 5000)
    gate = Gate(schema, raw=False, rows=5000)
    assert gate.check(Codec(schema).decode(records)) and not gate.broken
    assert stays(plain, records)[~broken].mean() > 0.8  # a row that keeps it gives way only for its columns' sake


def test_the_classes_and_the_nulls_keep_their_shares_and_short_stays_stay_short() -> None:
    model = Cells(make())
    plain, records = next(model.sample(4096, 0)), draw(model, 4096)
    assert np.array_equal(np.bincount(plain.states[:, 2]), np.bincount(records.states[:, 2]))
    assert abs((records.states[:, 1] == 1).mean() - (plain.states[:, 1] == 1).mean()) < 0.02
    table = Codec(model.schema).decode(records).to_pandas().dropna()
    stay = table["end"] - table["start"]
    assert 0.55 < (stay < 10).mean() < 0.75 and (stay > 60).mean() < 0.06


def test_the_same_seed_repeats_and_another_one_does_not() -> None:
    model = Cells(make())
    one, two, other = draw(model, 6000), draw(model, 6000), draw(model, 6000, seed=1)
    assert np.array_equal(one.states, two.states) and np.array_equal(one.values, two.values)
    assert not np.array_equal(one.values, other.values)


def test_null_limits_are_kept() -> None:
    model = Cells(make(limit=", max_null_share: 0.1"), null=0.4)
    records = draw(model, 5000)
    assert (records.states[:, 1] == 1).sum() <= 500 and (records.states[:, 1] == 1).mean() > 0.09
    assert Rules(model.schema).hold(records).all()


def test_without_constraints_nothing_is_touched() -> None:
    model = Cells(make("[]"))
    for left, right in zip(model.sample(9000, 3), sample_valid(model, 9000, 3), strict=True):
        assert np.array_equal(left.states, right.states) and np.array_equal(left.values, right.values)


@pytest.mark.parametrize("rules", ["[start <= end]", "[start < end, 'when ward = b then end > 20']"])
def test_columns_of_rules_keep_the_shares_that_were_drawn_and_nulls_and_classes_stay(
    rules: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that only stand in for broken ones would make ends later and starts earlier."""
    model = Cells(make(rules), noise=0.4)
    plain, records = next(model.sample(4096, 0)), draw(model, 4096)
    assert 0.1 < (~Rules(model.schema).hold(plain)).mean() < 0.5 and Rules(model.schema).hold(records).all()
    assert max(shift(model.schema, plain, records, name) for name in ("start", "end")) < 0.02
    assert np.array_equal(np.bincount(plain.states[:, 2]), np.bincount(records.states[:, 2]))
    both = [np.histogram2d(rows.states[:, 1], rows.states[:, 2], (2, 2))[0] for rows in (plain, records)]
    assert np.abs(both[0] - both[1]).max() <= ("when" in rules) * 60
    monkeypatch.setattr(spares, "FEW", 1.0)
    monkeypatch.setattr(spares, "MOST_LOST", 1.0)
    assert max(shift(model.schema, plain, draw(model, 4096), name) for name in ("start", "end")) > 0.04


def test_a_range_that_a_rule_is_about_is_not_emptied_where_its_columns_are_drawn_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who began of late has no rating: drawn apart, one row in 600 has both, and a cell of begins is far wider."""
    schema = make("['when start > 358 then end = null']")
    model = Cells(schema, noise=1.0, null=0.033)
    plain = next(model.sample(4096, 0))

    def late(records: Records) -> float:
        return float((Rules(schema).numbers(records, "start") > 358).mean())

    records = draw(model, 4096)
    assert Rules(schema).hold(records).all() and 0.01 < late(plain) < 0.03
    assert late(records) > 0.85 * late(plain)
    monkeypatch.setattr(spares, "MOST_SIDES", -1)  # cells as wide as the schema has them
    assert late(draw(model, 4096)) < 0.5 * late(plain)


class Seldom(Cells):
    """Draws a stay in two hundred that ends long before it begins."""

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        cells = np.tile(np.array([[3, 20, 0]], dtype=np.int32), (rows, 1))
        cells[rng.random(rows) < 0.005] = [20, 3, 1]
        cells[rng.random(rows) < 0.3, 2] = 1
        return Codec(self.schema).from_cells(cells, rng)


def test_where_hardly_a_row_breaks_a_rule_all_others_stay_as_they_were_drawn() -> None:
    model = Seldom(make())
    plain, records = next(model.sample(4096, 0)), draw(model, 4096)
    broken = ~Rules(model.schema).hold(plain)
    assert 5 < broken.sum() < 40 and Rules(model.schema).hold(records).all()
    assert np.array_equal(stays(plain, records), ~broken)


def test_among_many_classes_the_columns_of_rules_keep_their_shares_too() -> None:
    """A class of thirty rows has too few in each cell for its own columns to be kept, but all together have not."""

    class Wards(Cells):
        def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
            records = super().draw(rows, rng, device)
            records.states[:, 2] = rng.integers(0, 150, rows)
            return records

    wards = str([f"w{number}" for number in range(150)])
    schema, faults = parse(TEXT.format(constraints="[start <= end]", limit="").replace("[a, b]", wards))
    assert schema is not None, faults
    model = Wards(schema, noise=0.3)
    plain, records = next(model.sample(4096, 0)), draw(model, 4096)
    assert max(shift(schema, plain, records, name) for name in ("start", "end")) < 0.025
    assert np.array_equal(np.bincount(plain.states[:, 2]), np.bincount(records.states[:, 2]))


def test_a_batch_is_the_same_rows_whether_or_not_those_before_it_are_drawn() -> None:
    model = Cells(make(), noise=0.4)
    (alone,) = sample_valid(model, 4096, 7, first=1)
    _, second = sample_valid(model, 8192, 7)
    assert np.array_equal(alone.values, second.values) and np.array_equal(alone.states, second.states)


class Never(Cells):
    """Draws nothing but stays that end before they begin."""

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        return Codec(self.schema).from_cells(np.tile(np.array([[31, 0, 0]], dtype=np.int32), (rows, 1)), rng)


def test_rows_of_a_generator_that_never_keeps_the_constraint_are_put_in_order_and_the_report_says_so() -> None:
    model = Never(make())
    records, drawn = draw(model, 300), next(model.sample(300, 0))
    assert Rules(model.schema).hold(records).all()
    assert np.array_equal(records.states[:, 2], drawn.states[:, 2])
    table, before = (Codec(model.schema).decode(rows).to_pandas() for rows in (records, drawn))
    assert (table.start == before.end).all() and (table.end == before.start).all()
    said = caution_of_rules(model, 300, 0)
    assert "about 0 % keep `start <= end`" in said and "about 100 % of the rows were made to fit" in said
    assert caution_of_rules(Cells(make()), 300, 0) == ""


def test_rules_that_no_row_can_keep_together_are_named() -> None:
    rules = str([f"when ward = {ward} then start {sign}" for ward in "ab" for sign in ("> 300", "< 100")])
    with refused(DataError, r"`when ward = a then start > 300`.*contradict each other"):
        draw(Cells(make(rules)), 100)


AWKWARD = """
name: awkward
constraints: [low <= middle, middle < high, early <= late]
columns:
  low: {type: integer, min: -5, max: 40, zero_inflated: true, nullable: true, outside: clip}
  middle: {type: number, min: -2.5, max: 80, round: 1, dtype: float32, nullable: true}
  high: {type: number, min: 0, max: 1000, scale: log}
  early: {type: datetime, min: 2020-01-01, max: 2024-12-31, resolution: minute, nullable: true}
  late: {type: datetime, min: 2019-06-01, max: 2024-12-31, resolution: minute, dtype: "timestamp[ms]"}
"""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.nightly_if("1", "2")  # beside one seed
def test_chains_of_columns_on_different_lattices_pass_the_gate(seed: int) -> None:
    """What is kept in encoded form is kept by the table that is handed over, to the last digit."""

    class Uniform(Cells):
        def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
            codec = Codec(self.schema)
            cells = np.stack([rng.integers(0, size, rows) for size in codec.cell_sizes], axis=1)
            return codec.from_cells(cells.astype(np.int32), rng)

    schema, faults = parse(AWKWARD)
    assert schema is not None, faults
    records = draw(Uniform(schema), 3000, seed)
    gate = Gate(schema, raw=False, rows=3000)
    gate.check(Codec(schema).decode(records))
    assert not gate.broken
    nulls = records.states[:, 0] == schema.modelled["low"].null_state
    assert nulls.any() and not nulls.all()


CLINIC = """
name: clinic
target: sick
constraints: ["when sick then fee > 0", "when kind = child then age < 18", "when not sick then kind != null"]
columns:
  sick: {type: boolean}
  fee: {type: number, min: 0, max: 900, scale: log, round: 1, zero_inflated: true, nullable: true}
  age: {type: integer, min: 0, max: 99, cells: 10}
  kind: {type: categorical, values: [child, adult], nullable: true}
"""


class Visits(Cells):
    """Draws visits of which a tenth breaks a rule by noise, and more by where a value falls within its cell."""

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        sick, child = rng.random((2, rows)) < 0.5
        fee = np.where(sick | (rng.random(rows) < 0.5), rng.integers(0, 32, rows), 32)  # 32 is exactly zero
        fee = np.where(rng.random(rows) < 0.1, rng.integers(32, 34, rows), fee)
        age = np.where(child, rng.integers(0, 2, rows), rng.integers(0, 10, rows))
        kind = np.where(rng.random(rows) < 0.1, rng.integers(0, 3, rows), np.where(child, 0, 1))
        return Codec(self.schema).from_cells(np.stack([sick, fee, age, kind], axis=1).astype(np.int32), rng)


def test_every_row_keeps_every_rule_of_the_form_when_then_and_the_rest_stays() -> None:
    schema, faults = parse(CLINIC)
    assert schema is not None, faults
    model, rules = Visits(schema), Rules(schema)
    plain, records = next(model.sample(4096, 0)), draw(model, 4096)
    broken = ~rules.hold(plain)
    assert 0.08 < broken.mean() < 0.5 and rules.hold(records).all()
    table = Codec(schema).decode(records)
    gate = Gate(schema, raw=False, rows=4096)
    assert gate.check(table) and not gate.broken
    frame = table.to_pandas()
    assert (frame.fee[frame.sick] > 0).sum() + frame.fee[frame.sick].isna().sum() == frame.sick.sum()
    assert (frame.age[frame.kind == "child"] < 18).all() and frame.kind[~frame.sick].notna().all()
    assert stays(plain, records)[~broken].mean() > 0.8
    assert np.array_equal(np.bincount(plain.states[:, 0]), np.bincount(records.states[:, 0]))
    assert np.array_equal(draw(model, 4096).values, records.values)


def test_a_value_whose_cell_reaches_into_the_rule_is_drawn_from_that_part_of_it() -> None:
    schema, _ = parse(CLINIC)
    assert schema is not None
    cells = np.tile(np.array([[1, 3, 1, 0]], dtype=np.int32), (2000, 1))  # a child between 10 and 19
    records = Codec(schema).from_cells(cells, np.random.default_rng(0))
    rules = Rules(schema)
    settled = rules.settle(records, np.random.default_rng(1))
    assert rules.hold(settled).all() and not rules.hold(records).all()
    assert np.array_equal(Codec(schema).to_cells(settled), cells)
    ages = Codec(schema).decode(settled)["age"].to_numpy()
    assert set(ages) == set(range(10, 18)) and np.bincount(ages)[10:].min() > 170


class Ill(Visits):
    """Draws nothing but visits that break every rule, or one that keeps them all now and then."""

    kept = 0.0

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        cells = np.tile(np.array([[1, 32, 5, 0], [0, 32, 5, 2]], dtype=np.int32), (rows, 1))[:rows]
        cells[rng.random(rows) < self.kept] = [1, 30, 1, 1]
        return Codec(self.schema).from_cells(cells, rng)


@pytest.mark.parametrize("kept", [0.0, 0.0001])
def test_rows_of_a_generator_that_hardly_ever_keeps_a_rule_are_made_to_fit(kept: float) -> None:
    schema, _ = parse(CLINIC)
    assert schema is not None
    model = Ill(schema)
    model.kept = kept
    records, drawn = draw(model, 2000), next(model.sample(2000, 0))
    rules = Rules(schema)
    assert rules.hold(records).all() and rules.hold(drawn).mean() < 0.01
    gate = Gate(schema, raw=False, rows=2000)
    assert gate.check(Codec(schema).decode(records)) and not gate.broken
    assert abs((records.states[:, 0] == 1).mean() - 0.5) < 0.05  # what no rule is about stays as it was drawn
    ages = Codec(schema).decode(records).to_pandas().age
    assert kept or ages[records.states[:, 0] == 1].max() < 18
    assert np.array_equal(draw(model, 2000).values, records.values)
    said = caution_of_rules(model, 2000, 0)
    assert "were made to fit" in said and "`when sick then fee > 0`" in said


def test_null_limits_that_the_generator_never_keeps_are_kept() -> None:
    schema = make(limit=", max_null_share: 0.1")
    records = draw(Cells(schema, null=1.0), 1000)
    assert (records.states[:, 1] == 1).sum() <= 100 and Rules(schema).hold(records).all()
