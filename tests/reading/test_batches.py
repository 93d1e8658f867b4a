"""An answer comes in batches, and where they end decides nothing: one row more shifts the ends of all that follow."""

import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from dpmodels.errors import DataError
from dpmodels.reading.database import Query, read_query
from tests.kit.errors import refused

ROWS_OF_A_BATCH = 4


def read(folder: Path, values: list[object]) -> list[object]:
    """Read a column of numbers from a database without types."""
    place = folder / "values.db"
    place.unlink(missing_ok=True)
    with sqlite3.connect(place) as connection:
        connection.execute("create table t (x)")
        connection.executemany("insert into t values (?)", [(value,) for value in values])
    query = Query(f"sqlite:///{place}", "select x from t")
    batches = read_query(query, {"x": pa.float64()}, lambda names: None, ROWS_OF_A_BATCH)
    return [value for batch in batches for value in batch["x"].to_pylist()]


@pytest.mark.parametrize("place", [0, 2, 4, 8])
@pytest.mark.parametrize("more", [5, "5", None])
def test_text_beside_numbers_is_refused_wherever_batches_end(tmp_path: Path, place: int, more: object) -> None:
    values: list[object] = ["1"] * 4 + [1] * 4
    for column in (values, [*values[:place], more, *values[place:]]):
        with refused(DataError, "holds values of several types", column="x"):
            read(tmp_path, column)


def test_numbers_of_both_types_in_batches_of_their_own_are_read_as_they_are(tmp_path: Path) -> None:
    assert read(tmp_path, [1] * 4 + [2.5] * 4 + [None]) == [1] * 4 + [2.5] * 4 + [None]
