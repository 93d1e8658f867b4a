"""The kinds of contract: what the stages ask of tables, users and their rows, and documents, in a module each."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from dpmodels.contract.documents import Documents
from dpmodels.contract.schema import Schema
from dpmodels.gate.expectations import Verdicts
from dpmodels.releases.contract import Contract
from dpmodels.report.bins import CellTally
from dpmodels.report.fidelity import Measured
from tasks.kinds import documents as of_documents
from tasks.kinds import tables as of_tables
from tasks.kinds import users as of_users
from tasks.run.store import Run


class FileCheck(Protocol):
    """Checks one Parquet file of what is handed over."""

    def gate(self) -> Verdicts:
        """Return the rules, of which nothing is known yet."""

    def tally(self) -> CellTally | None:
        """Return a count of no rows, where one was asked for."""

    def __call__(self, file: Path) -> tuple[Verdicts, CellTally | None]:
        """Check a file from its first row to its last."""


class Kind(Protocol):
    """What differs between contracts; all else is the same code."""

    COMPARED: bool
    """Whether there is an internal report that compares with the real data."""

    def check_columns(self, contract: Any, data: str, parents: str) -> None:
        """Hold the names and types of raw data in files to its contract, before there is a run; reads no rows."""

    def encode(self, run: Run, folder: Path) -> None:
        """Read the raw data, check it, and write it into a folder of the sensitive zone in the form that is summed."""

    def file_check(self, contract: Any, rows: int | None, batch_rows: int, measured: Measured | None) -> FileCheck:
        """Return the check of a file; with ``measured``, it counts the rows on the cells that the report shows."""

    def further_facts(self, measured: Measured, first: Sequence[Any]) -> dict[str, Any]:
        """Return facts for the publishable report that only this kind has, of released objects alone."""


def kind_of(contract: Contract) -> Kind:
    """Return the kind of a contract."""
    if isinstance(contract, Documents):
        return of_documents
    return of_users if isinstance(contract, Schema) and contract.users else of_tables
