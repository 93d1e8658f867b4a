"""The moments of photographs by class, in a code of their leading cosines.

    code(x) = (x - 128) B w         B: cosines of brightness and of two colors; w: a public weight for each; rounded
    first   = sum_x [ R / 4 ; t ; |t|^2 / R ],  t = clip_R(code)
    second  = sum_x [ (a ; b t ; t t') (x) e_class ; t t' ],  t = clip_R(code - center)         all whole numbers

Photographs vary alike wherever one looks, so their cosines hardly vary together, and cosine number (u, v) has a
variance of about 1 / (u^2 + v^2), brightness far more than color. That is public knowledge. It chooses and weights what
is coded, and it is what the rest is drawn from (generators/photos.py).

Privacy: unit one image, add or remove. Whatever its pixels are, t is a vector of whole numbers of norm at most
R = 2**CODE_BITS (embeddings/image_moments.py, ``clipped``). It enters the first look once: sqrt(R^2 / 16 + R^2 + R^2).
In the second it enters one count, one sum, the matrix of its class and that of all classes:
sqrt((D a R^2)^2 + (D b R^2)^2 + 2 (D R^2)^2) in L2 norm (statistics/class_moments.py has D); m rows a unit, m times
that. Only the clip bounds t. That brightness and colors are an orthonormal turn of red, green and blue, and cosines are
orthonormal, keeps a code below about 128 sqrt(3 H W) steps of intensity, and so every sum of ``encode`` and of squares
below 2**53 and exact. B, w and R are public; the center is public or released earlier.
"""

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.image_moments import CODE_BITS, clipped
from dpmodels.errors import Unsuitable
from dpmodels.late import Tensor, torch
from dpmodels.mechanisms.lattice import integer_radius
from dpmodels.statistics.class_moments import ClassMoments
from dpmodels.statistics.symmetric import DIAGONAL, symmetric_dim, unpack

MIDDLE = 128
"""What is taken off every number of a pixel."""
BASIS_BITS = 11
UNIT = 255 << BASIS_BITS
"""Steps of a code for one unit of intensity."""
TURN = np.array([[1, 1, 1], [1, 0, -1], [1, -2, 1]]) / np.sqrt([[3], [2], [6]])
"""Brightness and two colors of red, green and blue."""
COUNTED = 1 << CODE_BITS - 2
"""What an image adds to the count of the first look."""
BLOCK_NUMBERS = 1 << 22
"""Numbers of images that are coded at a time."""
VARIANCE = 0.0234
"""Of the cosine of frequency 1 of photographs' brightness, for each pixel, where black and white are 1 apart."""


