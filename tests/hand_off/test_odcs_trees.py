"""The contract of a tree of tables says how they join, and others' tools read and test it."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import nacre
from dpmodels.audit.made import firm
from dpmodels.errors import ArtifactError
from dpmodels.hand_off.manifest import CONTRACT
from tests.kit.datacontract import PROGRAM, failures, run
from tests.kit.errors import refused
from tests.kit.manifests import rewritten
from tests.kit.support import run_cli

pytestmark = pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")  # chance decides whether so few rows stand out
CROISSANT = shutil.which("mlcroissant")
BRANCH = {"key": ["code", "no"], "columns": {"code": {"type": "identifier"}, "no": {"type": "identifier"}}}
QUICK: dict[str, Any] = {"measurement": {"fine_cells": 16}, "training": {"components": 16, "directions": 2, "steps": 5}}


def content() -> dict[str, Any]:
    """Return the firm's schema with a public table of two keys, and a rule across tables."""
    schema: dict[str, Any] = yaml.safe_load(firm.SCHEMA_TEXT)
    schema["public"] = {"branch": BRANCH}
    schema["tables"]["customer"]["columns"] |= {"code": {"type": "identifier"}, "no": {"type": "identifier"}}
    schema["tables"]["customer"]["refers"] = [{"to": "branch", "by": ["code", "no"]}]
    schema["tables"]["item"]["constraints"] = ["price <= customer.age"]
    return schema


@pytest.fixture(scope="module")
def hand_off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frames: dict[str, pd.DataFrame] = {name: table.to_pandas() for name, table in firm.make_tables(2000).items()}
    frames["item"]["price"] = frames["item"]["price"].clip(upper=18)
    frames["customer"] = frames["customer"].assign(code="a", no=1)
    frames["branch"] = pd.DataFrame({"code": ["a", "a", "b"], "no": [1, 2, 1]})
    home = tmp_path_factory.mktemp("home")
    made = nacre.synthesize(frames, content(), rows=30, home=home, epsilon=2, delta=1e-5, **QUICK)
    return made.folder


def stated(hand_off: Path) -> dict[str, dict[str, Any]]:
    return {table["name"]: table for table in yaml.safe_load((hand_off / CONTRACT).read_text())["schema"]}


def test_every_table_is_there_with_its_keys_and_what_they_refer_to(hand_off: Path) -> None:
    tables = stated(hand_off)
    assert list(tables) == ["branch", "customer", "address", "purchase", "item"]
    columns = {name: {one["name"]: one for one in table["properties"]} for name, table in tables.items()}
    for name in tables:
        assert list(columns[name]) == pq.read_schema(hand_off / "synthetic" / name / "part-00000.parquet").names
    assert [columns["branch"][key]["primaryKeyPosition"] for key in ("code", "no")] == [1, 2]
    assert columns["customer"]["customer"]["primaryKey"] is True
    assert columns["item"]["purchase"]["relationships"] == [{"type": "foreignKey", "to": "purchase.number"}]
    (reference,) = tables["customer"]["relationships"]
    assert reference == {
        "type": "foreignKey",
        "from": ["customer.code", "customer.no"],
        "to": ["branch.code", "branch.no"],
    }
    assert tables["item"]["quality"][0]["description"] == "`item.price <= customer.age` must hold in every row"
    assert tables["item"]["quality"][1]["description"] == "no purchase has more than 4 rows"


def test_a_contract_that_says_something_else_is_refused(hand_off: Path, tmp_path: Path) -> None:
    assert not nacre.verify(hand_off).faults
    other = rewritten(
        hand_off, tmp_path / "other", CONTRACT, lambda content: content.replace(b"more than 4", b"more than 5")
    )
    with refused(ArtifactError, f"{CONTRACT} says something else"):
        nacre.verify(other)


def test_a_schema_is_drafted_from_it(hand_off: Path, tmp_path: Path) -> None:
    (tmp_path / "firm").mkdir()
    for name in ("customer", "address", "purchase", "item"):
        shutil.copy(hand_off / "synthetic" / name / "part-00000.parquet", tmp_path / "firm" / f"{name}.parquet")
    words = ("schema", "init", tmp_path / "firm", "--tables", "--from", hand_off / CONTRACT, "--accept-suggestions")
    code, text, err = run_cli(*words)
    assert code == 0, err
    drafted = yaml.safe_load(text)["tables"]
    assert drafted["purchase"]["columns"]["kind"]["values"] == ["books", "games", "tools"]
    assert drafted["item"]["parent"] == "purchase" and drafted["customer"]["columns"]["age"]["max"] == 89


@pytest.mark.nightly  # tests/hand_off/test_odcs.py has a table whose rows break their contract
@pytest.mark.skipif(PROGRAM is None, reason="datacontract-cli is not installed")
def test_datacontract_lints_it_and_finds_a_parent_with_too_many_rows(hand_off: Path, tmp_path: Path) -> None:
    assert run("lint", hand_off).returncode == 0 and failures(hand_off) == []
    other = tmp_path / "other"
    shutil.copytree(hand_off, other)
    part = other / "synthetic" / "item" / "part-00000.parquet"
    rows = pq.read_table(part)
    pq.write_table(pa.concat_tables([rows, *[rows.slice(0, 1)] * 4]), part)
    assert len(failures(other)) == 1


@pytest.mark.skipif(CROISSANT is None, reason="mlcroissant is not installed")
def test_mlcroissant_reads_the_record_of_its_tables(hand_off: Path, tmp_path: Path) -> None:
    code, _, err = run_cli("disclose", hand_off, "--out", tmp_path / "records", "--curator", "City of Ghent")
    assert code == 0, err
    record = tmp_path / "records" / "croissant.json"
    assert {one["name"] for one in json.loads(record.read_text())["recordSet"]} == set(stated(hand_off))
    checked = subprocess.run([str(CROISSANT), "validate", "--jsonld", record], capture_output=True, timeout=120)
    assert checked.returncode == 0, checked.stderr
