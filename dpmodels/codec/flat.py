"""The flat table of users and their rows (contract/family.py): how it is written, weighed, and cut into two tables."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.arrays import Whole
from dpmodels.codec.convert import joined
from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.public import public_table
from dpmodels.codec.stacked import unstack
from dpmodels.contract.columns import Identifier
from dpmodels.contract.family import CHILDREN, POSITION, Users
from dpmodels.contract.helpers import helpers_of
from dpmodels.contract.schema import Schema

TABLES = ("parents", "children")
"""Folders of the hand-off's tables, below that of the synthetic data."""


def numbers_of(schema: Schema, name: str, records: Records) -> Whole:
    """Return the values of CHILDREN or POSITION in rows of a flat table. Shapes: [B]."""
    column = schema.modelled[name]
    return np.array(column.values)[records.labels(list(schema.modelled).index(name))]  # type: ignore[attr-defined]


def tables_of(contract: Any) -> tuple[str, ...]:
    """Name the folders of the tables that a contract's synthetic data is handed over as; none for one table."""
    if contract.kind == "tree":
        return (*contract.public, *contract.tables)
    if contract.users is None:
        return ()
    return TABLES if contract.users.columns else TABLES[1:]


def public_tables(contract: Any) -> dict[str, pa.Table]:
    """Return the public tables that are handed over beside the synthetic ones, as they are."""
    public = contract.public if contract.kind == "tree" else {}
    return {name: public_table(name, table) for name, table in public.items()}


def weights_of(contract: Any, records: Any) -> NDArray[np.float64] | None:
    """Return what rows weigh, so that each user weighs one; None where every row does. Shapes: [B]."""
    if contract.users is None:
        return None
    return 1.0 / np.maximum(numbers_of(contract.flat, CHILDREN, records), 1)


def units_in(contract: Any, records: Any) -> int:
    """Count what rows are of: the users whose first row is among them, or the rows themselves."""
    if contract.users is None:
        return len(records)
    return int((numbers_of(contract.flat, POSITION, records) <= 1).sum())


class FlatCodec(Codec):
    """The encoding of a flat table; a user's rows stand together, the first child's first."""

    def __init__(self, contract: Schema) -> None:
        super().__init__(contract.flat)
        self.max_rows = contract.unit.max_rows
        self.parents = (contract.unit.user, *(contract.users or Users()).columns)

    def _identifiers(self, name: str, identifier: Identifier, first_row: int, records: Records) -> pa.Array:
        """Name users from number ``first_row`` on, and their children by the user's number and their own position."""
        position = numbers_of(self.schema, POSITION, records)
        user = np.cumsum(position <= 1) - 1
        users, most = int(user[-1]) + 1 if len(user) else 0, self.max_rows
        if name in self.parents:
            return identifier.make(first_row, users).take(pa.array(user))
        indices = pa.array(user * most + position - 1, mask=position == 0)
        return identifier.make(first_row * most, users * most).take(indices)


def is_cut(contract: Any) -> bool:
    """Tell whether rows are cut into tables, or columns left out of them, between their check and their hand-off."""
    return bool(tables_of(contract) or helpers_of(contract))


def handed_over(contract: Any, rows: pa.Table) -> pa.Table:
    """Return rows as they were drawn without the columns that are not handed over."""
    return rows.drop_columns(sorted(helpers_of(contract) & {*rows.column_names}))


def split(contract: Any, flat: pa.Table) -> dict[str, pa.Table]:
    """Cut rows of a flat table into those of the parents' table, if there is one, and of the children's.

    Of a tree the rows are stacked (codec/stacked.py), and what they are cut into are its tables.
    """
    if contract.kind == "tree":
        return unstack(contract, flat)[0]
    position, names = flat.column(POSITION), flat.column_names
    tables = {
        "children": flat.filter(pc.greater(position, 0)).select([n for n in contract.children.columns if n in names])
    }
    if contract.users and contract.users.columns:
        parent_columns = [name for name in contract.parents.columns if name in names]
        tables["parents"] = flat.filter(pc.less_equal(position, 1)).select(parent_columns)
    return tables


def join(contract: Schema, tables: dict[str, pa.Table]) -> pa.Table:
    """Join two tables into the flat one again; a child without a parent is left without the columns of one.

    The rows of a user are numbered as they stand in the children's table.
    """
    key, children = str(contract.unit.user), tables["children"]
    parents = tables["parents"] if "parents" in tables else pa.table({key: pc.unique(children.column(key))})
    index = pc.index_in(joined(children.column(key)), value_set=joined(parents.column(key)))
    parent_rows = index.fill_null(len(parents)).to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.argsort(parent_rows, kind="stable")
    counts = np.bincount(parent_rows, minlength=len(parents) + 1)
    begin = np.cumsum(counts) - counts
    child = np.concatenate([order, np.full(int((counts[:-1] == 0).sum()), -1)])
    user = np.concatenate([parent_rows[order], np.flatnonzero(counts[:-1] == 0)])
    position = np.where(child < 0, 0, np.concatenate([np.arange(len(order)), child[len(order) :]]) - begin[user] + 1)
    again = np.argsort(user, kind="stable")
    child, user, position = child[again], user[again], position[again]
    rows = pa.array(child, mask=child < 0)
    user_index = pa.array(user, mask=user == len(parents))
    columns: dict[str, Any] = {name: parents.column(name).take(user_index) for name in parents.column_names}
    columns |= {name: children.column(name).take(rows) for name in children.column_names if name != key}
    columns |= {CHILDREN: pa.array(counts[user]), POSITION: pa.array(position)}
    return pa.table({name: columns[name] for name in contract.flat.columns if name in columns})
