"""The commands around a run: drafting and linting a schema, opening and showing accounts, the demo."""

import json

import pytest

from dpmodels.ledger.ledger import Ledger
from flows import demo
from tests.support import run_cli, write_clinic


def test_a_drafted_schema_is_all_todo_and_lint_says_so(tmp_path):
    data, _, _ = write_clinic(tmp_path)
    code, text, _ = run_cli("schema", "init", data)
    assert code == 0 and "age:" in text and "TODO" in text and "north" not in text
    (tmp_path / "draft.yaml").write_text(text)
    code, _, err = run_cli("schema", "lint", tmp_path / "draft.yaml")
    assert code == 1 and "TODO" in err and "line" in err


def test_a_sound_schema_passes_lint(tmp_path):
    _, schema, _ = write_clinic(tmp_path)
    code, out, _ = run_cli("schema", "lint", schema)
    assert code == 0 and "no faults" in out


def test_a_bound_that_yaml_takes_for_text_is_explained(tmp_path):
    _, schema, _ = write_clinic(tmp_path)
    schema.write_text(schema.read_text().replace("max: 99", "max: 1e6"))
    code, _, err = run_cli("schema", "lint", schema)
    assert code == 1 and "max: must be a whole number; YAML takes 1e6 for text: write 1.0e+6" in err


@pytest.mark.parametrize(
    ("epsilon", "delta", "match"), [(0, 1e-5, "cap_epsilon"), ("inf", 1e-5, "cap_epsilon"), (1, -1, "delta")]
)
def test_an_account_with_an_impossible_cap_is_refused(tmp_path, epsilon, delta, match):
    _, schema, _ = write_clinic(tmp_path)
    cap = ("--cap-epsilon", epsilon, "--cap-delta", delta)
    code, _, err = run_cli("ledger", "open", "a", "--schema", schema, *cap, "--home", tmp_path)
    assert code == 1 and match in err


def test_an_account_opened_twice_with_other_terms_is_refused(tmp_path):
    _, schema, _ = write_clinic(tmp_path)
    words = ("ledger", "open", "a", "--schema", schema, "--cap-delta", 1e-5, "--home", tmp_path, "--cap-epsilon")
    assert [run_cli(*words, cap)[0] for cap in (1, 1, 2)] == [0, 0, 1]
    assert [account.name for account in Ledger(tmp_path / "ledger.sqlite").accounts()] == ["a"]


@pytest.mark.slow
def test_the_demo_runs_on_the_public_table_and_charges_its_account(tmp_path, monkeypatch):
    quick = {"method": "pearl", "measurement": {"frequencies": {"count": 16}}, "training": {"steps": 3}}
    monkeypatch.setattr(demo, "MODEL", quick)
    code, out, err = run_cli("demo", "--folder", tmp_path)
    assert code == 0, err
    assert "trained on synthetic" in out
    assert run_cli("schema", "lint", tmp_path / "randhie.yaml")[0] == 0  # the way into production begins with it
    manifest = json.loads((tmp_path / "hand-off-1" / "manifest.json").read_text())
    assert manifest["data_set"] == "randhie"
    assert Ledger(tmp_path / "home" / "ledger.sqlite").balance("randhie").charges == 1
