"""Images in color: declared, read from Parquet, arrays and PNG files, and refused where they are anything else."""

import io
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image as Picture

from dpmodels.audit.made import pictures
from dpmodels.audit.made.colors import COLOR_TEXT, make_colors, make_records, make_schema, make_table
from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError
from dpmodels.gate.expectations import Gate
from dpmodels.reading.load import load_parts
from tests.kit.errors import refused

SCHEMA, GRAY = make_schema(), pictures.make_schema()


def read(path: Path, schema: Schema = SCHEMA) -> Records:
    codec = Codec(schema)
    return Records.concat([codec.encode(batch) for part in load_parts(path, schema, 7) for batch in part.reveal()])


def test_color_is_declared_and_gray_needs_no_word_and_keeps_its_hash():
    assert parse(SCHEMA.to_yaml())[0] == SCHEMA and "channels: 3" in SCHEMA.to_yaml()
    column = SCHEMA.image[1]
    assert (column.numbers, column.shape, column.is_color) == (360, (12, 10, 3), True)
    said = parse(COLOR_TEXT.replace("channels: 3", "channels: 1").replace("color-shapes", "shapes"))[0]
    assert said == GRAY and said.hash == GRAY.hash and "channels" not in said.to_yaml()
    assert GRAY.hash == "abb004370bdb8e869051db1e7ab621cde9802e566e98410fd8921f12cd12d171"
    assert SCHEMA.hash != GRAY.hash


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("channels: 3", "channels: 2", "channels"),
        ("channels: 3", "channels: 4", "channels"),
        ("height: 12", "height: 65", "at most 64 for images in color"),
        ("width: 10", "width: 128", "at most 64 for images in color"),
    ],
)
def test_what_is_neither_gray_nor_color_and_what_is_too_large_is_refused(old, new, message):
    schema, faults = parse(COLOR_TEXT.replace(old, new))
    assert schema is None and any(message in str(fault) for fault in faults)


def test_a_color_image_may_have_64_pixels_a_side():
    assert parse(COLOR_TEXT.replace("height: 12, width: 10", "height: 64, width: 64"))[0].image[1].numbers == 12288


def test_parquet_arrays_and_png_files_hold_the_same_colors(tmp_path):
    pixels, kinds = make_colors(20)
    pq.write_table(make_table(20), tmp_path / "a.parquet")
    np.savez(tmp_path / "b.npz", picture=pixels, kind=kinds)
    np.savez(tmp_path / "c.npz", picture=pixels.reshape(20, -1), kind=kinds)
    for index, (image, kind) in enumerate(zip(pixels, kinds, strict=True)):
        (tmp_path / "d" / kind).mkdir(parents=True, exist_ok=True)
        Picture.fromarray(image).save(tmp_path / "d" / kind / f"{index:03d}.png")
    expected = make_records(20)
    for name in ("a.parquet", "b.npz", "c.npz"):
        assert np.array_equal(read(tmp_path / name).pixels, expected.pixels)
    by_kind = expected.take(np.argsort(expected.states[:, 0], kind="stable"))
    assert np.array_equal(read(tmp_path / "d").pixels, by_kind.pixels)
    codec = Codec(SCHEMA)
    assert codec.decode(expected).equals(make_table(20).cast(codec.output_schema))
    assert np.array_equal(codec.from_arrow(codec.to_arrow(expected)).pixels, expected.pixels)


def test_arrays_with_channels_first_are_refused_and_not_mixed_up(tmp_path):
    pixels, kinds = make_colors(4)
    np.savez(tmp_path / "a.npz", picture=pixels.transpose(0, 3, 1, 2), kind=kinds)
    with refused(DataError, "each red, green, blue", column="picture"):
        read(tmp_path / "a.npz")


