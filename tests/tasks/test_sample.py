"""A table is sampled file by file, on any number of threads."""

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.codec.encode import Codec
from tasks.engine.cluster import open_cluster
from tasks.engine.engines import Threads
from tasks.kinds.tables import TableCheck
from tasks.stages.sample import FILE_ROWS, FileSampler, write_parts
from tasks.stages.validate import check_table
from tests.kit.clusters import Processes
from tests.kit.mixtures import model, saved

pytestmark = pytest.mark.processes

ROWS = FILE_ROWS + 200_000


def write(folder: Path, threads: int, seed: int = 3) -> list[int]:
    folder.mkdir()
    told: list[int] = []
    write_parts(FileSampler(folder, saved(folder.parent), seed), ROWS, Threads(threads), told.append)
    return told


def test_the_threads_change_no_byte(tmp_path: Path) -> None:
    assert write(tmp_path / "one", 1)[-1] == write(tmp_path / "three", 3)[-1] == ROWS
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["part-00000.parquet", "part-00001.parquet"]
    assert all((tmp_path / "one" / f).read_bytes() == (tmp_path / "three" / f).read_bytes() for f in files)
    table = pq.read_table(tmp_path / "three")
    assert np.array_equal(table["patient"].to_numpy(), np.arange(1, ROWS + 1))
    assert abs(np.mean(table["sick"].to_numpy() == "yes") - 0.4) < 1e-4
    groups = pq.ParquetFile(tmp_path / "one" / files[0]).metadata
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [2**17] * 4


def test_a_file_that_fails_stops_the_others(tmp_path: Path) -> None:
    tried = []

    class Failing(FileSampler):
        def __call__(self, file: tuple[int, int]) -> int:
            tried.append(file)
            time.sleep(0.05)
            raise pa.ArrowInvalid("no")

    with pytest.raises(pa.ArrowInvalid):
        write_parts(Failing(tmp_path, saved(tmp_path), 0), 100 * FILE_ROWS, Threads(2), lambda written: None)
    assert len(tried) < 50


@pytest.mark.slow
@pytest.mark.nightly  # workers write a whole hand-off in tests/tasks/test_bucket.py
def test_a_cluster_writes_and_checks_the_same_files(tmp_path: Path) -> None:
    for name in ("cluster", "here", "thrice"):
        (tmp_path / name).mkdir()
    processes, rows = Processes(tmp_path / "cluster"), 3 * FILE_ROWS // 2
    schema = model().schema
    check = TableCheck(schema, rows, 65_536, Codec(schema))
    try:
        with open_cluster(processes.address) as engine:
            write_parts(FileSampler(tmp_path / "here", saved(tmp_path), 3), rows, engine, lambda written: None)
            gate, tally = check_table(tmp_path / "here", check, engine)
            broken = TableCheck(schema, rows + 1, 65_536)
            assert [rule.text for rule in check_table(tmp_path / "here", broken, engine)[0].broken] == [
                f"the table must have {rows + 1} rows"
            ]
    finally:
        processes.stop()
    write_parts(FileSampler(tmp_path / "thrice", saved(tmp_path), 3), rows, Threads(3), lambda written: None)
    for file in (tmp_path / "here").iterdir():
        assert file.read_bytes() == (tmp_path / "thrice" / file.name).read_bytes()
    alone, counted = check_table(tmp_path / "thrice", check, Threads(1))
    assert gate.results() == alone.results() and not gate.broken
    assert tally and counted and tally.rows == rows
    assert all(np.array_equal(*pair) for pair in zip(tally.cells, counted.cells, strict=True))
