"""Compiled loops over rows; they release the interpreter's lock, so that threads share the cores of one machine.

The same whole numbers as the array code beside them, which small batches use: compiling takes a second, once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.late import compiled

COMPILED_ROWS = 16_384
"""Rows from which on a batch is worth a compiled loop."""
BLOCK = 4096
"""Rows gone through at once: their cells and addresses stay in the cache while every pair of columns passes by."""
BUCKETS = 16
"""Codes are looked up by their leading bits, in a table of at most 2**16 entries."""

Array = NDArray[Any]


class CellFinder:
    """The cells of a column's codes, by table and, where the codes are many, by bisection from there.

    Shapes: ``first`` and ``cell`` [runs]; every code is below ``codes``.
    """

    def __init__(self, first: Array, cell: Array, codes: int) -> None:
        last = codes - 1
        self.first, self.cell = first, cell.astype(np.uint32)
        self.shift = max(0, last.bit_length() - BUCKETS)
        edges = np.arange((last >> self.shift) + 2, dtype=np.int64) << self.shift
        self.bucket = np.searchsorted(first, edges, side="right").astype(np.int64) - 1

    def find(self, codes: Array, out: Array) -> None:
        """Write the cell of each code."""
        if self.shift:
            compiled(find_cells)(codes, self.shift, self.bucket, self.first, self.cell, out)
        else:
            compiled(look_up)(codes, self.cell[self.bucket], out)


def look_up(codes: Array, table: Array, out: Array) -> None:
    """Write the table's entry of each code."""
    for row in range(len(codes)):
        out[row] = table[codes[row]]


def find_cells(codes: Array, shift: int, bucket: Array, first: Array, cell: Array, out: Array) -> None:
    """Look a code's bucket up and bisect among the runs that begin in it."""
    for row in range(len(codes)):
        code = np.int64(codes[row])
        low, high = bucket[code >> shift], bucket[(code >> shift) + 1]
        while low < high:
            middle = (low + high + 1) >> 1
            if first[middle] <= code:
                low = middle
            else:
                high = middle - 1
        out[row] = cell[low]


def count_moments(
    cells: Array,
    label: Array,
    offsets: Array,
    before: Array,
    place: Array,
    width: int,
    out: Array,
) -> None:
    """Count each record's cells, and each pair of cells of paired columns, in its class.

    Shapes: cells [F, B]; label [B]; offsets [F + 1]; before [D], pairs before each cell's; place [F, F], where among
    the pairs of a cell those with another column begin, -1 for none; out [classes * width].
    """
    columns, rows = cells.shape
    total = offsets[columns]
    left, index = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)
    for start in range(0, rows, BLOCK):
        block = min(BLOCK, rows - start)
        classes = label[start : start + block]
        for i in range(columns):
            left_cells = cells[i, start : start + block]
            for row in range(block):
                cell, base = offsets[i] + left_cells[row], classes[row] * width
                out[base + cell] += 1
                left[row] = base + total + before[cell]
            for j in range(i + 1, columns):
                if place[i, j] < 0:
                    continue
                # addresses first, then additions: the first loop is done many rows at a time
                other, offset = cells[j, start : start + block], np.uint32(place[i, j])
                for row in range(block):
                    index[row] = left[row] + offset + other[row]
                for row in range(block):
                    out[index[row]] += 1


def add_turns(
    ones: Array,
    values: Array,
    steps: Array,
    label: Array,
    turns: Array,
    half: Any,
    shift: Any,
    table: Array,
    out: Array,
) -> None:
    """Add every record's cosines and sines, in the block of its class.

    A phase is a sum of rows of ``turns``, in 2**-32 of a turn: unsigned integers wrap where the circle closes.
    Its leading 16 bits, after adding ``half`` to round, are its place in the table.

    Shapes: ones [B, S] and values [V], rows of turns [d, k] uint32; steps [B, V] uint32; label [B]; table [2**16, 2]
    int32; out [classes, k, 2] int64.
    """
    count = turns.shape[1]
    phase = np.empty(count, np.uint32)
    for row in range(len(label)):
        phase[:] = half
        for one in range(ones.shape[1]):
            turn = turns[ones[row, one]]
            for j in range(count):
                phase[j] += turn[j]
        for value in range(len(values)):
            step, turn = steps[row, value], turns[values[value]]
            if step > 0:
                for j in range(count):
                    phase[j] += step * turn[j]
        total = out[label[row]]
        for j in range(count):
            index = phase[j] >> shift
            total[j, 0] += table[index, 0]
            total[j, 1] += table[index, 1]
