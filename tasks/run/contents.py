"""What the sensitive zone remembers of contents, so that no data is charged to a second budget under another name.

    NACRE_HOME/sensitive/.partitions/secret               32 bytes, made once; keys every hash below
    NACRE_HOME/sensitive/.partitions/ACCOUNT/PARTITION    (both hashed) hash of the rows without their partition
    NACRE_HOME/sensitive/.contents/CONTENT/ACCOUNT        (both hashed) the account and the data set that read it, and
                                                          whether it did so for a reason that the operator gave

A content is known by the bytes of its files, wherever they lie, and by its encoded rows in any order, of a tree by
those of all tables together; of a client of a
federation each file is a content by itself too, and so is the table of users beside their rows. A table that lies
elsewhere and was encoded is known by its rows alone, so that it is fetched once. What a discovery reads is known by the
values of the columns that its draft marks too, in any order. This notices a file that is copied, linked, fetched,
renamed or given a new date every night, also under a changed schema; and the same rows in another format, or from a
database, under the same columns in any order. It does not notice data of which one row was changed and that come in
another order of bytes, rows of users of which one unit takes fewer than another, in other files, other files of which a
discovery reads other columns, or a client of a federation the same rows, what a client reads of a database server, what
another home ingested, or anything once the sensitive zone was deleted. A table of a database in a file is also known by
its name and the bytes of the file.

What an ingest read is hashed once, and named beside its rows: a place elsewhere may hold something else afterwards.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_bytes

from pyarrow.fs import LocalFileSystem

from dpmodels.artifact import aside, exclusive, sync, write_bytes
from dpmodels.codec.fingerprint import Fingerprint, digest_of_documents
from dpmodels.codec.tree_fingerprint import TreeFingerprint
from dpmodels.contract.discovery.discovery import Discovery
from dpmodels.contract.schema import Schema
from dpmodels.errors import ContentCharged, DataError, LedgerError
from dpmodels.ledger.ledger import Ledger
from dpmodels.methods.kinds import TABLES
from dpmodels.privacy import PrivacyUnit
from dpmodels.reading.data_files import DataFile, is_local
from dpmodels.reading.database import Query, tables_of
from dpmodels.reading.load import RawRows
from dpmodels.reading.tree_files import place_of, places_of
from dpmodels.releases.contract import Contract, tree_of
from tasks.engine.encoded import EncodedPart, EncodedTable
from tasks.engine.engines import Threads, cores
from tasks.run.folders import make_private
from tasks.run.home import ledger_of
from tasks.run.settings import Settings
from tasks.run.source import files_of
from tasks.run.store import Run

SECRET_BYTES = 32
AGAIN = "again"
"""Marks a reader whom another account's readers do not bar, as the operator gave a reason."""
TELLING = 128
"""Different rows of a tree's root that make it a content by itself: two data sets do not have them by chance."""
CONTENTS = "contents"
"""Holds the hashes of what an ingest read, in the folder of its rows."""


def partition_account(parent: str, partition: object) -> str:
    """Name the account of a partition by its parent, its column and its value."""
    return f"{parent}/{partition}"


def refuse_charged(run: Run, encoded: Path | None = None) -> None:
    """Remember what a run has read, and refuse what was read for another account's data set; charges nothing.

    What an account spends adds up with what those above it spend, so it is no other budget for the same promise. One of
    the same data set by another unit is, once it was charged: what a user's account spends it spends on each record
    too. Children of one account count as disjoint, so they are: the same content in two of them would be charged
    once. Partitions are the exception, as one file has the rows of many (``refuse_repeated``). What an account has read
    that was never opened does not count: nothing was charged. Whoever read a content first, and needed no reason, is
    not barred by those who had one.

    Args:
        run: the run that has read its data.
        encoded: the folder of the encoded rows, where there are any.

    Privacy: the hashes stay in the sensitive zone. A refusal shows that two contents are the same, as a gate shows that
        a table breaks its schema.

    Raises:
        ContentCharged: an account whose costs do not add up with this run's has read the same for another data set,
            and the operator did not say why it is read again.
    """
    ledger, zone = ledger_of(run), run.home / "sensitive"
    secret = _secret(zone / ".partitions")
    payers, dataset = _payers(run, ledger), run.plan.release.contract.name
    same = {dataset, dataset.partition(".")[0]}  # earlier versions named the federation for each of its clients
    records = [zone / ".contents" / content / _key(payers[0]) for content in _contents(run, encoded, secret)]
    uncharged = [path for path in records if not path.exists() or not _is_open(ledger, payers[0])]
    first = {path.parent for path in records if path not in uncharged and not _reader(path)[2:]}
    for path in records:  # all before any of the others is read: of two at once one sees both
        make_private(path.parent)
        is_for_a_reason = path.parent not in first and (run.settings.again or _reader(path)[2:])
        _write(path, "\n".join([payers[0], dataset, *([AGAIN] if is_for_a_reason else [])]).encode())
    others = [other for path in records for other in path.parent.glob("[!.]*")]
    for other in sorted(others, key=lambda path: (len(_reader(path)), path)):  # those without a reason first
        account, name, *reason = _reader(other)
        adds_up = account in payers or payers[0] in _above(ledger, account)
        if adds_up or run.settings.again or not _is_open(ledger, account) or (reason and other.parent in first):
            continue
        if name in same and not ledger.is_charged(account):
            continue
        for path in uncharged:
            path.unlink()
        raise ContentCharged(dataset, name, account)


