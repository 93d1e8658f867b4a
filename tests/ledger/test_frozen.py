"""A ledger on a file system that cannot be written: it is looked at whole, and nothing is left beside it."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from dpmodels.errors import LedgerError
from dpmodels.ledger.ledger import Ledger
from tests.kit.charges import CAP, MakeCharge, ReadOnly
from tests.kit.support import run_cli


def opened(path: Path) -> Ledger:
    """Return a ledger of one account that nobody else holds, so that its connection closes with it."""
    ledger = Ledger(path)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
    return ledger


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_ledger_is_read_where_nothing_can_be_written(path: Path, charge: MakeCharge, read_only: ReadOnly) -> None:
    opened(path).reserve(charge())
    before = content(path.parent)
    assert not [name for name in before if name.startswith(f"{path.name}-")]
    read_only(path.parent)
    looked = Ledger(path)
    assert looked.is_frozen
    assert [entry.kind for entry in looked.entries()] == ["open", "reserve"]
    assert looked.balance("clinic").charges == 1
    assert looked.verify() == []
    assert looked.quote(charge("run-2", epsilon=0.2)).accepted
    with pytest.raises(LedgerError, match="cannot be written here, only looked at; nothing was charged or changed"):
        looked.reserve(charge("run-2", epsilon=0.2))
    with pytest.raises(LedgerError, match="only looked at"):
        looked.change_cap("clinic", reason="more", epsilon=2.0)
    assert content(path.parent) == before


def test_the_entries_in_a_journal_are_seen_or_it_must_be_recovered(
    path: Path, ledger: Ledger, charge: MakeCharge, read_only: ReadOnly, tmp_path: Path
) -> None:
    held = ledger.reserve(charge())
    assert path.with_name(path.name + "-wal").stat().st_size  # the ledger is open, so its newest entries are there
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    shutil.copytree(path.parent, whole)
    shutil.copytree(path.parent, cut)
    (cut / f"{path.name}-shm").unlink()
    before = content(whole)
    read_only(whole)
    read_only(cut)
    assert Ledger(whole / path.name).find(held.key) == held
    assert content(whole) == before
    with pytest.raises(LedgerError, match="are in a journal beside it, which must be recovered first: copy all files"):
        Ledger(cut / path.name)
    shutil.copytree(cut, tmp_path / "elsewhere")
    assert Ledger(tmp_path / "elsewhere" / path.name).find(held.key) == held


def test_a_file_that_is_written_while_it_is_read_is_not_believed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(path)
    with monkeypatch.context() as nobody:
        nobody.setattr(os, "access", lambda *_: False)  # as for somebody who may read the folder, and not write it
        looked = Ledger(path)
    assert len(looked.entries()) == 1
    Ledger(path).open_account("other", dataset="letters", budget_cap=CAP)
    with pytest.raises(LedgerError, match="was written while it was read; try again"):
        looked.entries()


def test_an_older_ledger_is_not_migrated_where_nothing_can_be_written(path: Path, read_only: ReadOnly) -> None:
    path.parent.mkdir()
    script = Path(__file__).with_name("first_ledger.sql").read_text(encoding="utf-8")
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()
    read_only(path.parent)
    with pytest.raises(LedgerError, match="cannot be written here, only looked at; it is of an earlier version"):
        Ledger(path)


def test_the_commands_read_a_home_that_cannot_be_written(path: Path, read_only: ReadOnly) -> None:
    opened(path)
    home = path.parent
    path.rename(home / "ledger.sqlite")
    read_only(home)
    before = sorted(content(home))
    for words in (["show"], ["show", "clinic"], ["entries"], ["verify"], ["export", home.parent / "chain.parquet"]):
        assert run_cli("ledger", *words, "--home", home)[0] == 0, words
    assert sorted(content(home)) == before
