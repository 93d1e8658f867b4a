"""Encoded rows."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmodels.codec.codes import Codes, from_codes
from dpmodels.codec.pixels import Pixels
from dpmodels.contract.base import Modelled

Decoded = tuple[NDArray[np.int32], NDArray[np.float64]]


class Records:
    """Encoded rows: each column's state, its unit value where the state is "has a value", and the image, if any.

    Rows that were read from a table are held as their codes (codec/codes.py), a tenth of the size, until somebody asks
    for states or values, which are then what the rows are, and may be written to.

    Shapes:
        states [B, F] int32; values [B, F] float64 in [0, 1], 0 where the state says it all; pixels [B, numbers of an
        image] uint8; codes: F arrays of [B], or None.
    """

    __slots__ = ("_columns", "_decoded", "codes", "pixels")

    def __init__(self, states: NDArray[np.int32], values: NDArray[np.float64], pixels: Pixels | None = None) -> None:
        self._decoded: Decoded | None = (states, values)
        self.pixels = pixels
        self.codes: tuple[Codes, ...] | None = None
        self._columns: tuple[Modelled, ...] = ()

    @classmethod
    def coded(cls, columns: Sequence[Modelled], codes: Sequence[Codes], pixels: Pixels | None = None) -> Self:
        """Hold rows as the codes of their columns, of which there is at least one."""
        records = cls.__new__(cls)
        records._decoded, records.pixels = None, pixels
        records.codes, records._columns = tuple(codes), tuple(columns)
        return records

    @property
    def states(self) -> NDArray[np.int32]:
        """Return each column's state."""
        return self._decode()[0]

    @property
    def values(self) -> NDArray[np.float64]:
        """Return each column's unit value."""
        return self._decode()[1]

    def labels(self, column: int | None) -> NDArray[np.int64]:
        """Return the states of a column of classes, all zero without one. Shapes: [B]."""
        if column is None:
            return np.zeros(len(self), dtype=np.int64)
        # the code of a class is its state, so there is nothing to decode
        return (self.states[:, column] if self.codes is None else self.codes[column]).astype(np.int64)

    def __len__(self) -> int:
        return len(self.codes[0]) if self.codes is not None else len(self.states)

    def take(self, index: Any) -> "Records":
        """Select rows by anything numpy indexes rows with: positions, a mask, a slice."""
        pixels = None if self.pixels is None else self.pixels[index]
        if self.codes is not None:
            return Records.coded(self._columns, [codes[index] for codes in self.codes], pixels)
        return Records(self.states[index], self.values[index], pixels)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> "Records":
        """Join at least one part, in order."""
        images = [p.pixels for p in parts if p.pixels is not None]
        pixels = np.concatenate(images) if images else None
        coded = [p.codes for p in parts if p.codes is not None]
        if len(coded) == len(parts):
            return cls.coded(parts[0]._columns, [np.concatenate(column) for column in zip(*coded, strict=True)], pixels)
        return Records(np.concatenate([p.states for p in parts]), np.concatenate([p.values for p in parts]), pixels)

    def _decode(self) -> Decoded:
        if self._decoded is None:
            states = np.empty((len(self), len(self._columns)), dtype=np.int32)
            values = np.empty(states.shape)
            for index, (column, codes) in enumerate(zip(self._columns, self.codes or (), strict=True)):
                states[:, index], values[:, index] = from_codes(column, codes)
            self._decoded, self.codes = (states, values), None
        return self._decoded
