"""Delete a run's files. What the run was charged stays charged: the ledger is read here, and never written."""

import os
import shutil
from pathlib import Path

from dpmodels.artifact import aside
from dpmodels.errors import LedgerError
from dpmodels.ledger.records import Reservation
from tasks.bucket import Bucket
from tasks.budget import ADVICE
from tasks.home import ledger_of
from tasks.recover import sweep_beside
from tasks.store import Run

SETTLED = ("committed", "voided")


def folders_of(run: Run) -> list[Path]:
    """Return the folders of a run, and of a federation's clients before its own; what makes it a run comes last."""
    clients = [own for own in run.parties if own.name != run.name]
    return [folder for own in [*clients, run] for folder in (own.sensitive, own.released, own.control)]


def charged_for(run: Run) -> list[Reservation]:
    """Return every charge that a run, or a federation's clients, made, as the ledger and not the run's files name them.

    Raises:
        LedgerError: the ledger is not the one that the run was started with.
    """
    ledger, names = ledger_of(run), {run.name, *(own.name for own in run.parties)}
    keys = {entry.charge for entry in ledger.entries() if entry.kind == "reserve" and entry.run in names}
    return [held for key in sorted(keys) if (held := ledger.find(key)) is not None]


def remove(run: Run) -> None:
    """Delete a run's folders in all three zones, and those of a federation's clients; what was handed over stays.

    What a run that never handed over left in an object store is taken away too, if that can be reached. The folder that
    makes it a run is deleted last, so that the command can be given again if it is cut off. A link in the place of a
    folder is removed, and not followed.

    Raises:
        LedgerError: a charge is open, and its draw needs these files.
    """
    for held in charged_for(run):
        if held.state not in SETTLED:
            advice = ADVICE.get(held.state, "nacre ledger recover").format(run=run.name, key=held.key[:12])
            raise LedgerError(
                f"charge {held.key[:12]} of run {held.charge.run} is {held.state}, so its files stay; {advice}"
            )
    if place := run.settings.bucket:
        Bucket(place).abandon(run.name)
    sweep_beside(run)
    for folder in folders_of(run):
        _remove(folder)


def _remove(folder: Path) -> None:
    """Delete a folder, which is gone at once, so that a command that is cut off never leaves half a run."""
    if folder.is_symlink():
        folder.unlink()
    elif os.path.lexists(folder):
        with aside(folder) as part:
            os.replace(folder, part)
            shutil.rmtree(part)
