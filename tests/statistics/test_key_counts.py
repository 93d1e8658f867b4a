"""Keys are counted one for each row, whatever the type of the column, the batches, and the order of the rows."""

from collections import Counter
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.privacy import Sensitive
from dpmodels.statistics import key_counts
from dpmodels.statistics.key_counts import Coordinates, Figures, transform_key_counts

FIGURES = Figures(-3, 6)
STEPS = 8


def counted(array: pa.Array, counts: str, batch_rows: int = 1000) -> dict[str, int]:
    what = Coordinates({"x": counts}, FIGURES, 5, STEPS)
    batches = pa.table({"x": array}).to_batches(max_chunksize=batch_rows)
    exact = transform_key_counts(Sensitive(batches), what).reveal()
    public = {key: n for (_, key), n in zip(what.public, exact.public.tolist(), strict=True) if n}
    found = dict(zip(exact.keys.to_pylist(), exact.found.tolist(), strict=True))
    assert all(n % STEPS == 0 for n in [*public.values(), *found.values()])
    return {key: n // STEPS for key, n in {**public, **found}.items()}


VALUES = {
    "text": (
        pa.array(["a", "b", "a", None, "", "longer", "\x1b[1m"]),
        {"sa": 2, "sb": 1, "s": 1, "null": 1, "unread": 2},
    ),
    "dictionary": (pa.array(["a", "b", "a", None]).dictionary_encode(), {"sa": 2, "sb": 1, "null": 1}),
    "integer": (pa.array([1, 2, 1, None, 2**60]), {"i1": 2, "i2": 1, "null": 1, "unread": 1}),
    "float": (pa.array([1.0, 2.5, float("nan"), None, -0.0]), {"i1": 1, "f2.5": 1, "i0": 1, "null": 2}),
    "boolean": (pa.array([True, False, True, None]), {"btrue": 2, "bfalse": 1, "null": 1}),
    "nested": (pa.array([[1], None, [2]]), {"null": 1, "unread": 2}),
    "nothing": (pa.nulls(3), {"null": 3}),
    "dates": (pa.array([date(2020, 1, 1), None]), {"null": 1, "unread": 1}),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_an_open_set(kind):
    array, expected = VALUES[kind]
    assert counted(array, "values") == {"rows": len(array), **expected}


YEARS = {
    "dates": pa.array([date(1, 1, 1), date(2020, 5, 5), date(9999, 12, 31), None]),
    "times": pa.array([datetime(1, 1, 1), datetime(2020, 5, 5, 4), datetime(9999, 12, 31), None], pa.timestamp("us")),
    "text": pa.array(["0001-01-01", "2020-05-05T04:00:00Z", " 9999-12-31", "NA"]),
}


@pytest.mark.parametrize("kind", YEARS)
def test_moments_are_counted_by_year(kind):
    assert counted(YEARS[kind], "years") == {"rows": 4, "1": 1, "2020": 1, "9999": 1, "null": 1}


def test_a_time_with_a_zone_is_of_the_year_that_it_is_in_utc():
    moments = pa.array([datetime(2020, 12, 31, 23, 30)], pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    assert counted(moments.cast(pa.timestamp("us", "Asia/Tokyo")), "years") == {"rows": 1, "2020": 1}


@pytest.mark.parametrize("x", [0.0, 1e-9, 1e-3, 0.0019, 1.0, 1.99, 2.0, 5.0, 99.0, 100.0, 4.9e5])
def test_a_number_is_in_the_reach_of_its_cell(x):
    for sign in (1, -1):
        (cell,) = FIGURES.cells_of(np.array([sign * x]))
        low, high = FIGURES.reach(int(cell))
        assert low <= (sign * x if x >= 1e-3 else 0.0) <= high and cell in FIGURES.cells


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 150, None, -3]),
        pa.array([1.0, 150.0, float("nan"), -3.0]),
        pa.array([Decimal("1.0"), Decimal("150.0"), None, Decimal("-3.0")]),
        pa.array(["1", " 150 ", "NA", "-3"]),
    ],
    ids=["integers", "floats", "decimals", "text"],
)
def test_numbers_are_counted_by_cell_however_they_are_typed(array):
    one, most, least = FIGURES.cells_of(np.array([1.0, 150.0, -3.0]))
    assert counted(array, "cells") == {"rows": 4, "null": 1, str(one): 1, str(most): 1, str(least): 1}


@pytest.mark.parametrize(("counts", "other"), [("values", "0.00001"), ("cells", "1e-37")])
def test_how_many_digits_another_decimal_has_moves_no_other(counts, other):
    few = [Decimal(text) for text in ("7", "3", "0.05")]
    alone, together = (counted(pa.array(values), counts) for values in (few, [*few, Decimal(other)]))
    assert sum(abs(together.get(key, 0) - alone.get(key, 0)) for key in {*alone, *together}) == 2


def test_what_is_no_number_is_counted_as_such_and_never_raised():
    assert counted(pa.array(["Zebulon", "12:30", "inf"]), "cells") == {"rows": 3, "unread": 3}
    assert counted(pa.array([True, None]), "cells") == {"rows": 2, "unread": 1, "null": 1}
    assert counted(pa.array([1, None]), "") == {"rows": 2, "null": 1}


@pytest.mark.parametrize("counts", ["values", "cells", "years"])
def test_text_that_is_no_utf8_is_counted_as_such_and_ends_nothing(counts):
    raw = pa.array([b"Zebulon\xff", None, b"\xed\xa0\x80"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    assert counted(text, counts) == {"rows": 3, "null": 1, "unread": 2}


def test_batches_and_merges_do_not_matter(monkeypatch):
    values = [f"v{number % 97}" for number in range(2000)]
    whole = {f"s{value}": times for value, times in Counter(values).items()} | {"rows": 2000}
    monkeypatch.setattr(key_counts, "MERGE", 50)
    assert counted(pa.array(values), "values") == counted(pa.array(values[::-1]), "values", 13) == whole


@pytest.mark.parametrize("place", [0, 100, 200])
def test_a_row_more_moves_each_column_by_one_row_and_no_further(place):
    rng = np.random.default_rng(0)
    rows = [{"a": f"v{x}", "b": float(y)} for x, y in zip(rng.integers(0, 9, 200), rng.normal(0, 9, 200), strict=True)]
    one = {"a": "only", "b": 1e5}
    what = Coordinates({"a": "values", "b": "cells"}, FIGURES, 20, STEPS)

    def vector(table: list[dict[str, object]]) -> Counter[str]:
        exact = transform_key_counts(Sensitive(pa.Table.from_pylist(table).to_batches(max_chunksize=64)), what).reveal()
        names = [*map(str, what.public), *exact.keys.to_pylist()]
        return Counter(dict(zip(names, [*exact.public.tolist(), *exact.found.tolist()], strict=True)))

    moved = vector([*rows[:place], one, *rows[place:]])
    moved.subtract(vector(rows))
    assert sum(n * n for n in moved.values()) == 3 * STEPS**2  # the rows, and a key in each of two columns
