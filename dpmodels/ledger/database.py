"""The ledger's database: SQLite in one file, or PostgreSQL; the only module that speaks their dialects.

A SQLite file that cannot be written, such as a copy for an auditor, is read without making any other file beside it. A
writing transaction locks what it reads against every other writer until it is durable: on SQLite the whole ledger
(BEGIN IMMEDIATE), on PostgreSQL the rows of its accounts, and the chain's end while it appends.

One flipped bit in an index of a SQLite file makes a look-up miss a charge, or the draw of one, and no hash tells. So
the whole file is checked, each index against its table, before the first reading and in every writing transaction. It
takes 1 ms for 1,000 entries and 20 ms for 10,000, where a synced write takes 3 ms.
"""

import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, inspect, select, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dpmodels import artifact
from dpmodels.errors import InvalidArgument, LedgerDamaged, LedgerError
from dpmodels.ledger import store
from dpmodels.ledger.frozen import Frozen
from dpmodels.urls import check_url

T = TypeVar("T")
KIND, INSTEAD = "a SQLite file or a PostgreSQL URL", "put it into ~/.pgpass or PGPASSWORD"
HEADS = {"sqlite": "0002", "postgresql": "0003"}
"""The newest migration that changes each database."""
SQLITE_HEADER = 100
"""Bytes that every SQLite file begins with."""
_CREATION_LOCK = 0x6E61637265  # an advisory lock's number, "nacre" in ASCII
# SQLSTATEs after which an attempt is repeated: serialization failure, deadlock, and a row that another writer had just
# inserted. Nothing was written, and the next attempt sees what that writer wrote.
_PASSING = {"40001", "40P01", "23505"}
_ATTEMPTS = 20


class Database:
    """Open the ledger's database, and make or migrate it where needed; safe for threads and forks.

    Raises:
        LedgerError: the place cannot be opened, or holds something that is not a ledger.
        InvalidArgument: the URL is none, or holds a password, which would be kept with every run.
    """

    def __init__(self, path_or_url: str | Path) -> None:
        name = str(path_or_url)
        self._url = url_of(name)
        self._process, self._inherited = os.getpid(), list[Engine]()
        self.frozen: Frozen | None = None
        self._checked = False
        if self._url.get_backend_name() == "sqlite":
            _make_sqlite_file(self._url)
            self.frozen = Frozen.of(Path(self._url.database or ""))
        elif self._url.get_backend_name() != "postgresql":
            raise InvalidArgument("ledger", self._url.get_backend_name(), f"be {KIND}")
        self._engine = self._connect()
        if self.inspect(_version) != HEADS[self._url.get_backend_name()]:
            if self.frozen is not None:
                raise self.frozen.refusal("it is of an earlier version, or no ledger")
            self.write(_make_or_migrate)
        self.inspect(lambda connection: connection.execute(select(store.entries.c.seq).limit(1)))

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run work on one consistent view of the ledger, whose file is whole.

        Raises:
            LedgerDamaged: the file was damaged before its first reading here.
        """
        if not self._checked:
            self.inspect(self._check)
            self._checked = True
        return self._run(work, write=False)

    def inspect(self, work: Callable[[Connection], T]) -> T:
        """Run work that only names faults on a file that may be damaged."""
        return self._run(work, write=False)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run work in one durable transaction, and again after a failure that may pass.

        Raises:
            LedgerDamaged: the file is damaged.
            LedgerError: the database refuses (locked for a minute, full disk, not a ledger); nothing was written.
        """
        return self._run(self._checking(work), write=True)

    def rehearse(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` as ``write`` would, and roll back whatever it wrote."""
        return self._run(self._checking(work), write=True, keep=False)

    def mend(self, work: Callable[[Connection], T]) -> T:
        """Make the indices of a SQLite file anew and run work that raises where the entries are not whole.

        Raises:
            LedgerDamaged: the file is damaged elsewhere; nothing was changed.
        """

        def mended(connection: Connection) -> T:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql("REINDEX")
            self._check(connection)
            return work(connection)

        return self._run(mended, write=True)

    def grant(self, role: str) -> None:
        """Let a role insert and look up entries and accounts, and change caps in accounts' rows; nothing else."""
        if self._url.get_backend_name() != "postgresql":
            raise LedgerError("roles are of a PostgreSQL ledger; a file is protected by its mode")

        def work(connection: Connection) -> None:
            name = connection.dialect.identifier_preparer.quote(role)
            (schema,) = connection.execute(text("SELECT quote_ident(current_schema())")).one()
            caps = ", ".join(store.CAP_COLUMNS)
            for statement in (
                f"REVOKE ALL ON accounts, entries, {store.VERSION_TABLE} FROM PUBLIC, {name}",
                f"GRANT USAGE ON SCHEMA {schema} TO {name}",
                f"GRANT SELECT, INSERT ON accounts, entries TO {name}",
                f"GRANT UPDATE ({caps}) ON accounts TO {name}",
                f"GRANT SELECT ON {store.VERSION_TABLE} TO {name}",
            ):
                connection.execute(text(statement))

        self.write(work)

    def _checking(self, work: Callable[[Connection], T]) -> Callable[[Connection], T]:
        def checked(connection: Connection) -> T:
            self._check(connection)
            return work(connection)

        return checked

    def _check(self, connection: Connection) -> None:
        if fault := integrity_fault(connection):
            raise LedgerDamaged(self._url.database, fault)

    def _connect(self) -> Engine:
        engine = _engine(self._url, self.frozen)
        weakref.finalize(self, _close, engine, os.getpid())
        return engine

    def _run(self, work: Callable[[Connection], T], write: bool, keep: bool = True) -> T:
        if write and self.frozen is not None:
            raise self.frozen.refusal("nothing was charged or changed")
        if os.getpid() != self._process:  # forked: the parent's connections stay open and are never touched here
            self._inherited.append(self._engine)
            self._process = os.getpid()
            self._engine = self._connect()
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with _options(self._engine, write).connect() as connection, connection.begin() as transaction:
                    answer = work(connection)
                    if not keep:
                        transaction.rollback()
                    if self.frozen is not None:
                        self.frozen.check_unchanged()
                    return answer
            except (SQLAlchemyError, sqlite3.Error, UnicodeError) as error:
                if not (_is_passing(error) and attempt < _ATTEMPTS):
                    if self.frozen is not None and self.frozen.has_journal:
                        raise self.frozen.unrecovered() from error
                    if isinstance(error, UnicodeDecodeError):  # SQLite quotes bytes of its schema that are no text
                        raise LedgerDamaged(self._url.database, "its schema is no text") from None
                    if isinstance(error, UnicodeError):
                        raise LedgerError("a name or an address that was given is no text, or is too long") from None
                    reason = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
                    raise LedgerError(f"the ledger cannot be {'written' if write else 'read'}: {reason}") from error
            time.sleep(0.005 * attempt)
        raise LedgerError("the ledger is too busy")  # not reached: the last attempt raises above


def integrity_fault(connection: Connection) -> str:
    """Return the first fault of a SQLite file's pages, or of an index that gives another answer than its table."""
    if connection.dialect.name != "sqlite":
        return ""
    verdict = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()).strip()
    return "" if verdict == "ok" else " ".join(verdict.split())


def _close(engine: Engine, process: int) -> None:
    """Close the connections of a ledger that is no longer referenced, in the process that opened them."""
    if os.getpid() == process:
        engine.dispose()


def lock(connection: Connection, names: Iterable[str], above: Iterable[str] = ()) -> bool:
    """Lock accounts against every writer, and the accounts above them, root first, against charges of their own.

    Children of one parent do not wait for each other here. Locks are taken from the root down and in the order of the
    names, so no two writers deadlock. Return False where the transaction holds the whole ledger anyway.
    """
    if connection.dialect.name != "postgresql":
        return False
    name = store.accounts.c.name
    for each in above:
        connection.execute(select(name).where(name == each).with_for_update(read=True))
    connection.execute(select(name).where(name.in_(list(names))).order_by(name).with_for_update())
    return True


def _options(engine: Engine, write: bool) -> Engine:
    """Set how a transaction begins: a PostgreSQL reader sees one snapshot, a writer the newest committed rows."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(nacre_write=write)
    return engine.execution_options(isolation_level="READ COMMITTED" if write else "REPEATABLE READ")


def _is_passing(error: Exception) -> bool:
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _PASSING


def _version(connection: Connection) -> str | None:
    """Return the migration that a database is at: None if it is empty, 0001 if it is older than migrations."""
    tables = set(inspect(connection).get_table_names())
    if store.VERSION_TABLE in tables:
        version = connection.execute(text(f"SELECT version_num FROM {store.VERSION_TABLE}")).scalar_one_or_none()
        return version if version is None else str(version)
    return "0001" if {"accounts", "entries"} <= tables else None


def _make_or_migrate(connection: Connection) -> None:
    """Make the tables, or bring those of an older version up to date; all of it or nothing."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_CREATION_LOCK})"))
    version = _version(connection)
    head = HEADS[connection.dialect.name]
    if version == head:  # another process was faster
        return
    if version is not None and version > head:
        raise LedgerError(f"the ledger is of a newer nacre (tables {version}, and {head} here): use that version")
    if version is None:
        if inspect(connection).get_table_names():
            raise LedgerError("this database holds other tables; name an empty one, or one that is a ledger")
        store.metadata.create_all(connection)
        connection.execute(text(f"CREATE TABLE {store.VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
        connection.execute(text(f"INSERT INTO {store.VERSION_TABLE} VALUES (:head)"), {"head": head})
        return
    from dpmodels.ledger.migrations import upgrade

    upgrade(connection, version, head)


def is_there(path_or_url: str | Path) -> bool:
    """Tell whether a ledger is at a place already; a URL's is taken to be, since a server answers for it."""
    return "://" in str(path_or_url) or Path(path_or_url).exists()


def check_there(path_or_url: str | Path) -> None:
    """Refuse to look at a ledger that is not there, since a home that was misspelled would be a second budget.

    Raises:
        LedgerError: there is none.
    """
    if not is_there(path_or_url):
        raise LedgerError(
            f"there is no ledger at {path_or_url}; name its home with --home, or have `nacre ledger open NAME --schema "
            "SCHEMA --epsilon EPSILON --delta DELTA` make one"
        )


def url_of(name: str) -> URL:
    """Return the URL of a ledger that is named by a path or by a URL.

    Raises:
        InvalidArgument: the URL is none, or holds a password.
    """
    return check_url(name, "ledger", KIND, INSTEAD) if "://" in name else URL.create("sqlite", database=name)


def _make_sqlite_file(url: URL) -> None:
    """Make a SQLite file, for its owner only; it appears with all its tables or not at all."""
    if url.database in (None, "", ":memory:"):
        raise LedgerError("the ledger needs a file: a ledger in memory would forget what was spent")
    path = Path(url.database or "")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            with artifact.exclusive(path):
                if not path.exists():
                    artifact.write_whole(path, _new_sqlite)
        size = path.stat().st_size
    except OSError as error:
        raise LedgerError(f"the ledger {path} cannot be made: {error.strerror}") from error
    if size < SQLITE_HEADER and path.is_file():  # SQLite would make a new database of it, in which nothing is spent
        raise LedgerError(f"{path} is empty, which no ledger is: what it held was lost; put the newest copy back")


def _new_sqlite(path: Path) -> None:
    # Closed before SQLite opens it: closing any other handle of a database would drop SQLite's locks on it.
    os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    engine = _engine(URL.create("sqlite", database=str(path)))
    with engine.execution_options(nacre_write=True).begin() as connection:
        _make_or_migrate(connection)
    engine.dispose()  # closing the last connection moves the write-ahead log into the file


def _readable(data: bytes) -> str:
    """Decode text that somebody may have changed into invalid bytes, so that `verify` can still name its row."""
    return data.decode(errors="backslashreplace")


def _engine(url: URL, frozen: Frozen | None = None) -> Engine:
    """Set a database up. Connections are kept: to close SQLite's last one would rewrite its log every time."""
    options: dict[str, Any] = {"pool_size": 4, "max_overflow": 200, "hide_parameters": True}
    if url.get_backend_name() == "postgresql":
        psycopg = url.set(drivername="postgresql+psycopg")
        limits = "-c lock_timeout=60000 -c idle_in_transaction_session_timeout=120000"
        try:
            return create_engine(psycopg, connect_args={"options": limits}, pool_pre_ping=True, **options)
        except ModuleNotFoundError:
            raise LedgerError("a PostgreSQL ledger needs psycopg: pip install 'nacre[postgres]'") from None
    engine = create_engine(frozen.url if frozen else url, **options)
    settings = ["busy_timeout=60000", "foreign_keys=ON"]
    settings += [] if frozen else ["journal_mode=WAL", "synchronous=FULL"]

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions begin below, not in the driver
        connection.text_factory = _readable
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("nacre_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine
