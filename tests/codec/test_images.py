"""Images in a schema: declared, read from three kinds of source, checked, stored and handed over unchanged."""

import io
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image as Picture

from dpmodels.audit.made.pictures import SCHEMA_TEXT, make_pictures, make_records, make_schema, make_table
from dpmodels.authoring.draft import draft
from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError, Unsuitable
from dpmodels.gate.expectations import Gate
from dpmodels.reading.ingest import transform_encode
from dpmodels.reading.load import load_parts
from tests.kit.errors import refused

pytestmark = pytest.mark.processes

SCHEMA = make_schema()


def read(path: Path, schema: Schema = SCHEMA) -> Records:
    codec = Codec(schema)
    return Records.concat([codec.encode(batch) for part in load_parts(path, schema, 7) for batch in part.reveal()])


def same(a: Records, b: Records) -> bool:
    return np.array_equal(a.states, b.states) and np.array_equal(a.pixels, b.pixels)


def test_a_schema_with_an_image_reads_back_and_counts_its_classes():
    schema, faults = parse(SCHEMA_TEXT)
    assert faults == [] and schema == SCHEMA
    assert parse(schema.to_yaml())[0] == schema
    assert (schema.classes, schema.target_index, list(schema.modelled)) == (2, 0, ["kind"])
    assert schema.image[0] == "picture" and schema.image[1].numbers == 120


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("target: kind", "target: picture", "no identifier, no image and not derived"),
        ("  kind:", "  other: {type: image, height: 4, width: 4}\n  kind:", "second image column"),
        ("  kind:", "  age: {type: integer, min: 0, max: 9}\n  kind:", "one categorical or boolean column"),
        ("target: kind\n", "", "one categorical or boolean column"),
        ("width: 10", "width: 1", "at least 4"),
        ("width: 10", "depth: 10", "is no key here"),
    ],
)
def test_a_schema_that_cannot_be_synthesised_is_refused(old: str, new: str, message: str):
    schema, faults = parse(SCHEMA_TEXT.replace(old, new, 1))
    assert schema is None and any(message in str(fault) for fault in faults)


def test_records_carry_their_images_through_every_operation():
    records = make_records(20)
    assert records.pixels.shape == (20, 120)
    halves = [records.take(slice(0, 8)), records.take(np.arange(8, 20))]
    assert same(Records.concat(halves), records) and len(halves[1]) == 12
    codec = Codec(SCHEMA)
    assert same(codec.from_arrow(codec.to_arrow(records)), records)
    assert codec.decode(records).equals(make_table(20).cast(codec.output_schema))


def test_records_without_images_are_refused_where_the_schema_has_some():
    records = make_records(3)
    with pytest.raises(Unsuitable, match="picture"):
        Codec(SCHEMA).decode(Records(records.states, records.values))


def test_parquet_arrays_and_png_files_hold_the_same_records(tmp_path):
    pixels, kinds = make_pictures(20)
    pq.write_table(make_table(20), tmp_path / "a.parquet")
    lists = pa.table({"picture": pixels.reshape(20, -1).astype(np.int64).tolist(), "kind": kinds})
    pq.write_table(lists, tmp_path / "b.parquet")
    np.savez(tmp_path / "c.npz", picture=pixels, kind=kinds)
    for index, (image, kind) in enumerate(zip(pixels, kinds, strict=True)):
        (tmp_path / "d" / kind).mkdir(parents=True, exist_ok=True)
        Picture.fromarray(image).save(tmp_path / "d" / kind / f"{index:03d}.png")
    expected = make_records(20)
    for name in ("a.parquet", "b.parquet", "c.npz"):
        assert same(read(tmp_path / name), expected)
    by_kind = expected.take(np.argsort(expected.states[:, 0], kind="stable"))
    assert same(read(tmp_path / "d"), by_kind)


BAD_ROWS = [
    pytest.param([[0] * 119], pa.list_(pa.uint8()), id="too short"),
    pytest.param([[0] * 119 + [None]], pa.list_(pa.uint8()), id="a null pixel"),
    pytest.param([[0] * 119 + [256]], pa.list_(pa.int64()), id="too bright"),
    pytest.param([[0] * 119 + [-1]], pa.list_(pa.int64()), id="too dark"),
    pytest.param([None], pa.list_(pa.uint8()), id="no image"),
    pytest.param([[0] * 121], pa.list_(pa.uint8(), 121), id="too long"),
]


