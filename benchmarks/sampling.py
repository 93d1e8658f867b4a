"""How fast rows of Adult's shape are drawn, decoded and written, beside what the machine could do.

The generators have Adult's columns and the sizes of a trained one, but random weights: how they were trained changes
their rows, not their speed.
"""

import io
import math
import pickle
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch

from benchmarks.adult import SCHEMAS
from benchmarks.common import Table, parse, report
from dpmodels.artifact import sha256_of
from dpmodels.authoring.lint import load_schema
from dpmodels.codec.encode import Codec
from dpmodels.embeddings.base import Layout
from dpmodels.embeddings.partition import Partition
from dpmodels.generators.load import Model
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.moment_matching import MixtureSpec
from dpmodels.generators.networks import NetworkSpec, TabularGenerator, initialise
from dpmodels.generators.sampling import Sampler, batch_stream
from dpmodels.generators.tabular import CHUNK_ROWS, TabularModel
from dpmodels.report.fidelity import fine_codec
from tasks.engine.engines import Threads
from tasks.kinds.tables import TableCheck
from tasks.run.store import Handle
from tasks.stages.sample import FILE_ROWS, FileSampler, write_parts

COUNTS = torch.tensor([24_720.0, 7_841.0], dtype=torch.float64)
RUNS = 5
PLAN_ROWS, PLAN_WORKERS, WIRE = 10**10, 100, 1.25e9
"""The paper plan; the wire is taken to carry ten gigabits a second."""


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows written as files")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])


def mixture() -> MixtureModel:
    """Return a mixture over cells that released histograms of Adult's size would leave."""
    schema, rng = load_schema(SCHEMAS / "adult.yaml"), np.random.default_rng(0)
    fine = Partition.fine(schema, 256)
    cells = fine.merged([rng.geometric(1e-3, size) for size in fine.sizes], 300, 24, 700)
    parts = [rng.dirichlet(np.ones(size), (2, MixtureSpec().components)) for size in cells.sizes]
    detail = [np.stack([_within(merge, rng) for _ in range(2)]) for merge in cells.merge]
    return MixtureModel(
        schema, 256, cells, torch.from_numpy(np.concatenate(parts, 2)).float(), detail, COUNTS, "random"
    )


