"""A discovery in the stages: what it counts are the keys of a raw table, which is read once and kept nowhere."""

from pathlib import Path
from typing import Any

from dpmodels.contract.text_forms.written import with_forms
from dpmodels.methods.registry import system_of
from dpmodels.privacy import Sensitive
from dpmodels.reading.load import RawRows
from dpmodels.reading.unit_rows import load_unit_rows
from dpmodels.releases.system import System
from tasks.engine.engines import Engine
from tasks.run.store import Run

SYNTHESIZED = COMPARED = False


def system(run: Run) -> System[Any]:
    """Return the system of a discovery."""
    line = run.plan.release
    return system_of(line.method, line.measurement)


def records(run: Run, encoded: Path | None, engine: Engine) -> Sensitive[Any]:
    """Return the rows of a table whose columns have the names that the draft says; of a tree one of each unit."""
    line, settings = run.plan.release, run.settings
    if line.contract.kind == "discovery" and line.contract.tables:
        return load_unit_rows(line.contract, settings.data, settings.batch_rows, settings.decimals, settings.text_forms)
    reading = line.contract.reading(settings.decimals) if line.contract.kind == "discovery" else line.table
    rows = RawRows(settings.source.rows, with_forms(reading, settings.text_forms), settings.batch_rows)
    rows.check()
    return Sensitive(rows)
