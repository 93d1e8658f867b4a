"""Round trips, policies and types of the encoding."""

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError, Unsuitable
from tests.kit.errors import refused
from tests.kit.every_kind import make, one
from tests.kit.records import same


def test_every_kind_of_column_survives_the_round_trip_with_its_type(schema: Schema, table: pa.Table) -> None:
    codec = Codec(schema)
    codec.check_types(table.schema)
    records = codec.encode(table)
    decoded = codec.decode(records, first_row=10)
    expected = table.drop_columns(["patient"])
    assert decoded.schema.equals(codec.output_schema)
    for name in expected.column_names:
        assert decoded[name].type == expected[name].type, name
        if name == "ratio":  # no lattice: the nearest of 2**31 steps
            assert np.allclose(decoded[name].to_numpy(), expected[name].to_numpy(), rtol=0, atol=2**-31)
        else:
            assert decoded[name].to_pylist() == expected[name].to_pylist(), name
    assert records.states.dtype == np.int32 and records.values.dtype == np.float64
    assert records.values.min() >= 0 and records.values.max() <= 1
    assert same(codec.from_arrow(codec.to_arrow(records)), records)


def test_dictionary_keeps_the_schemas_order(schema: Schema, table: pa.Table) -> None:
    codec = Codec(schema)
    colour = codec.decode(codec.encode(table))["colour"].chunk(0)
    assert colour.dictionary.to_pylist() == ["red", "green", "?"]


def test_states_are_in_the_documented_order(schema: Schema, table: pa.Table) -> None:
    records, names = Codec(schema).encode(table), list(schema.modelled)
    states = {name: records.states[:, names.index(name)].tolist() for name in names}
    assert states["colour"] == [0, 3, 2, 1] and states["smoker"] == [1, 0, 2, 1]
    assert states["gain"] == [1, 0, 2, 0] and states["change"] == [0, 1, 0, 0] and states["visited"] == [0, 1, 0, 0]
    assert (records.values[records.states != 0] == 0).all()
    assert schema.classes == 3 and schema.target_index == names.index("smoker")


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_chunks_do_not_matter(schema: Schema, table: pa.Table, rows: int) -> None:
    codec = Codec(schema)
    parts = [codec.encode(batch) for batch in table.to_batches(max_chunksize=rows)]
    chunked = pa.Table.from_batches(table.to_batches(max_chunksize=rows))
    assert same(Records.concat(parts), codec.encode(table))
    assert same(codec.encode(chunked), codec.encode(table))


def test_zero_rows_are_no_special_case(schema: Schema, table: pa.Table) -> None:
    codec = Codec(schema)
    records = codec.encode(table.slice(0, 0))
    assert len(records) == 0 and codec.decode(records).num_rows == 0 and codec.to_cells(records).shape == (0, 12)


INTEGER = "type: integer, min: 0, max: 9"


