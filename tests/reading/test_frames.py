"""Rows that are given in memory: taken over, written whole or not at all, and never shown."""

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nacre
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.reading.frames import load_given, transform_write, write_names
from dpmodels.reading.load import load_parts
from tests.kit.errors import refused

FRAME = pd.DataFrame({"ward": ["north", "south"], "age": [1.0, None]}, index=["Anna", "Ben"])


def test_the_index_and_the_names_of_its_owners_stay_out(tmp_path: Path) -> None:
    transform_write(load_given(Sensitive(FRAME)), tmp_path / "given.parquet")
    table = pq.read_table(tmp_path / "given.parquet")
    assert table.column_names == ["ward", "age"] and table["age"].null_count == 1
    assert table.schema.metadata is None and b"Anna" not in (tmp_path / "given.parquet").read_bytes()
    assert (tmp_path / "given.parquet").stat().st_mode & 0o777 == 0o600


COLUMNS = {
    "pandas": (lambda: FRAME["age"], "its to_frame(NAME)"),
    "an index": (lambda: FRAME.index, "its to_frame(NAME)"),
    "polars": (lambda: pytest.importorskip("polars").Series("age", [1, 2]), "its to_frame(NAME)"),
    "dask": (lambda: of_dask()["ward"], "its to_frame(NAME)"),
    "arrow": (lambda: pa.array([1, 2]), 'pyarrow.table({"NAME": it})'),
    "arrow, in chunks": (lambda: pa.chunked_array([[1], [2]]), 'pyarrow.table({"NAME": it})'),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_one_column_is_told_from_a_table_with_what_makes_a_table_of_it(kind: str) -> None:
    make, call = COLUMNS[kind]
    column = make()
    sentence = f"the data is one column ({type(column).__name__}) and no table: {call} makes a table of it, with NAME"
    with refused(DataError, re.escape(sentence)) as caught:
        load_given(Sensitive(column))
    assert "north" not in str(caught.value) and "Anna" not in str(caught.value)


def test_a_table_whose_column_has_the_name_of_a_method_is_a_table() -> None:
    for table in (FRAME.rename(columns={"age": "to_frame"}), pa.chunked_array([pa.array([{"age": 1}])])):
        assert load_given(Sensitive(table)).reveal().read_all().num_rows


def test_names_are_written_without_rows(tmp_path: Path) -> None:
    path = write_names(load_given(Sensitive(FRAME)), tmp_path / "names.parquet")
    assert pq.read_table(path).num_rows == 0 and b"north" not in path.read_bytes()


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    intervals = pa.table({"a": pa.array([(1, 15, -30)], pa.month_day_nano_interval())})
    with refused(DataError, "cannot be written as Parquet", column=""):
        transform_write(load_given(Sensitive(intervals)), tmp_path / "given.parquet")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("No space left")))
    with refused(DataError, "the disk is full", column="") as caught:
        transform_write(load_given(Sensitive(FRAME)), tmp_path / "given.parquet")
    assert caught.value.__context__ is None and not list(tmp_path.iterdir())


TABLE = pa.table(
    {
        "ward": pa.array(["north", None, "south"]),
        "cost": pa.array([Decimal("1.10"), Decimal("2.00"), None], pa.decimal128(8, 2)),
        "wait": pa.array([timedelta(seconds=1), None, timedelta(days=1)], pa.duration("us")),
        "seen": pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("us", "Europe/Berlin")),
        "at": pa.array([time(1), None, time(2, 3, 4)], pa.time64("ns")),
    }
)


def of_dask() -> Any:
    return pytest.importorskip("dask.dataframe").from_pandas(TABLE.to_pandas(types_mapper=pd.ArrowDtype), npartitions=2)


FRAMES = {
    "pandas": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "arrow": lambda: TABLE,
    "a batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "a reader": lambda: TABLE.to_reader(max_chunksize=1),
    "polars": lambda: pytest.importorskip("polars").from_arrow(TABLE),
    "polars, lazy": lambda: pytest.importorskip("polars").from_arrow(TABLE).lazy(),
    "dask": of_dask,
}


