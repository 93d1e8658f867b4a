"""The image column: gray or color pixels of one fixed size, kept as they are beside the encoded states and values."""

from typing import Annotated, Literal, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from dpmodels.errors import DataError
from dpmodels.schema.base import ColumnFaults, described

Pixels: TypeAlias = NDArray[np.uint8]
Side = Annotated[int, Field(ge=4, le=128)]
MOST_COLOR_SIDE = 64


class Image(BaseModel):
    """Images, row by row; never null.

    Gray ones have one number a pixel, 0 for background and 255 for full ink; color ones red, green and blue.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    type: Annotated[Literal["image"], Field(description="Pixels of one fixed size.")]
    height: Annotated[Side, Field(description="Pixels of a column of the image.")]
    width: Annotated[Side, Field(description="Pixels of a row of the image.")]
    # left out at its default, so that a schema of gray images keeps the hash it had before there were color ones
    channels: Annotated[
        Literal[1, 3],
        Field(exclude_if=lambda channels: channels == 1, description="Numbers of a pixel: 1 for gray, 3 for color."),
    ] = 1

    @model_validator(mode="after")
    def _check(self) -> Self:
        large = [side for side in ("height", "width") if getattr(self, side) > MOST_COLOR_SIDE]
        if self.is_color and large:
            raise ColumnFaults([(side, f"must be at most {MOST_COLOR_SIDE} for images in color") for side in large])
        return self

    @property
    def is_color(self) -> bool:
        """Tell whether pixels are red, green and blue."""
        return self.channels == 3

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of an image as an array: rows, columns, and red, green and blue if it is in color."""
        return (self.height, self.width, 3) if self.is_color else (self.height, self.width)

    @property
    def numbers(self) -> int:
        """Count the numbers of an image."""
        return self.height * self.width * self.channels

    @property
    def rule(self) -> str:
        """Say in words which values the schema admits."""
        order = ", each red, green, blue" if self.is_color else ""
        place = f"{self.height} rows of {self.width}{order}"
        return f"must hold {self.numbers} whole numbers from 0 to 255 in every row ({place})"

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type images are stored and handed over as."""
        return pa.list_(pa.uint8(), self.numbers)


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
