"""A discovery on a tree of tables counts one row of each unit in every table, whatever other units hold."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
import yaml
from scipy import stats

from dpmodels.audit.made import firm
from dpmodels.contract.discovery.discovery import Discovery, contract_of
from dpmodels.contract.discovery.stand_in import stand_in
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.mechanisms.threshold import KeyCounts
from dpmodels.methods.tables.thresholded_counts import Counting, DiscoveryMeasurement
from dpmodels.reading.unit_rows import load_unit_rows
from dpmodels.statistics.key_counts import transform_key_counts
from tests.kit.errors import refused

MARKED = {"age": "max: discover", "kind": "values: discover", "town": "values: discover", "price": "min: discover"}
DRAFT = (
    firm.SCHEMA_TEXT.replace("max: 89", MARKED["age"])
    .replace("values: [books, games, tools]", MARKED["kind"])
    .replace("values: [north, south]", MARKED["town"])
    .replace("min: 0, max: 100", f"{MARKED['price']}, max: discover")
)


def contract(**changes: str) -> Discovery:
    text = DRAFT
    for old, new in changes.items():
        text = text.replace(old, new)
    data = yaml.safe_load(text)
    return contract_of(data, Tree.model_validate(stand_in(data)))


def write(folder: Path, tables: Mapping[str, Any]) -> str:
    folder.mkdir(exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return str(folder)


def unit_rows(tables: Mapping[str, Any], folder: Path, of: Discovery | None = None, rows: int = 64) -> pa.Table:
    return pa.Table.from_batches(load_unit_rows(of or contract(), write(folder, tables), rows).reveal())


def some_tables(units: int, first: int = 0, **values: Any) -> dict[str, pa.Table]:
    """Return units of which all rows of a table are alike, so that it does not matter which of them is drawn."""
    rng, who = np.random.default_rng(units + first), np.arange(first, first + units)
    buyers = np.repeat(who, rng.integers(0, 4, units))
    numbers = [f"P{first}-{row}" for row in range(len(buyers))]
    items = np.repeat(np.arange(len(buyers)), rng.integers(0, 5, len(buyers)))
    kinds = values.get("kind", [f"kind {one % 3}" for one in buyers])
    prices = values.get("price", (buyers[items] % 7) * 10.0)
    living = who[who % 2 == 0]
    return {
        "customer": pa.table({"customer": who, "age": values.get("age", who % 60 + 20)}),
        "address": pa.table({"customer": living, "town": pa.array(["north"] * len(living), pa.string())}),
        "purchase": pa.table(
            {
                "number": pa.array(numbers, pa.string()),
                "customer": buyers,
                "day": pa.array(np.repeat(np.datetime64("2024-01-01"), len(buyers))),
                "kind": pa.array(list(kinds), pa.string()),
            }
        ),
        "item": pa.table({"purchase": pa.array([numbers[row] for row in items], pa.string()), "price": prices}),
    }


def together(*parts: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    return {name: pa.concat_tables([part[name] for part in parts]) for name in parts[0]}


def test_the_contract_has_the_tables_and_their_keys_and_a_unit_is_one_row():
    made = contract()
    assert list(made.wanted) == ["customer.age", "address.town", "purchase.kind", "item.price"]
    assert made.tables["item"].parent_key == ("purchase",) and made.tables["purchase"].key == ("number",)
    assert made.unit == firm.make_schema().unit and made.rows_of_a_unit == 1 < made.unit.max_rows
    assert Discovery.model_validate_json(made.model_dump_json()) == made
    assert Counting(DiscoveryMeasurement(), made).l2_sensitivity == int(np.ceil(1024 * np.sqrt(5)))


def test_every_unit_has_a_row_of_its_own_in_every_table_or_null(tmp_path: Path) -> None:
    tables = together(some_tables(9), some_tables(30, 9))
    rows = unit_rows(tables, tmp_path / "data", rows=7)
    buyers = set(tables["purchase"]["customer"].to_pylist())
    owner = dict(zip(*(tables["purchase"][name].to_pylist() for name in ("number", "customer")), strict=True))
    eaters = {owner[number] for number in tables["item"]["purchase"].to_pylist()}
    assert rows["customer.age"].to_pylist() == [one + 20 for one in range(39)]
    assert rows["address.town"].to_pylist() == ["north" if one % 2 == 0 else None for one in range(39)]
    assert rows["purchase.kind"].to_pylist() == [f"kind {one % 3}" if one in buyers else None for one in range(39)]
    assert rows["item.price"].to_pylist() == [(one % 7) * 10.0 if one in eaters else None for one in range(39)]


@pytest.mark.parametrize("place", [0, 4, 9])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_unit_more_moves_the_counts_as_one_row_does_whatever_it_holds_and_wherever_it_is(tmp_path, place, rows):
    """The worst there is: values that nobody else has, in all of many rows."""
    made, others = contract(), some_tables(9)
    one = {
        "customer": pa.table({"customer": [500], "age": [1]}),
        "address": pa.table({"customer": [500], "town": ["nowhere"]}),
        "purchase": pa.table(
            {
                "number": [f"X{row}" for row in range(rows)],
                "customer": [500] * rows,
                "day": pa.array(np.repeat(np.datetime64("2024-01-01"), rows)),
                "kind": [f"rare {row}" for row in range(rows)],
            }
        ),
        "item": pa.table({"purchase": [f"X{row % rows}" for row in range(4 * rows)], "price": [1e9] * (4 * rows)}),
    }
    world = {
        name: pa.concat_tables([table.slice(0, place), one[name], table.slice(place)]) for name, table in others.items()
    }
    what = Counting(DiscoveryMeasurement(), made).what
    without, within = (
        transform_key_counts(load_unit_rows(made, write(tmp_path / name, tables), 4), what).reveal()
        for name, tables in (("without", others), ("within", world))
    )
    moved = np.abs(within.public - without.public).tolist()
    keys = [by_key(without), by_key(within)]
    moved += [abs(keys[0].get(key, 0) - keys[1].get(key, 0)) for key in {*keys[0], *keys[1]}]
    bound = Counting(DiscoveryMeasurement(), made).l2_sensitivity
    assert bound - 1 <= np.sqrt(sum(step**2 for step in moved)) <= bound
    assert sorted(set(moved)) == [0, what.steps_per_row]


MIXED = """name: bank
tables:
  account:
    key: id
    columns:
      id: {type: identifier, keep: regenerate}
      opened: {type: datetime, min: discover, max: discover}
      size: {type: integer, min: discover, max: discover}
      level: {type: categorical, values: discover}
  loan:
    parent: account
    parent_key: account
    most: 5
    columns: {account: {type: identifier}, kind: {type: categorical, values: discover}}
