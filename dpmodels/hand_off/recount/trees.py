"""The tables of a tree that are handed over, joined by their keys: each unit weighs one in every table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.stacked import matched
from dpmodels.contract.base import Modelled
from dpmodels.contract.tree import Tree
from dpmodels.hand_off.recount.figures import Differing, of_columns
from dpmodels.hand_off.recount.rows import HandedOver, Rows

Facts = Mapping[str, Any]


def differing_in_tree(report: Facts, rows: HandedOver, tree: Tree) -> Iterator[Differing]:
    """Yield the shares and means of the tables' own columns that are not those of the rows."""
    tables = {name: _read(rows, name, tree) for name in tree.tables}
    for name, shares in _shares(tables, tree).items():
        schema, prefix = tree.schema_of(name), f"{name}."
        modelled = {key for key, column in schema.columns.items() if isinstance(column, Modelled)}
        columns = [
            {**one, "name": bare}
            for one in report["columns"]
            if one.get("table") == name and (bare := one["name"].removeprefix(prefix)) in modelled
        ]
        for one in of_columns(columns, [Rows(tables[name], schema, 1.0 / shares)]):
            yield one._replace(what=f"{one.what}, in table {name}")


def _read(rows: HandedOver, name: str, tree: Tree) -> pa.Table:
    parts = [part for part in rows.parts if part.split("/")[1] == name]
    of_table = replace(rows, parts=parts, schema=tree.handed_over(name))
    return pa.Table.from_batches(of_table.batches()).unify_dictionaries()


def _shares(tables: Mapping[str, pa.Table], tree: Tree) -> dict[str, Floats]:
    """Return by table one over what each row weighs: the rows beside it, times that of its parent's row.

    Raises:
        ValueError: a row names no row of its parent's table.
    """
    shares = {tree.root: np.ones(tables[tree.root].num_rows)}
    for name, branch in tree.tables.items():
        if branch.parent is not None:
            above = _parents(tables, tree, name, branch.parent)
            counts = np.bincount(above, minlength=tables[branch.parent].num_rows)
            shares[name] = (shares[branch.parent] * counts)[above]
    return shares


def _parents(tables: Mapping[str, pa.Table], tree: Tree, name: str, parent: str) -> Whole:
    keys: Sequence[Any] = [tables[parent].column(key).to_numpy() for key in tree.tables[parent].key]
    above = matched(keys, [tables[name].column(key).to_numpy() for key in tree.keys_of(name)])
    if len(above) and above.min() < 0:
        raise ValueError(f"a row of table {name} names no row of table {parent}")
    return above
