"""A record as one bounded vector of whole numbers, and as what a decoder is to reproduce: cells, values or pixels.

    design   one-hots and values in [0, 1], or ink in [0, 1]
    x = clip_R((design - middle) / scale)          z = clip_r((x - mean) V)

A table of mostly categories is decoded to cells; one of mostly numbers to values, and its columns are scaled first: by
the released histogram of the distance from the middle, in steps of a factor sqrt 2. Images are decoded to ink.

Privacy: x and z have norm at most 2**Z_BITS, whatever the record (``clip``); the rest is public or released.
The histograms put one record into one bin a column: it moves them by at most the root of the number of columns.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import VALUE_BITS, Layout
from dpmodels.embeddings.image_moments import BASIS_BITS, smooth_basis
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.pose import Frame
from dpmodels.errors import Unsuitable
from dpmodels.late import Tensor, torch
from dpmodels.mechanisms.lattice import integer_radius
from dpmodels.privacy import Sensitive
from dpmodels.statistics.cluster_sums import nearest
from dpmodels.statistics.component_moments import Z_BITS, Points

DIRECTION_BITS = 14
COEFFICIENTS, SMOOTHNESS = 100, 1.5
"""The number of smooth functions that images are written in before anything is measured, and their width in pixels."""
SCALE_BINS = 16
"""Bins of a column's distance from the middle: the first ends at 1/2, each next a factor sqrt 2 below."""
SCALE_QUANTILE, SCALED_RADIUS = 0.7, 1.5
"""The share of a column that its scale covers, and the clip norm of scaled records divided by sqrt(parts)."""


@dataclass(frozen=True)
class VectorRows:
    """All records of a table, in memory.

    Shapes: ``design`` [n, dim] float32; ``label`` [n]; ``target`` [n, ...] int64 cells, float32 design or uint8 ink;
        ``numbers`` [n], which records of the table they are.
    """

    design: NDArray[np.float32]
    label: Whole
    target: Tensor
    numbers: Whole


