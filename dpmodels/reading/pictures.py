"""Images that are not in a table: an .npz of arrays, or a folder of PNG files in one sub-folder a label."""

import math
import os
import struct
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.codec.convert import plain
from dpmodels.codec.pixels import decode_image, encode_image
from dpmodels.contract.columns import Discrete, names_of
from dpmodels.contract.image import Image
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError, Unsuitable
from dpmodels.limits import LONGEST_LABEL
from dpmodels.reading.links import check_once

Batches = Iterable[pa.RecordBatch]
LONGEST_NAME = 200
DEEPEST = 8
"""Folders in folders that are looked through: a link may lead to a folder above it."""


def is_pictures(path: Path) -> bool:
    """Tell by name whether a path is read here: an .npz file, or a folder with PNG files in it."""
    return path.suffix.lower() == ".npz" or (path.is_dir() and next(_png_files(path), None) is not None)


def read_pictures(path: Path, schema: Schema, batch_rows: int) -> tuple[pa.Schema, Batches]:
    """Open images as a stream of tables with the schema's columns.

    Raises:
        DataError: the schema has no image column, or the files are damaged or not what they should be.
    """
    if schema.image is None:
        raise DataError("", f"{path} holds images, and the schema has no column of type image")
    if path.suffix.lower() == ".npz":
        return _read_arrays(path, *schema.image, batch_rows)
    return _read_folder(path, schema, *schema.image, batch_rows)


@dataclass(frozen=True)
class _Array:
    """An array of an ``.npz`` file, of which only the header was read."""

    entry: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        """How many bytes a row takes."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize


def _read_arrays(path: Path, name: str, column: Image, batch_rows: int) -> tuple[pa.Schema, Batches]:
    """Open an ``.npz`` file; what its headers say is checked before any of it is unpacked."""
    arrays = _headers(path)
    lengths = {array.shape[0] for array in arrays.values()}
    if len(lengths) != 1 or lengths == {0}:
        raise DataError("", f"{path} must be an .npz file of arrays of one length, named as the columns")
    for key, array in arrays.items():
        if key == name and (array.dtype != np.uint8 or not _is_shape(array.shape[1:], column)):
            raise DataError(name, f"{column.rule}, as unsigned bytes")
        if key != name and (len(array.shape) != 1 or array.row_bytes > LONGEST_LABEL):
            raise DataError("", f"every array of {path} but the images must be of one dimension, of short values")

    def batch(rows: dict[str, NDArray[Any]]) -> pa.RecordBatch:
        columns = {
            key: decode_image(column, part.reshape(len(part), column.numbers))
            if key == name
            else _labels_of(part, path)
            for key, part in rows.items()
        }
        return pa.RecordBatch.from_pydict(columns)

    none = {key: np.zeros((0, *array.shape[1:]), array.dtype) for key, array in arrays.items()}
    return batch(none).schema, map(batch, _rows(path, arrays, batch_rows))


def npz_arrays(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Return the shape and type of each array of an ``.npz`` file, by its headers alone.

    Raises:
        DataError: it is none, or damaged.
    """
    return {name: (array.shape, array.dtype) for name, array in _headers(path).items()}


def _headers(path: Path) -> dict[str, _Array]:
    arrays: dict[str, _Array] = {}
    try:
        with ZipFile(path) as file:
            for entry in file.namelist():
                with file.open(entry) as source:
                    shape, dtype = _header(source)
                arrays[entry.removesuffix(".npy")] = _Array(entry, shape, dtype)
    except Exception:  # of numpy, zipfile and zlib, each of which has its own, and which may quote the file
        arrays = {}
    if not arrays:
        raise DataError("", f"{path} must be an .npz file of arrays of one length, named as the columns")
    return arrays


