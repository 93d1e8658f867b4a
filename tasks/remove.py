"""Delete a run's files. What the run was charged stays charged: the ledger is read here, and never written."""

import os
import shutil
from pathlib import Path

from dpmodels.errors import LedgerError
from dpmodels.ledger.records import Reservation
from tasks.budget import ADVICE
from tasks.home import ledger_of
from tasks.store import Run

SETTLED = ("committed", "voided")


def charged_for(run: Run) -> list[Reservation]:
    """Return every charge that a run has made, as the ledger and not the run's files name them.

    Raises:
        LedgerError: the ledger is not the one that the run was started with.
    """
    ledger = ledger_of(run)
    keys = {entry.charge for entry in ledger.entries() if entry.kind == "reserve" and entry.run == run.name}
    return [held for key in sorted(keys) if (held := ledger.find(key)) is not None]


def remove(run: Run) -> None:
    """Delete a run's folders in all three zones; what was handed over stays where it is.

    The folder that makes it a run is deleted last, so that the command can be given again if it is cut off. A link in
    the place of a folder is removed, and not followed.

    Raises:
        LedgerError: a charge is open, and its draw needs these files.
    """
    for held in charged_for(run):
        if held.state not in SETTLED:
            advice = ADVICE.get(held.state, "nacre ledger recover").format(run=run.name, key=held.key[:12])
            raise LedgerError(f"charge {held.key[:12]} of run {run.name} is {held.state}, so its files stay; {advice}")
    for folder in (run.sensitive, run.released, run.control):
        _remove(folder)


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif os.path.lexists(folder):
        shutil.rmtree(folder)
