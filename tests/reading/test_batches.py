"""An answer comes in batches, and where they end decides nothing: one row more shifts the ends of all that follow."""

import sqlite3
from datetime import date, datetime, time, timedelta
from itertools import permutations
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from dpmodels.errors import DataError
from dpmodels.reading.database import Query, _column, read_query
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


UUIDS = [UUID(int=number) for number in range(3)]
VALUES = {
    "numbers": [1, 2.5, -4, float("nan")],
    "truths": [True, False],
    "texts": ["1", "north"],
    "bytes": [b"1"],
    "days": [date(2024, 2, 29)],
    "moments": [datetime(2024, 2, 29, 8)],
    "times": [time(8)],
    "spans": [timedelta(hours=1)],
    "identifiers": UUIDS,
}


def column(values: list[object]) -> list[tuple[type, str]] | None:
    """Read a column of any types, as one batch; None where it is refused."""
    try:
        read = _column("x", values, pa.string(), {}).to_pylist()
    except DataError:
        return None
    return [(type(value), repr(value)) for value in read]


@pytest.mark.parametrize("family", VALUES)
@pytest.mark.parametrize("strange", VALUES)
def test_a_value_of_another_family_is_refused_and_moves_no_other(family: str, strange: str) -> None:
    """DuckDB's unions and columns without types may hold any; 1 and True are alike to Python, so types count."""
    values = [*VALUES[family], None]
    alone = column(values)
    assert alone is not None
    for more in VALUES[strange]:
        for place in range(len(values) + 1):
            read = column([*values[:place], more, *values[place:]])
            assert (read is None) == (family != strange), (more, place)
            if read is not None:
                assert [*read[:place], *read[place + 1 :]] == alone


def test_identifiers_are_text_in_any_order() -> None:
    for values in permutations([*UUIDS, None]):
        assert column(list(values)) == [(type(value and ""), repr(value and str(value))) for value in values]
