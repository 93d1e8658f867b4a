"""Bad input gives one clear sentence and a non-zero exit, spends nothing, and never prints a private value."""

import errno
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import nacre
from dpmodels.errors import ArtifactError
from tasks.run.ready import check_ready
from tasks.run.store import Run
from tests.kit.letters import embed_words, write_letters
from tests.kit.support import charges, make_table, run_cli, synthesize_words, write_clinic

PRIVATE = ["north", "south", "west", "8675309", "-77.5", "zebra"]
Change = Callable[[pa.Table], pa.Table]


def refused(folder: Path, **options: object) -> str:
    """Run, expect a refusal that spent nothing, and return its one sentence."""
    code, out, err = run_cli(*synthesize_words(folder, **options))
    sentence = "".join(line for line in err.splitlines() if line.startswith(("error: ", "  ")))
    assert code == 1
    assert err.count("error: ") == 1 and "Traceback" not in err + out
    assert not any(value in out + err for value in PRIVATE)
    home = folder / "home"
    assert not home.exists() or not (home / "ledger.sqlite").exists() or charges(home) == []
    assert not (folder / "out").exists() or "already" in sentence
    return sentence


def put(name: str, values: list[object], kind: pa.DataType | None = None) -> Change:
    """Overwrite the first values of a column."""

    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(name)
        whole = values + table[name].to_pylist()[len(values) :]
        return table.set_column(index, name, pa.array(whole, kind or table[name].type))

    return change


TABLES: dict[str, tuple[Change, str]] = {
    "missing column": (lambda t: t.drop_columns(["ward"]), "column ward: is in the schema but not in the data"),
    "extra column": (lambda t: t.append_column("shoe", t["age"]), "the data has 1 column that the schema lacks"),
    "renamed column": (lambda t: t.rename_columns({"ward": "Ward"}), "ward"),
    "wrong dtype": (lambda t: t.set_column(1, "age", pc.cast(t["age"], pa.string())), "column age: must hold numbers"),
    "fraction in an integer": (put("age", [-77.5], pa.float64()), "age"),
    "nan": (put("age", [float("nan")], pa.float64()), "column age must not be null"),
    "infinity": (put("age", [float("inf")], pa.float64()), "column age must"),
    "minus infinity": (put("dose", [float("-inf")]), "column dose must"),
    "null where none may be": (put("smoker", [None]), "column smoker must not be null"),
    "above the bound": (put("age", [8675309]), "column age must"),
    "a category outside the schema": (put("ward", ["zebra"]), "column ward must be one of the listed values"),
    "no rows": (lambda t: t.slice(0, 0), "no rows"),
}


TEXT_IS_FINE_IN_CSV = "wrong dtype"  # text that reads as numbers is how CSV holds numbers
CASES = [(case, kind) for case in TABLES for kind in ("parquet", "csv") if (case, kind) != (TEXT_IS_FINE_IN_CSV, "csv")]


@pytest.mark.parametrize(("case", "kind"), CASES)
def test_a_table_that_breaks_its_schema(tmp_path, case, kind):
    write_clinic(tmp_path)
    change, match = TABLES[case]
    table, data = change(make_table(100)), tmp_path / f"clinic.{kind}"
    write = pq.write_table if kind == "parquet" else pyarrow.csv.write_csv
    write(table, data)
    sentence = refused(tmp_path, data=data)
    assert match in sentence and sentence.count("nothing was charged") == 1
    assert ("`nacre schema init FILE` lists the names" in sentence) == (case == "extra column")


def test_every_broken_column_is_named_at_once(tmp_path):
    write_clinic(tmp_path)
    table = put("age", [8675309])(put("ward", ["zebra"])(make_table(50)))
    pq.write_table(table, tmp_path / "clinic.parquet")
    sentence = refused(tmp_path)
    assert "column age" in sentence and "column ward" in sentence


def test_text_in_a_number_column_of_a_csv(tmp_path):
    write_clinic(tmp_path)
    lines = "patient,age,ward,dose,smoker,sick\n" + "1,zebra,north,1.5,true,no\n" * 9
    (tmp_path / "clinic.csv").write_text(lines)
    assert "column age: must hold numbers in every row" in refused(tmp_path, data=tmp_path / "clinic.csv")


