"""Values of identifiers that are in more than one row of a raw table, where its schema says that none is."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from secrets import token_bytes

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.codec.convert import plain
from dpmodels.codec.ids import SEVERAL_KINDS, key_values
from dpmodels.errors import DataError

DIGEST = 16
"""Bytes that are kept of a value. That two of 10 million values have the same is less likely than one in 10**24."""
PARTS = 64
"""Parts in which hashes are counted, so that no second copy of all of them is made."""

Hashes = NDArray[np.uint64]
"""Shapes: [rows, 2]."""


class Repeats:
    """Hashes of the values of some columns in all batches so far; null is no value, as in SQL.

    Memory: 16 bytes a value, until they are counted.

    Privacy: as sensitive as the table, for whoever has the ``secret`` too, which each run draws anew.
    """

    def __init__(self, names: Iterable[str], secret: bytes = b"") -> None:
        self.secret = secret or token_bytes(DIGEST)
        self._hashes: dict[str, list[Hashes]] = {name: [] for name in names}
        self._kinds: dict[str, set[str]] = {name: set() for name in self._hashes}

    def see(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Keep hashes of the values of a batch, in the one form in which users are told apart.

        Raises:
            DataError: a value is neither text nor a whole number nor a UUID, or has another spelling that looks alike.
        """
        for name in self._hashes.keys() & {*batch.schema.names}:
            values = pc.drop_null(key_values(name, plain(batch.column(name)), kinds := set[str](), may_lack=True))
            self._kinds[name] |= kinds if len(values) else set()
            texts = values.cast(pa.large_string()).to_pylist()  # whole numbers of all widths are the same
            hashes = (hashlib.blake2b(one.encode(), key=self.secret, digest_size=DIGEST).digest() for one in texts)
            self._hashes[name].append(np.frombuffer(b"".join(hashes), np.uint64).reshape(-1, 2))

    def add(self, other: "Repeats") -> None:
        """Add the values of other rows of the table, which were hashed under the same secret."""
        if self._hashes and other.secret != self.secret:
            raise ValueError("hashes under several secrets cannot be compared")
        for name, hashes in other._hashes.items():
            self._hashes[name] += hashes
            self._kinds[name] |= other._kinds[name]

    def settle(self) -> Mapping[str, int]:
        """Count by column the rows whose value an earlier row has, and forget the hashes.

        Raises:
            DataError: files type a column differently.
        """
        counts = dict[str, int]()
        for name, hashes in self._hashes.items():
            if len(self._kinds[name]) > 1:
                raise DataError(name, SEVERAL_KINDS)
            counts[name] = _repeated(hashes)
            hashes.clear()
        return counts


def _repeated(batches: Sequence[Hashes]) -> int:
    """Count the rows that are equal to an earlier row of any batch, part by part of all hashes that there may be."""
    total = 0
    for part in range(PARTS if batches else 0):
        rows = np.concatenate([batch[batch.view(np.uint8)[:, 0] % PARTS == part] for batch in batches])
        first = np.sort(rows[:, 0])
        if (first[1:] == first[:-1]).any():
            rows = rows[np.lexsort(rows.T)]
            total += int((rows[1:] == rows[:-1]).all(axis=1).sum())
    return total