@pytest.mark.parametrize("case", FRAMES)
def test_frames_of_every_library_are_taken_over_with_their_types(tmp_path: Path, case: str) -> None:
    """Libraries differ in how they lay text out, and in how fine their times are; values and kinds stay."""
    transform_write(load_given(Sensitive(FRAMES[case]())), tmp_path / "given.parquet")
    found = pq.read_table(tmp_path / "given.parquet")
    assert found.cast(TABLE.schema).equals(TABLE)
    assert found.schema.field("seen").type.tz is not None and pa.types.is_decimal(found.schema.field("cost").type)
    assert pa.types.is_duration(found.schema.field("wait").type) and pa.types.is_time(found.schema.field("at").type)


def test_dask_is_computed_partition_by_partition_and_never_all_at_once(tmp_path: Path) -> None:
    frame, computed = of_dask(), list[int]()
    watched = frame.map_partitions(lambda part: computed.append(len(part)) or part, meta=frame._meta)
    rows = load_given(Sensitive(watched))
    assert len(computed) == 1
    transform_write(rows, tmp_path / "given.parquet")
    assert len(computed) == 2 and pq.read_metadata(tmp_path / "given.parquet").num_rows == 3


def test_an_error_while_frames_are_computed_shows_no_value(tmp_path: Path) -> None:
    def broken(part: pd.DataFrame) -> pd.DataFrame:
        if part["ward"].iloc[0] == "south":
            raise ValueError("south")
        return part

    frame = of_dask()
    rows = load_given(Sensitive(frame.map_partitions(broken, meta=frame._meta)))
    with pytest.raises(DataError) as caught:
        transform_write(rows, tmp_path / "given.parquet")
    assert "south" not in str(caught.value) + repr(caught.value.__context__) and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("first", "second"),
    [([1, 2], [0.5, 1.5]), ([date(2020, 1, 1)], [datetime(2020, 1, 1, 23)]), ([1, None], ["x"])],
    ids=["whole numbers, then others", "days, then moments", "numbers, then text"],
)
def test_a_partition_of_other_types_than_the_first_is_refused_and_never_cast(
    tmp_path: Path, first: list[object], second: list[object]
) -> None:
    dask, frames = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    parts = [pd.DataFrame({"x": pd.Series(values, dtype=object)}) for values in (first, second)]
    with dask.config.set({"dataframe.convert-string": False}):
        given = frames.from_delayed([dask.delayed(part) for part in parts], meta=parts[0].iloc[:0])
        with pytest.raises(DataError):
            transform_write(load_given(Sensitive(given)), tmp_path / "given.parquet")
        same = frames.from_delayed([dask.delayed(part) for part in (parts[0], parts[0])], meta=parts[0].iloc[:0])
        transform_write(load_given(Sensitive(same)), tmp_path / "given.parquet")
    assert pq.read_metadata(tmp_path / "given.parquet").num_rows == 2 * len(first)


MIXED = {
    "a whole number beside numpy's halves": [np.float16(0.5), None, 7],
    "a number beside numpy's durations": [np.timedelta64(5, "s"), None, 7],
    "numpy's floats beside its whole numbers": [np.float32(0.5), None, np.int64(3)],
    "bytes beside text": ["x", "y", b"secret"],
    "a moment beside days": [date(2020, 1, 1), None, datetime(2020, 1, 1, 23)],
    "a span beside whole numbers": [75, 80, timedelta(seconds=5)],
    "a time of day beside whole numbers": [75, 80, time(5)],
    "a day beside halves": [0.5, None, date(2020, 1, 1)],
    "a moment beside decimals": [Decimal("1.5"), None, datetime(2020, 1, 1)],
    "a zoned moment beside others": [datetime(2020, 1, 1), None, datetime(2020, 1, 2, tzinfo=UTC)],
    "a whole number beside identifiers": [uuid4(), None, 7],
    "a truth beside whole numbers": [3, 4, True],
}


