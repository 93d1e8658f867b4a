"""One table in every format that is read, written whole."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

Write = Callable[[pa.Table, Path], str]
"""Writes a table at a path without an ending, and returns by what words a command is given it."""


def parquet(table: pa.Table, path: Path) -> str:
    pq.write_table(table, target := path.with_suffix(".parquet"), row_group_size=23)
    return str(target)


def parts(table: pa.Table, path: Path) -> str:
    """Write a folder of two files, and what others leave beside such files."""
    path.mkdir()
    parquet(table.slice(0, 17), path / "part-0")
    parquet(table.slice(17), path / "part-1")
    (path / "_SUCCESS").touch()
    return str(path)


def csv(table: pa.Table, path: Path, delimiter: str = ",", suffix: str = ".csv") -> str:
    content = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, content, pyarrow.csv.WriteOptions(delimiter=delimiter))
    packed = gzip.compress if suffix.endswith(".gz") else bytes
    (target := path.with_suffix(suffix)).write_bytes(packed(content.getvalue()))
    return str(target)


def lines(table: pa.Table, path: Path, suffix: str = ".jsonl") -> str:
    content = "\n".join(json.dumps(row, default=str) for row in table.to_pylist()).encode()
    (target := path.with_suffix(suffix)).write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    return str(target)


def feather(table: pa.Table, path: Path, compression: str | None = "zstd", suffix: str = ".feather") -> str:
    pyarrow.feather.write_feather(table, str(target := path.with_suffix(suffix)), compression=compression, chunksize=23)
    return str(target)


FORMATS: dict[str, Write] = {
    "parquet": parquet,
    "a folder": parts,
    "csv": csv,
    "csv, packed": lambda table, path: csv(table, path, "|", ".csv.gz"),
    "tabs": lambda table, path: csv(table, path, "\t", ".tsv"),
    "json lines": lines,
    "json lines, packed": lambda table, path: lines(table, path, ".ndjson.gz"),
    "arrow": lambda table, path: feather(table, path, None, ".arrow"),
    "feather": feather,
}
LINES = {"json lines", "json lines, packed"}
TEXT = {"csv", "csv, packed", "tabs", *LINES}
"""Formats that are text; where data are tables, lists of numbers are not read from them."""
