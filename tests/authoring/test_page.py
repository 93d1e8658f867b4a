"""The page on schemas has every key of every model, with an example that is right, and no other; editors learn them."""

import json
import re
from pathlib import Path

import jsonschema
import pyarrow as pa
import pytest
import yaml
from pydantic import BaseModel

from dpmodels.authoring.cautions import MADE_LIKE_REAL, NO_RULE, faults_and_cautions
from dpmodels.authoring.faults.misspelt import KINDS
from dpmodels.authoring.lint import lint, parse
from dpmodels.codec.rules import keeping
from dpmodels.contract.family import Users
from dpmodels.contract.partition import Partition
from dpmodels.contract.schema import RowCount, Schema
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.contract.workload import Tables
from dpmodels.privacy import PrivacyUnit
from tests.kit.every_kind import EVERY_KIND, make
from tests.kit.support import run_cli

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "schema.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| `")]
BASE = """
name: visits
target: sick
columns:
  patient: {type: identifier}
  start: {type: datetime, min: 2020-01-01, max: 2029-12-31}
  end: {type: datetime, min: 2020-01-01, max: 2029-12-31}
  sick: {type: boolean}
"""
CLAIMS = """claim,holder,accident,report,payment,region,claimed,deductible,paid,fraud
1,7,2024-03-01,2024-03-04,2024-04-01,south,829.9,150,679.9,no
2,7,2024-03-01,2024-03-01,2024-03-01,west,0,300,0,yes
"""
OF_RECIPES = """
  sched: {type: integer, min: 0, max: 2359}
  flight: {type: datetime, min: 2015-01-01, max: 2024-12-31}
  age: {type: integer, min: 0, max: 120}
  airport: {type: categorical, values: [JFK, LGA, SFO]}
  loan: {type: number, min: 100, max: 60000}
  rate: {type: number, min: 0.1, max: 20, round: 1}
  months: {type: integer, min: 12, max: 120}
  kwh: {type: integer, min: 0, max: 9000}
  contract: {type: categorical, values: [day, night]}
  admitted: {type: datetime, min: 2015-01-01, max: 2024-12-31}
"""
"""Columns that the recipes take for granted."""
OF_FILE = [row for row in ROWS if len(row) == 3]
OF_PARTS = [row for row in ROWS if len(row) == 4 and row[0].strip("`") in Schema.model_fields]
OF_COLUMNS = [row for row in ROWS if len(row) == 4 and row not in OF_PARTS]
PARTS: dict[str, type[BaseModel]] = {
    "unit": PrivacyUnit,
    "users": Users,
    "rows": RowCount,
    "workload": Tables,
    "partition": Partition,
    "text": TextForm,
}


