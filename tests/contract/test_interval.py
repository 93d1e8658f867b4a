"""Values on the unit interval and as whole numbers, and back."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.codec.encode import Codec
from dpmodels.contract.interval import UNIT_STEPS, Interval
from tests.kit.every_kind import one
from tests.kit.records import same


@settings(max_examples=60, deadline=None)
@given(data=st.data(), log=st.booleans(), zero=st.booleans(), width=st.integers(1, 2**40))
def test_integers_round_trip_exactly(data: st.DataObject, log: bool, zero: bool, width: int) -> None:
    low = 0 if zero else data.draw(st.integers(-(2**53) + 1, 2**53 - 1 - width))
    scale = "log" if log else "linear"
    codec = Codec(one(f"{{type: integer, min: {low}, max: {low + width}, scale: {scale}, zero_inflated: {zero}}}"))
    values = [*data.draw(st.lists(st.integers(low, low + width), min_size=1)), low, low + width]
    records = codec.encode(pa.table({"x": values}))
    assert codec.decode(records)["x"].to_pylist() == values
    cells = codec.to_cells(records)
    drawn = codec.from_cells(cells, np.random.default_rng(0))
    assert cells.min() >= 0 and cells.max() < codec.cell_sizes[0]
    assert np.array_equal(codec.to_cells(drawn), cells)
    assert same(codec.encode(codec.decode(drawn)), drawn)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.integers(-9999, 9999), min_size=1), log=st.booleans())
def test_rounded_numbers_round_trip_exactly(values: list[int], log: bool) -> None:
    scale = "log" if log else "linear"
    codec = Codec(one(f"{{type: number, min: -99.99, max: 99.99, round: 2, scale: {scale}, zero_inflated: true}}"))
    floats = [value / 100 for value in values]
    records = codec.encode(pa.table({"x": floats}))
    assert codec.decode(records)["x"].to_pylist() == floats
    drawn = codec.from_cells(codec.to_cells(records), np.random.default_rng(1))
    assert np.array_equal(codec.to_cells(drawn), codec.to_cells(records))


def test_no_negative_zero_comes_out() -> None:
    codec = Codec(one("{type: number, min: -1, max: 1, round: 1}"))
    assert str(codec.decode(codec.encode(pa.table({"x": [-0.04]})))["x"][0].as_py()) == "0.0"


def test_ranks_number_the_lattice_without_a_zero_that_is_a_state_of_its_own() -> None:
    values = np.array([-0.2, -0.1, 0.1, 0.2, 0.3])
    own = Interval(-0.2, 0.3, 1, log=False, zero_apart=True)
    assert own.rank(values).tolist() == [0, 1, 2, 3, 4] and own.points == 5 and own.places == 6
    assert own.value_at(own.rank(values)).tolist() == values.tolist()
    assert Interval(-0.2, 0.3, 1, log=False, zero_apart=False).rank(values).tolist() == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("decimals", [None, 2])
def test_every_place_is_that_of_its_own_unit_value(decimals: int | None, log: bool) -> None:
    own = Interval(-3.0, 17.5, decimals, log, zero_apart=False)
    assert own.places == (UNIT_STEPS + 1 if decimals is None else 2051)
    places = np.linspace(0, own.places - 1, 2051).round()
    assert np.array_equal(own.place(own.from_unit(own.unit_at(places))), places)
