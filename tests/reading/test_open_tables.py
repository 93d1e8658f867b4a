"""Delta, Iceberg, DuckDB and Excel: read to the rows that Parquet gives, as of one snapshot, out of one folder."""

import json
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from unittest.mock import patch
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.authoring.draft import draft
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError, NacreError
from dpmodels.reading.addresses import address_of
from dpmodels.reading.data_files import find_files, settled, title_of
from dpmodels.reading.load import RawRows
from dpmodels.reading.named_columns import open_columns
from dpmodels.reading.open_tables import pinned
from tests.kit.errors import refused
from tests.kit.inputs import SCHEMA, SECRET, TABLE, folder, parquet, same
from tests.kit.open_tables import (
    added,
    cells,
    commit,
    database,
    delta,
    iceberg,
    iceberg_with,
    marked,
    place_of,
    renamed,
    vector,
    workbook,
)

HALVES = (TABLE.slice(0, 100), TABLE.slice(100))
FEATURES = {"minReaderVersion": 3, "minWriterVersion": 7}


def rows_of(place: object) -> Records:
    return Records.concat([Codec(SCHEMA).encode(batch) for batch in RawRows(str(place), SCHEMA, 64)])


def by_catalog(path: Path) -> str:
    iceberg(path, *HALVES)
    return f"iceberg:{path}/catalog.db#clinic.visits"


