"""What a release gives for nothing after its hand-off: rows under conditions; and that nothing is charged for it."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

import nacre
from tests.support import charges, digest, run_cli, synthesize_words, write_clinic

QUICK = {"nacre": {"components": 8, "steps": 20}, "privbayes": {}, "pearl": None}


@pytest.fixture(scope="module", params=["nacre"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("runs"), request.param)


def made(folder: Path, method: str) -> Path:
    """Run one quick synthesis by a method; return its home."""
    write_clinic(folder)
    if (training := QUICK[method]) is not None:
        (folder / "config.yaml").write_text(yaml.safe_dump({"model": {"method": method, "training": training}}))
    code, _, err = run_cli(*synthesize_words(folder))
    assert code == 0, err
    return folder / "home"


def name_of(home: Path) -> str:
    (settings,) = (home / "control").glob("*/settings.json")
    return settings.parent.name


def sample(home: Path, out: Path, *words: object) -> tuple[int, str, str]:
    return run_cli("sample", name_of(home), "--rows", 300, "--out", out, "--home", home, *words)


def test_rows_under_conditions_come_without_a_charge_and_say_where_they_are_from(home, tmp_path):
    before, ledger = charges(home), digest(home / "ledger.sqlite")
    where = ("--where", "sick=yes", "--where", "age > 60", "--where", "dose != null")
    code, out, err = sample(home, tmp_path / "sick.parquet", *where)
    assert code == 0, err
    assert "300, drawn by nacre" in out and "nothing was charged" in out and "% of what it draws" in out
    table = pq.read_table(tmp_path / "sick.parquet")
    frame = table.to_pandas()
    assert len(frame) == 300 and set(frame.sick) == {"yes"} and frame.age.min() > 60 and not frame.dose.isna().any()
    assert frame.patient.tolist() == list(range(1, 301))
    footer = json.loads(pq.ParquetFile(tmp_path / "sick.parquet").metadata.metadata[b"nacre.sample"])
    assert footer["where"] == ["sick=yes", "age > 60", "dose != null"] and footer["run"] == name_of(home)
    assert any(footer["release"] in entry.model_dump_json() for entry in nacre.ledger(home).entries())
    assert (charges(home), digest(home / "ledger.sqlite")) == (before, ledger)
    python = nacre.sample(name_of(home), 300, where=["sick=yes", "age > 60", "dose != null"], home=home)
    assert python.equals(frame)


def test_without_conditions_the_rows_are_those_of_a_plain_sample(home, tmp_path):
    code, out, err = sample(home, tmp_path / "all.parquet", "--json")
    assert code == 0, err
    assert json.loads(out)["rows"] == 300 and json.loads(out)["share"] == 1
    assert nacre.sample(name_of(home), 300, home=home).equals(pq.read_table(tmp_path / "all.parquet").to_pandas())


REFUSED = {
    "age": "`age` is no condition",
    "height > 3": "`height > 3` is no condition: write a column (age, ward, dose, smoker, sick)",
    "patient = 3": "column patient is not modeled",
    "age > 100": "a value of column age must lie between 0 and 99",
    "age = 3.5": "column age has whole numbers only",
    "age < old": "old is no number",
    "age = null": "null is no number",
    "dose > null": "null has no order",
    "dose = 1.234": "column dose keeps 2 decimals",
    "ward = east": "east is no value of column ward; it has north, south, west",
    "ward < south": "its values have no order",
    "smoker = 1": "1 is no value of column smoker; it has false, true",
    "age > 99": "no row that this generator draws meets `age > 99`",
}


@pytest.mark.parametrize("where", REFUSED)
def test_what_cannot_be_met_is_refused_in_one_sentence_and_leaves_no_file(home, tmp_path, where):
    code, out, err = sample(home, tmp_path / "none.parquet", "--where", where)
    assert (code, out, err.count("\n")) == (1, "", 1) and REFUSED[where] in err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(nacre.NacreError):
        nacre.sample(name_of(home), 300, where=where, home=home)


def test_a_file_that_is_there_is_kept(home, tmp_path):
    (tmp_path / "mine.parquet").write_text("mine")
    code, _, err = sample(home, tmp_path / "mine.parquet")
    assert code == 1 and "is there already" in err and (tmp_path / "mine.parquet").read_text() == "mine"


def test_a_generator_without_weights_is_sampled_by_rejection(tmp_path):
    home = made(tmp_path, "pearl")
    code, _, err = sample(home, tmp_path / "few.parquet", "--where", "age>=50", "--where", "ward=north")
    assert code == 0, err
    frame = pq.read_table(tmp_path / "few.parquet").to_pandas()
    assert len(frame) == 300 and frame.age.min() >= 50 and set(frame.ward) == {"north"}
