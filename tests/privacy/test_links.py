"""Links and changed files in the released zone: what is handed over is what was checked, and nothing else."""

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.artifact import sha256_of
from dpmodels.errors import ArtifactError, DataError, PathTaken
from dpmodels.files import copy_plain, list_plain, read_plain, sha256_plain, size_plain
from dpmodels.hand_off.verify import verify_hand_off
from flows.synthesize import carry_out, start
from tasks.run.receive import receive, sample_again
from tasks.run.store import Handle, Run
from tasks.stages.ingest import ingest
from tasks.stages.publish import publish
from tasks.stages.sample import sample
from tasks.stages.sanitize import sanitize
from tasks.stages.train import train
from tasks.stages.validate import validate
from tests.kit.configurations import config
from tests.kit.errors import refused
from tests.kit.support import charges, write_clinic


@pytest.fixture
def sampled(tmp_path: Path) -> Run:
    """A run up to its synthetic table: next come the stages that can read the data."""
    write_clinic(tmp_path)
    run = start(config(tmp_path, privacy={"target_epsilon": 1.0, "delta": 1e-5}))
    sample(run, train(run, sanitize(run, ingest(run))))
    return run


def secret(run: Run) -> Path:
    return next((run.sensitive / "encoded").glob("*.arrow"))


LINKS = {
    "a file beside the parts": lambda run: (run.released / "synthetic" / "index.arrow").symlink_to(secret(run)),
    "another part": lambda run: (run.released / "synthetic" / "part-00001.parquet").symlink_to(run.settings.data),
    "a part": lambda run: swap(run.released / "synthetic" / "part-00000.parquet", run.settings.data),
    "a hard link": lambda run: os.link(run.settings.data, run.released / "synthetic" / "part-00001.parquet"),
    "a folder of parts": lambda run: (run.released / "synthetic" / "part-00001.parquet").symlink_to(run.sensitive),
    "the folder": lambda run: swap(run.released / "synthetic", Path(run.settings.data).parent),
    "the generator": lambda run: swap(run.released / "generator.safetensors", run.settings.data),
    "the run's folder": lambda run: swap(run.released, shutil.copytree(run.released, run.home / "copy")),
    "a named pipe": lambda run: os.mkfifo(run.released / "synthetic" / "part-00001.parquet"),
}


def swap(path: Path, target: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(target)


@pytest.mark.parametrize("link", LINKS)
def test_a_link_in_the_released_zone_leads_nowhere(sampled, link):
    LINKS[link](sampled)
    with pytest.raises(ArtifactError):
        carry_out(sampled, prefect=False)
    assert not sampled.settings.out.exists()
    assert not list(sampled.settings.out.parent.glob(".part-out*"))


def test_a_link_in_the_place_of_the_runs_folder_is_refused_before_the_charge(tmp_path: Path):
    write_clinic(tmp_path)
    run = start(config(tmp_path, privacy={"target_epsilon": 1.0, "delta": 1e-5}))
    (tmp_path / "elsewhere").mkdir()
    swap(run.released, tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match="no folder"):
        carry_out(run, prefect=False)
    assert list((tmp_path / "elsewhere").iterdir()) == [] and charges(run.home) == []
    run.released.unlink()
    carry_out(run, prefect=False)


def test_what_comes_after_the_check_is_not_handed_over(sampled):
    """The table is swapped for the raw data between the gate and the copy."""
    release, synthetic = sampled.finished("sanitize"), sampled.finished("sample")
    report = validate(sampled, release, synthetic)
    checked = (sampled.released / "synthetic" / "part-00000.parquet").read_bytes()
    swap(sampled.released / "synthetic" / "part-00000.parquet", sampled.settings.data)
    (sampled.released / "report").mkdir()
    (sampled.released / "report" / "notes.bin").symlink_to(sampled.settings.data)
    publish(sampled, release, synthetic, report)
    out = sampled.settings.out
    assert (out / "synthetic" / "part-00000.parquet").read_bytes() == checked
    assert not list(out.rglob("notes.bin")) and verify_hand_off(out).faults == []


def test_a_table_that_was_changed_after_its_check_is_noticed_where_the_copy_is_gone(sampled):
    release, synthetic = sampled.finished("sanitize"), sampled.finished("sample")
    report = validate(sampled, release, synthetic)
    shutil.rmtree(sampled.control / "received")
    part = sampled.released / "synthetic" / "part-00000.parquet"
    table = pq.read_table(part)
    part.unlink()
    pq.write_table(table.slice(0, 3), part)
    with pytest.raises(ArtifactError, match="changed after it was checked"):
        publish(sampled, release, synthetic, report)


def test_a_record_cannot_name_another_file(sampled):
    """A forged record of the sampling used to lead anywhere below the home, the encoded table included."""
    record = sampled.released / "stages" / "sample.json"
    forged = {"path": f"sensitive/{sampled.name}/encoded", "sha256": sampled.finished("sample").sha256}
    record.write_text(json.dumps(forged))
    assert sampled.finished("sample").path == sampled.released / "synthetic"
    carry_out(sampled, prefect=False)
    assert [path.name for path in (sampled.settings.out / "synthetic").iterdir()] == ["part-00000.parquet"]


def test_a_release_that_was_swapped_is_not_read(sampled):
    swap(sampled.released / "release.parquet", sampled.settings.data)
    with pytest.raises(ArtifactError):
        sampled.read("sanitize")
    with pytest.raises(ArtifactError):
        sample_again(sampled, "again", sampled.home / "more", None, 1)
    assert not (sampled.home / "released" / "again" / "release.parquet").exists()


def test_what_is_written_into_the_released_zone_follows_no_link_either(tmp_path):
    write_clinic(tmp_path)
    run = start(config(tmp_path))
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    (run.released / ".part-generator.safetensors").symlink_to(victim)
    (run.released / "stages" / ".part-train.json").symlink_to(victim)
    train(run, sanitize(run, ingest(run)))
    assert victim.read_text() == "as it was"


def test_verify_refuses_links_and_files_that_nobody_hands_over(sampled):
    carry_out(sampled, prefect=False)
    out = sampled.settings.out
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "report").mkdir()
    shutil.copy(sampled.settings.data, out / "report" / "notes.bin")
    manifest["artifacts"]["report/notes.bin"] = sha256_of(out / "report" / "notes.bin")
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert "report/notes.bin is no file that nacre hands over" in verify_hand_off(out).faults
    shutil.rmtree(out / "report")
    del manifest["artifacts"]["report/notes.bin"]
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert verify_hand_off(out).faults == []
    moved = shutil.move(out / "synthetic" / "part-00000.parquet", out.parent / "part.parquet")
    (out / "synthetic" / "part-00000.parquet").symlink_to(moved)
    assert any("is a link" in fault for fault in verify_hand_off(out).faults)