@pytest.mark.parametrize(
    "write",
    [
        lambda path: delta(path / "visits", *HALVES),
        lambda path: f"delta:{delta(path / 'visits', *HALVES)}",
        lambda path: delta(path / "visits", *HALVES, partition_by=["ward", "smoker"]),
        lambda path: place_of(iceberg(path, *HALVES)),
        by_catalog,
        lambda path: database(path / "clinic.duckdb"),
        lambda path: workbook(path / "visits.xlsx"),
        lambda path: f"{workbook(path / 'book.xlsx', about=[['a', 'b']], visits=cells())}#visits",
    ],
    ids=["delta", "delta by name", "delta in parts", "iceberg", "iceberg by catalog", "duckdb", "excel", "a sheet"],
)
def test_a_table_has_the_rows_of_parquet_and_a_draft_of_its_columns(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    place = str(write(tmp_path))
    same(rows_of(place))
    text = draft(place)
    assert all(f"  {name}:" in text for name in TABLE.column_names)
    assert title_of(place) in ("visits", "book") and f"name: {title_of(place)}" in text


def test_folders_of_a_delta_table_may_have_any_name(tmp_path: Path) -> None:
    wards = ["b c", "é/=%", "north", "100%", "a+b", None]
    table = pa.table({"age": range(6), "ward": wards})
    ward = {"type": "categorical", "values": [ward for ward in wards if ward], "nullable": True}
    columns = {"age": {"type": "integer", "min": 0, "max": 99}, "ward": ward}
    schema = Schema.model_validate({"name": "clinic", "unit": "record", "columns": columns})
    visits = delta(tmp_path / "visits", table, partition_by=["ward"])
    rows = pa.Table.from_batches([each.select(["age", "ward"]) for each in RawRows(str(visits), schema, 64)])
    assert sorted(rows.to_pylist(), key=str) == sorted(table.to_pylist(), key=str)


def test_a_snapshot_stays_what_it_was_and_a_version_can_be_named(tmp_path: Path) -> None:
    table = iceberg(tmp_path / "i", HALVES[0])
    places = [
        str(delta(tmp_path / "visits", HALVES[0])),
        place_of(table),
        f"iceberg:{tmp_path}/i/catalog.db#clinic.visits",
    ]
    before = [pinned(place) for place in places]
    delta(tmp_path / "visits", HALVES[1])
    table.append(HALVES[1])
    for place in before:
        same(rows_of(place), HALVES[0])
    same(rows_of(places[0]))
    same(rows_of(places[2]))
    same(rows_of(f"{places[0]}@v0"), HALVES[0])
    same(rows_of(f"{place_of(table)}@{table.history()[0].snapshot_id}"), HALVES[0])
    assert pinned(str(parquet(tmp_path / "c.parquet"))) == str(tmp_path / "c.parquet")
    with refused(DataError, "no such snapshot"):
        rows_of(f"{place_of(table)}@17")


@pytest.mark.timeout(20)
def test_a_version_that_a_log_lacks_is_refused_at_once(tmp_path: Path) -> None:
    visits = delta(tmp_path / "visits", *HALVES)
    for version in (2, 9_000_000_000, 9_999_999_999_999_999_999):
        with refused(DataError, "version", column=""):
            find_files(f"{visits}@v{version}")
        with refused(DataError, "version", column=""):
            pinned(f"{visits}@v{version}")


@pytest.mark.parametrize("name", ["a#b", "a#b@v1", "a@v1"])
def test_a_folder_with_the_letters_of_an_address_is_pinned_and_read(tmp_path: Path, name: str) -> None:
    visits = delta(tmp_path / name, *HALVES)
    assert pinned(str(visits)) == f"{visits}@v1"
    same(rows_of(pinned(str(visits))))
    same(rows_of(f"{visits}@v0"), HALVES[0])


@pytest.mark.parametrize("name", ["a%20b", "a\\b"])
def test_a_folder_that_deltalake_takes_for_another_is_refused(tmp_path: Path, name: str) -> None:
    delta(tmp_path / "visits").rename(tmp_path / name)
    delta(tmp_path / "a" / "b"), delta(tmp_path / "visits").rename(tmp_path / "a b")
    with refused(DataError, "rename it", column=""):
        find_files(str(tmp_path / name))


def test_deleted_rows_are_not_read(tmp_path: Path) -> None:
    visits = delta(tmp_path / "visits", TABLE)
    marked(visits, vector(*range(40)))
    (file,) = find_files(str(visits))
    same(rows_of(visits), TABLE.slice(40))
    assert file.format == "delta" and "age:" in draft(str(visits))

    table = iceberg(tmp_path / "i", TABLE)
    (part,) = [task.file.file_path for task in table.scan().plan_files()]
    deletes = tmp_path / "i" / "clinic" / "visits" / "data" / "deletes.parquet"
    fields = [("file_path", "2147483546"), ("pos", "2147483545")]
    types = pa.schema(
        [
            pa.field(name, kind, False, {"PARQUET:field_id": number})
            for (name, number), kind in zip(fields, (pa.string(), pa.int64()), strict=True)
        ]
    )
    pq.write_table(pa.table([[part] * 40, list(range(40))], schema=types), deletes)
    iceberg_with(table, f"file://{deletes}", "deletes", 40)
    (file,) = find_files(place_of(table))
    same(rows_of(place_of(table)), TABLE.slice(40))
    assert file.format == "iceberg" and len(file.scanned[1]) == 2 and file.digest("sha256")


@pytest.mark.parametrize("name", ["ward=a b/é.parquet", "day=1:2/c.parquet"])
def test_a_file_of_a_table_with_deleted_rows_may_have_letters_that_no_url_changes(tmp_path: Path, name: str) -> None:
    visits = delta(tmp_path / "visits", HALVES[0])
    marked(visits, vector(*range(40)))
    size = parquet(visits / name, HALVES[1]).stat().st_size
    commit(visits, {"add": added(visits) | {"path": name.replace(" ", "%20"), "size": size}})
    same(rows_of(visits), TABLE.slice(40))


def test_columns_that_came_later_or_were_renamed_are_those_of_the_table(tmp_path: Path) -> None:
    older = HALVES[0].drop_columns(["dose"])
    whole = pa.concat_tables(
        [older.append_column("dose", pa.nulls(100, pa.float64())), HALVES[1]], promote_options="default"
    )
    visits = delta(tmp_path / "visits", older)
    delta(visits, HALVES[1], schema_mode="merge")
    table = iceberg(tmp_path / "i", older.rename_columns({"age": "years"}))
    with table.update_schema() as change:
        change.rename_column("years", "age")
    with table.update_schema() as change:
        change.union_by_name(HALVES[1].schema)
    table.append(HALVES[1].select(table.schema().column_names))
    for place in (visits, place_of(table)):
        batches = pa.Table.from_batches([each.select(TABLE.column_names) for each in RawRows(str(place), SCHEMA, 512)])
        assert sorted(map(str, batches.to_pylist())) == sorted(map(str, whole.select(TABLE.column_names).to_pylist()))


def test_a_column_that_a_delta_table_calls_otherwise_than_its_files_is_found(tmp_path: Path) -> None:
    visits = delta(tmp_path / "visits", TABLE.rename_columns({"age": "years"}))
    renamed(visits, "years", "age")
    same(rows_of(visits))
    same(rows_of(f"{visits}@v1"))


def test_columns_of_iceberg_keep_their_rows_where_the_metadata_forgot_their_names(tmp_path: Path) -> None:
    table = iceberg(tmp_path, pa.table({"a": [1, 2], "b": [10, 20]}))
    for old, new in (("a", "former"), ("b", "a"), ("former", "b")):
        with table.update_schema() as change:
            change.rename_column(old, new)
    table.append(pa.table({"b": [3], "a": [30]}))
    place = Path(place_of(table))
    metadata = json.loads(place.read_text())
    metadata["schemas"] = [each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"]]
    metadata["snapshots"], metadata["snapshot-log"] = metadata["snapshots"][-1:], metadata["snapshot-log"][-1:]
    pruned = place.with_name("00099-pruned.metadata.json")
    pruned.write_text(json.dumps(metadata))
    number = {"type": "integer", "min": 0, "max": 99}
    schema = Schema.model_validate({"name": "clinic", "unit": "record", "columns": {"a": number, "b": number}})
    rows = [row for batch in RawRows(str(pruned), schema, 64) for row in batch.to_pylist()]
    assert sorted((row["a"], row["b"]) for row in rows) == [(10, 1), (20, 2), (30, 3)]


def test_a_column_that_a_file_of_iceberg_lacks_is_null(tmp_path: Path) -> None:
    table = iceberg(tmp_path, HALVES[0])
    fields = enumerate(HALVES[1].schema, start=1)
    types = pa.schema([each.with_metadata({"PARQUET:field_id": str(number)}) for number, each in fields])
    older = HALVES[1].cast(types).drop_columns(["dose"])
    file = parquet(tmp_path / "clinic" / "visits" / "data" / "older.parquet", older)
    iceberg_with(table, f"file://{file}", rows=200)
    whole = pa.concat_tables([HALVES[0], older], promote_options="default")
    rows = [row for batch in RawRows(place_of(table), SCHEMA, 512) for row in batch.to_pylist()]
    assert sorted(map(str, rows)) == sorted(map(str, whole.select(list(rows[0])).to_pylist()))


@pytest.mark.parametrize(
    "location",
    [
        "s3://other/visits/metadata/1.metadata.json",
        "HTTPS://localhost/visits/metadata/1.metadata.json",
        "S3A://other/visits/metadata/1.metadata.json",
        "file://localhost/visits/metadata/1.metadata.json",
        "../../visits/metadata/1.metadata.json",
        f"s3://{SECRET}@other/metadata/1.metadata.json",
    ],
)
def test_a_catalog_names_only_folders_on_its_own_machine(tmp_path: Path, location: str) -> None:
    place = by_catalog(tmp_path)
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as catalog, catalog:
        catalog.execute("update iceberg_tables set metadata_location = ?", (location,))
    with refused(DataError, "give its metadata file itself", column="") as refusal:
        find_files(place)
    assert SECRET not in str(refusal.value) and "other" not in str(refusal.value)


def test_named_columns_are_read_from_every_kind(tmp_path: Path) -> None:
    visits = delta(tmp_path / "marked", TABLE)
    marked(visits, vector(0))
    places = [visits, database(tmp_path / "c.duckdb"), workbook(tmp_path / "c.xlsx"), place_of(iceberg(tmp_path / "i"))]
    texts = {"ward": pa.string(), "age": pa.int64()}
    for place, rows in zip(places, (299, 300, 300, 300), strict=True):
        columns = open_columns(find_files(str(place))[0], texts, "is missing")
        whole = pa.Table.from_batches(columns.read(64, 2**20))
        assert whole.column_names == ["ward", "age"] and whole.num_rows == rows
        assert sorted(whole["age"].to_pylist()) == sorted(TABLE["age"].to_pylist()[300 - rows :])
        with refused(DataError, column="absent"):
            open_columns(find_files(str(place))[0], {"absent": pa.string()}, "is missing")


def outside(path: Path) -> Path:
    """Write a table that none may lead to."""
    return parquet(path / "outside" / "private.parquet")


def delta_to(path: Path, name: str, **more: object) -> Path:
    visits = delta(path / "visits", HALVES[0])
    commit(visits, {"add": added(visits) | {"path": name} | more})
    return visits


def linked(path: Path) -> Path:
    visits = delta(path / "visits", HALVES[0])
    (visits / "extra.parquet").symlink_to(outside(path))
    commit(visits, {"add": added(visits) | {"path": "extra.parquet"}})
    return visits


def vector_to(path: Path, kind: str, name: str) -> Path:
    visits = delta(path / "visits", HALVES[0])
    elsewhere = {"storageType": kind, "pathOrInlineDv": name, "sizeInBytes": 40, "cardinality": 1, "offset": 1}
    marked(visits, elsewhere)
    return visits


def escaped(path: Path) -> Path:
    """Return a table with a deletion vector, of which a file's name leads out where it is a part of a URL."""
    visits = vector_to(path, "i", str(vector(1)["pathOrInlineDv"]))
    outside(visits / "%2E%2E")
    commit(visits, {"add": added(visits) | {"path": "%252E%252E/outside/private.parquet"}})
    return visits


def iceberg_to(path: Path, location: str, content: str = "data") -> str:
    outside(path)
    return place_of(iceberg_with(iceberg(path / "i", HALVES[0]), location.format(path), content))


def moved_manifests(path: Path) -> str:
    """Return an Iceberg table whose list of manifests lies elsewhere."""
    place = Path(place_of(iceberg(path / "i", HALVES[0])))
    (elsewhere := path / "elsewhere").mkdir()
    (listed,) = place.parent.glob("snap-*.avro")
    listed.rename(elsewhere / listed.name)
    place.write_text(place.read_text().replace(str(listed), str(elsewhere / listed.name)))
    return str(place)


def read_otherwise(path: Path, name: str, other: str) -> Path:
    """Return a table with a deletion vector and a file whose name in the log is another file's where it is a URL."""
    visits = vector_to(path, "i", str(vector(1)["pathOrInlineDv"]))
    name = name.format(added(visits)["path"])
    outside(path), parquet(visits / unquote(other.format(added(visits)["path"])))
    commit(visits, {"add": added(visits) | {"path": name}})
    return visits


def linked_log(path: Path) -> Path:
    visits = delta(path / "visits", HALVES[0])
    (visits / "_delta_log").rename(path / "log")
    (visits / "_delta_log").symlink_to(path / "log")
    return visits


HOSTILE: dict[str, Callable[[Path], object]] = {
    "delta, above": lambda path: delta_to(path, f"../{outside(path).relative_to(path)}"),
    "delta, above, escaped": lambda path: delta_to(path, f"%2E%2E/{outside(path).relative_to(path)}"),
    "delta, absolute": lambda path: delta_to(path, f"{outside(path)}"),
    "delta, a URI": lambda path: delta_to(path, f"{outside(path).as_uri()}"),
    "delta, a bucket": lambda path: delta_to(path, "s3://elsewhere/private.parquet"),
    "delta, a link": linked,
    "delta, escaped twice": escaped,
    **{
        f"delta, {what}": partial(read_otherwise, name=name, other=name)
        for what, name in {
            "a tab above": ".\t./outside/private.parquet",
            "an escaped tab above": ".%09./outside/private.parquet",
            "escaped slashes": "..%252Foutside/private.parquet",
            "a scheme": "file:../outside/private.parquet",
            "a query": "{}?x",
            "a fragment": "{}#x",
            "an escaped query": "{}%3Fx",
            "a space at the end": "{} ",
            "a space at the start": " {}",
            "a space in an escape": "{}%2520",
            "a tab at the end": "{}\t",
            "a line": "\n{}",
            "a wide space": "{}\u3000",
            "a backslash": "a\\{}",
        }.items()
    },
    "delta, a linked log": linked_log,
    "delta, an absolute vector": lambda path: vector_to(path, "p", f"file://{outside(path)}"),
    "delta, a vector above": lambda path: vector_to(path, "u", "../../abcdefghijklmnopqrst"),
    "iceberg, absolute": lambda path: iceberg_to(path, "file://{}/outside/private.parquet"),
    "iceberg, above": lambda path: iceberg_to(path, "file://{0}/i/clinic/visits/../../../outside/private.parquet"),
    "iceberg, deletes": lambda path: iceberg_to(path, "file://{}/outside/private.parquet", "deletes"),
    "iceberg, manifests": moved_manifests,
}


@pytest.mark.parametrize("write", HOSTILE.values(), ids=HOSTILE)
def test_no_path_in_metadata_leads_out_of_the_folder(tmp_path: Path, write: Callable[[Path], object]) -> None:
    with pytest.raises(DataError) as refusal:
        rows_of(write(tmp_path))
    assert "its own folder" in refusal.value.rule
    assert "private" not in str(refusal.value)


def test_a_file_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    table = iceberg(tmp_path / "i", HALVES[0])
    (part,) = [task.file.file_path for task in table.scan().plan_files()]
    with refused(DataError, "twice"):
        find_files(place_of(iceberg_with(table, part, rows=100)))


def test_what_libraries_cannot_read_is_refused_without_a_word_of_theirs(tmp_path: Path) -> None:
    visits = delta(tmp_path / "visits", HALVES[0])
    commit(visits, {"protocol": FEATURES | {"readerFeatures": [SECRET], "writerFeatures": [SECRET]}})
    place = Path(place_of(iceberg(tmp_path / "i", HALVES[0])))
    place.write_text(place.read_text().replace('"format-version"', f'"{SECRET}"'))
    (tmp_path / "clinic.duckdb").write_text(SECRET)
    for broken in (visits, place, tmp_path / "clinic.duckdb", f"iceberg:{place}#clinic.visits"):
        with pytest.raises(DataError) as refusal:
            rows_of(broken)
        assert SECRET not in str(refusal.value) and refusal.value.__context__ is None
    for odd in (tmp_path / "i" / "clinic" / "visits", tmp_path):
        with refused(DataError, "which also hold deleted rows"):
            find_files(str(odd))


@pytest.mark.parametrize("kind", ["delta", "iceberg", "excel", "duckdb"])
def test_a_library_that_is_not_installed_is_named_with_its_extra(tmp_path: Path, kind: str) -> None:
    written = {
        "delta": lambda: delta(tmp_path / "visits"),
        "iceberg": lambda: place_of(iceberg(tmp_path)),
        "excel": lambda: workbook(tmp_path / "visits.xlsx"),
        "duckdb": lambda: database(tmp_path / "clinic.duckdb"),
    }
    place = written[kind]()
    with patch("dpmodels.late.find_spec", lambda _: None), refused(NacreError, rf"nacre\[{kind}\]"):
        rows_of(place)


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([["age", "ward"], ["=1+1", "north"]], "formula"),
        ([["age", "age"], [1, "north"]], "names of its columns"),
        ([["age"], [1, SECRET]], "more cells"),
        ([], "names of its columns"),
    ],
    ids=["a formula", "names twice", "a longer row", "nothing"],
)
def test_a_sheet_that_is_no_table_is_refused(tmp_path: Path, rows: list[list[object]], fault: str) -> None:
    columns = {"age": {"type": "integer", "min": 0, "max": 99}, "ward": {"type": "categorical", "values": ["north"]}}
    declared = {name: column for name, column in columns.items() if fault != "more cells" or name == "age"}
    schema = Schema.model_validate({"name": "clinic", "unit": "record", "columns": declared})
    with refused(DataError, fault) as refusal:
        list(RawRows(workbook(tmp_path / "c.xlsx", rows), schema, 64))
    assert SECRET not in str(refusal.value)


