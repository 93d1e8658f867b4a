"""Join users and their rows, as they are read, into the flat table that is encoded (contract/family.py).

Memory: the encoded rows of both tables, one to four bytes a value, and the users' ids.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.arrays import Whole
from dpmodels.codec.codes import Codes, code_count, code_type
from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.ids import read_ids
from dpmodels.contract.family import CHILDREN, POSITION, Users
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.privacy import Sensitive
from dpmodels.reading.ingest import check_passed, encode_checked
from dpmodels.reading.pictures import Batches

ONCE = "must name each user once in the parents' table"
LACKING = "names a user that the parents' table lacks; give every row's user a row there"
SAME = "must be the same in all rows of a user, since `users` lists it"


@dataclass
class Side:
    """The encoded rows of one table, and whose they are. Shapes: codes [rows] for each column; ids [rows]."""

    codes: dict[str, Codes]
    ids: NDArray[Any]


def transform_join(
    schema: Schema,
    rows: Sequence[Sensitive[Batches]],
    parents: Sequence[Sensitive[Batches]] | None,
    gates: Sequence[Gate],
    folder: Path,
    batch_rows: int,
) -> None:
    """Write the flat table to a folder, if both tables pass their gates: of the rows, and of the parents if given.

    Rows beyond ``max_rows`` of a user were left out when they were read (reading/user_ids.py). A user's rows are in the
    order of the order column, those of one value as they were read; nulls come last.

    Privacy: Sensitive -> Sensitive; the flat rows of a user are a function of that user's rows alone, and a user adds
        ``max(n, 1)`` of them. That a rule is broken is seen by whoever sees the run at all, as of any gate.

    Raises:
        DataError: a table breaks its part of the schema, a row has no parent, a parent is there twice, or what should
            be a user's own differs among the user's rows. No message names a value.
    """
    kinds, user = set[str](), str(schema.unit.user)
    parent_side = None if parents is None else _read(parents, gates[1], user, kinds)
    children = _read(rows, gates[0], user, kinds)
    for gate in gates:
        gate.settle()
    check_passed(bool(len((parent_side or children).ids)), *gates, of_users=True)
    table = join_sides(schema, children, parent_side)
    codec = Codec(schema.flat)
    with pa.OSFile(str(folder / "part-00000.arrow"), "wb") as sink, pa.ipc.new_file(sink, codec.arrow_schema) as writer:
        for start in range(0, len(table), batch_rows):
            writer.write_batch(codec.to_arrow(table.take(slice(start, start + batch_rows))))


def join_sides(schema: Schema, children: Side, parents: Side | None) -> Records:
    """Join encoded rows of both tables; without a parents' table, what is a user's own is taken from the user's rows.

    Raises:
        DataError: as ``transform_join``.
    """
    user = str(schema.unit.user)
    users_side, parent_rows = (
        _first_rows(schema, children) if parents is None else (parents, _places(user, parents, children))
    )
    return _flat(schema, users_side, children, parent_rows)


def _read(parts: Sequence[Sensitive[Batches]], gate: Gate, user: str, kinds: set[str]) -> Side:
    batches: Iterator[pa.RecordBatch] = chain.from_iterable(part.reveal() for part in parts)
    codes: dict[str, list[Codes]] = {name: [] for name in gate.schema.modelled}
    ids: list[NDArray[Any]] = []
    for batch, records in encode_checked(batches, gate):
        ids.append(read_ids(user, batch.column(user), kinds).astype(object))  # files may type numbers differently
        for name, column_codes in zip(codes, records.codes or (), strict=True):
            codes[name].append(column_codes)
    empty = {name: np.zeros(0, dtype=code_type(column)) for name, column in gate.schema.modelled.items()}
    joined = {name: np.concatenate([empty[name], *column_codes]) for name, column_codes in codes.items()}
    return Side(joined, np.concatenate(ids) if ids else np.zeros(0, dtype=object))


def _places(user: str, parents: Side, children: Side) -> Whole:
    """Return the number of each child's parent."""
    import pandas as pd

    index = pd.Index(parents.ids)
    if not index.is_unique:
        raise DataError(user, ONCE)
    parent_rows: Whole = index.get_indexer(pd.Index(children.ids)).astype(np.int64)
    if (parent_rows < 0).any():
        raise DataError(user, LACKING)
    return parent_rows


def _first_rows(schema: Schema, rows: Side) -> tuple[Side, Whole]:
    """Number users as they come, and take what is a user's own from the user's first row."""
    import pandas as pd

    user_numbers = pd.factorize(rows.ids)[0].astype(np.int64)
    first = np.unique(user_numbers, return_index=True)[1]
    parent_codes = {name: rows.codes[name] for name in (schema.users or Users()).columns if name in rows.codes}
    for name, codes in parent_codes.items():
        if (codes != codes[first][user_numbers]).any():
            raise DataError(name, SAME)
    return Side({name: codes[first] for name, codes in parent_codes.items()}, rows.ids[first]), user_numbers


def _flat(schema: Schema, parents: Side, children: Side, parent_rows: Whole) -> Records:
    """Lay the flat table out: the children, user by user, then the users without any."""
    users = schema.users or Users()
    by = [children.codes[users.order]] if users.order else []
    order = np.lexsort((*by, parent_rows))
    counts = np.bincount(parent_rows, minlength=len(parents.ids))
    begin = np.cumsum(counts) - counts
    childless = np.flatnonzero(counts == 0)
    user = np.concatenate([parent_rows[order], childless])
    position = np.concatenate(
        [np.arange(len(order)) - begin[parent_rows[order]] + 1, np.zeros(len(childless), np.int64)]
    )
    flat_codes: dict[str, NDArray[Any]] = {name: codes[user] for name, codes in parents.codes.items()}
    flat_codes |= {CHILDREN: counts[user] - users.fewest, POSITION: position - users.fewest}
    columns, codes = schema.flat.modelled, list[Codes]()
    for name, column in columns.items():
        if name not in flat_codes:
            null = np.full(len(childless), code_count(column) - 1)
            flat_codes[name] = np.concatenate([children.codes[name][order], null])
        codes.append(flat_codes[name].astype(code_type(column)))
    return Records.coded(list(columns.values()), codes)
