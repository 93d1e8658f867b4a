"""Draw rows from a run's generator beside its hand-off, under conditions if there are any.

Privacy: post-processing; no data is read, no ledger is opened and nothing is charged.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpmodels.artifact import aside, replace_folder, write_whole
from dpmodels.codec.embedded import codec_of
from dpmodels.codec.flat import handed_over, public_tables, tables_of, units_in
from dpmodels.codec.rules import Conditions, conditions_of
from dpmodels.errors import ArtifactError, Unsuitable
from dpmodels.generators.conditional import sample_where
from dpmodels.generators.constraints import sample_valid
from tasks.engine.pools import limited_pools
from tasks.engine.progress import Tick, progress_bar
from tasks.kinds.users import write_split
from tasks.run.ready import check_new_file, pick_device
from tasks.run.receive import check_received
from tasks.run.store import Run
from tasks.run.table_file import check_ending, write_table
from tasks.stages.csv_forms import in_days
from tasks.stages.sample import read_generator, rows_of

FOOTER = b"nacre.sample"
RARE = "fewer than one record meets this by the release: the rows tell of its noise"
"""What drawn rows are warned of that stand for fewer than one record."""


@dataclass(frozen=True)
class Drawn:
    """What is known of drawn rows; ``share``: of the rows of a plain sample that meet the conditions, as far as known.

    ``records`` is the released (noisy) number of records that meet them. Identifiers are those of rows, or units, that
    come ``after`` so many others.
    """

    run: str
    release: str
    method: str
    seed: int
    where: tuple[str, ...]
    rows: int = 0
    share: float = 1.0
    records: float = 0.0
    after: int = 0


def draw_rows(
    run: Run, rows: int, where: Sequence[str], seed: int | None, device: str = "auto", after: int | None = None
) -> Iterator[tuple[pa.Table, Drawn]]:
    """Yield tables of synthetic rows that meet all conditions, each with what is known by then.

    Of users and their rows, ``rows`` counts users, and the tables are flat (dpmodels/contract/family.py). Of a tree it
    counts units, and those are drawn that meet the conditions: on each table, by one of their rows.

    Without a seed they are drawn by the one after the run's, so that they are other rows than the run's own. Without
    ``after`` their identifiers come after those of the run's own, so that both can be put together.

    Raises:
        ArtifactError: the run has no generator.
        Unsuitable: a condition is none, or no row meets them.
        DataError: too few rows meet them, or the pattern of an identifier has no more.
    """
    handle = run.finished("train")
    if handle is None:
        raise ArtifactError(f"run {run.name} has no trained generator; resume it first, if it trains one")
    check_received(run, handle)
    if where:  # before anything that takes seconds is loaded
        _conditions(run.plan.release.contract, where).check()
    device, total = pick_device(device), 0
    seed = (run.settings.seed + 1) % 2**31 if seed is None else seed
    with limited_pools(), progress_bar("sample") as tick:
        model = read_generator(handle.path, handle.sha256)
        codec = codec_of(model.schema)
        first = rows_of(run, model) if after is None else after
        facts = Drawn(run.name, model.release_entry, run.plan.release.method, seed, tuple(where), after=first)
        for records, share in _batches(model, rows, where, seed, device, tick):
            table = handed_over(model.schema, codec.decode(records, first + total))
            total += units_in(model.schema, records)
            yield (
                table,
                Drawn(**asdict(facts) | {"rows": total, "share": share, "records": share * model.default_rows()}),
            )


def _batches(
    model: Any, rows: int, where: Sequence[str], seed: int, device: str, tick: Tick
) -> Iterator[tuple[Any, float]]:
    """Yield batches of records that meet the conditions, and their share in a plain sample as far as it is known."""
    if not where:
        drawn = 0
        for records in sample_valid(model, rows, seed, device, tick=lambda done: tick(done, rows)):
            drawn += units_in(model.schema, records)
            tick(drawn, rows)
            yield records, 1.0
        return
    last = 0, 1

    def show(meeting: int, drawn: int) -> None:
        nonlocal last
        last = (meeting, drawn) if meeting > last[0] else last
        likely = meeting * drawn / last[1]  # within a batch, whose rows are looked at once it is there
        tick(min(likely, rows), rows, f"{meeting:,} of {last[1] if meeting else drawn:,} drawn meet the conditions")

    yield from sample_where(model, _conditions(model.schema, where), rows, seed, device, show)


def _conditions(contract: Any, where: Sequence[str]) -> Conditions:
    """Read conditions.

    Raises:
        Unsuitable: one is none, or none can be set.
    """
    if contract.users:
        raise Unsuitable("users are drawn with all their rows, so no condition can be set; filter the tables")
    return conditions_of(contract, where)


def write_rows(
    run: Run,
    out: Path,
    rows: int,
    where: Sequence[str],
    seed: int | None,
    device: str = "auto",
    after: int | None = None,
) -> Drawn:
    """Write drawn rows to one file, in the format of its ending; a Parquet footer says where they are from.

    The file is whole or absent. Of users and their rows it is a folder of two tables.

    Raises:
        ArtifactError: the path is taken or cannot be written.
        InvalidArgument: the ending names no format.
    """
    check_new_file(out)
    two_tables = tables_of(run.plan.release.contract)
    if not two_tables:
        check_ending(out)
    facts: list[Drawn] = []

    def tables() -> Iterator[pa.Table]:
        for table, drawing in draw_rows(run, rows, where, seed, device, after):
            facts.append(drawing)
            yield table

    def footer() -> dict[bytes, bytes]:
        origin: dict[str, Any] = asdict(facts[-1]) | {"nacre_version": version("nacre")}
        return {FOOTER: json.dumps(origin).encode()}

    if two_tables:
        _write_two(run.plan.release.contract, tables(), out, footer)
    else:
        ending = out.suffix.lower()
        made = in_days(tables(), run.plan.release.contract, ending)
        write_whole(out, lambda path: write_table(made, path, ending, footer))
    return facts[-1]


def _write_two(contract: Any, flat: Iterator[pa.Table], out: Path, footer: Callable[[], dict[bytes, bytes]]) -> None:
    with aside(out) as part:
        part.mkdir()
        write_split(contract, flat, part, "part-00000.parquet", footer, public_tables(contract))
        replace_folder(part, out.absolute())
