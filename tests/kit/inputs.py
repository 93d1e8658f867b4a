"""One table in every format, and what is read of it."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq

from dpmodels.codec.encode import Codec, Records
from flows.config import SynthesizeConfig
from flows.synthesize import start
from tasks.engine.encoded import EncodedTable
from tasks.stages.ingest import ingest
from tests.kit.support import make_schema, make_table, write_clinic

SECRET = "Quillfeather"
"""A private value that no message, and no file outside the sensitive zone, may hold."""


KEY = "hunter2-Quillfeather"


SCHEMA = make_schema()


TABLE = make_table(300).sort_by("ward")


def parquet(path: Path, table: pa.Table = TABLE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=70)
    return path


def as_csv(path: Path, delimiter: str = ",", table: pa.Table = TABLE, before: bytes = b"") -> Path:
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(delimiter=delimiter))
    content = before + sink.getvalue().to_pybytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def as_json(
    path: Path, change: Callable[[dict[str, object]], object] = lambda row: row, table: pa.Table = TABLE
) -> Path:
    content = "\n".join(json.dumps(change(row), default=str) for row in table.to_pylist()).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def as_arrow(path: Path, compression: str | None = None, table: pa.Table = TABLE) -> Path:
    pyarrow.feather.write_feather(table, str(path), compression=compression, chunksize=110)
    return path


def in_parts(path: Path, table: pa.Table) -> Path:
    """Write a folder of two files, and what others leave beside such files."""
    for part, rows in enumerate((table.slice(0, 17), table.slice(17))):
        parquet(path / f"part-{part}.parquet", rows)
    (path / "_SUCCESS").touch()
    return path


FORMATS: dict[str, Callable[[Path, pa.Table], Path]] = {
    "parquet": lambda path, table: parquet(path.with_suffix(".parquet"), table),
    "a folder": in_parts,
    "csv": lambda path, table: as_csv(path.with_suffix(".csv"), table=table),
    "csv, packed": lambda path, table: as_csv(path.with_suffix(".csv.gz"), "|", table),
    "tabs": lambda path, table: as_csv(path.with_suffix(".tsv"), "\t", table),
    "json lines": lambda path, table: as_json(path.with_suffix(".jsonl"), table=table),
    "json lines, packed": lambda path, table: as_json(path.with_suffix(".ndjson.gz"), table=table),
    "arrow": lambda path, table: as_arrow(path.with_suffix(".arrow"), table=table),
    "feather": lambda path, table: as_arrow(path.with_suffix(".feather"), "zstd", table),
}
"""By its name what writes a table at a path that has no ending yet."""
LINES = {"json lines", "json lines, packed"}
TEXT = {"csv", "csv, packed", "tabs", *LINES}
"""Formats that are text; where data are tables, lists of numbers are not read from them."""


def hive(folder: Path, *by: str, form: str = "parquet", table: pa.Table = TABLE) -> Path:
    fields = pa.schema([table.schema.field(name) for name in by])
    ds.write_dataset(table, folder, format=form, partitioning=ds.partitioning(fields, flavor="hive"))
    return folder


def folder(path: Path) -> Path:
    path.mkdir()
    return path


def configured(folder: Path, source: object) -> SynthesizeConfig:
    """Return the configuration of a run on a source."""
    place, query = source if isinstance(source, tuple) else (source, "")
    given = {"data": place, "query": query, "schema": folder / "clinic.yaml", "out": folder / "out"}
    budget = {"target_epsilon": 1.0, "delta": 1e-5}
    runtime = {"home": folder / "home", "prefect": False, "batch_rows": 64}
    return SynthesizeConfig.build({**given, "privacy": budget, "runtime": runtime}, folder / "config.yaml")


def ingested(folder: Path, source: object) -> Records:
    """Start a run and take it to the end of its ingest; return the encoded rows."""
    if not (folder / "clinic.yaml").exists():
        write_clinic(folder)
    run = start(configured(folder, source))
    ingest(run)
    assert not [file for file in run.control.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]
    return Records.concat(list(EncodedTable(run.sensitive / "encoded", SCHEMA)))


def same(found: Records, table: pa.Table = TABLE) -> None:
    """Hold encoded rows to those of a table, in any order."""
    whole = Codec(SCHEMA).encode(table)
    rows = [np.column_stack([one.states, one.values]) for one in (found, whole)]
    assert len(found) == len(whole)
    assert np.array_equal(*(one[np.lexsort(one.T)] for one in rows))
