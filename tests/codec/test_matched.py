"""Keys are joined alike whether they are objects or Arrow arrays, of whatever widths and chunks."""

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.codec.stacked import joined, matched, numbered, objects_of


def chunked(values: list[object], kind: pa.DataType, rng: np.random.Generator) -> pa.ChunkedArray:
    cut = int(rng.integers(0, len(values) + 1))
    return pa.chunked_array([pa.array(values[:cut], kind), pa.array(values[cut:], kind)], kind)


@pytest.mark.parametrize("kinds", [("int64", "int8"), ("uint64", "int64"), ("string", "large_string")])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_rows_are_matched_as_python_matches_tuples(kinds: tuple[str, str], columns: int) -> None:
    types = [getattr(pa, kind)() for kind in kinds]
    for seed in range(60):
        rng = np.random.default_rng(seed)
        sides: list[list[list[object]]] = []
        for size in rng.integers(0, 12, 2):
            values = rng.integers(0, 4, (columns, int(size)))
            words = [[f"v{value}" for value in column] for column in values]
            sides.append([list(map(int, column)) for column in values] if kinds[0] != "string" else words)
        parents, children = (
            [chunked(column, kind, rng) for column in side] for side, kind in zip(sides, types, strict=True)
        )
        above = [list(zip(*side, strict=True)) for side in sides]
        expected = [above[0].index(row) if row in above[0] else -1 for row in above[1]]
        assert matched(parents, children).tolist() == expected
        arrays = [[objects_of(column) for column in side] for side in (parents, children)]
        assert matched(*arrays).tolist() == expected
        number = numbered([joined(pair) for pair in zip(parents, children, strict=True)])
        assert len(set(number.tolist())) == len(set(above[0]) | set(above[1]))


def test_null_is_a_value_of_its_own_and_no_zero() -> None:
    rows = [pa.chunked_array([[0, None, 0, None]]), pa.chunked_array([["a", "a", None, None]])]
    assert len(set(numbered(rows).tolist())) == 4
    assert objects_of(pa.array(["a", None, "a"]).dictionary_encode()).tolist() == ["a", None, "a"]


def test_whole_numbers_of_the_widest_types_are_not_mixed_up() -> None:
    parents, children = pa.chunked_array([pa.array([2**64 - 1], pa.uint64())]), pa.chunked_array([pa.array([-1, 5])])
    assert matched([parents], [children]).tolist() == [-1, -1]
