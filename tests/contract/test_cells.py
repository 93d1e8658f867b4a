"""Cells of an interval: they cover it, none is empty, and what is drawn in one lies in it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.codec.encode import Codec
from dpmodels.contract.continuous import Continuous
from dpmodels.contract.schema import Schema
from tests.kit.every_kind import one
from tests.kit.records import same


def column_of(text: str) -> Continuous:
    column = one(text).modelled["x"]
    assert isinstance(column, Continuous)
    return column


@pytest.mark.parametrize(
    "column",
    [
        "{type: integer, min: 0, max: 99999, scale: log, zero_inflated: true, cells: 32}",
        "{type: integer, min: -5, max: 5, zero_inflated: true, cells: 10}",
        "{type: integer, min: 1, max: 99, cells: 50}",
        "{type: integer, min: 3, max: 3}",
        "{type: number, min: 0, max: 1, round: 1, scale: log}",
        "{type: datetime, min: 2020-01-01, max: 2020-02-29, cells: 7}",
    ],
)
def test_no_cell_is_empty_and_drawing_stays_in_the_cell(column: str) -> None:
    codec = Codec(one(column))
    cells = np.repeat(np.arange(codec.cell_sizes[0], dtype=np.int32), 50)[:, None]
    drawn = codec.from_cells(cells, np.random.default_rng(2))
    assert np.array_equal(codec.to_cells(drawn), cells)
    assert same(codec.encode(codec.decode(drawn)), drawn)


def test_equal_cells_of_a_linear_scale_are_drawn_from_evenly() -> None:
    codec = Codec(one("{type: integer, min: 0, max: 9, cells: 2}"))
    drawn = codec.decode(codec.from_cells(np.zeros((20_000, 1), dtype=np.int32), np.random.default_rng(3)))
    shares = np.bincount(drawn["x"].to_numpy(), minlength=10) / 20_000
    assert np.allclose(shares, [0.2] * 5 + [0] * 5, atol=0.02)


@settings(max_examples=100, deadline=None)
@given(points=st.integers(2, 10**6), cells=st.integers(1, 4096), log=st.booleans(), zero=st.booleans())
def test_cells_partition_the_lattice(points: int, cells: int, log: bool, zero: bool) -> None:
    cells, scale = min(cells, points - zero), "log" if log else "linear"
    text = f"{{type: integer, min: 0, max: {points - 1}, cells: {cells}, scale: {scale}, zero_inflated: {zero}}}"
    edges = column_of(text).edges
    assert len(edges) == cells + 1 and edges[0] == 0 and edges[-1] == points - zero and (np.diff(edges) > 0).all()


def test_cell_bounds_are_the_extreme_values_of_each_cell(schema: Schema) -> None:
    rng = np.random.default_rng(0)
    for column in schema.modelled.values():
        if column.continuous:
            first, last = column.grid.bounds
            assert len(first) == len(last) == column.cells and (first <= last).all()
            cells = rng.integers(0, column.cells, 500).astype(np.int32)
            x = column.interval.from_unit(column.grid.draw(cells, rng))
            assert (x >= first[cells]).all() and (x <= last[cells]).all()
            for values in (first, last) if column.decimals is not None else ():
                assert np.array_equal(column.grid.of(column.interval.to_unit(values)), np.arange(column.cells))


@pytest.mark.parametrize(
    ("keys", "cut", "drawn"),
    [
        ("cells: 7", False, "0x1.e1670105bcb26p-3 0x1.6d9bd04f5007ap-2 0x1.7c8fe2360d2bap-2"),
        ("cells: 7", True, "0x1.0382588b34cc2p-2 0x1.ffe4f4dd981ddp-2 0x1.076c836275654p-1"),
        ("cells: 7, round: 2", False, "0x1.e0387f1e0387fp-3 0x1.6dd0af23a9d7cp-2 0x1.7ca5409e30ba8p-2"),
    ],
)
def test_what_is_drawn_between_bounds_keeps_its_bits(keys: str, cut: bool, drawn: str) -> None:
    column = column_of(f"{{type: number, {keys}, zero_inflated: true, min: -3, max: 11.5}}")
    grid = column.cut(column.edges[[0, 1, 3, 4, 7]]).grid if cut else column.grid
    made = grid.draw(np.array([1, 2, 2], dtype=np.int32), np.random.default_rng(11), 0.3, 7.25)
    assert " ".join(u.hex() for u in made.tolist()) == drawn
