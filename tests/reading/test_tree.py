"""Tables of a tree are joined by their keys, and every fault is one sentence that tells no value."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.audit.made import firm
from dpmodels.codec.stacked import matched
from dpmodels.codec.tree import TreeCodec, TreeRecords
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.gate.tree_gate import TreeRules
from dpmodels.reading.load import load_parts
from dpmodels.reading.tree import transform_tree
from dpmodels.reading.tree_files import place_of
from tests.kit.errors import refused

SECRET = "Quillfeather"


@pytest.fixture(params=[None, 4], ids=["at once", "a few at a time"], autouse=True)
def rows_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Join all rows at once, or so few at a time that units, and rows of one table, are in several parts."""
    if request.param:
        read_a_few(monkeypatch, request.param)


def read_a_few(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr("dpmodels.reading.tree.ROWS_AT_ONCE", rows)
    monkeypatch.setattr("dpmodels.reading.rows_on_disk.CHUNK_ROWS", 3)


def tree_of(**changes: Any) -> Tree:
    content = yaml.safe_load(firm.SCHEMA_TEXT)
    for table, keys in changes.items():
        content["tables"][table] |= keys
    return Tree.model_validate(content)


TABLES: dict[str, dict[str, list[Any]]] = {
    "customer": {"customer": ["a", "b", "c"], "age": [20, 30, 40]},
    "address": {"customer": ["c"], "town": ["north"]},
    "purchase": {
        "number": [5, 4, 3, 2, 1],
        "customer": ["b", "a", "b", "b", "b"],
        "day": [date(2024, 5, 1), date(2024, 1, 1), date(2024, 3, 1), date(2024, 2, 1), date(2024, 4, 1)],
        "kind": ["books", "games", "tools", "books", "games"],
    },
    "item": {"purchase": [5, 2, 2, 4], "price": [1.0, 2.0, 3.0, None]},
}


def read(tree: Tree, tables: Mapping[str, Mapping[str, Any]], folder: Path, batch_rows: int = 2) -> TreeRecords:
    """Write tables, and read them as a run does."""
    folder.mkdir(exist_ok=True)
    for name, columns in tables.items():
        pq.write_table(pa.table(dict(columns)), folder / f"{name}.parquet")
    parts = {
        name: load_parts(place_of(str(folder), name), tree.schema_of(name), batch_rows, tree.joins(name))
        for name in tree.tables
    }
    gates = {name: Gate(tree.schema_of(name), raw=True) for name in tree.tables}
    (out := folder / "encoded").mkdir(exist_ok=True)
    transform_tree(parts, gates, TreeRules(tree, raw=True), out, 2)
    codec = TreeCodec(tree)
    with pa.OSFile(str(out / "part-00000.arrow")) as source, pa.ipc.open_file(source) as reader:
        batches = [codec.from_arrow(reader.get_batch(index)) for index in range(reader.num_record_batches)]
    return TreeRecords.concat(batches)


def with_column(table: str, column: str, values: list[Any]) -> dict[str, dict[str, list[Any]]]:
    return {**TABLES, table: {**TABLES[table], column: values}}


def test_rows_stand_below_their_parents_in_order_and_those_beyond_the_most_are_left_out(tmp_path):
    records = read(firm.make_schema(), TABLES, tmp_path)
    assert len(records) == 3 and records.parents["address"].tolist() == [2]
    assert records.parents["purchase"].tolist() == [0, 1, 1, 1]  # b has four, of which the latest is one too many
    assert np.diff(records.codes["purchase"][0][1:].astype(int)).min() > 0
    assert records.parents["item"].tolist() == [0, 1, 1]  # the item of the purchase that is left out is left out too
    assert records.codes["item"][0].tolist()[1:] == [200, 300]


def test_what_a_unit_is_does_not_depend_on_the_order_of_files_or_on_other_units(tmp_path):
    tree, tables = firm.make_schema(), firm.make_tables(30)
    order = np.random.default_rng(1)
    whole = read(tree, {name: table.to_pydict() for name, table in tables.items()}, tmp_path / "whole")
    mixed = {name: table.take(order.permutation(len(table))).to_pydict() for name, table in tables.items()}
    mixed["customer"] = tables["customer"].to_pydict()
    again = read(tree, mixed, tmp_path / "mixed", batch_rows=7)
    assert [sorted(c.tolist()) for c in whole.codes["item"]] == [sorted(c.tolist()) for c in again.codes["item"]]
    fewer = {**tables, "customer": tables["customer"].slice(0, 12)}
    dropping = tree_of(**{name: {"orphans": "drop"} for name in ("address", "purchase", "item")})
    part = read(dropping, {name: table.to_pydict() for name, table in fewer.items()}, tmp_path / "part")
    first = whole.take(slice(0, 12))
    for name in tree.tables:
        assert all((x == y).all() for x, y in zip(part.codes[name], first.codes[name], strict=True)), name


@pytest.mark.parametrize(
    ("tables", "column", "says"),
    [
        (
            with_column("purchase", "customer", ["b", "a", SECRET, "b", "b"]),
            "purchase.customer",
            "of table purchase names a row",
        ),
        (with_column("purchase", "customer", ["b", "a", None, "b", "b"]), "purchase.customer", "must not be null"),
        (
            with_column("customer", "customer", ["a", SECRET, SECRET]),
            "",
            "the key of table customer (customer) must name each row once",
        ),
        (
            with_column("customer", "customer", [1, 2, 3]),
            "address.customer",
            "text in one file and whole numbers in another",
        ),
        (
            with_column("purchase", "kind", ["books", SECRET, "tools", "books", "games"]),
            "",
            "one of the listed",
        ),
    ],
)
def test_a_fault_is_one_sentence_without_a_value(tmp_path, tables, column, says):
    with pytest.raises(DataError) as fault:
        read(firm.make_schema(), tables, tmp_path)
    said = str(fault.value)
    assert fault.value.column == column and says in said and SECRET not in said and "\n" not in said


def test_rows_without_a_parent_are_left_out_where_the_schema_says_so(tmp_path):
    tree = tree_of(purchase={"orphans": "drop"}, item={"orphans": "drop"})
    tables = with_column("purchase", "customer", ["b", "a", None, "nobody", "b"])
    records = read(tree, tables, tmp_path)
    assert records.parents["purchase"].tolist() == [0, 1, 1] and records.rows("item") == 2


def test_keys_of_two_columns_join_and_an_order_that_is_unique_may_be_one_of_them(tmp_path):
    text = """
    name: panel
    tables:
      person: {key: id, columns: {id: {type: identifier, keep: regenerate}, sex: {type: boolean}}}
      year:
        parent: person
        most: 4
        key: [id, year]
        order: year
        unique: true
        columns: {id: {type: identifier}, year: {type: integer, min: 0, max: 9}}
      job:
        parent: year
        most: 2
        columns: {id: {type: identifier}, year: {type: identifier}, pay: {type: integer, min: 0, max: 9}}
    """
    tree = Tree.model_validate(yaml.safe_load(text))
    tables: dict[str, dict[str, list[Any]]] = {
        "person": {"id": [1, 2], "sex": [True, False]},
        "year": {"id": [2, 1, 1], "year": [3, 3, 1]},
        "job": {"id": [1, 1, 2], "year": [3, 1, 3], "pay": [5, 6, 7]},
    }
    records = read(tree, tables, tmp_path)
    assert records.codes["year"][0].tolist() == [1, 3, 3] and records.codes["job"][0].tolist() == [6, 5, 7]
    twice = {**tables, "year": {"id": [2, 1, 1], "year": [3, 3, 3]}}
    with refused(DataError, "the key of table year"):
        read(tree, twice, tmp_path / "twice")
    as_csv = tmp_path / "csv"
    as_csv.mkdir()
    for name, columns in tables.items():
        pa.csv.write_csv(pa.table(columns), as_csv / f"{name}.csv")
    again = read(tree, {}, as_csv)
    assert again.codes["job"][0].tolist() == [6, 5, 7]


def test_rows_that_are_left_out_may_repeat_keys_and_take_nothing_from_others(tmp_path):
    tree = tree_of(purchase={"orphans": "drop"}, item={"orphans": "drop"})
    tables = with_column("purchase", "customer", ["b", "a", None, None, "nobody"])
    tables["purchase"]["number"] = [5, 4, 5, 5, 4]
    records = read(tree, tables, tmp_path)
    assert records.parents["purchase"].tolist() == [0, 1]
    assert records.codes["item"][0].tolist() == [10_001, 100]  # of 4, without a price, and of 5


RULES = {
    "purchase": {
        "constraints": ["when kind = games then customer.age <= 20", "when kind = tools then day > 2024-01-31"]
    },
    "address": {"constraints": ["when town = north then customer.age >= 40"]},
}


def test_rows_that_keep_the_rules_pass_and_those_that_are_left_out_may_break_them(tmp_path):
    tables = with_column("purchase", "kind", ["books", "games", "tools", "books", "games"])
    tables["purchase"]["customer"] = ["b", "a", "b", "b", "nobody"]
    tree = tree_of(**{**RULES, "purchase": {**RULES["purchase"], "orphans": "drop"}}, item={"orphans": "drop"})
    assert read(tree, tables, tmp_path).rows("purchase") == 4


@pytest.mark.parametrize(
    ("tables", "rule"),
    [
        (TABLES, "`when purchase.kind = games then customer.age <= 20` must hold in every row of table purchase"),
        (with_column("address", "customer", ["a"]), "`when address.town = north then customer.age >= 40` must hold"),
        (with_column("purchase", "day", [date(2024, 1, 1)] * 5), "`when kind = tools then day > 2024-01-31` must hold"),
    ],
)
def test_a_broken_rule_is_one_sentence_without_a_value_or_a_count(tmp_path, tables, rule):
    with pytest.raises(DataError) as fault:
        read(tree_of(**RULES), tables, tmp_path)
    assert rule in str(fault.value) and "to fix it: correct the rows" in str(fault.value)
    assert not [word for word in str(fault.value).replace(rule, "").split() if word.strip(".;").isdigit()]


def test_parents_of_one_key_are_matched_by_the_first_and_nobody_by_none():
    parents, children = [np.array(["a", "b", "a"], dtype=object)], [np.array(["b", "a", "c"], dtype=object)]
    assert matched(parents, children).tolist() == [1, 0, -1]
    assert matched([each[:0] for each in parents], children).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("rows_at_once", [None], indirect=True)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.nightly_if("[2-5]-*")  # beside one seed of each tree
def test_however_few_rows_are_joined_at_a_time_the_records_are_the_same(tmp_path, monkeypatch, seed):
    """Rows without a parent, and rows below them; numbers of several widths, and text, for keys."""
    rng = np.random.default_rng(seed)
    dropping = {name: {"orphans": "drop"} for name in ("address", "purchase", "item")}
    tree = tree_of(**dropping) if seed % 2 else tree_of(address=dropping["address"], purchase=dropping["purchase"])
    tables = {name: table.to_pydict() for name, table in firm.make_tables(int(rng.integers(1, 40)), seed).items()}
    for name in ("address", "purchase"):
        rows = len(tables[name]["customer"])
        lost = rng.random(rows) < 0.2
        tables[name]["customer"] = [
            None if gone else one for one, gone in zip(tables[name]["customer"], lost, strict=True)
        ]
    if seed % 3 == 0:
        tables["customer"]["customer"] = pa.array(tables["customer"]["customer"], pa.int8())
    whole = read(tree, tables, tmp_path / "whole")
    for rows in (1, 7, 50):
        read_a_few(monkeypatch, rows)
        parts = read(tree, tables, tmp_path / str(rows))
        for name in tree.tables:
            assert all((x == y).all() for x, y in zip(parts.codes[name], whole.codes[name], strict=True)), name
            assert name == tree.root or (parts.parents[name] == whole.parents[name]).all()
        assert [file.name for file in (tmp_path / str(rows) / "encoded").iterdir()] == ["part-00000.arrow"]


def test_a_key_that_two_units_have_is_refused_however_far_apart_they_are(tmp_path):
    number = [f"P{row}" for row in range(200)]
    tables = {
        "customer": {"customer": list(range(100)), "age": [30] * 100},
        "address": {"customer": [5], "town": ["north"]},
        "purchase": {
            "number": [*number[:-1], number[0]],
            "customer": [row // 2 for row in range(200)],
            "day": [date(2024, 1, 1)] * 200,
            "kind": ["books"] * 200,
        },
        "item": {"purchase": [number[7]], "price": [1.0]},
    }
    with refused(DataError, "the key of table purchase"):
        read(firm.make_schema(), tables, tmp_path)
    tables["purchase"]["number"][-1] = number[-1]
    assert len(read(firm.make_schema(), tables, tmp_path)) == 100


def test_a_place_must_hold_one_file_for_each_table(tmp_path):
    (tmp_path / "item.csv").write_text("")
    (tmp_path / "item.parquet").write_text("")
    for table, says in (("item", "several files"), ("customer", "no file or folder")):
        with refused(DataError, says, column=""):
            place_of(str(tmp_path), table)
    assert place_of("s3://bank/{table}/*.parquet", "item") == "s3://bank/item/*.parquet"
    with refused(DataError, "say where each is", column=""):
        place_of("s3://bank", "item")
