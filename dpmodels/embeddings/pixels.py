"""Characteristic-function features of images (PEARL, Eq. 4), at frequencies that are sums of cosines.

    t_j = s_j / d  sum_uv g_uvj w_uv C_uv         g ~ N(0, 1),  log s_j uniform,  w_uv^2 in proportion to
                                                  (1 + u^2 + v^2)^-smoothness and of mean 1
    phi(x) = ( e^{i t_j . x} )_j / sqrt(k)        x: intensities from 0 to 1

C_uv are the orthonormal cosines of an image, so that a smoothness of 0 is the white law of the paper, and a larger one
makes neighboring pixels count together. The paper divides by the mean distance of two private images, at a price. Here
d is public: sqrt(numbers / 6), the root mean square distance of two images of uniform and independent intensities.

Privacy: unit one image, add or remove. Norm bound, lattice and sums are those of embeddings/characteristic.py: whatever
the pixels are, phi is read off one table, whose pairs have a norm that is proved entry by entry. An image has no bounds
to clip to: pixels are whole numbers from 0 to 255, and the product with whole phases is exact below 2**53.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, cast

import numpy as np
from pydantic import Field

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.encode import Records
from dpmodels.contract.image import Image
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import VALUE_BITS, Layout
from dpmodels.embeddings.characteristic import TURN, CharacteristicFunction, Frequencies
from dpmodels.embeddings.photo_moments import cosines
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.late import Tensor, torch

INTENSITY = 2**VALUE_BITS // 255
"""Steps of 2**-VALUE_BITS that one step of intensity has; full ink is one such step short of 1."""
COSINE_BITS, FINE_BITS = 12, 2
"""Cosines are held in steps of 2**-12 and what they are multiplied with in fourths of a phase: their sum is exact."""

MOST_WEIGHTS = 1 << 27
"""Weights of cosines that are held at once, of 8 bytes."""


class PixelSpec(Frequencies):
    """The public description of the frequencies of images.

    Attributes:
        scale_low, scale_high: each frequency's scale is drawn log-uniformly between them (the multi-bandwidth mix).
        smoothness: how fast the variance of a frequency falls with the cosine; 0 is white.
    """

    kind: Literal["pixels"] = "pixels"
    scale_low: Annotated[float, Field(gt=0)] = 0.25
    scale_high: Annotated[float, Field(gt=0)] = 1.5
    smoothness: Annotated[float, Field(ge=0, le=4)] = 0.5


@dataclass(frozen=True, slots=True)
class ImageLayout(Layout):
    """The design vector of an image: its intensities; public, fixed by the schema."""

    column: Image

    @classmethod
    def of(cls, schema: Schema) -> Self:
        """Lay out the image of a schema.

        Raises:
            Unsuitable: there is none.
        """
        if schema.image is None:
            raise Unsuitable(f"schema {schema.name} has no column of type image; use a table's method, such as nacre")
        return cls((), schema.classes, schema.class_index, schema.image[1])

    @property
    def dim(self) -> int:
        """Number of intensities."""
        return self.column.numbers

    def design(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        """Return intensities in steps of 2**-VALUE_BITS. Shapes: [B, dim] float64 holding integers."""
        if records.pixels is None:
            raise Unsuitable("the records hold no images; encode them with a schema that has an image")
        x: Tensor = torch.from_numpy(records.pixels).to(device=device, dtype=torch.float64) * INTENSITY
        return x


class PixelFunction(CharacteristicFunction):
    """k frequencies over the pixels of an image; ``relative`` are those of its cosines, channel by channel."""

    sparse: ClassVar[bool] = False

    def drawn(self) -> tuple[Floats, Whole]:
        """Draw the weights of the cosines and add them up in whole numbers, the same bits on every processor.

        Raises:
            InvalidArgument: the frequencies are too many for memory, or too high for whole numbers.
        """
        spec, column = cast(PixelSpec, self.spec), cast(ImageLayout, self.layout).column
        if spec.count * column.numbers > MOST_WEIGHTS:
            most = MOST_WEIGHTS // column.numbers
            raise InvalidArgument("count", spec.count, f"be at most {most:,} for images of {column.numbers:,} numbers")
        rng = np.random.Generator(np.random.PCG64(spec.seed))
        relative = rng.standard_normal((column.numbers, spec.count))
        scale = np.exp(rng.uniform(math.log(spec.scale_low), math.log(spec.scale_high), spec.count))
        weights = _weights(column, spec.smoothness)[:, None] * (scale / distance(column)) / (2 * math.pi)
        fine = np.rint(relative * weights * (TURN << FINE_BITS))
        down, across = (np.rint(np.ldexp(cosines(side), COSINE_BITS)) for side in (column.height, column.width))
        reach = np.abs(fine).max(initial=0) * np.abs(down).sum(axis=0).max() * np.abs(across).sum(axis=0).max()
        if reach >= 2**53:
            raise InvalidArgument("scale_high", spec.scale_high, "be lower: at this scale a phase is not exact")
        planes = fine.reshape(column.channels, column.height, column.width, spec.count)
        total = np.einsum("uh,vw,cuvk->hwck", down, across, planes, optimize=True).reshape(relative.shape)
        return relative, np.rint(np.ldexp(total, -2 * COSINE_BITS - FINE_BITS)).astype(np.int64)

    def expectation(self, rows: Any, index: Tensor) -> Tensor:
        """Return exp(i t_j . x) of proposed images, differentiably.

        Shapes: ``rows`` [B, numbers] in [0, 1]; ``index`` picks J frequencies; returns [B, J] complex64.
        """
        phases = torch.as_tensor(self.phases, device=index.device)[:, index].to(torch.float32)
        turned = rows @ (phases * (2 * math.pi * 255 * INTENSITY / (TURN << VALUE_BITS)))
        return torch.complex(torch.cos(turned), torch.sin(turned))


def distance(column: Image) -> float:
    """Return the root mean square distance of two images of uniform, independent intensities from 0 to 1."""
    return math.sqrt(column.numbers / 6)


def _weights(column: Image, smoothness: float) -> Floats:
    """Return the standard deviation of each cosine's weight, of mean square 1. Shapes: [numbers]."""
    longest = max(column.height, column.width)
    u, v = (np.arange(side) * (longest / side) for side in (column.height, column.width))
    variance = (1 + u[:, None] ** 2 + v**2) ** -smoothness
    weights: Floats = np.sqrt(np.tile((variance / variance.mean()).ravel(), column.channels))
    return weights
