"""Where rows come from: files and tables, by a path or a URI, or a database, by a query and this process's password."""

import os
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from pyarrow.fs import LocalFileSystem

from dpmodels.errors import DataError, NacreError
from dpmodels.reading.addresses import address_of
from dpmodels.reading.data_files import DataFile, check_place, find_files, is_local, is_there, is_uri, settled
from dpmodels.reading.database import Query, check_query, settled_database
from dpmodels.reading.open_tables import pinned
from dpmodels.reading.statement import tied
from dpmodels.reading.tree_files import NAME
from tasks.engine.progress import LOG

PASSWORD = "NACRE_DATABASE_PASSWORD"
"""Holds the password of a database, where its own client does not take it from elsewhere; it is written nowhere."""

TIED = (
    "warning: a record is a row of the query's answer, and %s may make one row of it come of several records, or push "
    "others out: then one person more changes more rows than the guarantee hides (docs/inputs.md)"
)


@dataclass(frozen=True)
class Source:
    """Where rows come from: a path, a pattern or a URI of files; or of a database, where there is a query."""

    data: str
    query: str = ""

    def check(self, name: str = "data") -> None:
        """Refuse a source that no run can read, and one that holds a secret, by its ``name``; no rows are opened.

        Raises:
            NacreError: the source holds a secret, is of an unknown kind, is a path where nothing is, or names a
                snapshot that the table of this machine does not have.
        """
        if self.query:
            check_query(self.data, self.query)
            if words := tied(self.query):
                LOG.warning(TIED, " and ".join(f"`{word}`" for word in words))
            return
        check_place(self.data, name)
        address = address_of(self.data)
        if is_uri(self.data) or "*" in self.data or NAME in self.data:
            return
        if not Path(address.base).exists():
            raise DataError("", f"{self.data} does not exist")
        if address.snapshot:
            pinned(self.data)

    @property
    def settled(self) -> "Source":
        """The source as it is found from any folder; of an open table the snapshot that it has now."""
        return Source(settled_database(self.data) if self.query else pinned(settled(self.data)), self.query)

    @property
    def is_there(self) -> bool:
        """Whether there are files; of a database that is known once it is asked."""
        return bool(self.query) or is_there(self.data)

    @property
    def rows(self) -> str | Query:
        """What the rows are read from."""
        return Query(self.data, self.query, os.environ.get(PASSWORD, "")) if self.query else self.data


def files_of(data: str) -> list[DataFile]:
    """Return the files that a path, a pattern or a URI leads to.

    Raises:
        DataError: they lie elsewhere, and cannot be listed or read.
    """
    try:  # those that are read: beside them may lie what changes every night
        return find_files(data)
    except NacreError:
        if not is_local(data):
            raise
    paths = [Path(name) for name in (glob(data, recursive=True) if "*" in data else [data])]
    files = {file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])}
    return [DataFile(LocalFileSystem(), str(file), data) for file in sorted(files) if file.is_file()]
