"""A hand-off in an object store: the same bytes as in a folder, whoever draws them, and a manifest last or not at all.

The store speaks S3 on loopback, and the workers are processes.
"""

import os
import re
import time
from functools import partial
from pathlib import Path

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.hand_off.manifest import read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from tasks.engine.cluster import open_cluster
from tasks.engine.engines import Threads
from tasks.run.bucket import Bucket, read_listing, write_listing
from tasks.run.store import Run
from tasks.stages.sample import FILE_ROWS, FileSampler, write_parts
from tests.kit.clusters import Processes, begun, kill_in_the_middle
from tests.kit.errors import refused
from tests.kit.mixtures import saved
from tests.kit.support import charges, run_cli, synthesize_words, write_clinic, write_key

PLACE = "a/visits"
pytestmark = [pytest.mark.timeout(900), pytest.mark.processes]


def names(system: pafs.FileSystem, path: str) -> set[str]:
    found = system.get_file_info(pafs.FileSelector(path, recursive=True, allow_not_found=True))
    return {info.path[len(path) + 1 :] for info in found if info.type == pafs.FileType.File}


def copied(system: pafs.FileSystem, path: str, target: Path) -> Path:
    """Copy a place of the store into a folder, as a recipient does."""
    for name in names(system, path):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(system.open_input_stream(f"{path}/{name}").read())
    return target


def put(system: pafs.FileSystem, path: str, content: bytes = b"{}") -> None:
    with system.open_output_stream(path) as sink:
        sink.write(content)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def runs_of(home: Path) -> list[Run]:
    """Return the runs of a home, the oldest first."""
    found = sorted((home / "control").glob("*/settings.json"), key=lambda path: path.stat().st_mtime)
    return [Run.find(home, path.parent.name) for path in found]


@pytest.mark.nightly
def test_workers_write_the_hand_off_that_a_folder_would_hold(tmp_path, store):
    place, system, bucket = store
    write_clinic(tmp_path)
    processes, here = Processes(tmp_path), tmp_path / "here"
    own = {"dask": processes.address, "rows": 3000, "signing-key": write_key(tmp_path / "key.pem")[0]}
    try:
        code, out, err = run_cli(*synthesize_words(tmp_path, out=place.format(PLACE), **own))
    finally:
        processes.stop()
    assert code == 0 and place.format(PLACE) in out, err
    (run,) = runs_of(tmp_path / "home")
    here.mkdir()
    write_parts(FileSampler(here, run.finished("train"), 0), 3000, Threads(1), lambda written: None)
    there = copied(system, f"{bucket}/{PLACE}", tmp_path / "there")
    assert names(system, f"{bucket}/{PLACE}") == {*read_manifest(there).artifacts, "manifest.json", "manifest.sig"}
    code, out, err = run_cli("verify", place.format(PLACE))
    assert code == 3 and f"{len(read_manifest(there).artifacts)} as the manifest has them" in out, err
    code, _, err = run_cli("disclose", run.name, "--out", tmp_path / "records", "--home", tmp_path / "home")
    assert code == 0 and place.format(PLACE) in (tmp_path / "records" / "croissant.json").read_text(), err
    put(system, f"{bucket}/{PLACE}/synthetic/part-00000.parquet")
    put(system, f"{bucket}/{PLACE}/b/more.txt")
    code, _, err = run_cli("verify", place.format(PLACE))
    assert code == 1 and "part-00000.parquet was changed" in err and "b/more.txt is not in the manifest" in err
    found = verify_hand_off(there)
    assert (
        not found.faults and found.signature.startswith("by a key") and bytes_of(there / "synthetic") == bytes_of(here)
    )
    assert bytes_of(run.place("sample")).keys() == {"parts.json"}  # no row of it lies on this machine


def slowly(draw: FileSampler, marks: Path, file: tuple[int, int]):
    (marks / f"{os.getpid()}-{file[0]}").touch()
    time.sleep(0.3)
    return draw(file)


