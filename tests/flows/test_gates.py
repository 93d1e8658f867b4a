"""Planted defects: each gate names the expectation that a table breaks, and nothing is handed over."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml

from tasks.stages import sample as sampling
from tests.kit.support import charges, make_schema, make_table, run_cli, synthesize_words, write_clinic

SCHEMA = {"constraints": ["dose <= age", "when ward = west then smoker"]}


def write(folder: Path, table: pa.Table) -> None:
    write_clinic(folder, **SCHEMA)
    pq.write_table(table, folder / "clinic.parquet")


def sound(rows: int = 150) -> pa.Table:
    """Clinic rows that keep both constraints."""
    table = make_table(rows)
    age = [max(age, 10) for age in table["age"].to_pylist()]
    smoker = pc.or_(table["smoker"], pc.equal(table["ward"], "west"))
    return table.set_column(1, "age", pa.array(age)).set_column(4, "smoker", smoker)


def planted(column: str, value: object) -> pa.Table:
    """The same with one value of the first row changed."""
    table = sound()
    index = table.schema.get_field_index(column)
    values = table[column].to_pylist()
    return table.set_column(index, column, pa.array([value, *values[1:]], table.schema.field(index).type))


BESIDE = {0: [("dose", 9.5)], "west": [("smoker", False)]}  # what else a synthetic row must hold to break the rule
DEFECTS = [
    pytest.param("age", 100, "column age must lie between 0 and 99", id="out of range"),
    pytest.param("ward", "attic", "column ward must be one of the listed values", id="category"),
    pytest.param(
        "age",
        0,
        "`dose <= age` must hold in every row",
        id="broken constraint",
    ),
    pytest.param(
        "ward",
        "west",
        "`when ward = west then smoker` must hold in every row",
        id="broken rule",
    ),
    pytest.param("sick", None, "column sick must not be null", id="null"),
]


@pytest.mark.parametrize(("column", "value", "says"), DEFECTS)
def test_the_raw_gate_names_the_rule_before_anything_is_charged(tmp_path, column, value, says):
    table = planted(column, value)
    if value == 0:
        table = table.set_column(3, "dose", pa.array([9.5, *table["dose"].to_pylist()[1:]]))
    write(tmp_path, table)
    code, _, err = run_cli(*synthesize_words(tmp_path))
    assert code == 1 and says in err
    assert charges(tmp_path / "home") == [] and not (tmp_path / "out").exists()
    docs = next((tmp_path / "home" / "sensitive").rglob("clinic.html")).read_text()
    assert "SENSITIVE" in docs and ">broken<" in docs and "attic" not in docs
    assert not list((tmp_path / "home" / "control").rglob("*.html"))


@pytest.mark.parametrize("other", [0, 70, 148])
def test_a_patient_in_two_rows_is_refused_before_anything_is_charged(tmp_path, other):
    table = sound()
    patients = [f"p{number}" for number in range(150)]
    patients[149] = patients[other] = "Zebulon"
    patient = {"patient": {"type": "identifier", "unique": True}}
    write_clinic(tmp_path, columns={**make_schema().model_dump()["columns"], **patient})
    pq.write_table(table.set_column(0, "patient", pa.array(patients)), tmp_path / "clinic.parquet")
    code, out, err = run_cli(*synthesize_words(tmp_path))
    assert code == 1 and err.count("column patient must not have the same value in two rows; to fix it: leave out") == 1
    assert charges(tmp_path / "home") == [] and not (tmp_path / "out").exists()
    sentence = next(line for line in err.splitlines() if "same value in two rows" in line)
    assert "Zebulon" not in out + err and not re.findall(r"\d\d|[2-9]", sentence.partition("/")[0])


def test_patients_in_one_row_each_are_cautioned_of_no_more(tmp_path):
    patient = {"patient": {"type": "identifier", "unique": True}}
    write_clinic(tmp_path, columns={**make_schema().model_dump()["columns"], **patient})
    pq.write_table(sound(), tmp_path / "clinic.parquet")
    code, out, err = run_cli(*synthesize_words(tmp_path))
    assert code == 0, out + err
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert not any("hidden" in one for one in report.get("cautions", ())) and "hides all rows" not in out + err
    assert run_cli("verify", tmp_path / "out")[0] == 3  # nothing is wrong, and nobody signed
    stated = (tmp_path / "out" / "contract.odcs.yaml").read_text()
    assert "patient" not in stated and "unique" not in stated
    assert "patient: {type: identifier, unique: true}" in (tmp_path / "out" / "schema.yaml").read_text()


@pytest.fixture(scope="module")
def hand_off(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gates")
    write(folder, sound())
    code, out, err = run_cli(*synthesize_words(folder, rows=150))
    assert code == 0, out + err
    return folder / "out"


def test_a_hand_off_holds_its_constraint_its_schema_and_its_docs(hand_off):
    table = pq.read_table(hand_off / "synthetic").to_pandas()
    assert table["smoker"][table["ward"] == "west"].all() and (table["ward"] == "west").any()
    table = table.dropna()
    assert (table["dose"] <= table["age"]).all() and len(table) > 20
    docs = (hand_off / "checks.html").read_text()
    assert "SENSITIVE" not in docs and "dose &lt;= age" in docs and ">broken<" not in docs
    assert run_cli("verify", hand_off)[0] == 3
    code, out, err = run_cli("validate", hand_off)
    assert code == 0 and "broken" not in out and "rows that fail" in out, err


@pytest.mark.parametrize(("column", "value", "says"), DEFECTS)
def test_validate_judges_any_table_and_exits_with_1(hand_off, tmp_path, column, value, says):
    table = planted(column, value)
    if value == 0:
        table = table.set_column(3, "dose", pa.array([9.5, *table["dose"].to_pylist()[1:]]))
    pq.write_table(table, tmp_path / "other.parquet")
    code, out, err = run_cli(
        "validate", tmp_path / "other.parquet", "--schema", hand_off / "schema.yaml", "--synthetic"
    )
    assert code == 1 and err.splitlines() == [
        "held to the rules for synthetic tables; --raw is for raw ones",
        f"broken: {says}",
    ]
    assert sum("broken" in line for line in out.splitlines()) == 1


@pytest.mark.parametrize("rows", ["few", "none", "damaged"])
def test_validate_finds_missing_rows_and_damaged_files(hand_off, tmp_path, rows):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(hand_off, copy)
    part = next((copy / "synthetic").iterdir())
    if rows == "few":
        pq.write_table(pq.read_table(part).slice(1), part)
    elif rows == "none":
        part.unlink()
    else:
        part.write_bytes(b"PAR1 and nothing else")
    code, out, err = run_cli("validate", copy)
    assert code == 1
    assert {"few": "the table must have 150 rows", "none": "holds no .parquet", "damaged": "is damaged"}[
        rows
    ] in out + err


def test_validate_wants_a_schema_for_what_is_no_hand_off(tmp_path):
    pq.write_table(sound(), tmp_path / "other.parquet")
    code, _, err = run_cli("validate", tmp_path / "other.parquet")
    assert code == 1 and "name a schema with --schema" in err


@pytest.mark.parametrize(("column", "value", "says"), DEFECTS)
@pytest.mark.nightly_if("null", "broken rule")  # beside a constraint, a range and categories
def test_the_synthetic_gate_names_the_rule_and_hands_nothing_over(tmp_path, monkeypatch, column, value, says):
    write(tmp_path, sound())
    words = synthesize_words(tmp_path)
    real_parts = sampling.write_parts

    def write_planted(draw, *rest):
        real_parts(draw, *rest)
        part = next(draw.folder.iterdir())
        table = pq.read_table(part)
        for name, planted_value in ((column, value), *BESIDE.get(value, [])):
            index = table.schema.get_field_index(name)
            field = table.schema.field(index)
            table = table.set_column(index, field, pa.array([planted_value, *table[name].to_pylist()[1:]], field.type))
        pq.write_table(table, part)

    monkeypatch.setattr(sampling, "write_parts", write_planted)
    code, _, err = run_cli(*words)
    assert code == 1 and says in err and "not handed over" in err
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".part-*"))
    assert ">broken<" in next((tmp_path / "home" / "control").rglob("checks.html")).read_text()


def test_a_report_is_laid_out_again_from_its_facts(hand_off, tmp_path):
    home = hand_off.parent / "home"
    (run,) = (path.name for path in (home / "released").iterdir())
    code, out, err = run_cli("report", run, "--home", home, "--out", tmp_path / "again.html")
    assert code == 0, out + err
    whole = (hand_off / "report.html").read_text()
    alone = re.sub(r'<section id="officer">.*?</section>', "", whole, flags=re.DOTALL)  # which links pages beside it
    alone = alone.replace('<li><a href="#officer">For an officer</a></li>', "")
    alone = re.sub(
        r"<p[^>]*>These files may be sent and used once an officer signed.*?</p>", "", alone, flags=re.DOTALL
    )
    assert (tmp_path / "again.html").read_text().split() == alone.split() != whole.split()
    code, _, err = run_cli("report", run, "--home", home, "--out", hand_off / "report.html")
    assert code == 1 and "would change a hand-off" in err and (hand_off / "report.html").read_text() == whole
    assert run_cli("verify", hand_off)[0] == 3


def test_what_follows_from_other_columns_is_exact_in_the_hand_off_and_held_at_the_gate(tmp_path):
    derived = {"decade": {"type": "derived", "formula": "age // 10"}}
    columns = {**make_schema().model_dump(exclude_defaults=True)["columns"], **derived}
    write_clinic(tmp_path, columns=columns)
    table = make_table(150)
    decade = [age // 10 for age in table["age"].to_pylist()]
    pq.write_table(table.append_column("decade", pa.array(decade)), tmp_path / "clinic.parquet")
    code, out, err = run_cli(*synthesize_words(tmp_path, rows=150))
    assert code == 0, out + err
    made = pq.read_table(tmp_path / "out" / "synthetic")
    assert made["decade"].to_pylist() == [age // 10 for age in made["age"].to_pylist()]
    assert len(set(made["decade"].to_pylist())) > 1
    assert run_cli("validate", tmp_path / "out")[0] == 0 and run_cli("verify", tmp_path / "out")[0] == 3
    pq.write_table(table.append_column("decade", pa.array([*decade[1:], 10])), tmp_path / "clinic.parquet")
    code, _, err = run_cli(*synthesize_words(tmp_path, home=tmp_path / "new", out=tmp_path / "more"))
    assert code == 1 and "column decade must be `age // 10`" in err and charges(tmp_path / "new") == []


def test_a_rule_that_hardly_any_drawn_row_keeps_ends_in_a_hand_off_that_warns_of_it(tmp_path):
    values = [f"v{number}" for number in range(200)]
    content = {
        "name": "odd",
        "constraints": ["when kept then code = v0", "when not kept then code = v1"],
        "columns": {"kept": {"type": "boolean"}, "code": {"type": "categorical", "values": values}},
    }
    (tmp_path / "odd.yaml").write_text(yaml.safe_dump(content))
    kept = [number % 3 == 0 for number in range(120)]
    pq.write_table(pa.table({"kept": kept, "code": ["v0" if one else "v1" for one in kept]}), tmp_path / "odd.parquet")
    (tmp_path / "config.yaml").write_text("model: {training: {steps: 5}}\n")
    given = {"data": tmp_path / "odd.parquet", "schema": tmp_path / "odd.yaml", "target-epsilon": 0.01, "rows": 20_000}
    code, _, err = run_cli(*synthesize_words(tmp_path, **given))
    assert code == 0 and "of the rows were made to fit" in err and "`when kept then code = v0`" in err, err
    assert charges(tmp_path / "home") == ["reserve", "draw", "seal", "commit"]
    made = pq.read_table(tmp_path / "out" / "synthetic").to_pydict()
    assert len(made["code"]) == 20_000
    assert all(code == ("v0" if one else "v1") for one, code in zip(made["kept"], made["code"], strict=True))
    assert "of the rows were made to fit" in (tmp_path / "out" / "report.html").read_text()