def test_what_openpyxl_would_say_of_a_value_is_not_said(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in cells(TABLE.slice(0, 3)):
        book.active.append(row)
    book.active["A2"].number_format, book.active["A2"].value = "yyyy-mm-dd", -987654321
    book.save(tmp_path / "c.xlsx")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        read = rows_of(tmp_path / "c.xlsx")
    assert not warned and len(read) == 3


def test_places_that_only_look_like_a_version_are_others() -> None:
    assert str(address_of("abfs://visits@v123")) == "abfs://visits@v123" and not address_of("abfs://visits@v123").kind
    assert address_of("abfs://visits@account/wards@v12").snapshot == "12"
    assert not address_of("s3://bucket/a#b.csv").kind and not address_of("visits@12").kind
    assert settled("iceberg:/c.db#n.t@3") == "iceberg:/c.db#n.t@3" and address_of("iceberg:/c.db#n.t@3").base == "/c.db"


def test_a_book_of_several_sheets_and_a_file_of_several_tables_ask_which(tmp_path: Path) -> None:
    book = workbook(tmp_path / "c.xlsx", a=[["x"]], b=[["y"]])
    database(tmp_path / "c.duckdb")
    with refused(DataError, "several sheets"):
        rows_of(book)
    with refused(DataError, "no such sheet"):
        rows_of(f"{book}#c")
    with refused(DataError, "must name one table"):
        rows_of(f"{tmp_path}/c.duckdb#other")
    assert rows_of(tmp_path / "c.duckdb")
    assert folder(tmp_path / "x@v1") and title_of(str(tmp_path / "x@v1")) == "x-v1"
