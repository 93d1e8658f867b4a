"""The sensitive zone lies where others cannot reach it, or the operator wrote down why it does not."""

from pathlib import Path

import pytest

from dpmodels.errors import ArtifactError
from tasks.run import zone as place
from tasks.run.zone import ACCEPTED, check_place, file_system
from tests.kit.support import run_cli, synthesize_words, write_clinic

TABLE = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
40 22 0:50 / /srv rw - xfs /dev/sdb rw
41 40 0:51 / {mounted} rw,relatime shared:5 - {kind} server:/export rw
42 22 0:52 / /mnt rw -
"""


@pytest.fixture
def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return what makes a folder lie on a file system of a kind."""

    def mount(kind: str, folder: Path) -> Path:
        folder.mkdir(parents=True)
        table = tmp_path / "mounts"
        table.write_text(TABLE.format(mounted=str(folder.resolve()).replace(" ", "\\040"), kind=kind))
        monkeypatch.setattr(place, "MOUNTS", table)
        return folder

    return mount


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "ceph", "lustre"])
def test_a_zone_on_a_network_is_refused_until_somebody_says_why(tmp_path: Path, on, kind: str) -> None:
    home = on(kind, tmp_path / "a share") / "home"
    with pytest.raises(ArtifactError, match=f"lies on a network .{kind}."):
        check_place(home)
    home.mkdir(mode=0o700)
    (home / ACCEPTED).write_text("\n")
    with pytest.raises(ArtifactError, match="write the reason into"):
        check_place(home)
    (home / ACCEPTED).write_text("One server, for us alone; agreed with the officer on 2026-11-22.")
    check_place(home)


@pytest.mark.parametrize("kind", ["ext4", "overlay", "tmpfs", "9p", "fuse.fuseblk"])
def test_a_zone_on_a_disk_of_this_machine_is_taken(tmp_path: Path, on, kind: str) -> None:
    check_place(on(kind, tmp_path / "disk") / "home")
    assert file_system(tmp_path / "disk" / "home") == kind and file_system(Path("/srv/x")) == "xfs"
    assert file_system(Path("/srvx")) == "ext4"


def test_a_zone_that_everybody_can_open_or_replace_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "outer" / "home"
    (home / "sensitive").mkdir(mode=0o700, parents=True)
    check_place(home)
    (home / "sensitive").chmod(0o755)
    with pytest.raises(ArtifactError, match="chmod 700 it"):
        check_place(home)
    (home / "sensitive").chmod(0o750)  # a group is what an operator means by it
    check_place(home)
    (tmp_path / "outer").chmod(0o777)
    with pytest.raises(ArtifactError, match=r"can write .*outer, and so replace"):
        check_place(home)
    (tmp_path / "outer").chmod(0o1777)  # as /tmp is
    check_place(home)


def test_a_run_is_not_started_where_others_can_read(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    (tmp_path / "home" / "sensitive").mkdir(parents=True)
    (tmp_path / "home" / "sensitive").chmod(0o755)
    code, _, err = run_cli(*synthesize_words(tmp_path))
    assert code == 1 and "open to everybody" in err and not (tmp_path / "home" / "control").exists()


def test_where_linux_says_nothing_nothing_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(place, "MOUNTS", tmp_path / "nothing")
    assert file_system(Path("/")) == ""
