"""Files that a crash, a full disk or time damaged: what can be made again is, and of the rest a sentence tells."""

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from dpmodels.artifact import aside, sweep
from tasks.run.store import Run
from tests.kit.support import charges, digest, run_cli, synthesize_words, write_clinic


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damage")
    write_clinic(folder, rows=60)
    assert run_cli(*synthesize_words(folder))[0] == 0
    return folder


def the_run(folder: Path) -> Run:
    (settings,) = (folder / "home" / "control").glob("*/settings.json")
    return Run(home=folder / "home", name=settings.parent.name)


def resume(folder: Path) -> tuple[int, str]:
    code, _, err = run_cli("resume", the_run(folder).name, "--home", folder / "home", "--no-prefect")
    return code, err


@pytest.mark.parametrize("stage", ["train", "sample", "validate"])
@pytest.mark.parametrize("damage", ["artifact", "record"])
def test_what_is_free_is_made_again_to_the_same_bytes(finished: Path, stage: str, damage: str) -> None:
    run, out = the_run(finished), finished / "out"
    before = {file.name: digest(file) for file in sorted((out / "synthetic").iterdir())}
    made = digest(run.place(stage))
    shutil.rmtree(out)
    if damage == "record":
        run._record(stage).write_bytes(b"")
    else:
        place = run.place(stage)
        file = place if place.is_file() else sorted(place.iterdir())[0]
        file.unlink()  # this process may have mapped it
        file.write_bytes(b"")
    assert resume(finished)[0] == 0
    assert {file.name: digest(file) for file in sorted((out / "synthetic").iterdir())} == before
    assert stage == "validate" or digest(run.place(stage)) == made
    assert run_cli("verify", out)[0] == 3
    assert charges(finished / "home") == ["reserve", "draw", "seal", "commit"]


@pytest.mark.parametrize("content", [b"", b'{"a": "\xff\xfe"}', b"[1]", b'{"train": 1}'])
def test_a_damaged_file_of_seconds_is_as_good_as_none(finished: Path, content: bytes) -> None:
    file = the_run(finished).sensitive / "seconds.json"
    file.write_bytes(content)
    assert run_cli("report", the_run(finished).name, "--home", finished / "home")[0] == 0
    assert resume(finished)[0] == 0


@pytest.mark.parametrize("name", ["plan.json", "settings.json", "received.json", "stages/sanitize.json"])
@pytest.mark.parametrize("content", [b"", b'{"a": "\xff\xfe"}', b"[" * 10_000])
def test_a_damaged_file_that_is_believed_is_named_in_a_sentence(finished: Path, name: str, content: bytes) -> None:
    run = the_run(finished)
    file, out = run.control / name, finished / "out"
    whole = file.read_bytes()
    shutil.move(out, finished / "kept")
    file.write_bytes(content)
    try:
        code, err = resume(finished)
        assert (code, "Traceback" in err) == (1, False)
        assert file.name in err and "damaged" in err
        for words in (["runs"], ["report", run.name], ["sample", run.name, "--rows", 5, "--out", finished / "more"]):
            assert "Traceback" not in run_cli(*words, "--home", finished / "home")[2]
            (finished / "more").unlink(missing_ok=True)
    finally:
        file.write_bytes(whole)
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(finished / "kept", out)


def leave(folder: Path) -> list[Path]:
    """Leave what processes left that died, of this version and of earlier ones."""
    run = the_run(folder)
    folders = [folder / f".part-{run.name}-0123abcd", folder / f".part-out-{run.name}", run.released / ".part-0123abcd"]
    folders += [run.sensitive / ".part-encoded-01", folder / "home" / "control" / ".part-0123abcd"]
    for one in folders:
        one.mkdir()
        (one / "half").write_bytes(b"half")
    files = [run.control / "report" / ".part-ab-report.html", run.released / "checkpoint.tmp"]
    for file in files:
        file.write_bytes(b"half")
    return [*folders, *files]


def test_what_dead_processes_left_of_a_run_is_swept_when_it_goes_on(finished: Path) -> None:
    others = [finished / ".part-another-0123abcd", finished / f".part-{the_run(finished).name}x-0123abcd"]
    for other in others:
        other.mkdir(exist_ok=True)
    left = leave(finished)
    assert resume(finished)[0] == 0
    assert [path for path in left if os.path.lexists(path)] == []
    assert all(other.exists() for other in others)


def test_what_a_live_process_writes_is_not_swept(tmp_path: Path) -> None:
    with aside(tmp_path / "table") as part:
        part.write_text("half")
        sweep(tmp_path.parent, tmp_path.name)
        assert part.read_text() == "half"
    assert list(tmp_path.iterdir()) == []


def test_no_sweep_follows_a_link(tmp_path: Path) -> None:
    (victim := tmp_path / "victim").mkdir()
    (victim / ".part-0").write_text("whole")
    (zone := tmp_path / "zone").mkdir()
    (zone / "run").mkdir()
    (zone / "run" / ".part-1").symlink_to(victim)
    (zone / "run" / "stages").symlink_to(victim)
    (zone / "linked").symlink_to(victim)
    sweep(zone, "run")
    sweep(zone, "linked")
    assert (victim / ".part-0").read_text() == "whole"
    assert not os.path.lexists(zone / "run" / ".part-1")


def test_a_part_that_is_swept_before_it_is_locked_is_begun_again(tmp_path: Path, monkeypatch) -> None:
    real, first = fcntl.flock, []

    def flock(descriptor: int, how: int) -> None:
        if not first:
            first.append(descriptor)
            (gone,) = tmp_path.glob(".part-*")
            gone.rmdir()
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with aside(tmp_path / "table") as part:
        part.write_text("whole")


def test_remove_takes_away_what_was_left_beside_the_hand_off(tmp_path: Path) -> None:
    write_clinic(tmp_path, rows=60)
    assert run_cli(*synthesize_words(tmp_path))[0] == 0
    left = leave(tmp_path)
    assert run_cli("remove", the_run(tmp_path).name, "--home", tmp_path / "home", "--yes")[0] == 0
    assert [path for path in left if os.path.lexists(path)] == []
    assert (tmp_path / "out" / "manifest.json").is_file()
    assert sorted(path.name for path in (tmp_path / "home").rglob(".part-*")) == []