def contents_of(run: Run) -> set[str]:
    """Return the hashes of all that a run's ingest read, of a tree as one, since trees share tables; or nothing."""
    path = run.sensitive / "encoded" / CONTENTS
    hashes = set(path.read_text(encoding="utf-8").split()) if path.exists() else set[str]()
    return {" ".join(sorted(hashes))} if hashes and run.plan.release.contract.kind == "tree" else hashes


def _reader(path: Path) -> list[str]:
    """Return which account read a content and for which data set, and `AGAIN` where that had a reason; or nothing."""
    return path.read_text(encoding="utf-8").split("\n") if path.exists() else []


@contextmanager
def not_charged_since(run: Run, encoded: Path | None = None) -> Iterator[None]:
    """Refuse what another account was charged for since a run read it, and keep others from a charge meanwhile.

    An account counts once it is open, and that of a run that opens one is open from its charge on.

    Raises:
        ContentCharged: as for ``refuse_charged``.
    """
    make_private(zone := run.home / "sensitive" / ".contents")
    with exclusive(zone / "first-charge"):
        refuse_charged(run, encoded)
        yield


def refuse_repeated(run: Run, encoded: Path) -> None:
    """Remember a digest of a partition's rows, and refuse rows of the account's other partitions; charges nothing.

    Privacy: the digest stays in the sensitive zone. A refusal shows that two partitions are the same, as a gate shows
        that a table breaks its schema.

    Raises:
        DataError: another partition of the same account had the same rows.
    """
    schema, account = run.plan.release.contract, run.settings.account
    partition = schema.partition
    if partition is None or partition.value is None or not account.endswith(partition_account("", partition)):
        return
    zone = run.home / "sensitive" / ".partitions"
    folder = zone / _key(account.removesuffix(partition_account("", partition)))
    make_private(folder)
    mine, digest = folder / _key(str(partition)), _rows(run, encoded, _secret(zone))[0]
    _write(mine, digest.encode())  # before reading the others: of two at once, at least one sees the other
    for other in sorted(folder.glob("[!.]*")):
        if other != mine and other.read_bytes() == digest.encode():
            mine.unlink()
            raise DataError("", "the partition has the rows of another partition of its account; nothing was charged")


def _payers(run: Run, ledger: Ledger) -> list[str]:
    """Return the account that a run is charged to and those above it, nearest first, without that of a partition."""
    name, opens = run.settings.account, run.settings.opens
    terms = opens or ledger.account(name)
    above = [terms.parent, *_above(ledger, terms.parent)] if terms.parent else []
    return above if terms.partition else [name, *above]


def _above(ledger: Ledger, account: str) -> Iterator[str]:
    """Yield the accounts above one, nearest first."""
    while _is_open(ledger, account) and (account := ledger.account(account).parent):
        yield account


def _is_open(ledger: Ledger, account: str) -> bool:
    try:
        return bool(ledger.account(account))
    except LedgerError:
        return False


def _contents(run: Run, encoded: Path | None, secret: bytes) -> list[str]:
    """Return the hashes of the files that a run reads, and that of its encoded rows."""
    if encoded is not None and (encoded / CONTENTS).exists():
        return (encoded / CONTENTS).read_text(encoding="utf-8").split()
    settings, contents = run.settings, set[str]()
    contract = run.plan.release.contract
    is_encoded_table = encoded is not None and (contract.is_table or contract.kind == "tree")
    if settings.query and settings.data:
        contents |= _tables(settings.data, settings.query, secret)
    data_places = () if settings.query else _places(settings, contract, encoded)
    for data in filter(None, (*data_places, settings.parents)):
        if is_local(data) or not is_encoded_table:
            contents |= _files(data, secret, each=bool(settings.federation))
    if contract.kind == "discovery":
        contents.update(_raw_rows(settings, contract, secret))
    if encoded is not None:
        contents.update(_rows(run, encoded, secret))
        _write(encoded / CONTENTS, "\n".join(sorted(contents)).encode())
    return sorted(contents)


