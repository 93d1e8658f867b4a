"""Sample: draw, decode and write synthetic rows in the schema's types, one file at a time on each core.

A file is drawn from batches that no other file shares, so files are independent: the same rows and seed give the same
bytes on any number of threads, each of which holds one row group of one file.

Privacy: post-processing.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.artifact import aside, replace_folder
from dpmodels.codec.embedded import codec_of
from dpmodels.codec.flat import units_in
from dpmodels.errors import ArtifactError
from dpmodels.generators.constraints import sample_valid
from dpmodels.generators.load import Model, load_generator
from dpmodels.late import torch
from dpmodels.releases.release import read_release
from dpmodels.report.fidelity import Measured
from tasks.engine.engines import Engine, open_engine
from tasks.engine.progress import progress_bar
from tasks.run.bucket import Bucket, keep_place, write_listing
from tasks.run.ready import pick_device
from tasks.run.store import MADE, Handle, Run
from tasks.stages.stage import stage

FILE_ROWS = 2**19
"""Rows of a file; every generator's batches divide it."""
MOST_ROWS = 2**24
"""Rows of a table whose number nobody asked for, and whose release states none."""
GROUP_ROWS, GROUP_BYTES = 2**17, 2**25
"""A row group ends with the batch that brings it to either of these limits."""


@stage("sample", sensitive=False)
def sample(run: Run, generator: Handle) -> Handle:
    """Draw the asked number of rows, or the released (noisy) number of records."""
    if handle := run.finished("sample"):
        return handle
    settings = run.settings
    rows = rows_of(run, read_generator(generator.path, generator.sha256))
    target, device = run.place("sample"), pick_device(settings.device)
    with aside(target) as part:
        part.mkdir()
        with progress_bar("sample") as tick, open_engine(settings.threads, run.dask) as engine:
            bucket = keep_place(run, engine) if settings.train_on == "here" else None
            draw = FileSampler(part, generator, settings.seed, device, bucket)
            parts = write_parts(draw, rows, engine, lambda written: tick(written, rows))
        if bucket:
            write_listing(part, parts)
        replace_folder(part, target)
    return run.finish("sample")


def rows_of(run: Run, model: Model) -> int:
    """Return the number of rows of a run's table: what was asked for, or the released number that its model states.

    A stage that is not trusted wrote the model, so the number is held to the release.

    Raises:
        ArtifactError: the release states far fewer, or the model states no number.
    """
    if run.settings.rows:
        return run.settings.rows
    marginals = Measured.of(read_release(run.read("sanitize")).value).marginals
    most = max(FILE_ROWS, int(2 * marginals.records)) if marginals else MOST_ROWS
    with suppress(ValueError, OverflowError):  # no number at all
        if (rows := model.default_rows()) <= most:
            return rows
    raise ArtifactError(
        f"the generator of run {run.name} states more than {most} records, which its release does not: train it again "
        f"(nacre resume {run.name} --refit --out OUT), or say how many rows (nacre fit RELEASE --rows ROWS --out OUT)"
    )


@lru_cache(maxsize=1)
def read_generator(path: Path, _sha256: str) -> Model:
    """Read the generator of this hash; the latest ones are kept in memory."""
    return load_generator(path)


class Part(NamedTuple):
    """A file that was drawn; its digest where it was written into an object store."""

    rows: int
    name: str
    sha256: str = ""


@dataclass(frozen=True)
class FileSampler:
    """Draws any single file of a synthetic table; a pure function, so it gives the same file wherever it is called.

    The object is small, and reads the generator where it works, once in each process.
    """

    folder: Path
    generator: Handle
    seed: int
    device: str = "cpu"
    bucket: Bucket | None = None

    def __call__(self, file: tuple[int, int]) -> Part:
        """Write a file, given its number and its number of rows, into the folder or the object store."""
        number, rows = file
        name = f"part-{number:05d}.parquet"
        if self.bucket is None:
            self._write(self.folder / name, number, rows)
            return Part(rows, name)
        with TemporaryDirectory() as scratch:
            self._write(path := Path(scratch) / name, number, rows)
            return Part(rows, name, self.bucket.put(path, f"{MADE['sample']}/{name}"))

    def _write(self, path: Path, number: int, rows: int) -> None:
        torch.set_num_threads(1)  # files run in parallel, and sums must not depend on the number of threads
        model = read_generator(self.generator.path, self.generator.sha256)
        codec = codec_of(model.schema)
        with pq.ParquetWriter(path, codec.output_schema, compression="zstd") as writer:
            for table in self._groups(model, codec, number, rows):
                writer.write_table(table)

    def _groups(self, model: Model, codec: Any, file: int, rows: int) -> Iterator[pa.Table]:
        first_batch, first_row = file * FILE_ROWS // model.batch_rows, file * FILE_ROWS
        tables: list[pa.Table] = []
        for records in sample_valid(model, rows, self.seed, self.device, first_batch):
            tables.append(codec.decode(records, first_row))
            first_row += units_in(model.schema, records)
            if sum(map(len, tables)) >= GROUP_ROWS or sum(table.nbytes for table in tables) >= GROUP_BYTES:
                yield pa.concat_tables(tables)
                tables = []
        if tables:
            yield pa.concat_tables(tables)


def write_parts(draw: FileSampler, rows: int, engine: Engine, tick: Callable[[int], None]) -> dict[str, str]:
    """Write all files of a table of so many rows; return their names and digests."""
    files, written = ((start // FILE_ROWS, min(FILE_ROWS, rows - start)) for start in range(0, rows, FILE_ROWS)), 0
    threads, parts = torch.get_num_threads(), dict[str, str]()
    for file in engine.map(draw, files):
        written += file.rows
        parts[file.name] = file.sha256
        tick(written)
    torch.set_num_threads(threads)
    return parts
