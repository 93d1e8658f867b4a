"""Types beyond numbers and text: each is read, encoded and comes back as itself, or is refused with a way out."""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.authoring.draft import draft
from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.reading.load import load_parts
from tests.kit.errors import refused
from tests.kit.every_kind import one

BERLIN = pa.timestamp("us", "Europe/Berlin")
TEXTS = pa.array(["a", None, "b", "a"])
CENTS = pa.array([Decimal("0.10"), None, Decimal("80.10"), Decimal("99.99")], pa.decimal128(12, 2))
NIGHTS = [datetime(2024, 10, 27, hour, 30, tzinfo=UTC) for hour in (0, 1)]  # both are half past two in Berlin
DUSK = [time(0), None, time(18, 30, 5), time(23, 59, 59)]
WAITS = [timedelta(0), None, timedelta(seconds=90), timedelta(days=2)]
MIN_MAX = "min: 2024-01-01, max: 2024-12-31, nullable: true"
WORDS = "type: categorical, values: [a, b], nullable: true"
TYPES = {
    "zoned": (f'type: datetime, {MIN_MAX}, resolution: minute, dtype: "timestamp[us, tz=Europe/Berlin]"', BERLIN),
    "utc days": (f'type: datetime, {MIN_MAX}, dtype: "timestamp[ms, tz=UTC]"', pa.timestamp("ms", "UTC")),
    "decimal": ('type: number, min: 0.1, max: 99.99, round: 2, dtype: "decimal(12, 2)", nullable: true', CENTS),
    "wide decimal": ('type: number, min: 0, max: 100, round: 2, dtype: "decimal(38, 4)", nullable: true', CENTS),
    "time": ('type: integer, min: 0, max: 86399, dtype: "time32[s]", nullable: true', pa.array(DUSK, pa.time32("s"))),
    "fine time": (
        'type: integer, min: 0, max: 86399999999, dtype: "time64[us]", nullable: true',
        pa.array(DUSK, pa.time64("us")),
    ),
    "duration": (
        'type: integer, min: 0, max: 172800, scale: log, zero_inflated: true, dtype: "duration[s]", nullable: true',
        pa.array(WAITS, pa.duration("s")),
    ),
    "large text": (f"{WORDS}, dtype: large_string", TEXTS.cast(pa.large_string())),
    "dictionary": (f"{WORDS}, dtype: dictionary", TEXTS.dictionary_encode()),
}


def given(kind: pa.Array | pa.DataType) -> pa.Array:
    if isinstance(kind, pa.Array):
        return kind
    return pa.array([*(NIGHTS if kind == BERLIN else [datetime(2024, 2, 29, tzinfo=UTC)] * 2), None], kind)


@pytest.mark.parametrize("case", TYPES)
def test_a_type_comes_back_as_itself(case):
    declared, kind = TYPES[case]
    column = given(kind)
    if case == "wide decimal":
        column = column.cast(pa.decimal128(38, 4))
    schema, table = one(f"{{{declared}}}"), pa.table({"x": column})
    codec = Codec(schema)
    codec.check_types(table.schema)
    back = codec.decode(codec.encode(table))
    assert back["x"].type == column.type and back["x"].to_pylist() == column.to_pylist()
    for raw in (True, False):
        gate = Gate(schema, raw=raw)
        gate.check(table)
        gate.check_encoded(table.to_batches()[0])
        gate.settle()
        assert not gate.broken


@pytest.mark.parametrize("digits", [5, 9, 18, 38, 76])
def test_a_decimal_is_the_number_nearest_to_it(digits):
    """Arrow casts 80.10 to a number above 80.1, which the schema would refuse."""
    kind = (pa.decimal256 if digits == 76 else pa.decimal128)(digits, 2)
    hundredths = np.arange(10_000)
    table = pa.table({"x": pa.array([Decimal(int(n)).scaleb(-2) for n in hundredths], kind)})
    for low in range(0, 10_000, 2500):
        part, bounds = table.slice(low, 2500), (hundredths[low] / 100, hundredths[low + 2499] / 100)
        schema = one(f"{{type: number, min: {bounds[0]}, max: {bounds[1]}, round: 2}}")
        back = Codec(schema).decode(Codec(schema).encode(part))["x"].to_numpy()
        assert np.array_equal(back, hundredths[low : low + 2500] / 100)


