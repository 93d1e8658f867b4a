"""Tables of a tree that any tool wrote are held to their schema, in whatever form and order they lie."""

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.audit.made import firm
from dpmodels.errors import DataError
from tasks.stages.validate import check_hand_off
from tests.kit.errors import refused

TABLES = MappingProxyType(firm.make_tables(40))


def shuffled(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(0).permutation(len(table))))


def written(folder: Path, write: Callable[[pa.Table, str], object], ending: str, **changed: pa.Table) -> Path:
    folder.mkdir()
    for name, table in ({**TABLES, **changed}).items():
        write(shuffled(table), f"{folder}/{name}.{ending}")
    (folder / "firm.yaml").write_text(firm.SCHEMA_TEXT)
    return folder


@pytest.mark.parametrize(("write", "ending"), [(pq.write_table, "parquet"), (pacsv.write_csv, "csv")])
def test_rows_in_any_order_and_form_are_fine(tmp_path: Path, write: Callable[[pa.Table, str], object], ending: str):
    folder = written(tmp_path / "firm", write, ending)
    assert [str(rule) for rule in check_hand_off(folder, folder / "firm.yaml").broken] == []
    named = check_hand_off(f"{folder}/{{table}}.{ending}", folder / "firm.yaml")
    assert not named.broken and len(named.outcomes) > 10


def test_a_value_that_the_schema_does_not_admit_is_noticed(tmp_path: Path):
    age = TABLES["customer"]["age"].to_pylist()
    customers = TABLES["customer"].set_column(1, "age", pa.array([17, *age[1:]]))
    folder = written(tmp_path / "firm", pacsv.write_csv, "csv", customer=customers)
    assert ["customer.age" in str(rule) for rule in check_hand_off(folder, folder / "firm.yaml").broken] == [True]


def test_a_row_without_a_parent_and_a_missing_column_are_named(tmp_path: Path):
    folder = written(tmp_path / "one", pacsv.write_csv, "csv", customer=TABLES["customer"].slice(1))
    with refused(DataError, "names a row that table customer lacks"):
        check_hand_off(folder, folder / "firm.yaml")
    folder = written(tmp_path / "two", pacsv.write_csv, "csv", item=TABLES["item"].drop_columns("price"))
    with refused(DataError, column="item.price"):
        check_hand_off(folder, folder / "firm.yaml")


def test_public_rows_are_those_of_the_schema_or_of_their_file(tmp_path: Path):
    content = yaml.safe_load(firm.SCHEMA_TEXT)
    branch = {"key": "code", "columns": {"code": {"type": "identifier"}, "big": {"type": "boolean"}}}
    content["public"] = {"branch": branch}
    content["tables"]["customer"]["columns"]["branch"] = {"type": "identifier"}
    content["tables"]["customer"]["refers"] = [{"to": "branch", "by": "branch"}]
    customers = TABLES["customer"].append_column("branch", pa.array(["a", "b"] * 20))
    folder = written(tmp_path / "firm", pacsv.write_csv, "csv", customer=customers)
    schema = folder / "firm.yaml"
    schema.write_text(yaml.safe_dump(content, sort_keys=False))
    with refused(DataError, "holds no file or folder for table branch"):
        check_hand_off(folder, schema)
    pacsv.write_csv(pa.table({"code": ["b", "a"], "big": [True, False]}), folder / "branch.csv")
    assert not check_hand_off(folder, schema).broken
    (folder / "branch.csv").unlink()
    branch["rows"] = {"code": ["a", "c"], "big": [True, False]}
    schema.write_text(yaml.safe_dump(content, sort_keys=False))
    broken = check_hand_off(folder, schema).broken
    assert [rule.expectation for rule in broken] == ["reference"]