"""
USUAL = {"id": pa.int64(), "opened": pa.timestamp("us"), "size": pa.int64(), "level": pa.int64()}
ODD = [
    ("opened", pa.timestamp("us"), pa.timestamp("ns"), datetime(1600, 1, 1)),
    ("opened", pa.date32(), pa.timestamp("ns"), datetime(1600, 1, 1)),
    ("size", pa.int64(), pa.float64(), 2**53 + 1),
    ("level", pa.int64(), pa.float64(), 2**53 + 1),
    ("size", pa.uint64(), pa.int8(), 2**64 - 1),
    ("size", pa.decimal128(38, 1), pa.decimal128(38, 30), Decimal("12345678901")),
    ("id", pa.int64(), pa.uint64(), -1),
    ("id", pa.uint64(), pa.int64(), 2**63 + 5),
]
"""Of a column its types in two files, and a value that fits into the first alone."""


def accounts_of(column: str, kind: pa.DataType, first: int, position: int | None, value: Any) -> pa.Table:
    """Return four accounts of a file, and one more that holds a value of its own."""
    rows = [{"id": first + row, "opened": datetime(2001, 1, 1), "size": row, "level": row} for row in range(4)]
    if position is not None:
        rows.insert(position, {**rows[0], "id": first + 4, column: value})
    types = USUAL | {column: kind}
    return pa.table({name: pa.array([row[name] for row in rows], types[name]) for name in types})


@pytest.mark.parametrize("position", [0, 2, 4], ids=["first", "middle", "last"])
@pytest.mark.parametrize("files", [(0, 1), (1, 0)], ids=["before", "behind"])
@pytest.mark.parametrize(("column", "kind", "other", "value"), ODD)
def test_no_row_decides_by_its_value_whether_files_of_several_types_are_read(
    tmp_path, column, kind, other, value, files, position
):
    """Neighbors differ by a row that fits into the type of its own file, and not into that of another file."""
    data, counted = yaml.safe_load(MIXED), list[KeyCounts]()
    made = contract_of(data, Tree.model_validate(stand_in(data)))
    what = Counting(DiscoveryMeasurement(), made).what
    for name, odd in (("without", None), ("within", position)):
        for table in ("account", "loan"):
            (tmp_path / name / table).mkdir(parents=True)
        accounts = accounts_of(column, kind, 10, odd, value), accounts_of(column, other, 20, None, None)
        for file, rows in zip(files, accounts, strict=True):
            pq.write_table(rows, tmp_path / name / "account" / f"{file}.parquet")
        named = [one for rows in accounts for one in rows["id"].to_pylist()]
        keys = pa.array(named, pa.decimal128(20)).cast(kind) if column == "id" else pa.array(named)
        loans = pa.table({"account": keys, "kind": pa.array(["x"] * len(keys))})
        pq.write_table(loans, tmp_path / name / "loan" / "0.parquet")
        counted.append(transform_key_counts(load_unit_rows(made, str(tmp_path / name), 3), what).reveal())
    without, within = counted
    moved = np.abs(within.public - without.public).tolist()
    keys = [by_key(without), by_key(within)]
    moved += [abs(keys[0].get(key, 0) - keys[1].get(key, 0)) for key in {*keys[0], *keys[1]}]
    assert sorted(set(moved)) == [0, what.steps_per_row] and sum(moved) == 5 * what.steps_per_row
    assert without.public[0] == 8 * what.steps_per_row


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_what_kind_a_column_has_in_a_file_is_decided_without_its_rows(tmp_path: Path, rows: int) -> None:
    tables = some_tables(9)
    kinds = tables["purchase"].set_column(3, "kind", pa.array(range(len(tables["purchase"])), pa.int64()))
    (tmp_path / "purchase").mkdir()
    pq.write_table(tables.pop("purchase"), tmp_path / "purchase" / "0.parquet")
    pq.write_table(kinds.slice(0, rows), tmp_path / "purchase" / "1.parquet")
    with refused(DataError, "must hold one kind of value in all files", column="purchase.kind"):
        unit_rows(tables, tmp_path)


@pytest.mark.parametrize("named", [[None, None], [None, 1.0]])
def test_what_a_key_may_be_is_decided_by_its_type_and_not_by_whether_any_is_there(tmp_path: Path, named: Any) -> None:
    tables = some_tables(9)
    tables["address"] = pa.table({"customer": pa.array(named, pa.float64()), "town": ["south", "south"]})
    dropping = contract(
        **{"  address:\n    parent: customer\n": "  address:\n    parent: customer\n    orphans: drop\n"}
    )
    with refused(DataError, "must hold text or whole numbers", column="address.customer"):
        unit_rows(tables, tmp_path / "data", dropping)


def by_key(counted: KeyCounts) -> dict[tuple[int, str], int]:
    names = zip(counted.columns.tolist(), counted.keys.to_pylist(), strict=True)
    return dict(zip(names, counted.found.tolist(), strict=True))


def test_each_row_of_a_unit_is_as_likely_as_any_other(tmp_path: Path) -> None:
    tables = some_tables(1)
    tables["purchase"] = pa.table(
        {
            "number": ["a", "b", "c"],
            "customer": [0, 0, 0],
            "day": pa.array(np.repeat(np.datetime64("2024-01-01"), 3)),
            "kind": ["one", "two", "three"],
        }
    )
    tables["item"] = tables["item"].slice(0, 0)
    place, drawn = write(tmp_path / "data", tables), []
    for _ in range(300):
        (batch,) = load_unit_rows(contract(), place, 64).reveal()
        drawn.append(batch["purchase.kind"][0].as_py())
    counts = [drawn.count(kind) for kind in ("one", "two", "three")]
    assert stats.chisquare(counts).pvalue > 1e-6 and min(counts) > 60


def test_text_files_and_rows_without_a_parent_are_read_as_a_run_reads_them(tmp_path: Path) -> None:
    tables = some_tables(20)
    lost = pa.table({"customer": pa.array([900, None]), "town": ["south", "south"]})
    there, tables["address"] = tables["address"], pa.concat_tables([tables["address"], lost.slice(0, 1)])
    with refused(DataError, "names a row that its parent's table lacks", column="address.customer"):
        unit_rows(tables, tmp_path / "refused")
    tables["address"] = pa.concat_tables([there, lost])
    dropping = contract(
        **{"  address:\n    parent: customer\n": "  address:\n    parent: customer\n    orphans: drop\n"}
    )
    rows = unit_rows(tables, tmp_path / "dropped", dropping)
    assert set(rows["address.town"].to_pylist()) == {"north", None}
    folder = tmp_path / "text"
    folder.mkdir()
    for name, table in some_tables(20).items():
        pcsv.write_csv(table, folder / f"{name}.csv")
    (batch,) = load_unit_rows(contract(), str(folder), 64).reveal()
    assert batch["purchase.kind"].to_pylist() == rows["purchase.kind"].to_pylist()


@pytest.mark.parametrize(
    ("table", "change", "why"),
    [
        ("customer", lambda one: pa.concat_tables([one, one.slice(3, 1)]), "must name each row once"),
        ("purchase", lambda one: pa.concat_tables([one, one.slice(3, 1)]), "must name each row once"),
        (
            "purchase",
            lambda one: one.set_column(1, "customer", one["customer"].cast(pa.string())),
            "holds text in one file and whole numbers in another",
        ),
        ("item", lambda one: one.drop_columns("price"), "is in the schema but not in the data"),
    ],
)
def test_tables_that_do_not_join_are_refused_in_words_that_name_no_value(tmp_path, table, change, why):
    tables = some_tables(20)
    tables[table] = change(tables[table])
    with refused(DataError, why) as caught:
        unit_rows(tables, tmp_path / "data")
    assert table in str(caught.value)


def test_a_table_without_rows_counts_for_nobody(tmp_path: Path) -> None:
    tables = some_tables(5)
    tables["item"] = tables["item"].slice(0, 0)
    assert set(unit_rows(tables, tmp_path / "data")["item.price"].to_pylist()) == {None}
