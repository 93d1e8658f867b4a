"""Write the noisy tables of a run's release beside its hand-off.

Privacy: post-processing; no data is read, no ledger is opened and nothing is charged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpmodels.artifact import write_whole
from dpmodels.errors import ArtifactError
from dpmodels.releases.release import Release, read_release
from dpmodels.report.derived.counted import NULL
from dpmodels.report.noisy_tables import PARTS, Counted, Counts, noisy_tables
from tasks.run.ready import check_new_file
from tasks.run.store import Run
from tasks.run.table_file import check_ending, write_table

FOOTER = b"nacre.release"
NUMBERS = ("low", "high", "mean", "stddev")
"""What is said of the values in a cell of a column of numbers or dates."""
DAY = "D"
SECONDS = {DAY: 86_400, "h": 3600, "m": 60, "s": 1}
"""Seconds of each tick of dates, by numpy's name for it."""


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
    return _tidy(Counted(release).counts(columns)).replace_schema_metadata({FOOTER: release.entry})


def read_cells(run: Run, groups: Sequence[str], column: str, as_category: bool = False) -> list[pa.Table]:
    """Return the cells of a column beside those of the columns that make groups, as tables like ``read_counts``.

    Of a column that follows from others they are several, one for each term of its formula whose columns are counted
    by themselves: the mean of it is the sum of theirs. ``as_category`` asks for the values of a column as they are
    called, also where they are numbers.

    Raises:
        ArtifactError: the run has released nothing yet.
        Unsuitable: it has released no counts, or not those that are needed together.
    """
    counted = Counted(_release_of(run))
    terms = [""] if as_category else counted.terms(groups, column)
    return [_of_term(counted, groups, column, term) for term in terms]


def _of_term(counted: Counted, groups: Sequence[str], column: str, term: str) -> pa.Table:
    """Lay the cells of groups out beside a column, or beside what a term of its formula gives."""
    names = [*groups, column]
    cells = counted.cells(groups if term else names, groups, term)
    tidy = _columns(cells.counts, names)
    for name, labels in cells.groups.items():
        tidy[name] = pa.array(labels, pa.string()).dictionary_encode()
    if cells.moments is not None:
        is_null = np.isnan(cells.moments.mean).ravel()
        labels = [PARTS.join(row) for row in cells.counts.rows["cells"].to_pylist()]
        tidy[column] = pa.array(np.where(is_null, NULL, labels), pa.string()).dictionary_encode()
        for figure, values in cells.moments._asdict().items():
            tidy[apart(f"{column}_{figure}", names)] = pa.array(values.ravel(), mask=is_null)
    ordered = sorted(tidy, key=lambda name: names.index(name) if name in names else len(names))
    return pa.table({name: tidy[name] for name in ordered} | _counts(cells.counts, names))


def _tidy(counts_of: Counts) -> pa.Table:
    """Lay counts out with a column for each column of theirs, whose cells keep their order; numbers have bounds."""
    names = counts_of.rows["columns"][0].as_py()
    return pa.table(_columns(counts_of, names) | _counts(counts_of, names))


def _columns(counts_of: Counts, names: Sequence[str]) -> dict[str, pa.Array]:
    """Return what the cells of those columns that have a name in ``names`` are called, and what lies in them."""
    table, tidy = counts_of.rows, dict[str, pa.Array]()
    rows = table.select(["cells", *NUMBERS]).to_pydict()
    for axis, name in enumerate(table["columns"][0].as_py()):
        if name not in names:
            continue
        tidy[name] = pa.array([row[axis] for row in rows["cells"]], pa.string()).dictionary_encode()
        numbers = {f"{name}_{part}": [row[axis] for row in rows[part]] for part in NUMBERS}
        if any(low is not None for low in numbers[f"{name}_low"]):
            tick = counts_of.ticks.get(name, "")
            tidy |= {apart(figure, names): _side(side, figure, tick) for figure, side in numbers.items()}
    return tidy


def _counts(counts_of: Counts, names: Sequence[str]) -> dict[str, pa.Array]:
    """Return the counts of cells, with their errors and shares, under names that no column has."""
    table, counts = counts_of.rows, counts_of.rows["count"].to_numpy()
    figures = {"count": counts, "standard_error": table["standard_error"].to_numpy(), "share": counts / counts.sum()}
    return {apart(name, names): pa.array(values) for name, values in figures.items()}


def _side(side: Sequence[float | None], figure: str, tick: str) -> pa.Array:
    """Return a figure of the values in each cell: a number, or of dates in ticks a date, a moment or a duration."""
    if not tick:
        return pa.array(side, pa.float64())
    whole = pa.array([None if one is None else round(one * SECONDS[tick]) for one in side], pa.int64())
    if figure.endswith("_stddev"):
        return whole.cast(pa.duration("s"))
    moments = whole.cast(pa.timestamp("s"))
    return moments.cast(pa.date32()) if tick == DAY and not figure.endswith("_mean") else moments


def apart(figure: str, columns: Sequence[str]) -> str:
    """Return the name of a figure beside columns: with a ``_`` behind it where one of them is called as it is."""
    return f"{figure}_" if figure in columns else figure


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
