"""Draft a schema from column names and types alone, with a TODO wherever a value would have to be looked at."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from dpmodels.errors import DataError
from dpmodels.schema.base import is_text
from dpmodels.schema.database import Query, check_database, names_of_query
from dpmodels.schema.header import check_names, names_in
from dpmodels.schema.places import FAILURES, DataFile, find_files, title_of

HEADER = """\
# A draft from names and types alone: a CSV file's first line, which is taken as names, or what a file says of itself.
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


def draft(data: str | Path | Query, affirmed: bool = False) -> str:
    """Write the YAML of a schema that ``lint`` refuses until a person has filled in every TODO.

    ``affirmed`` says that a person has seen that the names are names.

    Privacy: reads names and types of a Parquet or Arrow file, of a query, or the first line of a CSV file or of JSON
        lines, and writes the names. Of a CSV file without a header these are values; where they may be, nothing is
        written before it is affirmed.

    Raises:
        DataError: there is no such file, it is damaged, or of no kind that is read.
        DoubtfulNames: the names may be values.
    """
    if isinstance(data, Query):
        title = title_of(check_database(data.database).database or "")
        columns, place, least = [(name, "type: TODO") for name in names_of_query(data)], "the query", 1
    else:
        file = find_files(str(data))[0]
        title, place, typed = title_of(str(data)), file.place, file.format in ("parquet", "arrow")
        columns, least = _typed(file) if typed else [(name, "type: TODO") for name in names_in(file)], 1 + (not typed)
        columns += [(key, "type: TODO") for key, _ in file.keys]
    if not affirmed:
        check_names(place, [name for name, _ in columns], least)
    lines = [HEADER, f"name: {title}"]
    lines += ["unit: record  # or {user: ID_COLUMN, max_rows: N} when one person may have several rows", "columns:"]
    lines += [f"  {_quoted(name)}: {{{keys}}}" for name, keys in columns]
    return "\n".join(lines) + "\n"


def _typed(file: DataFile) -> list[tuple[str, str]]:
    try:
        with file.open() as source:
            schema = pq.read_schema(source) if file.format == "parquet" else pa.ipc.open_file(source).schema
            return [(field.name, _keys(field.type)) for field in schema]
    except FAILURES:
        pass  # its message may quote the file
    raise DataError("", f"{file.place} is no {file.format.title()} file, or is cut short")


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
        return f'type: datetime, min: TODO, max: TODO, resolution: TODO, dtype: "{kind}"'
    if pa.types.is_decimal(kind):
        return (
            f'type: number, min: TODO, max: TODO, round: {kind.scale}, dtype: "decimal({kind.precision}, {kind.scale})"'
        )
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return f'type: integer, min: TODO, max: TODO, dtype: "{kind}"'
    return "type: TODO"


def _quoted(name: str) -> str:
    """Write a column name so that YAML reads it back as the same text."""
    text = yaml.safe_dump(name, default_flow_style=True, width=10_000, allow_unicode=True).removesuffix("...\n").strip()
    return text if "\n" not in text else yaml.safe_dump(name, default_style='"', width=10_000).strip()
