"""In Python a lint says what the command says."""

import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import nacre
from tests.kit.errors import refused
from tests.kit.support import run_cli

UNCOUNTED = "name: visits\ncolumns: {age: {type: integer, min: 0, max: 120}}\n"
CLEAN = f"{UNCOUNTED}rows: {{min: 100, max: 1000}}\n"
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
    (count,) = nacre.lint(UNCOUNTED).cautions
    assert count.startswith("no number of rows is declared: where it is public, `rows: {min: ")
    assert "no number of rows" not in repr(nacre.lint(CAUTIOUS))  # of users, of whom rows are no count


@pytest.mark.parametrize(
    ("stages", "target", "is_said"),
    [
        ((0, 4), "late", True),
        ((0, 7), "late", True),
        ((0, 1), "late", False),
        ((0, 8), "late", False),
        ((0, 4), "", False),
    ],
)
def test_few_whole_numbers_beside_a_target_may_be_stages(stages: tuple[int, int], target: str, is_said: bool) -> None:
    stage = {"type": "integer", "min": stages[0], "max": stages[1]}
    columns = {"stage": stage, "late": {"type": "boolean"}}
    linted = nacre.lint({"name": "bills", "columns": columns, **({"target": target} if target else {})})
    said = "stage: few whole numbers, of which a report joins neighbors to groups"
    assert any(caution.startswith(said) for caution in linted.cautions) == is_said
    assert not is_said or "values: [0, 1, …]" in repr(linted)


def test_cautions_are_shown_beneath_and_a_page_obeys_no_name() -> None:
    linted = nacre.lint(CAUTIOUS)
    assert repr(linted).startswith("faults: none\ncautions: only the first 3 rows of each user are used")
    assert any("zero_inflated" in caution for caution in linted.cautions)
    assert nacre.lint(nacre.load_schema(CAUTIOUS)).cautions == linted.cautions
    assert "<script" not in nacre.Linted(["<script>"], [])._repr_html_()
    with pytest.raises(nacre.NacreError, match="a schema is a path"):
        nacre.lint(3)
    with pytest.raises(nacre.NacreError, match=r"absent.yaml does not exist; `nacre.draft_schema\(DATA\)`"):
        nacre.lint("absent.yaml")
    (fault,) = nacre.lint("name: a\nunit record\ncolumns: {x: {type: boolean}}\n").faults
    assert "has no colon" in fault or "is not valid YAML" in fault


def test_values_of_numpy_and_pandas_are_what_they_stand_for() -> None:
    low, day = np.float64(0), pd.Timestamp("2024-02-29")
    columns = {
        "fee": {"type": "number", "min": low, "max": np.float32(80), "round": np.int8(2), "nullable": np.bool_(True)},
        "dose": {"type": "number", "min": low, "max": np.uint16(9)},
        "rooms": {"type": "categorical", "values": list(np.arange(3))},
        "wing": {"type": "categorical", "values": np.array(["a", "b"])},
        "day": {"type": "datetime", "min": day, "max": np.datetime64("2025-01-01", "ns")},
        "hour": {"type": "datetime", "min": day, "max": pd.Timestamp("2025-01-01 10:00"), "resolution": "hour"},
    }
    schema: Any = nacre.load_schema({"name": "stay", "columns": columns})
    assert schema.columns["rooms"].values == (0, 1, 2) and schema.columns["wing"].values == ("a", "b")
    assert (schema.columns["fee"].max, schema.columns["fee"].nullable, schema.columns["dose"].max) == (80, True, 9)
    assert (schema.columns["day"].min, schema.columns["day"].max) == (date(2024, 2, 29), date(2025, 1, 1))
    assert schema.columns["hour"].max == datetime(2025, 1, 1, 10)
    draft = nacre.draft_schema(pd.DataFrame({"fee": [1.5]}), types={"fee": columns["fee"]})
    assert "fee: {type: number, min: 0.0, max: 80.0, round: 2, nullable: true" in draft
    for value in (object(), pd.NaT, 1j):
        with refused(nacre.Unsuitable, "^YAML cannot write columns.fee.min of the schema; use"):
            nacre.load_schema({"name": "stay", "columns": {"fee": {"type": "number", "min": value, "max": 1}}})


def test_what_a_value_is_to_be_written_as_is_said() -> None:
    columns = "name: a\ncolumns: {ward: {type: boolean}, day: {type: datetime, min: 2020-01-01, max: MAX}}\n"
    for text, says in (
        (columns.replace("MAX", "29.11.2026"), "must be a date such as 2020-01-31; write 2026-11-29"),
        (columns.replace("MAX", "03/04/2026"), "write 2026-04-03 or 2026-03-04"),
        (columns.replace("MAX", "31.02.2026"), "2020-01-31"),
        (columns.replace("MAX", "2026-11-29") + "workload: {by: ward}", "begins with a dash, as `- {by: COLUMN}`"),
        (columns.replace("MAX", "2026-11-29") + "workload: [ward]", "lines, as `{by: COLUMN}`"),
    ):
        (fault,) = nacre.lint(text).faults
        assert says in fault and ("write 2026" in fault) == ("write 2026" in says)


def test_a_category_that_is_spelled_as_yaml_spells_something_else_is_to_be_quoted() -> None:
    for values, says in (
        ("[null, a]", "YAML reads null as no value here; put it in quotes to mean the text, or .*`nullable: true`"),
        ("[~, a]", "YAML reads ~ as no value here; put it in quotes"),
        ("\n    - a\n    -\n", "YAML finds no value here; put it in quotes"),
        ("\n    - null\n    - a\n", "YAML reads null as no value here"),
        ("[on, a]", "YAML reads on as true; put it in quotes to mean the text"),
        ("[true, b]", 'put quotes around text that YAML reads as a number or as true or false, such as "12" or "true"'),
    ):
        (fault,) = nacre.lint(f"name: a\ncolumns:\n  ward:\n    type: categorical\n    values: {values}\n").faults
        assert re.search(says, fault), fault