def _header(source: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the header of an array, which has at least one dimension and holds no objects."""
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, turned, dtype = read[np.lib.format.read_magic(source)](source)
    if not shape or dtype.hasobject or (turned and len(shape) > 1):
        raise ValueError
    return shape, dtype


def _rows(path: Path, arrays: Mapping[str, _Array], batch_rows: int) -> Iterator[dict[str, NDArray[Any]]]:
    """Unpack the arrays side by side, some rows at a time.

    Raises:
        DataError: they are damaged, or shorter than their headers say.
    """
    with ExitStack() as stack:
        fine = True
        try:
            file = stack.enter_context(ZipFile(path))
            sources = {key: stack.enter_context(file.open(array.entry)) for key, array in arrays.items()}
            for source in sources.values():
                _header(source)
        except Exception:
            fine = False
        left = next(iter(arrays.values())).shape[0]
        while fine and left:
            rows: dict[str, NDArray[Any]] = {}
            count = min(left, batch_rows)
            try:
                for key, array in arrays.items():
                    content = sources[key].read(count * array.row_bytes)
                    rows[key] = np.frombuffer(content, array.dtype).reshape(count, *array.shape[1:])
                if left == count and any(source.read(1) for source in sources.values()):  # which also checks its sum
                    raise ValueError
            except Exception:
                fine = False
                break
            yield rows
            left -= count
    if not fine:
        raise DataError("", f"{path} cannot be read to its end: the file is damaged or not what its name says")


def _labels_of(rows: NDArray[Any], path: Path) -> pa.Array:
    """Lay an array that is no image out as a column.

    Raises:
        DataError: Arrow has no such type, or text is no Unicode; the message would quote it.
    """
    try:
        array = pa.array(rows)
    except (pa.ArrowException, ValueError):
        array = None
    if array is None:
        raise DataError("", f"every array of {path} but the images must hold text, numbers or true/false")
    return array


def _png_files(path: Path) -> Iterator[Path]:
    """Yield the PNG files of a folder and of those in it, links to folders too, but for what is hidden."""
    for folder, below, names in os.walk(path, followlinks=True):
        depth = len(Path(folder).relative_to(path).parts)
        below[:] = [name for name in below if not name.startswith(".") and depth < DEEPEST]
        yield from (Path(folder, name) for name in names if name[0] != "." and name.lower().endswith(".png"))


def _read_folder(path: Path, schema: Schema, name: str, column: Image, batch_rows: int) -> tuple[pa.Schema, Batches]:
    target = schema.target or ""
    labels = _labels(schema)
    files = sorted(_png_files(path))
    check_once(files, path)
    if any(file.parent.parent != path or file.parent.name not in labels for file in files):
        raise DataError(target, f"PNG files must lie in sub-folders of {path} named as the values of the schema")
    if len(list(schema.columns)) != 2:
        raise DataError("", "a folder of PNG files holds an image and a label, and the schema has further columns")
    label_type = pa.array(list(labels.values())).type

    def batch(start: int) -> pa.RecordBatch:
        part = files[start : start + batch_rows]
        pixels = np.stack([_read_png(file, name, column) for file in part])
        values = pa.array([labels[file.parent.name] for file in part], type=label_type)
        return pa.RecordBatch.from_arrays([decode_image(column, pixels), values], [name, target])

    types = pa.schema([(name, column.arrow_type), (target, label_type)])
    return types, (batch(start) for start in range(0, len(files), batch_rows))


def write_pictures(batches: Iterable[pa.RecordBatch], schema: Schema, path: Path) -> None:
    """Write the images of a table as numbered PNG files, in a folder for each label, as they are read.

    Raises:
        Unsuitable: the schema has no image, or its labels do not name folders.
    """
    from PIL import Image as Picture

    labels = {value: name for name, value in _labels(schema).items()} if schema.image else {}
    target = schema.target or ""
    if schema.image is None or schema.modelled[target].nullable or any(map(_is_no_folder, labels.values())):
        raise Unsuitable(f"schema {schema.name} cannot be PNG files: it needs images, and labels that can name folders")
    name, column = schema.image
    for label in labels.values():
        (path / label).mkdir(parents=True)
    number = 0
    for batch in batches:
        pixels = encode_image(name, column, plain(batch.column(name))).reshape(-1, *column.shape)
        for image, value in zip(pixels, batch.column(target).to_pylist(), strict=True):
            number += 1
            Picture.fromarray(image).save(path / labels[value] / f"{number:08d}.png")


def _is_no_folder(label: str) -> bool:
    """Tell whether a label cannot name a folder."""
    fine = label.isprintable() and label.strip(". ") and len(label.encode()) <= LONGEST_NAME
    return not fine or "/" in label or "\\" in label


def _labels(schema: Schema) -> dict[str, Any]:
    """Map a folder's name to the value it stands for."""
    column = schema.modelled[schema.target or ""]
    return dict(zip(names_of(column), column.values if isinstance(column, Discrete) else (), strict=True))


def _is_shape(shape: tuple[int, ...], column: Image) -> bool:
    """Tell whether arrays of this shape hold images; those in color must have their channels last."""
    return math.prod(shape) == column.numbers and (not column.is_color or shape in (column.shape, (column.numbers,)))


def _read_png(file: Path, name: str, column: Image) -> NDArray[np.uint8]:
    """Read one PNG file.

    The header is read first: Pillow reads 16 bits as 8, and makes room for as many pixels as a header claims.

    Raises:
        DataError: it is damaged, or of another kind or size than the schema says.
    """
    from PIL import Image as Picture

    mode_and_size = "RGB" if column.is_color else "L", (column.width, column.height)
    header = struct.pack(">I4sIIBB", 13, b"IHDR", column.width, column.height, 8, 2 if column.is_color else 0)
    pixels = None
    try:
        with open(file, "rb") as opened, warnings.catch_warnings(action="ignore"):
            if opened.read(26)[8:] == header:
                opened.seek(0)
                with Picture.open(opened, formats=["PNG"]) as picture:
                    if (picture.mode, picture.size) == mode_and_size and "transparency" not in picture.info:
                        pixels = np.asarray(picture, dtype=np.uint8)
    except Exception:  # of Pillow, zlib and the file system, each of which has its own, and which may quote the file
        pass
    if pixels is None:
        kind = "color (RGB)" if column.is_color else "gray"
        size = f"{column.width} x {column.height} pixels"
        raise DataError(name, f"must be {kind} 8-bit PNG files of {size}, without transparency")
    return pixels.ravel()
