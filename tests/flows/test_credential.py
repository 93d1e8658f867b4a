"""Each start makes a string for its owner alone, and a file that others could know is not believed."""

import os
import stat
from pathlib import Path

import pytest

from dpmodels.errors import CredentialError
from flows.with_prefect.credential import credential, credential_file, renew_credential
from tests.kit.errors import refused


@pytest.fixture
def path(tmp_path: Path) -> Path:
    renew_credential(tmp_path / "home")
    return credential_file(tmp_path / "home")


def test_each_start_makes_another_and_its_owner_alone_can_read_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = os.umask(0)
    try:
        made = [renew_credential(home) for _ in range(3)]
    finally:
        os.umask(before)
    assert len(set(made)) == 3 and credential(home) == made[-1]
    assert made[-1].startswith("nacre:") and len(made[-1]) > 40
    path = credential_file(home)
    assert path == home / "prefect" / "credential" and list(path.parent.iterdir()) == [path]
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


def test_a_link_in_its_place_is_replaced_and_not_followed(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("elsewhere"))
    made = renew_credential(path.parents[1])
    assert credential(path.parents[1]) == made and not path.is_symlink()
    assert not path.with_name("elsewhere").exists()


def test_what_cannot_be_replaced_is_refused(path: Path) -> None:
    path.unlink()
    path.mkdir()
    with refused(CredentialError, path=path, fault="cannot be replaced"):
        renew_credential(path.parents[1])


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_reach_is_refused(path: Path, mode: int) -> None:
    path.chmod(mode)
    with refused(CredentialError, "remove it", path=path, fault="can be read by other users"):
        credential(path.parents[1])


@pytest.mark.parametrize("kind", ["link", "lost", "folder", "pipe"])
def test_what_is_no_plain_file_is_refused(path: Path, kind: str) -> None:
    path.rename(path.with_name("elsewhere"))
    {
        "link": lambda: path.symlink_to("elsewhere"),
        "lost": lambda: path.symlink_to("nothing"),
        "folder": lambda: path.mkdir(mode=0o700),
        "pipe": lambda: os.mkfifo(path, 0o600),
    }[kind]()
    with pytest.raises(CredentialError, match=r"is a link|is no plain file"):
        credential(path.parents[1])


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 40, b"a" * 600, b"two words of more than sixteen"])
def test_what_is_no_string_is_refused_and_not_repeated(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(CredentialError) as caught:
        credential(path.parents[1])
    assert caught.value.fault == "holds no string of 16 to 512 printable characters"


def test_another_users_file_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(CredentialError, match="another user"):
        credential(path.parents[1])