@pytest.mark.nightly  # beside the same in a folder, in test_cluster.py
def test_a_worker_that_is_killed_leaves_the_same_objects(tmp_path, store):
    place, system, bucket = store
    marks, here = tmp_path / "marks", tmp_path / "here"
    marks.mkdir(), here.mkdir()
    rows, generator, there = 7 * FILE_ROWS - 1000, saved(tmp_path), Bucket(place.format(PLACE))
    processes = Processes(tmp_path)
    try:
        watcher = kill_in_the_middle(marks, processes.workers[0])
        with open_cluster(processes.address) as engine:
            draw = partial(slowly, FileSampler(tmp_path, generator, 3, "cpu", there), marks)
            parts = write_parts(draw, rows, engine, lambda written: None)
        watcher.join()
    finally:
        processes.stop()
    assert processes.workers[0].poll() == -9
    assert begun(marks, processes.workers[0]) & begun(marks, processes.workers[1])  # its part was drawn again
    write_parts(FileSampler(here, generator, 3), rows, Threads(2), lambda written: None)
    folder = copied(system, f"{bucket}/{PLACE}", tmp_path / "there")
    assert bytes_of(folder / "synthetic") == bytes_of(here) and len(bytes_of(here)) == 7 == len(parts)


@pytest.mark.parametrize("lies_there", ["manifest.json", "synthetic/part-00099.parquet", ".nacre-another", "b/c.txt"])
def test_a_place_where_something_lies_is_refused_before_anything_is_charged(tmp_path, store, lies_there):
    place, system, bucket = store
    write_clinic(tmp_path)
    put(system, f"{bucket}/{PLACE}/{lies_there}")
    code, _, err = run_cli(*synthesize_words(tmp_path, out=place.format(PLACE)))
    assert code == 1 and "be a place where nothing lies" in err and names(system, bucket) == {f"{PLACE}/{lies_there}"}
    assert not (tmp_path / "home" / "ledger.sqlite").exists() or charges(tmp_path / "home") == []


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("s3://absent/visits?{}", "check its name, and the credentials"),
        ("s3://{bucket}/visits?endpoint_override=127.0.0.1:9&scheme=http", "behind a question mark only region"),
        ("s3://me:secret@{bucket}/visits", "hold no user, password, key"),
        ("https://host/visits", "be a folder, or a URI that can be written"),
        ("ftp://host/visits", "be a path, a URI of s3"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_charged(tmp_path, store, out, sentence):
    place, _, bucket = store
    write_clinic(tmp_path)
    code, _, err = run_cli(*synthesize_words(tmp_path, out=out.format(place.partition("?")[2], bucket=bucket)))
    assert code == 1 and sentence in err and "secret" not in err and "Traceback" not in err
    assert not (tmp_path / "home" / "ledger.sqlite").exists() or charges(tmp_path / "home") == []


@pytest.mark.nightly
def test_a_worker_without_credentials_is_found_before_anything_is_charged(tmp_path, store):
    write_clinic(tmp_path)
    nobody = {"AWS_ENDPOINT_URL": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "none"}
    processes = Processes(tmp_path, **nobody, AWS_EC2_METADATA_DISABLED="true")
    try:
        code, _, err = run_cli(*synthesize_words(tmp_path, out=store[0].format(PLACE), dask=processes.address))
        log = (tmp_path / "log").read_text()  # a scheduler that is stopped first leaves its workers' tracebacks
    finally:
        processes.stop()
    assert code == 1 and "a worker of" in err and "cannot do its part, so nothing was drawn" in err
    assert charges(tmp_path / "home") == [] and names(store[1], store[2]) == set()
    assert "Traceback" not in log


def failing(self: Bucket, file: Path, name: str) -> str:
    """Fail as a store does that goes away when all parts are written, before the report."""
    if name.endswith("report.json"):
        raise ArtifactError(f"{self.place} cannot be read or written")
    return PUT(self, file, name)


PUT = Bucket.put


def test_what_fails_is_no_hand_off_and_is_gone_on_with(tmp_path, store, monkeypatch):
    place, system, bucket = store
    write_clinic(tmp_path)
    monkeypatch.setattr(Bucket, "put", failing)
    code, _, err = run_cli(*synthesize_words(tmp_path, out=place.format(PLACE)))
    assert code == 1 and "cannot be read or written" in err and charges(tmp_path / "home")[-1] == "commit"
    (run,) = runs_of(tmp_path / "home")
    assert f".nacre-{run.name}" in names(system, f"{bucket}/{PLACE}")
    with pytest.raises(ArtifactError):
        verify_hand_off(copied(system, f"{bucket}/{PLACE}", tmp_path / "early"))
    with refused(InvalidArgument, "where nothing lies", name="out"):
        Bucket(place.format(PLACE)).claim("other")
    monkeypatch.setattr(Bucket, "put", PUT)
    words = ["resume", run.name, "--home", tmp_path / "home", "--no-prefect"]
    put(system, f"{bucket}/{PLACE}/synthetic/part-00077.parquet")
    code, _, err = run_cli(*words)
    assert code == 1 and "holds what this run did not write" in err
    assert "manifest.json" not in names(system, f"{bucket}/{PLACE}")
    system.delete_file(f"{bucket}/{PLACE}/synthetic/part-00077.parquet")
    assert run_cli(*words)[0] == 0 and charges(tmp_path / "home").count("reserve") == 1
    assert not verify_hand_off(copied(system, f"{bucket}/{PLACE}", tmp_path / "late")).faults


def test_a_part_that_another_changed_is_not_handed_over(tmp_path, store, monkeypatch):
    place, system, bucket = store
    write_clinic(tmp_path)
    from tasks.stages import validate

    receive = validate.receive

    def changed(run: Run):
        put(system, f"{bucket}/{PLACE}/synthetic/part-00000.parquet", b"another")
        return receive(run)

    monkeypatch.setattr(validate, "receive", changed)
    code, _, err = run_cli(*synthesize_words(tmp_path, out=place.format(PLACE)))
    assert code == 1 and "was changed after it was written" in err
    assert "manifest.json" not in names(system, f"{bucket}/{PLACE}")


def test_a_run_goes_on_elsewhere_and_what_it_left_is_taken_away(tmp_path, store, monkeypatch):
    place, system, bucket = store
    write_clinic(tmp_path)
    monkeypatch.setattr(Bucket, "put", failing)
    assert run_cli(*synthesize_words(tmp_path, out=place.format(PLACE)))[0] == 1
    (run,) = runs_of(tmp_path / "home")
    home = ["--home", tmp_path / "home"]
    code, _, err = run_cli("resume", run.name, *home, "--no-prefect", "--out", tmp_path / "folder")
    assert code == 0, err
    assert not verify_hand_off(tmp_path / "folder").faults
    assert names(system, bucket) == set()  # of the first place nothing is left


def test_what_a_run_left_that_never_handed_over_is_taken_away_with_it(tmp_path, store, monkeypatch):
    place, system, bucket = store
    write_clinic(tmp_path)
    monkeypatch.setattr(Bucket, "put", failing)
    assert run_cli(*synthesize_words(tmp_path, out=place.format(PLACE)))[0] == 1
    (run,) = runs_of(tmp_path / "home")
    put(system, f"{bucket}/{PLACE}/kept.txt")
    assert run_cli("remove", run.name, "--home", tmp_path / "home", "--yes")[0] == 0
    assert names(system, bucket) == {f"{PLACE}/kept.txt"}


def test_of_two_runs_at_most_one_gets_a_place(store):
    place = Bucket(store[0].format(PLACE))
    place.claim("one")
    place.claim("one")
    with refused(InvalidArgument, "where nothing lies", name="out"):
        place.claim("two")
    place.abandon("two")
    assert place.names() == {".nacre-one"}
    place.abandon("one")
    assert place.names() == set()


@pytest.mark.parametrize("parts", [{}, {"../part-00000.parquet": "0" * 64}, {"part-00000.parquet": "x"}, ["a"]])
def test_a_listing_that_somebody_else_wrote_is_refused(tmp_path, parts):
    (tmp_path / "parts.json").write_text(str(parts).replace("'", '"'))
    with pytest.raises(ArtifactError, match="does not list the files of a table"):
        read_listing(tmp_path, "s3://made/visits")
    write_listing(tmp_path, {"part-00000.parquet": "0" * 64})
    assert read_listing(tmp_path, "s3://made/visits") == {"part-00000.parquet": "0" * 64}
    with pytest.raises(ArtifactError, match="no file of a run whose hand-off goes to a folder"):
        read_listing(tmp_path, "")


@pytest.mark.nightly  # beside the same in a folder, in tests/contract/test_helpers.py
def test_columns_that_are_not_handed_over_lie_in_no_object(tmp_path, store):
    place, system, bucket = store
    write_clinic(tmp_path)
    schema = tmp_path / "clinic.yaml"
    age = "{type: integer, min: 0, max: 12, computed: age // 10, keep: drop}"
    schema.write_text(re.sub(r"(?m)^(\s+)age:", rf"\1tens: {age}\n\1age:", schema.read_text(), count=1))
    code, _, err = run_cli(*synthesize_words(tmp_path, out=place.format(PLACE)))
    assert code == 0, err
    there = copied(system, f"{bucket}/{PLACE}", tmp_path / "there")
    columns = pq.read_table(there / "synthetic").column_names
    assert "age" in columns and "tens" not in columns and not verify_hand_off(there).faults
