"""Where the tables of a tree lie: a folder with a file or a folder for each, or a pattern that names the table."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpmodels.errors import DataError
from dpmodels.reading.data_files import FORMATS, is_uri

NAME = "{table}"
"""Stands for a table's name in a place that is no folder."""


@contextmanager
def naming(table: str) -> Iterator[None]:
    """Name the table in what is said of one of its columns, or of all of it."""
    try:
        yield
    except DataError as fault:
        if fault.column and len(fault.faults) < 2:
            raise DataError(f"{table}.{fault.column}", fault.rule, fault.faults) from None
        faults = [f"table {table}: {each}" for each in fault.faults]
        raise DataError("", f"table {table}: {fault}", faults) from None


def places_of(data: str, contract: Any) -> list[str]:
    """Return where all tables of a contract lie: that of a single table, or those of a tree."""
    tables = contract.tables if contract.kind in ("tree", "discovery") else ()
    return [place_of(data, name) for name in tables] or [data]


def place_of(data: str, table: str) -> str:
    """Return where one table of a tree lies.

    Raises:
        DataError: there is no such file, or more than one.
    """
    if NAME in data:
        return data.replace(NAME, table)
    if is_uri(data) or "*" in data:
        raise DataError(
            "", f"{data} must be a folder of tables, or say where each is, as in {data.rstrip('/')}/{NAME}.parquet"
        )
    folder = Path(data)
    if not folder.is_dir():
        raise DataError("", f"{data} must be a folder that holds a file or a folder for each table")
    places = [folder / table, *(folder / f"{table}{ending}" for ending in FORMATS)]
    there = [place for place in places if place.exists()]
    if len(there) != 1:
        rule = "holds no file or folder" if not there else "holds several files"
        raise DataError("", f"{data} {rule} for table {table}; give one, such as {folder / table}.parquet")
    return str(there[0])
