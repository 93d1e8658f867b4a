"""A SQLite ledger that cannot be written: on a medium that is read-only, or in a folder that belongs to somebody else.

SQLite keeps the newest entries in a journal beside the file while a process has it open, and after a crash. Even to
read, it would make files there. So a file without a journal is opened as one that does not change, and whether this
was true is checked after each reading. A journal can be read only with the index that belongs to it.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL

from dpmodels.errors import LedgerError

JOURNALS = ("-wal", "-journal")


@dataclass(frozen=True)
class Frozen:
    """The file of such a ledger, and what it and its journals were when it was opened."""

    file: Path
    stamp: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, file: Path) -> "Frozen | None":
        """Return the ledger's file if it or its folder cannot be written, otherwise None.

        Raises:
            LedgerError: its newest entries are in a journal that cannot be read without being recovered.
        """
        if os.access(file, os.W_OK) and os.access(file.parent, os.W_OK):
            return None
        snapshot = cls(file, _stamp(file))
        if snapshot.has_journal and not _beside(file, "-shm").exists():
            raise snapshot.unrecovered()
        return snapshot

    @property
    def url(self) -> URL:
        """The address under which SQLite makes no file beside it."""
        how = {"mode": "ro"} if self.has_journal else {"mode": "ro", "immutable": "1"}
        return URL.create("sqlite", database=self.file.absolute().as_uri(), query={**how, "uri": "true"})

    @property
    def has_journal(self) -> bool:
        """Tell whether entries are in a journal beside the file."""
        return any(size for _, size in self.stamp[1:])

    def check_unchanged(self) -> None:
        """Refuse what was just read if somebody else wrote the file meanwhile.

        Raises:
            LedgerError: the file is another one, or has a journal now.
        """
        if not self.has_journal and _stamp(self.file) != self.stamp:  # with a journal, SQLite sees to it
            raise LedgerError(f"the ledger {self.file} was written while it was read; try again")

    def unrecovered(self) -> LedgerError:
        """Return the error for a journal whose index is missing or stale."""
        return LedgerError(
            f"the newest entries of the ledger {self.file} are in a journal beside it, which must be recovered first: "
            "copy all files of its folder to where they can be written, and look at the ledger there"
        )

    def refusal(self, why: str) -> LedgerError:
        """Return the error for what cannot be done with such a ledger."""
        return LedgerError(f"the ledger {self.file} cannot be written here, only looked at; {why}")


def _stamp(file: Path) -> tuple[tuple[int, int], ...]:
    """Return time and size of a file and of its journals; zeros for one that is not there."""
    return tuple(_time_and_size(_beside(file, ending)) for ending in ("", *JOURNALS))


def _time_and_size(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _beside(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)
