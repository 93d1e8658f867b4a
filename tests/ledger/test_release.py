"""One charge, one artifact: through replays, kills at every step, a full disk and a changed file."""

import errno
import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmodels import artifact
from dpmodels.errors import ArtifactError, BudgetExhausted, ChargeState, DataError, PathTaken
from dpmodels.ledger.ledger import Charge, Ledger
from tests.kit.errors import refused

pytestmark = pytest.mark.processes


class Places:
    """Where an artifact is staged and released, and a draw that counts and is fresh each time."""

    def __init__(self, home: Path) -> None:
        self.staged = home / "sensitive" / "run-1" / "embedding.parquet"
        self.released = home / "released" / "run-1" / "embedding.parquet"
        self.draws: list[bytes] = []

    def draw(self, path: Path, key: str) -> None:
        self.draws.append(os.urandom(32) + key.encode())
        path.write_bytes(self.draws[-1])

    def release(self, ledger: Ledger, charge: Charge, draw: Callable[[Path, str], None] | None = None) -> Path:
        return ledger.release(charge, staged=self.staged, released=self.released, draw=draw or self.draw)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def kinds(ledger: Ledger, key: str) -> list[str]:
    return [entry.kind for entry in ledger.entries(key=key)]


def test_a_release_is_reserved_drawn_sealed_and_committed(ledger, charge, places) -> None:
    wanted = charge()
    assert places.release(ledger, wanted) == places.released
    assert places.released.read_bytes() == places.draws[0] and places.draws[0].endswith(wanted.key.encode())
    assert kinds(ledger, wanted.key) == ["reserve", "draw", "seal", "commit"]
    sealed = ledger.find(wanted.key).artifact_hash
    assert sealed == hashlib.sha256(places.draws[0]).hexdigest()
    assert not places.staged.exists()
    assert places.staged.parent.stat().st_mode & 0o077 == 0
    assert ledger.verify({wanted.key: places.released}) == []


@pytest.mark.parametrize("full", [False, True])
def test_a_release_is_copied_where_the_zones_are_two_mounts(ledger, charge, places, full, monkeypatch) -> None:
    rename, copy, wanted = os.replace, artifact.shutil.copyfileobj, charge()

    def across(source, target, **folders):  # as rename(2) does between the volumes of a container
        if "dst_dir_fd" in folders and "src_dir_fd" not in folders:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(source, target, **folders)

    def fill(source, target):
        copy(source, target)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", across)
    if full:
        with monkeypatch.context() as patched, pytest.raises(OSError, match="space"):
            patched.setattr(artifact.shutil, "copyfileobj", fill)
            places.release(ledger, wanted)
        assert list(places.released.parent.iterdir()) == [] and places.staged.exists()
    assert places.release(ledger, wanted).read_bytes() == places.draws[0]
    assert len(places.draws) == 1 and kinds(ledger, wanted.key) == ["reserve", "draw", "seal", "commit"]
    assert not places.staged.exists() and list(places.released.parent.iterdir()) == [places.released]


def test_a_replay_draws_nothing_and_charges_nothing(ledger, charge, places) -> None:
    places.release(ledger, charge())
    before = ledger.entries()
    assert places.release(ledger, charge()) == places.released
    assert len(places.draws) == 1 and ledger.entries() == before


def test_an_exhausted_cap_refuses_before_any_draw(ledger, charge, places) -> None:
    ledger.reserve(charge("run-0", epsilon=0.9))
    with pytest.raises(BudgetExhausted, match=r"requested epsilon=0\.5, remaining epsilon=0\.\d+ of cap=1"):
        places.release(ledger, charge())
    assert places.draws == [] and kinds(ledger, charge().key) == []
    assert not places.staged.exists() and not places.released.exists()


