"""Users and their rows in the stages: two tables are read and joined, and cut apart again in the hand-off.

What is encoded, drawn and checked is one flat table (dpmodels/contract/family.py).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.codec.encode import Codec
from dpmodels.codec.flat import join, split, tables_of, units_in, weights_of
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.written import with_forms
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate, Verdicts
from dpmodels.gate.family_gate import FamilyGate
from dpmodels.gate.made_files import parquet_files, read_batches
from dpmodels.reading.faults.of_dates import with_check, with_order
from dpmodels.reading.ingest import faults_in, with_others
from dpmodels.reading.join import transform_join
from dpmodels.reading.load import check_first, load_parts
from dpmodels.releases.contract import table_of
from dpmodels.report.bins import CellTally
from dpmodels.report.fidelity import Measured
from tasks.kinds.gate_page import keep_gate, refused_input
from tasks.kinds.synthesized import caution_of_rules as caution_of_rules
from tasks.kinds.synthesized import records as records
from tasks.kinds.synthesized import system as system
from tasks.run.store import Run

SYNTHESIZED = COMPARED = True


def check_columns(contract: Schema, data: str, parents: str) -> None:
    """Hold the columns of both tables' first files to the schema."""
    check_first(data, contract.children if parents else contract.joined)
    if parents:
        check_first(parents, contract.parents, [str(contract.unit.user)])


def encode(run: Run, folder: Path) -> None:
    """Read both tables, join and encode them, and leave the gates' results in the sensitive zone."""
    settings = run.settings
    schema = with_forms(table_of(run.plan.release.contract), settings.text_forms)
    parts = [(schema.children if settings.parents else schema.joined, settings.source.rows)]
    if settings.parents:
        parts.append((schema.parents, settings.parents))
    key = str(schema.unit.user)
    gates = [Gate(part, raw=True) for part, _ in parts]
    try:
        tables = [load_parts(uri, part, settings.batch_rows, [key]) for part, uri in parts]
        transform_join(schema, tables[0], tables[1] if settings.parents else None, gates, folder, settings.batch_rows)
    except DataError as fault:
        sides = (faults_in(uri, part, settings.batch_rows, [key], of_users=True) for part, uri in parts)
        every = with_check(with_others(fault, chain.from_iterable(sides)))
        raise refused_input(run, every, _of_both(schema, gates)) from None
    keep_gate(run, _of_both(schema, gates))


def _of_both(schema: Schema, gates: Sequence[Gate]) -> Verdicts:
    both = Verdicts(schema, [], raw=True)
    both.outcomes = tuple(outcome for gate in gates for outcome in gate.outcomes)
    return both


def check_raw_rows(data: str, schema: Schema, batch_rows: int) -> Gate:
    """Check raw rows of users, which hold the columns of their user as well, as a run does that is given them.

    Privacy: exact counts of the rows, for whoever has them at hand; the joined table lasts as long as the check does.

    Raises:
        DataError: the table has other columns, cannot be read, breaks a rule, or what is a user's own differs among
            the user's rows.
    """
    rows, key = schema.joined, str(schema.unit.user)
    gate = Gate(rows, raw=True, tells=True)
    try:
        with TemporaryDirectory() as folder:
            parts = load_parts(data, rows, batch_rows, [key])
            transform_join(schema, parts, None, [gate], Path(folder), batch_rows)
    except DataError as fault:
        every = with_others(fault, faults_in(data, rows, batch_rows, [key], of_users=True))
        raise with_order(every, data, rows, batch_rows) from None
    return gate


@dataclass(frozen=True)
class FlatCheck:
    """Checks one file of the flat table, and counts its rows by cell if asked to, each user as one."""

    schema: Schema
    rows: int | None
    batch_rows: int
    cells: Codec | None = None

    def gate(self) -> FamilyGate:
        """Return the rules of both tables and of their keys."""
        return FamilyGate(self.schema, self.rows)

    def tally(self) -> CellTally | None:
        """Return a count of no rows, if rows are counted."""
        return None if self.cells is None else CellTally(self.cells)

    def __call__(self, file: Path) -> tuple[FamilyGate, CellTally | None]:
        """Check a file from its first row to its last."""
        most = None if self.rows is None else self.rows * max(1, self.schema.unit.max_rows)
        return self.check(read_batches(file, self.batch_rows, self.schema, most))

    def check(self, batches: Iterable[Any]) -> tuple[FamilyGate, CellTally | None]:
        """Check the rows of one file."""
        gate, codec, tally = self.gate(), Codec(self.schema.flat.refusing()), self.tally()
        for batch in batches:
            gate.check(batch)
            if tally is not None and gate.sound:
                records = codec.encode(batch)
                tally.add(records, units_in(self.schema, records), weights_of(self.schema, records))
        gate.end()
        return gate, tally


def file_check(contract: Schema, rows: int | None, batch_rows: int, measured: Measured | None) -> FlatCheck:
    """Return the check of a file of the flat table."""
    return FlatCheck(contract, rows, batch_rows, measured.codec if measured else None)


def further_facts(measured: Measured, first: Sequence[Any], tally: Any) -> dict[str, Any]:
    """Return nothing: how many children a user has is a column of the report."""
    return {}


def write_split(
    contract: Any,
    flat: Iterable[pa.Table],
    folder: Path,
    file: str,
    footer: Callable[[], dict[bytes, bytes]] = dict,
    public: Mapping[str, pa.Table] = MappingProxyType({}),
) -> None:
    """Write rows of the flat table as its tables, and public ones, to a file of this name in a folder for each."""
    writers: dict[str, pq.ParquetWriter] = {}
    try:
        for tables in chain([public], (split(contract, table) for table in flat)):
            for name, part in tables.items():
                if name not in writers:
                    (folder / name).mkdir(exist_ok=True)
                    writers[name] = pq.ParquetWriter(folder / name / file, part.schema, compression="zstd")
                writers[name].write_table(part)
        for writer in writers.values():
            writer.add_key_value_metadata(footer())
    finally:
        for writer in writers.values():
            writer.close()


def check_tables(folder: Path, contract: Schema, rows: int | None) -> FamilyGate:
    """Check the tables of a hand-off, joined by their keys.

    Raises:
        DataError: a table is missing or damaged, or lacks a column that joins it.
    """
    tables = {name: _read(folder / name, contract) for name in tables_of(contract)}
    key = str(contract.unit.user)
    if any(key not in table.column_names for table in tables.values()):
        raise DataError(key, "must be in both tables, which it joins")
    check = file_check(contract, rows, len(tables["children"]) + 1, None)
    gate, _ = check.check([join(contract, tables)])
    gate.settle()
    return gate


def _read(folder: Path, contract: Schema) -> pa.Table:
    batches = [batch for file in parquet_files(folder) for batch in read_batches(file, 2**16, contract)]
    return pa.Table.from_batches(batches).unify_dictionaries()
