"""What is compared or checked may be given as a run's data may: text and Arrow, not Parquet alone."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.audit.made.clinic import SCHEMA_TEXT, make_schema, make_table
from dpmodels.comparison.frame import ParquetBatches, read_frame
from dpmodels.errors import DataError, NacreError
from tasks.run.table_inputs import as_parquet
from tasks.stages.validate import check_hand_off
from tests.kit.buckets import Bucket
from tests.kit.errors import refused
from tests.kit.inputs import TABLE, as_arrow, as_csv, as_json, parquet
from tests.kit.support import run_cli

SCHEMA = make_schema()
FORMS = {"t.csv": lambda path: as_csv(path, ";"), "t.csv.gz": as_csv, "t.jsonl": as_json, "t.arrow": as_arrow}


@pytest.mark.parametrize("name", FORMS)
def test_a_table_in_any_form_is_compared_as_the_same_numbers(tmp_path: Path, name: str) -> None:
    whole, other = tmp_path / "whole.parquet", FORMS[name](tmp_path / name)
    with as_parquet(FORMS["t.arrow"](tmp_path / "w.arrow"), SCHEMA, tmp_path) as path:
        pq.write_table(pq.read_table(path), whole)
    with as_parquet(other, SCHEMA, tmp_path) as path:
        frames = [[read_frame(SCHEMA, batch) for batch in ParquetBatches(each, SCHEMA)] for each in (whole, path)]
    first, second = (np.concatenate([frame.values for frame in each]) for each in frames)
    assert np.array_equal(first, second, equal_nan=True)
    assert not [file for file in tmp_path.iterdir() if file.is_dir()]


def test_what_lies_elsewhere_is_compared_and_validated_and_leaves_no_copy(tmp_path: Path, bucket: Bucket) -> None:
    (tmp_path / "clinic.yaml").write_text(SCHEMA.to_yaml())
    parquet(tmp_path / "real.parquet", make_table(200)), as_csv(tmp_path / "made.csv", table=make_table(200, seed=5))
    here = [tmp_path / "made.csv", "--real", tmp_path / "real.parquet", "--test", tmp_path / "made.csv"]
    there = [bucket.put(path) if isinstance(path, Path) else path for path in here]
    facts = []
    for number, words in enumerate((here, there)):
        out = tmp_path / f"out-{number}"
        code, said, err = run_cli("compare", *words, "--schema", tmp_path / "clinic.yaml", "--out", out, "--json")
        assert code == 0, err
        facts.append(json.loads(said)["scores"])
        assert not [file for file in out.iterdir() if file.is_dir()]
    assert facts[0] == facts[1] != []
    words = ["validate", bucket.uri("made.csv"), "--schema", tmp_path / "clinic.yaml"]
    assert run_cli(*words)[0] == 0
    code, _, err = run_cli(*(str(word).replace("made.csv", "none.csv") for word in words))
    assert code == 1 and "does not exist" in err


def test_a_table_of_text_is_validated(tmp_path: Path) -> None:
    (tmp_path / "clinic.yaml").write_text(SCHEMA.to_yaml())
    whole = make_table(40)
    for table, fine in ((whole, True), (whole.set_column(1, "age", whole["age"].cast("int32")), True)):
        verdicts = check_hand_off(as_csv(tmp_path / "t.csv", table=table), tmp_path / "clinic.yaml")
        assert (not verdicts.broken) == fine, [str(rule) for rule in verdicts.broken]
    text = (tmp_path / "t.csv").read_text().replace("north", "nowhere")
    (tmp_path / "t.csv").write_text(text)
    assert check_hand_off(tmp_path / "t.csv", tmp_path / "clinic.yaml").broken


CHANGED = {"patient": {"type": "identifier"}, "age": {"type": "integer", "min": 30, "max": 60, "outside": "clip"}}
CLIPPED = make_schema(columns=yaml.safe_load(SCHEMA_TEXT)["columns"] | CHANGED)
"""A schema that drops an identifier, and clips what a synthetic table may not hold."""


@pytest.mark.parametrize("form", [*FORMS, "t.parquet"])
def test_a_table_with_every_column_is_held_to_the_rules_for_raw_tables(tmp_path: Path, form: str) -> None:
    (tmp_path / "clinic.yaml").write_text(CLIPPED.to_yaml())
    words = ("validate", {**FORMS, "t.parquet": parquet}[form](tmp_path / form), "--schema", tmp_path / "clinic.yaml")
    code, out, err = run_cli(*words)
    assert code == 0 and "held to the rules for raw tables" in err and "broken" not in out + err, err
    assert run_cli(*words, "--json")[0] == 0
    code, _, err = run_cli("validate", as_csv(tmp_path / "made.csv", table=TABLE.drop_columns("patient")), *words[2:])
    assert code == 1 and "held to the rules for synthetic tables, which have no patient" in err
    assert "broken: column age must lie between 30 and 60" in err and "exactly those" not in err


def test_of_a_schema_that_drops_nothing_a_person_says_that_a_table_is_synthetic(tmp_path: Path) -> None:
    kept = {**CHANGED, "patient": {"type": "identifier", "keep": "pattern:[A-Z]{9}"}}
    schema = make_schema(columns=yaml.safe_load(SCHEMA_TEXT)["columns"] | kept)
    (tmp_path / "clinic.yaml").write_text(schema.to_yaml())
    words = ("validate", as_csv(tmp_path / "raw.csv", table=TABLE), "--schema", tmp_path / "clinic.yaml")
    code, _, err = run_cli(*words, "--synthetic")
    assert code == 1 and "rules for synthetic tables; --raw is for raw ones" in err
    for more in ((), ("--raw",)):
        code, out, err = run_cli(*words, *more)
        assert code == 0 and "rules for raw tables" in err and "broken" not in out + err, err
    assert "--synthetic is for synthetic ones" in err
    (tmp_path / "manifest.json").write_text("{}")  # it lies in a hand-off then
    (tmp_path / "synthetic").mkdir()
    shutil.copy(words[1], tmp_path / "synthetic" / "t.csv")
    assert "rules for synthetic tables" in run_cli("validate", tmp_path / "synthetic" / "t.csv", *words[2:])[2]


def test_a_repeat_under_unique_is_counted_though_an_identifier_is_made_anew(tmp_path: Path) -> None:
    kept = {"type": "identifier", "keep": "pattern:[A-Z]{9}", "unique": True}
    schema = make_schema(columns=yaml.safe_load(SCHEMA_TEXT)["columns"] | {**CHANGED, "patient": kept})
    (tmp_path / "clinic.yaml").write_text(schema.to_yaml())
    path = as_csv(tmp_path / "raw.csv", table=pa.concat_tables([TABLE, TABLE.slice(0, 1)]))
    code, _, err = run_cli("validate", path, "--schema", tmp_path / "clinic.yaml")
    assert code == 1 and "broken: column patient" in err


def test_a_raw_table_that_breaks_the_schema_is_told_before_a_run_is_given_it(tmp_path: Path) -> None:
    (tmp_path / "clinic.yaml").write_text(CLIPPED.to_yaml())
    path = as_csv(tmp_path / "t.csv")
    path.write_text(path.read_text().replace("north", "nowhere"))
    gate = check_hand_off(path, tmp_path / "clinic.yaml")
    assert gate.raw and [rule.column for rule in gate.broken] == ["ward"]
    failed = {one.rule.column: one.failed for one in gate.outcomes if not one.passed}
    assert failed == {"ward": TABLE["ward"].to_pylist().count("north")}
    path.write_text(path.read_text().replace("nowhere", ""))
    code, _, err = run_cli("validate", path, "--schema", tmp_path / "clinic.yaml")
    assert code == 1 and "broken: column ward must not be null; to fix it: write `nullable: true` in the schema" in err
    path.write_text(path.read_text().partition("\n")[0] + "\n")
    with refused(DataError, "holds no row"):
        check_hand_off(path, tmp_path / "clinic.yaml")


@pytest.mark.parametrize(
    ("name", "told"),
    [("t.csv", "t.csv cannot be read: the file is empty"), ("t.txt", "must be a file of one of these kinds"),
     ("t.xls", "must be a file of one of these kinds"), ("t.parquet", "the file is damaged or not what its name says")],
)  # fmt: skip
def test_a_file_that_is_no_table_is_told_by_its_own_kind(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / name).write_bytes(b"" if name == "t.csv" else b"a,b")
    (tmp_path / "t.yaml").write_text(SCHEMA_TEXT)
    with pytest.raises(NacreError, match=told):
        check_hand_off(tmp_path / name, tmp_path / "t.yaml")