def test_values_are_refused_with_the_types_of_other_columns(tmp_path):
    write_clinic(tmp_path)
    data, lines = tmp_path / "clinic.csv", "patient,age,ward,dose,smoker,sick\n" + "1,zebra,lake,1.5,true,no\n" * 9
    data.write_text(lines)
    assert "  column ward must be one of the listed values" in (sentence := refused(tmp_path, data=data))
    assert "  column age: must hold numbers" in sentence and sentence.count("nothing was charged") == 1
    code, _, err = run_cli("validate", data, "--schema", tmp_path / "clinic.yaml")
    assert code == 1 and "column ward" in err and "column age" in err


def test_types_that_a_file_states_are_refused_before_its_values_with_what_names_them(tmp_path):
    write_clinic(tmp_path)
    table = TABLES["wrong dtype"][0](make_table(50))
    pq.write_table(table, tmp_path / "clinic.parquet")
    assert "no value was looked at: `nacre validate` names whatever else is wrong" in refused(tmp_path)


def test_files_that_are_no_tables(tmp_path):
    write_clinic(tmp_path)
    data, whole = tmp_path / "clinic.parquet", (tmp_path / "clinic.parquet").read_bytes()
    data.write_bytes(whole[: len(whole) // 2])
    assert "damaged" in refused(tmp_path)
    data.write_bytes(b"")
    assert "empty" in refused(tmp_path)
    data.unlink()
    assert "does not exist" in refused(tmp_path)
    (tmp_path / "folder").mkdir()
    assert "holds no files" in refused(tmp_path, data=tmp_path / "folder")
    (tmp_path / "folder" / "a.txt").write_text("x")
    assert "CSV (.csv, .tsv)" in refused(tmp_path, data=tmp_path / "folder")


def test_a_parquet_file_damaged_in_its_middle(tmp_path):
    write_clinic(tmp_path, rows=20_000)
    data = tmp_path / "clinic.parquet"
    content = bytearray(data.read_bytes())
    content[2000:6000] = bytes(4000)
    data.write_bytes(content)
    assert "damaged" in refused(tmp_path)


def test_one_row_and_a_constant_column_go_through(tmp_path):
    write_clinic(tmp_path)
    pq.write_table(make_table(1), tmp_path / "clinic.parquet")
    assert run_cli(*synthesize_words(tmp_path, rows=20))[0] == 0
    other = tmp_path / "constant"
    write_clinic(other)
    table = make_table(80)
    constant = table.set_column(1, "age", pa.array(np.full(80, 42)))
    pq.write_table(constant, other / "clinic.parquet")
    assert run_cli(*synthesize_words(other, rows=20))[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("max: 99", "max: -1", "age"),
        ("type: integer", "type: intger", "intger"),
        ("columns:", "colums:", "colums"),
        ("target: sick", "target: sikc", "sikc"),
        ("max: 99", "max: TODO", "TODO"),
        ("age:", "age: [", "line"),
    ],
)
def test_a_schema_with_a_fault_is_explained_with_its_line(tmp_path, old, new, match):
    write_clinic(tmp_path)
    schema = tmp_path / "clinic.yaml"
    text = schema.read_text()
    assert old in text
    schema.write_text(text.replace(old, new, 1))
    sentence = refused_schema(tmp_path)
    assert match in sentence
    code, _, err = run_cli("schema", "lint", schema)
    assert code == 1 and "line" in err


def refused_schema(folder: Path) -> str:
    code, _, err = run_cli(*synthesize_words(folder))
    assert code == 1 and "Traceback" not in err and not (folder / "home").exists()
    return err


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"target_epsilon": 0}, "epsilon=0.0 must lie between 0.001 and 1000"),
        ({"target_epsilon": -1}, "epsilon=-1.0 must"),
        ({"target_epsilon": "nan"}, "epsilon=nan must"),
        ({"target_epsilon": 1e-9}, "epsilon=1e-09 must"),
        ({"target_epsilon": 1e9}, "epsilon=1000000000.0 must"),
        ({"delta": 0}, "delta=0.0 must be above 0 for Gaussian noise"),
        ({"delta": 1}, "delta=1.0 must"),
        ({"delta": 1.5}, "delta=1.5 must"),
        ({"target_epsilon": None}, "--epsilon is missing (privacy.target_epsilon in a configuration file)"),
        ({"rows": 0}, "rows=0 must"),
        ({"seed": -1}, "seed=-1 must"),
        ({"method": "perl"}, "method=perl must be a method; did you mean `pearl`? There are nacre"),
        ({"device": "cuda"}, "device=cuda must be auto or one that this machine has: cpu"),
    ],
)
def test_an_impossible_option(tmp_path, options, match):
    write_clinic(tmp_path)
    assert match in refused(tmp_path, **options)


