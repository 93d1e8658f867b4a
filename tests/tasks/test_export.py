"""The synthetic table elsewhere: whole or not at all, in folders if asked, and read again as the same rows."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from dpmodels.errors import NacreError
from dpmodels.schema.encode import Codec
from dpmodels.schema.lint import load_schema
from dpmodels.schema.load import load_parts
from tasks.export import export
from tests.hand_off.make_golden import GOLDEN
from tests.support import run_cli

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


def fail_late(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Have writing fail after all files were written, as on a disk that is full."""
    write = ds.write_dataset

    def late(*args: object, **kwargs: object) -> None:
        write(*args, **kwargs)
        raise error

    monkeypatch.setattr("pyarrow.dataset.write_dataset", late)


def test_a_folder_is_whole_or_absent(tmp_path, monkeypatch):
    fail_late(monkeypatch, OSError("No space left"))
    with pytest.raises(NacreError, match="cannot be written"):
        export(HAND_OFF, str(tmp_path / "out"), ["ward"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("to", "by", "sentence"),
    [
        ("full", (), "full"),
        ("out", ("age",), "by=age must be a column that lists its values"),
        ("out", ("none",), "by=none must"),
        ("https://host/out", (), "be a folder, or a URI that can be written"),
        ("s3://me:secret@host/out", (), "hold no user"),
        ("ftp://host/out", (), "a URI of s3"),
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
    with pytest.raises(NacreError, match="is not exported"):
        export(tmp_path / "other", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def names(system: pafs.FileSystem, path: str) -> list[str]:
    found = system.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True))
    return [info.path for info in found if info.type == pafs.FileType.File]


def test_an_object_store_is_told_last_that_the_table_is_whole(store):
    place, system, bucket = store
    export(HAND_OFF, place.format("visits"), ["ward"])
    assert read(place.format("visits")) == ROWS and f"{bucket}/visits/_SUCCESS" in names(system, bucket)
    with pytest.raises(NacreError, match="must be empty"):
        export(HAND_OFF, place.format("visits"))


@pytest.mark.parametrize("error", [OSError("reset"), KeyboardInterrupt()])
def test_an_object_store_keeps_nothing_of_what_failed(store, monkeypatch, error):
    place, system, bucket = store
    fail_late(monkeypatch, error)
    with pytest.raises((NacreError, KeyboardInterrupt)):
        export(HAND_OFF, place.format("visits"), ["ward"])
    assert names(system, bucket) == []


def test_a_bucket_that_is_not_there_is_refused(store):
    with pytest.raises(NacreError, match="cannot be written"):
        export(HAND_OFF, store[0].replace(store[2], "absent").format("visits"))


def test_the_table_of_the_golden_hand_off_fits_its_schema():
    assert len(Codec(SCHEMA).encode(MADE)) == MADE.num_rows