def test_plain_files_are_read_and_copied_whole(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"x" * 3_000_000)
    assert read_plain(tmp_path, tmp_path / "a" / "b" / "c") == b"x" * 3_000_000
    assert list_plain(tmp_path, tmp_path / "a") == ["b"]
    assert copy_plain(tmp_path, tmp_path / "a" / "b" / "c", tmp_path / "d") == sha256_of(tmp_path / "d")
    with refused(PathTaken, path=tmp_path / "d"):
        copy_plain(tmp_path, tmp_path / "a" / "b" / "c", tmp_path / "d")
    for strange in (tmp_path / "a", tmp_path / "a" / "nothing"):
        with pytest.raises(ArtifactError):
            read_plain(tmp_path, strange)


def test_the_copy_is_made_once_and_where_nobody_else_writes(sampled):
    received = receive(sampled)
    assert received.folder.parent == sampled.control
    shutil.rmtree(sampled.released / "synthetic")
    assert receive(sampled) == received and Handle(path=received.generator).path.is_file()


def test_a_table_that_breaks_its_gate_is_forgotten_and_another_one_is_received(sampled):
    part = sampled.released / "synthetic" / "part-00000.parquet"
    good, rows = part.read_bytes(), pq.read_table(part)
    pq.write_table(rows.set_column(1, "age", pa.array([-5] * len(rows))), part)
    sampled.finish("sample")
    with refused(DataError, "breaks its schema", column=""):
        carry_out(sampled, prefect=False)
    part.write_bytes(good)
    sampled.finish("sample")
    carry_out(sampled, prefect=False)
    assert verify_hand_off(sampled.settings.out).faults == []


def test_a_dangling_link_in_the_place_of_a_release_does_not_pass_for_one(tmp_path):
    write_clinic(tmp_path)
    run = start(config(tmp_path))
    (run.released / "release.parquet").symlink_to("../../sensitive/nothing")
    with refused(PathTaken, "nothing was charged", path=run.released / "release.parquet"):
        carry_out(run, prefect=False)
    (run.released / "release.parquet").unlink()
    carry_out(run, prefect=False)


def test_a_file_that_is_mostly_holes_is_not_read(tmp_path):
    (tmp_path / "large").write_bytes(b"PAR1")
    os.truncate(tmp_path / "large", 2**36)  # takes no room on the disk, and hours to hash
    for read in (lambda path: sha256_plain(tmp_path, path), lambda path: size_plain(tmp_path, path)):
        with pytest.raises(ArtifactError, match="mostly holes"):
            read(tmp_path / "large")
    (tmp_path / "whole").write_bytes(bytes(2**25))  # zeros that are written are no holes
    assert size_plain(tmp_path, tmp_path / "whole") == 2**25


def test_a_table_for_which_there_is_no_room_is_not_copied(sampled, monkeypatch):
    monkeypatch.setattr("tasks.run.receive.LEAST_FREE", 2**60)
    with pytest.raises(ArtifactError, match="no room"):
        receive(sampled)
    assert not (sampled.control / "received").exists()
