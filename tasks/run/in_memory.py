"""Data that was given in memory, and lies in a run's sensitive folder until the run was handed over."""

import shutil

from tasks.run.store import Run

GIVEN, GIVEN_TABLES = "given.parquet", "given"
"""In a run's sensitive folder the file of rows that were given in memory, and the folder of several tables."""


def are_given(run: Run) -> bool:
    """Tell whether a run's rows were given in memory."""
    return run.settings.data in {str(run.sensitive / name) for name in (GIVEN, GIVEN_TABLES)}


def forget_given(run: Run) -> None:
    """Delete the files of rows that were given in memory, even if they are incomplete; encoded rows replace them."""
    for name in (GIVEN, f".part-{GIVEN}"):
        (run.sensitive / name).unlink(missing_ok=True)
    shutil.rmtree(run.sensitive / GIVEN_TABLES, ignore_errors=True)
