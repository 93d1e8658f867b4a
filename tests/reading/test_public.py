"""Public tables are read into the contract, and private rows name their rows, or are answered in one sentence."""

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.audit.made.firm import records_of
from dpmodels.authoring.lint import parse
from dpmodels.authoring.written import check_written
from dpmodels.codec.flat import public_tables, split
from dpmodels.codec.public import NONE, UNKNOWN, rows_named
from dpmodels.codec.tree import TreeCodec, TreeRecords
from dpmodels.contract.public import PublicTable
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError, Unsuitable
from dpmodels.gate.tree_gate import TreeGate
from dpmodels.generators.trees.tree import Rows, _codes
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.reading.public import check_public, load_public_files, load_public_frames
from tests.kit.errors import refused

SECRET = "Quillfeather"
SCHEMA = """
name: planes
public:
  airport:
    key: code
    columns:
      code: {type: identifier}
      opened: {type: datetime, min: 1900-01-01, max: 2024-12-31, resolution: day}
      height: {type: number, min: -100, max: 5000, nullable: true}
  weather:
    key: [code, hour]
    groups: 2
    columns: {code: {type: identifier}, hour: {type: integer, min: 0, max: 23}, wet: {type: boolean}}
tables:
  plane:
    key: tail
    columns: {tail: {type: identifier, keep: regenerate}, seats: {type: integer, min: 1, max: 9}}
  flight:
    parent: plane
    most: 3
    refers:
      - {to: airport, by: dest, nullable: true, unknown: "null"}
      - {to: weather, by: [origin, hour]}
    columns:
      tail: {type: identifier}
      dest: {type: identifier}
      origin: {type: identifier}
      hour: {type: identifier}
      late: {type: boolean}
"""
PUBLIC: dict[str, dict[str, list[Any]]] = {
    "airport": {
        "code": ["AAA", "BBB", "CCC"],
        "opened": [date(1950, 2, 1), date(1960, 1, 1), date(2000, 12, 31)],
        "height": [1.25, None, 0.1],
    },
    "weather": {"code": ["AAA", "AAA", "BBB"], "hour": [1, 2, 1], "wet": [True, False, True]},
}
PRIVATE: dict[str, dict[str, list[Any]]] = {
    "plane": {"tail": ["x", "y"], "seats": [2, 5]},
    "flight": {
        "tail": ["y", "x", "y"],
        "dest": ["CCC", None, "AAA"],
        "origin": ["AAA", "BBB", "AAA"],
        "hour": [2, 1, 1],
        "late": [True, False, True],
    },
}


def tables_of(changes: dict[str, Any] | None = None) -> dict[str, pa.Table]:
    """Return all tables, with some columns of the flights replaced."""
    tables = {name: pa.table(columns) for name, columns in (PUBLIC | PRIVATE).items()}
    return tables | {"flight": pa.table(PRIVATE["flight"] | (changes or {}))}


def tree_of() -> Tree:
    return load_public_frames(Tree.model_validate(yaml.safe_load(SCHEMA)), Sensitive(tables_of()))[0]


def test_public_rows_are_the_same_from_files_and_frames_and_are_handed_over_as_they_are(tmp_path):
    for name, table in tables_of().items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    from_files = load_public_files(Tree.model_validate(yaml.safe_load(SCHEMA)), str(tmp_path))
    tree, private = load_public_frames(Tree.model_validate(yaml.safe_load(SCHEMA)), Sensitive(tables_of()))
    assert from_files == tree and tree.hash == from_files.hash and set(private.reveal()) == {"plane", "flight"}
    assert tree.public["airport"].rows["opened"] == ("1950-02-01", "1960-01-01", "2000-12-31")
    for name, table in public_tables(Tree.model_validate_json(tree.model_dump_json())).items():
        assert table.to_pydict() == tables_of()[name].to_pydict(), name


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_public_rows_are_read_from_text_with_all_their_columns(ending, tmp_path):
    content = yaml.safe_load(SCHEMA)
    content["public"] = {"airport": {"key": "code", "columns": {"code": {"type": "identifier"}}}}
    content["public"]["airport"]["columns"] |= {"number": {"type": "identifier"}, "name": {"type": "identifier"}}
    content["tables"]["flight"]["refers"] = content["tables"]["flight"]["refers"][:1]
    rows = pd.DataFrame({"code": ["AAA", "BBB"], "number": [7, 8], "name": ["One", "Two"]})
    if ending == "csv":
        rows.to_csv(tmp_path / "airport.csv", index=False)
    else:
        rows.to_json(tmp_path / "airport.jsonl", orient="records", lines=True)
    tree = load_public_files(Tree.model_validate(content), str(tmp_path))
    expected = rows.astype(str) if ending == "csv" else rows  # a text file has no numbers
    assert public_tables(tree)["airport"].to_pydict() == expected.to_dict("list")


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "frame"])
def test_columns_of_a_public_table_that_are_not_listed_are_left_out(ending, tmp_path):
    content = yaml.safe_load(SCHEMA)
    content["public"] = {"airport": {"key": "code", "columns": {"code": {"type": "identifier"}}}}
    content["tables"]["flight"]["refers"] = content["tables"]["flight"]["refers"][:1]
    rows = pd.DataFrame({"runways": [[1], [2, 3]], "code": ["AAA", "BBB"], "city": [None, "Rome"]})
    if ending == "csv":
        rows.to_csv(tmp_path / "airport.csv", index=False)
    elif ending == "jsonl":
        rows.to_json(tmp_path / "airport.jsonl", orient="records", lines=True)
    else:
        rows.to_parquet(tmp_path / "airport.parquet", index=False)
    tree = Tree.model_validate(content)
    if ending == "frame":
        tree, _ = load_public_frames(tree, Sensitive({**tables_of(), "airport": rows}))
        with refused(DataError, "is in the schema but not in the data", column="airport.code"):
            load_public_frames(Tree.model_validate(content), Sensitive({**tables_of(), "airport": rows[["city"]]}))
    else:
        tree = load_public_files(tree, str(tmp_path))
    assert public_tables(tree)["airport"].to_pydict() == {"code": ["AAA", "BBB"]}