@pytest.mark.parametrize("damage", ["missing", "changed", "mostly holes", "larger than a release"])
def test_a_released_artifact_is_checked(ledger, charge, places, damage: str, monkeypatch) -> None:
    places.release(ledger, charge())
    if damage == "missing":
        places.released.unlink()
    elif damage == "changed":
        places.released.write_bytes(b"something else")
    elif damage == "mostly holes":  # hashing it would take hours
        os.truncate(places.released, 2**26)
    else:
        monkeypatch.setattr(artifact, "LARGEST_RELEASE", places.released.stat().st_size - 1)
    with pytest.raises(ArtifactError, match=damage):
        places.release(ledger, charge())
    assert len(places.draws) == 1
    assert damage in ledger.verify({charge().key: places.released})[0]


@pytest.mark.parametrize("place", ["staged", "released"])
def test_a_taken_place_costs_nothing(ledger, charge, places, place: str) -> None:
    taken: Path = getattr(places, place)
    taken.parent.mkdir(mode=0o700, parents=True)
    taken.write_bytes(b"someone else's")
    with refused(PathTaken, path=taken):
        places.release(ledger, charge())
    assert taken.read_bytes() == b"someone else's"
    assert places.draws == [] and kinds(ledger, charge().key) == []


@pytest.mark.parametrize("is_full", [False, True])
def test_a_link_at_the_released_folder_costs_nothing(ledger, charge, places, tmp_path: Path, is_full: bool) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    if is_full:
        (elsewhere / "other").touch()
    before = list(elsewhere.iterdir())
    places.released.parent.parent.mkdir(parents=True, exist_ok=True)
    places.released.parent.symlink_to(elsewhere)
    with pytest.raises(ArtifactError, match="no folder"):
        places.release(ledger, charge())
    assert places.draws == [] and kinds(ledger, charge().key) == [] and list(elsewhere.iterdir()) == before


def test_a_link_that_comes_after_the_charge_is_not_followed(ledger, charge, places, tmp_path: Path) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()

    def swap(path: Path, key: str) -> None:
        places.draw(path, key)
        places.released.parent.rmdir()
        places.released.parent.symlink_to(elsewhere)

    with pytest.raises(ArtifactError, match="no folder"):
        places.release(ledger, charge(), swap)
    assert list(elsewhere.iterdir()) == [] and kinds(ledger, charge().key)[-1] == "seal"
    places.released.parent.unlink()
    assert places.release(ledger, charge()).read_bytes() == places.draws[0] and len(places.draws) == 1


def test_a_staging_folder_open_to_others_is_refused(ledger, charge, places) -> None:
    places.staged.parent.mkdir(parents=True)
    places.staged.parent.chmod(0o755)
    with pytest.raises(ArtifactError, match="closed to others"):
        places.release(ledger, charge())
    assert kinds(ledger, charge().key) == []


def test_a_voided_charge_is_not_released(ledger, charge, places) -> None:
    ledger.void(ledger.reserve(charge()).key, "a wrong plan")
    with refused(ChargeState, charge=charge().key, state="voided"):
        places.release(ledger, charge())
    assert places.draws == []


def full_disk(path: Path, key: str) -> None:
    path.write_bytes(b"half of an artif")
    raise OSError(errno.ENOSPC, "No space left on device")


def wordless(path: Path, key: str) -> None:
    """Write nothing."""


def bad_data(path: Path, key: str) -> None:
    path.write_bytes(b"half of an artif")
    raise DataError("age", "must be a number")


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (full_disk, ArtifactError, "disk is full.*free space"),
        (wordless, ArtifactError, "not written"),
        (bad_data, DataError, "age"),
    ],
)
def test_a_draw_that_fails_is_repeated_under_its_charge(ledger, charge, places, draw, error, message: str) -> None:
    with pytest.raises(error, match=message):
        places.release(ledger, charge(), draw)
    assert ledger.find(charge().key).state == "drawing"
    assert [path.name for path in places.staged.parent.iterdir()] == [".lock-embedding.parquet"]
    places.release(ledger, charge())
    assert kinds(ledger, charge().key) == ["reserve", "draw", "draw", "seal", "commit"]
    assert ledger.balance("clinic").charges == 1


