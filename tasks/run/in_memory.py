"""Data that was given in memory, and lies in a run's sensitive folder until the run was handed over."""

from tasks.run.store import Run

GIVEN = "given.parquet"
"""File in a run's sensitive folder that holds the rows if they were given in memory."""


def forget_given(run: Run) -> None:
    """Delete the file of rows that were given in memory, even if it is incomplete; encoded rows replace it."""
    for name in (GIVEN, f".part-{GIVEN}"):
        (run.sensitive / name).unlink(missing_ok=True)
