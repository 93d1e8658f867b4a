"""Any byte of any row or artifact that is changed is named, and what names it can always be read."""

import random
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from dpmodels.accounting.events import LaplaceEvent
from dpmodels.errors import ChainBroken
from dpmodels.ledger import store
from dpmodels.ledger.ledger import Ledger
from tests.kit.charges import CAP, make_charge, rewrite
from tests.kit.errors import refused

HASH = "ab" * 32


def lead_a_life(ledger: Ledger) -> None:
    """Leave an entry of every kind, two accounts, and a mixed charge."""
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP, owner="A. Officer", run_cap=0.9)
    ledger.open_account("ward", dataset="ward", budget_cap=CAP, parent="clinic")
    key = ledger.reserve(make_charge(epsilon=0.2)).key
    ledger.begin_draw(key)
    ledger.begin_draw(key)
    ledger.seal(key, HASH)
    ledger.commit(key)
    ledger.void(ledger.reserve(make_charge("run-2", 0.1)).key, "a wrong plan")
    ledger.change_cap("clinic", reason="the board agreed", epsilon=1.5)
    event = LaplaceEvent(noise_multiplier=20.0)
    ledger.reserve(make_charge("run-3", 0.06, event=event, account="ward", dataset="ward"))


def every_cell(connection: sqlite3.Connection) -> list[tuple[str, int, str, object]]:
    found = []
    for table in ("entries", "accounts"):
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        for row in connection.execute(f"SELECT rowid, * FROM {table}"):
            found += [(table, row[0], column, value) for column, value in zip(columns, row[1:], strict=True)]
    return found


def flips(value: object, rng: random.Random) -> list[object]:
    """Flip one bit of some bytes of a value: the first, the last, and a few between, also into bytes that are no text.

    An empty text has no byte to flip; it gets one.
    """
    if isinstance(value, int):
        return [value ^ 32 << rng.randrange(8), value + 1000]  # not the number of another row
    data = str(value).encode()
    places = {0, len(data) - 1, *rng.sample(range(len(data)), min(6, len(data)))} if data else set()
    changed: list[object] = [data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :] for at in places]
    return changed or [b"x"]


def test_a_flipped_byte_of_any_cell_is_named(tmp_path: Path) -> None:
    path, rng = tmp_path / "ledger.db", random.Random(7)
    ledger = Ledger(path)
    lead_a_life(ledger)
    assert ledger.verify() == []
    connection = sqlite3.connect(path, isolation_level=None)
    tried = 0
    for table, rowid, column, value in every_cell(connection):
        for changed in flips(value, rng):
            set_cell(connection, table, rowid, column, changed)
            moved = changed if column == "seq" else rowid
            faults = ledger.verify()
            name = f"entry {moved} " if table == "entries" else "account "
            assert any(name in fault for fault in faults), (table, column, value, changed, faults)
            set_cell(connection, table, moved, column, value)
            tried += 1
    assert tried > 500 and ledger.verify() == []


def set_cell(connection: sqlite3.Connection, table: str, rowid: object, column: str, value: object) -> None:
    cast = "?" if isinstance(value, int) else "CAST(? AS TEXT)"
    connection.execute(f"UPDATE {table} SET {column} = {cast} WHERE rowid = ?", (value, rowid))


@pytest.mark.parametrize("kind", ["open", "reserve", "draw", "seal", "commit", "void", "cap"])
def test_a_deleted_entry_of_any_kind_is_named_on_both_databases(place: str, kind: str) -> None:
    ledger = Ledger(place)
    lead_a_life(ledger)
    seq = next(entry.seq for entry in ledger.entries() if entry.kind == kind)
    alter(place, f"DELETE FROM entries WHERE seq = {seq}")
    assert any(f"entry {seq + 1} " in fault for fault in ledger.verify())


def test_a_flipped_byte_is_named_on_postgresql(postgres_server: str) -> None:
    from benchmarks.postgres import new_database

    place = new_database(postgres_server, "tampered")
    ledger = Ledger(place)
    lead_a_life(ledger)
    for column in ("charge", "kind", "payload", "time", "previous_hash", "hash", "run"):
        for entry in ledger.entries():
            old = getattr(entry, column)
            set_text(place, entry.seq, column, ("~" + old[1:]) if old else "~")
            assert any(f"entry {entry.seq} " in fault for fault in ledger.verify()), (column, entry.seq)
            set_text(place, entry.seq, column, old)
    assert ledger.verify() == []


def set_text(place: str, seq: int, column: str, value: str) -> None:
    alter(place, f"UPDATE entries SET {column} = :value WHERE seq = {seq}", value=value)


def alter(place: str, statement: str, **values: object) -> None:
    url = place.replace("postgresql", "postgresql+psycopg", 1) if "://" in place else f"sqlite:///{place}"
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement), values)
    engine.dispose()


@pytest.mark.parametrize(("field", "fault"), [("tally", "does not add up"), ("cost", "counts less than its event")])
def test_a_lowered_sum_is_named_even_under_true_hashes(tmp_path: Path, field: str, fault: str) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(path)
    lead_a_life(ledger)
    reserve = next(entry for entry in ledger.entries() if entry.kind == "reserve")
    content = {**reserve.content, field: {"gaussian": 1}}
    rewrite(path, reserve.seq, payload=store.canonical_json(content))
    faults = ledger.verify()
    assert any(f"entry {reserve.seq} (reserve)" in found and fault in found for found in faults)


def test_a_charge_is_refused_where_the_entries_it_reckons_with_were_changed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    ledger = Ledger(path)
    lead_a_life(ledger)
    reckoned = {entry.seq for entry in ledger.entries(account="clinic") if entry.kind in ("open", "cap")}
    reckoned.add(ledger.entries()[-1].seq)
    for seq in reckoned:
        alter(str(path), f"UPDATE entries SET payload = payload || ' ' WHERE seq = {seq}")
        with refused(ChainBroken, "chain is broken"):
            ledger.reserve(make_charge("run-4", 0.01))
        alter(str(path), f"UPDATE entries SET payload = substr(payload, 1, length(payload) - 1) WHERE seq = {seq}")
    assert ledger.reserve(make_charge("run-4", 0.01)).state == "reserved"
