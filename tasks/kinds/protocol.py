"""The kinds of data: what the stages ask of tables, of users, documents, clients and discoveries, in a module each."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from dpmodels.gate.expectations import Verdicts
from dpmodels.generators.operators import network as operator_network
from dpmodels.methods.kinds import KINDS, SYNTHESIZED
from dpmodels.methods.registry import METHODS
from dpmodels.privacy import Sensitive
from dpmodels.releases.contract import Contract
from dpmodels.releases.plan import Line
from dpmodels.releases.system import System
from dpmodels.report.bins import CellTally
from dpmodels.report.fidelity import Measured
from tasks.engine.engines import Engine
from tasks.run.networks import listed
from tasks.run.store import Handle, Run

operator_network.listing = listed


class FileCheck(Protocol):
    """Checks one Parquet file of what is handed over."""

    def gate(self) -> Verdicts:
        """Return the rules, of which nothing is known yet."""

    def tally(self) -> CellTally | None:
        """Return a count of no rows, where one was asked for."""

    def __call__(self, file: Path) -> tuple[Verdicts, CellTally | None]:
        """Check a file from its first row to its last."""


class Kind(Protocol):
    """What differs between kinds of data until it is measured; all else is the same code.

    Clients and discoveries encode nothing: their data is looked at where it is measured.
    """

    SYNTHESIZED: bool
    """Whether a generator is fitted to the release, of rows that may lie on a cluster."""
    COMPARED: bool
    """Whether there is an internal report that compares with the real data."""

    def check_columns(self, contract: Any, data: str, parents: str) -> None:
        """Hold the names and types of raw data in files to its contract, before there is a run; reads no rows."""

    def encode(self, run: Run, folder: Path) -> None:
        """Read the raw data, check it, and write it into a folder of the sensitive zone as it is measured."""

    def system(self, run: Run) -> System[Any]:
        """Return the system of a run's line, with the public vectors that it needs."""

    def records(self, run: Run, encoded: Path | None, engine: Engine) -> Sensitive[Any]:
        """Return what is measured: what was encoded into a folder or, of kinds that encode nothing, the raw data."""


class DirectKind(Kind, Protocol):
    """What validation and publishing ask of the kinds whose product is read off the release, without a generator."""

    def facts(self, run: Run, release: Handle) -> dict[str, Any]:
        """Return the facts of the publishable report, of released objects alone."""

    def write(self, run: Run, folder: Path) -> None:
        """Write the product into the folder of a hand-off."""


class SynthesizedKind(Kind, Protocol):
    """What sampling and validation ask of the kinds that are synthesized."""

    def file_check(self, contract: Any, rows: int | None, batch_rows: int, measured: Measured | None) -> FileCheck:
        """Return the check of a file; with ``measured``, it counts the rows on the cells that the report shows."""

    def caution_of_rules(self, model: Any, rows: int, seed: int) -> str:
        """Say what the rules of the contract did to synthetic rows, if fewer than half keep them as they are drawn."""

    def further_facts(self, measured: Measured, first: Sequence[Any], tally: Any) -> dict[str, Any]:
        """Return facts for the publishable report that only this kind has, of released objects alone.

        ``first`` are some synthetic rows, and ``tally`` counts all of them on the cells that the report shows.
        """


def kind_of(contract: Contract) -> SynthesizedKind:
    """Return the kind that a contract is of where it is synthesized."""
    return cast(SynthesizedKind, _module(contract.kind if contract.kind in SYNTHESIZED else "table"))


def kind_of_line(line: Line) -> Kind:
    """Return the kind of a line: by its method, or by its contract where the method is for all that is synthesized."""
    kind = METHODS[line.method].kind if line.method in METHODS else "table"
    return kind_of(line.contract) if kind == "table" else cast(Kind, _module(kind))


def direct_kind_of(line: Line) -> DirectKind | None:
    """Return the kind of a line whose product is read off the release; None where rows are synthesized."""
    kind = kind_of_line(line)
    return None if kind.SYNTHESIZED else cast(DirectKind, kind)


def _module(kind: str) -> Any:
    """Import the module of a kind, which may need what not every installation has."""
    return import_module(f".{KINDS[kind].module}", __package__)
