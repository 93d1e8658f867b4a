"""Zooming: cells follow the released counts, hold every value once, and a record moves each zoom by one known norm."""

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.audit.data import inserted
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.cell_counts import STEP
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.zoom import Zoom, ZoomCounts

WIDE = 10**5
COLUMNS = {
    "code": {"type": "integer", "min": -WIDE, "max": WIDE},
    "price": {"type": "number", "min": -1000, "max": 9000, "round": 2, "nullable": True},
    "level": {"type": "number", "min": -1e6, "max": 1e6},
    "paid": {"type": "integer", "min": 0, "max": 10**6, "scale": "log", "zero_inflated": True},
    "day": {"type": "datetime", "min": date(1900, 1, 1), "max": date(2100, 12, 31)},
    "stars": {"type": "integer", "min": 1, "max": 5},
    "sick": {"type": "categorical", "values": ["no", "yes"]},
}
SCHEMA = Schema.model_validate({"name": "wide", "target": "sick", "columns": COLUMNS})
ATOMS = [-1, 0, 999]


def make_rows(rows: int) -> Records:
    rng = np.random.default_rng(4)
    price = np.round(rng.choice([4.99, 9.99, 20.0], rows), 2)
    table = {
        "code": pa.array(np.where(rng.random(rows) < 0.6, rng.choice(ATOMS, rows), rng.integers(0, 5000, rows))),
        "price": pa.array([None if lot < 0.1 else x for lot, x in zip(rng.random(rows), price, strict=True)]),
        "level": pa.array(rng.normal(5, 2, rows)),
        "paid": pa.array(rng.integers(0, 30, rows)),
        "day": pa.array(rng.integers(18000, 18400, rows).astype("datetime64[D]")),
        "stars": pa.array(rng.integers(1, 6, rows)),
        "sick": pa.array(rng.choice(["no", "yes"], rows)),
    }
    return Codec(SCHEMA).encode(pa.table(table))


def make_extremes() -> Records:
    """Return records at both ends of every column, and one without values."""
    ends = {
        "code": [-WIDE, WIDE, 0],
        "price": [-1000.0, 9000.0, None],
        "level": [-1e6, 1e6, 0.0],
        "paid": [0, 10**6, 0],
        "day": np.array(["1900-01-01", "2100-12-31", "1970-01-01"], dtype="datetime64[D]"),
        "stars": [1, 5, 3],
        "sick": ["no", "yes", "yes"],
    }
    return Codec(SCHEMA).encode(pa.table({name: pa.array(values) for name, values in ends.items()}))


def coarse() -> Zoom:
    return Zoom.coarse(Partition.fine(SCHEMA, 256), 16, 64)


def zoomed(records: Records, times: int, noise: float = 0.0) -> list[Zoom]:
    """Zoom by released counts: exact ones with noise added."""
    rng, found = np.random.default_rng(0), [coarse()]
    for _ in range(times):
        embedding = ZoomCounts(found[-1], 1)
        counts = embedding.lattice_sum(records).numpy() + np.rint(rng.normal(0, noise * STEP, embedding.dim))
        found.append(found[-1].cut(counts.astype(np.int64), 60 * STEP, 256))
    return found


def test_columns_of_many_values_are_zoomed_into_and_no_others():
    zoom = coarse()
    assert [zoom.partition.names[index] for index in zoom.zoomed] == ["code", "price", "level", "paid", "day"]
    assert zoom.partition.sizes == [16, 17, 16, 17, 16, 5]


def test_values_that_many_records_have_end_up_in_cells_of_their_own():
    column = zoomed(make_rows(20_000), 3, noise=20.0)[-1].partition.columns[0]
    first, last = column.grid.bounds
    alone = set(first[first == last].astype(int).tolist())
    assert alone >= set(ATOMS)


def test_however_wide_the_bounds_are_cells_hold_about_the_same_mass():
    records = make_rows(20_000)
    zooms = zoomed(records, 3, noise=10.0)
    shares = [np.bincount(zoom.partition.cells(records)[:, 2]).max() / 20_000 for zoom in zooms]
    assert shares[0] > 0.99 and shares[-1] < 0.02


@pytest.mark.parametrize("place", [0, 10, 30], ids=["first", "in the middle", "last"])
@pytest.mark.parametrize("who", range(3))
def test_a_record_moves_every_zoom_by_one_norm_on_cells_that_what_was_released_before_decides(place, who):
    records = make_rows(30)
    neighbor = inserted(records, make_extremes().take([who]), place)
    for zoom in zoomed(make_rows(20_000), 3):
        embedding = ZoomCounts(zoom, 1)
        moved = (embedding.lattice_sum(neighbor) - embedding.lattice_sum(records)).numpy().astype(object)
        assert (moved**2).sum() == len(zoom.zoomed) * STEP**2 <= embedding.l2_sensitivity**2
        assert embedding.l2_sensitivity == ZoomCounts(coarse(), 1).l2_sensitivity
        assert ZoomCounts(zoom, 3).l2_sensitivity == pytest.approx(3 * embedding.l2_sensitivity, rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_was_released_cells_cover_the_interval_without_gaps_and_stay_few(seed):
    rng, zoom = np.random.default_rng(seed), coarse()
    for _ in range(3):
        counts = rng.integers(-(10**9), 10**9, ZoomCounts(zoom, 1).dim) * STEP
        zoom = zoom.cut(counts, int(rng.integers(0, 10**8)) * STEP, 256)
    for index in zoom.zoomed:
        column, edges = zoom.partition.columns[index], zoom.partition.edges(index)
        assert edges[0] == 0 and edges[-1] == (column.interval.points or 2**31) and (np.diff(edges) > 0).all()
        assert len(edges) - 1 == column.cells <= 16 + 3 * 256


def test_what_is_drawn_in_a_cell_lies_in_it_and_every_value_has_one():
    zoom, rng = zoomed(make_rows(20_000), 3)[-1], np.random.default_rng(1)
    for column in (zoom.partition.columns[index] for index in zoom.zoomed):
        cells = rng.integers(0, column.cells, 2000).astype(np.int32)
        assert np.array_equal(column.grid.of(column.grid.draw(cells, rng)), cells)
        first, last = column.grid.bounds
        assert (
            (first <= last).all()
            and first[0] == column.low + (column.zero_state is not None)
            and last[-1] == column.high
        )
    ends = zoom.partition.cells(make_extremes())
    assert ends[0].tolist()[0] == 0 and ends[1].tolist()[0] == zoom.partition.sizes[0] - 1
    assert ends[2].tolist()[1] == zoom.partition.sizes[1] - 1  # no price


def test_codes_and_values_are_counted_in_the_same_cells():
    records, zoom = make_rows(500), zoomed(make_rows(20_000), 3)[-1]
    by_value = zoom.partition.codec.to_cells(records)
    assert np.array_equal(zoom.partition.cells(records), by_value[:, :-1])


def test_what_is_drawn_between_bounds_in_a_cut_cell_lies_in_both():
    column, rng = zoomed(make_rows(20_000), 3)[-1].partition.columns[2], np.random.default_rng(1)
    shares = column.grid.shares(4.0, 6.0)
    cells = np.repeat(np.flatnonzero(shares > 0), 50).astype(np.int32)
    made = column.grid.draw(cells, rng, 4.0, 6.0)
    assert 0 < (shares > 0).sum() < column.cells and ((shares >= 0) & (shares <= 1)).all()
    values = column.interval.from_unit(made)
    assert values.min() >= 4 - 1e-9 and values.max() <= 6 + 1e-9 and np.array_equal(column.grid.of(made), cells)
