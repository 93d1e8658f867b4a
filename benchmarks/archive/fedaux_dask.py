"""What a round costs around the clients' own work: all in one process, and a Dask process for each client.

Six clients on this machine, with 1 or 2 of their processes at once. The time is that of the round's stage: with
processes it includes the start of Python and of torch in each of them, which is most of it for small clients. Seconds
of the processor, of this process and of the clients', say what of it was waiting, for other work too.
"""

import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import Table
from flows.config import FederateConfig
from flows.start import start
from tasks.kinds import clients
from tasks.stages.federate import gather

CLIENTS, INPUTS, CLASSES = 6, 64, 10


def measured(quick: bool) -> Table:
    """Return the seconds of a round by the number of processes at once, and by the clients' size."""
    names = [f"{place}, {of}" for place in ("here", "1 at once", "2 at once") for of in ("clock", "processor")]
    table = Table(f"Seconds of a round of {CLIENTS} clients", ["records of a client", *names], digits=1)
    for records in (200,) if quick else (1000, 20_000):
        table.add(records, *(seconds for at_once in (0, 1, 2) for seconds in round_seconds(records, at_once)))
    return table


def round_seconds(records: int, at_once: int) -> tuple[float, float]:
    """Return a round's seconds by the clock and of the processor; 0 processes: the clients run in this one."""
    with tempfile.TemporaryDirectory() as folder, limited(at_once or 1):
        run = start(configured(Path(folder), records, "dask" if at_once else "here"))
        begin, used = time.perf_counter(), processor()
        gather(run)
        return time.perf_counter() - begin, processor() - used


def processor() -> float:
    """Return the seconds of the processor that this process and its ended children took."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@contextmanager
def limited(at_once: int) -> Iterator[None]:
    """Have as many clients' processes at once as are asked for, however many cores there are."""
    real, clients.cores = clients.cores, lambda: at_once
    try:
        yield
    finally:
        clients.cores = real


def configured(folder: Path, records: int, workers: str) -> FederateConfig:
    """Write the clients' data and return the configuration of their federation."""
    rng = np.random.default_rng(0)
    middles = rng.standard_normal((CLASSES, INPUTS))
    names = [f"x{place}" for place in range(INPUTS)]

    def table(number: int) -> pa.Table:
        label = rng.integers(0, CLASSES, number)
        values = middles[label] + rng.standard_normal((number, INPUTS))
        return pa.table({**dict(zip(names, values.T, strict=True)), "label": [str(each) for each in label]})

    for place in range(CLIENTS):
        pq.write_table(table(records), folder / f"c{place}.parquet")
    pq.write_table(table(1000).drop_columns("label"), folder / "public.parquet")
    extractor = {"features": INPUTS, "pretraining": {"steps": 20, "batch_size": 128}}
    content = {
        "name": "overhead",
        "clients": {f"c{place}": folder / f"c{place}.parquet" for place in range(CLIENTS)},
        "public": folder / "public.parquet",
        "classes": [str(each) for each in range(CLASSES)],
        "records": {"inputs": names},
        "most_records": 100_000,
        "privacy": {"target_epsilon": 1.0, "delta": 1e-5},
        "model": {"measurement": {"records": records}, "extractor": extractor},
        "round": {"workers": workers},
        "runtime": {"home": folder / "home", "prefect": False},
        "out": folder / "out",
    }
    return FederateConfig.model_validate(content)