class Vectors:
    """The public map from records to vectors and targets.

    Attributes:
        kind: what a decoder predicts; dim: of the design; radius: R; size: of x.
        basis: smooth functions that images are written in first, [dim, size]; None for tables.
        middle: what is taken off the design; values: which coordinates are values.
        layout, partition: of a table's design and cells; None for images.
    """

    def __init__(self, schema: Schema, most_cells: int, image_radius: float, numbers: str = "auto") -> None:
        self.schema, self.classes, self.most_cells = schema, schema.classes, most_cells
        self.layout = None if schema.image else Layout.of(schema)
        self.partition = None if schema.image else Partition.fine(schema, most_cells)
        self.kind: Literal["ink", "cells", "values"] = "ink"
        self.basis: Floats | None = None
        if schema.image:
            column = schema.image[1]
            self.dim = column.numbers
            whole = smooth_basis(Frame(column.height, column.width), min(COEFFICIENTS, self.dim), SMOOTHNESS)
            self.basis = np.ldexp(whole.astype(np.float64), -BASIS_BITS)
            self.size = self.basis.shape[1]
            self.middle, self.values = np.zeros(self.dim), np.zeros(self.dim, dtype=np.bool_)
            self.radius = image_radius * math.sqrt(self.dim)
            return
        blocks = Layout.of(schema).blocks
        parts = sum((block.one_hot > 0) + block.continuous for block in blocks)
        if not parts:
            raise Unsuitable(f"schema {schema.name} has no column besides the target; add one, or name no target")
        mostly_numbers = sum(block.continuous for block in blocks) > len(blocks) / 2
        self.kind = "values" if numbers == "values" or (numbers == "auto" and mostly_numbers) else "cells"
        self.dim = self.size = Layout.of(schema).dim
        self.values = np.zeros(self.dim, dtype=np.bool_)
        self.values[[block.value for block in blocks if block.continuous]] = True
        self.middle = np.where(self.values & (self.kind == "values"), 0.5, 0.0)
        self.radius = math.sqrt(parts) * (SCALED_RADIUS if self.kind == "values" else 1.0)

    @property
    def image(self) -> tuple[int, int] | None:
        """The height and width of images; None for tables."""
        return (self.schema.image[1].height, self.schema.image[1].width) if self.schema.image else None

    @property
    def scale_dim(self) -> int:
        """Count the coordinates of the histograms; none but for a table of values."""
        return int(self.values.sum()) * SCALE_BINS if self.kind == "values" else 0

    @property
    def scale_sensitivity(self) -> int:
        """Bound what one record moves the histograms by."""
        return integer_radius(int(self.values.sum()))

    def scales(self, histograms: Whole | None) -> Floats:
        """Return the scale of each coordinate from released histograms (post-processing). Shapes: [dim]."""
        scales = np.ones(self.dim)
        if histograms is not None and len(histograms):
            counts = histograms.reshape(-1, SCALE_BINS).astype(np.float64)
            inside = counts[:, ::-1].cumsum(axis=1)  # from the middle outwards
            enough = inside >= SCALE_QUANTILE * np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
            exponent = np.where(enough.any(axis=1), enough.argmax(axis=1), SCALE_BINS - 1)
            scales[self.values] = 0.5 * 2.0 ** ((exponent - SCALE_BINS + 1) / 2)
        return scales

    def design(self, records: Records) -> Floats:
        """Return the design vectors of records. Shapes: [B, dim]."""
        if self.layout is None:
            if records.pixels is None:
                raise Unsuitable("the records hold no images; encode them with a schema that has an image")
            return records.pixels / 255.0
        whole: Floats = self.layout.design(records).numpy()
        return np.ldexp(whole, -VALUE_BITS)

    def centred(self, design: NDArray[np.float32]) -> Floats:
        """Take the middle off every value that is there. Shapes: [B, dim]."""
        off = design.astype(np.float64) - self.middle
        for block in self.layout.blocks if self.layout and self.kind == "values" else ():
            if block.continuous and block.one_hot:
                off[:, block.value] *= design[:, block.start] > 0
        return off

    def bounded(self, design: NDArray[np.float32], scales: Floats) -> Whole:
        """Return the bounded vectors. Shapes: [B, dim]."""
        blocks = np.array_split(design, len(design) // 8192 + 1)
        return np.concatenate([clip(self._turned(block, scales), self.radius) for block in blocks])

    def _turned(self, design: NDArray[np.float32], scales: Floats) -> Floats:
        """Scale a table's vectors, or write images in the basis.

        Ink is whole and the basis dyadic, so every product and sum is exact: no vector depends on those beside it.
        """
        if self.basis is None:
            scaled: Floats = self.centred(design) / scales
            return scaled
        turned: Floats = np.rint(design.astype(np.float64) * 255) @ self.basis / 255
        return turned

    def inverse(self, x: Floats, scales: Floats) -> Floats:
        """Return the design that bounded vectors stand for, where their clip norm is 1. Shapes: [B, dim]."""
        design: Floats = (x if self.basis is None else x @ self.basis.T) * self.radius * scales + self.middle
        return design

    def stddev(self, projection: "Projection") -> Floats:
        """Return the deviation of values from what a projection gives back; 0 for pixels. Shapes: [dim]."""
        if self.basis is not None:
            return np.zeros(self.dim)
        result: Floats = np.sqrt(projection.residual) * self.radius * projection.scales
        return result

    @property
    def held_bytes(self) -> int:
        """Count the bytes of a record at the most: design and target twice, as they are joined, and bounded vectors."""
        empty = self.rows([])
        row = empty.design.itemsize * self.dim + empty.target.element_size() * math.prod(empty.target.shape[1:])
        return 2 * (row + 16) + 20 * self.dim

    def rows(self, batches: Iterable[Records]) -> VectorRows:
        """Gather all records."""
        width = len(self.partition.sizes) if self.kind == "cells" and self.partition else self.dim
        kind = {"cells": torch.int64, "ink": torch.uint8, "values": torch.float32}[self.kind]
        designs, labels = [np.zeros((0, self.dim), np.float32)], [np.zeros(0, np.int64)]
        targets = [torch.zeros(0, width, dtype=kind)]
        for records in batches:
            designs.append(self.design(records).astype(np.float32))
            labels.append(records.labels(self.schema.class_index))
            targets.append(self._target(records, designs[-1]))
        label = np.concatenate(labels)
        return VectorRows(np.concatenate(designs), label, torch.cat(targets), np.arange(len(label)))

    def _target(self, records: Records, design: NDArray[np.float32]) -> Tensor:
        if self.kind == "cells" and self.partition is not None:
            return torch.from_numpy(self.partition.cells(records))
        return torch.from_numpy(np.array(records.pixels) if self.kind == "ink" else design)


@dataclass(frozen=True)
class Projection:
    """The released directions that bounded vectors are turned to.

    Attributes:
        directions: V in steps of ``2**-DIRECTION_BITS``, [size, d]; mean: taken off first, in steps, [size].
        radius: the norm that is clipped to, where 1 is the norm of x; scales: of the design, [dim].
        spread: standard deviation along each direction where the clip norm is 1, as released, [d].
        residual: variance of each coordinate that the directions leave, where the norm of x is 1, [size].
    """

    directions: Whole
    mean: Whole
    radius: float
    scales: Floats
    spread: Floats
    residual: Floats

    @property
    def size(self) -> int:
        """Count the directions."""
        return len(self.directions.T)

    def points(self, x: Whole) -> Whole:
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
        """Return the vectors that points stand for, where the norm of x is 1. Shapes: [n, d] -> [n, dim]."""
        back = z @ np.ldexp(self.directions.astype(np.float64), -DIRECTION_BITS).T
        result: Floats = back * self.radius + np.ldexp(self.mean.astype(np.float64), -Z_BITS)
        return result


def clip(vectors: Floats, radius: float) -> Whole:
    """Clip to ``radius`` and write in steps of ``radius / 2**Z_BITS``: no norm exceeds 2**Z_BITS.

    The computed norm errs by less than a relative 2**-41; the scale leaves 2**-40, and truncation shortens.
    """
    norm = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    steps: Whole = np.trunc(vectors * (np.ldexp(1 - 2.0**-40, Z_BITS) / np.maximum(norm, radius))).astype(np.int64)
    return steps


def transform_vectors(vectors: Vectors, batches: Sensitive[Iterable[Records]]) -> Sensitive[VectorRows]:
    """Gather the designs and targets of all records. Privacy: Sensitive -> Sensitive, record by record."""
    return Sensitive(vectors.rows(batches.reveal()))


def transform_scales(rows: Sensitive[VectorRows], vectors: Vectors) -> Sensitive[Whole]:
    """Count each column's values by their distance from the middle.

    Privacy: Sensitive -> Sensitive; one record moves the result by at most ``vectors.scale_sensitivity`` in L2 norm.
    """
    off = np.abs(vectors.centred(rows.reveal().design))[:, vectors.values]
    exponents = np.floor(2 * np.log2(0.5 / np.maximum(off, 1e-9))).clip(0, SCALE_BINS - 1).astype(np.int64)
    return Sensitive(np.concatenate([np.bincount(column, minlength=SCALE_BINS) for column in exponents.T]))


def transform_bounded(rows: Sensitive[VectorRows], vectors: Vectors, scales: Floats) -> Sensitive[Points]:
    """Bound the vectors of all records. Privacy: Sensitive -> Sensitive, record by record."""
    vector_rows = rows.reveal()
    return Sensitive(Points(vectors.bounded(vector_rows.design, scales), vector_rows.label))


def transform_points(points: Sensitive[Points], projection: Projection) -> Sensitive[Points]:
    """Turn bounded vectors to released directions. Privacy: Sensitive -> Sensitive, record by record."""
    revealed = points.reveal()
    return Sensitive(Points(projection.points(revealed.z), revealed.label))


def training_tensors(rows: VectorRows, z: Whole, spread: Floats) -> tuple[Tensor, ...]:
    """Return points divided by a released spread, labels and targets. Shapes: [n, d] float32, [n], [n, ...]."""
    inputs = (np.ldexp(z.astype(np.float64), -Z_BITS) / spread).astype(np.float32)
    return torch.from_numpy(inputs), torch.from_numpy(rows.label), rows.target


def transform_training(
    rows: Sensitive[VectorRows], points: Sensitive[Points], spread: Floats
) -> Sensitive[tuple[Tensor, ...]]:
    """Return what DP-SGD reads in P3GM. Privacy: Sensitive -> Sensitive, record by record."""
    return Sensitive(training_tensors(rows.reveal(), points.reveal().z, spread))


def transform_designs(rows: Sensitive[VectorRows]) -> Sensitive[tuple[Tensor, ...]]:
    """Return what DP-SGD reads of plain VAEs: designs, labels, targets. Privacy: Sensitive -> Sensitive, by record."""
    vector_rows = rows.reveal()
    return Sensitive((torch.from_numpy(vector_rows.design), torch.from_numpy(vector_rows.label), vector_rows.target))


def transform_cluster(
    rows: Sensitive[VectorRows], vectors: Vectors, centroids: Floats, index: int
) -> Sensitive[VectorRows]:
    """Keep the records nearest to one released centroid. Privacy: Sensitive -> Sensitive, record by record."""
    vector_rows = rows.reveal()
    members = nearest(vectors.bounded(vector_rows.design, np.ones(vectors.dim)), centroids) == index
    return Sensitive(
        VectorRows(
            vector_rows.design[members],
            vector_rows.label[members],
            vector_rows.target[torch.from_numpy(members)],
            vector_rows.numbers[members],
        )
    )


def transform_numbers(rows: Sensitive[VectorRows]) -> Sensitive[Whole]:
    """Say which records of the table these are. Privacy: Sensitive -> Sensitive."""
    return Sensitive(rows.reveal().numbers)


def transform_targets(rows: Sensitive[VectorRows]) -> Sensitive[tuple[Tensor, ...]]:
    """Return what DP-SGD reads of critics: labels, targets. Privacy: Sensitive -> Sensitive, record by record."""
    vector_rows = rows.reveal()
    return Sensitive((torch.from_numpy(vector_rows.label), vector_rows.target))