@pytest.mark.parametrize(("rows", "kind"), BAD_ROWS)
def test_the_gate_and_the_encoding_refuse_what_is_no_image(tmp_path, rows, kind):
    good = [[9] * 120] if not pa.types.is_fixed_size_list(kind) else []
    bad = pa.table({"picture": pa.array(good + rows, type=kind), "kind": ["bar"] * (len(good) + 1)})
    with refused(DataError, "120 whole numbers", column="picture"):
        Codec(SCHEMA).encode(bad)
    gate = Gate(SCHEMA, raw=True)
    gate.check(bad)
    assert [rule.column for rule in gate.broken] == ["picture"]
    with refused(DataError, "picture must hold 120 whole numbers"):
        pq.write_table(bad, tmp_path / "bad.parquet")
        raw = load_parts(tmp_path / "bad.parquet", SCHEMA, 10)
        transform_encode(raw, Gate(SCHEMA, raw=True), tmp_path)


def test_good_images_pass_the_gate(tmp_path):
    pq.write_table(make_table(20), tmp_path / "a.parquet")
    gate = Gate(SCHEMA, raw=True)
    transform_encode(load_parts(tmp_path / "a.parquet", SCHEMA, 7), gate, tmp_path)
    assert gate.broken == () and any(result["column"] == "picture" for result in gate.results())
    assert pa.ipc.open_file(tmp_path / "part-00000.arrow").schema.field("picture").type == pa.list_(pa.uint8(), 120)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"picture": np.zeros((3, 11, 10), np.uint8), "kind": ["bar"] * 3}, "120 whole numbers"),
        ({"picture": np.zeros((3, 12, 10)), "kind": ["bar"] * 3}, "unsigned bytes"),
        ({"picture": np.zeros((3, 12, 10), np.uint8), "kind": ["bar"] * 2}, "one length"),
        ({"picture": np.zeros((3, 12, 10), np.uint8)}, "in the schema but not in the data"),
        ({"picture": np.zeros((3, 12, 10), np.uint8), "kind": [["bar"]] * 3}, "one dimension"),
        ({"picture": np.array([{}] * 3), "kind": ["bar"] * 3}, "must be an .npz file"),
        ({"picture": np.zeros((0, 12, 10), np.uint8), "kind": np.zeros(0, "U3")}, "must be an .npz file"),
        ({"picture": np.zeros((2, 12, 10), np.uint8), "kind": ["bar", "Zebulon\ud800"]}, "must hold text, numbers"),
        ({"picture": np.zeros((2, 12, 10), np.uint8), "kind": np.zeros(2, ">i4")}, "must hold text, numbers"),
    ],
)
def test_arrays_that_are_not_the_schema_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with refused(DataError, message):
        read(tmp_path / "a.npz")


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_an_image_that_is_there_twice_by_a_link_is_refused(tmp_path, link):
    (tmp_path / "bar").mkdir()
    Picture.new("L", (10, 12)).save(tmp_path / "bar" / "0.png")
    assert len(read(tmp_path)) == 1
    link(tmp_path / "bar" / "0.png", tmp_path / "bar" / "1.png")
    with refused(DataError, "the same file twice"):
        read(tmp_path)


def test_images_are_read_whatever_the_case_of_their_ending_and_behind_links_but_for_hidden_ones(tmp_path):
    (tmp_path / "data").mkdir()
    for kind in ("bar", "disc"):
        (tmp_path / "elsewhere" / kind).mkdir(parents=True)
        os.symlink(tmp_path / "elsewhere" / kind, tmp_path / "data" / kind)
        for name in ("0.png", "1.PNG", ".2.png"):
            Picture.new("L", (10, 12)).save(tmp_path / "elsewhere" / kind / name, format="png")
    assert len(read(tmp_path / "data")) == 4


def test_a_folder_that_is_not_the_schema_is_refused(tmp_path):
    grey, colour = Picture.new("L", (10, 12)), Picture.new("RGB", (10, 12))
    for kind, picture, message in [
        ("bar", colour, "gray 8-bit PNG files of 10 x 12"),
        ("bar", grey.resize((12, 10)), "gray 8-bit PNG files of 10 x 12"),
        ("ball", grey, "named as the values"),
    ]:
        folder = tmp_path / f"{kind}-{picture.mode}-{picture.width}"
        (folder / kind).mkdir(parents=True)
        picture.save(folder / kind / "0.png")
        with refused(DataError, message):
            read(folder)
    (tmp_path / "broken" / "bar").mkdir(parents=True)
    (tmp_path / "broken" / "bar" / "0.png").write_bytes(b"no picture")
    with refused(DataError, "gray 8-bit PNG", column="picture"):
        read(tmp_path / "broken")