@pytest.mark.parametrize("case", MIXED)
def test_a_value_for_which_arrow_would_read_all_others_otherwise_is_refused(case: str) -> None:
    frame = pd.DataFrame({"x": pd.Series(MIXED[case], dtype=object)})
    for order in permutations(range(3)):  # what comes first, in the middle and last decides nothing
        with refused(DataError, "column number 1 of 1 mixes types", column=""):
            load_given(Sensitive(frame.iloc[list(order)]))
    assert len(load_given(Sensitive(frame[:2])).reveal().read_all()) == 2


def test_numbers_of_several_types_and_what_is_missing_are_one_column() -> None:
    for values in ([1, 2.5, None], [Decimal("1.5"), 2, None], ["x", float("nan"), None], [True, float("nan"), False]):
        frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
        assert len(load_given(Sensitive(frame)).reveal().read_all()) == 3


def test_a_draft_and_a_check_name_the_column_that_mixes_types_where_its_name_may_be_said() -> None:
    frame = pd.DataFrame({"age": [1, 2], "ward": ["a", 7]})
    schema = {"name": "a", "columns": {"age": {"type": "boolean"}, "ward": {"type": "boolean"}}}
    for call, says in (
        (lambda: nacre.draft_schema(frame, name="a"), "column ward mixes types"),
        (lambda: nacre.validate(frame, schema, raw=True), "column ward mixes types"),
        (lambda: nacre.draft_schema(frame.rename(columns={"ward": "A-2024-1"})), "column number 2 of 2 mixes types"),
        (lambda: nacre.draft_schema(frame.set_axis(["age", "age"], axis=1)), "column age more than once"),
    ):
        with refused(nacre.NacreError, says):
            call()
    for names, says in ((["2024-1", "2024-1"], "column number 2 of 2 has the name of another"),):
        with refused(nacre.NacreError, says):
            nacre.draft_schema(frame[["age", "age"]].set_axis(names, axis=1))


class Day(date):
    """A day of another library."""


@pytest.mark.parametrize("day", [date(2020, 1, 1), Day(2020, 1, 1)])
@pytest.mark.parametrize("kind", [object, "category"])
def test_one_day_among_moments_is_refused_whatever_holds_it(day: date, kind: object) -> None:
    # Moments of other days: Python holds a day of another library equal to each moment of that day, and pandas refuses
    # equal categories whenever their hashes fall together, which changes from process to process.
    values = pd.Series([day, *(datetime(2020, 1, 2, hour) for hour in range(3))], dtype=object)
    frame = pd.DataFrame({"x": pd.Series(pd.Categorical(values, categories=values)) if kind == "category" else values})
    with refused(DataError, "column number 1 of 1 mixes types", column=""):
        load_given(Sensitive(frame))


def test_what_is_no_table_is_refused() -> None:
    for data in ([1, 2], {"a": [1]}, pa.array([{"a": 1}]), object()):
        with refused(DataError, r"must be a pandas DataFrame|cannot be read as a table", column=""):
            load_given(Sensitive(data))


SPANS = Schema.model_validate(
    {"name": "waits", "columns": {"wait": {"type": "integer", "dtype": "duration[s]", "min": 0, "max": 1000}}}
)


def seconds(path: Path) -> list[float]:
    records = [Codec(SPANS).encode(batch) for part in load_parts(path, SPANS, 100) for batch in part.reveal()]
    return (1000 * np.concatenate([batch.values[:, 0] for batch in records])).tolist()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_spans_in_a_category_keep_their_unit_whoever_is_beside_them(tmp_path: Path, unit: str) -> None:
    spans = pa.array([5, 7, 90], pa.duration("s")).cast(pa.duration(unit))
    for name, column in {"plain": spans, "category": spans.dictionary_encode()}.items():
        transform_write(load_given(Sensitive(pa.table({"wait": column}))), tmp_path / f"{name}.parquet")
        assert seconds(tmp_path / f"{name}.parquet") == pytest.approx([5, 7, 90]), name
    three = [pd.Timedelta(each, "s").as_unit("s") for each in (5, 7, 90)]
    for place in (0, 1, 3):
        crowd = pd.Categorical([*three[:place], timedelta(seconds=1), *three[place:]])
        transform_write(load_given(Sensitive(pd.DataFrame({"wait": crowd}))), tmp_path / f"{place}.parquet")
        assert sorted(seconds(tmp_path / f"{place}.parquet")) == pytest.approx([1, 5, 7, 90])


