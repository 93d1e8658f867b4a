"""One open account and one charge, small enough to read in every test of the ledger, on both databases."""

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import postgres
from dpmodels.ledger.ledger import Ledger
from tests.kit.charges import CAP, MakeCharge, ReadOnly, make_charge


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    ledger = Ledger(path)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
    return ledger


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where a new ledger goes: a file, or an empty database of a PostgreSQL server."""
    if request.param == "sqlite":
        return str(tmp_path / "home" / "ledger.db")
    return postgres.new_database(request.getfixturevalue("postgres_server"), f"l{uuid.uuid4().hex}")


@pytest.fixture
def charge() -> MakeCharge:
    return make_charge


@pytest.fixture
def read_only() -> Iterator[ReadOnly]:
    """Return what makes a folder one where nothing can be written; whoever may write everything mounts it so."""
    mounted = []

    def close(folder: Path) -> None:
        if os.getuid():
            folder.chmod(0o500)
        elif subprocess.run(["mount", "--bind", folder, folder], capture_output=True, check=False).returncode:
            pytest.skip("this user can write everywhere, and may mount nothing")
        else:
            mounted.append(folder)
            subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        assert not os.access(folder, os.W_OK)

    yield close
    for folder in mounted:
        subprocess.run(["umount", "--lazy", folder], check=True)