def _within(merge: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    weight = rng.random(len(merge))
    return weight / np.bincount(merge, weight)[merge]


def network() -> TabularModel:
    """Return the network of pearl at its default size."""
    schema = load_schema(SCHEMAS / "adult.yaml")
    made = TabularGenerator(NetworkSpec(), Layout.of(schema))
    initialise(made, torch.Generator().manual_seed(0))
    return TabularModel(schema, made.eval(), COUNTS, "random")


def best(work: Callable[[], object], runs: int = RUNS) -> float:
    """Return the least CPU seconds of some runs on this one thread: what else the machine does counts for little."""
    taken = []
    for _ in range(runs):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def matmul_seconds(model: TabularModel) -> float:
    """Time the network's matrix products alone, a row."""
    weights = [layer.weight.detach().T for layer in model.network.folded() if isinstance(layer, torch.nn.Linear)]
    first = torch.randn(CHUNK_ROWS, len(weights[0]))

    def products() -> None:
        rows = first
        for weight in weights:
            rows = rows @ weight

    return best(lambda: [products() for _ in range(20)]) / 20 / CHUNK_ROWS


def add_steps(table: Table, name: str, model: Sampler) -> None:
    """Time the steps of one batch on one thread."""
    rows, codec = model.batch_rows, Codec(model.schema)
    records = model.draw(rows, batch_stream(0, 0))
    decoded = codec.decode(records)

    def encode() -> None:
        with pq.ParquetWriter(io.BytesIO(), codec.output_schema, compression="zstd") as writer:
            writer.write_table(decoded)

    steps = (lambda: model.draw(rows, batch_stream(0, 0)), lambda: codec.decode(records), encode)
    table.add(name, *(1e6 * best(step) / rows for step in steps))


def add_limits(table: Table, model: TabularModel, drawn: MixtureModel) -> None:
    """Say what the machine could do: the products of the network, and the random numbers of the mixture."""
    table.add("network: its matrix products", 1e6 * matmul_seconds(model))
    rng, columns = np.random.default_rng(0), len(drawn.schema.modelled)
    cells = np.zeros((500, 131), dtype=np.int64)
    table.add(
        f"mixture: {columns} uniform numbers a row",
        1e6 * columns * best(lambda: rng.random(1_000_000)) / 1_000_000,
    )
    table.add(
        f"mixture: {columns} numbers a row put in random order",
        1e6 * columns * best(lambda: rng.permuted(cells, axis=1, out=cells)) / cells.size,
    )


def add_files(table: Table, name: str, model: Model, rows: int, threads: int, limit: float) -> None:
    """Time whole files; ``limit`` is the CPU seconds a row that it cannot do without, 0 where none is stated."""
    with tempfile.TemporaryDirectory() as folder:
        began, cpu = time.perf_counter(), time.process_time()
        size = sum(file.stat().st_size for file in write(Path(folder), model, rows, threads))
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    share = f"{limit * rows / cpu:.0%}" if limit else "–"
    table.add(name, threads, seconds, cpu, rows / seconds / 1e6, size / rows, share)


def write(folder: Path, model: Model, rows: int, threads: int = 1) -> list[Path]:
    """Write a table of so many rows; return its files."""
    generator = Handle(path=folder / "generator.safetensors", sha256=str(folder))
    model.save(generator.path)
    write_parts(FileSampler(folder, generator, 0), rows, Threads(threads), lambda written: None)
    return sorted(folder.glob("*.parquet"))


def plan_table(model: MixtureModel) -> Table:
    """Foretell a table that no one machine makes, from what one file costs one thread here."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (file,) = write(folder, model, FILE_ROWS)
        check = TableCheck(model.schema, None, 65_536, fine_codec(model.schema))
        drawing = best(lambda: write(folder, model, FILE_ROWS), 2) / FILE_ROWS
        checking = best(lambda: check(file), 2) / FILE_ROWS
        hashing = best(lambda: sha256_of(file)) / FILE_ROWS
        size, read = file.stat().st_size / FILE_ROWS, (folder / "generator.safetensors").stat().st_size
        asked = len(pickle.dumps((FileSampler(folder, Handle(path=folder), 0), (0, FILE_ROWS))))
        found = len(pickle.dumps(check(file)))
    table = Table(f"On paper: {PLAN_ROWS:,} rows, {PLAN_WORKERS} workers of one thread", ["what", "how much"], digits=2)
    share, files = PLAN_ROWS / PLAN_WORKERS, math.ceil(PLAN_ROWS / FILE_ROWS)
    for what, value in {
        "draw, decode and write, microseconds a row": 1e6 * drawing,
        "draw, decode and write, minutes a worker": share * drawing / 60,
        "check, minutes a worker": share * checking / 60,
        "synthetic table, GB": PLAN_ROWS * size / 1e9,
        "its share on a worker's ten-gigabit wire, seconds": share * size / WIRE,
        "files (a request and a reply each, twice: to write and to check)": files,
        "requests, MB": 2 * files * asked / 1e6,
        "replies of the check, MB": files * found / 1e6,
        "generator, read once by each worker, MB": PLAN_WORKERS * read / 1e6,
        "hashing the table once, on one core, minutes": PLAN_ROWS * hashing / 60,
        "work lost with a worker at most, seconds": FILE_ROWS * drawing,
        "ledger writes": 0,
    }.items():
        table.add(what, value)
    return table


def main() -> None:
    args = parse(__doc__, options)
    rows = 600_000 if args.quick else args.rows
    torch.set_num_threads(1)
    models = {"nacre (mixture)": mixture(), "pearl (network)": network()}
    limits = Table("What one thread could do", ["work", "microseconds a row"])
    add_limits(limits, models["pearl (network)"], models["nacre (mixture)"])
    steps = Table("A batch on one thread, microseconds a row", ["generator", "draw", "decode", "Parquet"])
    for name, model in models.items():
        add_steps(steps, name, model)
    columns = ["generator", "threads", "seconds", "CPU seconds", "million rows/s", "bytes a row"]
    columns += ["CPU seconds of its matrix products"]
    files = Table(f"{rows:,} rows to Parquet", columns, digits=2)
    for threads in args.threads:
        for name, model in models.items():
            limit = matmul_seconds(model) if isinstance(model, TabularModel) else 0.0
            add_files(files, name, model, rows, threads, limit)
    report("sampling", [limits, steps, files, plan_table(mixture())], [0], args)


if __name__ == "__main__":
    main()