def test_lists_of_one_number_a_pixel_do_not_pass_the_gate_of_color_nor_three_that_of_gray():
    for schema, table, numbers in ((SCHEMA, pictures.make_table(3), 360), (GRAY, make_table(3), 120)):
        gate = Gate(schema, raw=True)
        gate.check(table)
        assert [rule.column for rule in gate.broken] == ["picture"]
        with refused(DataError, f"{numbers} whole numbers", column="picture"):
            Codec(schema).encode(table)
    gate = Gate(SCHEMA, raw=True)
    gate.check(make_table(3))
    assert gate.broken == ()


def png(picture: Picture.Image, **options: object) -> bytes:
    sink = io.BytesIO()
    picture.save(sink, "PNG", **options)
    return sink.getvalue()


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def made(width: int, height: int, depth: int, color: int, *more: bytes, data: bytes | None = None) -> bytes:
    """Return a PNG file with a header and chunks that no encoder would write."""
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    lines = zlib.compress(bytes(100_000)) if data is None else data
    chunks = [chunk(b"IHDR", header), *more, chunk(b"IDAT", lines), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


SECRET = b"patient Smith"
RGB = Picture.fromarray(make_colors(1)[0][0])
HUGE = chunk(b"IHDR", struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0))
LARGE = chunk(b"IHDR", struct.pack(">IIBBBBB", 10_000, 10_000, 8, 2, 0, 0, 0))
HOSTILE = {
    "gray": png(RGB.convert("L")),
    "palette": png(RGB.convert("P")),
    "alpha": png(RGB.convert("RGBA")),
    "gray with alpha": png(RGB.convert("LA")),
    "one bit": png(RGB.convert("1")),
    "a transparent color": png(RGB, transparency=(1, 2, 3)),
    "16 bits": made(10, 12, 16, 2),
    "16 bits of gray": made(10, 12, 16, 0),
    "turned": png(RGB.transpose(Picture.Transpose.ROTATE_90)),
    "too large": png(RGB.resize((20, 24))),
    "a bomb's header": made(60_000, 60_000, 8, 2),
    "a second header": made(10, 12, 8, 2, HUGE),
    "a second header, smaller": made(10, 12, 8, 2, LARGE),
    "no data": made(10, 12, 8, 2, data=b""),
    "a cut": png(RGB)[:60],
    "a bomb of text": made(10, 12, 8, 2, chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(3 << 20)))),
    "damaged data": made(10, 12, 8, 2, data=SECRET),
    "nothing": b"",
    "no picture": SECRET,
    "another format": (lambda sink: (RGB.save(sink, "BMP"), sink.getvalue())[1])(io.BytesIO()),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused_in_one_sentence_that_says_nothing_of_them(tmp_path, content):
    (tmp_path / "bar").mkdir()
    (tmp_path / "bar" / "0.png").write_bytes(content)
    with warnings.catch_warnings(), pytest.raises(DataError) as caught:
        warnings.simplefilter("error")
        read(tmp_path)
    sentence = "must be color (RGB) 8-bit PNG files of 10 x 12 pixels, without transparency"
    assert str(caught.value).endswith(sentence) and caught.value.__cause__ is None
    assert SECRET.decode() not in str(caught.value)


def test_a_gray_column_refuses_color_and_what_is_not_plain_gray(tmp_path):
    gray = RGB.convert("L")
    odd = [RGB, gray.convert("LA"), gray.convert("P"), gray.convert("1"), gray.convert("I;16")]
    for index, picture in enumerate(odd):
        folder = tmp_path / str(index) / "bar"
        folder.mkdir(parents=True)
        picture.save(folder / "0.png")
        with refused(DataError, "gray 8-bit PNG files of 10 x 12 pixels", column="picture"):
            read(folder.parent, GRAY)


def test_a_null_or_a_number_out_of_range_in_a_color_list_is_refused():
    for row in ([0] * 359 + [None], [0] * 359 + [256], [0] * 361, None):
        bad = pa.table({"picture": pa.array([row, [9] * 360], pa.list_(pa.int64())), "kind": ["bar", "disc"]})
        with refused(DataError, "360 whole numbers", column="picture"):
            Codec(SCHEMA).encode(bad)
