"""Zooming: cells of interval columns that follow where the mass is, by counts of coarser cells that were released.

A look counts the cells of every zoomed column. The cells that hold much, by those released counts, are cut into equal
parts, as many as their share of the column asks for; the next look counts what came of them. So cells end up holding
about the same mass, however wide the bounds are, and a value that many records have ends up in a cell of its own.

Privacy: cells are functions of public parameters and of what was released before, and a look counts each record in one
cell of every zoomed column (``CellCounts`` has the proof of its norm); cutting is post-processing.
"""

import math
from dataclasses import dataclass

import numpy as np

from dpmodels.arrays import Whole
from dpmodels.codec.encode import Records
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.embeddings.cell_counts import CellCounts
from dpmodels.embeddings.partition import Partition


@dataclass(frozen=True)
class Zoom:
    """Columns that are zoomed into, as they are cut so far.

    Attributes:
        partition: fine cells of every column.
        zoomed: places of the columns that have many values, in ``partition.columns``; public.
    """

    partition: Partition
    zoomed: tuple[int, ...]

    @classmethod
    def coarse(cls, fine: Partition, cells: int, values: int) -> "Zoom":
        """Begin with ``cells`` equal public cells of each column that has more than ``values`` values."""
        zoomed = [index for index, column in enumerate(fine.columns) if _values(column) > values]
        equal = Partition.fine(fine.codec.schema, cells, fine.class_column is not None)
        return cls(fine.cut({index: equal.edges(index) for index in zoomed}), tuple(zoomed))

    def cells(self, records: Records) -> Whole:
        """Number each record's cells of the zoomed columns. Shapes: [B, zoomed columns]."""
        codes = self.partition.codes(records)
        return np.stack([self.partition.runs[index].cells(codes[index]) for index in self.zoomed], axis=1)

    def cut(self, counts: Whole, least: int, parts: int) -> "Zoom":
        """Cut the cells that hold much into equal parts, by released counts (post-processing).

        Args:
            counts: in lattice steps; may be negative.
            least: what each part should hold, in lattice steps.
            parts: upper bound on the parts of a cell that holds the whole column; on those of others by their share.
        """
        edges, ends = {}, np.cumsum([self.partition.sizes[index] for index in self.zoomed])
        for index, column_counts in zip(self.zoomed, np.split(counts, ends[:-1]), strict=True):
            column_edges = self.partition.edges(index)
            edges[index] = _cut(column_edges, column_counts[: len(column_edges) - 1], least, parts)
        return Zoom(self.partition.cut(edges), self.zoomed)


class ZoomCounts(CellCounts):
    """The counts of the cells of the zoomed columns, over all classes."""

    def __init__(self, zoom: Zoom, max_rows: int) -> None:
        super().__init__([zoom.partition.sizes[index] for index in zoom.zoomed], max_rows, zoom.cells)
        self.zoom = zoom


def _values(column: Modelled) -> float:
    """Count the values that an interval column can have; a column without an interval is not zoomed into."""
    if not isinstance(column, Continuous):
        return 0
    return math.inf if column.interval.points is None else column.interval.points


def _cut(edges: Whole, counts: Whole, least: int, parts: int) -> Whole:
    """Cut cells at whole places only; the arithmetic is that of integers, the same on every machine."""
    positive = np.maximum(counts, 0)
    most = parts * positive // max(int(positive.sum()), 1)
    number = np.clip(np.minimum(positive // max(least, 1), most), 1, np.diff(edges))
    starts = [a + (b - a) * np.arange(n) // n for a, b, n in zip(edges[:-1], edges[1:], number, strict=True)]
    return np.concatenate([*starts, edges[-1:]])
