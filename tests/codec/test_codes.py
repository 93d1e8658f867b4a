"""The stored form: one unsigned integer says what state and value say, and cells are runs of it."""

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.codec.codes import code_count, code_type, first_codes, from_codes, to_codes
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.kernels import CellFinder
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import DataError
from tests.kit.errors import refused
from tests.kit.every_kind import one

COLUMNS = [
    "{type: categorical, values: [a, b, c], nullable: true}",
    "{type: boolean}",
    "{type: integer, min: -5, max: 5, zero_inflated: true, nullable: true, cells: 10}",
    "{type: integer, min: 0, max: 99999, scale: log, zero_inflated: true, cells: 32}",
    "{type: integer, min: 0, max: 1000000000000, scale: log, cells: 4096}",
    "{type: integer, min: 10000, max: 1500000, nullable: true, cells: 256}",
    "{type: number, min: -99.99, max: 99.99, round: 2, zero_inflated: true}",
    "{type: number, min: 0.1, max: 7.7, round: 1, dtype: float32, nullable: true}",
    "{type: number, min: -1, max: 1, nullable: true, cells: 7}",
    "{type: number, min: 0, max: 1000, scale: log, zero_inflated: true}",
    "{type: datetime, min: 2020-01-01, max: 2020-02-29, cells: 7}",
]


@pytest.mark.parametrize("text", COLUMNS)
def test_codes_say_what_states_and_values_say(text: str) -> None:
    schema = one(text)
    codec, column = Codec(schema), next(iter(schema.modelled.values()))
    count, rng = code_count(column), np.random.default_rng(0)
    codes = np.unique(
        np.concatenate([rng.integers(0, count, 5000), np.arange(min(count, 50)), count - 1 - np.arange(3)])
    )
    codes = codes[codes >= 0].astype(code_type(column))
    states, values = from_codes(column, codes)
    assert np.array_equal(to_codes(column, states, values), codes)
    held = Records.coded([column], [codes])
    assert np.array_equal(held.states[:, 0], states) and np.array_equal(held.values[:, 0], values)
    # cells: the bisection among runs, the compiled table, and the column's own arithmetic
    partition, cells = (
        Partition.fine(schema, 4096, conditional=False),
        codec.to_cells(Records(states[:, None], values[:, None])),
    )
    runs, found = partition.runs[0], np.zeros(len(codes), dtype=np.uint32)
    CellFinder(first_codes(column), np.arange(len(first_codes(column))), count).find(codes, found)
    assert np.array_equal(found, cells[:, 0])
    fine = partition.codec.to_cells(held)[:, 0]
    assert held.codes is None  # states and values are what the rows are now
    assert np.array_equal(runs.cells(codes), fine)
    CellFinder(runs.first, runs.cell, runs.codes).find(codes, found)
    assert np.array_equal(found, fine)


def test_rows_held_as_codes_are_selected_and_joined_like_others(schema: Schema, table: pa.Table) -> None:
    coded, decoded = (Codec(schema).encode(table) for _ in range(2))
    plain = Records(decoded.states, decoded.values)
    for index in ([2, 0], np.array([True, False, False, True]), slice(1, 3)):
        assert np.array_equal(coded.take(index).states, plain.take(index).states)
    both = Records.concat([coded, plain.take([0])])
    assert len(both) == 5 and np.array_equal(both.values[:4], coded.values)


def test_codes_that_the_schema_does_not_have_never_reach_a_kernel(schema: Schema, table: pa.Table) -> None:
    codec = Codec(schema)
    batch = codec.to_arrow(codec.encode(table))
    index = batch.schema.get_field_index("smoker")
    columns = [*batch.columns[:index], pa.array([9, 0, 0, 0], pa.uint8()), *batch.columns[index + 1 :]]
    with refused(DataError, "belong to this schema", column=""):
        codec.from_arrow(pa.RecordBatch.from_arrays(columns, schema=batch.schema))
    bad = Records(np.full((2, len(schema.modelled)), 99, dtype=np.int32), np.zeros((2, len(schema.modelled))))
    with refused(DataError, "belong to this schema", column=""):
        codec.to_arrow(bad)
