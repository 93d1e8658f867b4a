"""Ingest begins with an empty folder, whatever an earlier try left behind."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.errors import DataError
from flows.config import SynthesizeConfig
from flows.settings import placed
from flows.synthesize import carry_out, start
from tasks.stages.ingest import ingest
from tests.kit.errors import refused
from tests.kit.support import make_table, write_clinic


def test_rows_of_a_try_that_failed_are_no_part_of_the_next(tmp_path: Path) -> None:
    """Three files, of which the last is bad; once it is mended there is one file, and its rows alone are encoded."""
    write_clinic(tmp_path)
    data, home = tmp_path / "data", tmp_path / "home"
    data.mkdir()
    for number in range(3):
        pq.write_table(make_table(100, number), data / f"{number}.parquet")
    table = make_table(100)
    old = table.set_column(table.schema.get_field_index("age"), "age", pa.array([999] * 100))
    pq.write_table(old, data / "2.parquet")
    given = {"data": data, "schema": tmp_path / "clinic.yaml", "out": tmp_path / "out", "home": home}
    given |= {"target_epsilon": 1, "delta": 1e-5}
    run = start(SynthesizeConfig.build(placed(given), tmp_path / "config.yaml"))
    with refused(DataError, "column age must lie"):
        ingest(run)
    for number in (1, 2):
        (data / f"{number}.parquet").unlink()
    carry_out(run, prefect=False)
    assert [file.name for file in (run.sensitive / "encoded").glob("*.arrow*")] == ["part-00000.arrow"]
    assert list(run.sensitive.glob(".part-*")) == []
