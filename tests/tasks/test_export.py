"""The synthetic table elsewhere: whole or not at all, in folders if asked, and read again as the same rows."""

import json
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec
from dpmodels.errors import ArtifactError, DataError, InvalidArgument, NacreError, Unsuitable
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.reading.load import load_parts
from tasks.run.table_file import ENDINGS
from tasks.stages.export import export
from tests.hand_off.make_golden import GOLDEN
from tests.kit.errors import refused
from tests.kit.support import run_cli, write_clinic

HAND_OFF = GOLDEN / "FORMAT-5" / "card"
MADE = pq.read_table(HAND_OFF / "synthetic")
SCHEMA = load_schema(HAND_OFF / "schema.yaml")


def read(place: str | Path) -> list[dict[str, object]]:
    """Read a table as a run would, with the values of its folders, in one order."""
    read = [pa.Table.from_batches([batch]) for part in load_parts(place, SCHEMA, 64) for batch in part.reveal()]
    whole = pa.concat_tables([table.select(SCHEMA.columns) for table in read], promote_options="permissive")
    return sorted(whole.cast(MADE.schema).to_pylist(), key=str)


ROWS = sorted(MADE.to_pylist(), key=str)


@pytest.mark.parametrize("by", [(), ("ward",), ("ward", "smoker")])
def test_a_folder_holds_the_rows_of_the_hand_off(tmp_path, by):
    code, out, err = run_cli("export", HAND_OFF, tmp_path / "out", *(word for name in by for word in ("--by", name)))
    assert code == 0 and str(tmp_path / "out") in out, err
    assert read(tmp_path / "out") == ROWS and [path.name for path in tmp_path.iterdir()] == ["out"]
    folders = [path.name for path in (tmp_path / "out").iterdir()]
    assert all(name.startswith("ward=" if by else "part-") for name in folders)


@pytest.mark.parametrize("place", ["{}/rows.csv", "{}/synthetic/more", "delta:{}/table", "{}/../card/rows.parquet"])
def test_nothing_is_written_into_a_hand_off(tmp_path: Path, place: str) -> None:
    """Any further file makes it a faulty one, which was signed as it was."""
    folder = Path(shutil.copytree(HAND_OFF, tmp_path / "card"))
    with refused(InvalidArgument, name="to"):
        export(folder, place.format(folder))
    assert verify_hand_off(folder).faults == []


