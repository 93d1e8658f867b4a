"""Records of a hand-off are signed as its manifest is, and one that says something else is refused."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from dpmodels.hand_off.signature import sign_manifest
from tests.hand_off.make_golden import GOLDEN
from tests.kit.support import run_cli, write_key

HAND_OFF = GOLDEN / "LAYOUT-26" / "laid-out"
ANSWERS = ("--curator", "City of Ghent", "--region", "Belgium", "--why", "See the DPIA", "--use", "To plan beds")


@pytest.fixture
def key(tmp_path: Path) -> tuple[Path, Path]:
    return write_key(tmp_path / "signer")


@pytest.fixture
def records(tmp_path: Path, key: tuple[Path, Path]) -> Path:
    code, _, err = run_cli("disclose", HAND_OFF, "--out", tmp_path / "records", *ANSWERS, "--signing-key", key[0])
    assert code == 0, err
    return tmp_path / "records"


def faults(records: Path, *words: object) -> str:
    code, _, err = run_cli("verify", HAND_OFF, "--records", records, *words)
    return err if code == 1 else ""


def yaml_of(records: Path) -> Path:
    (record,) = records.glob("*.yaml")
    return record


def test_what_was_written_is_in_order_signed_or_not(tmp_path: Path, records: Path) -> None:
    assert {path.suffix for path in records.iterdir()} == {".yaml", ".json", ".sig"}
    assert faults(records) == ""
    assert run_cli("disclose", HAND_OFF, "--out", tmp_path / "plain", *ANSWERS)[0] == 0
    assert faults(tmp_path / "plain") == "" and not (tmp_path / "plain" / "records.sig").exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [("City of Ghent", "City of Bruges"), ("epsilon: ", "epsilon: 0"), ("status:", "Status:"), ("tier: 3", "tier: 2")],
)
def test_a_changed_field_of_the_record_is_seen_though_its_list_is_made_anew(
    tmp_path: Path, records: Path, before: str, after: str
) -> None:
    record, listed = yaml_of(records), records / "records.json"
    changed = record.read_text().replace(before, after, 1)
    assert changed != record.read_text()
    record.write_text(changed)
    assert f"{record.name} says something else" in faults(records)
    facts = json.loads(listed.read_text())
    facts["records"][record.name] = hashlib.sha256(changed.encode()).hexdigest()
    listed.write_text(json.dumps(facts, indent=1))
    told = faults(records)
    assert "lists other records" in told and "records.sig is not a signature" in told


@pytest.mark.parametrize("path", ["$.recordSet", "$.name"])
def test_a_changed_field_of_the_catalog_is_seen(records: Path, path: str) -> None:
    catalog = records / "croissant.json"
    content = json.loads(catalog.read_text())
    content[path.removeprefix("$.")] = []
    catalog.write_text(json.dumps(content, indent=1))
    assert "croissant.json says something else" in faults(records)


def test_answers_and_day_are_what_was_signed(records: Path) -> None:
    listed = records / "records.json"
    original = listed.read_text()
    listed.write_text(original.replace("City of Ghent", "City of Bruges"))
    told = faults(records)
    assert "records.sig is not a signature" in told and "says something else" in told
    listed.write_text(original.replace('"format":', '"form":').replace('"format": 1', '"form": 1'))
    assert "has no records.json that can be read" in faults(records)
    listed.unlink()
    assert "has no records.json that can be read" in faults(records)


def test_the_key_that_is_named_must_have_signed_both(tmp_path: Path, records: Path, key: tuple[Path, Path]) -> None:
    other = write_key(tmp_path / "other")
    assert "manifest is not signed" in faults(records, "--public-key", key[1])
    signed = tmp_path / "signed"
    shutil.copytree(HAND_OFF, signed)
    sign_manifest(signed, key[0])
    assert run_cli("verify", signed, "--records", records, "--public-key", key[1])[0] == 0
    assert run_cli("verify", signed, "--public-key", other[1])[0] == 1
    (records / "records.sig").unlink()
    code, _, err = run_cli("verify", signed, "--records", records, "--public-key", key[1])
    assert code == 1 and "records.json is not signed" in err


def test_records_are_of_one_hand_off_and_a_link_among_them_is_not_read(tmp_path: Path, records: Path) -> None:
    code, _, err = run_cli("verify", GOLDEN / "LAYOUT-26" / "users", "--records", records)
    assert code == 1 and "is of another hand-off" in err
    record = yaml_of(records)
    record.rename(tmp_path / "elsewhere.yaml")
    record.symlink_to(tmp_path / "elsewhere.yaml")
    assert f"{record.name} is not among the records" in faults(records)


def test_records_of_another_version_rest_on_the_key_that_signed_them(
    tmp_path: Path, records: Path, key: tuple[Path, Path]
) -> None:
    shutil.copytree(HAND_OFF, signed := tmp_path / "signed")
    sign_manifest(signed, key[0])
    listed, words = records / "records.json", ("verify", signed, "--records", records)
    facts = json.loads(listed.read_text())
    facts["nacre_version"] = "9.0.0"
    listed.write_text(json.dumps(facts, indent=1))
    code, _, err = run_cli(*words)
    assert code == 1 and "the records are of nacre 9.0.0" in err
    sign_manifest(records, key[0], name="records.json", signature_name="records.sig")
    assert run_cli(*words, "--public-key", key[1])[0] == 0
    yaml_of(records).write_text(yaml_of(records).read_text() + "\n")
    code, _, err = run_cli(*words, "--public-key", key[1])
    assert code == 1 and "says something else" in err