MISTAKES = [
    ("name: a", "name: My Visits", "; write my_visits$"),
    ("max: 90", "max: 90 EUR", "; write 90, without its unit$"),
    ("round: 2", "round: 0.01", "; write 2, the number of decimals$"),
    ("values: [a, b]", "values: a|b", 'write ."a", "b".$'),
    ("ward: {type: categorical, values: [a, b]}", "ward: [a, b]", "write `{type: categorical, values: .a, b.}`$"),
    ("ward: {type: categorical, values: [a, b]}", "ward: categorical", "write `{type: categorical, …}`$"),
    ("columns:", "rows: 100\ncolumns:", "write `{min: 100, max: 100}`"),
    ("columns:", "constraints: age <= fee\ncolumns:", "write a list of rules, `.age <= fee.`$"),
    ("columns:", "constraints: [if age > 3 then sick]\ncolumns:", "write `when CONDITION then CONDITION`$"),
    (
        "columns:",
        "workload: [{by: [age, ward]}]\ncolumns:",
        "must be one text, and no list; write `{columns: .age, ward.}`",
    ),
]


def test_a_part_that_is_written_in_another_form_is_shown_as_a_schema_has_it() -> None:
    columns = (
        "age: {type: integer, min: 0, max: 90}, fee: {type: number, min: 1, max: 9, round: 2}, sick: {type: boolean}"
    )
    text = f"name: a\ncolumns: {{{columns}, ward: {{type: categorical, values: [a, b]}}}}\n"
    assert not nacre.lint(text).faults
    for right, wrong, says in MISTAKES:
        (fault,) = nacre.lint(text.replace(right, wrong, 1)).faults
        assert re.search(says, fault), (wrong, fault)
    joint = f"workload: [{{columns: [age, ward, sick], joint: yes}}]\n{text}"
    assert not nacre.lint(joint).faults  # which can only be meant as true


def test_a_target_of_numbers_and_a_discovered_bound_that_cuts_are_cautioned_of() -> None:
    columns = "rows: {max: 99}\ncolumns: {age: {type: integer, min: 0, max: 9, outside: clip}, sick: {type: boolean}}\n"
    of_numbers, of_classes = (nacre.lint(f"name: a\ntarget: {name}\n{columns}").cautions for name in ("age", "sick"))
    assert len(of_numbers) == 1 and "target age has no classes" in of_numbers[0] and not of_classes
    found = {
        "charge": "0" * 64, "account": "a", "run": "r", "unit": "record", "epsilon": 1.0, "delta": 1e-5,
        "events": [{"kind": "gaussian", "noise_multiplier": 2.0}], "plan_sha256": "1" * 64, "release_sha256": "2" * 64,
    }  # fmt: skip
    (cut,) = nacre.lint({**yaml.safe_load(f"name: a\n{columns}"), "discovered": [found]}).cautions
    assert "discovered bound" in cut and "of age sets" in cut and "`outside: reject-row`" in cut


def test_a_draft_suggests_days_of_a_year_and_asks_of_answers_where_a_name_may_be_one() -> None:
    draft = nacre.draft_schema(pd.DataFrame({"remote_days": [1], "department": ["x"], "said": ["y"]}), name="a")
    assert "remote_days: {type: integer, min: 0, max: 366, scale: log" in draft
    assert draft.count("alone if it holds yes and no only") == 1


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


def test_a_schema_that_was_loaded_is_linted_as_its_file_is() -> None:
    pay, sick = "{type: number, min: 0, max: 900000, round: 2}", "{type: boolean}"
    text = f"name: c\nunit: record\ncolumns:\n  pay: {pay}\n  sick: {sick}\n"
    for given in (text, text.replace("round: 2", "round: 2, zero_inflated: false")):
        cautions = nacre.lint(given).cautions
        assert nacre.lint(nacre.load_schema(given)).cautions == cautions
        assert any("pay can be 0" in one for one in cautions) == (given == text)


@pytest.mark.parametrize(
    ("resolution", "further", "advice"),
    [
        ("minute", "", "`hour: {type: integer, min: 0, max: 23, computed: hour(started), keep: drop}`"),
        ("hour", "\n  hour: {type: boolean}", "`hour_of_started: {type: integer"),
        ("minute", "\n  at: {type: integer, min: 0, max: 23, computed: hour(started), keep: drop}", ""),
        ("hour, cells: 48", "", ""),
        ("day", "", ""),
    ],
)
def test_a_moment_whose_hours_come_out_even_is_told_with_the_column_that_counts_them(
    resolution: str, further: str, advice: str
) -> None:
    started = f"{{type: datetime, min: 2023-01-01, max: 2023-01-02, resolution: {resolution}}}"
    started = started if "cells" in resolution else started.replace("2023-01-02", "2023-12-31")
    linted = nacre.lint(f"name: a\ncolumns:\n  started: {started}\n  ok: {{type: boolean}}{further}\n")
    said = [one for one in linted.cautions if "hours come out nearly even" in one]
    assert not linted.faults and len(said) == bool(advice) and advice in "".join(said)
    if advice:
        name, column = advice.strip("`").split(": {")[0], said[0].partition("`")[2].partition("`")[0]
        counted = nacre.lint(f"name: a\ncolumns:\n  started: {started}\n  ok: {{type: boolean}}\n  {column}\n")
        assert not counted.faults and column.startswith(name) and not any("even" in one for one in counted.cautions)
