"""Text in every way in which Arrow lays text out: each is read to the same rows, by every reader."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.contract.documents import Documents, Encoder
from dpmodels.methods.federations.records import RecordsSpec, read_labeled
from dpmodels.privacy import Sensitive
from dpmodels.reading.frames import load_given, transform_write
from dpmodels.text.reading import load_documents
from tests.kit.inputs import TABLE, ingested, same


def layouts(values: list[object]) -> dict[str, pa.Array]:
    """Return text in every layout."""
    text = pa.array(values, pa.string())
    codes = text.dictionary_encode()
    views = codes.dictionary.cast(pa.string_view())
    return {
        "text": text,
        "large text": text.cast(pa.large_string()),
        "views": text.cast(pa.string_view()),
        "a dictionary": codes,
        "a large dictionary": pa.DictionaryArray.from_arrays(codes.indices, codes.dictionary.cast(pa.large_string())),
        "categories of polars": pa.DictionaryArray.from_arrays(codes.indices.cast(pa.uint32()), views),
        "an enumeration of polars": pa.DictionaryArray.from_arrays(codes.indices.cast(pa.uint8()), views, ordered=True),
    }


def clinic(layout: str) -> pa.Table:
    table = TABLE.combine_chunks()
    for name in ("ward", "sick"):
        array = layouts(table[name].to_pylist())[layout]
        table = table.set_column(table.schema.get_field_index(name), name, array)
    return table


KINDS = list(layouts(["a"]))


@pytest.mark.parametrize("layout", KINDS)
def test_a_table_is_read_from_a_file_of_arrow(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "t.arrow"
    with pa.ipc.new_file(path, clinic(layout).schema) as writer:
        writer.write_table(clinic(layout), 110)
    same(ingested(tmp_path, path))


@pytest.mark.parametrize("layout", KINDS)
def test_a_table_is_read_from_memory(tmp_path: Path, layout: str) -> None:
    transform_write(load_given(Sensitive(clinic(layout))), tmp_path / "t.parquet")
    same(ingested(tmp_path, tmp_path / "t.parquet"))


def test_frames_of_polars_are_read(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="needs pip install polars")
    frame = polars.from_arrow(TABLE).with_columns(
        polars.col("ward").cast(polars.Categorical), polars.col("sick").cast(polars.Enum(["no", "yes"]))
    )
    transform_write(load_given(Sensitive(frame)), tmp_path / "t.parquet")
    same(ingested(tmp_path, tmp_path / "t.parquet"))
    frame.write_ipc(tmp_path / "t.arrow")
    same(ingested(tmp_path / "again", tmp_path / "t.arrow"))


@pytest.mark.parametrize("layout", KINDS[:-2])  # Arrow writes no dictionary of views as Parquet that it reads
def test_documents_and_the_records_of_clients_are_read(tmp_path: Path, layout: str) -> None:
    names = layouts(["a", "b", "c"])[layout]
    pq.write_table(pa.table({"id": names, "text": names, "x": [1.0, 2.0, 3.0]}), tmp_path / "t.parquet")
    contract = Documents(name="letters", text="text", encoder=Encoder(name="hashed", dim=8))
    found = [
        row["content"]
        for batch in load_documents(tmp_path / "t.parquet", contract, 2).reveal()
        for row in batch.to_pylist()
    ]
    assert found == ["a", "b", "c"]
    read = read_labeled(tmp_path / "t.parquet", RecordsSpec(label="id", inputs=("x",)), ["a", "b", "c"])
    assert read.labels.tolist() == [0, 1, 2]