def _places(settings: Settings, contract: Contract, encoded: Path | None) -> list[str]:
    """Return where a run's data lie; tables of a tree without rows are left out, since all such tables are alike."""
    places = places_of(settings.data, contract)
    if contract.kind != "tree" or encoded is None:
        return places
    rows = Counter[str]()
    for records in EncodedTable(encoded, contract):
        rows.update({name: records.rows(name) for name in contract.tables})
    return [place for name, place in zip(contract.tables, places, strict=True) if rows[name]]


def _files(data: str, secret: bytes, each: bool = False) -> set[str]:
    """Hash the bytes of all files of a place together, whatever their names and order; and of ``each`` by itself.

    Raises:
        DataError: they lie elsewhere, and cannot be read once more.
    """

    def digest(file: DataFile) -> bytes:
        return file.digest(lambda: hashlib.blake2b(key=secret, digest_size=32))

    try:
        digests = sorted(Threads(cores()).map(digest, files_of(data)))
    except DataError:
        if not is_local(data):
            raise
        digests = []  # a file that went away meanwhile is not what was read
    sets = [digests, *([one] for one in digests if each)]
    return {hashlib.blake2b(b"".join(one), key=secret, digest_size=32).hexdigest() for one in sets if one}


def _tables(data: str, query: str, secret: bytes) -> set[str]:
    """Hash each table that a query reads of a database in a file: its name, and the bytes of the whole file."""
    names, files = tables_of(Query(data, query))
    parts = [DataFile(LocalFileSystem(), str(file), data) for file in files]
    whole = b"".join(part.digest(lambda: hashlib.blake2b(key=secret, digest_size=32)) for part in parts)
    return {hashlib.blake2b(whole + name.encode(), key=secret, digest_size=32).hexdigest() for name in names}


def _raw_rows(settings: Settings, contract: Discovery, secret: bytes) -> Iterator[str]:
    """Hash all values of the columns that a discovery reads, table by table, whatever order rows are in; all rows.

    They are hashed as the file has them, however a schema says that they are written, and held to no marks then.
    """
    decimals = None if settings.text_forms else settings.decimals
    every_row = contract.reading(contract.wanted if decimals is None else decimals)
    parts: list[tuple[str | Query, Schema, Iterable[str]]] = [
        (place_of(settings.data, name), contract.reading_of(name, columns if decimals is None else decimals), columns)
        for name in contract.tables
        if (columns := contract.wanted_of(name))
    ]
    whole = (settings.source.rows, every_row.model_copy(update={"unit": PrivacyUnit()}), contract.wanted)
    for rows, reading, wanted in parts or [whole]:
        fingerprint = Fingerprint(None, secret)
        for batch in RawRows(rows, reading, settings.batch_rows):
            fingerprint.add_raw(batch, wanted)
        yield fingerprint.digest


def _rows(run: Run, encoded: Path, secret: bytes) -> list[str]:
    """Hash the encoded rows of a table or of documents, whatever order they come in.

    Rows of a table have two hashes: by the order of the schema's columns, which earlier versions remembered, and by
    that of their names. A tree has one of all tables. Earlier versions hashed the rows of its root alone, which are no
    content by themselves where few of them differ: then only the numbers of equal units would be compared.
    """
    contract = run.plan.release.contract
    if contract.kind not in (*TABLES, "tree"):
        return [digest_of_documents(encoded, secret)]
    tree = tree_of(contract) if contract.kind == "tree" else None
    schema = tree.schema_of(tree.root) if tree else run.plan.release.table

    def fresh() -> list[Fingerprint | TreeFingerprint]:
        alone = [Fingerprint(schema, secret, by_name, TELLING if tree else 0) for by_name in (False, True)]
        return [*alone, *([TreeFingerprint(tree, secret)] if tree else [])]

    def read(part: EncodedPart) -> list[Fingerprint | TreeFingerprint]:
        fingerprints = fresh()
        for records in part:
            for one in fingerprints:
                one.add(records.of(tree.root) if tree and isinstance(one, Fingerprint) else records)
        return fingerprints

    wholes = fresh()
    for fingerprints in Threads(run.settings.threads or cores()).map(read, EncodedTable(encoded, contract).parts()):
        for whole, fingerprint in zip(wholes, fingerprints, strict=True):
            whole.merge(fingerprint)
    return [one.digest for one in wholes if tree is None or isinstance(one, TreeFingerprint) or one.kinds >= TELLING]


def _key(name: str) -> str:
    """Turn any name into the name of a file."""
    return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()


def _secret(zone: Path) -> bytes:
    """Return the zone's secret; whoever comes first makes it."""
    file = zone / "secret"
    if not file.exists():
        make_private(zone)
        with aside(file) as part:  # which a sweep leaves alone as long as this process lives
            _write(part, token_bytes(SECRET_BYTES))
            with suppress(FileExistsError):
                os.link(part, file)
        sync(zone)
    return file.read_bytes()


def _write(path: Path, content: bytes) -> None:
    """Write a small file that only its owner can read, so that it is either whole or absent."""
    write_bytes(path, content, 0o600)