@pytest.mark.parametrize(
    ("column", "given", "kept"),
    [
        (f"{{{INTEGER}, outside: clip}}", [-4, 5, 12], [0, 5, 9]),
        (f"{{{INTEGER}, outside: reject-row}}", [-4, 5, None, 12], [5]),
        (f"{{{INTEGER}, outside: reject-row, nullable: true}}", [-4, 5, None], [5, None]),
        ("{type: integer, min: 0, max: 9, outside: clip}", [float("inf"), 4.0, -float("inf")], [9, 4, 0]),
        ("{type: integer, min: 0, max: 9, nullable: true}", [float("nan"), 4.0], [None, 4]),
        ("{type: integer, min: 0, max: 9007199254740, outside: clip}", [2**63 - 1, 3], [9007199254740, 3]),
        ("{type: number, min: 0, max: 1, outside: clip}", [-float("inf"), 0.5, 3.0], [0.0, 0.5, 1.0]),
        ("{type: number, min: 0, max: 1, round: 1}", [0.04, 0.55, 0.96], [0.0, 0.6, 1.0]),
        ("{type: categorical, values: [a, rest], outside: other, other: rest}", ["a", "b", "c"], ["a", "rest", "rest"]),
        ("{type: categorical, values: [a], outside: reject-row}", ["a", "b", None], ["a"]),
        ("{type: categorical, values: [0, 1]}", [0.0, -0.0, 1.0], [0, 0, 1]),
        (
            "{type: categorical, values: [2.5, -1.5, 0.25], outside: nearest, nullable: true}",
            [0.25, 9.0, float("-inf"), 0.5, None, 1.375, 1.376],
            [0.25, 2.5, -1.5, 0.25, None, 0.25, 2.5],
        ),
        ("{type: categorical, values: [7], outside: nearest}", [1, 7, 90], [7, 7, 7]),
        ("{type: categorical, values: [1.0e+308, 1.5e+308], outside: nearest}", [1.6e308, 0.0], [1.5e308, 1.0e308]),
        ("{type: categorical, values: [1.5, 123456792], dtype: float32}", [123456792.0, 1.5], [123456792.0, 1.5]),
        ("{type: categorical, values: [0.1, 16777217], dtype: float32, outside: nearest}", [4e38], [16777216.0]),
        ("{type: boolean, outside: reject-row}", [True, None], [True]),
        (
            "{type: datetime, min: 2020-01-01, max: 2020-01-02, resolution: hour, outside: clip}",
            [datetime(2019, 1, 1), datetime(2020, 1, 1, 5, 59), datetime(2021, 1, 1)],
            [datetime(2020, 1, 1), datetime(2020, 1, 1, 5), datetime(2020, 1, 2, 23)],
        ),
    ],
)
def test_policies(column: str, given: list[object], kept: list[object]) -> None:
    codec = Codec(one(column))
    assert codec.decode(codec.encode(pa.table({"x": given})))["x"].to_pylist() == kept


@pytest.mark.parametrize(
    ("column", "given"),
    [
        (f"{{{INTEGER}}}", [4, 987654321]),
        (f"{{{INTEGER}, outside: clip}}", [4.0, 987654321.5]),
        ("{type: number, min: 0, max: 1}", [987654321.0]),
        ("{type: number, min: 0, max: 1}", [float("inf")]),
        ("{type: number, min: 0, max: 1, outside: clip}", [None, 0.5]),
        ("{type: number, min: 0, max: 1}", [float("nan")]),
        ("{type: categorical, values: [a]}", ["987654321"]),
        ("{type: categorical, values: [0.144292]}", [0.1442921]),
        ("{type: boolean}", [None, True]),
        ("{type: datetime, min: 2020-01-01, max: 2020-12-31}", [datetime(2021, 1, 1)]),
    ],
)
def test_refusal_names_column_and_rule_and_no_value(column: str, given: list[object]) -> None:
    with pytest.raises(DataError) as caught:
        Codec(one(column)).encode(pa.table({"x": given}))
    error = caught.value
    assert error.column == "x" and error.rule and "987654321" not in str(error) and "inf" not in str(error)
    assert error.__cause__ is None and error.__context__ is None


@pytest.mark.parametrize(
    ("column", "given"),
    [
        (f"{{{INTEGER}}}", pa.array(["4"])),
        (f"{{{INTEGER}}}", pa.array([True])),
        ("{type: number, min: 0, max: 1}", pa.array(["x"]).dictionary_encode()),
        ("{type: categorical, values: [a]}", pa.array([1])),
        ("{type: categorical, values: [1]}", pa.array(["1"])),
        ("{type: boolean}", pa.array([1])),
        ("{type: datetime, min: 2020-01-01, max: 2020-12-31}", pa.array(["2020-01-01"])),
        ("{type: datetime, min: 2020-01-01, max: 2020-12-31}", pa.array([0], pa.timestamp("s", tz="UTC"))),
    ],
)
def test_wrong_types_are_refused(column: str, given: pa.Array) -> None:
    codec, data = Codec(one(column)), pa.table({"x": given})
    with refused(DataError, "must hold", column="x"):
        codec.check_types(data.schema)
    with refused(DataError, "must hold", column="x"):
        codec.encode(data)


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.null()]
)
def test_any_arrow_text_is_text(kind: pa.DataType) -> None:
    codec = Codec(one("{type: categorical, values: [a, b], nullable: true}"))
    values = [None, None] if kind == pa.null() else ["b", None]
    data = pa.table({"x": pa.array(values).cast(kind)})
    codec.check_types(data.schema)
    assert codec.decode(codec.encode(data))["x"].to_pylist() == values