def fenced(language: str, page: str) -> list[str]:
    """List the blocks of a page that are in a language."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_every_key_is_on_the_page_and_every_key_on_the_page_exists() -> None:
    assert [row[0] for row in OF_FILE] == [f"`{key}`" for key in Schema.model_fields if key != "discovered"]
    assert "`discovered` has the charge" in (DOCS / "discover.md").read_text()  # by a command
    keys = {(name, key) for name, model in PARTS.items() for key in model.model_fields}
    assert {(row[0].strip("`"), row[1].strip("`")) for row in OF_PARTS} == keys - {("unit", "kind")}  # of documents
    told = [(kind, row[0].strip("`")) for row in OF_COLUMNS for kind in row[1].split(", ")]
    assert sorted(told) == sorted((kind, key) for kind, model in KINDS.items() for key in model.model_fields)


@pytest.mark.parametrize("row", OF_FILE + OF_PARTS, ids=lambda row: row[-1])
def test_every_example_of_a_key_of_the_file_is_right(row: list[str]) -> None:
    key, example = row[0].strip("`"), yaml.safe_load(row[-1].strip("`"))
    bare = {"name": "x", "columns": yaml.safe_load(BASE)["columns"]}
    if key == "users":
        bare["unit"] = {"user": "patient", "max_rows": 4}
        bare["columns"]["patient"]["keep"] = "regenerate"
    made = make(yaml.safe_dump({**bare, **example}))
    assert example.keys() == {key} and getattr(made, key) != getattr(make(yaml.safe_dump(bare)), key)


@pytest.mark.parametrize("row", OF_COLUMNS, ids=lambda row: row[-1])
def test_every_example_of_a_key_of_a_column_is_right(row: list[str]) -> None:
    key, example = row[0].strip("`"), yaml.safe_load(row[-1].strip("`"))
    assert key in example and example["type"] in row[1].split(", ")
    beside = "  sick: {type: boolean}\n"
    beside += "  age: {type: integer, min: 0, max: 120}\n" if example["type"] != "image" else ""
    beside += (
        "  y: {type: derived, formula: x + 1}\n" if example.get("keep") == "drop" and "computed" in example else ""
    )
    made = make(f"name: x\ntarget: sick\ncolumns:\n{beside}  x: {row[-1].strip('`')}\n")
    assert getattr(made.columns["x"], key) != type(made.columns["x"]).model_fields[key].get_default()


def test_the_schemas_of_the_page_have_no_faults(tmp_path: Path) -> None:
    claims, block = fenced("yaml", PAGE)
    (tmp_path / "claims.yaml").write_text(claims)
    assert not lint(tmp_path / "claims.yaml")
    (tmp_path / "claims.csv").write_text(CLAIMS)
    assert run_cli("validate", tmp_path / "claims.csv", "--schema", tmp_path / "claims.yaml")[0] == 0
    (tmp_path / "s.yaml").write_text(block)
    assert lint(tmp_path / "s.yaml") == []


def test_the_recipes_of_columns_that_depend_have_no_faults(tmp_path: Path) -> None:
    *recipes, _ = fenced("yaml", (DOCS / "columns-that-depend.md").read_text())
    assert len(recipes) == 8
    for recipe in recipes:
        columns = yaml.safe_load(recipe)["columns"]
        beside = [line for line in OF_RECIPES.splitlines() if line.strip().partition(":")[0] not in columns]
        (tmp_path / "recipe.yaml").write_text(f"name: x\n{recipe}" + "\n".join(beside))
        assert lint(tmp_path / "recipe.yaml") == [], recipe


def test_the_schema_of_each_job_takes_the_lines_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "schemas-by-job.md").read_text()
    jobs = list(zip(fenced("csv", page), fenced("yaml", page), strict=True))
    assert len(jobs) == 5
    for rows, schema in jobs:
        Path("job.csv").write_text(rows)
        Path("job.yaml").write_text(schema)
        assert lint(Path("job.yaml")) == [], schema
        code, out, err = run_cli("validate", "job.csv", "--schema", "job.yaml", "--raw")
        assert code == 0, out + err


class Editor(yaml.SafeLoader):
    """Reads YAML as a language server does, to which a date is text."""


Editor.yaml_implicit_resolvers = {
    letter: [each for each in known if not each[0].endswith(":timestamp")]
    for letter, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def test_an_editor_takes_what_the_lint_takes_and_explains_every_key(schemas: list[Path]) -> None:
    code, out, _ = run_cli("schema", "json-schema")
    assert code == 0
    known = jsonschema.Draft202012Validator(json.loads(out), format_checker=jsonschema.FormatChecker())
    rules = BASE + 'constraints: [start <= end, "when sick then start > 2020-06-01"]'
    for text in (EVERY_KIND, BASE, rules, *(path.read_text() for path in schemas)):
        known.validate(yaml.load(text, Editor))
    for wrong in (
        "unit: user",
        "unit: {user: a, rows: 3}",
        "nmae: x",
        "target: 3",
        "constraints: a < b",
        "constraints: [when sick]",
        "partition: {}",
    ):
        (key,) = yaml.safe_load(wrong)
        text = "\n".join(line for line in BASE.splitlines() if not line.startswith(f"{key}:")) + f"\n{wrong}\n"
        assert parse(text)[0] is None and not known.is_valid(yaml.load(text, Editor)), wrong
    for column in (
        "type: TODO",
        "type: integer",
        "type: integer, min: TODO, max: 3",
        "type: boolean, min: 1",
        "type: image",
    ):
        text = BASE + f"  x: {{{column}}}\n"
        assert parse(text)[0] is None and not known.is_valid(yaml.load(text, Editor)), column
    models = [known.schema, *(one for name, one in known.schema["$defs"].items() if not name.endswith("Event"))]
    explained = {
        key: one.get("description") for model in models for key, one in model["properties"].items() if key != "kind"
    }
    assert all(explained.values()), explained


WARDS = """
name: visits
rows: {max: 1000}
columns:
  ward: {type: categorical, values: [general, paediatrics]}
  age: {type: integer, min: 0, max: 120}
  weight: {type: number, min: 0, max: 300, round: 1, zero_inflated: false}
"""


def test_the_lint_asks_for_a_rule_of_a_table_without_any_and_the_one_on_the_page_holds(tmp_path: Path) -> None:
    page = (DOCS / "columns-that-depend.md").read_text()
    [(words, last)] = re.findall(r"`values: \[(.+?)\]`, write `(when ward = \w+ then age < 18)`", page)
    ruled = WARDS.replace("columns:", f"constraints: [{' '.join(last.split())}]\ncolumns:")
    schema = parse(ruled)[0]
    assert isinstance(schema, Schema) and words in WARDS
    rows = {"ward": ["paediatrics", "paediatrics", "general"], "age": [17, 40, 40], "weight": [60.0] * 3}
    batch = pa.RecordBatch.from_pydict(rows)
    assert keeping(schema.implications[0], schema.columns, batch).tolist() == [True, False, True]
    (file := tmp_path / "visits.yaml").write_text(WARDS)
    assert faults_and_cautions(file) == ([], [NO_RULE])
    derived = "\n  pounds: {type: derived, formula: weight * 2.2, round: 1}\n"
    without = "\n".join(line for line in WARDS.splitlines() if "weight" not in line)
    for other in (ruled, WARDS.rstrip() + derived, without):
        file.write_text(other)
        assert faults_and_cautions(file) == ([], []), other
    key = "\n  key: {type: identifier, keep: 'pattern:E[0-9]{6}'}\n"
    for line, said in ((key, [MADE_LIKE_REAL.format("key")]), (key.replace("pattern:E[0-9]{6}", "regenerate"), [])):
        file.write_text(ruled.rstrip() + line)
        assert faults_and_cautions(file) == ([], said)