def test_a_broken_configuration_file(tmp_path):
    write_clinic(tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text("model: [")
    assert "config" in refused(tmp_path) and "YAML" in refused(tmp_path)
    config.write_text("modell: {}")
    assert "modell" in refused(tmp_path)
    config.unlink()
    assert "readable" in refused(tmp_path)


def test_an_out_folder_that_already_holds_a_run(tmp_path):
    write_clinic(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text("{}")
    assert "already holds files" in refused(tmp_path)


@pytest.mark.parametrize(
    ("option", "value", "match"),
    [
        ("data", "absent.parquet", "absent.parquet does not exist"),
        ("data", "clinic.parquet/more", "clinic.parquet/more does not exist"),
        ("data", "https://name:word@host/rows.csv", "must hold no user, password, key"),
        ("out", "taken", "taken already holds files; name a new folder"),
        ("out", "clinic.yaml/out", "clinic.yaml is no folder that this process may write to"),
        ("out", "https://host/out", "be a folder, or a URI that can be written"),
        ("home", "clinic.yaml/home", "clinic.yaml is no folder that this process may write to"),
        ("parents", "absent.parquet", "be left out: the schema does not say which columns"),
    ],
)
def test_a_plan_refuses_the_places_that_its_run_refuses(tmp_path, option, value, match):
    write_clinic(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    words = synthesize_words(tmp_path, **{option: value if "://" in value else tmp_path / value})
    said = []
    for asked in (words, ["plan", *(word for word in words[1:] if word != "--no-prefect")]):
        code, out, err = run_cli(*asked)
        assert code == 1 and out == "" and match in err and len(err.splitlines()) == 1, err
        said.append(err)
    assert said[0] == said[1] and not (tmp_path / "home").exists()


def test_a_plan_needs_no_place_for_a_hand_off_and_writes_nothing(tmp_path):
    write_clinic(tmp_path)
    write_letters(tmp_path / "letters")
    documents = embed_words(tmp_path / "letters", out=None)
    for command, words in {"plan": synthesize_words(tmp_path, out=None), "plan-documents": documents}.items():
        before = sorted(tmp_path.rglob("*"))
        code, out, err = run_cli(command, *(word for word in words[1:] if word != "--no-prefect"))
        assert code == 0 and "noise" in out, err
        assert sorted(tmp_path.rglob("*")) == before
    assert "--out is missing" in refused(tmp_path, out=None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--test", "held.csv"), "--test says nothing here: add --internal"),
        (("--real-rows",), "--real-rows says nothing here: add --internal"),
        (("--internal", "--out", "page.html"), "--out says nothing here: leave out --internal"),
    ],
)
def test_an_option_of_the_other_report_is_refused(tmp_path, words, said):
    Run(home=tmp_path, name="one").control.mkdir(parents=True)
    (tmp_path / "control" / "one" / "settings.json").touch()
    code, _, err = run_cli("report", "one", *words, "--home", tmp_path)
    assert code == 1 and err == f"error: {said}\n"


@pytest.mark.parametrize("name", ["x" * 256, "x/" * 2000])
def test_a_path_that_no_file_system_takes(tmp_path, name):
    write_clinic(tmp_path)
    with pytest.raises(ArtifactError, match="no file system takes the path"):
        check_ready("cpu", tmp_path / name, None)
    for option in ("out", "home"):
        code, _, err = run_cli(*synthesize_words(tmp_path, **{option: tmp_path / name}))
        assert code == 1 and "no file system takes the path" in err and err.count("\n") == 1


def test_a_place_that_its_path_hides_is_checked_before_the_charge(tmp_path):
    write_clinic(tmp_path)
    (tmp_path / "link").symlink_to("/proc")
    ways = (tmp_path / "missing/x" / Path(*[".."] * (len(tmp_path.parts) + 1)) / "proc/h2", tmp_path / "link/h2")
    for out in ways:
        assert f"{out} cannot be written: /proc is no folder" in refused(tmp_path, out=out)
    assert not (tmp_path / "missing").exists()


def test_a_hand_off_behind_a_link_goes_where_the_link_leads(tmp_path):
    write_clinic(tmp_path)
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    assert run_cli(*synthesize_words(tmp_path, out=tmp_path / "link" / "out"))[0] == 0
    assert (tmp_path / "disk" / "out" / "manifest.json").exists()


def test_an_empty_disk_is_no_hand_off_folder(tmp_path):
    mounts = [Path(line.split()[1]) for line in Path("/proc/self/mounts").read_text().splitlines()]
    empty = [folder for folder in mounts if folder.is_dir() and not any(folder.iterdir())]
    if not empty:
        pytest.skip("this machine has no empty disk")
    with pytest.raises(ArtifactError, match="is where a disk begins; name a folder in it"):
        check_ready("cpu", empty[0], None)


def test_a_place_that_was_lost_after_the_charge_is_named_in_the_advice(tmp_path):
    write_clinic(tmp_path)
    out = tmp_path / "there" / "out"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tasks.stages.publish.copy_plain", full)
        assert run_cli(*synthesize_words(tmp_path, out=out))[0] == 1
    run = next((tmp_path / "home" / "released").iterdir()).name
    out.parent.rmdir()
    out.parent.touch()
    code, _, err = run_cli("resume", run, "--home", tmp_path / "home", "--no-prefect")
    advice = f"nacre resume {run} --out OUT --home {tmp_path / 'home'}"
    assert code == 1 and f"to go on, without a second charge: {advice}" in err
    with pytest.raises(OSError) as fault:
        nacre.resume(run, home=tmp_path / "home")
    assert fault.value.__notes__[-1].endswith(f"nacre.resume({run!r}, home={str(tmp_path / 'home')!r}, out=OUT)")
    words = [word.replace("OUT", str(tmp_path / "h2")) for word in advice.split()[1:]]
    assert run_cli(*words, "--no-prefect")[0] == 0 and (tmp_path / "h2" / "manifest.json").exists()


def test_an_unknown_run_and_a_missing_ledger(tmp_path):
    code, _, err = run_cli("resume", "no-such-run", "--home", tmp_path)
    assert code == 1 and "no run no-such-run" in err
    code, _, err = run_cli("ledger", "show", "--home", tmp_path)
    assert code == 1 and "no ledger" in err


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("stage", ["ingest", "sanitize", "sample", "publish"])
def test_a_full_disk_loses_nothing_and_is_not_charged_twice(tmp_path, monkeypatch, stage):
    write_clinic(tmp_path)
    place = {
        "ingest": "dpmodels.reading.ingest.pa.OSFile",
        "sanitize": "dpmodels.releases.release.pq.write_table",
        "sample": "tasks.stages.sample.write_parts",
        "publish": "tasks.stages.publish.copy_plain",
    }[stage]
    with monkeypatch.context() as patched:
        patched.setattr(place, full)
        code, _, err = run_cli(*synthesize_words(tmp_path))
    assert code == 1 and "disk is full" in err and "Traceback" not in err
    expected = {"ingest": [], "sanitize": ["reserve", "draw"]}.get(stage, ["reserve", "draw", "seal", "commit"])
    assert charges(tmp_path / "home") == expected
    run = next((tmp_path / "home" / "released").iterdir()).name
    costs = "epsilon=1.0, delta=1e-05" if expected else "nothing"
    assert f"run {run} was charged {costs}" in err and f"to go on, without a second charge: nacre resume {run}" in err
    assert run_cli("resume", run, "--home", tmp_path / "home", "--no-prefect")[0] == 0
    assert charges(tmp_path / "home").count("reserve") == charges(tmp_path / "home").count("commit") == 1
    assert (tmp_path / "out" / "manifest.json").exists()