@pytest.mark.parametrize("beside", ["1e30", "1e-30"], ids=["large", "fine"])
@pytest.mark.parametrize(
    "declared",
    [
        "{type: categorical, values: [0.3, 0.57, 0.7, -1.0], outside: other, other: -1.0}",
        "{type: number, min: 0.3, max: 0.7, outside: reject-row}",
    ],
)
def test_one_decimal_more_changes_how_no_other_is_read(declared, beside):
    """What a record is encoded as must not depend on who else is in its batch, or one moves the sums of all."""
    few = [Decimal(text) for text in ("0.3", "0.57", "0.7")]
    tables = [pa.table({"x": pa.array(values)}) for values in (few, [*few, Decimal(beside)])]
    codec = Codec(one(declared))
    alone, together = (codec.codes_of(codec.encode(table))[0].tolist() for table in tables)
    assert together[: len(alone)] == alone


def test_finer_times_are_cut_down_to_the_unit_of_the_column():
    schema = one('{type: integer, min: 0, max: 86399, dtype: "time32[s]"}')
    column = pa.array([time(12, 0, 0, 999_999)], pa.time64("us"))
    assert Codec(schema).decode(Codec(schema).encode(pa.table({"x": column})))["x"].to_pylist() == [time(12)]


def test_a_moment_after_the_last_of_a_day_is_refused_as_that():
    """DuckDB has 24:00:00, which Arrow's type of a time of day does not."""
    schema = one('{type: integer, min: 0, max: 86399, dtype: "time32[s]"}')
    with refused(DataError, "must hold times before 24:00:00 in every row", column="x"):
        Gate(schema, raw=True).check(pa.table({"x": pa.array([86_400 * 10**6], pa.int64()).view(pa.time64("us"))}))