def test_keys_of_text_files_match_whole_numbers_and_no_other_way_to_write_them():
    columns = {"columns": {"id": {"type": "identifier"}}, "key": "id"}
    of_text = PublicTable.model_validate({**columns, "rows": {"id": ["7", "008"]}})
    of_numbers = PublicTable.model_validate({**columns, "rows": {"id": [7, 8]}})
    assert rows_named(of_text, [np.array([8, 7, None], dtype=object)]).tolist() == [UNKNOWN, 0, NONE]
    assert rows_named(of_numbers, [np.array(["08", "7", None], dtype=object)]).tolist() == [UNKNOWN, 0, NONE]
    assert rows_named(of_numbers, [np.array([8, 9], dtype=object)]).tolist() == [1, UNKNOWN]


def test_rows_name_public_rows_by_their_keys_and_come_back_as_they_were():
    tree, tables = tree_of(), tables_of()
    records = records_of(tree, {name: tables[name] for name in tree.tables})
    assert [codes.tolist() for codes in records.codes["flight"]] == [[0, 1, 1], [3, 2, 0], [2, 1, 0]]
    flat = records.flat("flight")
    assert list(tree.attributes("flight")) == ["flight.late", "flight.dest", "flight.origin+hour"]
    assert flat.codes[-1].tolist() == [0, 1, 0]  # the two rows of the first hour are a group
    made = TreeCodec(tree).decode(records)
    again = split(tree, made)["flight"].drop_columns("tail").to_pydict()
    order = [1, 0, 2]
    assert again == {name: [PRIVATE["flight"][name][row] for row in order] for name in again}
    gate = TreeGate(tree, 2)
    assert gate.check(made)
    gate.settle()
    assert not gate.broken
    assert TreeCodec(tree).encode(made).codes["flight"][2].tolist() == [2, 1, 0]


def test_a_key_that_is_not_public_is_null_where_the_schema_says_so():
    tree = tree_of()
    tables = tables_of({"dest": [SECRET, "BBB", None]})
    assert records_of(tree, {name: tables[name] for name in tree.tables}).codes["flight"][1].tolist() == [1, 3, 3]


@pytest.mark.parametrize(
    ("changes", "column", "says"),
    [
        ({"origin": [SECRET, "BBB", "AAA"]}, "origin", "names a row that public table weather lacks"),
        ({"hour": [2, 2, 1]}, "origin", "names a row that public table weather lacks"),
        ({"hour": [2, None, 1]}, "origin", "must name a row of public table weather"),
    ],
)
def test_a_key_that_is_not_public_is_refused_without_a_value(changes, column, says):
    tree, tables = tree_of(), tables_of(changes)
    with refused(DataError, says, column=column) as fault:
        records_of(tree, {name: tables[name] for name in tree.tables})
    assert SECRET not in str(fault.value)


def test_what_a_row_refers_to_is_its_own_and_moves_with_its_unit():
    tree, tables = tree_of(), tables_of()
    both = records_of(tree, {name: tables[name] for name in tree.tables})
    alone = TreeRecords.concat([both.take([1]), both.take([0])])
    assert [codes.tolist() for codes in alone.codes["flight"]] == [[1, 1, 0], [2, 0, 3], [1, 0, 2]]


def test_each_key_of_a_group_is_drawn_and_none_of_another():
    tree = tree_of()
    groups, rng = np.repeat([0, 1], 500), np.random.default_rng(0)
    names = [f"flight.{name}" for name in tree.tables["flight"].grouped]
    zeros = {name: np.zeros(1000, dtype=np.int32) for name in names}
    rows = Rows(
        {**zeros, "flight.origin+hour": groups.astype(np.int32)}, {name: np.zeros(1000) for name in names}, groups
    )
    drawn = _codes(tree, "flight", rows, rng)[-1]
    assert set(drawn[:500]) == {0, 2} and set(drawn[500:]) == {1}
    assert abs((drawn[:500] == 0).mean() - 0.5) < 0.1


