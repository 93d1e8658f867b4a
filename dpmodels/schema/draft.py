"""Draft a schema from column names and types alone, with a TODO wherever a value would have to be looked at."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from dpmodels.errors import DataError
from dpmodels.schema.base import is_text
from dpmodels.schema.header import check_names, csv_names

HEADER = """\
# A draft from names and types alone: a Parquet file's footer, or a CSV file's first line, which is taken as names.
# If a name below is a value, the file has no header: throw this draft away. Replace every TODO from what is public (a
# codebook, a form, a law), never by looking at the data: a bound or a list taken from the data is a leak.
# Then check it: nacre schema lint THIS_FILE
#   categorical  values: [a, b]                  boolean     no further key
#   integer      min, max; cells, scale: log     number      min, max; round: DECIMALS
#   datetime     min, max; resolution: day       identifier  keep: drop (always for users), or regenerate
#   image        height, width (grey; beside it one categorical or boolean column, the target)
# Any of them but identifier: nullable: true (and max_null_share: 0.1); outside: refuse, reject-row, clip (intervals) or
# other (categories). Beside columns, rules every row keeps and the rows the file has: constraints: [start <= end];
# rows: {min: 100, max: 1000}; and the column whose days or values are partitions: partition: COLUMN.
"""
SUFFIXES = (".parquet", ".csv")


def draft(data_path: str | Path, affirmed: bool = False) -> str:
    """Write the YAML of a schema that ``lint`` refuses until a person has filled in every TODO.

    ``affirmed`` says that a person has seen that the names are names.

    Privacy: reads a Parquet footer's names and types, or the first line of a CSV file, and writes the names. Of a file
        without a header these are values; where they may be, nothing is written before it is affirmed.

    Raises:
        DataError: there is no such file, it is damaged, or neither CSV nor Parquet.
        DoubtfulNames: the names may be values.
    """
    path = _first_file(Path(data_path))
    parquet = path.suffix.lower() == ".parquet"
    columns = _parquet_columns(path) if parquet else [(name, "type: TODO") for name in csv_names(path)]
    if not affirmed:
        check_names(path, [name for name, _ in columns], least=1 if parquet else 2)
    lines = [HEADER, f"name: {re.sub(r'[^a-z0-9_-]+', '-', path.stem.lower()).strip('-') or 'data'}"]
    lines += ["unit: record  # or {user: ID_COLUMN, max_rows: N} when one person may have several rows", "columns:"]
    lines += [f"  {_quoted(name)}: {{{keys}}}" for name, keys in columns]
    return "\n".join(lines) + "\n"


def _first_file(path: Path) -> Path:
    """Return the file itself, or the first data file of a directory."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
        if not files:
            raise DataError("", f"{path} holds no .parquet or .csv file")
        return files[0]
    if not path.is_file():
        raise DataError("", f"{path} does not exist")
    if path.suffix.lower() not in SUFFIXES:
        raise DataError("", f"{path} must be a .csv or .parquet file, or a folder of such files")
    return path


def _parquet_columns(path: Path) -> list[tuple[str, str]]:
    try:
        schema = pq.read_schema(path)
        return [(field.name, _keys(field.type)) for field in schema]
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        pass  # its message may quote the file
    raise DataError("", f"{path} is no Parquet file, or is cut short")


def _keys(kind: pa.DataType) -> str:
    """Write what a type tells of a column; its values stay unknown."""
    if pa.types.is_boolean(kind):
        return "type: boolean"
    if pa.types.is_integer(kind):
        dtype = "" if kind in (pa.int64(), pa.uint64()) else f", dtype: {kind}"
        return f"type: integer, min: TODO, max: TODO{dtype}"
    if pa.types.is_floating(kind):
        dtype = ", dtype: float32" if kind == pa.float32() else ""
        return f"type: number, min: TODO, max: TODO{dtype}"
    if pa.types.is_dictionary(kind):
        return "type: categorical, values: TODO, dtype: dictionary"
    if is_text(kind):
        return "type: categorical, values: TODO"
    if pa.types.is_fixed_size_list(kind) and kind.value_type == pa.uint8():
        return "type: image, height: TODO, width: TODO"
    if pa.types.is_date(kind):
        return "type: datetime, min: TODO, max: TODO, resolution: day"
    if pa.types.is_timestamp(kind):
        return f'type: datetime, min: TODO, max: TODO, resolution: TODO, dtype: "timestamp[{kind.unit}]"'
    return "type: TODO"


def _quoted(name: str) -> str:
    """Write a column name so that YAML reads it back as the same text."""
    text = yaml.safe_dump(name, default_flow_style=True, width=10_000, allow_unicode=True).removesuffix("...\n").strip()
    return text if "\n" not in text else yaml.safe_dump(name, default_style='"', width=10_000).strip()
