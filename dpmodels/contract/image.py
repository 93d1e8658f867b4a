"""The image column: gray or color pixels of one fixed size, kept as they are beside the encoded states and values."""

from typing import Annotated, Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from dpmodels.contract.base import ColumnFaults
from dpmodels.frozen import Strict

Side = Annotated[int, Field(ge=4, le=128)]
MOST_COLOR_SIDE = 64


class Image(Strict):
    """Images, row by row; never null.

    Gray ones have one number a pixel, 0 for background and 255 for full ink; color ones red, green and blue.
    """

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
        layout = f"{self.height} rows of {self.width}{order}"
        return f"must hold {self.numbers} whole numbers from 0 to 255 in every row ({layout})"

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the type images are stored and handed over as."""
        return pa.list_(pa.uint8(), self.numbers)