def test_two_at_once_make_one_artifact(ledger, charge, places) -> None:
    def slow(path: Path, key: str) -> None:
        started.set()
        other.join(0.3)  # the other one must wait, however long this takes
        places.draw(path, key)

    started = threading.Event()
    results: list[Path] = []
    other = threading.Thread(target=lambda: started.wait(10) and results.append(places.release(ledger, charge())))
    other.start()
    results.append(places.release(ledger, charge(), slow))
    other.join(30)
    assert results == [places.released] * 2 and len(places.draws) == 1
    assert kinds(ledger, charge().key) == ["reserve", "draw", "seal", "commit"]


def test_a_sealed_artifact_that_was_changed_is_not_released(ledger, charge, places, monkeypatch) -> None:
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(artifact, "publish", interrupt)
        places.release(ledger, charge())
    assert ledger.find(charge().key).state == "sealed"
    places.staged.write_bytes(b"another draw")
    with pytest.raises(ArtifactError, match="changed"):
        places.release(ledger, charge())
    assert not places.released.exists()


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


KILLED = """
import os, signal, sys
from pathlib import Path
from dpmodels import artifact
from dpmodels.ledger.ledger import Charge, Ledger

step, ledger_path, charge, staged, released = sys.argv[1:]
when, where = step.split(" ", 1)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def patch(owner, name):
    true = getattr(owner, name)
    def patched(*args, **kwargs):
        if when == "before":
            die()
        result = true(*args, **kwargs)
        die()
    setattr(owner, name, patched)

def draw(path, key):
    data = os.urandom(1 << 16)
    path.write_bytes(data[:1000])
    if where == "half a draw":
        die()
    path.write_bytes(data)

if where == "the rename into the zone":
    true_replace = os.replace
    def replace(source, target):
        if str(target) == staged and when == "before":
            die()
        true_replace(source, target)
        if str(target) == staged:
            die()
    os.replace = replace
elif where == "publish":
    patch(artifact, "publish")
elif where != "half a draw":
    patch(Ledger, where)
Ledger(ledger_path).release(
    Charge.model_validate_json(charge), staged=Path(staged), released=Path(released), draw=draw
)
"""

BOUNDARIES = {
    "before reserve": "new",
    "after reserve": "reserved",
    "after begin_draw": "drawing",
    "in half a draw": "drawing",
    "before the rename into the zone": "drawing",
    "after the rename into the zone": "drawing",
    "after seal": "sealed",
    "after publish": "sealed",
    "after commit": "committed",
}


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_killed_at_any_step_it_ends_with_one_charge_and_one_artifact(
    ledger, path: Path, charge, places, boundary: str
) -> None:
    wanted = charge()
    arguments = [boundary, str(path), wanted.model_dump_json(), str(places.staged), str(places.released)]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    held = ledger.find(wanted.key)
    assert (held.state if held else "new") == BOUNDARIES[boundary]
    if BOUNDARIES[boundary] != "committed" and boundary != "after publish":
        assert not places.released.exists()
    complete = [place.read_bytes() for place in (places.staged, places.released) if place.exists()]

    assert places.release(ledger, wanted) == places.released
    assert ledger.find(wanted.key).state == "committed"
    assert hashlib.sha256(places.released.read_bytes()).hexdigest() == ledger.find(wanted.key).artifact_hash
    assert places.draws == [] if complete else len(places.draws) == 1
    assert places.released.read_bytes() == (complete or places.draws)[0]
    assert [kinds(ledger, wanted.key).count(kind) for kind in ("reserve", "seal", "commit")] == [1, 1, 1]
    left = {item.name for item in places.staged.parent.iterdir() if not item.name.startswith(".part-")}  # swept later
    assert left == {".lock-embedding.parquet"}
    assert ledger.balance("clinic").charges == 1
    assert ledger.verify({wanted.key: places.released}) == []
