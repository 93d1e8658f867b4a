"""Read the rows of public tables into the contract that they are part of (contract/public.py).

Privacy: public by declaration; of private tables nothing is read but what tells a link or a copy
    (reading/public_files.py).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from dpmodels.codec.convert import is_whole, plain
from dpmodels.codec.encode import Codec
from dpmodels.codec.public import PublicCodec, public_table, public_types, schema_of
from dpmodels.contract.columns import Identifier
from dpmodels.contract.public import PublicTable, Value
from dpmodels.contract.text_forms.written import forms_of, with_form, with_forms
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.plain_yaml import LONGEST
from dpmodels.privacy import Sensitive
from dpmodels.reading.data_files import find_files
from dpmodels.reading.formats import parts_of
from dpmodels.reading.frames import load_given
from dpmodels.reading.named_columns import names_of
from dpmodels.reading.public_files import files_apart
from dpmodels.reading.tree_files import naming, place_of

BATCH_ROWS = 65_536
TYPED = "holds values that the type of a column has no place for; correct them, or the schema"
OF_NO_KIND = "must hold text, numbers, true and false, days or times; write other values as text, or leave them out"
NOT_TEXT = "must hold text in UTF-8; write the file again with its texts in this encoding"
TOO_LONG = f"must hold texts of {LONGEST:,} characters at most, as longer ones are read from no schema; shorten them"
KINDS: Sequence[Callable[[pa.DataType], bool]] = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_integer, pa.types.is_floating,
    pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null, pa.types.is_date, pa.types.is_time,
    pa.types.is_timestamp,
)  # fmt: skip
"""What the values of an identifier may be: of each kind every value has one way to be written."""
Batches = Iterable[pa.RecordBatch]


def load_public_files(tree: Tree, data: str) -> Tree:
    """Return the contract with the rows of its public tables, whose files lie beside those of the private ones.

    Raises:
        DataError: there is no such file, it is a private table's, or its rows do not fit the schema.
    """

    def read(name: str) -> Batches:
        table = tree.public[name]
        codec, files = PublicCodec(with_form(schema_of(name, table), tree.text)), files_apart(tree, data, name)
        parts = [part for file in files for part in parts_of(file, codec, list(table.columns))]
        return chain.from_iterable(part.read(BATCH_ROWS) for part in parts)

    return _with_rows(tree, read)


def count_unlisted(tree: Tree, data: str) -> dict[str, int]:
    """Count by public table without rows the columns of its files that the schema does not list, and are left out.

    Nobody declared these public, so nothing else is said of them, not even their names: a name may be a value.

    Raises:
        DataError: there is no such file, or it cannot be read.
    """
    counts = dict[str, int]()
    for name in tree.without_rows:
        columns = tree.public[name].columns
        with naming(name):
            files = find_files(place_of(data, name))
            counts[name] = len({one for file in files for one in names_of(file, columns)} - columns.keys())
    return counts


def load_public_frames(tree: Tree, data: Sensitive[Any]) -> tuple[Tree, Sensitive[Any]]:
    """Return the contract with the public rows of a dictionary of frames, and the dictionary without them.

    Raises:
        DataError: a frame is none, or its rows do not fit the schema.
    """
    if not isinstance(frames := data.reveal(), Mapping):
        return tree, data
    try:
        private = {name: frames[name] for name in frames if name not in tree.public}
        public = {name: Sensitive(frames[name]) for name in tree.public if name in frames}
    except Exception:  # of any mapping, which is refused where the private tables are taken from it
        return tree, data
    if tree.without_rows and public.keys() >= set(tree.without_rows):
        tree = _with_rows(tree, lambda name: load_given(public[name], f"table {name}").reveal())
    return tree, Sensitive(private)


def check_public(tree: Tree) -> None:
    """Hold the public rows that a contract has to the columns of their tables.

    Raises:
        DataError: a value is none of its column.
    """
    for name, table in tree.public.items():
        with naming(name):
            try:
                rows = public_table(name, table)
            except pa.ArrowException:
                raise DataError("", TYPED) from None
            if (schema := schema_of(name, table)).modelled:
                Codec(schema.refusing()).encode(rows)


def _with_rows(tree: Tree, read: Callable[[str], Batches]) -> Tree:
    content = tree.model_dump()
    for name in tree.without_rows:
        with naming(name):
            content["public"][name]["rows"] = _rows(name, tree.public[name], read(name))
    try:
        return with_forms(Tree.model_validate(content), forms_of(tree))
    except ValidationError as fault:
        raise DataError("", str(fault.errors()[0]["msg"]).removeprefix("Value error, ")) from None


def _rows(name: str, table: PublicTable, batches: Batches) -> dict[str, tuple[Value, ...]]:
    """Return the values of a table's columns, once every row was held to the schema."""
    schema = schema_of(name, table)
    types, rows = public_types(name, table), list(map(PublicCodec(schema).listed, batches))
    for batch in rows if schema.modelled else ():
        Codec(schema.refusing()).encode(batch)
    if not sum(map(len, rows)):
        raise DataError("", "must hold rows, since others refer to them")
    columns = dict[str, tuple[Value, ...]]()
    for column, one in table.columns.items():
        arrays = [plain(batch.column(column)) for batch in rows]
        try:
            kind = None if isinstance(one, Identifier) else types.field(column).type
            values = [each.cast(kind) for each in arrays] if kind else _checked(column, arrays)
            columns[column] = tuple(_written(value) for each in values for value in plain(each).to_pylist())
        except pa.ArrowException:
            raise DataError(column, TYPED) from None
        if any(isinstance(value, str) and len(value) > LONGEST for value in columns[column]):
            raise DataError(column, TOO_LONG)
    return columns


def _checked(column: str, arrays: Sequence[pa.Array]) -> Sequence[pa.Array]:
    """Return the values of an identifier, which has no type of its own.

    Raises:
        DataError: they are of a kind that no cell of a hand-off holds, or of text that is none.
    """
    for each in arrays:
        if not any(is_kind(each.type) for is_kind in KINDS):
            raise DataError(column, OF_NO_KIND)
        if not is_whole(each):
            raise DataError(column, NOT_TEXT)
    return arrays


def _written(value: Any) -> Value:
    """Return a value as YAML and JSON can write it; what is no number is null, as everywhere."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
