"""The string of a home is made once, whole, for its owner alone, and a file that others could know is not believed."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpmodels.errors import CredentialError
from flows.with_prefect.credential import credential, credential_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    credential(tmp_path / "home")
    return credential_file(tmp_path / "home")


def test_it_is_made_once_and_its_owner_alone_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = credential(tmp_path / "home")
    finally:
        os.umask(before)
    assert made == credential(tmp_path / "home") != credential(tmp_path / "other")
    assert made.startswith("nacre:") and len(made) > 40
    path = credential_file(tmp_path / "home")
    assert path == tmp_path / "home" / "prefect" / "credential" and list(path.parent.iterdir()) == [path]
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


def test_all_who_ask_at_once_get_the_same_string(tmp_path: Path) -> None:
    for number in range(20):
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(credential, [tmp_path / str(number)] * 8))) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_a_file_that_others_reach_is_refused(path: Path, mode: int) -> None:
    path.chmod(mode)
    with pytest.raises(CredentialError, match="remove it") as caught:
        credential(path.parents[1])
    assert (caught.value.path, caught.value.fault) == (path, "can be read by other users")


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