class PhotoCode:
    """The public code of photographs: those of their cosines that vary most, weighted.

    Attributes:
        places: of the coded cosines among all, [coefficients]; prior: public variance of every cosine, [all].
        weights: of the coded cosines, at most 1, [coefficients].
    """

    def __init__(self, schema: Schema, coefficients: int, chroma: float, evening: float) -> None:
        if schema.image is None:
            raise Unsuitable(f"schema {schema.name} has no column of type image; use a table's method, such as nacre")
        column = schema.image[1]
        self.shape, self.class_column = (column.channels, column.height, column.width), schema.class_index
        self.turn = TURN if column.is_color else np.ones((1, 1))
        self.down, self.across = cosines(column.height), cosines(column.width)
        longest = max(column.height, column.width)
        u, v = (np.arange(side) * (longest / side) for side in (column.height, column.width))
        channels = np.array([1.0, chroma, chroma / 4])[: column.channels]
        shape = channels[:, None, None] / np.maximum(u[:, None] ** 2 + v**2, 0.5)
        self.prior: Floats = VARIANCE * column.height * column.width * shape.ravel()
        self.flat_indices = np.argsort(-self.prior, kind="stable")[: min(coefficients, column.numbers)]
        self.weights: Floats = (self.prior[self.flat_indices] / self.prior.max()) ** (-evening / 2)
        self.weights /= self.weights.max()

    @property
    def dim(self) -> int:
        """Count the coordinates of a code."""
        return len(self.flat_indices)

    @property
    def usual_norm(self) -> float:
        """Return the root mean square norm that the prior expects of a code, in steps."""
        return UNIT * math.sqrt(float((self.weights**2 * self.prior[self.flat_indices]).sum()))

    @property
    def longest(self) -> int:
        """Return the norm in steps that no code passes, up to the rounding of the basis."""
        return math.ceil((MIDDLE << BASIS_BITS) * math.sqrt(len(self.prior)))

    @cached_property
    def basis(self) -> Whole:
        """The weighted cosines, rounded so that the code of whole pixels is whole. Shapes: [H * W * channels, dim]."""
        frequencies = np.unravel_index(self.flat_indices, self.shape)
        columns = np.einsum(
            "kc,ki,kj->ijck", self.turn[frequencies[0]], self.down[frequencies[1]], self.across[frequencies[2]]
        )
        whole: Whole = np.rint(np.ldexp(columns.reshape(-1, self.dim) * self.weights, BASIS_BITS)).astype(np.int64)
        return whole

    def encode(self, pixels: NDArray[np.uint8]) -> Floats:
        """Return the codes of images in steps, whole numbers. Shapes: [B, H * W * channels] -> [B, dim]."""
        codes: Floats = (pixels.astype(np.float64) - MIDDLE) @ self.basis.astype(np.float64)
        return codes

    def draw(self, every: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Return the images that have these cosines, in units of intensity. Shapes: [B, all] -> [B, all]."""
        channels = every.reshape(-1, *self.shape)
        planes = self.down.T.astype(np.float32) @ channels @ self.across.astype(np.float32)
        colors = planes.transpose(0, 2, 3, 1) @ self.turn.astype(np.float32)
        pixels: NDArray[np.uint8] = np.rint(np.clip(255 * colors + MIDDLE, 0, 255)).astype(np.uint8)
        return pixels.reshape(len(every), -1)


class PhotoSpread(Embedding):
    """The number of images, and the sum and the squared norm of their clipped codes."""

    def __init__(self, code: PhotoCode, radius: int, max_rows: int) -> None:
        self.code, self.radius, self.dim = code, radius, code.dim + 2
        self.l2_sensitivity = max_rows * integer_radius((COUNTED**2) + 2 * (1 << 2 * CODE_BITS))

    def lattice_sum(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        """Sum a batch; exact on the CPU, which is where images are coded."""
        total = np.zeros(self.dim, dtype=np.int64)
        for codes, _ in _coded(self.code, records):
            t = clipped(codes, self.radius)
            norms = (t * t).sum(axis=1) >> CODE_BITS
            total += np.concatenate([[COUNTED * len(t)], t.sum(axis=0), [norms.sum()]])
        return torch.from_numpy(total)

    def unpack(self, released: Whole) -> tuple[float, Floats, float]:
        """Split a released vector: the number of images, and the sums of codes and of squares, in steps of a code."""
        scale = self.radius / 2.0**CODE_BITS
        square = float(released[-1]) * 2.0**CODE_BITS * scale**2
        total: Floats = released[1:-1].astype(np.float64) * scale
        return float(released[0]) / COUNTED, total, square

    def coordinates(self) -> dict[str, NDArray[np.generic]]:
        parts = np.repeat(["count", "sum", "square"], [1, self.code.dim, 1])
        return {"part": parts, "row": np.concatenate([[0], np.arange(self.code.dim), [0]])}


class PhotoMoments(ClassMoments, Embedding):
    """Count, sum and second moment of clipped codes for each class, and their second moment over all classes.

    The one of all is the sum of those of the classes, with a noise of its own, which is less than the sum of theirs.
    """

    def __init__(
        self, code: PhotoCode, classes: int, center: Whole, radius: int, weights: tuple[float, float], max_rows: int
    ) -> None:
        super().__init__(classes, code.dim, *weights, bits=CODE_BITS, pooled=False)
        self.code, self.center, self.radius = code, center, radius
        counts, means, squares = self.count_step**2, (self.mean_step << CODE_BITS) ** 2, DIAGONAL << 2 * CODE_BITS
        self.by_class = self.dim
        self.dim += symmetric_dim(self.size)
        self.l2_sensitivity = max_rows * integer_radius(counts + means + 2 * squares**2)

    def lattice_sum(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        """Sum the moments of a batch; exact on the CPU, which is where images are coded."""
        total = np.zeros(self.by_class, dtype=np.int64)
        for codes, label in _coded(self.code, records):
            total += self.total(clipped(codes - self.center, self.radius), label)
        matrices = total[self.classes * (1 + self.size) :].reshape(self.classes, -1)
        return torch.from_numpy(np.concatenate([total, matrices.sum(axis=0)]))

    def unpack_all(self, released: Whole) -> tuple[Floats, Floats, Floats, Floats]:
        """Split a released vector into N, S and Q of the classes and Q of all, in images of clip norm 1.

        Shapes: [classes], [classes, d], [classes, d, d], [d, d].
        """
        of_class, of_all = np.split(released, [self.by_class])
        return *self.unpack(of_class), unpack(of_all, self.size) / 4.0**CODE_BITS

    def coordinates(self) -> dict[str, NDArray[np.generic]]:
        """Name every coordinate of the vector: its class (-1: all), its part, and its place within the part."""
        rows, columns = np.triu_indices(self.size)
        first, labels = np.arange(-1, self.size).clip(min=0), np.arange(self.classes)
        parts = np.tile(np.repeat(["count", "sum"], [1, self.size]), self.classes)
        moments = np.full((self.classes + 1) * len(rows), "moment")
        return {
            "class": np.concatenate([np.repeat(labels, 1 + self.size), np.repeat([*labels, -1], len(rows))]),
            "part": np.concatenate([parts, moments]),
            "row": np.concatenate([np.tile(first, self.classes), np.tile(rows, self.classes + 1)]),
            "column": np.concatenate([np.tile(first, self.classes), np.tile(columns, self.classes + 1)]),
        }


def _coded(code: PhotoCode, records: Records) -> Iterator[tuple[Floats, Whole]]:
    """Yield the codes and labels of images, block by block."""
    if records.pixels is None:
        raise Unsuitable("the records hold no images; encode them with a schema that has an image")
    label, rows = records.labels(code.class_column), max(1, BLOCK_NUMBERS // len(code.prior))
    for start in range(0, len(records), rows):
        block = slice(start, start + rows)
        yield code.encode(records.pixels[block]), label[block]


def cosines(side: int) -> Floats:
    """Return the orthonormal cosines of a side, slow ones first. Shapes: [frequency, place]."""
    rows: Floats = np.cos(np.pi / side * np.outer(np.arange(side), np.arange(side) + 0.5))
    rows[0] *= math.sqrt(0.5)
    return rows * math.sqrt(2 / side)
