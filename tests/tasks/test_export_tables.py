"""The synthetic table as one snapshot of an open table, which says what it cost, and as a workbook of plain text."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.authoring.lint import load_schema
from dpmodels.errors import DataError, InvalidArgument, NacreError, PathTaken, Unsuitable
from dpmodels.hand_off.manifest import read_manifest
from dpmodels.reading.addresses import address_of
from dpmodels.reading.load import RawRows
from tasks.run.snapshots import write_delta, write_iceberg
from tasks.run.workbook_file import write_workbook
from tasks.stages.export import export
from tests.hand_off.make_golden import GOLDEN
from tests.kit.errors import refused
from tests.kit.open_tables import delta, iceberg
from tests.kit.support import run_cli

HAND_OFF = GOLDEN / "FORMAT-5" / "card"
MADE = pq.read_table(HAND_OFF / "synthetic")
SCHEMA = load_schema(HAND_OFF / "schema.yaml")
DIGEST = hashlib.sha256((HAND_OFF / "manifest.json").read_bytes()).hexdigest()
EPSILON = str(read_manifest(HAND_OFF).whole_cost.epsilon)
PLACES = ["delta:{}/visits", "iceberg:{}/catalog.db#clinic.visits", "{}/clinic.duckdb", "{}/visits.xlsx"]
VERSIONED = PLACES[:2]


def rows_at(place: str) -> list[dict[str, object]]:
    whole = pa.Table.from_batches([each.select(SCHEMA.columns) for each in RawRows(place, SCHEMA, 512)])
    return sorted(whole.cast(pa.schema([f.with_type(plain(f.type)) for f in MADE.schema])).to_pylist(), key=str)


def plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


ROWS = sorted(MADE.select(SCHEMA.columns).to_pylist(), key=str)


def about(place: str) -> dict[str, str]:
    """Return what a table says of its cost, in the words of its own format."""
    address = address_of(place)
    if address.kind == "delta":
        from deltalake import DeltaTable

        return dict(DeltaTable(address.base).history(1)[0]["nacre"])
    if address.kind == "iceberg":
        folder = Path(address.base).parents[3]
        table = catalog_of_export(folder).load_table("clinic.visits")
        summary = table.current_snapshot().summary.additional_properties
        assert table.properties.items() <= {**summary, **table.properties}.items()
        return {
            name.removeprefix("nacre."): value for name, value in table.properties.items() if summary.get(name) == value
        }
    if address.kind == "duckdb":
        import duckdb

        with duckdb.connect(address.base, read_only=True) as connection:
            return dict(json.loads(connection.execute("select comment from duckdb_tables()").fetchone()[0]))
    from openpyxl import load_workbook

    return {row[0].value: row[1].value for row in load_workbook(address.base)["about"].iter_rows()}


def catalog_of_export(folder: Path) -> object:
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog("default", uri=f"sqlite:///{folder / 'catalog.db'}")


@pytest.mark.parametrize("target", PLACES, ids=["delta", "iceberg", "duckdb", "excel"])
def test_a_table_holds_the_rows_and_says_what_they_cost(tmp_path: Path, target: str) -> None:
    code, out, err = run_cli("export", HAND_OFF, target.format(tmp_path))
    place = out.strip().rpartition(" is in ")[2].replace("\n", "")
    assert code == 0, err
    assert rows_at(place) == ROWS
    properties = about(place)
    assert (
        properties["manifestSha256"] == DIGEST and properties["epsilon"] == EPSILON and properties["unit"] == "record"
    )
    assert {"delta", "account", "run", "adjacency"} <= properties.keys()


@pytest.mark.parametrize("target", VERSIONED, ids=["delta", "iceberg"])
def test_a_second_export_is_a_new_snapshot_only_if_it_is_asked_for(tmp_path: Path, target: str) -> None:
    first = export(HAND_OFF, target.format(tmp_path))
    with refused(PathTaken, "--replace"):
        export(HAND_OFF, target.format(tmp_path))
    second = export(HAND_OFF, target.format(tmp_path), replace=True)
    assert second != first and rows_at(first) == rows_at(second) == ROWS and about(second)["manifestSha256"] == DIGEST


@pytest.mark.parametrize("target", VERSIONED, ids=["delta", "iceberg"])
def test_a_table_that_nacre_did_not_write_is_never_replaced(tmp_path: Path, target: str) -> None:
    foreign = pa.table({name: pa.array([1, 2]) for name in ("a", "b")})
    if target.startswith("delta"):
        delta(tmp_path / "visits", foreign)
    else:
        iceberg(tmp_path, foreign)
    with refused(PathTaken, "not exported by nacre"):
        export(HAND_OFF, target.format(tmp_path), replace=True)


def test_a_table_to_which_somebody_else_wrote_since_is_not_replaced(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    place = export(HAND_OFF, f"delta:{tmp_path}/visits").removesuffix("@v0")
    write_deltalake(place, MADE.slice(0, 1), mode="append")
    with refused(PathTaken, "changed since"):
        export(HAND_OFF, f"delta:{tmp_path}/visits", replace=True)


def test_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "visits").symlink_to(tmp_path / "elsewhere")
    with refused(PathTaken, "is a link"):
        export(HAND_OFF, f"delta:{tmp_path}/visits")
    assert [path.name for path in tmp_path.iterdir()] == ["visits"]


@pytest.mark.parametrize("target", VERSIONED, ids=["delta", "iceberg"])
def test_nothing_stays_of_a_table_whose_writing_fails(tmp_path: Path, target: str) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from pa.table({"age": pa.array(range(10))}).to_batches()
        raise OSError("No space left")

    write = write_delta if target.startswith("delta") else write_iceberg
    with refused(DataError, "cannot be written"):
        write(failing(), address_of(target.format(tmp_path)), {"epsilon": "1"}, False)
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".parquet", ".avro", ".json")]
    export(HAND_OFF, target.format(tmp_path))


@pytest.mark.parametrize(
    ("target", "options", "error"),
    [
        ("delta:{}/visits", {"by": ["ward"]}, InvalidArgument),
        ("{}/visits.csv", {"replace": True}, InvalidArgument),
        ("iceberg:{}/catalog.db#visits", {}, InvalidArgument),
        ("delta:gs://bucket/visits", {}, InvalidArgument),
        ("s3://bucket/visits.xlsx", {}, InvalidArgument),
        ("{}/metadata/0.metadata.json", {}, InvalidArgument),
    ],
)
def test_a_place_that_cannot_be_written_is_refused(
    tmp_path: Path, target: str, options: dict[str, object], error: type[NacreError]
) -> None:
    with refused(error):
        export(HAND_OFF, target.format(tmp_path), **options)
    assert list(tmp_path.iterdir()) == []


def test_types_that_a_format_lacks_are_refused_or_become_those_that_it_has(tmp_path: Path) -> None:
    table = pa.table(
        {
            "day": pa.array([1], pa.date32()),
            "at": pa.array([1], pa.timestamp("ms", "Europe/Berlin")),
            "count": pa.array([255], pa.uint8()),
            "word": pa.array(["x"]).dictionary_encode(),
            "price": pa.array([1], pa.decimal128(12, 2)),
        }
    )
    batches = table.to_batches
    for write, to in ((write_delta, f"delta:{tmp_path}/a"), (write_iceberg, f"iceberg:{tmp_path}/c.db#n.a")):
        write(iter(batches()), address_of(to), {}, False)
    clock = pa.table({"clock": pa.array([1], pa.time32("s"))})
    with refused(Unsuitable, "column clock"):
        write_delta(iter(clock.to_batches()), address_of(f"delta:{tmp_path}/b"), {}, False)
    write_iceberg(iter(clock.to_batches()), address_of(f"iceberg:{tmp_path}/c.db#n.b"), {}, False)


def test_text_in_a_workbook_is_text_whatever_it_begins_with(tmp_path: Path) -> None:
    from openpyxl import load_workbook

    texts = ['=HYPERLINK("x")', "+1", "-1", "@sum", "#N/A", "\t=1", "true"]
    table = pa.table({"=text": texts, "number": pa.array([1.5, float("nan"), None, 1, 2, 3, 4])})
    write_workbook("about", iter(table.to_batches()), tmp_path / "c.xlsx", {"=epsilon": "=1"})
    book = load_workbook(tmp_path / "c.xlsx")
    assert book.sheetnames == ["table", "about"]
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row if isinstance(cell.value, str)]
    assert {cell.data_type for cell in cells} == {"s"}
    assert [row[0].value for row in book["table"].iter_rows(min_row=2)] == texts
    for letters in ("\x00", "x" * 32_768):
        with refused(DataError, "longer than a cell"):
            write_workbook("t", iter(pa.table({"a": [letters]}).to_batches()), tmp_path / "d.xlsx", {})


def test_a_sheet_takes_no_more_rows_than_it_has_and_nothing_is_written_before(tmp_path: Path) -> None:
    with patch("tasks.run.workbook_file.ROWS", MADE.num_rows), refused(Unsuitable, "at most 29 rows"):
        export(HAND_OFF, str(tmp_path / "visits.xlsx"))
    assert list(tmp_path.iterdir()) == []


def test_a_hand_off_that_was_changed_is_not_exported_to_a_table(tmp_path: Path) -> None:
    import shutil

    shutil.copytree(HAND_OFF, tmp_path / "other")
    manifest = tmp_path / "other" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"record"', '"user"', 1))
    with refused(NacreError, "fault"):
        export(tmp_path / "other", f"delta:{tmp_path}/visits")
    assert not (tmp_path / "visits").exists()
