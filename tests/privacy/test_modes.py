"""Who can open what a run leaves behind, whatever the umask; and names that would lead to another folder."""

import os
import stat
from pathlib import Path

import pytest
import yaml

from dpmodels.errors import ArtifactError
from tasks.run.folders import close_home, make_private
from tasks.run.store import Run
from tests.kit.support import run_cli, synthesize_words, write_clinic
from tests.kit.wards import write_wards

ELSEWHERE = ["../evil", "a/b", "..", "", "north\n", "/etc"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_state_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    before = os.umask(0)
    try:
        assert run_cli(*synthesize_words(tmp_path, rows=20))[0] == 0
    finally:
        os.umask(before)
    home = tmp_path / "home"
    (own,) = (home / "sensitive").glob("[!.]*")
    closed = [path for path in (home / "sensitive").rglob("*") if path.is_dir() and path.parent != own]
    assert {mode(path) for path in (home, home / "sensitive", own, *closed)} == {0o700}
    assert mode(home / "ledger.sqlite") == 0o600
    assert any(path.is_file() for path in own.rglob("*"))  # which nobody reaches but through these


def test_a_private_folder_is_never_open_not_even_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, true = list[int](), Path.mkdir

    def mkdir(path: Path, *args: int, **kwargs: int) -> None:
        true(path, *args, **kwargs)
        seen.append(mode(path))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    before = os.umask(0)
    try:
        make_private(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert seen == [0o700] * 3


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_run_or_a_client_whose_name_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArtifactError, match="no name of a run"):
        Run.find(tmp_path / "home", name)
    config = write_wards(tmp_path, number=5)
    content = yaml.safe_load(config.read_text())
    content["clients"][name] = content["clients"].pop("north")
    config.write_text(yaml.safe_dump(content))
    left = sorted(tmp_path.rglob("*"))
    code, _, err = run_cli("federate", config)
    assert code == 1 and "name=" in err and sorted(tmp_path.rglob("*")) == left


def test_a_home_that_others_can_open_is_closed_before_anything_is_charged(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "sensitive").mkdir(parents=True)
    home.chmod(0o755)
    (home / "sensitive").chmod(0o777)
    close_home(home)
    assert (home / ".gitignore").read_text() == "*\n"
    (home / ".gitignore").write_text("ledger.sqlite\n")
    close_home(home)
    assert (home / ".gitignore").read_text() == "ledger.sqlite\n"
    assert [mode(folder) for folder in (home, home / "sensitive")] == [0o700] * 2


def test_a_home_that_is_a_repository_itself_is_left_to_its_owner(tmp_path: Path) -> None:
    (tmp_path / "home" / ".git").mkdir(parents=True)
    close_home(tmp_path / "home")
    assert not (tmp_path / "home" / ".gitignore").exists()


def test_a_new_ledger_says_where_it_begins(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    terms = ("--schema", tmp_path / "clinic.yaml", "--epsilon", 1, "--delta", 1e-5, "--home", tmp_path / "home")
    code, _, err = run_cli("ledger", "open", "clinic", *terms)
    assert code == 0 and f"a new ledger begins in {tmp_path / 'home' / 'ledger.sqlite'}" in err.replace("\n", " ")
    assert "a new ledger" not in run_cli("ledger", "open", "clinic", *terms)[2]
