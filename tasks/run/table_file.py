"""Write one table to one file, in the format that the ending of the file's name says.

Privacy: post-processing.
"""

import json
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dpmodels.errors import InvalidArgument

Footer = Callable[[], dict[bytes, bytes]]
ENDINGS = (".parquet", ".csv", ".arrow", ".jsonl")


def check_ending(out: Path) -> None:
    """Refuse a file whose ending names no format that is written.

    Raises:
        InvalidArgument: it is none of ``ENDINGS``.
    """
    if out.suffix.lower() not in ENDINGS:
        rule = f"end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, which says the format"
        if out.suffix.lower() == ".xlsx":
            rule += "; `nacre export HAND_OFF FILE.xlsx` writes the table of a hand-off as a workbook"
        raise InvalidArgument("out", out, rule)


def write_table(tables: Iterator[pa.Table], path: Path, ending: str = "", footer: Footer = dict) -> None:
    """Write the tables one after another, in the format of an ending, by default that of the path.

    Only Parquet has room for the footer, which is asked for at the end.
    """
    first, ending = next(tables), ending or path.suffix
    whole = chain([first], tables)
    if ending == ".parquet":
        with pq.ParquetWriter(path, first.schema, compression="zstd") as parquet:
            for table in whole:
                parquet.write_table(table)
            parquet.add_key_value_metadata(footer())
    elif ending == ".arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, _plain(first).schema) as arrow:
            for table in whole:
                arrow.write_table(_plain(table))
    elif ending == ".csv":
        with pacsv.CSVWriter(path, _flat(first).schema) as lines:
            for table in whole:
                lines.write_table(_flat(table))
    else:
        with path.open("w", encoding="utf-8") as text:
            for table in whole:
                text.writelines(f"{_json(row)}\n" for row in table.to_pylist())


def _plain(table: pa.Table) -> pa.Table:
    """Spell dictionaries out, since their values may differ from batch to batch."""
    kinds: list[Any] = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in table.schema.types]
    return table.cast(pa.schema([field.with_type(kind) for field, kind in zip(table.schema, kinds, strict=True)]))


def _flat(table: pa.Table) -> pa.Table:
    """Turn lists, for which CSV has no form, into JSON."""
    for index, field in enumerate(table.schema):
        if pa.types.is_list(field.type):
            texts = pa.array([_json(value) for value in table[field.name].to_pylist()])
            table = table.set_column(index, field.name, texts)
    return _plain(table)


def _json(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)  # str spells dates and decimals as SQL does
