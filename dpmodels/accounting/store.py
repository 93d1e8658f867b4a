"""The ledger's table: rows are only ever appended, and each carries the hash of the one before it."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Engine,
    ForeignKey,
    Integer,
    MetaData,
    NullPool,
    String,
    Table,
    UniqueConstraint,
    create_engine,
    event,
    insert,
    make_url,
    select,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from dpmodels.accounting import artifact
from dpmodels.errors import LedgerError

FIRST_HASH = "0" * 64

_metadata = MetaData()
accounts = Table(
    "accounts",
    _metadata,
    Column("name", String, primary_key=True),
    Column("dataset", String, nullable=False),
    Column("unit", String, nullable=False),
    Column("adjacency", String, nullable=False),
    Column("epsilon_cap", String, nullable=False),  # decimals, written out
    Column("delta_cap", String, nullable=False),
    Column("note", String, nullable=False),
    Column("created", String, nullable=False),
    UniqueConstraint("dataset", "unit", "adjacency"),  # a second name must not be a second budget
)
entries = Table(
    "entries",
    _metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("account", String, ForeignKey("accounts.name"), nullable=False),
    Column("charge", String, nullable=False),  # the charge's key; the account's name where the account opens
    Column("kind", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("payload", String, nullable=False),  # canonical JSON
    Column("time", String, nullable=False),
    Column("previous_hash", String, nullable=False, unique=True),  # no fork, on any database
    Column("hash", String, nullable=False),
    UniqueConstraint("charge", "kind", "attempt"),
)


class Entry(BaseModel):
    """One row of the ledger."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    seq: int
    account: str
    charge: str
    kind: str
    attempt: int
    payload: str
    time: str
    previous_hash: str
    hash: str

    @property
    def true_hash(self) -> str:
        """Hash every other field, the previous entry's hash among them."""
        return digest(self.model_dump(exclude={"hash"}))

    @property
    def content(self) -> dict[str, Any]:
        """Parse the payload."""
        content: dict[str, Any] = json.loads(self.payload)
        return content

    def __str__(self) -> str:
        return f"entry {self.seq} ({self.kind})"


def canonical_json(value: object) -> str:
    """Write JSON in the one way that is hashed: sorted keys, no spaces, ASCII, floats by their shortest repr."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: object) -> str:
    """Return the sha256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def now() -> str:
    """Return the time of an entry: UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def append(
    connection: Connection, time: str, account: str, charge: str, kind: str, attempt: int, payload: Mapping[str, object]
) -> None:
    """Add one entry at the end of the chain, inside the caller's write transaction."""
    end = connection.execute(select(entries.c.seq, entries.c.hash).order_by(entries.c.seq.desc()).limit(1)).first()
    entry = Entry(
        seq=end.seq + 1 if end else 1,
        account=account,
        charge=charge,
        kind=kind,
        attempt=attempt,
        payload=canonical_json(payload),
        time=time,
        previous_hash=end.hash if end else FIRST_HASH,
        hash="",
    )
    connection.execute(insert(entries).values(**entry.model_dump(exclude={"hash"}), hash=entry.true_hash))


def read(connection: Connection, *where: ColumnElement[bool]) -> list[Entry]:
    """Read entries in order, all of them or those that match."""
    rows = connection.execute(select(entries).where(*where).order_by(entries.c.seq))
    return [Entry.model_construct(**row._mapping) for row in rows]


def chain_faults(chain: Sequence[Entry]) -> list[tuple[int, str]]:
    """Name each entry, by seq, that was edited, or that does not follow the one before it."""
    faults = []
    seq, previous = 0, FIRST_HASH
    for entry in chain:
        if entry.hash != entry.true_hash:
            faults.append((entry.seq, f"{entry} was edited: its content does not match its hash"))
        if entry.seq != seq + 1:
            faults.append((entry.seq, f"{entry} comes after entry {seq}: entries between them were deleted"))
        elif entry.previous_hash != previous:
            faults.append((entry.seq, f"{entry} does not follow entry {seq}: one of them was edited or moved"))
        seq, previous = entry.seq, entry.hash
    return faults


def connect(path_or_url: str | Path) -> Engine:
    """Open the ledger's database, and make it where it is missing.

    Raises:
        LedgerError: the place cannot be opened, or holds something that is not a ledger.
    """
    url = make_url(str(path_or_url)) if "://" in str(path_or_url) else URL.create("sqlite", database=str(path_or_url))
    if url.get_backend_name() == "sqlite":
        engine = _connect_sqlite(url)
    else:
        engine = create_engine(url, isolation_level="SERIALIZABLE", hide_parameters=True)
        _make_tables(engine)
    with transaction(engine) as connection:
        connection.execute(select(entries.c.seq).limit(1))
    return engine


@contextmanager
def transaction(engine: Engine, *, write: bool = False) -> Iterator[Connection]:
    """Run one transaction; a writing one holds the ledger to itself from its first read to its durable end.

    Raises:
        LedgerError: the database refuses (locked for a minute, full disk, not a ledger); nothing was written.
    """
    try:
        with engine.connect().execution_options(nacre_write=write) as connection, connection.begin():
            yield connection
    except (SQLAlchemyError, sqlite3.Error) as error:
        reason = getattr(error, "orig", None) or error
        raise LedgerError(f"the ledger cannot be {'written' if write else 'read'}: {reason}") from error


def _make_tables(engine: Engine) -> None:
    with transaction(engine, write=True) as connection:
        _metadata.create_all(connection)


def _connect_sqlite(url: URL) -> Engine:
    """Open a SQLite file, for its owner only; a new one appears with all its tables or not at all."""
    if url.database in (None, "", ":memory:"):
        raise LedgerError("the ledger needs a file: a ledger in memory would forget what was spent")
    path = Path(url.database or "")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            with artifact.exclusive(path):
                if not path.exists():
                    artifact.write_whole(path, _new_sqlite)
    except OSError as error:
        raise LedgerError(f"the ledger {path} cannot be made: {error.strerror}") from error
    return _sqlite_engine(url)


def _new_sqlite(path: Path) -> None:
    # Closed before SQLite opens it: closing any other handle of a database would drop SQLite's locks on it.
    os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    _make_tables(_sqlite_engine(URL.create("sqlite", database=str(path))))


def _sqlite_engine(url: URL) -> Engine:
    """Set SQLite up: the only place that speaks its dialect. No pool, so threads and forks share nothing."""
    engine = create_engine(url, poolclass=NullPool, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions begin below, not in the driver
        for setting in ("busy_timeout=60000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {setting}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("nacre_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine
