"""The ledger's table: rows are only ever appended, and each carries the hash of the one before it."""

import hashlib
import json
import os
import platform
import pwd
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Literal, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Row,
    Select,
    String,
    Table,
    UniqueConstraint,
    bindparam,
    func,
    insert,
    select,
    text,
)

from dpmodels.errors import ChainBroken
from dpmodels.frozen import Frozen

VERSION_TABLE = "ledger_version"  # Alembic's, under a name that no other program's has
FIRST_HASH = "0" * 64
UNCHARGED = ("nonce", "by")
"""What every payload holds beside what the entry is about."""
ACCOUNT_KINDS = ("open", "cap")  # entries about an account; all others are about a charge
CAP_COLUMNS = ("epsilon_cap", "delta_cap")  # of an account's row, which alone ever change
SPENDING_KINDS = ("open", "cap", "reserve", "void")  # entries that carry the account's tally

metadata = MetaData()
# Compared by its bytes: an index in an order of the system's goes wrong when the system's collations are updated.
_TEXT = String().with_variant(String(collation="C"), "postgresql")
accounts = Table(
    "accounts",
    metadata,
    Column("name", _TEXT, primary_key=True),
    Column("dataset", _TEXT, nullable=False),
    Column("unit", _TEXT, nullable=False),
    Column("adjacency", _TEXT, nullable=False),
    Column("epsilon_cap", _TEXT, nullable=False),  # decimals, written out
    Column("delta_cap", _TEXT, nullable=False),
    Column("note", _TEXT, nullable=False),
    Column("created", _TEXT, nullable=False),
    Column("parent", _TEXT, nullable=False, server_default="", index=True),
    UniqueConstraint("dataset", "unit", "adjacency"),  # a second name must not be a second budget
)
entries = Table(
    "entries",
    metadata,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("account", _TEXT, ForeignKey("accounts.name"), nullable=False),
    Column("charge", _TEXT, nullable=False),  # the charge's key; the account's name where the entry is about it
    Column("kind", _TEXT, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("payload", _TEXT, nullable=False),  # canonical JSON
    Column("time", _TEXT, nullable=False),
    Column("previous_hash", _TEXT, nullable=False, unique=True),  # no fork, on any database
    Column("hash", _TEXT, nullable=False),
    Column("run", _TEXT, nullable=False, server_default=""),  # of a reserve entry's payload, to search by
    UniqueConstraint("charge", "kind", "attempt"),
    Index("ix_entries_account_kind_seq", "account", "kind", "seq"),
    Index("ix_entries_account_run", "account", "run"),
)
_HASHED = [column for column in entries.c if column.name != "run"]
# The statements of a charge are built once: building them each time would take most of a charge's time.
_END = select(*_HASHED).order_by(entries.c.seq.desc()).limit(2)
_AT = select(*_HASHED).where(entries.c.seq.in_(bindparam("seqs", expanding=True))).order_by(entries.c.seq)
_LIVES = (
    select(*_HASHED)
    .where(entries.c.charge.in_(bindparam("keys", expanding=True)), entries.c.kind.not_in(ACCOUNT_KINDS))
    .order_by(entries.c.seq)
)
# An account's row, the places of its newest entries of each spending kind, and of its first opening: one lookup for
# each. The newest opening must be the first: whoever may append could otherwise open an account anew by other terms.
_STANDING = select(
    *accounts.c,
    *(
        select(func.max(entries.c.seq))
        .where(entries.c.account == accounts.c.name, entries.c.kind == kind)
        .scalar_subquery()
        .label(f"newest_{kind}")
        for kind in SPENDING_KINDS
    ),
    select(func.min(entries.c.seq))
    .where(entries.c.account == accounts.c.name, entries.c.kind == "open")
    .scalar_subquery()
    .label("opened"),
).where(accounts.c.name.in_(bindparam("names", expanding=True)))
_ACCOUNT = select(accounts).where(accounts.c.name == bindparam("name"))
_CHILDREN = (
    select(accounts.c.parent, accounts.c.name)
    .where(accounts.c.parent.in_(bindparam("names", expanding=True)))
    .order_by(accounts.c.name)
)
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_INSERT = insert(entries).returning(entries.c.seq)  # many rows in one statement, and no pipeline of statements
_APPEND_LOCK = 0x6E6163726531  # an advisory lock's number, "nacre1" in ASCII
_AT_ONCE = 5000  # names or numbers in one statement; databases allow some tens of thousands


class Entry(Frozen):
    """One row of the ledger."""

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
        """Parse the payload.

        Raises:
            ChainBroken: it is not written in the one way, so it may say something else to another reader.
        """
        content = _canonical_content(self.payload)
        if content is None:
            raise ChainBroken(f"{self} is not in canonical JSON")
        return content

    @property
    def run(self) -> str:
        """The run that a reserve entry charges for; empty for any other entry."""
        return str(self.content["run"]) if self.kind == "reserve" else ""

    def __str__(self) -> str:
        return f"entry {self.seq} ({self.kind})"

    def __repr__(self) -> str:
        about = f"account {self.account}" + f", charge {self.charge[:12]}" * bool(self.charge)
        return f"<{self}: {about}, {self.time[:10]}>"


def canonical_json(value: object) -> str:
    """Write JSON in the one way that is hashed: sorted keys, no spaces, ASCII, floats by their shortest repr."""
    return _WRITER.encode(value)


def _canonical_content(payload: str) -> dict[str, Any] | None:
    """Parse what ``canonical_json`` wrote; None for any other text, such as one that has a key twice."""
    try:
        content: dict[str, Any] = json.loads(payload)
        same = isinstance(content, dict) and canonical_json(content) == payload
    except (ValueError, RecursionError):
        return None
    return content if same else None


def digest(value: object) -> str:
    """Return the sha256 of a value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def now() -> str:
    """Return the time of an entry: UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def author() -> str:
    """Return who writes entries: the user of this process, as the system knows it, and the host."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run under a number that has no name
        user = str(os.getuid())
    return f"{user}@{platform.node()}"


class Draft(NamedTuple):
    """The content of an entry before it has its place in the chain."""

    account: str
    charge: str
    kind: str
    attempt: int
    payload: Mapping[str, object]
    time: str = ""


def append(connection: Connection, drafts: Iterable[Draft]) -> list[Entry]:
    """Add entries at the end of the chain, inside the caller's write transaction.

    Each payload says who wrote it, and gets a random nonce. An entry's hash goes into manifests, and without a nonce
    whoever has a manifest could try every microsecond of the day until the hash fits, and learn how long the run took,
    which grows with the data.

    Raises:
        ChainBroken: the newest entry was edited, or does not follow the one before it.
    """
    hold_end(connection)
    last = connection.execute(_END)
    end, before = [*(_entry(row) for row in last), None, None][:2]
    if end and (end.hash != end.true_hash or end.previous_hash != (before.hash if before else FIRST_HASH)):
        raise ChainBroken(f"the chain is broken at its newest {end}")
    added, by = list[Entry](), author()
    for draft in drafts:
        written = draft._asdict() | {
            "seq": end.seq + 1 if end else 1,
            "payload": canonical_json({**draft.payload, "by": by, "nonce": token_hex(16)}),
            "time": draft.time or now(),
            "previous_hash": end.hash if end else FIRST_HASH,
        }
        end = Entry(**written, hash=digest(written))
        added.append(end)
    rows = [{**entry.model_dump(), "run": entry.run} for entry in added]
    connection.execute(_INSERT, rows).all()  # SQLite commits no statement whose rows somebody has yet to read
    return added


def hold_end(connection: Connection) -> None:
    """Have every other writer wait at the end of the chain until this transaction is over; readers do not."""
    if connection.dialect.name == "postgresql":
        # not a lock of the table, which only those may take who may also change or delete its rows
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_APPEND_LOCK})"))


def head(connection: Connection) -> Entry | None:
    """Return the newest entry."""
    return next((_entry(row) for row in connection.execute(_END)), None)


def read(connection: Connection, *where: ColumnElement[bool]) -> list[Entry]:
    """Read entries in order, all of them or those that match."""
    return [_entry(row) for row in connection.execute(select(*_HASHED).where(*where).order_by(entries.c.seq))]


def plan_by(connection: Connection, what: Literal["table", "index"]) -> None:
    """Have PostgreSQL read tables whole, or by their indices, until the transaction ends.

    SQLite reads whole entries from the table, and looks up by an index, in any case.
    """
    if connection.dialect.name == "postgresql":
        by_index = "on" if what == "index" else "off"
        for way in ("indexscan", "indexonlyscan", "bitmapscan"):
            connection.execute(text(f"SET LOCAL enable_{way} = {by_index}"))
        connection.execute(text(f"SET LOCAL enable_seqscan = {'off' if what == 'index' else 'on'}"))


def standing(connection: Connection, names: Iterable[str]) -> dict[str, tuple[dict[str, str], dict[str, Entry]]]:
    """Return the rows of accounts, each with its newest entry of every spending kind.

    Raises:
        ChainBroken: one of them was opened twice.
    """
    rows = [dict(row._mapping) for row in _many(connection, _STANDING, "names", names)]
    for row in rows:
        if row.pop("opened") != row["newest_open"]:
            raise ChainBroken(f"account {row['name']} was opened a second time by entry {row['newest_open']}")
    positions = {row["name"]: [row.pop(f"newest_{kind}") for kind in SPENDING_KINDS] for row in rows}
    positions_to_read = [seq for seqs in positions.values() for seq in seqs if seq is not None]
    at = {row.seq: _entry(row) for row in _many(connection, _AT, "seqs", positions_to_read)}
    return {row["name"]: (row, {at[seq].kind: at[seq] for seq in positions[row["name"]] if seq in at}) for row in rows}


def lives(connection: Connection, keys: Iterable[str]) -> dict[str, list[Entry]]:
    """Return the entries of charges, oldest first; a charge that was never made has none."""
    lives_by_key: dict[str, list[Entry]] = {}
    for entry in map(_entry, _many(connection, _LIVES, "keys", keys)):
        lives_by_key.setdefault(entry.charge, []).append(entry)
    return lives_by_key


def account_row(connection: Connection, name: str) -> dict[str, str] | None:
    """Return an account's row."""
    row = connection.execute(_ACCOUNT, {"name": name}).one_or_none()
    return dict(row._mapping) if row else None


def children(connection: Connection, names: Iterable[str]) -> dict[str, list[str]]:
    """Name the accounts directly below each of some accounts; an account without children is left out."""
    children_by_name: dict[str, list[str]] = {}
    for parent, name in _many(connection, _CHILDREN, "names", names):
        children_by_name.setdefault(parent, []).append(name)
    return children_by_name


def chain_faults(chain: Iterable[Entry]) -> list[tuple[int, str]]:
    """Name each entry, by seq, that was edited, does not follow the one before it, or is none that a ledger writes."""
    faults, opened = [], set[str]()
    seq, previous = 0, FIRST_HASH
    for entry in chain:
        if entry.hash != entry.true_hash:
            faults.append((entry.seq, f"{entry} was edited: its content does not match its hash"))
        elif _canonical_content(entry.payload) is None:
            faults.append((entry.seq, f"{entry} is not in canonical JSON: a ledger did not write it"))
        if entry.kind == "open" and entry.account in opened:
            faults.append((entry.seq, f"{entry} opens account {entry.account} a second time"))
        opened |= {entry.account} if entry.kind == "open" else set()
        if entry.seq != seq + 1:
            faults.append((entry.seq, f"{entry} comes after entry {seq}: entries between them were deleted"))
        elif entry.previous_hash != previous:
            faults.append((entry.seq, f"{entry} does not follow entry {seq}: one of them was edited or moved"))
        seq, previous = entry.seq, entry.hash
    return faults


def link_faults(connection: Connection, some: Iterable[Entry]) -> list[str]:
    """Name each of a few entries that was edited, or that does not fit the entries on both sides of it."""
    some = list(some)
    around = {entry.seq + step for entry in some for step in (-1, 1)}
    near = {row.seq: _entry(row) for row in _many(connection, _AT, "seqs", around)}
    faults = []
    for entry in some:
        before, after = near.get(entry.seq - 1), near.get(entry.seq + 1)
        if entry.hash != entry.true_hash:
            faults.append(f"{entry} was edited: its content does not match its hash")
        if entry.previous_hash != (before.hash if before else FIRST_HASH):
            faults.append(f"{entry} does not follow the entry before it: one of them was edited, moved or deleted")
        if after is not None and after.previous_hash != entry.hash:
            faults.append(f"{after} does not follow {entry}: one of them was edited or moved")
    for entry in near.values():
        if entry.hash != entry.true_hash:
            faults.append(f"{entry} was edited: its content does not match its hash")
    return faults


def _many(connection: Connection, statement: Select[Any], name: str, values: Iterable[Any]) -> Iterator[Row[Any]]:
    """Run a statement for any number of values, some thousands at a time."""
    left = list(values)
    for start in range(0, len(left), _AT_ONCE):
        yield from connection.execute(statement, {name: left[start : start + _AT_ONCE]})


def _entry(row: Any) -> Entry:
    """Make an entry of a row; a bit that makes bytes of a text is named as an edit, and not met as an error."""
    cells: dict[str, Any] = {key: str(cell) if type(cell) is bytes else cell for key, cell in row._mapping.items()}
    return Entry.model_construct(None, **cells)
