"""Open tables of the clinic's rows, as other tools write them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.kit.inputs import TABLE

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def delta(folder: Path, *tables: pa.Table, **options: Any) -> Path:
    """Write a Delta table of a commit for each table."""
    from deltalake import write_deltalake

    for table in tables or (TABLE,):
        write_deltalake(folder, table, mode="append", **options)
    return folder


def catalog_of(folder: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir(parents=True, exist_ok=True)
    return SqlCatalog("clinic", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=str(folder))


def iceberg(folder: Path, *tables: pa.Table) -> Any:
    """Write an Iceberg table of a commit for each table, beside a catalog, and return it."""
    catalog, whole = catalog_of(folder), tables or (TABLE,)
    catalog.create_namespace_if_not_exists("clinic")
    table = catalog.create_table("clinic.visits", whole[0].schema)
    for rows in whole:
        table.append(rows)
    return table


def place_of(table: Any) -> str:
    """Return the place of an Iceberg table by its metadata file."""
    return str(table.metadata_location).removeprefix("file://")


def database(path: Path, table: pa.Table = TABLE, name: str = "visits") -> str:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.register("given_rows", table)
        connection.execute(f"create table {name} as select * from given_rows")
    return f"{path}#{name}"


def cells(table: pa.Table = TABLE) -> list[list[object]]:
    """Return the rows of a sheet: the names, and the values below."""
    return [table.column_names, *map(list, zip(*table.to_pydict().values(), strict=True))]


def workbook(path: Path, rows: list[list[object]] | None = None, **sheets: list[list[object]]) -> Path:
    """Write a workbook of one sheet, or of several by their names."""
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for name, content in (sheets or {"Sheet1": cells(TABLE) if rows is None else rows}).items():
        sheet = book.create_sheet(name)
        for row in content:
            sheet.append(row)
    book.save(path)
    return path


def iceberg_with(table: Any, path: str, content: str = "data", rows: int = 1) -> Any:
    """Add a file to an Iceberg table as its metadata says it: of rows, or of positions that are deleted."""
    from unittest.mock import patch

    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
    from pyiceberg.typedef import Record

    is_data = content == "data"
    kind = DataFileContent.DATA if is_data else DataFileContent.POSITION_DELETES
    file = DataFile.from_args(
        content=kind, file_path=path, file_format=FileFormat.PARQUET, partition=Record(), record_count=rows,
        file_size_in_bytes=Path(path.removeprefix("file://")).stat().st_size,
    )  # fmt: skip
    file.spec_id = 0
    manifest = ManifestContent.DATA if is_data else ManifestContent.DELETES
    with (
        patch.object(ManifestWriterV2, "content", lambda _: manifest),
        table.transaction() as changes,
        changes.update_snapshot().fast_append() as snapshot,
    ):
        snapshot.append_data_file(file)
    return table


def commit(folder: Path, *actions: dict[str, Any]) -> None:
    """Write the next commit of a Delta table, whatever it says."""
    log = folder / "_delta_log"
    (log / f"{len(list(log.glob('*.json'))):020d}.json").write_text("\n".join(map(json.dumps, actions)))


def added(folder: Path) -> dict[str, Any]:
    """Return what a Delta table's first commit says of its first file."""
    lines = (folder / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    add: dict[str, Any] = next(line["add"] for line in map(json.loads, lines) if "add" in line)
    return add


def marked(folder: Path, deleted: dict[str, Any]) -> None:
    """Commit a deletion vector for the first file of a Delta table."""
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    add = added(folder)
    remove = {"path": add["path"], "deletionTimestamp": 0, "dataChange": True}
    commit(folder, {"protocol": protocol}, {"remove": remove}, {"add": add | {"deletionVector": deleted}})


def renamed(folder: Path, old: str, new: str) -> None:
    """Commit another name for a column of a Delta table, whose files keep the old one."""
    lines = (folder / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    described = next(line["metaData"] for line in map(json.loads, lines) if "metaData" in line)
    schema = json.loads(described["schemaString"])
    for number, field in enumerate(schema["fields"], start=1):
        field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
        field["name"] = new if field["name"] == old else field["name"]
    configuration = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": str(len(schema["fields"]))}
    changed = described | {"schemaString": json.dumps(schema), "configuration": configuration}
    commit(folder, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": changed})


def vector(*positions: int) -> dict[str, Any]:
    """Return a deletion vector of Delta that is written within the log."""
    from pyroaring import BitMap64

    content = (1681511377).to_bytes(4, "little") + BitMap64(positions).serialize()
    padded = content + bytes(-len(content) % 4)
    words = [int.from_bytes(padded[start : start + 4], "big") for start in range(0, len(padded), 4)]
    letters = "".join(Z85[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))
    sizes = {"sizeInBytes": len(content), "cardinality": len(positions)}
    return {"storageType": "i", "pathOrInlineDv": letters, **sizes}
