"""What a file has in the place of names and types may be values: no message says it, and no draft prints it."""

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.errors import DataError
from dpmodels.schema.base import described
from dpmodels.schema.encode import Codec
from dpmodels.schema.load import load_parts
from tests import pictures
from tests.support import make_schema, make_table, run_cli, synthesize_words, write_clinic

PRIVATE = ["Quillfeather", "8675309", "zebra", "1874-05-06", "wardd"]
ROW = "Quillfeather,8675309,zebra,1874-05-06,wardd,{last}\n"


def everything(folder: Path) -> str:
    """Return all text that a run left outside the sensitive zone and the data."""
    home = folder / "home"
    files = [path for path in [*home.rglob("*"), *(folder / "out").rglob("*")] if path.is_file()]
    return "".join(path.read_bytes().decode("latin-1") for path in files if home / "sensitive" not in path.parents)


def nothing_private(*texts: str) -> None:
    assert not [value for value in PRIVATE for text in texts if value in text]


@pytest.mark.parametrize("last", ["no", "age", "wardd", "sick"])  # one that is a name of the schema, one that is twice
@pytest.mark.parametrize("folder", ["one", "second"])
def test_a_csv_file_without_a_header_shows_no_value(tmp_path: Path, caplog, last: str, folder: str):
    write_clinic(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    if folder == "second":  # after a file that has one
        (data / "a.csv").write_text("patient,age,ward,dose,smoker,sick\n1,2,north,1.5,true,no\n")
    (data / "b.csv").write_text(ROW.format(last=last) * 3)
    caplog.set_level(logging.DEBUG)
    code, out, err = run_cli(*synthesize_words(tmp_path, data=data))
    assert code == 1 and "Traceback" not in err
    assert "column(s) that the schema lacks" in err or "damaged" in err
    nothing_private(out, err, caplog.text, everything(tmp_path))


def test_nor_does_a_parquet_file_with_a_value_for_a_name(tmp_path: Path, caplog):
    write_clinic(tmp_path)
    caplog.set_level(logging.DEBUG)
    for name in ("wardd", "zebra"):
        pq.write_table(make_table(9).rename_columns({"ward": name}), tmp_path / "clinic.parquet")
        code, out, err = run_cli(*synthesize_words(tmp_path))
        assert code == 1 and "column ward: is in the schema but not in the data" in err
        nothing_private(out, err, caplog.text, everything(tmp_path))


def test_names_that_are_twice_are_said_if_the_schema_has_them():
    codec, names = Codec(make_schema()), list(make_schema().columns)
    with pytest.raises(DataError, match="column age: is in the data more than once"):
        codec.check_names([*names, "age"])
    with pytest.raises(DataError) as told:
        codec.check_names([*names, "zebra", "zebra"])
    nothing_private(str(told.value))


TYPES = [
    pa.struct([("zebra", pa.string())]),
    pa.list_(pa.struct([("zebra", pa.int64())])),
    pa.map_(pa.string(), pa.struct([("zebra", pa.int64())])),
    pa.dictionary(pa.int32(), pa.struct([("zebra", pa.int64())])),
    pa.timestamp("us", tz="zebra"),
    pa.dense_union([pa.field("zebra", pa.int64())]),
    pa.run_end_encoded(pa.int32(), pa.struct([("zebra", pa.int64())])),
    pa.opaque(pa.binary(), "zebra", "zebra"),
]


@pytest.mark.parametrize("found", TYPES, ids=lambda found: str(found.id))
def test_a_type_is_described_without_what_the_file_calls_its_parts(found: pa.DataType):
    nothing_private(described(found))
    table = pa.schema([("age", found), *[(name, pa.int64()) for name in make_schema().columns if name != "age"]])
    with pytest.raises(DataError, match="column age: must hold numbers") as told:
        Codec(make_schema()).check_types(table)
    nothing_private(str(told.value))


def test_arrays_and_folders_of_images_show_no_name(tmp_path: Path):
    schema = pictures.make_schema()
    name, column = schema.image
    images = np.zeros((3, column.height, column.width), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", **{name: images, "zebra": np.zeros((3, 2))})
    np.savez(tmp_path / "b.npz", **{name: images, "zebra": np.zeros(3)})
    (tmp_path / "c" / "zebra").mkdir(parents=True)
    (tmp_path / "c" / "zebra" / "Quillfeather.png").write_bytes(b"")
    for place in ("a.npz", "b.npz", "c"):
        with pytest.raises(DataError) as told:
            load_parts(tmp_path / place, schema, 2)
        nothing_private(str(told.value))
