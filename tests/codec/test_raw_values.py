"""A value has one number in whatever format it comes, and two values that differ have two."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.codec.fingerprint import Fingerprint
from dpmodels.codec.raw_values import NULL, UNREAD, number_values

MORNING = dt.datetime(2024, 2, 29, 8, 30)
ALIKE = {
    "numbers": [
        pa.array([3, -1, 0, None]),
        pa.array([3.0, -1.0, -0.0, None]),
        pa.array([3.0, -1.0, 0.0, float("nan")]),
        pa.array([Decimal("3.00"), Decimal(-1), Decimal(0), None]),
        pa.array(["3", "-1.0", " 0", None]),
        pa.array(["3", "-1.0", " 0", None]).dictionary_encode(),
        pa.chunked_array([[3], [-1, 0, None]]),
    ],
    "texts": [
        pa.array(["north", "", "3a", None]),
        pa.array([" north", "", "3a ", None], pa.large_string()),
        pa.array(["north", "", "3a", None], pa.string_view()),
    ],
    "truths": [pa.array([True, False, None]), pa.array(["true", "False", None]), pa.array([1, 0, None])],
    "moments": [
        pa.array([MORNING, None]),
        pa.array([MORNING, None], pa.timestamp("s")),
        pa.array(["2024-02-29T08:30:00", None]),
        pa.array(["2024-02-29 08:30", None]),
        pa.array(["2024-02-29T10:30:00+02:00", None]),
    ],
    "days": [pa.array([dt.date(2024, 2, 29)]), pa.array([dt.datetime(2024, 2, 29)]), pa.array(["2024-02-29"])],
}


@pytest.mark.parametrize("arrays", ALIKE.values(), ids=ALIKE.keys())
def test_a_value_has_one_number_in_every_type(arrays) -> None:
    first = number_values(arrays[0])
    assert all((number_values(array) == first).all() for array in arrays)
    assert len(set(first.tolist())) == len(first)


def test_what_cannot_be_read_is_no_null_and_quotes_nothing() -> None:
    lists = pa.array([[1], None])
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
    )
    assert number_values(lists).tolist() == [UNREAD, NULL] and number_values(broken).tolist() == [UNREAD]


def test_rows_are_known_in_any_order_and_under_columns_in_any_order() -> None:
    table = pa.table({"b": ["x", "y", "x"], "a": [1, 2, 3], "left": [7, 8, 9]})
    secret = bytes(range(32))

    def digest(rows: pa.Table, *names: str) -> str:
        fingerprint = Fingerprint(None, secret)
        for batch in rows.to_batches(max_chunksize=2):
            fingerprint.add_raw(batch, names)
        return fingerprint.digest

    whole = digest(table, "a", "b")
    assert digest(table.take([2, 0, 1]).select(["a", "b"]), "b", "a") == whole
    as_text = table.set_column(1, "a", pa.array(["1", "2", "3"]))
    assert digest(as_text, "a", "b") == whole
    swapped = pa.table({"b": ["y", "x", "x"], "a": [1, 2, 3]})
    for other in (swapped, table.slice(0, 2), pa.concat_tables([table, table.slice(0, 1)])):
        assert digest(other, "a", "b") != whole
    random = np.random.default_rng(0)
    digests = {digest(pa.table({"a": random.integers(0, 9, 5), "b": ["x"] * 5}), "a", "b") for _ in range(200)}
    assert len(digests) > 150
