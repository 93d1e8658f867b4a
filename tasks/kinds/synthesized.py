"""What tables, users, images and collections of documents share: encoded rows are measured for a generator."""

from pathlib import Path
from typing import Any

from dpmodels.generators.constraints import caution_of_rules as caution_of_rules
from dpmodels.methods.registry import create
from dpmodels.privacy import Sensitive
from dpmodels.releases.system import System
from tasks.engine.encoded import EncodedTable
from tasks.engine.engines import Engine
from tasks.run.store import Run


def system(run: Run) -> System[Any]:
    """Return the system of a run's release."""
    line = run.plan.release
    return create(line.method, line.measurement, run.settings.training)


def records(run: Run, encoded: Path | None, engine: Engine) -> Sensitive[Any]:
    """Return the encoded rows, which the engine sums."""
    return Sensitive(EncodedTable(encoded or run.sensitive, run.plan.release.contract, engine))
