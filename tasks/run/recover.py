"""Put a run in order after a process that died: sweep what it left, and make the folders that it did not make."""

import re

from dpmodels.artifact import left_by, make_folder, sweep
from tasks.run.store import Run


def recover(run: Run) -> None:
    """Prepare a run for a process that goes on with it; what another live process is writing stays."""
    for one in {party.name: party for party in (*run.parties, run)}.values():
        if not one.released.is_symlink():
            make_folder(one.released / "stages")
        for folder in (one.sensitive, one.control, one.released):
            sweep(folder.parent, folder.name)
    sweep_beside(run)


def sweep_beside(run: Run) -> None:
    """Delete what was to become a run or its hand-off, or was being removed; the last name is of earlier versions."""
    for zone in (".", "sensitive", "control", "released"):
        sweep(run.home, zone, deep=False)
    for memory in (".partitions", ".contents"):
        sweep(run.home / "sensitive", memory)
    out = run.settings.out
    former = re.escape(f".part-{out.name}-{run.name}")
    sweep(out.parent, ".", re.compile(f"{left_by(run.name).pattern}|{former}"), deep=False)
