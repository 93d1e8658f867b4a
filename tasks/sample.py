"""Sample: stream synthetic rows to Parquet in the schema's own types. Post-processing."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow.parquet as pq

from dpmodels.generators.constraints import sample_valid
from dpmodels.generators.load import load_generator
from dpmodels.schema.encode import Codec, Records
from tasks.progress import progress_bar
from tasks.stage import stage
from tasks.store import Handle, Run, replace_folder
from tasks.train import pick_device

FILE_ROWS = 1_000_000


@stage("sample", sensitive=False)
def sample(run: Run, generator: Handle) -> Handle:
    """Draw the asked number of rows, or the released (noisy) number of records."""
    if done := run.finished("sample"):
        return done
    settings = run.settings
    model = load_generator(generator.path)
    codec = Codec(model.schema)
    rows = settings.rows or model.default_rows()
    part, target = run.released / ".part-synthetic", run.released / "synthetic"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    with progress_bar("sample") as tick:
        batches = sample_valid(model, rows, settings.seed, pick_device(settings.device))
        write_parts(part, codec, batches, lambda written: tick(written, rows))
    replace_folder(part, target)
    return run.finish("sample", target)


def write_parts(folder: Path, codec: Codec, batches: Iterable[Records], tick: Callable[[int], None]) -> None:
    """Decode and stream batches into files of about ``FILE_ROWS`` rows, holding one batch at a time."""
    written, part, writer = 0, -1, None
    for records in batches:
        if writer is None or written // FILE_ROWS > part:
            if writer is not None:
                writer.close()
            part = written // FILE_ROWS
            writer = pq.ParquetWriter(folder / f"part-{part:05d}.parquet", codec.output_schema, compression="zstd")
        writer.write_table(codec.decode(records, first_row=written))
        written += len(records)
        tick(written)
    if writer is not None:
        writer.close()