PLAIN = "{type: datetime, min: 2024-01-01, max: 2024-12-31}"
NUMBER = "{type: integer, min: 0, max: 9}"
ZONED = '{type: datetime, min: 2024-01-01, max: 2024-12-31, dtype: "timestamp[us, tz=UTC]"}'
OTHERS = {
    "a zone that was not declared": (PLAIN, pa.array(NIGHTS, BERLIN), 'dtype: "timestamp[us, tz=UTC]"'),
    "no zone": (ZONED, pa.array([datetime(2024, 1, 1)]), "must hold times with a zone"),
    "a time in a number": (NUMBER, pa.array([time(1)], pa.time32("s")), '`dtype: "time32[s]"`'),
    "a duration in a datetime": (PLAIN, pa.array(WAITS, pa.duration("ms")), '`dtype: "duration[ms]"`'),
    "a list": (NUMBER, pa.array([[1, 2]]), "give every part a column of its own, or leave it out"),
    "a structure": (NUMBER, pa.array([{"part": 1}]), "`type: identifier`"),
    "a map": (NUMBER, pa.array([[("secret", 1)]], pa.map_(pa.string(), pa.int64())), "`type: identifier`"),
    "bytes": (NUMBER, pa.array([b"secret"]), "it holds binary"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_another_type_is_refused_with_a_way_out(case):
    declared, column, out = OTHERS[case]
    with pytest.raises(DataError) as caught:
        Codec(one(declared)).check_types(pa.schema([("x", column.type)]))
    assert out in str(caught.value) and "secret" not in str(caught.value) and "part:" not in str(caught.value)


FAULTS = {
    'type: number, min: 0, max: 1, dtype: "decimal(4, 2)"': "round: must be given with decimal(4, 2), and be at most 2",
    'type: number, min: 0, max: 1, round: 3, dtype: "decimal(4, 2)"': "be at most 2",
    'type: number, min: 0, max: 100, round: 2, dtype: "decimal(4, 2)"': "cannot hold 0.0 to 100.0",
    'type: number, min: 0, max: 1, dtype: "decimal(x)"': "must be float32, float64 or decimal(DIGITS, DECIMALS)",
    'type: integer, min: 0, max: 86400, dtype: "time32[s]"': "holds the times of a day, which are 0 to 86399",
    f'type: datetime, {MIN_MAX}, dtype: "timestamp[us, tz=Europe/Berlin]"': "write `resolution: hour`, minute or",
    f'type: datetime, {MIN_MAX}, dtype: "timestamp[us, tz=Nowhere]"': "Nowhere is no time zone",
    f'type: datetime, {MIN_MAX}, dtype: "timestamp[h]"': "must be date32, timestamp[s]",
}


@pytest.mark.parametrize("declared", FAULTS)
def test_an_impossible_type_is_a_fault_of_the_schema(declared):
    schema, faults = parse(f"name: one\ncolumns:\n  x: {{{declared}}}\n")
    assert schema is None and FAULTS[declared] in str(faults[0])


def test_a_draft_names_the_types(tmp_path):
    for _, kind in TYPES.values():
        column = given(kind)
        pq.write_table(pa.table({"x": column}), tmp_path / "x.parquet")
        line = next(one for one in draft(tmp_path / "x.parquet").splitlines() if one.startswith("  x:"))
        whole = line.replace(", confirm: TODO", "").replace("values: TODO", "values: [a, b]")
        whole = whole.replace("resolution: TODO", "resolution: minute")
        for bound in ("2024-01-01", "2024-12-31") if "datetime" in whole else ("0", "1"):
            whole = whole.replace("TODO", bound, 1)
        schema, faults = parse(f"name: x\ncolumns:\n{whole}\n")
        assert schema is not None, (whole, faults)
        Codec(schema).check_types(pa.schema([("x", column.type)]))


@pytest.mark.parametrize("kind", [pa.time32("ms"), pa.duration("s")])
def test_times_of_day_are_cut_to_their_resolution_in_raw_and_drawn_rows(kind: pa.DataType) -> None:
    unit = 60 * (1000 if kind == pa.time32("ms") else 1)
    schema = one(f'{{type: integer, min: 0, max: {unit * 600}, dtype: "{kind}", resolution: minute}}')
    column, codec = schema.columns["x"], Codec(schema)
    raw = pa.table({"x": pa.array([0, unit - 1, unit, 5 * unit + 7, 600 * unit], kind)})
    back = codec.decode(codec.encode(raw))["x"].cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    assert back.to_pylist() == [0, 0, unit, 5 * unit, 600 * unit]
    drawn = column.interval.value_at(column.interval.rank(column.interval.from_unit(np.linspace(0, 1, 5000))))
    assert (drawn % unit == 0).all() and len(np.unique(drawn)) == column.interval.points == 601
    cells = column.grid.draw(np.arange(column.cells), np.random.default_rng(0))
    assert (column.interval.from_unit(cells) % unit == 0).all()
    assert "resolution" not in one(f'{{type: integer, min: 0, max: 9, dtype: "{kind}"}}').to_yaml()
    with pytest.raises(AssertionError, match="goes with a time of day"):
        one("{type: integer, min: 0, max: 9, resolution: minute}")


def test_times_of_day_as_text_are_read_in_a_table_as_in_a_csv_file(tmp_path):
    schema = one("{type: integer, min: 0, max: 86399, dtype: 'time32[s]', resolution: minute, nullable: true}")
    texts = pa.array(["16:05", "08:03:59", None, " 23:59"])
    for column in (texts, texts.cast(pa.large_string()), texts.dictionary_encode()):
        pq.write_table(pa.table({"x": column}), tmp_path / "t.parquet")
        (part,) = load_parts(str(tmp_path / "t.parquet"), schema, 10)
        (batch,) = part.reveal()
        assert batch["x"].to_pylist() == [time(16, 5), time(8, 3, 59), None, time(23, 59)]
    for wrong in ("4:05 pm", "24:00", "noon"):
        pq.write_table(pa.table({"x": ["16:05", wrong]}), tmp_path / "t.parquet")
        (part,) = load_parts(str(tmp_path / "t.parquet"), schema, 10)
        with refused(DataError, "times of day in every row, as the schema says", column="x") as caught:
            list(part.reveal())
        assert wrong not in str(caught.value).replace("not 4:05 pm", "")
