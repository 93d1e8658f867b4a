"""Delete a run's files. What the run was charged stays charged: the ledger is read here, and never written."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from dpmodels.artifact import aside
from dpmodels.errors import LedgerError, NacreError
from dpmodels.ledger.records import Reservation
from tasks.run.accounts import APPROVAL
from tasks.run.bucket import Bucket
from tasks.run.charges import ADVICE
from tasks.run.home import ledger_of
from tasks.run.lock import alone
from tasks.run.recover import sweep_beside
from tasks.run.store import Run

SETTLED = ("committed", "voided")


def folders_of(run: Run) -> list[Path]:
    """Return the folders of a run, and of a federation's clients before its own; what makes it a run comes last."""
    clients = [party for party in run.parties if party.name != run.name]
    return [folder for one in [*clients, run] for folder in (one.sensitive, one.released, one.control)]


def charged_for(run: Run) -> list[Reservation]:
    """Return every charge that a run, or a federation's clients, made, as the ledger and not the run's files name them.

    Raises:
        LedgerError: the ledger is not the one that the run was started with.
    """
    ledger, names = ledger_of(run), {run.name, *(party.name for party in run.parties)}
    keys = {entry.charge for entry in ledger.entries() if entry.kind == "reserve" and entry.run in names}
    return [charge for key in sorted(keys) if (charge := ledger.find(key)) is not None]


def remove_private(run: Run) -> None:
    """Delete a run's folder in the sensitive zone alone; its release, its hand-off and its charges stay.

    Raises:
        LedgerError: a charge is open, and its draw needs these files.
        ArtifactError: a process works on the run.
    """
    with alone(run):
        _check_settled(run)
        _remove(run.sensitive)


def remove(run: Run) -> None:
    """Delete a run's folders in all three zones, and those of a federation's clients; what was handed over stays.

    What a run that never handed over left in an object store is taken away too, if that can be reached. The folder that
    makes it a run is deleted last, so that the command can be given again if it is cut off. A link in the place of a
    folder is removed, and not followed.

    Raises:
        LedgerError: a charge is open, and its draw needs these files.
        ArtifactError: a process works on the run.
    """
    with alone(run):
        _check_settled(run)
        if uri := run.settings.bucket:
            Bucket(uri).abandon(run.name)
        sweep_beside(run)
        for folder in folders_of(run):
            _remove(folder)


def _check_settled(run: Run) -> None:
    for charge in charged_for(run):
        if charge.state not in SETTLED:
            advice = ADVICE.get(charge.state, "nacre ledger recover").format(run=run.name, key=charge.key[:12])
            raise LedgerError(
                f"charge {charge.key[:12]} of run {charge.charge.run} is {charge.state}, so its files stay; {advice}"
            )


def took_charge(run: Run) -> bool:
    """Tell whether a run took a charge that was not given back.

    Raises:
        LedgerError: the ledger is not the one that the run was started with.
    """
    return any(charge.state != "voided" for charge in charged_for(run))


def is_approved(run: Run) -> bool:
    """Tell whether somebody signed for a run, who would have to sign again for another."""
    return any((party.control / APPROVAL).exists() for party in run.parties)


def withdraw(run: Run) -> None:
    """Delete a run whose input was refused, unless it took a charge, or somebody signed for it or works on it."""
    with suppress(NacreError, OSError):  # whoever withdraws it has an error to raise that says more
        if not took_charge(run) and not is_approved(run):
            remove(run)


def _remove(folder: Path) -> None:
    """Delete a folder, which is gone at once, so that a command that is cut off never leaves half a run."""
    if folder.is_symlink():
        folder.unlink()
    elif os.path.lexists(folder):
        with aside(folder) as part:
            os.replace(folder, part)
            shutil.rmtree(part)