def test_images_for_a_schema_of_numbers_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", kind=["bar"])
    table = Schema.model_validate({"name": "t", "columns": {"kind": SCHEMA.columns["kind"].model_dump()}})
    with refused(DataError, "no column of type image"):
        read(tmp_path / "a.npz", table)


def test_a_column_of_numbers_is_no_image():
    with refused(DataError, "lists of whole numbers", column="picture"):
        Codec(SCHEMA).check_types(pa.schema([("picture", pa.int64()), ("kind", pa.string())]))


def test_a_draft_proposes_an_image_for_a_column_of_lists(tmp_path):
    pq.write_table(make_table(3), tmp_path / "a.parquet")
    assert "picture: {type: image, height: TODO, width: TODO}" in draft(tmp_path / "a.parquet")


def test_a_draft_says_how_large_the_images_of_an_archive_and_of_a_folder_are(tmp_path):
    np.savez(tmp_path / "a.npz", picture=np.zeros((4, 12, 10), np.uint8), kind=np.array(["foo", "bar"] * 2))
    assert "picture: {type: image, height: 12, width: 10}" in draft(tmp_path / "a.npz")
    assert "foo" not in draft(tmp_path / "a.npz")


def npy(shape: tuple[int, ...], dtype: str, size: int) -> bytes:
    """Return an array file whose header claims a shape, followed by so many zeros."""
    sink = io.BytesIO()
    np.lib.format.write_array_header_1_0(sink, {"descr": dtype, "fortran_order": False, "shape": shape})
    return sink.getvalue() + bytes(size)


PEAK = """
import resource, sys
from pathlib import Path
from dpmodels.errors import DataError
from dpmodels.reading.load import load_parts
from tests.codec.test_images import SCHEMA
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    print(sum(len(batch) for part in load_parts(Path(sys.argv[1]), SCHEMA, 64) for batch in part.reveal()))
except DataError as refusal:
    print(refusal)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("fault", ["shape", "label", "length", "rows"])
@pytest.mark.nightly_if("label", "length")
def test_arrays_that_unpack_to_gigabytes_take_megabytes(tmp_path: Path, fault: str) -> None:
    name, column = SCHEMA.image
    rows = 10**6 if fault == "rows" else 10**9
    with ZipFile(tmp_path / "bomb.npz", "w", ZIP_DEFLATED, compresslevel=1) as file:
        with file.open(f"{name}.npy", "w", force_zip64=True) as entry:
            shape = {"shape": (rows,)}.get(fault, (rows, column.numbers))
            entry.write(npy(shape, "|u1", 0))
            for _ in range(250):
                entry.write(bytes(2**20))
        with file.open(f"{SCHEMA.target}.npy", "w") as entry:
            entry.write(npy((10 if fault == "length" else rows,), "<U100000" if fault == "label" else "|u1", 10))
    words = [sys.executable, "-c", PEAK, tmp_path / "bomb.npz"]
    done = subprocess.run(words, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)
    said, kib = done.stdout.splitlines()
    assert not said.isdigit() and int(kib) < 100 * 2**10, done.stdout + done.stderr


def test_arrays_of_several_batches_are_read_in_order(tmp_path: Path) -> None:
    """And what follows an array in its entry, or lacks there, is a fault."""
    pixels, labels = make_pictures(200)
    np.savez_compressed(tmp_path / "a.npz", **{SCHEMA.image[0]: pixels, SCHEMA.target: labels})
    np.savez(tmp_path / "b.npz", **{SCHEMA.image[0]: pixels, SCHEMA.target: labels})
    assert np.array_equal(read(tmp_path / "a.npz", SCHEMA).pixels, read(tmp_path / "b.npz", SCHEMA).pixels)


def test_a_draft_of_arrays_has_their_names_and_sizes_and_no_value(tmp_path: Path) -> None:
    pixels, kinds = make_pictures(7)
    np.savez(tmp_path / "shapes.npz", picture=pixels, kind=kinds)
    text = draft(tmp_path / "shapes.npz")
    assert "name: shapes\n" in text and "  picture: {type: image, height: " in text
    assert "  kind: {type: categorical, values: TODO}" in text
    made = text.partition("name: shapes")[2]
    assert "7" not in made and not any(str(kind) in made for kind in set(kinds))


def test_a_draft_of_png_files_says_nothing_of_their_folders(tmp_path: Path) -> None:
    (tmp_path / "shapes" / "Quillfeather").mkdir(parents=True)
    (tmp_path / "shapes" / "Quillfeather" / "a.png").write_bytes(b"no picture")
    text = draft(tmp_path / "shapes")
    assert "picture: {type: image, height: TODO, width: TODO}" in text and "Quillfeather" not in text
