"""The commands around a run: drafting and linting a schema, opening and showing accounts, the demo."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nacre
from dpmodels.gate.expectations import Gate
from dpmodels.ledger.ledger import Ledger
from flows import demo
from tests.kit.support import run_cli, synthesize_words, write_clinic


def test_a_drafted_schema_is_all_todo_and_lint_says_so(tmp_path):
    data, _, _ = write_clinic(tmp_path)
    code, text, _ = run_cli("schema", "init", data)
    assert code == 0 and "age:" in text and "TODO" in text and "north" not in text
    (tmp_path / "draft.yaml").write_text(text)
    code, _, err = run_cli("schema", "lint", tmp_path / "draft.yaml")
    assert code == 1 and "TODO" in err and "line" in err


def test_a_draft_says_of_a_csv_file_alone_that_its_first_line_is_taken_as_names(tmp_path):
    text = "the first line of the file is taken as names"
    (tmp_path / "t.csv").write_text("age,ward\n1,a\n")
    pq.write_table(pa.table({"age": [1], "ward": ["a"]}), tmp_path / "t.parquet")
    assert text in run_cli("schema", "init", tmp_path / "t.csv")[2]
    said = run_cli("schema", "init", tmp_path / "t.parquet")[2]
    assert text not in said and "types of the columns are taken from what the file records of them: check them" in said
    assert "taken as names" not in run_cli("schema", "init", tmp_path / "t.csv", "--header")[2]


def test_an_option_that_cannot_be_read_is_told_what_it_may_be(tmp_path):
    words = ("plan", "t.csv", "--schema", "t.yaml", "--delta", "1e-5", "--out", tmp_path)
    code, _, err = run_cli(*words, "--epsilon", "one")
    assert code == 2 and "must be a number, such as 1 or 0.5" in err and "parse" not in err
    code, _, err = run_cli(*words, "--epsilon", 1, "--format", "xlsx")
    assert code == 2 and "is not one of 'csv', 'arrow', 'jsonl'" in err
    assert "<csv|arrow|jsonl>" in run_cli("plan", "--help")[1]
    assert "such as 1 or 0.5" in run_cli("ledger", "open", "c", "--epsilon", "one", "--delta", "1e-5")[2]


def test_a_sound_schema_passes_lint(tmp_path):
    _, schema, _ = write_clinic(tmp_path)
    code, out, _ = run_cli("schema", "lint", schema)
    assert code == 0 and "no faults" in out


@pytest.mark.parametrize(("low", "scale", "is_said"), [(-500, "log", True), (-500, "linear", False), (0, "log", False)])
def test_it_is_said_that_a_logarithmic_scale_is_finest_beside_a_negative_bound(tmp_path, low, scale, is_said):
    schema = tmp_path / "t.yaml"
    columns = f"{{x: {{type: number, min: {low}, max: 0.5, scale: {scale}}}, y: {{type: boolean}}}}"
    schema.write_text(f"name: t\ncolumns: {columns}\n")
    code, out, err = run_cli("schema", "lint", schema)
    assert code == 0 and (f"best beside its `min`, {low}" in out + err) == is_said


@pytest.mark.parametrize(("most", "is_said"), [(None, False), (1, True), (2, False)])
def test_it_is_said_that_of_a_user_the_first_row_alone_is_used(tmp_path, most, is_said):
    said = "only the first row of each user is used: all figures are of these rows. In the schema, `max_rows: N` under"
    _, schema, _ = write_clinic(tmp_path, **({"unit": {"user": "patient", "max_rows": most}} if most else {}))
    schema.write_text(schema.read_text().replace("  max_rows: 1\n", ""))
    words = synthesize_words(tmp_path)
    for words_ in (["schema", "lint", schema], ["plan", words[1], *words[3:]], words)[: 3 if is_said else 2]:
        code, out, err = run_cli(*words_)
        assert code == 0 and " ".join((out + err).split()).count(said) == int(is_said), words_[0]


def test_a_bound_that_yaml_takes_for_text_is_explained(tmp_path):
    _, schema, _ = write_clinic(tmp_path)
    schema.write_text(schema.read_text().replace("max: 99", "max: 1e6"))
    code, _, err = run_cli("schema", "lint", schema)
    assert code == 1 and "max: must be a whole number; YAML takes 1e6 for text: write 1.0e+6" in err


@pytest.mark.parametrize(
    ("epsilon", "delta", "match"), [(0, 1e-5, "--epsilon=0"), ("inf", 1e-5, "--epsilon=inf"), (1, -1, "delta")]
)
def test_an_account_with_an_impossible_cap_is_refused(tmp_path, epsilon, delta, match):
    _, schema, _ = write_clinic(tmp_path)
    cap = ("--epsilon", epsilon, "--delta", delta)
    code, _, err = run_cli("ledger", "open", "a", "--schema", schema, *cap, "--home", tmp_path)
    assert code == 1 and match in err


def test_an_account_opened_twice_with_other_terms_is_refused(tmp_path):
    _, schema, _ = write_clinic(tmp_path)
    words = ("ledger", "open", "a", "--schema", schema, "--delta", 1e-5, "--home", tmp_path, "--epsilon")
    assert [run_cli(*words, cap)[0] for cap in (1, 1, 2)] == [0, 0, 1]
    assert [account.name for account in Ledger(tmp_path / "ledger.sqlite").accounts()] == ["a"]


@pytest.mark.slow
def test_the_demo_runs_on_the_public_table_and_charges_its_account(tmp_path, monkeypatch):
    quick = {"method": "pearl", "measurement": {"frequencies": {"count": 16}}, "training": {"steps": 3}}
    monkeypatch.setattr(demo, "MODEL", quick)
    code, out, err = run_cli("demo", "--folder", tmp_path)
    assert code == 0, err
    assert "trained on synthetic" in out
    assert run_cli("schema", "lint", tmp_path / "earnings.yaml")[0] == 0  # the way into production begins with it
    manifest = json.loads((tmp_path / "hand-off-1" / "manifest.json").read_text())
    assert manifest["data_set"] == "earnings"
    assert Ledger(tmp_path / "home" / "ledger.sqlite").balance("earnings").charges == 1


CLINIC = """\
column,type,min,max,values,nullable
patient,identifier,,,,
ward,text,,,north|south|west,
dose,"decimal(4,2)",0,10,,yes
sick,text,,,as the form has them,
"""


def test_a_dictionary_and_suggestions_leave_little_to_write(tmp_path):
    data, _, _ = write_clinic(tmp_path)
    (tmp_path / "dictionary.csv").write_text(CLINIC)
    words = ("schema", "init", data, "--from", tmp_path / "dictionary.csv")
    code, text, err = run_cli(*words)
    assert code == 0 and "columns with a TODO left: 2;" in err, err
    assert text.count("TODO") == 5  # words of advice, marks of an age, and values that were not understood
    (tmp_path / "draft.yaml").write_text(text.replace("values: TODO", 'values: ["no", "yes"]'))
    code, _, err = run_cli("schema", "lint", tmp_path / "draft.yaml")
    assert code == 1 and "columns.age.confirm: is still TODO" in err
    code, text, err = run_cli(*words, "--accept-suggestions", "--editor", "nacre.json")
    assert (
        code == 0
        and "columns with a TODO left: 1;" in err
        and text.startswith("# yaml-language-server: $schema=nacre.json\n")
    )
    (tmp_path / "draft.yaml").write_text(text.replace("values: TODO", 'values: ["no", "yes"]'))
    assert run_cli("schema", "lint", tmp_path / "draft.yaml")[0] == 0
    code, out, err = run_cli("schema", "init", data, "--from-sample", data)
    assert code == 1 and "is the data itself" in err and not out


def test_an_accepted_draft_holds_the_table_that_it_describes(tmp_path):
    data, _, _ = write_clinic(tmp_path)
    (tmp_path / "dictionary.csv").write_text(CLINIC.replace("as the form has them", "no|yes"))
    draft = nacre.draft_schema(data, document=tmp_path / "dictionary.csv", accept_suggestions=True)
    gate = Gate(nacre.load_schema(draft), raw=True)
    assert gate.check(pq.read_table(data)) and not gate.broken
