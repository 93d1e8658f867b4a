"""Trees of tables in the stages: tables are read and joined, and taken apart again in the hand-off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.arrays import Whole
from dpmodels.codec.convert import plain
from dpmodels.codec.flat import public_tables
from dpmodels.codec.public import schema_of
from dpmodels.codec.stacked import matched
from dpmodels.codec.tree import TreeCodec
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.written import with_forms
from dpmodels.contract.tree import Tree
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate, Verdicts
from dpmodels.gate.made_files import parquet_files, read_batches
from dpmodels.gate.tree_gate import TreeGate, TreeRules
from dpmodels.generators.trees.ruled import caution_of_tree
from dpmodels.privacy import Sensitive
from dpmodels.reading.ingest import faults_in, with_others
from dpmodels.reading.load import check_first, load_parts
from dpmodels.reading.pictures import Batches
from dpmodels.reading.public import BATCH_ROWS, load_public_files
from dpmodels.reading.tree import transform_tree
from dpmodels.reading.tree_files import naming, place_of
from dpmodels.releases.contract import tree_of
from dpmodels.report.fidelity import Measured
from dpmodels.report.trees import TreeTally, facts_of_tables
from tasks.engine.encoded import EncodedTable
from tasks.kinds.gate_page import keep_gate, refused_input
from tasks.kinds.synthesized import records as records
from tasks.kinds.synthesized import system as system
from tasks.run.store import Run
from tasks.run.table_inputs import typed_rows

SYNTHESIZED = COMPARED = True
LEAST_UNITS = 1024
"""Units of a batch of encoded rows, at least."""


def check_columns(contract: Tree, data: str, parents: str) -> None:
    """Hold the columns of each table's first file to the schema."""
    for name in contract.tables:
        with naming(name):
            check_first(place_of(data, name), contract.schema_of(name), contract.key_columns(name))


def _opened(tree: Tree, data: str, batch_rows: int) -> dict[str, list[Sensitive[Batches]]]:
    """Open the files of all private tables."""
    return {
        name: load_parts(place_of(data, name), tree.schema_of(name), batch_rows, tree.key_columns(name))
        for name in tree.tables
    }


def transform_tables(tree: Tree, data: str, folder: Path) -> Sensitive[EncodedTable]:
    """Encode tables that belong to no run into a private folder, to be compared."""
    gates = {name: Gate(tree.schema_of(name), raw=True) for name in tree.tables}
    folder.mkdir()
    transform_tree(_opened(tree, data, BATCH_ROWS), gates, TreeRules(tree, raw=True), folder, LEAST_UNITS)
    return Sensitive(EncodedTable(folder, tree))