def test_a_parquet_file_of_spans_in_a_category_is_refused(tmp_path: Path) -> None:
    spans = pa.array([5000, 7000], pa.duration("ms")).dictionary_encode()
    pq.write_table(pa.table({"wait": spans}), tmp_path / "waits.parquet")
    with refused(DataError, "was written as categories of spans of time, whose unit a Parquet file does not keep"):
        seconds(tmp_path / "waits.parquet")


DATED = Schema.model_validate_json(
    '{"name": "visits", "columns": {"seen": {"type": "datetime", "min": "2024-01-01", "max": "2024-12-31", '
    '"resolution": "minute", "nullable": true}, "dose": {"type": "number", "min": 0, "max": 60}}}'
)
MOMENTS = ["2024-05-01", "2024-05-02 23:59:59", None, " 2024-05-03T06:30:00 ", ""]
AS_TEXT = {
    "pandas": lambda texts: pd.DataFrame({"seen": texts}),
    "pandas, its own text": lambda texts: pd.DataFrame({"seen": pd.array(texts, dtype="string")}),
    "categories": lambda texts: pd.DataFrame({"seen": pd.Categorical(texts)}),
    "polars": lambda texts: pytest.importorskip("polars").DataFrame({"seen": texts}),
    "large": lambda texts: pa.table({"seen": pa.array(texts, pa.large_string())}),
}


def records_of(data: Any, path: Path) -> Any:
    transform_write(load_given(Sensitive(data)), path)
    batches = [batch for part in load_parts(path, DATED, 2) for batch in part.reveal()]
    return [Codec(DATED).encode(batch).values.tolist() for batch in batches]


@pytest.mark.parametrize("kind", AS_TEXT)
def test_dates_that_a_frame_has_as_text_are_those_of_a_text_file(kind: str, tmp_path: Path) -> None:
    frame = pa.table(AS_TEXT[kind](MOMENTS)) if kind != "polars" else AS_TEXT[kind](MOMENTS).to_arrow()
    table = frame.select(["seen"]).append_column("dose", [[1.0] * len(MOMENTS)])
    (tmp_path / "text.csv").write_text("seen,dose\n" + "".join(f"{one or ''},1\n" for one in MOMENTS))
    text = [
        Codec(DATED).encode(batch).values
        for part in load_parts(tmp_path / "text.csv", DATED, 2)
        for batch in part.reveal()
    ]
    assert records_of(table, tmp_path / "given.parquet") == [values.tolist() for values in text]
    assert sum(map(len, text)) == len(MOMENTS) and len({*text[0][:, 0]}) == 2


def test_what_is_no_iso_date_is_refused_as_in_a_text_file_and_numbers_as_text_stay_text(tmp_path: Path) -> None:
    for wrong in ("01.05.2024", "5/1/2024", "Zebulon", "2024-13-01"):
        table = pa.table({"seen": ["2024-05-01", wrong], "dose": [1.0, 2.0]})
        with refused(
            DataError, r"dates in every row, as the schema says, written as 2026-12-31 .*\(not 25", column="seen"
        ) as told:
            records_of(table, tmp_path / f"{len(wrong)}.parquet")
        assert wrong not in str(told.value)
    with refused(DataError, "must hold numbers, .*; it holds text; turn it into numbers", column="dose"):
        records_of(pa.table({"seen": ["2024-05-01"], "dose": ["1.5"]}), tmp_path / "numbers.parquet")


def test_a_text_file_names_all_columns_of_another_type_in_its_first_batch(tmp_path: Path) -> None:
    (tmp_path / "text.csv").write_text("seen,dose\n2024-05-01,1\n01.05.2024,much\n")
    (part,) = load_parts(tmp_path / "text.csv", DATED, 100)
    with refused(DataError, "^column seen: must hold dates .*; column dose: must hold numbers in every row") as told:
        list(part.reveal())
    assert len(told.value.faults) == 2 and "much" not in str(told.value) and "01.05" not in str(told.value)
