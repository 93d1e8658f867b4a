"""Rows that are given in memory: taken over, written whole or not at all, and never shown."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.schema.given import load_given, transform_write, write_names

FRAME = pd.DataFrame({"ward": ["north", "south"], "age": [1.0, None]}, index=["Anna", "Ben"])


def test_the_index_and_the_names_of_its_owners_stay_out(tmp_path: Path) -> None:
    transform_write(load_given(Sensitive(FRAME)), tmp_path / "given.parquet")
    table = pq.read_table(tmp_path / "given.parquet")
    assert table.column_names == ["ward", "age"] and table["age"].null_count == 1
    assert table.schema.metadata is None and b"Anna" not in (tmp_path / "given.parquet").read_bytes()
    assert (tmp_path / "given.parquet").stat().st_mode & 0o777 == 0o600


def test_names_are_written_without_rows(tmp_path: Path) -> None:
    path = write_names(load_given(Sensitive(FRAME)), tmp_path / "names.parquet")
    assert pq.read_table(path).num_rows == 0 and b"north" not in path.read_bytes()


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    intervals = pa.table({"a": pa.array([(1, 15, -30)], pa.month_day_nano_interval())})
    with pytest.raises(DataError, match="cannot be written as Parquet"):
        transform_write(load_given(Sensitive(intervals)), tmp_path / "given.parquet")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("No space left")))
    with pytest.raises(DataError, match="the disk is full") as caught:
        transform_write(load_given(Sensitive(FRAME)), tmp_path / "given.parquet")
    assert caught.value.__context__ is None and not list(tmp_path.iterdir())
