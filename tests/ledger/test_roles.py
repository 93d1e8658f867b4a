"""On PostgreSQL a worker's role may charge the ledger, and neither change nor delete what was charged."""

import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from benchmarks import postgres
from dpmodels.errors import BudgetExhausted, LedgerError
from dpmodels.ledger.ledger import Ledger
from tests.kit.charges import CAP, make_charge
from tests.kit.support import run_cli

pytestmark = pytest.mark.processes

ROLES = Path(__file__).parents[2] / "deployments" / "ledger-roles.sql"
FORBIDDEN = [
    "UPDATE entries SET payload = '{}'",
    "DELETE FROM entries",
    "TRUNCATE entries",
    "DROP TABLE entries",
    "ALTER TABLE entries ADD COLUMN more TEXT",
    "CREATE TRIGGER t BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "DELETE FROM accounts",
    "UPDATE accounts SET parent = ''",
    "UPDATE accounts SET name = 'other'",
    "UPDATE ledger_version SET version_num = '0001'",
]


@pytest.fixture(scope="module")
def ledger_url(postgres_server: str) -> Iterator[str]:
    """Run the file of roles as the server's superuser, and have the owner grant; return the worker's URL."""
    server = make_url(postgres_server)
    psql = Path(str(postgres.programs())) / "psql"
    passwords = [f"--set={name}_password=p" for name in ("prefect", "owner", "ledger")]
    address = server.set(drivername="postgresql").render_as_string(hide_password=False)
    command = [psql, address, "--set=ON_ERROR_STOP=1", "--quiet", *passwords, "--file", ROLES]
    subprocess.run(command, check=True, capture_output=True, text=True)
    owner = server.set(username="nacre_owner", database="ledger").render_as_string(hide_password=False)
    code, out, err = run_cli("ledger", "grant", "nacre_ledger", "--ledger", owner)
    assert code == 0 and "neither change nor delete" in out, err
    assert run_cli("ledger", "grant", "nacre_ledger", "--ledger", owner)[0] == 0  # as after a new version
    yield server.set(username="nacre_ledger", database="ledger").render_as_string(hide_password=False)
    dropped = [f"DROP DATABASE {name} WITH (FORCE)" for name in ("prefect", "ledger")]
    dropped += [f"DROP ROLE {name}" for name in ("prefect", "nacre_owner", "nacre_ledger")]
    subprocess.run([psql, address, *(f"--command={each}" for each in dropped)], check=True, capture_output=True)


def test_the_workers_role_does_all_that_runs_need(ledger_url: str) -> None:
    name = f"clinic-{uuid.uuid4().hex}"
    ledger = Ledger(ledger_url)
    ledger.open_account(name, dataset=name, budget_cap=CAP)
    key = ledger.reserve(make_charge("run-1", 0.5, account=name, dataset=name)).key
    ledger.begin_draw(key)
    ledger.seal(key, "ab" * 32)
    ledger.commit(key)
    with pytest.raises(BudgetExhausted):
        ledger.reserve(make_charge("run-2", 0.9, account=name, dataset=name))
    assert ledger.change_cap(name, reason="the board agreed", epsilon=3).cap.epsilon == 3
    ledger.void(ledger.reserve(make_charge("run-2", 0.9, account=name, dataset=name)).key, "not needed")
    assert Ledger(ledger_url).verify() == []


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_the_workers_role_changes_nothing_that_was_written(ledger_url: str, statement: str) -> None:
    Ledger(ledger_url)
    engine = create_engine(ledger_url.replace("postgresql", "postgresql+psycopg", 1))
    with pytest.raises(DBAPIError, match=r"permission denied|must be owner"), engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def test_the_workers_role_reaches_no_other_database(ledger_url: str) -> None:
    with pytest.raises(LedgerError):
        Ledger(ledger_url.replace("/ledger", "/prefect"))


def test_a_file_has_no_roles(tmp_path: Path) -> None:
    with pytest.raises(LedgerError):
        Ledger(tmp_path / "ledger.db").grant("nacre_ledger")
