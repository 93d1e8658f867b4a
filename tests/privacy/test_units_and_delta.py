"""Two settings that would promise less than they seem to: fresh ids for users, and a delta that lets rows out whole."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.authoring.lint import lint, load_for_run, load_schema
from dpmodels.contract.schema import Schema
from dpmodels.errors import SchemaError
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from tests.kit.support import make_schema, run_cli, synthesize_words, write_clinic

LARGE = "must be at most 0.001"


def write_regenerated(folder: Path) -> Path:
    """Write a schema by which every synthetic row gets a user of its own."""
    schema = folder / "clinic.yaml"
    content = yaml.safe_load(schema.read_text())
    content |= {"unit": {"user": "patient", "max_rows": 2}}
    content["columns"]["patient"]["keep"] = "regenerate"
    schema.write_text(yaml.safe_dump(content, sort_keys=False))
    return schema


def test_users_are_not_regenerated(tmp_path: Path):
    write_clinic(tmp_path)
    schema = write_regenerated(tmp_path)
    line = schema.read_text().splitlines().index("    keep: regenerate") + 1
    (fault,) = lint(schema)
    assert (fault.line, fault.where) == (line, "columns.patient.keep") and "must be drop" in fault.message
    with pytest.raises(SchemaError, match="must be drop: without `users` synthetic rows are not grouped by user"):
        load_for_run(schema)
    for words in (synthesize_words(tmp_path), ["plan", *synthesize_words(tmp_path)[1:]], ["schema", "lint", schema]):
        code, _, err = run_cli(*[word for word in words if word != "--no-prefect"])
        assert code == 1 and "columns.patient.keep: must be drop" in err and not (tmp_path / "home").exists()
    schema.write_text(schema.read_text().replace("regenerate", "drop"))
    assert lint(schema) == [] and run_cli(*synthesize_words(tmp_path))[0] == 0
    assert "patient" not in pq.read_table(tmp_path / "out" / "synthetic").column_names


def test_other_identifiers_are(tmp_path: Path):
    write_clinic(tmp_path)
    assert lint(tmp_path / "clinic.yaml") == []
    content = make_schema().model_dump(mode="python")
    content["columns"] |= {"who": {"type": "identifier"}}
    content["unit"] = {"user": "who", "max_rows": 2}
    (tmp_path / "clinic.yaml").write_text(Schema.model_validate(content).to_yaml())
    assert lint(tmp_path / "clinic.yaml") == []


def test_a_release_that_was_made_with_such_a_schema_is_still_read(tmp_path: Path):
    write_clinic(tmp_path)
    assert run_cli(*synthesize_words(tmp_path))[0] == 0
    old = load_schema(write_regenerated(tmp_path))
    assert Schema.model_validate_json(old.model_dump_json()) == old
    shutil.copy(tmp_path / "clinic.yaml", tmp_path / "out" / "schema.yaml")
    assert run_cli("validate", tmp_path / "out")[0] == 0


def test_a_large_delta_must_be_asked_for(tmp_path: Path):
    write_clinic(tmp_path)
    for delta in (1.1e-3, 0.01, 0.9):
        for command in ("synthesize", "plan"):
            words = [command, *synthesize_words(tmp_path, delta=delta)[1:]]
            code, _, err = run_cli(*words)
            assert code == 1 and err.count("error: ") == 1 and LARGE in err and "--allow-large-delta" in err
    assert not (tmp_path / "home").exists()
    assert run_cli("plan", *synthesize_words(tmp_path, delta=1e-3)[1:])[0] == 0
    assert run_cli("plan", *synthesize_words(tmp_path, delta=0.01)[1:], "--allow-large-delta")[0] == 0
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({**yaml.safe_load(config.read_text()), "privacy": {"allow_large_delta": True}}))
    assert run_cli(*synthesize_words(tmp_path, delta=0.01))[0] == 0
    assert run_cli("plan", *synthesize_words(tmp_path, delta=1.0)[1:])[0] == 1


def test_so_must_a_large_delta_of_a_cap(tmp_path: Path):
    _, schema, _ = write_clinic(tmp_path)
    words = ["--schema", schema, "--epsilon", 1, "--home", tmp_path]
    code, _, err = run_cli("ledger", "open", "clinic", *words, "--delta", 0.01)
    assert code == 1 and LARGE in err and not (tmp_path / "ledger.sqlite").exists()
    assert run_cli("ledger", "open", "clinic", *words, "--delta", 1e-3)[0] == 0
    change = ["ledger", "cap", "clinic", "--reason", "r", "--home", tmp_path, "--delta", 0.01]
    code, _, err = run_cli(*change)
    assert code == 1 and LARGE in err
    assert Ledger(tmp_path / "ledger.sqlite").account("clinic").cap.delta == 1e-3
    assert run_cli(*change, "--allow-large-delta")[0] == 0
    assert Ledger(tmp_path / "ledger.sqlite").account("clinic").cap.delta == 0.01


def test_an_account_that_was_opened_with_a_large_delta_is_still_read(tmp_path: Path):
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_account("old", dataset="old", budget_cap=PrivacyBudget(epsilon=1, delta=0.01))
    assert run_cli("ledger", "show", "old", "--home", tmp_path)[0] == 0
    assert run_cli("ledger", "cap", "old", "--epsilon", 2, "--reason", "r", "--home", tmp_path)[0] == 0
    assert run_cli("ledger", "verify", "--home", tmp_path)[0] == 0
