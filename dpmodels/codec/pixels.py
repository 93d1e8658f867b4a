"""Columns of images between Arrow and numpy."""

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.contract.base import described
from dpmodels.contract.image import Image
from dpmodels.errors import DataError

Pixels: TypeAlias = NDArray[np.uint8]


def check_image_type(name: str, dtype: pa.DataType) -> None:
    """Refuse a column that cannot hold lists of whole numbers."""
    lists = pa.types.is_fixed_size_list(dtype) or pa.types.is_list(dtype) or pa.types.is_large_list(dtype)
    if not (lists and pa.types.is_integer(dtype.value_type)):
        raise DataError(
            name, f"must hold lists of whole numbers, as its type image in the schema says; it holds {described(dtype)}"
        )


def images_fit(column: Image, array: pa.Array) -> bool:
    """Tell whether every row is an image of the declared size."""
    if array.null_count or not len(array):
        return not array.null_count
    lengths = pc.list_value_length(array)
    values = array.flatten()
    if values.null_count or pc.min(lengths).as_py() != column.numbers or pc.max(lengths).as_py() != column.numbers:
        return False
    low, high = pc.min_max(values).values()
    return bool(low.as_py() >= 0 and high.as_py() <= 255)


def encode_image(name: str, column: Image, array: pa.Array) -> Pixels:
    """Return the pixels of a column of images.

    Shapes: [B, numbers] uint8.

    Raises:
        DataError: the type is wrong, or a row is no image of the declared size.
    """
    check_image_type(name, array.type)
    if not images_fit(column, array):
        raise DataError(name, column.rule)
    pixels: Pixels = array.flatten().to_numpy(zero_copy_only=False).astype(np.uint8)
    return pixels.reshape(len(array), column.numbers)


def decode_image(column: Image, pixels: Pixels) -> pa.Array:
    """Lay pixels out as a column of images."""
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(pixels).ravel()), column.numbers)
