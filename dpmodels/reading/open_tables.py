"""Delta and Iceberg tables as the Parquet files of one snapshot, or as batches where only their library can tell rows.

What a table's metadata says is not believed: no path in it leads out of the table's folder, whoever wrote it there.

Where all of a file's rows are the table's, under the same names, the one reader of Parquet reads it. Where some were
deleted, or a column was renamed, the file is marked as ``scanned``, and the library of its kind yields the rows.
"""

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pyarrow as pa
import pyarrow.fs as pafs

from dpmodels.errors import DataError, NacreError
from dpmodels.late import check_installed
from dpmodels.reading.addresses import LOG, METADATA, Address, address_of
from dpmodels.reading.data_files import DataFile, is_uri, open_system
from dpmodels.reading.links import check_once

LIBRARIES = {"delta": "deltalake", "iceberg": "pyiceberg", "duckdb": "duckdb"}
READERS = {"delta": "delta", "iceberg": "iceberg", "duckdb": "duckdb_tables"}
OUTSIDE = "{} names a file outside of the table's folder; a table is read if all of its files lie in its own folder"
UNREADABLE = "{} cannot be read as a table: its metadata is damaged, a file is gone, or it uses what {} does not know"


T = TypeVar("T")


@dataclass(frozen=True)
class Root:
    """The folder of a table; ``uri`` is how the operator named the table."""

    system: pafs.FileSystem
    path: str
    uri: str

    @property
    def is_local(self) -> bool:
        """Whether the folder is on this machine."""
        return isinstance(self.system, pafs.LocalFileSystem)

    def within(self, name: str) -> str:
        """Return the path of a file by its name below the folder.

        Raises:
            DataError: the name, or a link, leads out of the folder.
        """
        path = f"{self.path}/{name}"
        is_plain = not any(part in ("", ".", "..") for part in name.split("/")) and not re.search(r"[\\\0]", name)
        if is_plain and self.is_local:
            is_plain = os.path.realpath(path).startswith(f"{os.path.realpath(self.path)}{os.sep}")
        if not is_plain:
            raise DataError("", OUTSIDE.format(self.uri))
        return path

    def guarded(self, call: Callable[[], T], library: str) -> T:
        """Return what a library answers; what it says of a fault may quote the metadata, which is not passed on.

        Raises:
            DataError: it fails.
        """
        try:
            return call()
        except (NacreError, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException:  # of any kind that the library has; where it is written in Rust, a panic is no Exception
            pass
        raise DataError("", UNREADABLE.format(self.uri, library))

    def check_each_once(self, paths: Sequence[str]) -> None:
        """Refuse a file that a table lists twice.

        Raises:
            DataError: its rows would count twice, or a file is gone.
        """
        if len(set(paths)) < len(paths):
            raise DataError("", f"{self.uri} lists the same file twice: its rows would count twice")
        if self.is_local:
            check_once([Path(path) for path in paths], self.uri)


def files_of_table(address: Address, uri: str) -> list[DataFile]:
    """List the files of one snapshot of a Delta or an Iceberg table.

    Raises:
        NacreError: the library is not installed.
        DataError: there is no such table or snapshot, the table cannot be read or holds no files, or its metadata
            leads out of its folder.
    """
    table = located(address, uri)
    files: list[DataFile] = reader_of(table.kind).files_of(table, root_of_table(table, uri))
    if not files:
        raise DataError("", f"{uri} does not exist or holds no files")
    return files


def pinned(uri: str) -> str:
    """Name the snapshot that an open table has now, so that a run reads no other; other places stay as they are.

    Raises:
        NacreError: as for ``files_of_table``.
    """
    address = address_of(uri)
    if not address.kind and "*" not in uri and "{" not in uri and _has_log(uri):
        address = Address(uri, "delta")
    if address.kind not in ("delta", "iceberg", "catalog"):
        return uri
    table = located(address, uri)
    return str(reader_of(table.kind).pinned(table, root_of_table(table, uri)))


def types_of(file: DataFile) -> pa.Schema:
    """Return the names and types of the columns of a table that its library reads; no row is read.

    Raises:
        NacreError: the library is not installed, or the table cannot be read.
    """
    reader = reader_of(file.format)
    return _root(file).guarded(lambda: reader.types_of(file), LIBRARIES[file.format])


def read_table(file: DataFile, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Read the rows of a table by its library, in batches.

    Raises:
        NacreError: as for ``types_of``.
    """
    reader, root, library = reader_of(file.format), _root(file), LIBRARIES[file.format]
    batches: Iterator[pa.RecordBatch] = root.guarded(lambda: iter(reader.read(file, batch_rows)), library)
    while (batch := root.guarded(lambda: next(batches, None), library)) is not None:
        yield batch


def reader_of(kind: str) -> ModuleType:
    """Return the module that reads a kind of table.

    Raises:
        NacreError: its library is not installed.
    """
    check_installed([LIBRARIES[kind]])
    return import_module(f"dpmodels.reading.{READERS[kind]}")


def root_of_table(address: Address, uri: str) -> Root:
    """Return the folder of a table; of an Iceberg table it is that in which its ``metadata`` lies.

    Raises:
        DataError: the file of an Iceberg table is none, or lies in no such folder.
    """
    system, path = open_system(address.base)
    path = path.rstrip("/")
    if address.kind == "iceberg":
        folder, _, name = path.rpartition("/")
        if not (name.endswith(METADATA) and folder.endswith("/metadata")):
            how = f"give its file metadata/*{METADATA}, or its catalog as iceberg:CATALOG.db#NAMESPACE.TABLE"
            raise DataError("", f"{uri} is no Iceberg table; {how}")
        path = folder.removesuffix("/metadata")
    return Root(system, path, uri)


def _root(file: DataFile) -> Root:
    return Root(file.system, file.path, file.uri)


def located(address: Address, uri: str) -> Address:
    """Look an Iceberg table up in its catalog, which is opened to be read; others are where they are said to be.

    Raises:
        DataError: the catalog cannot be read, or has no such table.
    """
    if address.kind != "catalog":
        return address
    namespace, _, table = address.table.rpartition(".")
    lines: list[tuple[str]] | None = None
    if not is_uri(address.base) and Path(address.base).is_file():
        file = f"{Path(address.base).absolute().as_uri()}?mode=ro"
        query = "select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?"
        try:
            with closing(sqlite3.connect(file, uri=True)) as catalog:
                lines = catalog.execute(query, (namespace, table)).fetchall()
        except sqlite3.Error:
            lines = None
    if lines is None:
        raise DataError("", f"{uri} cannot be read: a catalog is a SQLite file that Iceberg's SQL catalog made")
    if len(lines) != 1 or not isinstance(lines[0][0], str):
        raise DataError("", f"{uri} names no table, or several: give NAMESPACE.TABLE behind the catalog's file")
    path = local_path(lines[0][0])
    if not path.startswith("/"):  # whoever wrote the catalog would choose which store is sent this worker's credentials
        how = f"give its metadata file itself, as in s3://bucket/visits/metadata/*{METADATA}"
        raise DataError("", f"{uri} is a table that the catalog says lies elsewhere than on this machine; {how}")
    return Address(path, "iceberg", snapshot=address.snapshot)


def local_path(location: str) -> str:
    """Return the path that a location on this machine is, and another one as nacre writes it."""
    for start, instead in (("file://", ""), ("file:", ""), ("s3a:", "s3:"), ("s3n:", "s3:"), ("abfss:", "abfs:")):
        if location.startswith(start):
            return instead + location.removeprefix(start)
    return location


def _has_log(uri: str) -> bool:
    """Tell whether a Delta table's log lies in a folder; of a place that cannot be reached this is not known."""
    try:
        system, path = open_system(uri)
        return bool(system.get_file_info(f"{path.rstrip('/')}/{LOG}").type == pafs.FileType.Directory)
    except (NacreError, OSError, pa.ArrowException):
        return False