def test_float32_compares_in_its_own_precision() -> None:
    data = pa.table({"x": pa.array([0.1, 0.7], pa.float32())})
    for column in (
        "{type: number, min: 0.1, max: 0.7, dtype: float32}",
        "{type: categorical, values: [0.1, 0.7], dtype: float32}",
    ):
        codec = Codec(one(column))
        assert codec.decode(codec.encode(data))["x"].to_pylist() == data["x"].to_pylist()


def test_double_data_meets_float32_categories() -> None:
    codec = Codec(one("{type: categorical, values: [0.1, 0.7], dtype: float32}"))
    assert codec.encode(pa.table({"x": [0.7, 0.1]})).states[:, 0].tolist() == [1, 0]


def test_names_must_match_and_the_message_says_those_of_the_schema_only() -> None:
    codec = Codec(make("name: a\ncolumns:\n  income: {type: boolean}\n  id: {type: identifier}\n"))
    with refused(DataError, "not in the data; the data has 1 ", column="income") as told:
        codec.check_names(["Salary", "id"])
    assert "Salary" not in str(told.value)
    with refused(DataError, "in other letters", column="income") as told:
        codec.check_names([" Income", "id"])
    assert "Income" not in str(told.value)
    with refused(DataError, "2 columns that the schema lacks", column="") as told:
        codec.check_names(["income", "id", "extra", "extra"])
    assert "extra" not in str(told.value)
    with refused(DataError, "more than once", column="id"):
        codec.check_names(["income", "id", "id"])
    with refused(DataError, "exactly once", column="income"):
        codec.encode(pa.table({"id": [1]}))


def test_a_column_that_may_have_another_name_is_pointed_at_by_its_place_and_not_named() -> None:
    columns = "".join(f"  {name}: {{type: boolean}}\n" for name in ("income", "rent", "ward"))
    codec = Codec(make(f"name: a\ncolumns:\n{columns}"))
    said = "lacks, number 2 in their order, which may be rent by another name"
    for names, is_said in (
        (["income", "Zebulon", "ward"], True),
        (["income", "Zebulon", "ward", "Abner"], False),
        (["income", "Zebulon"], False),
        (["income", "rant", "ward"], False),  # a slip, which is told as one
    ):
        with refused(DataError, column="rent") as told:
            codec.check_names(names)
        assert (said in str(told.value)) == is_said and "Zebulon" not in str(told.value)


def test_a_stranger_s_records_are_refused(schema: Schema, table: pa.Table) -> None:
    records = Codec(schema).encode(table)
    other = Codec(one("{type: boolean}"))
    with pytest.raises(Unsuitable):
        other.decode(records)
    with pytest.raises(DataError):
        other.from_arrow(Codec(schema).to_arrow(records))


def test_every_missing_name_is_said_and_those_in_other_letters_are_no_strangers() -> None:
    columns = "".join(f"  {name}: {{type: boolean}}\n" for name in ("income", "rent", "ward"))
    codec = Codec(make(f"name: a\ncolumns:\n{columns}"))
    with refused(DataError, "^column income: is in the schema but not in the data, and so is rent$", column="income"):
        codec.check_names(["ward"])
    with refused(
        DataError, "^column income: is in the schema but not in the data; ward is there in oth", column="income"
    ):
        codec.check_names(["WARD", "rent"])
    with refused(DataError, "write it as the schema does, there or here, and so is ward$", column="rent") as told:
        codec.check_names(["income", "Rent", "WARD"])
    assert "lacks" not in str(told.value) and "WARD" not in str(told.value)
    with refused(DataError, "there or here; the data has 1 column that the schema lacks", column="ward") as told:
        codec.check_names(["income", "rent", "Ward", "Zebulon"])
    assert "Zebulon" not in str(told.value)


