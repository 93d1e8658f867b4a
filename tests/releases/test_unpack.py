"""A file that claims more memory than it may take is refused before the memory is given to it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.releases.release import read_release
from tests.releases.make_golden import GOLDEN

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
READ = """
import resource, sys
from pathlib import Path
from dpmodels.errors import ArtifactError
from dpmodels.releases.release import read_release
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_release(Path(sys.argv[1]))
    print("read")
except ArtifactError as refusal:
    print(refusal)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
ROWS = 1_000_000


def same(rows: int, value: pa.Array) -> pa.Array:
    """Repeat one value, which Parquet packs to nothing."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), value)


BOMBS = {
    "numbers": (60, lambda: pa.table({"value": pa.array(np.zeros(ROWS, np.int64))})),
    "text": (1, lambda: pa.table({"id": same(4000, pa.array(["x" * 2**20])), "value": np.zeros(4000, np.int64)})),
    "lists": (200, lambda: pa.table({"value": pa.nulls(20, pa.list_(pa.int64(), 2**18))})),
    "parts": (1, lambda: pa.table({"value": pa.array([[1] * 10, [1] * 12], pa.list_(pa.int64()))})),
}
"""A table, and how often a file has it, so that whoever writes the file needs no gigabytes."""


@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.nightly_if("text", "lists")
def test_a_release_that_unpacks_to_gigabytes_takes_megabytes(tmp_path: Path, kind: str) -> None:
    footer = pq.read_schema(GOLDEN / "FORMAT-2" / "nacre.parquet").metadata
    times, bomb = BOMBS[kind]
    part = bomb().replace_schema_metadata(footer)
    with pq.ParquetWriter(tmp_path / "bomb.parquet", part.schema, compression="zstd", store_schema=False) as writer:
        for _ in range(times):
            writer.write_table(part)
    assert (tmp_path / "bomb.parquet").stat().st_size < 2**21
    words = [sys.executable, "-c", READ, tmp_path / "bomb.parquet"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)
    said, kib = done.stdout.splitlines()
    assert "missing or damaged" in said and int(kib) < 400 * 2**10, done.stderr


@pytest.mark.parametrize("name", ["nacre", "privbayes", "p3gm", "report"])
def test_a_release_has_the_same_table_as_ever(name: str) -> None:
    whole = GOLDEN / "FORMAT-2" / f"{name}.parquet"
    table, release = pq.read_table(whole), read_release(whole).value
    assert release.columns.equals(table.drop_columns("value")) and release.columns.schema.equals(
        table.drop_columns("value").schema
    )
