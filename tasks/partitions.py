"""What the sensitive zone remembers of an account's partitions, so that no two partitions hold the same rows.

    NACRE_HOME/sensitive/.partitions/secret               32 bytes, made once
    NACRE_HOME/sensitive/.partitions/ACCOUNT/PARTITION    (both hashed) keyed hash of the rows without their partition

This notices accidents: a file that is copied, linked or given a new date every night. It does not notice a table of
which one row was changed, a table that another home ingested, or anything once the sensitive zone was deleted.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from secrets import token_bytes, token_hex

from dpmodels.artifact import sync, write_whole
from dpmodels.errors import DataError
from dpmodels.schema.fingerprint import Fingerprint
from tasks.encoded import EncodedPart, EncodedTable
from tasks.engine import Threads, cores
from tasks.store import Run, make_private

SECRET_BYTES = 32


def partition_account(parent: str, partition: object) -> str:
    """Name the account of a partition by its parent, its column and its value."""
    return f"{parent}/{partition}"


def refuse_repeated(run: Run, encoded: Path) -> None:
    """Remember a digest of a partition's rows, and refuse rows of the account's other partitions; charges nothing.

    Privacy: the digest stays in the sensitive zone. A refusal shows that two partitions are the same, as a gate shows
        that a table breaks its schema.

    Raises:
        DataError: another partition of the same account had the same rows.
    """
    partition = run.plan.release.table.partition
    own = run.settings.account
    if partition is None or partition.value is None or not own.endswith(partition_account("", partition)):
        return
    zone = run.home / "sensitive" / ".partitions"
    folder = zone / _key(own.removesuffix(partition_account("", partition)))
    make_private(folder)
    mine, digest = folder / _key(str(partition)), _digest(run, encoded, _secret(zone))
    _write(mine, digest.encode())  # before reading the others: of two at once, at least one sees the other
    for other in sorted(folder.glob("[!.]*")):
        if other != mine and other.read_bytes() == digest.encode():
            mine.unlink()
            raise DataError("", "the partition has the rows of another partition of its account; nothing was charged")


def _digest(run: Run, encoded: Path, secret: bytes) -> str:
    schema = run.plan.release.table

    def read(part: EncodedPart) -> Fingerprint:
        found = Fingerprint(schema, secret)
        for records in part:
            found.add(records)
        return found

    whole = Fingerprint(schema, secret)
    for found in Threads(run.settings.threads or cores()).map(read, EncodedTable(encoded, schema).parts()):
        whole.merge(found)
    return whole.digest


def _key(name: str) -> str:
    """Turn any name into the name of a file."""
    return hashlib.blake2b(name.encode(), digest_size=16).hexdigest()


def _secret(zone: Path) -> bytes:
    """Return the zone's secret; whoever comes first makes it."""
    place = zone / "secret"
    if not place.exists():
        made = zone / f".secret-{token_hex(8)}"
        _write(made, token_bytes(SECRET_BYTES))
        with suppress(FileExistsError):
            os.link(made, place)
        made.unlink()
        sync(zone)
    return place.read_bytes()


def _write(path: Path, content: bytes) -> None:
    """Write a small file that only its owner can read, so that it is either whole or absent."""

    def write(part: Path) -> None:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)

    write_whole(path, write)
