"""The image column: gray pixels of one fixed size, kept as they are beside the encoded states and values."""

from typing import Annotated, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dpmodels.errors import DataError
from dpmodels.schema.base import described

Pixels: TypeAlias = NDArray[np.uint8]
Side = Annotated[int, Field(ge=4, le=128)]


class Image(BaseModel):
    """Gray images, 0 is background and 255 full ink, row by row; never null."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    type: Annotated[Literal["image"], Field(description="Gray pixels of one fixed size.")]
    height: Annotated[Side, Field(description="Pixels of a column of the image.")]
    width: Annotated[Side, Field(description="Pixels of a row of the image.")]

    @property
    def pixels(self) -> int:
        """Count the pixels of an image."""
        return self.height * self.width

    @property
    def rule(self) -> str:
        """Say in words which values the schema admits."""
        return f"must hold {self.pixels} whole numbers from 0 to 255 in every row ({self.height} rows of {self.width})"

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type images are stored and handed over as."""
        return pa.list_(pa.uint8(), self.pixels)


def check_image_type(name: str, found: pa.DataType) -> None:
    """Refuse a column that cannot hold lists of whole numbers."""
    lists = pa.types.is_fixed_size_list(found) or pa.types.is_list(found) or pa.types.is_large_list(found)
    if not (lists and pa.types.is_integer(found.value_type)):
        raise DataError(
            name, f"must hold lists of whole numbers, as its type image in the schema says; it holds {described(found)}"
        )


def images_fit(column: Image, array: pa.Array) -> bool:
    """Tell whether every row is an image of the declared size."""
    if array.null_count or not len(array):
        return not array.null_count
    lengths = pc.list_value_length(array)
    values = array.flatten()
    if values.null_count or pc.min(lengths).as_py() != column.pixels or pc.max(lengths).as_py() != column.pixels:
        return False
    low, high = pc.min_max(values).values()
    return bool(low.as_py() >= 0 and high.as_py() <= 255)


def encode_image(name: str, column: Image, array: pa.Array) -> Pixels:
    """Return the pixels of a column of images.

    Shapes: [B, height * width] uint8.

    Raises:
        DataError: the type is wrong, or a row is no image of the declared size.
    """
    check_image_type(name, array.type)
    if not images_fit(column, array):
        raise DataError(name, column.rule)
    pixels: Pixels = array.flatten().to_numpy(zero_copy_only=False).astype(np.uint8)
    return pixels.reshape(len(array), column.pixels)


def decode_image(column: Image, pixels: Pixels) -> pa.Array:
    """Lay pixels out as a column of images."""
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(pixels).ravel()), column.pixels)
