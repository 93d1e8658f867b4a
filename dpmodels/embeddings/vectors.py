"""A record as one bounded vector of whole numbers, and as what a decoder is to reproduce: cells or pixels.

    x = [ u onehot ; u value ]  for a table,    x = clip_R(pixels)  for an image;    z = clip_r((x - mean) V)

Privacy: ||x|| <= 2**Z_BITS. A table with m parts (a one-hot or a value each) has u = 2**Z_BITS / sqrt(m), rounded down,
and no part exceeds u. An image is scaled by its exact norm with a relative 2**-40 to spare, then truncated toward zero.
z is turned from x by whole released directions, exactly, and clipped to 2**Z_BITS steps the same way.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpmodels.embeddings.base import VALUE_BITS, Layout
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import InvalidArgument
from dpmodels.mechanisms.dp_em import Z_BITS, Floats, Points, Whole
from dpmodels.mechanisms.dp_kmeans import nearest
from dpmodels.privacy import Sensitive
from dpmodels.schema.encode import Records
from dpmodels.schema.schema import Schema

DIRECTION_BITS = 14


@dataclass(frozen=True)
class VectorRows:
    """All records of a table, in memory.

    Shapes: ``x`` [n, dim] int16; ``label`` [n]; ``target`` [n, columns] int64 cells or [n, pixels] uint8.
    """

    x: NDArray[np.int16]
    label: Whole
    target: Tensor


class Vectors:
    """The public map from records to vectors and targets.

    Attributes:
        dim: of x.
        unit: what a one-hot, or an image's full ink, is in units of the clip norm.
        partition: cells of a table's columns, which a decoder predicts; None for images.
    """

    def __init__(self, schema: Schema, most_cells: int, image_radius: float) -> None:
        self.schema, self.classes = schema, schema.classes
        self.partition = None if schema.image else Partition.fine(schema, most_cells)
        if schema.image:
            self.dim = schema.image[1].pixels
            self.radius = 255 * image_radius * math.sqrt(self.dim)
            self.unit = 255 / self.radius
            return
        self.layout = Layout.of(schema)
        parts = sum((block.one_hot > 0) + block.continuous for block in self.layout.blocks)
        if not parts:
            raise InvalidArgument("schema", schema.name, "have at least one column besides the target")
        self.dim = self.layout.dim
        self.steps = math.isqrt(4**Z_BITS // parts)
        self.unit = self.steps / 2**Z_BITS

    def vectors(self, records: Records) -> Whole:
        """Return the bounded vectors of records. Shapes: [B, dim]."""
        if self.schema.image is None:
            design = self.layout.design(records).numpy()  # whole numbers up to 2**VALUE_BITS: the product is exact
            whole: Whole = np.floor(np.ldexp(design * self.steps, -VALUE_BITS)).astype(np.int64)
            return whole
        if records.pixels is None:
            raise InvalidArgument("records", "without images", "hold one image each")
        return clip(records.pixels.astype(np.float64), self.radius)

    def labels(self, records: Records) -> Whole:
        """Return the class of each record. Shapes: [B]."""
        if self.partition is not None:
            return self.partition.class_of(records)
        column = self.schema.target_index
        return np.zeros(len(records), np.int64) if column is None else records.states[:, column].astype(np.int64)

    def targets(self, records: Records) -> Tensor:
        """Return what a decoder predicts. Shapes: [B, columns] cells or [B, pixels] ink."""
        if self.partition is not None:
            return torch.from_numpy(self.partition.cells(records))
        return torch.from_numpy(np.ascontiguousarray(records.pixels))

    def rows(self, batches: Iterable[Records]) -> VectorRows:
        """Gather all records."""
        parts = [(self.vectors(r).astype(np.int16), self.labels(r), self.targets(r)) for r in batches if len(r)]
        if not parts:
            return self.rows_of(np.zeros((0, self.dim), np.int16), np.zeros(0, np.int64))
        x, label, target = zip(*parts, strict=True)
        return VectorRows(np.concatenate(x), np.concatenate(label), torch.cat(target))

    def rows_of(self, x: NDArray[np.int16], label: Whole) -> VectorRows:
        """Return rows without records."""
        width = self.dim if self.partition is None else len(self.partition.sizes)
        return VectorRows(x, label, torch.zeros(0, width, dtype=torch.int64 if self.partition else torch.uint8))


@dataclass(frozen=True)
class Projection:
    """The released directions that vectors are turned to.

    Attributes:
        directions: V in steps of ``2**-DIRECTION_BITS``, [dim, d]; mean: taken off first, in steps, [dim].
        radius: the norm that is clipped to, where 1 is the norm of x.
        spread: standard deviation along each direction where the clip norm is 1, as released.
    """

    directions: Whole
    mean: Whole
    radius: float
    spread: Floats

    def points(self, x: NDArray[np.int16]) -> Whole:
        """Turn and clip vectors. Shapes: [n, dim] -> [n, d]."""
        directions = self.directions.astype(np.float64)
        parts = [
            clip(
                np.ldexp((block - self.mean).astype(np.float64) @ directions, -DIRECTION_BITS), self.radius * 2**Z_BITS
            )
            for block in np.array_split(x, len(x) // 8192 + 1)
        ]
        return np.concatenate(parts)

    def inverse(self, z: Floats) -> Floats:
        """Return the vectors that points stand for, in units of the norm of x. Shapes: [n, d] -> [n, dim]."""
        back = z @ np.ldexp(self.directions.astype(np.float64), -DIRECTION_BITS).T
        result: Floats = back * self.radius + np.ldexp(self.mean.astype(np.float64), -Z_BITS)
        return result


def clip(vectors: Floats, radius: float) -> Whole:
    """Clip to ``radius`` and write in steps of ``radius / 2**Z_BITS``: no norm exceeds 2**Z_BITS."""
    norm = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    steps: Whole = np.trunc(vectors * (np.ldexp(1 - 2.0**-40, Z_BITS) / np.maximum(norm, radius))).astype(np.int64)
    return steps


def transform_vectors(vectors: Vectors, batches: Sensitive[Iterable[Records]]) -> Sensitive[VectorRows]:
    """Gather the vectors and targets of all records. Privacy: Sensitive -> Sensitive, record by record."""
    return Sensitive(vectors.rows(batches.reveal()))


def transform_points(rows: Sensitive[VectorRows], projection: Projection | None) -> Sensitive[Points]:
    """Turn vectors to released directions, or leave them. Privacy: Sensitive -> Sensitive, record by record."""
    held = rows.reveal()
    z = held.x.astype(np.int64) if projection is None else projection.points(held.x)
    return Sensitive(Points(z, held.label))


def transform_training(
    rows: Sensitive[VectorRows], points: Sensitive[Points], scale: Floats
) -> Sensitive[tuple[Tensor, ...]]:
    """Return what DP-SGD reads: points divided by a released scale, labels, targets.

    Privacy: Sensitive -> Sensitive, record by record. Shapes: [n, d] float32, [n], [n, ...].
    """
    held, z = rows.reveal(), points.reveal().z
    inputs = torch.from_numpy((np.ldexp(z.astype(np.float64), -Z_BITS) / scale).astype(np.float32))
    return Sensitive((inputs, torch.from_numpy(held.label), held.target))


def transform_cluster(rows: Sensitive[VectorRows], centroids: Floats, index: int) -> Sensitive[VectorRows]:
    """Keep the records nearest to one released centroid. Privacy: Sensitive -> Sensitive, record by record."""
    held = rows.reveal()
    own = nearest(held.x.astype(np.int64), centroids) == index
    return Sensitive(VectorRows(held.x[own], held.label[own], held.target[torch.from_numpy(own)]))
