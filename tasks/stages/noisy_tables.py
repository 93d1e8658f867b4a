"""Write the noisy tables of a run's release beside its hand-off.

Privacy: post-processing; no data is read, no ledger is opened and nothing is charged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from dpmodels.artifact import write_whole
from dpmodels.errors import ArtifactError
from dpmodels.releases.release import Release, read_release
from dpmodels.report.counts.noisy_tables import Counted, noisy_tables
from dpmodels.report.groups.cells import apart, tidy
from tasks.run.ready import check_new_file
from tasks.run.store import Run
from tasks.run.table_file import check_ending, write_table
from tasks.stages.counted_names import as_asked, counted_names
from tasks.stages.listed import counts_with_values

FOOTER = b"nacre.release"
LIKELY = "likely"
"""What the most likely count of a cell is called, beside the one that was released."""


@dataclass(frozen=True)
class Written:
    """What was written, and of which release."""

    run: str
    method: str
    release: str
    tables: int
    counts: int


def read_tables(run: Run) -> Iterator[pa.Table]:
    """Yield the rows of all noisy tables of a run's release; the footer of each names the charge that paid.

    Raises:
        ArtifactError: the run has released nothing yet.
        Unsuitable: its method releases no counts.
    """
    release = _release_of(run)
    for table in noisy_tables(release):
        yield table.replace_schema_metadata({FOOTER: release.entry})


def read_counts(run: Run, columns: Sequence[str]) -> pa.Table:
    """Return the counts of some columns, a row a cell, as a table with a column for each of them.

    Raises:
        ArtifactError: the run has released nothing yet.
        Unsuitable: it has released no counts, or none of these columns together.
    """
    release = _release_of(run)
    counted = Counted(release)
    in_place = counted_names(columns, counted.columns)
    names = [in_place.get(one, one) for one in columns]
    counts = tidy(counted.counts(names))
    counts = counts.append_column(apart(LIKELY, names), pa.array(counted.likely_counts(names)))
    table = counts_with_values(counts, names, counted.columns)
    table = table.rename_columns([*as_asked(table.column_names, in_place).values()])
    return table.replace_schema_metadata({FOOTER: release.entry})


def read_counted(run: Run) -> Counted:
    """Return the tables that a run's release counts.

    Raises:
        ArtifactError: the run has released nothing yet.
        Unsuitable: it has released no counts.
    """
    return Counted(_release_of(run))


def _release_of(run: Run) -> Release:
    if run.finished("sanitize") is None:
        raise ArtifactError(f"run {run.name} has released nothing yet; resume it first")
    return read_release(run.read("sanitize")).value


def write_tables(run: Run, out: Path, columns: Sequence[str] = ()) -> Written:
    """Write the noisy tables of a run's release to one file, in the format of its ending; it is whole or absent.

    With ``columns`` it is the counts of these alone, as ``read_counts`` lays them out.

    Raises:
        Unsuitable: the release holds no counts, or none of these columns together.
        ArtifactError: the path is taken or cannot be written.
        InvalidArgument: the ending names no format.
    """
    check_new_file(out)
    check_ending(out)
    counts, last, entry = 0, 0, b""

    def tables() -> Iterator[pa.Table]:
        nonlocal counts, last, entry
        for table in [read_counts(run, columns)] if columns else read_tables(run):
            counts, entry = counts + len(table), table.schema.metadata[FOOTER]
            last = 0 if columns else table["table"][-1].as_py()
            yield table

    write_whole(out, lambda path: write_table(tables(), path, out.suffix.lower(), dict))
    return Written(run.name, run.plan.release.method, entry.decode(), last + 1, counts)
