"""Ingest begins with an empty folder, whatever an earlier try left behind."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support import make_table, run_cli, synthesize_words, write_clinic


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
    code, _, err = run_cli(*synthesize_words(tmp_path, data=data))
    assert code == 1 and "age" in err
    run = next((home / "control").glob("2*")).name
    for number in (1, 2):
        (data / f"{number}.parquet").unlink()
    assert run_cli("resume", run, "--home", home, "--no-prefect")[0] == 0
    kept = home / "sensitive" / run
    assert [file.name for file in (kept / "encoded").iterdir()] == ["part-00000.arrow"]
    assert list(kept.glob(".part-*")) == []
