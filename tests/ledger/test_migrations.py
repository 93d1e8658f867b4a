"""A ledger of the first version opens with every hash and every charge as they were."""

import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from dpmodels.errors import BudgetExhausted, ChainBroken, LedgerError
from dpmodels.ledger import store
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.migrations import upgrade
from tests.kit.errors import refused

FIRST = Path(__file__).with_name("first_ledger.sql")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Write a ledger that nacre 0.1 made: one committed, one voided and one reserved charge of epsilon 0.3."""
    path = tmp_path / "ledger.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(FIRST.read_text())
    connection.close()
    return path


def rows(path: Path, columns: str = "*") -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute(f"SELECT {columns} FROM entries ORDER BY seq").fetchall()
    connection.close()
    return found


def test_a_first_ledger_opens_unchanged_and_goes_on(old: Path, charge) -> None:
    before = rows(old)
    ledger = Ledger(old)
    assert [row[:9] for row in rows(old)] == before
    assert [run for (run,) in rows(old, "run")] == ["", "run-0", "", "", "", "run-1", "", "run-2"]
    assert ledger.verify() == []
    balance = ledger.balance("clinic")
    assert (str(balance.spent_epsilon), balance.charges) == ("0.437604607822", 2)
    assert ledger.reserve(charge("run-0", epsilon=0.3)).state == "committed"
    with pytest.raises(BudgetExhausted):
        ledger.reserve(charge("run-3", epsilon=0.9))
    ledger.reserve(charge("run-3", epsilon=0.5))  # carries the first tally
    assert "tally" in ledger.entries()[-1].content
    assert ledger.balance("clinic").charges == 3
    ledger.void(ledger.reserve(charge("run-2", epsilon=0.3)).key, "a charge of the old kind")
    assert ledger.balance("clinic").charges == 2
    assert Ledger(old).verify() == []


def test_where_an_account_stood_is_told_of_charges_that_are_older_than_tallies(old: Path) -> None:
    ledger = Ledger(old)
    keys = {entry.run: entry.charge for entry in ledger.entries() if entry.kind == "reserve"}
    first, voided, last = (ledger.standing(keys[run]) for run in ("run-0", "run-1", "run-2"))
    assert first.before == 0 and 0.299 < first.after <= 0.3
    assert (
        voided.before
        == voided.after
        == last.before
        == first.after
        < last.after
        == ledger.balance("clinic").spent_epsilon
    )


def test_a_first_ledger_that_was_tampered_with_is_not_added_up(old: Path, charge) -> None:
    connection = sqlite3.connect(old)
    with connection:
        connection.execute("UPDATE entries SET payload = 'x' || payload WHERE seq = 2")
    connection.close()
    ledger = Ledger(old)
    assert any("entry 2 (reserve) was edited" in fault for fault in ledger.verify())
    with refused(ChainBroken, "chain is broken: entry 2 "):
        ledger.reserve(charge("run-3", epsilon=0.1))


def test_migrating_and_making_give_the_same_tables(old: Path, tmp_path: Path) -> None:
    Ledger(old)
    Ledger(tmp_path / "new.sqlite")
    shapes = []
    for path in (old, tmp_path / "new.sqlite"):
        with create_engine(f"sqlite:///{path}").connect() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": store.VERSION_TABLE})
            assert compare_metadata(context, store.metadata) == []
            looks = inspect(connection)
            shapes.append(
                {
                    table: sorted((c["name"], c["nullable"], str(c["type"])) for c in looks.get_columns(table))
                    for table in looks.get_table_names()
                }
            )
        connection.engine.dispose()
    assert shapes[0] == shapes[1]


def test_every_migration_runs_on_an_empty_postgresql(postgres_server: str) -> None:
    from benchmarks.postgres import new_database

    engine = create_engine(new_database(postgres_server, "migrated").replace("postgresql", "postgresql+psycopg", 1))
    with engine.begin() as connection:
        upgrade(connection, None)
        context = MigrationContext.configure(connection, opts={"version_table": store.VERSION_TABLE})
        assert compare_metadata(context, store.metadata) == []
    engine.dispose()


def test_a_postgresql_ledger_of_the_second_version_compares_bytes_from_then_on(postgres_server: str) -> None:
    from benchmarks.postgres import new_database
    from tests.kit.charges import CAP, make_charge

    place = new_database(postgres_server, "collated")
    engine = create_engine(place.replace("postgresql", "postgresql+psycopg", 1))
    with engine.begin() as connection:
        upgrade(connection, None, "0002")
        # what a ledger of that version holds
        other = Ledger(new_database(postgres_server, "collated_other"))
        other.open_account("clinic", dataset="visits", budget_cap=CAP)
        other.reserve(make_charge("run-1", 0.4))
        rows = [{**entry.model_dump(), "run": entry.run} for entry in other.entries()]
        connection.execute(store.accounts.insert(), other.account("clinic").row)
        connection.execute(store.entries.insert(), rows)
    ledger = Ledger(place)
    asked = "SELECT collation_name FROM information_schema.columns WHERE table_name IN ('accounts', 'entries') "
    with engine.connect() as connection:
        collations = connection.execute(text(asked + "AND data_type = 'character varying'")).scalars().all()
    engine.dispose()
    assert len(collations) == 17 and set(collations) == {"C"}
    assert ledger.verify() == [] and ledger.entries() == other.entries()
    assert ledger.reserve(make_charge("run-2", 0.4)).state == "reserved"


def test_a_full_stop_in_the_middle_of_a_migration_changes_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmodels.ledger import migrations

    def cut(connection: object, version: str | None, head: str) -> None:
        upgrade(connection, version, head)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(migrations, "upgrade", cut)
        Ledger(old)
    connection = sqlite3.connect(old)
    assert len(connection.execute("SELECT * FROM entries").fetchone()) == 9
    connection.close()
    assert Ledger(old).verify() == []


def test_a_ledger_of_a_newer_version_is_refused_in_a_sentence(old: Path) -> None:
    Ledger(old)
    connection = sqlite3.connect(old)
    connection.execute(f"UPDATE {store.VERSION_TABLE} SET version_num = '0099'")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="is of a newer nacre"):
        Ledger(old)