def fail_late(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Have writing fail after all files were written, as on a disk that is full."""
    write = ds.write_dataset

    def late(*args: object, **kwargs: object) -> None:
        write(*args, **kwargs)
        raise error

    monkeypatch.setattr("pyarrow.dataset.write_dataset", late)


def test_a_folder_is_whole_or_absent(tmp_path, monkeypatch):
    fail_late(monkeypatch, OSError("No space left"))
    with refused(DataError, "cannot be written", column=""):
        export(HAND_OFF, str(tmp_path / "out"), ["ward"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("to", "by", "sentence"),
    [
        ("full", (), "full"),
        ("out", ("age",), "by=age must be a column that lists its values"),
        ("out", ("none",), "by=none must"),
        ("https://host/out", (), "or a URI of .* that can be written"),
        ("s3://me:secret@host/out", (), "hold no user"),
        ("ftp://host/out", (), "to=ftp://… must end in .*, a folder, .* or a URI of s3"),
        ("postgresql://me:secret@host/out", (), "to=postgresql://… must end in .*, or a URI of s3"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, monkeypatch, to, by, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("kept")
    with pytest.raises(NacreError, match=sentence) as caught:
        export(HAND_OFF, to, by)
    assert "secret" not in str(caught.value) and [path.name for path in tmp_path.iterdir()] == ["full"]


def test_a_hand_off_that_was_changed_is_not_exported(tmp_path):
    shutil.copytree(HAND_OFF, tmp_path / "other")
    pq.write_table(MADE.slice(1), next((tmp_path / "other" / "synthetic").iterdir()))
    with pytest.raises(ArtifactError, match="is not exported"):
        export(tmp_path / "other", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("made", "about"),
    [("FORMAT-5/card-embedded", "documents"), ("FORMAT-7/laid-out-federation", "a federation")],
)
def test_a_hand_off_of_no_table_is_copied_as_it_is(tmp_path, made, about):
    sentence = (
        rf"describes {about}; only tables are exported or compared: copy the files of {GOLDEN / made} as they are"
    )
    with pytest.raises(Unsuitable, match=sentence):
        export(GOLDEN / made, str(tmp_path / "out.csv"))
    words = (GOLDEN / made / "schema.yaml", "only tables are exported or compared: the report of a hand-off judges it")
    code, _, err = run_cli("compare", tmp_path, "--real", tmp_path, "--schema", words[0])
    assert code == 1 and err == f"error: {words[0]} describes {about}; {words[1]}\n"
    code, _, err = run_cli("validate", GOLDEN / made)
    holds = "embeddings that were made one by one" if about == "documents" else "the classifier of a federation"
    assert code == 1 and err.startswith(f"error: {GOLDEN / made} holds {holds}, and no table; `nacre verify ")


def names(system: pafs.FileSystem, path: str) -> list[str]:
    found = system.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True))
    return [info.path for info in found if info.type == pafs.FileType.File]


def test_an_object_store_is_told_last_that_the_table_is_whole(store):
    place, system, bucket = store
    export(HAND_OFF, place.format("visits"), ["ward"])
    assert read(place.format("visits")) == ROWS and f"{bucket}/visits/_SUCCESS" in names(system, bucket)
    with refused(InvalidArgument, "be empty", name="to"):
        export(HAND_OFF, place.format("visits"))


@pytest.mark.parametrize("error", [OSError("reset"), KeyboardInterrupt()])
def test_an_object_store_keeps_nothing_of_what_failed(store, monkeypatch, error):
    place, system, bucket = store
    fail_late(monkeypatch, error)
    with pytest.raises((NacreError, KeyboardInterrupt)):
        export(HAND_OFF, place.format("visits"), ["ward"])
    assert names(system, bucket) == []


def test_a_bucket_that_is_not_there_is_refused(store):
    with refused(DataError, "cannot be written", column=""):
        export(HAND_OFF, store[0].replace(store[2], "absent").format("visits"))


def test_the_table_of_the_golden_hand_off_fits_its_schema():
    assert len(Codec(SCHEMA).encode(MADE)) == MADE.num_rows


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_is_of_the_format_that_its_ending_says(tmp_path, ending):
    target = tmp_path / f"out{ending}"
    assert run_cli("export", HAND_OFF, target)[0] == 0 and target.is_file()
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    lines = ending == ".jsonl"
    assert (sorted(map(json.loads, target.read_text().splitlines()), key=str) if lines else read(target)) == ROWS


@pytest.mark.parametrize(
    ("target", "options"), [("out.orc", ()), ("out", ("--by", "ward")), ("out.csv", ("--by", "ward"))]
)
def test_an_ending_that_is_no_format_is_refused_with_those_that_are(tmp_path, target, options):
    code, _, err = run_cli("export", HAND_OFF, tmp_path / target, *options)
    assert (code == 0) == (target == "out"), err
    if code:
        if not options:
            kinds = *ENDINGS, ".xlsx", ".duckdb", "delta:FOLDER", "iceberg:", "a folder", "s3, gs", "hdfs"
            assert [kind for kind in kinds if kind not in err] == [] and "https" not in err and err.count("\n") == 1
        assert ".parquet, .csv, .arrow" in err or "without" in err
        assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_never_written_over(tmp_path):
    (tmp_path / "out.csv").write_text("mine")
    code, _, err = run_cli("export", HAND_OFF, tmp_path / "out.csv")
    assert code == 1 and "out.csv" in err and (tmp_path / "out.csv").read_text() == "mine"


def test_a_hand_off_may_hold_its_table_in_another_format_too_and_verify_checks_it(tmp_path):
    data, schema, config = write_clinic(tmp_path)
    words = ("--schema", schema, "--config", config, "--epsilon", 1, "--delta", 1e-5, "--rows", 40, "--no-prefect")
    place = ("--home", tmp_path / "home", "--out", tmp_path / "out", "--no-internal-report")
    assert run_cli("synthesize", data, *words, *place, "--format", "csv")[0] == 0
    file = tmp_path / "out" / "synthetic.csv"
    assert read(file) == sorted(pq.read_table(tmp_path / "out" / "synthetic").to_pylist(), key=str)
    assert verify_hand_off(tmp_path / "out").faults == []
    settings = next((tmp_path / "home" / "control").glob("*/settings.json"))
    kept, run = settings.read_bytes(), settings.parent.name
    for more in ((), ("--refit",)):
        home = ("--home", tmp_path / "home", "--no-prefect")
        code, _, err = run_cli("resume", run, *home, "--out", "s3://bucket/out", *more)
        assert code == 1 and len(err.splitlines()) == 1 and "be a folder" in err and "--format csv" in err, err
    assert settings.read_bytes() == kept
    file.write_text(file.read_text().replace("north", "south"))
    assert verify_hand_off(tmp_path / "out").faults == ["synthetic.csv was changed"]


def test_days_that_the_raw_table_holds_as_moments_are_written_as_days(tmp_path: Path) -> None:
    """A schema keeps the raw type; text alone shows that a moment is a midnight."""
    moments = pa.array([datetime(2019, 12, day % 28 + 1, day % 24) for day in range(60)], pa.timestamp("us"))
    left = pc.add(pc.floor_temporal(moments, unit="day"), pa.scalar(timedelta(days=3))).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"hired": moments, "left": left, "seen": moments}), tmp_path / "staff.parquet")
    (schema := tmp_path / "staff.yaml").write_text(
        "name: staff\nunit: record\ncolumns:\n"
        "  hired: {type: datetime, min: 2019-01-01, max: 2019-12-31, resolution: day, dtype: 'timestamp[us]'}\n"
        "  left: {type: derived, formula: 'add_days(hired, 3)'}\n"
        "  seen: {type: datetime, min: 2019-01-01, max: 2019-12-31, resolution: hour, dtype: 'timestamp[us]'}\n"
    )
    (config := tmp_path / "config.yaml").write_text("model: {method: moments, training: {components: 2, steps: 3}}\n")
    home, out = ("--home", tmp_path / "home"), tmp_path / "out"
    words = ("--schema", schema, "--config", config, "--epsilon", 1, "--delta", 1e-5, "--rows", 9, "--no-prefect")
    words += ("--format", "csv", "--no-internal-report", "--out", out)
    assert run_cli("synthesize", tmp_path / "staff.parquet", *words, *home)[0] == 0
    run = json.loads((out / "manifest.json").read_text())["run"]
    assert run_cli("export", out, tmp_path / "a.csv")[0] == run_cli("export", out, tmp_path / "b.arrow")[0] == 0
    assert run_cli("export", out, tmp_path / "c.csv", "--text", "{decimal: ',', date_format: '%d.%m.%Y'}")[0] == 0
    assert run_cli("sample", run, "--rows", 9, "--out", tmp_path / "d.csv", *home)[0] == 0
    for file, day in (
        (out / "synthetic.csv", r"2019-\d\d-\d\d"),
        (tmp_path / "a.csv", r"2019-\d\d-\d\d"),
        (tmp_path / "c.csv", r"\d\d\.\d\d\.2019"),
        (tmp_path / "d.csv", r"2019-\d\d-\d\d"),
    ):
        _, *lines = file.read_text().splitlines()
        days = rf"{day}[,;]{day.replace('2019', '20(19|20)')}"
        assert len(lines) == 9 and all(re.fullmatch(rf"{days}[,;]2019-\d\d-\d\d \d\d:00:00.*", one) for one in lines)
    assert run_cli("validate", tmp_path / "a.csv", "--schema", schema)[0] == 0
    with pa.ipc.open_file(tmp_path / "b.arrow") as file:
        assert file.schema.field("hired").type == pa.timestamp("us")


def test_a_format_that_cannot_be_written_is_refused_before_anything_is_charged(tmp_path):
    data, schema, config = write_clinic(tmp_path)
    words = ("--schema", schema, "--config", config, "--epsilon", 1, "--delta", 1e-5, "--home", tmp_path / "home")
    for out, name in ((tmp_path / "out", "xlsx"), ("s3://bucket/out", "csv")):
        code, _, err = run_cli("synthesize", data, *words, "--out", out, "--format", name, "--no-prefect")
        assert (
            code
            and "format" in err
            and ("object store" in err or "jsonl" in err)
            and not list((tmp_path / "home").glob("released/*/release.parquet"))
        ), err
