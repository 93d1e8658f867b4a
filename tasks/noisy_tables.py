"""Write the noisy tables of a run's release beside its hand-off.

Privacy: post-processing; no data is read, no ledger is opened and nothing is charged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.artifact import write_whole
from dpmodels.errors import ArtifactError
from dpmodels.evaluation.published.noisy_tables import noisy_tables
from dpmodels.releases.release import read_release
from tasks.ready import check_new_file
from tasks.store import Run

FOOTER = b"nacre.release"


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
    if run.finished("sanitize") is None:
        raise ArtifactError(f"run {run.name} has released nothing yet; resume it first")
    release = read_release(run.read("sanitize")).value
    for table in noisy_tables(release):
        yield table.replace_schema_metadata({FOOTER: release.entry})


def write_tables(run: Run, out: Path) -> Written:
    """Write the noisy tables of a run's release to one Parquet file, which is whole or absent.

    Raises:
        ArtifactError: the place is taken or cannot be written.
    """
    check_new_file(out)
    counts, last, entry = 0, 0, ""

    def write(path: Path) -> None:
        nonlocal counts, last, entry
        parts = read_tables(run)
        first = next(parts)
        with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
            for table in chain([first], parts):
                writer.write_table(table)
                counts, last = counts + len(table), table["table"][-1].as_py()
        entry = first.schema.metadata[FOOTER].decode()

    write_whole(out, write)
    return Written(run.name, run.plan.release.method, entry, last + 1, counts)
