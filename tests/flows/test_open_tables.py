"""A run on an open table reads the snapshot that the table had at its start, and commands read such tables alike."""

from pathlib import Path

import pytest

from dpmodels.audit.made.clinic import make_schema, make_table
from flows.generate import CanRead, generate
from flows.synthesize import start
from tasks.run.lineage import dataset
from tasks.run.table_inputs import as_parquet, is_path
from tasks.stages.ingest import ingest
from tests.kit.inputs import TABLE, configured
from tests.kit.open_tables import cells, database, delta, iceberg, place_of, workbook
from tests.kit.support import run_cli, write_clinic


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_run_reads_the_snapshot_of_its_start(tmp_path: Path, form: str) -> None:
    write_clinic(tmp_path)
    table = iceberg(tmp_path / "i", TABLE) if form == "iceberg" else None
    place = f"iceberg:{tmp_path}/i/catalog.db#clinic.visits" if table else str(delta(tmp_path / "visits", TABLE))
    run = start(configured(tmp_path, place))
    snapshot = f"{place_of(table)}@{table.current_snapshot().snapshot_id}" if table else f"{place}@v0"
    assert run.settings.data == snapshot
    broken = TABLE.set_column(1, "age", TABLE["age"].cast("int32"))
    table.append(TABLE) if table else delta(tmp_path / "visits", broken.cast(TABLE.schema))
    ingest(run)
    assert len(list((run.sensitive / "encoded").glob("part-*.arrow"))) == 1
    name = dataset(snapshot)["name"]  # the same for every snapshot
    assert name == (str(tmp_path / "i" / "clinic" / "visits") if table else place)
    with pytest.raises(CanRead):  # as any other data, it may not be read where a generator is trained apart
        generate(run)


def test_commands_read_open_tables_as_they_read_files(tmp_path: Path) -> None:
    real = make_table(60)
    (tmp_path / "clinic.yaml").write_text(make_schema().to_yaml())
    places = {
        "delta": f"{delta(tmp_path / 'visits', real, real)}@v0",
        "iceberg": place_of(iceberg(tmp_path / "i", real)),
        "duckdb": database(tmp_path / "clinic.duckdb", real),
        "excel": str(workbook(tmp_path / "c.xlsx", cells(real))),
    }
    for place in places.values():
        assert not is_path(place)
        with as_parquet(place, make_schema(), tmp_path) as copy:
            assert copy.exists() and copy.stat().st_size
    code, _, err = run_cli("validate", places["delta"], "--schema", tmp_path / "clinic.yaml")
    assert code == 0, err
    assert not is_path(str(tmp_path / "visits")) and is_path(str(tmp_path))
