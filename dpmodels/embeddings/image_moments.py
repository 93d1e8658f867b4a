"""The moments of images by class, in a code of a hundred smooth coordinates and the pose.

    code(x) = [ coefficients of the pose-normalized image in a public basis ; pose ]
    z       = clip_R( (code - centre_class) V )
    s       = sum_x [ (a ; b z) (x) e_class ; z z' (x) e_class, or z z' over all classes ]        all whole numbers

Privacy: every z is an integer vector of norm at most 2**CODE_BITS and enters one count, one sum and one matrix, so one
image moves s by at most sqrt(a^2 + (b 2^CODE_BITS)^2 + (D 2^(2 CODE_BITS))^2) in L2 norm
(statistics/class_moments.py); m rows a unit, m times that (triangle inequality). The basis is public, V, R and the
centres are public or released earlier, and z is a function of the image, of its own class and of these alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, product

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.pose import REFERENCE, Frame, to_spreads
from dpmodels.errors import Unsuitable
from dpmodels.late import Tensor, torch
from dpmodels.statistics.class_moments import ClassMoments

CODE_BITS = 14
"""The clip radius in steps is 2**CODE_BITS: second moments of a block of rows stay below 2**53 and are exact."""
BASIS_BITS = 10
UNIT = 255 << BASIS_BITS
"""Steps of a code for one unit of intensity."""
DIRECTION_BITS = 14
"""Directions are held in steps of 2**-14, no longer than 1: what is turned by them stays below 2**53 and is exact."""
BLOCK_ROWS = 4096
Flipped = tuple[tuple[int, ...], tuple[int, ...]]
"""Which of the eigenvectors down, and which of those across, are turned round."""
NOT_FLIPPED: Flipped = ((), ())
"""No function down, and none across, is turned round."""
EQUAL = 1e-6
"""How much smaller than the largest entry of an eigenvector, relatively, one is that counts as large."""


class ImageCode:
    """The public code of an image: coefficients of smooth functions, then the pose.

    The functions are the leading eigenvectors of a Gaussian prior over images: neighboring pixels alike, the ink near
    the middle. They are rounded to ``2**-BASIS_BITS``, so that the code of whole pixels is whole.

    An eigenvector has no sign of its own. Half of these are odd, and which of their ends an earlier version took for
    the larger one was up to the last bit, so up to the processor: ``flipped`` says which of them are turned round.

    Shapes: ``basis`` [H * W, coefficients] int64.
    """

    def __init__(
        self,
        schema: Schema,
        coefficients: int,
        smoothness: float,
        pose_weight: float,
        flipped: Flipped = NOT_FLIPPED,
    ) -> None:
        if schema.image is None:
            raise Unsuitable(f"schema {schema.name} has no column of type image; use a table's method, such as nacre")
        column = schema.image[1]
        self.frame = Frame(column.height, column.width)
        self.flipped = flipped
        self.basis = smooth_basis(self.frame, min(coefficients, column.numbers), smoothness, self.flipped)
        self.pose_steps = pose_weight * UNIT * (column.numbers / 784) ** 0.5
        self.classes, self.class_column = schema.classes, schema.class_index

    @property
    def dim(self) -> int:
        """Count the coordinates of a code."""
        return int(self.basis.shape[1]) + len(REFERENCE)

    def encode(self, pixels: NDArray[np.uint8]) -> Whole:
        """Return the codes of images. Shapes: [B, H * W] -> [B, dim]."""
        poses = self.frame.poses(pixels)
        images = self.frame.normalise(pixels, poses)
        coefficients = images.astype(np.float64) @ self.basis.astype(np.float64)  # exact: whole and below 2**53
        spreads = np.rint(to_spreads(poses) * self.pose_steps)
        return np.concatenate([coefficients, spreads], axis=1).astype(np.int64)


@dataclass(frozen=True)
class ClipSpec:
    """How a code becomes a bounded vector, and how its moments are weighted; public or released.

    Attributes:
        directions: V in steps of ``2**-DIRECTION_BITS``, [dim, d]; a column's norm is the weight of its direction.
        centres: what is taken off the codes of each class first, in steps of a code, [classes, dim].
        radius: the norm that is clipped to, in steps of a code.
        count_weight, mean_weight: of a count and of a first moment, where a second moment has 1.
    """

    directions: Whole
    centres: Whole
    radius: int
    count_weight: float
    mean_weight: float


class ImageMoments(ClassMoments, Embedding):
    """Count and sum of clipped codes for each class, and their second moment for each class or over all."""

    def __init__(self, code: ImageCode, clip: ClipSpec, max_rows: int, *, pooled: bool) -> None:
        classes, size = len(clip.centres), clip.directions.shape[1]
        super().__init__(classes, size, clip.count_weight, clip.mean_weight, bits=CODE_BITS, pooled=pooled)
        self.code, self.clip = code, clip
        self.l2_sensitivity *= max_rows

    def lattice_sum(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        """Sum the moments of a batch; exact on the CPU, which is where images are coded."""
        total = np.zeros(self.dim, dtype=np.int64)
        for start in range(0, len(records), BLOCK_ROWS):
            block = records.take(slice(start, start + BLOCK_ROWS))
            if block.pixels is None:
                raise Unsuitable("the records hold no images; encode them with a schema that has an image")
            label = block.labels(self.code.class_column)
            total += self.total(self.bounded(self.code.encode(block.pixels), label), label)
        return torch.from_numpy(total)

    def bounded(self, codes: Whole, labels: Whole) -> Whole:
        """Take off the center of its class, turn and clip each code.

        Shapes: [B, dim], [B] -> [B, d].
        """
        centred = (codes - self.clip.centres[labels]).astype(np.float64)
        turned = np.trunc(np.ldexp(centred @ self.clip.directions.astype(np.float64), -DIRECTION_BITS))
        return clipped(turned, self.clip.radius)

    def coordinates(self) -> dict[str, NDArray[np.generic]]:
        """Name every coordinate of the vector: its class (-1: all), its part, and its place within the part."""
        rows, columns = np.triu_indices(self.size)
        each = np.arange(self.size)
        labels, matrices = np.arange(self.classes), np.array([-1]) if self.pooled else np.arange(self.classes)
        return {
            "class": np.concatenate([np.repeat(labels, 1 + self.size), np.repeat(matrices, len(rows))]),
            "part": np.concatenate(
                [
                    np.tile(np.repeat(["count", "sum"], [1, self.size]), self.classes),
                    np.full(self.matrices * len(rows), "moment"),
                ]
            ),
            "row": np.concatenate([np.tile([0, *each], self.classes), np.tile(rows, self.matrices)]),
            "column": np.concatenate([np.tile([0, *each], self.classes), np.tile(columns, self.matrices)]),
        }


def clipped(turned: Floats, radius: int) -> Whole:
    """Clip vectors of whole numbers to a radius, and write them in steps of ``radius / 2**CODE_BITS``.

    Privacy: the norm of every result is at most ``2**CODE_BITS``: the squared norm of ``turned`` is a sum of whole
        numbers below 2**53, so exact; scaling loses a relative 2**-40, more than its roundings can add; truncating
        toward zero shortens every coordinate.

    Shapes: [B, d] -> [B, d].
    """
    norm = np.sqrt((turned * turned).sum(axis=1))
    scale = np.ldexp(1 - 2.0**-40, CODE_BITS) / np.maximum(norm, radius)
    steps: Whole = np.trunc(turned * scale[:, None]).astype(np.int64)
    return steps


def smooth_basis(frame: Frame, count: int, smoothness: float, flipped: Flipped = NOT_FLIPPED) -> Whole:
    """Return the leading eigenvectors of the prior ``w(p) w(q) exp(-|p - q|^2 / (2 smoothness^2))``, w Gaussian.

    The prior is a product of one across and one down, and so are its eigenvectors; ``flipped`` lists which of those
    down and of those across are turned round. Shapes: [H * W, count].
    """
    down, across, frequencies = _leading(frame, count, smoothness)
    basis = np.einsum("ik,jk->ijk", down, across).reshape(frame.height * frame.width, -1)
    whole: Whole = np.rint(np.ldexp(basis * _signs(frequencies, flipped), BASIS_BITS)).astype(np.int64)
    return whole


def flipped_bases(frame: Frame, count: int, smoothness: float) -> Iterator[tuple[Flipped, Whole]]:
    """Yield the basis with its odd eigenvectors turned round in every way, with which of them are.

    A square image has the same eigenvectors down and across.
    """
    down, across, frequencies = _leading(frame, count, smoothness)
    basis = smooth_basis(frame, count, smoothness)
    odd = [_odd(*pair) for pair in zip((down, across), frequencies, strict=True)]
    if frame.height == frame.width:
        ways: Iterable[Flipped] = ((some, some) for some in _subsets(sorted({*odd[0], *odd[1]})))
    else:
        ways = product(_subsets(odd[0]), _subsets(odd[1]))
    for flipped in ways:
        yield flipped, basis * _signs(frequencies, flipped)


def _leading(frame: Frame, count: int, smoothness: float) -> tuple[Floats, Floats, tuple[Whole, Whole]]:
    """Return of each leading eigenvector its parts down and across, and the places of these among their kind.

    Shapes: [H, count], [W, count], [count] twice.
    """
    sides = [_side(points, smoothness) for points in (frame.y[:: frame.width], frame.x[: frame.width])]
    (down_values, down), (across_values, across) = sides
    order = np.argsort(-np.outer(down_values, across_values).ravel(), kind="stable")[:count]
    rows, columns = order // frame.width, order % frame.width
    return down[:, rows], across[:, columns], (rows, columns)


def _odd(vectors: Floats, frequencies: Whole) -> list[int]:
    """Return the places of the odd ones among eigenvectors, each of which is even or odd."""
    return sorted(
        {int(frequency) for frequency, vector in zip(frequencies, vectors.T, strict=True) if vector @ vector[::-1] < 0}
    )


def _subsets(frequencies: list[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(frequencies, size) for size in range(len(frequencies) + 1))


def _signs(frequencies: tuple[Whole, Whole], flipped: Flipped) -> Whole:
    """Return -1 for each leading eigenvector of which one part is turned round, else 1. Shapes: [count]."""
    down, across = (
        np.where(np.isin(of_axis, turned), -1, 1) for of_axis, turned in zip(frequencies, flipped, strict=True)
    )
    signs: Whole = down * across
    return signs


def _side(points: Floats, smoothness: float) -> tuple[Floats, Floats]:
    """Return eigenvalues, and eigenvectors whose last large entry is positive, whatever the last bits are."""
    window = np.exp(-((points / 14) ** 2))
    prior = np.exp(-((points[:, None] - points) ** 2) / (2 * smoothness**2)) * np.outer(window, window)
    values, vectors = np.linalg.eigh(prior)
    large = np.abs(vectors) >= (1 - EQUAL) * np.abs(vectors).max(axis=0)
    last = len(points) - 1 - large[::-1].argmax(axis=0)
    signs = np.sign(vectors[last, np.arange(len(points))])
    return np.maximum(values[::-1], 0), (vectors * signs)[:, ::-1]
