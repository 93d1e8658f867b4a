"""Reading documents: what is checked, what is kept of a user, and what becomes of vectors that are not numbers."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dpmodels.codec.fingerprint import digest_of_documents
from dpmodels.contract.documents import Documents
from dpmodels.errors import DataError
from dpmodels.reading.database import Query
from dpmodels.text.encoders import load_encoder
from dpmodels.text.passages import Passages, embed, transform_passages
from dpmodels.text.points import transform_points
from dpmodels.text.reading import load_documents
from tests.kit.damaged import fed, lines
from tests.kit.errors import refused

TEXTS = ["Good film. I liked it.", "", 'Zebra, sadly.\n\nNever again! It\n"was" bad.', "One"]
TABLE = {"id": ["a", "b", "c", "d"], "body": TEXTS, "kind": ["good", "bad", None, "odd"], "who": [1, 1, 2, 1]}


def documents(**given) -> Documents:
    return Documents.model_validate(
        {"name": "mails", "text": "body", "encoder": {"name": "hashed", "dim": 32}, **given}
    )


def vectors(values, **given) -> tuple[pa.Table, Documents]:
    contract = {"text": "", "embedding": "vector", "encoder": {"name": "given", "dim": 2}, **given}
    table = pa.table({"id": pa.array(range(len(values))), "vector": values})
    return table, documents(**contract)


def read(path: Path | Query, contract: Documents, batch_rows: int = 2) -> list[Passages]:
    encode = None if contract.embedding else load_encoder(contract.encoder)
    return [embed(batch, contract, encode) for batch in load_documents(path, contract, batch_rows).reveal()]


def ids_of(batches: list[Passages]) -> list[str]:
    return [name for batch in batches for name in batch.ids]


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "arrow", "folder", "query"])
def test_files_of_any_kind_and_folders_hold_the_same_documents(tmp_path, kind):
    table = pa.table(TABLE)
    if kind == "csv":
        pyarrow.csv.write_csv(table, tmp_path / "docs.csv")
    elif kind == "parquet":
        pq.write_table(table.append_column("other", pa.array([[1]] * 4)), tmp_path / "docs.parquet")
    elif kind == "jsonl":
        (tmp_path / "docs.jsonl").write_bytes(lines(table.append_column("other", pa.array([[1]] * 4))))
    elif kind == "arrow":
        (tmp_path / "docs.arrow").write_bytes(fed(table.append_column("other", pa.array([[1]] * 4))))
    elif kind == "folder":
        for index in range(2):
            pq.write_table(table.slice(2 * index, 2), tmp_path / f"{index}.parquet")
    path = tmp_path if kind == "folder" else tmp_path / f"docs.{kind}"
    if kind == "query":
        path = in_sqlite(tmp_path, table)
    contract = documents(label="kind", classes=["good", "bad", "other"])
    found = read(path, contract)
    assert ids_of(found) == TABLE["id"]
    assert np.concatenate([batch.labels for batch in found]).tolist() == [0, 1, 2, 2]
    assert [count for batch in found for count in batch.counts.tolist()] == [2, 0, 3, 1]
    encode = load_encoder(contract.encoder)
    assert np.array_equal(found[0][0], encode(["Good film.", "I liked it."]))


def in_sqlite(folder: Path, table: pa.Table, query: str = "select *, 1 as other from docs") -> Query:
    with closing(sqlite3.connect(folder / "docs.db")) as made, made:
        made.execute(f"create table docs ({', '.join(table.column_names)})")
        marks = ", ".join("?" * table.num_columns)
        made.executemany(f"insert into docs values ({marks})", [list(row.values()) for row in table.to_pylist()])
    return Query(f"sqlite:///{folder / 'docs.db'}", query)


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("select id, kind from docs", "body"),
        ("select *, body from docs", "body"),
        ("select id, 7 as body, kind from docs", "body"),
        ("select null as id, body, kind from docs", "id"),
        ("select 'a' as id, body, kind from docs", "id"),
        ("select id, body, 0.5 as kind from docs", "kind"),
    ],
)
def test_an_answer_that_is_no_documents_is_refused(tmp_path, query, column):
    contract = documents(label="kind", classes=["good", "bad", "other"])
    with pytest.raises(DataError) as refusal:
        read(in_sqlite(tmp_path, pa.table(TABLE), query), contract)
    assert refusal.value.column == column


def test_a_query_gives_vectors_where_its_database_has_lists(tmp_path):
    pytest.importorskip("duckdb_engine", reason="needs pip install duckdb-engine")
    import duckdb

    table, contract = vectors([[[1.0, 0.0], [0.0, 2.0]], [], [[0.5, 0.5]]])
    pq.write_table(table, tmp_path / "docs.parquet")
    with duckdb.connect(str(tmp_path / "docs.duckdb")) as connection:
        connection.register("rows", table)
        connection.execute("create table docs as select * from rows")
    query = Query(f"duckdb:///{tmp_path / 'docs.duckdb'}", "select * from docs")
    there, here = read(query, contract), read(tmp_path / "docs.parquet", contract)
    assert ids_of(there) == ids_of(here) == ["0", "1", "2"]
    assert all(np.array_equal(one.vectors, other.vectors) for one, other in zip(there, here, strict=True))


def test_encoded_documents_are_known_in_any_order_and_under_other_ids(tmp_path):
    contract, table = documents(label="kind", classes=["good", "bad", "other"]), pa.table(TABLE)
    changes = [
        table,
        table.take([2, 0, 3, 1]).set_column(0, "id", pa.array(["e", "f", "g", "h"])),
        table.set_column(2, "kind", pa.array(["bad", *TABLE["kind"][1:]])),
        table.slice(1),
    ]
    digests = list[tuple[str, str]]()
    for number, changed in enumerate(changes):
        pq.write_table(changed, tmp_path / "docs.parquet")
        (points := tmp_path / f"points-{number}").mkdir(), (passages := tmp_path / f"passages-{number}").mkdir()
        raw, encode = load_documents(tmp_path / "docs.parquet", contract, 3), load_encoder(contract.encoder)
        transform_points(raw, contract, encode, points / "part.arrow")
        transform_passages(raw, contract, encode, passages / "passages.arrow")
        digests.append((digest_of_documents(points, b"secret"), digest_of_documents(passages, b"secret")))
    assert digests[0] == digests[1] and digest_of_documents(points, b"other") != digests[3][0]
    assert all(len(set(kind)) == 3 for kind in zip(*digests, strict=True))


def test_embeddings_are_kept_in_a_file_and_read_from_it(tmp_path):
    pq.write_table(pa.table(TABLE), tmp_path / "docs.parquet")
    contract = documents(most_sentences=2)
    raw = load_documents(tmp_path / "docs.parquet", contract, 3)
    kept = transform_passages(raw, contract, load_encoder(contract.encoder), tmp_path / "kept.arrow").reveal()
    for _ in range(2):  # again and again
        read_back = list(kept)
        assert ids_of(read_back) == TABLE["id"] and [len(batch) for batch in read_back] == [3, 1]
        for own, other in zip(read_back, read(tmp_path / "docs.parquet", contract, 3), strict=True):
            assert np.array_equal(own.vectors, other.vectors) and np.array_equal(own.ends, other.ends)
    assert [count for batch in read_back for count in batch.counts.tolist()] == [2, 0, 2, 1]


def test_a_mean_is_a_function_of_one_document_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(0)
    counts = np.array([0, 3, 200, 0, 1, 7, 0])
    ends = np.concatenate([[0], np.cumsum(counts)])
    made = rng.normal(size=(counts.sum(), 256))
    rows = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    labels = np.full(len(counts), -1, dtype=np.int32)
    together = Passages([str(index) for index in range(7)], labels, rows, ends).means()
    for index, count in enumerate(counts):
        own = rows[ends[index] : ends[index + 1]]
        alone = Passages(["x"], labels[:1], own, np.array([0, count])).means()[0]
        assert np.array_equal(alone, together[index])
        assert np.allclose(alone, own.mean(axis=0) if count else 0, atol=1e-6) and np.linalg.norm(alone) <= 1 + 1e-6


def test_a_user_keeps_the_first_documents_whoever_else_is_there(tmp_path):
    table = pa.table(TABLE)
    contract = documents(user="who", most_documents=2, protects="sentence")
    for number, rows in enumerate(([0, 1, 2, 3], [0, 1, 3])):
        pq.write_table(table.take(rows), tmp_path / f"{number}.parquet")
    assert ids_of(read(tmp_path / "0.parquet", contract)) == ["a", "b", "c"]
    assert ids_of(read(tmp_path / "1.parquet", contract)) == ["a", "b"]
    whole = contract.model_copy(update={"protects": "document"})  # a document that is added pushes no other out
    assert ids_of(read(tmp_path / "0.parquet", whole)) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("change", "column", "rule"),
    [
        ({"id": ["a", "Quillfeather", "c", "Quillfeather"]}, "id", "two documents have the same id"),
        ({"id": ["a", None, "c", "d"]}, "id", "must not be null"),
        ({"id": [1.5, 2.0, 3.0, 4.0]}, "id", "text or whole numbers"),
        ({"body": ["Quillfeather", None, "", ""]}, "body", "must not be null"),
        ({"body": [1, 2, 3, 4]}, "body", "must hold text"),
        ({"body": None}, "body", "is in the contract"),
        ({"who": None}, "who", "is in the contract"),
        ({"who": [1, None, 2, 3]}, "who", "must not be null"),
    ],
)
def test_what_breaks_the_contract_is_refused_without_a_value(tmp_path, change, column, rule):
    table = {name: values for name, values in {**TABLE, **change}.items() if values is not None}
    pq.write_table(pa.table(table), tmp_path / "docs.parquet")
    with refused(DataError, rule, column=column) as told:
        read(tmp_path / "docs.parquet", documents(user="who", most_documents=9, protects="sentence"), 1)
    assert "Quillfeather" not in str(told.value)


def test_text_that_is_not_utf_8_is_refused_without_a_value(tmp_path):
    broken = pa.array([b"Quillfeather \xff\xfe"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"id": ["a"], "body": broken}), tmp_path / "docs.parquet")
    with refused(DataError, "UTF-8", column="body") as told:
        read(tmp_path / "docs.parquet", documents())
    assert "Quillfeather" not in str(told.value)


LISTS = [pa.list_(pa.float32()), pa.list_(pa.float64(), 2), pa.large_list(pa.float16())]


@pytest.mark.parametrize("kind", LISTS, ids=str)
def test_vectors_that_come_with_documents_are_bounded_one_by_one(tmp_path, kind):
    given = [[0.5, 0.0], [3.0, 4.0], [float("nan"), 1.0], [float("inf"), 1.0], [1.0, 1.0]]
    table, contract = vectors(pa.array(given).cast(kind))
    pq.write_table(table, tmp_path / "docs.parquet")
    (found,) = read(tmp_path / "docs.parquet", contract, 9)
    half = np.sqrt(0.5)
    assert np.allclose(found.vectors, [[0.5, 0], [0.6, 0.8], [0, 0], [0, 0], [half, half]])
    assert found.ends.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_document_may_bring_a_vector_for_each_sentence(tmp_path):
    given = [[[1.0, 0.0], None, [1e300, None]], [], [[0.0, 1.0]] * 5]
    table, contract = vectors(pa.array(given, pa.list_(pa.list_(pa.float64()))), most_sentences=3)
    pq.write_table(table, tmp_path / "docs.parquet")
    (found,) = read(tmp_path / "docs.parquet", contract, 9)
    assert found.counts.tolist() == [3, 0, 3]
    assert found.vectors.tolist() == [[1, 0], [0, 0], [0, 0], *[[0, 1]] * 3]
    longer, _ = vectors(pa.array([[[1.0, 0.0, 0.0]]]))
    pq.write_table(longer, tmp_path / "docs.parquet")
    with refused(DataError, "vectors of 2 numbers", column="vector"):
        read(tmp_path / "docs.parquet", contract)


def test_a_csv_file_may_hold_a_document_of_two_megabytes(tmp_path):
    pyarrow.csv.write_csv(pa.table({"id": [1, 2], "body": ["long " * 400_000, "short"]}), tmp_path / "docs.csv")
    (found,) = read(tmp_path / "docs.csv", documents())
    assert found.counts.tolist() == [1, 1]


def test_a_file_that_is_there_twice_by_a_link_is_refused(tmp_path):
    pq.write_table(pa.table(TABLE), tmp_path / "0.parquet")
    (tmp_path / "1.parquet").symlink_to(tmp_path / "0.parquet")
    with refused(DataError, "the same file twice", column=""):
        read(tmp_path, documents())
