"""A folder of several tables: drafted as one schema, whose keys are proposed by names alone and left to a person."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import nacre
from dpmodels.audit.made import firm
from dpmodels.authoring.draft import PublicFacts, draft
from dpmodels.authoring.header import DoubtfulNames
from dpmodels.authoring.keys import Link, proposals
from dpmodels.authoring.lint import parse
from dpmodels.authoring.tree_draft import draft_all, places_in
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError, InvalidArgument, Unsuitable
from dpmodels.plain_yaml import read_yaml
from tests.kit.errors import refused, shown
from tests.kit.support import run_cli

PLANTED = "Zebulon-Quillfeather"
TABLES = firm.make_tables(10)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "firm", TABLES)


def written(folder: Path, tables: dict[str, pa.Table], ending: str = ".parquet") -> Path:
    """Write a file for each table."""
    folder.mkdir()
    for name, table in tables.items():
        (pq.write_table if ending == ".parquet" else csv.write_csv)(table, folder / f"{name}{ending}")
    return folder


def places_of_faults(text: str) -> set[str]:
    tree, faults = parse(text)
    assert tree is None
    return {fault.where for fault in faults}


def test_every_key_is_a_todo_until_a_person_confirms_it(folder: Path) -> None:
    text = draft_all(folder)
    keys = {"customer.key", "address.parent", "address.parent_key", "address.most", "item.parent", "item.parent_key"}
    keys |= {"purchase.key", "purchase.parent", "purchase.parent_key", "purchase.most", "item.most"}
    tables = read_yaml(text)["tables"].items()
    assert {f"{table}.{key}" for table, keys in tables for key, value in keys.items() if value == "TODO"} == keys
    assert {f"tables.{key}" for key in keys if "item" not in key} <= places_of_faults(text)  # which are the first 20
    assert "# proposed by names alone: {parent: purchase, parent_key: purchase}; to confirm it, write it" in text
    assert "# proposed, as it may name a row of table customer; to take it, delete `, confirm: TODO`" in text
    assert "customer: {type: identifier, confirm: TODO}\n" in text
    assert "if anybody may know table customer" in text and "with refers in address, purchase" in text


def test_a_draft_that_is_filled_in_is_the_schema_of_the_folder(folder: Path) -> None:
    text = draft_all(folder, public_facts=PublicFacts(accept=True))
    assert places_of_faults(text) == {
        *(f"tables.{table}.most" for table in ("address", "purchase", "item")),
        "tables.purchase.key",
        "tables.purchase.columns.number.values",
        "tables.purchase.columns.kind.values",
        "tables.address.columns.town.values",
        "tables.item.columns.price.min",
        "tables.item.columns.price.max",
    }
    text = (
        text.replace("key: TODO", "key: number")
        .replace("most: TODO", "most: 3")
        .replace("{type: number, min: TODO, max: TODO}", "{type: number, min: 0, max: 9}")
    )
    text = text.replace("number: {type: categorical, values: TODO}", "number: {type: identifier, keep: regenerate}")
    tree, faults = parse(text.replace("values: TODO", "values: [a, b]"))
    assert isinstance(tree, Tree) and faults == [] and tree.name == "firm"
    assert list(tree.tables) == ["customer", "address", "purchase", "item"] and tree.above("item") == (
        "customer",
        "purchase",
    )


def test_no_value_and_no_number_of_rows_changes_a_draft(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    planted = {"kind": pa.array([PLANTED] * 7), "number": pa.array([PLANTED] * 7)}
    for name, table in TABLES.items():
        rows = pa.table({one.name: planted.get(one.name, pa.nulls(7, one.type)).cast(one.type) for one in table.schema})
        pq.write_table(rows, tmp_path / "other" / f"{name}.parquet")
    other = draft_all(tmp_path / "other").replace("name: other", "name: firm")
    assert other == draft_all(folder) and PLANTED not in other


@pytest.mark.parametrize(
    ("tables", "keys", "links", "roots"),
    [
        (
            {"customers": ["CustomerID", "age"], "orders": ["id", "customerId"], "order_items": ["order_id", "sku"]},
            {"customers": "CustomerID", "orders": "id", "order_items": ""},
            {"orders": Link("customers", "customerId"), "order_items": Link("orders", "order_id")},
            ("customers",),
        ),
        (  # a row two levels down names both of those above
            {"person": ["person_id"], "stay": ["stay_id", "person_id"], "lab": ["person_id", "stay_id", "value"]},
            {"person": "person_id", "stay": "stay_id", "lab": ""},
            {"stay": Link("person", "person_id"), "lab": Link("stay", "stay_id")},
            ("person",),
        ),
        (  # two parents: a person must choose
            {"client": ["client_id"], "shop": ["shop_id"], "sale": ["client_id", "shop_id"]},
            {"client": "client_id", "shop": "shop_id", "sale": ""},
            {"sale": None},
            ("client", "shop"),
        ),
        ({"a": ["id", "b_id"], "b": ["id", "a_id"]}, {"a": "id", "b": "id"}, {"a": None, "b": None}, ()),
        ({"a": ["id"], "b": ["id"]}, {"a": "id", "b": "id"}, {"a": None, "b": None}, ("a", "b")),
    ],
)
def test_names_propose_keys_and_parents(tables: Any, keys: Any, links: Any, roots: Any) -> None:
    proposed = proposals(tables)
    assert {name: proposed.key(name) for name in tables} == keys and proposed.roots == roots
    assert {name: proposed.link(name) for name in tables} == dict.fromkeys(tables) | links
    order = proposed.order
    assert sorted(order) == sorted(tables)
    assert all(order.index(link.parent) < order.index(name) for name, link in links.items() if link)


def test_where_several_parents_are_possible_none_is_written_even_if_proposals_are_accepted(tmp_path: Path) -> None:
    tables = {"client": ["client_id", "a"], "shop": ["shop_id", "b"], "sale": ["client_id", "shop_id", "c"]}
    folder = written(tmp_path / "two", {name: pa.table({one: [1] for one in names}) for name, names in tables.items()})
    text = draft_all(folder, public_facts=PublicFacts(accept=True))
    assert "its rows belong to client, by client_id; or shop, by shop_id; a row has one parent" in text
    assert {f"tables.{name}.parent" for name in tables} <= places_of_faults(text)


def test_files_with_the_same_columns_are_parts_of_one_table(tmp_path: Path) -> None:
    part = pa.table({"age": [1], "ward": ["a"]})
    folder = written(tmp_path / "clinic", {"north": part, "south": part.select(["ward", "age"])})
    assert draft_all(folder) == draft(folder) and "tables:" not in draft(folder)
    assert "tables:" in draft_all(folder, several=True) and list(places_in(folder, several=True)) == ["north", "south"]


def test_a_folder_of_the_values_of_a_column_is_one_table(tmp_path: Path) -> None:
    for ward, table in (("north", {"age": [1]}), ("south", {"born": [2]})):
        (tmp_path / "clinic" / f"ward={ward}").mkdir(parents=True)
        pq.write_table(pa.table(table), tmp_path / "clinic" / f"ward={ward}" / "part.parquet")
    assert places_in(tmp_path / "clinic") == {}


def test_first_lines_that_may_be_records_are_names_only_if_a_person_says_so(tmp_path: Path) -> None:
    one, other = pa.table({"patient": [1], "age": [2]}), pa.table({PLANTED: [1], "south": [2]})
    folder = written(tmp_path / "clinic", {"part_a": one, "part_b": other}, ".csv")
    with refused(DataError, "say --tables; files of one table must have the same first line", column="") as caught:
        draft_all(folder)
    assert PLANTED not in shown(caught.value)
    assert PLANTED in draft_all(folder, several=True)
    written(tmp_path / "doubtful", {"a": one, "b": pa.table({"1874": [1], PLANTED: [2]})}, ".csv")
    with pytest.raises(DoubtfulNames) as doubt:
        draft_all(tmp_path / "doubtful", several=True)
    assert PLANTED not in str(doubt.value)


def test_files_that_cannot_be_called_as_tables_are_refused(tmp_path: Path, folder: Path) -> None:
    upper = written(tmp_path / "upper", {"Customer": TABLES["customer"], "Item": TABLES["item"]})
    with refused(DataError, "name every file with lowercase letters", column=""):
        draft_all(upper)
    for data in (upper, folder / "item.parquet"):
        with refused(InvalidArgument, name="tables"):
            draft_all(data, several=True)


def test_what_is_documented_of_each_table_is_filled_in(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "firm.sql").write_text(
        "CREATE TABLE item (purchase TEXT, price DECIMAL(8,2) CHECK (price BETWEEN 0 AND 100));\n"
        "CREATE TABLE customer (customer INT, age INT NOT NULL CHECK (age BETWEEN 18 AND 89), towm TEXT);"
    )
    text = draft_all(folder, public_facts=PublicFacts(tmp_path / "firm.sql"))
    assert "# source: documented in SQL: firm.sql, sha256 " in text
    assert "age: {type: integer, min: 18, max: 89}" in text
    assert "price: {type: number, min: 0.0, max: 100.0, round: 2, nullable: true, zero_inflated: true}" in text
    assert "# WARNING: table customer: described in firm.sql, but no column of the data: `towm`\n" in text
    assert text.count("WARNING") == 1
    (tmp_path / "firm.csv").write_text("name,type\nage,int\n")
    text = draft_all(folder, public_facts=PublicFacts(tmp_path / "firm.csv"))
    assert "# WARNING: nothing is read of firm.csv, which names none of the tables: address, customer, item," in text


def test_the_command_says_what_it_took_a_folder_for(folder: Path) -> None:
    code, out, err = run_cli("schema", "init", folder)
    assert code == 0 and out == draft_all(folder)
    assert "taken as 4 tables, since the columns of its files differ" in err
    assert "columns with a TODO left: 10; keys of tables with a TODO left: 11" in err
    code, _, err = run_cli("schema", "init", folder / "item.parquet", "--tables")
    assert code == 1 and "--tables" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"target": "item.price"}, "\ntarget: item.price\n"),
        ({"name": "firms_2"}, "\nname: firms_2\n"),
        ({"target": "price"}, "must be a column of the data"),
        ({"name": "Two Firms"}, "must have lowercase letters, digits, _ and - alone, such as two_firms"),
    ],
)
def test_a_terminal_and_python_take_the_same_name_and_target(settings: dict[str, str], says: str, folder: Path) -> None:
    words = [word for key, value in settings.items() for word in (f"--{key}", value)]
    code, out, err = run_cli("schema", "init", folder, *words)
    if says.startswith("\n"):
        assert says in out and out == nacre.draft_schema(folder, **settings), err
    else:
        with refused(InvalidArgument, says, **{"name": next(iter(settings))}):
            nacre.draft_schema(folder, **settings)
        assert code == 1 and out == "" and says in err and err.startswith(f"error: --{next(iter(settings))}=")


def test_python_takes_files_of_a_folder_for_tables_when_it_is_said(folder: Path, tmp_path: Path) -> None:
    (parts := tmp_path / "parts").mkdir()
    for name in ("a", "b"):
        (parts / f"{name}.csv").write_text("x,y\n1,2\n")
    assert "\ntables:" in nacre.draft_schema(parts, tables=True) and "\ntables:" not in nacre.draft_schema(parts)
    with refused(Unsuitable, "rows in memory answer no query"):
        nacre.draft_schema(TABLES["item"], query="select 1")


def test_python_drafts_a_dictionary_of_frames(folder: Path) -> None:
    frames = {name: table.to_pandas() for name, table in TABLES.items()}
    text = nacre.draft_schema(frames)
    assert "\nname: TODO  # of the data set, and of the account" in text and text.count("parent_key: TODO") == 3
    assert "\nname: firms\n" in nacre.draft_schema(frames, name="firms")
    assert nacre.draft_schema(folder).count("parent_key: TODO") == 3
    by_value = {PLANTED.lower().replace("-", "_"): frames["item"], "b": frames["item"]}
    with refused(DataError, "the frames have all the same columns", column="") as caught:
        nacre.draft_schema(by_value)
    assert PLANTED.lower()[:7] not in shown(caught.value)
