"""Write one table as a snapshot of a Delta or an Iceberg table: one commit, which names what the rows cost.

Privacy: post-processing.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from dpmodels.artifact import aside, left_by, make_folder, settle, sweep
from dpmodels.errors import DataError, InvalidArgument, NacreError, PathTaken, Unsuitable
from dpmodels.late import check_installed
from dpmodels.reading.addresses import Address
from dpmodels.reading.data_files import FAILURES, is_uri, open_system

Batches = Iterator[pa.RecordBatch]
SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.int64()}
WRITTEN_BY = "Synthetic rows that nacre exported; what they cost is in each commit, under the key nacre."
EXPORT = "export"
MARK = "nacre.manifestSha256"
"""The property by which an Iceberg table is known for one that nacre wrote."""
NOT_WRITTEN = "{} cannot be written: check that it may be, that nobody else writes it, and the credentials"
FOREIGN = "was not exported by nacre, or was changed since, so it is not replaced; name a new table"
OTHERWISE = "has other columns than the table of this hand-off; name a new table"


def write_delta(batches: Batches, address: Address, about: Mapping[str, str], replace: bool) -> str:
    """Write a Delta table, or its next version, and return where it is read; the commit's metadata says ``about``.

    A new table on this machine appears at once; elsewhere it is there once its log is, which comes last.

    Raises:
        NacreError: deltalake is not installed, the place is taken, or cannot be written.
    """
    check_installed(["deltalake"])
    from deltalake import CommitProperties, DeltaTable, write_deltalake

    target, options = _delta_target(address.base)
    system, path = open_system(address.base)
    exists = _exists(system, path, address.base, DeltaTable, options, replace)
    reader = _reader(batches, "Delta")
    if exists and pa.schema(DeltaTable(target, storage_options=options).schema().to_arrow()) != reader.schema:
        raise PathTaken(address.base, OTHERWISE)
    commit = CommitProperties(custom_metadata={"nacre": dict(about)})
    terms: dict[str, Any] = {"description": WRITTEN_BY, "commit_properties": commit, "storage_options": options}

    def write(destination: str) -> None:
        mode: Any = "overwrite" if exists else "error"
        write_deltalake(destination, reader, mode=mode, **terms)

    if exists or is_uri(target):
        _attempt(address.base, lambda: write(target), lambda: None if exists else system.delete_dir_contents(path))
    else:
        make_folder(Path(target).parent)
        sweep(Path(target).parent, ".", left_by(EXPORT), deep=False)
        with aside(Path(target), EXPORT) as part:
            _attempt(address.base, lambda: write(str(part)), lambda: None)
            settle(part, Path(target))
    return f"{address.base}@v{DeltaTable(target, storage_options=options).version()}"


def write_iceberg(batches: Batches, address: Address, about: Mapping[str, str], replace: bool) -> str:
    """Write an Iceberg table of a catalog in a SQLite file, or its next snapshot, and return where it is read.

    The table lies beside the catalog's file. Its properties and the snapshot's summary say ``about``.

    Raises:
        NacreError: pyiceberg is not installed, the place is taken, or cannot be written.
    """
    check_installed(["pyiceberg"])
    from pyiceberg.catalog.sql import SqlCatalog

    file, (namespace, _, _) = Path(address.base).absolute(), address.table.rpartition(".")
    if is_uri(address.base) or not namespace:
        raise InvalidArgument("to", str(address), "be iceberg:CATALOG.db#NAMESPACE.TABLE, with a file on this machine")
    make_folder(file.parent)
    properties = {f"nacre.{name}": value for name, value in about.items()}
    store = {"warehouse": f"file://{file.parent}", "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO"}
    reader = _reader(batches, "Iceberg")
    catalog = _attempt(str(address), lambda: SqlCatalog(_name(file), uri=f"sqlite:///{file}", **store), lambda: None)
    with closing(catalog):
        exists = _attempt(str(address), lambda: catalog.table_exists(address.table), lambda: None)
        if exists:
            _check_replaced(address, reader.schema, replace)
            changes, folder = catalog.load_table(address.table).transaction(), None
        else:
            catalog.create_namespace_if_not_exists(namespace)
            changes = catalog.create_table_transaction(address.table, reader.schema, properties=properties)
            folder = Path(str(changes.table_metadata.location).removeprefix("file://"))
            if folder.exists():
                raise PathTaken(folder, "already holds files; name a new table")

        def write() -> None:
            with changes:
                if exists:
                    changes.set_properties(properties)
                    changes.overwrite(reader, snapshot_properties=properties)
                else:
                    changes.append(reader, snapshot_properties=properties)

        _attempt(str(address), write, lambda: shutil.rmtree(folder, ignore_errors=True) if folder else None)
        metadata = catalog.load_table(address.table)
    return f"{metadata.metadata_location.removeprefix('file://')}@{metadata.metadata.current_snapshot_id}"


def _reader(batches: Batches, format_name: str) -> pa.RecordBatchReader:
    """Return the batches in types that a format has.

    Raises:
        Unsuitable: it has none for a column.
    """
    first = next(batches)
    fields = [pa.field(field.name, _stored(field, format_name)) for field in first.schema]
    types = pa.schema(fields)
    return pa.RecordBatchReader.from_batches(types, (batch.cast(types) for batch in chain([first], batches)))


def _stored(field: pa.Field, format_name: str) -> pa.DataType:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_time(kind) and format_name == "Iceberg":
        return pa.time64("us")
    if pa.types.is_time(kind) or pa.types.is_duration(kind) or pa.types.is_nested(kind):
        raise Unsuitable(f"column {field.name}: {format_name} has no type for {kind}; export to .parquet instead")
    return SIGNED.get(kind, pa.string() if pa.types.is_large_string(kind) else kind)


def _delta_target(base: str) -> tuple[str, dict[str, str]]:
    """Return where deltalake writes, and how it reaches that: by the credentials and the server of the environment."""
    if not is_uri(base):
        return str(Path(base).absolute()), {}
    if not base.startswith("s3://"):
        raise InvalidArgument("to", base, "be a folder on this machine, or s3://")
    target, _, region = base.partition("?region=")
    options = {"AWS_REGION": region} if region else {}
    if os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):  # open_system takes it from this machine alone
        options["AWS_ALLOW_HTTP"] = "true"
    return target, options


def _exists(
    system: pafs.FileSystem, path: str, base: str, kind: Any, options: Mapping[str, str], replace: bool
) -> bool:
    """Tell whether a Delta table is there that is to be replaced; anything else in its place is refused."""
    if not is_uri(base) and Path(base).is_symlink():
        raise PathTaken(base, "is a link; name the folder itself")
    entries = None
    with suppress(*FAILURES):
        entries = system.get_file_info(pafs.FileSelector(path, recursive=False, allow_not_found=True))
    if entries is None:
        raise DataError("", NOT_WRITTEN.format(base))
    if not entries:
        return False
    target, _ = _delta_target(base)
    if not replace:
        raise PathTaken(base, "already holds files; add --replace to make its next version, or name a new folder")
    opened = None
    with suppress(Exception):  # of any kind that deltalake has
        table = kind(target, storage_options=dict(options))
        with system.open_input_stream(f"{path}/_delta_log/{table.version():020}.json") as newest:
            notes = [json.loads(line).get("commitInfo", {}) for line in newest.read().splitlines()]
        opened = table.metadata().description if any("nacre" in note for note in notes) else ""
    if opened != WRITTEN_BY:
        raise PathTaken(base, FOREIGN)
    return True


def _check_replaced(address: Address, types: pa.Schema, replace: bool) -> None:
    """Refuse to replace an Iceberg table that nacre did not write, or that has other columns."""
    from dpmodels.reading.iceberg import TableIO, table_of
    from dpmodels.reading.open_tables import located, root_of_table

    if not replace:
        raise PathTaken(
            Path(address.base), "has such a table; add --replace to make its next snapshot, or name another"
        )
    metadata = located(address, str(address))
    table = table_of(metadata, TableIO(root_of_table(metadata, str(address))))
    if MARK not in table.properties or "py-io-impl" in table.properties:
        raise PathTaken(address.base, FOREIGN)
    kinds = [str(kind).replace("large_", "") for kind in table.schema().as_arrow().types]
    if (table.schema().column_names, kinds) != (types.names, [str(kind).replace("large_", "") for kind in types.types]):
        raise PathTaken(address.base, OTHERWISE)


def _name(file: Path) -> str:
    """Return the name under which the tables of a catalog's file are known; that of a new one is ``default``."""
    names = set[str]()
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as catalog:
        names = {name for (name,) in catalog.execute("select catalog_name from iceberg_tables")}
    return next(iter(names)) if len(names) == 1 else "default"


def _attempt(uri: str, act: Callable[[], Any], undo: Callable[[], Any]) -> Any:
    """Return what a library does, or undo it; what it says of a fault may quote paths and keys.

    Raises:
        DataError: it fails.
    """
    try:
        return act()
    except BaseException as error:
        with suppress(*FAILURES):
            undo()
        if isinstance(error, NacreError) or not isinstance(error, Exception):
            raise
    raise DataError("", NOT_WRITTEN.format(uri))
