"""Tables in the stages: rows are read, held to their schema and encoded; a synthetic table is held to it again."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmodels.codec.encode import Codec
from dpmodels.contract.columns import computed
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.written import with_forms
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.gate.made_files import read_batches
from dpmodels.reading.data_files import find_files
from dpmodels.reading.faults.of_dates import with_check, with_order
from dpmodels.reading.ingest import faults_in, transform_check, transform_encode, with_others
from dpmodels.reading.load import are_apart, check_first, load_parts
from dpmodels.report.bins import CellTally
from dpmodels.report.fidelity import Measured
from tasks.engine.engines import Threads, cores, open_engine
from tasks.engine.progress import LOG
from tasks.kinds.gate_page import keep_gate, refused_input
from tasks.kinds.synthesized import caution_of_rules as caution_of_rules
from tasks.kinds.synthesized import records as records
from tasks.kinds.synthesized import system as system
from tasks.run.store import Run
from tasks.run.table_inputs import names_in

SYNTHESIZED = COMPARED = True
COMPUTED_TOO = (
    "is computed, as `{}`, and is in the data too, where its values would go unread: leave it out of the data, or "
    "write it in the schema without `computed`, to keep the values of the data"
)


def check_columns(contract: Schema, data: str, parents: str) -> None:
    """Hold the columns of a table's first file to its schema."""
    check_first(data, contract)
    check_computed(contract, data)


def check_computed(contract: Schema, data: str) -> None:
    """Refuse a raw table with a column that its schema computes, whose values would go unread.

    Raises:
        DataError: it has one.
    """
    if computed(contract.columns) and contract.image is None:
        refuse_computed(contract, names_in(find_files(data)[0], contract))


def refuse_computed(contract: Schema, names: Collection[str]) -> None:
    """Refuse the names of a raw table among which is one that its schema computes.

    Raises:
        DataError: there is one.
    """
    for name, formula in computed(contract.columns).items():
        if name in names:
            raise DataError(name, COMPUTED_TOO.format(formula))


def encode(run: Run, folder: Path) -> None:
    """Encode the rows, and leave the gate's results in the sensitive zone."""
    settings = run.settings
    schema = with_forms(run.plan.release.table, settings.text_forms)
    source, gate = settings.source.rows, Gate(schema, raw=True)
    dask = run.dask if are_apart(source, schema) else None
    if dask != run.dask:
        LOG.info("images, answers to queries and tables of users are read on this machine, from front to back")
    try:
        raw = load_parts(source, schema, settings.batch_rows)
        with open_engine(settings.threads, dask) as engine:
            transform_encode(raw, gate, folder, engine.map)
    except DataError as fault:
        every = faults_in(source, schema, settings.batch_rows)
        raise refused_input(run, with_check(with_others(fault, every)), gate) from None
    keep_gate(run, gate)


def check_raw(data: str, schema: Schema, batch_rows: int) -> Gate:
    """Check a raw table as a run does that is given it: what it leaves out or changes by policy breaks no rule.

    Privacy: exact counts of the rows, for whoever has them at hand.

    Raises:
        DataError: the table has other columns than the schema, cannot be read, or holds no row that it admits.
    """
    try:
        check_computed(schema, data)
        return transform_check(load_parts(data, schema, batch_rows), schema, Threads(cores()).map)
    except DataError as fault:
        every = with_others(fault, faults_in(data, schema, batch_rows))
        raise with_order(every, data, schema, batch_rows) from None


@dataclass(frozen=True)
class TableCheck:
    """Checks one Parquet file against the schema, and counts its rows by cell if asked to.

    The codec refuses values outside the schema. A batch that it can encode is judged by its witness rows; any
    other batch is left to the whole suite, which names every fault.
    """

    schema: Schema
    rows: int | None
    batch_rows: int
    cells: Codec | None = None

    def gate(self) -> Gate:
        """Return the suite of the schema."""
        return Gate(self.schema, raw=False, rows=self.rows)

    def tally(self) -> CellTally | None:
        """Return a count of no rows, if rows are counted."""
        return None if self.cells is None else CellTally(self.cells)

    def __call__(self, file: Path) -> tuple[Gate, CellTally | None]:
        """Check a file from its first row to its last."""
        gate, codec, tally = self.gate(), Codec(self.schema.refusing()), self.tally()
        for batch in read_batches(file, self.batch_rows, self.schema, self.rows):
            try:
                records = codec.encode(batch)
            except DataError:
                gate.check(batch)
                continue
            gate.check_encoded(batch)
            if tally is not None:
                tally.add(records)
        return gate, tally


def file_check(contract: Schema, rows: int | None, batch_rows: int, measured: Measured | None) -> TableCheck:
    """Return the check of a file of rows."""
    return TableCheck(contract, rows, batch_rows, measured.codec if measured else None)


def further_facts(measured: Measured, first: Sequence[Any], tally: Any) -> dict[str, Any]:
    """Return nothing: the report on a table has no other facts than any report."""
    return {}