@pytest.mark.parametrize(
    ("table", "column", "values", "says"),
    [
        ("airport", "height", [1, 2, 9999], "height"),
        ("airport", "code", ["AAA", "AAA", "CCC"], "must name each row of airport once"),
        ("weather", "wet", [True, None, True], "wet"),
    ],
)
def test_public_rows_that_break_their_schema_are_refused(table, column, values, says):
    tables = tables_of() | {table: pa.table(PUBLIC[table] | {column: values})}
    with refused(DataError, says):
        load_public_frames(Tree.model_validate(yaml.safe_load(SCHEMA)), Sensitive(tables))


@pytest.mark.parametrize("values", [[1.0, 2.0, "high"], ["1", "2", "high"], [1.0, 2.0, 9999.0]])
def test_rows_that_a_schema_lists_are_held_to_their_columns(values):
    content = tree_of().model_dump()
    content["public"]["airport"]["rows"]["height"] = values
    with refused(DataError, "airport"):
        check_public(Tree.model_validate(content))


def test_without_its_public_rows_a_tree_is_planned_no_more_than_read():
    tree = Tree.model_validate(yaml.safe_load(SCHEMA))
    with refused(Unsuitable, "the rows of public table airport are not known"):
        create("nacre-tree", {}, {}).plan(tree, PrivacyBudget(epsilon=1, delta=1e-5, unit=tree.unit))


def test_the_gate_notices_a_row_of_no_public_table():
    tree, tables = tree_of(), tables_of()
    made = TreeCodec(tree).decode(records_of(tree, {name: tables[name] for name in tree.tables}))
    frame = made.to_pandas()
    for column, value in (("flight.dest", SECRET), ("flight.origin", None)):
        wrong = frame.copy()
        wrong[column] = wrong[column].where(wrong["table"] != 1, value)
        gate = TreeGate(tree, None)
        gate.check(pa.Table.from_pandas(pd.DataFrame(wrong), schema=made.schema, preserve_index=False))
        gate.settle()
        assert f"reference {column}" in [f"{rule.expectation} {rule.column}" for rule in gate.broken]


UNDECODABLE = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(b"\x00\x00\x00\x00\x02\x00\x00\x00"), pa.py_buffer(b"\xff\xfe")]
)
SPANS = pa.array([1, 2, 3], pa.duration("s"))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (pa.concat_arrays([UNDECODABLE, pa.array(["b", "c"])]), "text in UTF-8"),
        (pa.concat_arrays([UNDECODABLE, pa.array(["b", "c"])]).dictionary_encode(), "text in UTF-8"),
        (pa.array([b"a", b"b", b"c"]), "must hold text, numbers"),
        (pa.array([[1], [2], [3]]), "must hold text, numbers"),
        (pa.array([{"a": 1}, {"a": 2}, {"a": 3}]), "must hold text, numbers"),
        (SPANS, "must hold text, numbers"),
        (pa.array(["a", "b", "x" * (2**16 + 1)]), "65,536 characters"),
    ],
)
@pytest.mark.parametrize("form", ["parquet", "frame"])
def test_identifiers_that_are_none_of_a_cell_are_refused_by_table_and_column(values, says, form, tmp_path):
    tables = tables_of() | {"airport": pa.table(PUBLIC["airport"] | {"code": values})}
    tree = Tree.model_validate(yaml.safe_load(SCHEMA))
    for name, table in tables.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with refused(DataError, says, column="airport.code") as fault:
        _ = load_public_frames(tree, Sensitive(tables)) if form == "frame" else load_public_files(tree, str(tmp_path))
    assert "xff" not in str(fault.value)


@pytest.mark.parametrize(
    "text", ["a\x85b", "a\u2028b", "\u2029", "a\r\nb\r", "\ufeff", " a  b ", "012", "1e5", "\t- x: y\n"]
)
def test_any_text_of_a_public_table_reads_back_from_the_schema_of_a_hand_off(text):
    tables = tables_of() | {"airport": pa.table(PUBLIC["airport"] | {"code": ["AAA", "BBB", text]})}
    tree, _ = load_public_frames(Tree.model_validate(yaml.safe_load(SCHEMA)), Sensitive(tables))
    check_written(tree)
    again, _ = parse(tree.to_yaml())
    assert again == tree and again.public["airport"].rows["code"][2] == text


def test_public_rows_that_no_schema_reads_back_are_refused():
    content = tree_of().model_dump()
    numbers = {name: list(range(50_000)) for name in ("code", "one", "two")}
    content["public"]["airport"] |= {"columns": {name: {"type": "identifier"} for name in numbers}, "rows": numbers}
    with refused(Unsuitable, "fewer or shorter values"):
        check_written(Tree.model_validate(content))
