"""The contract of a hand-off says what schema and manifest say, in the standard's words, and other tools check it."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.audit.made import pictures, shop
from dpmodels.authoring.draft import PublicFacts, draft
from dpmodels.authoring.lint import parse
from dpmodels.authoring.source import read_source
from dpmodels.codec.embedded import codec_of
from dpmodels.contract.columns import Continuous, Derived
from dpmodels.contract.schema import Schema
from dpmodels.hand_off.manifest import CONTRACT, read_manifest
from dpmodels.hand_off.odcs import render_contract
from dpmodels.hand_off.verify import verify_hand_off
from tests.hand_off.make_golden import GOLDEN
from tests.kit.datacontract import PROGRAM, failures, run
from tests.kit.manifests import facts, rewritten, write_manifest

WITH = [GOLDEN / "LAYOUT-26" / name for name in ("laid-out", "users")]
WITHOUT = GOLDEN / "LAYOUT-7" / "laid-out"
WIDE = Schema.model_validate(
    yaml.safe_load(
        """
name: wide
columns:
  patient: {type: identifier, keep: regenerate}
  age: {type: integer, min: 0, max: 99, dtype: int16}
  ward: {type: categorical, values: [north, "the 'south'", west], nullable: true}
  grade: {type: categorical, values: [1, 2, 3]}
  rate: {type: categorical, values: [0.5, 1.25]}
  dose: {type: number, min: 0, max: 10, round: 2, nullable: true}
  fee: {type: number, min: 0, max: 999.99, round: 2, dtype: "decimal(8, 2)"}
  weight: {type: number, min: 0, max: 0.1, dtype: float32}
  born: {type: datetime, min: 1900-01-01, max: 2020-12-31}
  seen: {type: datetime, min: 2020-01-01, max: 2020-12-31, resolution: minute}
  left: {type: datetime, min: 2020-01-01, max: 2021-01-31 11:00:00, resolution: minute, nullable: true}
  sent: {type: datetime, min: 2020-01-01, max: 2020-12-31, resolution: second, dtype: "timestamp[us, tz=Europe/Berlin]"}
  at: {type: integer, min: 0, max: 86399, dtype: "time32[s]"}
  lasted: {type: integer, min: 0, max: 3600, dtype: "duration[s]"}
  smoker: {type: boolean}
  decade: {type: derived, formula: age // 10, min: 0, max: 9}
  due: {type: derived, formula: "add_days(seen, age)", max: 2021-04-08}
  ward name: {type: derived, of: ward, values: {north: N, "the 'south'": S, west: W}}
constraints:
  - seen <= left
  - dose < fee
  - when smoker then age > 17
  - when ward = the 'south' and not smoker then dose != null and seen >= 2020-02-01
"""
    )
)
ROWS = {
    "patient": [1, 2],
    "age": [18, 99],
    "ward": ["the 'south'", None],
    "grade": [3, 1],
    "rate": [1.25, 0.5],
    "dose": [1.25, None],
    "fee": [999.99, 0.0],
    "weight": [0.1, 0.0],
    "born": ["1900-01-01", "2020-12-31"],
    "seen": ["2020-02-01 00:00:00", "2020-12-31 23:59:00"],
    "left": ["2021-01-31 11:00:00", None],
    "sent": ["2020-01-01 00:00:00", "2020-12-31 23:59:59"],
    "at": [0, 86399],
    "lasted": [0, 3600],
    "smoker": [False, True],
    "decade": [1, 9],
    "due": ["2020-02-19 00:00:00", "2021-04-08 23:59:00"],
    "ward name": ["S", None],
}
BROKEN = {
    "age": [100, 99],
    "ward": ["east", None],
    "grade": [3, 4],
    "rate": [1.25, 0.75],
    "dose": [-1, None],
    "fee": [1000.0, 0.0],
    "weight": [0.2, 0.0],
    "born": ["1899-12-31", "2020-12-31"],
    "seen": ["2019-12-31 23:59:00", "2020-12-31 23:59:00"],
    "left": ["2019-12-31 11:00:00", None],
    "sent": ["2019-12-31 23:59:59", "2020-12-31 23:59:59"],
    "lasted": [0, None],
    "smoker": [False, None],
}
"""Values by column, each of which breaks the schema."""
RULES_BROKEN = ("seen <= left",)
"""What the first row then breaks as well: the dose of -1 is below the fee, and no ward is in the south."""


def contract_of(schema: Schema) -> str:
    return render_contract(read_manifest(WITHOUT), schema)


def properties(text: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for table in yaml.safe_load(text)["schema"] for one in table["properties"]}


@pytest.mark.parametrize("folder", WITH, ids=lambda folder: folder.name)
def test_a_contract_is_made_again_to_the_same_bytes_and_says_what_was_paid(folder: Path) -> None:
    manifest, text = read_manifest(folder), (folder / CONTRACT).read_text()
    contract, _ = parse((folder / "schema.yaml").read_text())
    assert isinstance(contract, Schema) and render_contract(manifest, contract) == text
    said = {one["property"]: one["value"] for one in yaml.safe_load(text)["customProperties"]}
    assert said["epsilon"] == str(manifest.whole_cost.epsilon) and said["delta"] == manifest.whole_cost.delta
    assert (said["unit"], said["account"]) == (manifest.unit, manifest.ledger.account)
    assert said["charge"] == manifest.ledger.charge and verify_hand_off(folder).faults == []
    (server,) = yaml.safe_load(text)["servers"]
    for table in yaml.safe_load(text)["schema"]:
        parts = list(folder.glob(server["path"].replace("{model}", table["name"])))
        assert parts and pq.read_schema(parts[0]).names == [one["name"] for one in table["properties"]]


def test_a_contract_is_proposed_for_an_officer_signs_later_and_names_sources_that_are_the_data() -> None:
    schema, _ = parse((WITHOUT / "schema.yaml").read_text())
    assert isinstance(schema, Schema)
    for sources, warned in ((("the data itself: ages",), True), (("the codebook",), False)):
        said = yaml.safe_load(contract_of(schema.model_copy(update={"sources": sources})))
        assert said["status"] == "proposed"
        assert ("are said to be taken from the data: exact" in said["description"]["limitations"]) == warned
        (approval,) = [one["value"] for one in said["customProperties"] if one["property"] == "approval"]
        assert approval.startswith("whether an officer let these files leave stands in officer.sig beside them")


@pytest.mark.parametrize("folder", WITH, ids=lambda folder: folder.name)
def test_a_contract_that_says_anything_else_is_a_fault(tmp_path: Path, folder: Path) -> None:
    changed = rewritten(
        folder, tmp_path / "own", CONTRACT, lambda text: text.replace(b"required: true", b"required: no")
    )
    (fault,) = verify_hand_off(changed).faults
    assert fault.startswith(f"{CONTRACT} says something else")
    (changed / CONTRACT).unlink()
    assert verify_hand_off(changed).faults == [f"{CONTRACT} is missing"]


def test_no_other_kind_of_data_and_no_earlier_format_has_a_contract(tmp_path: Path) -> None:
    for number, (source, changes) in enumerate(
        [
            (GOLDEN / "FORMAT-7" / "laid-out-embedded", {"format": 11}),
            (GOLDEN / "FORMAT-10" / "approved-clients", {"format": 11}),
            (WITHOUT, {}),
            (GOLDEN / "FORMAT-6" / "declared", {}),
        ]
    ):
        folder = tmp_path / str(number)
        shutil.copytree(source, folder)
        (folder / "manifest.sig").unlink(missing_ok=True)
        shutil.copy(WITH[0] / CONTRACT, folder)
        manifest = facts(folder)
        manifest["artifacts"][CONTRACT] = facts(WITH[0])["artifacts"][CONTRACT]
        write_manifest(folder, manifest | changes)
        assert verify_hand_off(folder).faults, source


def test_a_draft_from_a_contract_is_the_schema_that_it_was_made_of(tmp_path: Path) -> None:
    path = tmp_path / CONTRACT
    path.write_text(contract_of(WIDE))
    pq.write_table(codec_of(WIDE).output_schema.empty_table(), tmp_path / "wide.parquet")
    text = draft(tmp_path / "wide.parquet", public_facts=PublicFacts(path))
    schema, faults = parse(text)
    assert sorted(fault.where for fault in faults) == ["columns.at.max", "columns.at.min"]
    schema, faults = parse(text.replace("min: TODO, max: TODO", "min: 0, max: 86399000"))
    assert faults == [] and isinstance(schema, Schema)
    read, written = ({name: facts_of(one) for name, one in each.columns.items()} for each in (schema, WIDE))
    assert read.pop("at")["low"] == written.pop("at")["low"] and read == written
    assert "documented in a data contract: contract.odcs.yaml" in text


def facts_of(column: Any) -> dict[str, Any]:
    """Return what a contract says of a column: not how identifiers are made or its values laid out."""
    content = column.model_dump(exclude={"keep", "cells", "dtype", "min", "max", "zero_inflated"})
    if isinstance(column, Derived) and column.is_bounded:
        ends = [str(bound).removesuffix(" 23:59:59") for bound in (column.min, column.max)]  # the end of the last day
        return content | {"ends": ends}
    return content | ({"low": column.low, "high": column.high} if isinstance(column, Continuous) else {})


def test_what_a_contract_does_not_state_stays_open(tmp_path: Path) -> None:
    text = contract_of(WIDE)
    content = yaml.safe_load(text)
    (age,) = [one for one in content["schema"][0]["properties"] if one["name"] == "age"]
    del age["logicalTypeOptions"]["maximum"]
    del age["required"]
    age["quality"] = [{"metric": "duplicateValues", "mustBeLessThan": 3}]
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(content))
    known = read_source(tmp_path / "c.yaml").columns(["age"])["age"]
    assert known.high is None and known.nullable is None and known.unread == ("rule duplicateValues",)


def synthetic(folder: Path, rows: dict[str, list[object]]) -> Path:
    """Write rows as a hand-off of the wide schema has them, beside its contract."""
    (folder / "synthetic").mkdir(parents=True)
    types, columns = codec_of(WIDE).output_schema, {}
    for name, values in rows.items():
        kind = types.field(name).type
        plain = pa.array(values)
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            plain = plain.cast(pa.timestamp("s")).cast(pa.timestamp("us"))
            plain = plain.cast(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(kind) and kind.tz else plain
        elif pa.types.is_time(kind) or pa.types.is_duration(kind):
            plain = plain.cast(pa.int32() if pa.types.is_time(kind) else pa.int64())
        columns[name] = plain.cast(kind, safe=False) if not pa.types.is_decimal(kind) else decimal(values, kind)
    pq.write_table(pa.table(columns), folder / "synthetic" / "part-00000.parquet")
    (folder / CONTRACT).write_text(contract_of(WIDE))
    return folder


def decimal(values: list[object], kind: pa.DataType) -> pa.Array:
    return pa.array([f"{value:.2f}" for value in values]).cast(kind)


def test_every_rule_of_the_gate_stands_in_the_contract() -> None:
    content = yaml.safe_load(contract_of(WIDE))
    (table,) = content["schema"]
    rules = {rule["description"]: rule["query"] for rule in table["quality"]}
    assert len(rules) == len(WIDE.constraints)
    assert rules["`dose < fee` must hold in every row"].endswith('WHERE "dose" >= "fee"')
    stated = properties(contract_of(WIDE))
    assert all(stated[name]["required"] is not column.nullable for name, column in WIDE.modelled.items())
    assert stated["sent"]["logicalTypeOptions"]["maximum"] == "2020-12-31T23:59:59Z"
    assert stated["decade"]["logicalTypeOptions"] == {"minimum": 0, "maximum": 9}
    assert stated["due"]["logicalTypeOptions"] == {"maximum": "2021-04-08T23:59:59"}
    assert stated["at"]["quality"] == [{"type": "text", "description": "must lie between 00:00:00 and 23:59:59"}]


def test_two_tables_say_by_which_column_they_are_joined() -> None:
    schema = shop.make_schema()
    parents, children = yaml.safe_load(contract_of(schema))["schema"]
    key = schema.unit.user
    (first,) = [one for one in parents["properties"] if one["name"] == key]
    (second,) = [one for one in children["properties"] if one["name"] == key]
    assert first["primaryKey"] is True and second["relationships"] == [{"type": "foreignKey", "to": f"parents.{key}"}]
    assert f"> {schema.unit.max_rows}" in children["quality"][-1]["query"]


@pytest.mark.skipif(PROGRAM is None, reason="datacontract-cli is not installed")
def test_datacontract_finds_every_column_that_breaks_the_schema_and_no_other(tmp_path: Path) -> None:
    assert failures(synthetic(tmp_path / "whole", ROWS)) == []
    failed = failures(synthetic(tmp_path / "broken", ROWS | BROKEN))
    assert {field for field, _ in failed if field} == BROKEN.keys()
    assert sum(field is None for field, _ in failed) == len(RULES_BROKEN)


@pytest.mark.skipif(PROGRAM is None, reason="datacontract-cli is not installed")
@pytest.mark.parametrize("folder", WITH, ids=lambda folder: folder.name)
@pytest.mark.nightly_if("users")
def test_datacontract_lints_and_tests_a_hand_off(folder: Path) -> None:
    assert run("lint", folder).returncode == 0 and failures(folder) == []


@pytest.mark.skipif(PROGRAM is None, reason="datacontract-cli is not installed")
def test_datacontract_tests_images(tmp_path: Path) -> None:
    (tmp_path / "synthetic").mkdir()
    pq.write_table(pictures.make_table(3), tmp_path / "synthetic" / "part-00000.parquet")
    (tmp_path / CONTRACT).write_text(contract_of(pictures.make_schema()))
    assert run("lint", tmp_path).returncode == 0 and failures(tmp_path) == []
