"""Iceberg tables through pyiceberg, which is given no file system of its own: it reads within the table's folder."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import ArrowScan, PyArrowFile, PyArrowFileIO, pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.manifest import FileFormat
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import DataScan, FileScanTask, StaticTable

from dpmodels.errors import DataError
from dpmodels.reading.addresses import Address
from dpmodels.reading.data_files import DataFile
from dpmodels.reading.open_tables import OUTSIDE, Root, local_path

LIBRARY = "pyiceberg"
OPENED = 16
"""Files that are asked for their columns at the same time, as a store answers slowly."""


class TableIO(PyArrowFileIO):
    """Opens the files of one table by the file system that nacre opened, and no others.

    Locations in the metadata are absolute. Those that begin with what the table calls its own location are looked for
    in the folder where the table lies, so a copy of a table can be read as well.
    """

    def __init__(self, root: Root) -> None:
        super().__init__()
        self.root = root
        self.locations = {root.path} if root.is_local else set[str]()

    def path_of(self, location: str) -> str:
        """Return where a file lies, by its location in the metadata.

        Raises:
            DataError: it is outside of the table's folder.
        """
        spelled = local_path(location)
        for start in self.locations:
            if spelled.startswith(f"{start}/"):
                return self.root.within(spelled[len(start) + 1 :])
        raise DataError("", OUTSIDE.format(self.root.uri))

    def new_input(self, location: str) -> PyArrowFile:
        """Open a file of the table."""
        return PyArrowFile(location, self.path_of(location), self.root.system)

    def new_output(self, location: str) -> PyArrowFile:
        """Refuse to write."""
        raise DataError("", f"{self.root.uri} is only read")


def files_of(address: Address, root: Root) -> list[DataFile]:
    """List the files of a snapshot: Parquet files as they lie, or the table as one that pyiceberg scans."""
    scan, io = _opened(address, root)
    tasks = _tasks(scan, io)
    paths = [io.path_of(task.file.file_path) for task in tasks]
    root.check_each_once(paths)
    is_plain = all(not task.delete_files and task.file.file_format == FileFormat.PARQUET for task in tasks)
    if is_plain and _keeps(scan, io, paths):
        return [DataFile(root.system, path, root.uri) for path in paths]
    deletes = {io.path_of(file.file_path) for task in tasks for file in task.delete_files}
    metadata = f"{root.path}/metadata/{address.name}"
    scanned = ("iceberg", (*paths, *sorted(deletes)))
    return [DataFile(root.system, metadata, root.uri, scanned=scanned, snapshot=str(scan.snapshot_id))]


def pinned(address: Address, root: Root) -> Address:
    """Name the current snapshot, unless one is named."""
    return replace(address, snapshot=str(_opened(address, root)[0].snapshot_id))


def types_of(file: DataFile) -> pa.Schema:
    """Return the names and types of the snapshot's columns."""
    return schema_to_pyarrow(_again(file)[0].projection(), include_field_ids=False)


def read(file: DataFile, _: int) -> Iterator[pa.RecordBatch]:
    """Read the rows of one data file after another, without those that were deleted.

    Memory: pyiceberg holds the rows of one data file.
    """
    scan, io = _again(file)
    rows = ArrowScan(scan.table_metadata, io, scan.projection(), scan.row_filter)
    for task in _tasks(scan, io):
        yield from rows.to_record_batches([task])


def _again(file: DataFile) -> tuple[DataScan, TableIO]:
    folder, _, name = file.path.rpartition("/metadata/")
    address = Address(name, "iceberg", snapshot=file.snapshot)
    return _opened(address, Root(file.system, folder, file.uri))


def _opened(address: Address, root: Root) -> tuple[DataScan, TableIO]:
    """Open a table as of a snapshot, by default the current one."""
    io = TableIO(root)
    table = table_of(address, io)
    snapshot = int(address.snapshot) if address.snapshot else table.metadata.current_snapshot_id
    if snapshot is None or table.metadata.snapshot_by_id(snapshot) is None:
        raise DataError("", f"{root.uri} has no such snapshot, or none yet")
    return root.guarded(lambda: table.scan(snapshot_id=snapshot), LIBRARY), io


def table_of(address: Address, io: TableIO) -> StaticTable:
    """Open a table by its metadata file, within its folder.

    Raises:
        DataError: the file cannot be read.
    """
    root, name = io.root, address.name
    path = root.within(f"metadata/{name}")
    metadata: Any = root.guarded(lambda: FromInputFile.table_metadata(PyArrowFile(name, path, root.system)), LIBRARY)
    io.locations.add(local_path(metadata.location).rstrip("/"))
    return StaticTable(("nacre", "table"), metadata, path, io, NoopCatalog("nacre"))


def _tasks(scan: DataScan, io: TableIO) -> list[FileScanTask]:
    """List the data files of a snapshot by their names, and hold each path to the folder."""
    tasks = io.root.guarded(lambda: list(scan.plan_files()), LIBRARY)
    for task in tasks:
        for file in (task.file, *task.delete_files):
            io.path_of(file.file_path)
    return sorted(tasks, key=lambda task: str(task.file.file_path))


def _keeps(scan: DataScan, io: TableIO, paths: Sequence[str]) -> bool:
    """Tell whether each file has the snapshot's columns, of the same numbers, names and types, and no others.

    What the metadata says of earlier columns is not asked, since it may be forgotten.
    """
    metadata = scan.table_metadata

    def columns(schema: Any) -> set[tuple[int, str, str]]:
        return {(field.field_id, field.name, str(field.field_type)) for field in schema.fields}

    def columns_of(path: str) -> set[tuple[int, str, str]]:
        with io.root.system.open_input_file(path) as source:
            types = pq.read_schema(source)
        version = metadata.format_version
        return columns(pyarrow_to_schema(types, metadata.name_mapping(), version <= 2, version))

    now = columns(scan.projection())
    with ThreadPoolExecutor(OPENED) as pool:
        return io.root.guarded(lambda: all(each == now for each in pool.map(columns_of, paths)), LIBRARY)
