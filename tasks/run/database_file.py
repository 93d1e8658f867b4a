"""Write a table, or the tables of a tree, to one DuckDB file, whose keys the database itself holds.

Privacy: post-processing.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpmodels.codec.flat import public_tables
from dpmodels.codec.public import public_types
from dpmodels.codec.tree import TreeCodec
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.late import check_installed

ENDING = ".duckdb"
SAFE: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
"""Nothing is fetched while a file is written."""
Batches = Callable[[str], Iterator[pa.RecordBatch]]


def write_single(name: str, batches: Iterator[pa.RecordBatch], path: Path, about: Mapping[str, str]) -> None:
    """Write one table, whose comment says ``about``.

    Raises:
        NacreError: duckdb is not installed.
        DataError: a type is unknown to the database, or the disk is full.
    """
    check_installed(["duckdb"])
    import duckdb

    fault = False
    with duckdb.connect(str(path), config=SAFE) as connection:
        try:
            for number, batch in enumerate(batches):
                connection.register("given_rows", _plain(pa.Table.from_batches([batch])))
                begins = f"INSERT INTO {quoted(name)}" if number else f"CREATE TABLE {quoted(name)} AS"
                connection.execute(f"{begins} SELECT * FROM given_rows")
            _comment(connection, name, about)
        except duckdb.Error:  # its message quotes a row
            fault = True
    if fault:
        raise DataError("", f"table {name} cannot be written: the database knows no such type, or the disk is full")


def _comment(connection: Any, name: str, about: Mapping[str, str]) -> None:
    text = json.dumps(about, ensure_ascii=False).replace("'", "''")
    connection.execute(f"COMMENT ON TABLE {quoted(name)} IS '{text}'")


def write_database(tree: Tree, batches: Batches, path: Path, about: Mapping[str, str]) -> None:
    """Write all tables, a parent before its children, with PRIMARY KEY and FOREIGN KEY; ``batches`` reads one by name.

    The comment on each says ``about``.

    Raises:
        NacreError: duckdb is not installed.
        DataError: a key is there twice or names no row of the parent's table, or a type is unknown to the database.
    """
    check_installed(["duckdb"])
    import duckdb

    public = public_tables(tree)
    fault = ""
    with duckdb.connect(str(path), config=SAFE) as connection:
        for name in (*public, *tree.tables):
            rows = iter(public[name].to_batches()) if name in public else batches(name)
            try:
                _write(connection, tree, name, rows)
                _comment(connection, name, about)
            except duckdb.Error:  # its message quotes a row
                fault = f"table {name} cannot be written: its keys do not hold, or the disk is full"
                break
    if fault:
        raise DataError("", fault)


def _write(connection: Any, tree: Tree, name: str, batches: Iterator[pa.RecordBatch]) -> None:
    public = tree.public.get(name)
    empty = (public_types(name, public) if public else TreeCodec(tree).output_of(name)).empty_table()
    connection.register("given_rows", _plain(empty))
    described = connection.execute("DESCRIBE SELECT * FROM given_rows").fetchall()
    connection.execute(statement(tree, name, {column: kind for column, kind, *_ in described}))
    for batch in batches:
        connection.register("given_rows", _plain(pa.Table.from_batches([batch]).select(empty.column_names)))
        connection.execute(f"INSERT INTO {quoted(name)} SELECT * FROM given_rows")


def statement(tree: Tree, name: str, types: dict[str, str]) -> str:
    """Return the statement that creates one table, with its keys.

    A key that is left out of what is handed over, and one that refers to such a one, is none.
    """
    lines = [f"{quoted(column)} {kind}" for column, kind in types.items()]
    if name in tree.public:
        return f"CREATE TABLE {quoted(name)} ({', '.join(lines)}, PRIMARY KEY ({listed(tree.public[name].key)}))"
    branch, on = tree.tables[name], tree.keys_of(name)
    if branch.key and set(branch.key) <= types.keys():
        lines.append(f"PRIMARY KEY ({listed(branch.key)})")
    if branch.parent and set(on) <= types.keys():
        key = tree.tables[branch.parent].key
        lines.append(f"FOREIGN KEY ({listed(on)}) REFERENCES {quoted(branch.parent)} ({listed(key)})")
    for one in branch.refers:
        key = tree.public[one.to].key
        lines.append(f"FOREIGN KEY ({listed(one.by)}) REFERENCES {quoted(one.to)} ({listed(key)})")
    return f"CREATE TABLE {quoted(name)} ({', '.join(lines)})"


def listed(names: Sequence[str]) -> str:
    """Write names of columns as SQL lists them."""
    return ", ".join(map(quoted, names))


def quoted(name: str) -> str:
    """Write a name so that SQL takes it for nothing else."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _plain(table: pa.Table) -> pa.Table:
    """Spell dictionaries out, which a database would take for an enumeration of one batch's values."""
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in table.schema.types]
    return table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True))))
