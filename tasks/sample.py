"""Sample: draw, decode and write synthetic rows in the schema's types, one file at a time a core. Post-processing.

A file is drawn from batches that no other file shares, so files are free of each other: the same rows and seed give the
same bytes on any number of threads, each of which holds one row group of one file.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.generators.constraints import sample_valid
from dpmodels.generators.load import load_generator
from dpmodels.generators.sampling import Sampler
from dpmodels.schema.encode import Codec
from tasks.engine import Threads, cores
from tasks.progress import progress_bar
from tasks.stage import stage
from tasks.store import Handle, Run, replace_folder
from tasks.train import pick_device

FILE_ROWS = 2**19
"""Rows of a file: whole batches of any generator."""
GROUP_ROWS, GROUP_BYTES = 2**17, 2**25
"""A row group ends with the batch that brings it to either."""


@stage("sample", sensitive=False)
def sample(run: Run, generator: Handle) -> Handle:
    """Draw the asked number of rows, or the released (noisy) number of records."""
    if done := run.finished("sample"):
        return done
    settings = run.settings
    model = load_generator(generator.path)
    rows = settings.rows or model.default_rows()
    part, target = run.released / ".part-synthetic", run.released / "synthetic"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    with progress_bar("sample") as tick:
        draw = FileSampler(model, settings.seed, pick_device(settings.device))
        write_parts(part, draw, rows, settings.threads or cores(), lambda written: tick(written, rows))
    replace_folder(part, target)
    return run.finish("sample", target)


class FileSampler:
    """Draws any file of a synthetic table by itself."""

    def __init__(self, model: Sampler, seed: int, device: str = "cpu") -> None:
        self.model, self.seed, self.device = model, seed, device
        self.codec = Codec(model.schema)

    def groups(self, file: int, rows: int) -> Iterator[pa.Table]:
        """Yield the row groups of a file."""
        first_batch, first_row = file * FILE_ROWS // self.model.batch_rows, file * FILE_ROWS
        tables: list[pa.Table] = []
        for records in sample_valid(self.model, rows, self.seed, self.device, first_batch):
            tables.append(self.codec.decode(records, first_row))
            first_row += len(records)
            if sum(map(len, tables)) >= GROUP_ROWS or sum(table.nbytes for table in tables) >= GROUP_BYTES:
                yield pa.concat_tables(tables)
                tables = []
        if tables:
            yield pa.concat_tables(tables)

    def write(self, folder: Path, file: int, rows: int) -> int:
        """Write a file; return its number of rows."""
        path = folder / f"part-{file:05d}.parquet"
        with pq.ParquetWriter(path, self.codec.output_schema, compression="zstd") as writer:
            for table in self.groups(file, rows):
                writer.write_table(table)
        return rows


def write_parts(folder: Path, draw: FileSampler, rows: int, threads: int, tick: Callable[[int], None]) -> None:
    """Write all files, as many at a time as there are threads."""
    files, written = ((start // FILE_ROWS, min(FILE_ROWS, rows - start)) for start in range(0, rows, FILE_ROWS)), 0
    with _one_thread_each():
        for done in Threads(threads).map(lambda file: draw.write(folder, *file), files):
            written += done
            tick(written)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Keep torch from starting threads of its own in every thread; nor do its sums depend on their number then."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
