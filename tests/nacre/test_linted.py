"""In Python a lint says what the command says."""

from pathlib import Path

import pytest
import yaml

import nacre
from tests.kit.support import run_cli

CLEAN = "name: visits\ncolumns: {age: {type: integer, min: 0, max: 120}}\n"
CAUTIOUS = """name: visits
unit: {user: patient, max_rows: 3}
columns: {patient: {type: identifier}, fee: {type: number, min: 0, max: 100000, round: 2}}
"""
FAULTY = "name: visits\ncolumns:\n  age: {type: integer, min: 9, max: 1}\n  fee: {type: number, min: 0, max: TODO}\n"


@pytest.mark.parametrize("text", [CLEAN, CAUTIOUS, FAULTY])
def test_the_same_is_said_as_by_the_command(text: str, tmp_path: Path) -> None:
    (path := tmp_path / "visits.yaml").write_text(text)
    linted, (_, out, err) = nacre.lint(path), run_cli("schema", "lint", path)
    lines = [line.removeprefix(f"{path}: ") for line in (out + err).splitlines()]
    assert [line for line in lines if line != "no faults"] == [*linted.faults, *linted.cautions]
    assert nacre.lint(text).faults == linted.faults and nacre.lint(text).cautions == linted.cautions
    assert bool(linted.faults) == (text == FAULTY) and bool(linted.cautions) == (text == CAUTIOUS)


def test_faults_are_returned_and_shown_a_line_each() -> None:
    linted = nacre.lint(FAULTY)
    assert repr(linted).splitlines() == [f"faults: {fault}" for fault in linted.faults] and len(linted.faults) == 2
    assert linted.faults[1].startswith("line 4: columns.fee.max: is still TODO")
    of_mapping = nacre.lint(yaml.safe_load(FAULTY))
    assert of_mapping.faults[1].startswith("columns.fee.max: is still TODO")  # whose lines nobody has seen
    assert repr(nacre.lint(CLEAN)) == "faults: none"


def test_cautions_are_shown_beneath_and_a_page_obeys_no_name() -> None:
    linted = nacre.lint(CAUTIOUS)
    assert repr(linted).startswith("faults: none\ncautions: only the first 3 rows of each user are used")
    assert any("zero_inflated" in caution for caution in linted.cautions)
    assert nacre.lint(nacre.load_schema(CAUTIOUS)).cautions == linted.cautions
    assert "<script" not in nacre.Linted(["<script>"], [])._repr_html_()
    with pytest.raises(nacre.NacreError, match="a schema is a path"):
        nacre.lint(3)
    with pytest.raises(nacre.NacreError, match=r"absent.yaml does not exist.*in Python: nacre.draft_schema\(DATA\)"):
        nacre.lint("absent.yaml")
    (fault,) = nacre.lint("name: a\nunit record\ncolumns: {x: {type: boolean}}\n").faults
    assert "has no colon" in fault or "is not valid YAML" in fault


def test_a_formula_of_the_other_table_of_users_is_computed_in_a_frame(tmp_path: Path) -> None:
    schema = {
        "name": "visits",
        "unit": {"user": "who", "max_rows": 2},
        "users": {"columns": ["born"]},
        "columns": {
            "who": {"type": "identifier", "keep": "regenerate"},
            "born": {"type": "integer", "min": 1900, "max": 2020},
            "year": {"type": "integer", "min": 2000, "max": 2024},
            "age": {"type": "derived", "formula": "year - born"},
        },
    }
    words = "write it into the data before, which `frame.assign(NAME=...)` can, or `query`"
    (fault,) = nacre.lint(schema).faults
    assert words in fault
    with pytest.raises(nacre.SchemaError) as caught:
        nacre.load_schema(schema)
    assert words in str(caught.value)
    (path := tmp_path / "visits.yaml").write_text(yaml.safe_dump(schema))
    err = " ".join(run_cli("schema", "lint", path)[2].split())
    assert "before, which `--query` can" in err and "frame.assign" not in err