def encode(run: Run, folder: Path) -> None:
    """Read all tables, join and encode them, and leave the gates' results in the sensitive zone."""
    settings = run.settings
    tree = with_forms(tree_of(run.plan.release.contract), settings.text_forms)
    gates, rules = {name: Gate(tree.schema_of(name), raw=True) for name in tree.tables}, TreeRules(tree, raw=True)
    try:
        tables = _opened(tree, settings.data, settings.batch_rows)
        transform_tree(tables, gates, rules, folder, max(LEAST_UNITS, settings.batch_rows // 16))
    except DataError as fault:
        every = _faults(tree, settings.data, settings.batch_rows)
        raise refused_input(run, with_others(fault, every), _of_all(tree, *gates.values(), rules)) from None
    keep_gate(run, _of_all(tree, *gates.values(), rules))


def _faults(tree: Tree, data: str, batch_rows: int) -> Iterator[str]:
    """Yield all that is wrong with each table by itself."""
    for name in tree.tables:
        place, schema = place_of(data, name), tree.schema_of(name)
        for fault in faults_in(place, schema, batch_rows, tree.key_columns(name), of_users=True):
            yield f"table {name}: {fault}"


def _of_all(tree: Tree, *gates: Verdicts) -> Verdicts:
    verdicts = Verdicts(tree.schema_of(tree.root), [], raw=True)
    verdicts.outcomes = tuple(outcome for gate in gates for outcome in gate.outcomes)
    return verdicts


@dataclass(frozen=True)
class TreeCheck:
    """Checks one file of stacked rows, and counts them by cell if asked to, each unit as one."""

    tree: Tree
    rows: int | None
    batch_rows: int
    measured: Measured | None = None

    def gate(self) -> TreeGate:
        """Return the rules of all tables and of their keys."""
        return TreeGate(self.tree, self.rows)

    def tally(self) -> TreeTally | None:
        """Return a count of no rows, if rows are counted."""
        return None if self.measured is None else TreeTally.of(self.measured)

    def __call__(self, file: Path) -> tuple[TreeGate, TreeTally | None]:
        """Check a file from its first row to its last."""
        gate, codec, tally = self.gate(), TreeCodec(self.tree), self.tally()
        for batch in read_batches(file, self.batch_rows, self.tree, self.rows):
            if gate.check(batch) and tally is not None:
                tally.add_units(codec.encode(batch))
        return gate, tally


def file_check(contract: Tree, rows: int | None, batch_rows: int, measured: Measured | None) -> TreeCheck:
    """Return the check of a file of stacked rows."""
    return TreeCheck(contract, rows, batch_rows, measured)


def further_facts(measured: Measured, first: Sequence[Any], tally: Any) -> dict[str, Any]:
    """Return what was released of every table, beside what the synthetic rows hold."""
    return facts_of_tables(measured, first, tally)


def caution_of_rules(model: Any, rows: int, seed: int) -> str:
    """Say of which table fewer than half of the rows keep its rules as they are drawn, if of any."""
    return caution_of_tree(model, seed)


def check_tree(data: str | Path, contract: Tree, rows: int | None) -> TreeGate:
    """Check tables joined by their keys: those of a hand-off of so many units as they lie there, any others as read.

    Tables that are no hand-off may be in any form that a run reads, with their rows in any order, as a run takes them.
    Public rows are those of the schema, or where it has none those of a file beside the others.

    Raises:
        DataError: a table is missing or damaged, or a row names no row of its parent's table.
    """
    try:
        if rows is not None:
            return _checked(contract, {name: _read(Path(data), contract, name) for name in contract.tables}, data, rows)
        contract = load_public_files(contract, str(data))
        return _checked(contract, {name: _given(str(data), contract, name) for name in contract.tables}, data, rows)
    except (pa.ArrowException, TypeError, ValueError, KeyError):  # of tables that somebody else wrote
        raise DataError("", f"the tables in {data} are not of the types of the schema, and cannot be joined") from None


def _checked(contract: Tree, tables: dict[str, pa.Table], data: str | Path, rows: int | None) -> TreeGate:
    gate, parents, codec = TreeGate(contract, rows), dict[str, Whole](), TreeCodec(contract)
    for name, branch in contract.tables.items():
        if branch.parent is not None:
            keys = [_values(tables[branch.parent], key) for key in contract.tables[branch.parent].key]
            parents[name] = matched(keys, [_values(tables[name], key) for key in contract.keys_of(name)])
            if len(parents[name]) and parents[name].min() < 0:
                raise DataError(f"{name}.{contract.keys_of(name)[0]}", f"names a row that table {branch.parent} lacks")
            order = _order(tables[name], parents[name], branch.order if rows is None else None)
            tables[name], parents[name] = tables[name].take(pa.array(order)), parents[name][order]
    gate.check(codec.stacked(tables, parents))
    gate.settle()
    for name, table in public_tables(contract).items() if rows is not None else ():
        if not _rows_of(Path(data), name, schema_of(name, contract.public[name])).equals(table):
            raise DataError("", f"table {name} is public, and has not the rows that the schema says")
    return gate


def _order(table: pa.Table, parents: Whole, column: str | None) -> Whole:
    """Return the order of rows by parent, and by a column if there is one; else as they are."""
    if column is None:
        return np.argsort(parents, kind="stable")
    keys = pa.table({"parent": parents, "order": plain(table.column(column))})
    order: Whole = pc.sort_indices(keys, [("parent", "ascending"), ("order", "ascending")]).to_numpy()
    return order


def _given(data: str, tree: Tree, name: str) -> pa.Table:
    """Read a table that a run could be given."""
    types = TreeCodec(tree).output_of(name)
    with naming(name):
        batches = list(typed_rows(place_of(data, name), tree.handed_over(name), types))
        if missing := [column for column in types.names if not batches or column not in batches[0].schema.names]:
            raise DataError(missing[0], "must be in the table")
    return pa.Table.from_batches(batches).unify_dictionaries().select(types.names)


def _values(table: pa.Table, name: str) -> NDArray[Any]:
    values: NDArray[Any] = table.column(name).to_numpy()
    return values


def _read(folder: Path, tree: Tree, name: str) -> pa.Table:
    types, table = TreeCodec(tree).output_of(name), _rows_of(folder, name, tree.handed_over(name))
    if missing := [column for column in types.names if column not in table.column_names]:
        raise DataError(f"{name}.{missing[0]}", "must be in the table")
    return table.select(types.names)


def _rows_of(folder: Path, name: str, schema: Schema) -> pa.Table:
    place = folder / name if (folder / name).exists() else Path(place_of(str(folder), name))
    batches = [batch for file in parquet_files(place) for batch in read_batches(file, 2**16, schema)]
    return pa.Table.from_batches(batches).unify_dictionaries()
