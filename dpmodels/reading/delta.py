"""Delta tables through deltalake, which is given the log alone: the data files are opened by nacre."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from dpmodels.errors import DataError
from dpmodels.reading.addresses import LOG, Address
from dpmodels.reading.data_files import DataFile, unescaped
from dpmodels.reading.open_tables import OUTSIDE, Root

LIBRARY = "deltalake"
AS_THEY_LIE = {"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "appendOnly", "invariants", "domainMetadata"}
"""Features of a table that leave all rows of its files as they are, under their names."""
LOG_NAME = re.compile(r"[\w-][\w.-]*", re.ASCII)
VERSION = re.compile(r"(\d{20})\.[\w.-]+", re.ASCII)
"""The name of a commit or a checkpoint."""
SCRAMBLED = 20
"""Letters at the end of a vector's name that stand for its number; before them may stand a folder."""
OTHERWISE = re.compile(r"[?#%\\]|^[\w+.-]*:|(^|/)(\.{0,2}(/|$)|\s)|\s(/|$)")
"""What makes of a name another one where deltalake takes it for a URL: the file that nacre checked is not read then."""
ODD_NAME = (
    "{} has deletion vectors, or columns that its files call otherwise, and a file whose name may lead out of its own "
    "folder where it is read as a URL: give a table that was written anew (REORG TABLE … APPLY (PURGE))"
)
ELSEWHERE = (
    "{} has deletion vectors, or columns that its files call otherwise, which are read where the table is on this "
    "machine: give a copy of it, or one that was written anew (REORG TABLE … APPLY (PURGE))"
)


def files_of(address: Address, root: Root) -> list[DataFile]:
    """List the files of a version: Parquet files as they lie, or the table as one that deltalake scans."""
    with _log(root) as folder:
        table = _table(folder, address, root)
        actions: pa.Table = root.guarded(lambda: pa.table(table.get_add_actions()), LIBRARY)
        columns = tuple(field.name for field in _types(table, root))
        is_plain = _is_plain(table)
    names = [unescaped(name) for name in actions["path"].to_pylist()]
    paths = [root.within(name) for name in names]
    root.check_each_once(paths)
    if not is_plain:
        if not root.is_local:
            raise DataError("", ELSEWHERE.format(root.uri))
        if any(OTHERWISE.search(name) or not name.isprintable() for name in names):
            raise DataError("", ODD_NAME.format(root.uri))
        _check_vectors(root)
        scanned = ("delta", tuple(paths))
        return [DataFile(root.system, root.path, root.uri, scanned=scanned, snapshot=str(table.version()))][
            : len(paths)
        ]
    keys = _keys(actions)
    files = [DataFile(root.system, path, root.uri, key, columns) for path, key in zip(paths, keys, strict=True)]
    return sorted(files, key=lambda file: file.path)


def pinned(address: Address, root: Root) -> Address:
    """Name the newest version, unless one is named, which the log must have."""
    with _log(root) as folder:
        return replace(address, snapshot=str(_table(folder, address, root).version()))


def types_of(file: DataFile) -> pa.Schema:
    """Return the names and types of the version's columns."""
    root = Root(file.system, file.path, file.uri)
    return _types(_table(file.path, Address(file.path, "delta", snapshot=file.snapshot), root), root)


def read(file: DataFile, _: int) -> Iterator[pa.RecordBatch]:
    """Read the rows of a version, without those that were deleted."""
    root = Root(file.system, file.path, file.uri)
    table = _table(file.path, Address(file.path, "delta", snapshot=file.snapshot), root)
    yield from pa.RecordBatchReader.from_stream(table.scan())


@contextmanager
def _log(root: Root) -> Iterator[str]:
    """Lend a folder with the table's log, of which elsewhere a copy is made: deltalake reaches no network."""
    if root.is_local:
        root.within(LOG)
        if re.search(r"[%\\]", root.path):  # deltalake would open another one
            raise DataError("", f"{root.uri} must lie in a folder without % and backslash in its path; rename it")
        yield root.path
        return
    with TemporaryDirectory(prefix="nacre-") as folder:
        (Path(folder) / LOG).mkdir()
        for info in root.system.get_file_info(pafs.FileSelector(f"{root.path}/{LOG}", allow_not_found=True)):
            name = info.path.rpartition("/")[2]
            if info.type == pafs.FileType.File and LOG_NAME.fullmatch(name):
                with root.system.open_input_file(info.path) as source, (Path(folder) / LOG / name).open("wb") as copy:
                    source.download(copy)
        yield folder


def _table(folder: str, address: Address, root: Root) -> DeltaTable:
    """Open a version, which the log must have: deltalake looks for one that lies far ahead without an end."""
    version = int(address.snapshot) if address.snapshot else None
    names = root.guarded(lambda: os.listdir(f"{folder}/{LOG}"), LIBRARY)
    versions = [int(match[1]) for match in map(VERSION.fullmatch, names) if match]
    if version is not None and version not in versions:
        raise DataError("", f"{root.uri} has no such version in its log; name one that it has, or none for the newest")
    return root.guarded(lambda: DeltaTable(folder, version=version), LIBRARY)


def _types(table: DeltaTable, root: Root) -> pa.Schema:
    return root.guarded(lambda: pa.schema(table.schema().to_arrow()), LIBRARY)


def _is_plain(table: DeltaTable) -> bool:
    """Tell whether all rows of the files are rows of the table, and columns have the same names in both."""
    protocol, configuration = table.protocol(), table.metadata().configuration
    mapped = configuration.get("delta.columnMapping.mode", "none") != "none"
    return set(protocol.reader_features or ()) <= AS_THEY_LIE and not mapped


def _keys(actions: pa.Table) -> list[tuple[tuple[str, str | None], ...]]:
    """Return for each file the values of the columns that the table is partitioned by, as text."""
    if "partition" not in actions.column_names:
        return [()] * len(actions)
    values = actions["partition"].combine_chunks()
    names = [field.name for field in values.type]
    columns = [values.field(name).cast(pa.string()).to_pylist() for name in names]
    return [tuple(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _check_vectors(root: Root) -> None:
    """Refuse a log that names a deletion vector outside of the table's folder, of whatever version.

    Raises:
        DataError: see above, or the log cannot be read.
    """

    def leads_out(vector: dict[str, Any] | None) -> bool:
        kind, name = (vector or {}).get("storageType", "i"), (vector or {}).get("pathOrInlineDv", "")
        return kind not in ("i", "u") or (kind == "u" and not name[:-SCRAMBLED].isalnum() and len(name) > SCRAMBLED)

    if any(leads_out(vector) for vector in root.guarded(lambda: list(_vectors(Path(root.path) / LOG)), LIBRARY)):
        raise DataError("", OUTSIDE.format(root.uri))


def _vectors(log: Path) -> Iterator[dict[str, Any] | None]:
    """Yield the deletion vectors that the commits and the checkpoints of a log name."""
    for file in log.rglob("*.json"):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield (json.loads(line).get("add") or {}).get("deletionVector")
    for file in log.rglob("*.parquet"):
        with pq.ParquetFile(file) as checkpoint:
            if "add" in checkpoint.schema_arrow.names:
                for add in checkpoint.read(columns=["add"])["add"].to_pylist():
                    yield (add or {}).get("deletionVector")