def test_a_misspelt_column_blames_no_derived_one_that_the_file_may_lack() -> None:
    columns = "  age: {type: integer, min: 0, max: 9}\n  ward: {type: boolean}\n"
    codec = Codec(make(f"name: a\ncolumns:\n{columns}  twice: {{type: derived, formula: age * 2}}\n"))
    with refused(
        DataError, "but not in the data, which has a column whose name differs from it in 1 letter", column="age"
    ):
        codec.check_names(["agee", "ward"])
    with refused(
        DataError, "but not in the data, which has a column whose name differs from it in 1 letter", column="twice"
    ):
        codec.check_names(["age", "ward", "twise"])


@pytest.mark.parametrize(
    ("names", "cause"),
    [
        (["age§ward"], "^the first line was read as one name, and the schema has 2 columns: its delimiter may be"),
        (["age", "", "ward"], "^every second name of the first line is empty: its delimiter has two characters"),
        (["age"], "^column ward: is in the schema but not in the data$"),
    ],
)
def test_a_first_line_that_another_delimiter_parts_is_told_before_any_column(names: list[str], cause: str) -> None:
    codec = Codec(make("name: a\ncolumns:\n  age: {type: boolean}\n  ward: {type: boolean}\n"))
    with refused(DataError, cause) as told:
        codec.check_names(names, is_text=True)
    assert "§" not in str(told.value)


def test_a_slip_in_a_name_is_told_without_the_name_and_so_is_a_schema_of_another_table() -> None:
    columns = "".join(f"  {name}: {{type: boolean}}\n" for name in ("age", "regoin", "ward"))
    codec = Codec(make(f"name: a\ncolumns:\n{columns}"))
    off = "the data has a column whose name differs from {} in {}; "
    one = "^column {}: is in the schema but not in the data, which has a column whose name differs from it in {}; "
    for names, rule in (
        (["age", "region", "ward"], one.format("regoin", "2 letters")),
        (["age", "regoin", "wards"], one.format("ward", "1 letter")),
        (["agee", "region", "wards"], off.format("age", "1 letter; .*regoin in 2 letters; .*ward in 1 letter")),
    ):
        with refused(DataError, rule) as told:
            codec.check_names(names)
        assert not [name for name in names if name not in codec.columns and f" {name} " in f"{told.value} "]
    for names in (["age", "2025-regoin", "ward"], ["age", "reg1234", "ward"], ["age", "realm", "ward"]):
        with refused(DataError, "is in the schema but not in the data; the data has 1 column", column="regoin") as told:
            codec.check_names(names)
        assert "differs" not in str(told.value)
    for names, is_text in ((["x", "y"], False), (["x", "y"], True), ([], False)):
        with refused(DataError, "^no column of this schema is in the data .is it the schema of another table") as told:
            codec.check_names(names, is_text)
        assert ("the first line" in str(told.value)) == is_text and "lists the names" not in str(told.value)


def test_all_columns_of_a_wrong_type_are_named_at_once() -> None:
    codec = Codec(make("name: a\ncolumns:\n  age: {type: boolean}\n  ward: {type: boolean}\n  sick: {type: boolean}\n"))
    types = pa.schema([("age", pa.int64()), ("ward", pa.bool_()), ("sick", pa.string())])
    with refused(
        DataError, "^column age: must hold booleans, .*; column sick: must hold booleans, .* holds text"
    ) as told:
        codec.check_types(types)
    assert len(told.value.faults) == 2
    with refused(DataError, "must hold booleans", column="age"):
        codec.check_types(types.set(2, pa.field("sick", pa.bool_())))
