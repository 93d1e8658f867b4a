"""``nacre report --internal`` and ``nacre compare``, as a person runs them."""

import json
import stat

import pyarrow.parquet as pq
import pytest
from markupsafe import escape

from tests.kit import population
from tests.kit.population import SCHEMA, draw, write
from tests.kit.support import make_table, run_cli, write_clinic

CLINIC_ROWS = 150


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    real, held, made = (draw(400, seed) for seed in range(3))
    named = {"real": real, "held": held, "made": made, "copied": population.copied(made, real)}
    paths = {name: write(table, folder / f"{name}.parquet") for name, table in named.items()}
    (folder / "town.yaml").write_text(SCHEMA.to_yaml())
    return paths | {"schema": folder / "town.yaml", "folder": folder}


def test_compare_judges_tables_side_by_side(files):
    out = files["folder"] / "inside"
    words = ["compare", files["made"], files["copied"], "--real", files["real"], "--test", files["held"]]
    code, said, _ = run_cli(*words, "--schema", files["schema"], "--out", out, "--jobs", 1)
    assert code == 0
    assert "made" in said and "copied rows" in said and "stay inside" in said
    assert "copied: copied rows fails: " in said and "*: the best of its line" in said and "real rows: what" in said
    assert any(line.startswith("made: best in ") for line in said.splitlines()), said
    facts = json.loads((out / "comparison.json").read_text())
    assert facts["banner"].startswith("SENSITIVE") and list(facts["tables"]) == ["made", "copied"]
    fails = {
        name: {check["name"] for check in table["checks"] if check["holds"] is False}
        for name, table in facts["tables"].items()
    }
    assert "copied rows" in fails["copied"] and "copied rows" not in fails["made"]
    page = (out / "comparison.html").read_text()
    assert page.count("SENSITIVE") >= 2 and "TSTR AUROC, four classifiers" in page
    assert f"<strong>copied</strong>: {escape(facts['verdicts']['copied'])}" in page and "(best)</td>" in page
    assert stat.S_IMODE(out.stat().st_mode) == 0o700


def test_compare_says_what_is_wrong_in_one_sentence(files, tmp_path):
    short = write(draw(30, 0).drop(columns="rent"), tmp_path / "short.parquet")
    words = ["--real", files["real"], "--schema", files["schema"], "--out", tmp_path / "out"]
    code, _, err = run_cli("compare", tmp_path / "none.parquet", *words)
    assert code == 1 and "none.parquet does not exist" in err
    code, _, err = run_cli("compare", short, *words)
    assert code == 1 and "rent" in err and "Traceback" not in err


def test_compare_names_a_column_that_a_partitioned_export_keeps_in_its_folders(files, tmp_path):
    made = pq.read_table(files["made"])
    name = next(name for name, column in SCHEMA.modelled.items() if not column.continuous)
    pq.write_table(made.drop_columns(name), tmp_path / "made.parquet")
    code, _, err = run_cli(
        "compare",
        tmp_path / "made.parquet",
        "--real",
        files["real"],
        "--schema",
        files["schema"],
        "--out",
        tmp_path / "o",
    )
    assert code == 1 and f"column {name}: is in the schema but not in {tmp_path / 'made.parquet'}" in err
    made.to_pandas().drop(columns="rent").to_csv(tmp_path / "made.csv", index=False)
    words = ["--real", files["real"], "--schema", files["schema"], "--out", tmp_path / "o"]
    code, _, err = run_cli("compare", tmp_path / "made.csv", *words)
    assert code == 1 and "rent" in err and "nacre-" not in err, err


def test_the_internal_report_of_a_run_is_made_again_with_every_metric(tmp_path):
    import pyarrow.parquet as pq

    data, schema, config = write_clinic(tmp_path, CLINIC_ROWS)
    home, held = tmp_path / "home", tmp_path / "held.parquet"
    pq.write_table(make_table(CLINIC_ROWS, seed=7), held)
    words = ["--schema", schema, "--config", config, "--target-epsilon", 1, "--delta", 1e-5, "--home", home]
    words += ["--out", tmp_path / "out", "--rows", CLINIC_ROWS, "--no-prefect"]  # the noisy count may be too small
    assert run_cli("synthesize", data, *words)[0] == 0
    run = next((home / "released").iterdir()).name
    quick = json.loads((home / "sensitive" / run / "internal-report.json").read_text())
    assert "overfitting" not in quick["metrics"]

    code, _, err = run_cli("report", run, "--internal", "--test", data, "--home", home, "--jobs", 1)
    assert code == 1 and "test rows are rows that the table was made from" in err
    code, said, _ = run_cli("report", run, "--internal", "--test", held, "--home", home, "--jobs", 1)
    assert code == 0 and "released vector" in said
    full = json.loads((home / "sensitive" / run / "internal-report.json").read_text())
    assert {one["status"] for one in full["metrics"].values()} == {"done"}
    attack = full["metrics"]["attack on the release"]["result"]
    assert attack["epsilon_lower_bound"] <= attack["spent_epsilon"] == 1.0
    assert not list((home / "released").rglob("internal*"))
    assert run_cli("report", run, "--home", home)[0] == 0
    code, _, err = run_cli("report", "nothing", "--home", home)
    assert code == 1 and "no run nothing" in err
