"""A keyed hash of a tree of tables, the same in whatever order and files its rows come."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Whole
from dpmodels.codec.fingerprint import LANES, Lanes, Sum, mixed, multipliers
from dpmodels.codec.tree import TreeRecords
from dpmodels.contract.tree import Tree

LABEL_BYTES = 8


class TreeFingerprint(Sum):
    """Add up a hash of 128 bits for every unit with all its rows in all tables, and hash the sum.

    A row's hash is one of its codes, of the keys of the public rows that it names, and of the sums of the hashes of the
    rows below it, table by table (a hash of a Merkle tree, of sums). So two trees have one hash if their units are the
    same but for the order of rows: columns, tables and public rows count by their names and keys, in any order too.

    Privacy: as sensitive as the rows, as a ``Fingerprint`` is.
    """

    def __init__(self, tree: Tree, secret: bytes) -> None:
        super().__init__(secret)
        self._tree, self._order = tree, sorted(tree.tables)

    def add(self, records: TreeRecords) -> None:
        """Count more units in; order does not matter."""
        self._add(self._hashes(records, self._tree.root))

    def _hashes(self, records: TreeRecords, table: str) -> Lanes:
        """Return the hash of each row of a table, with all rows below it. Shapes: [LANES, rows]."""
        names = list(self._tree.tables[table].modelled)
        lanes = np.empty((LANES, records.rows(table)), dtype=np.uint64)
        lanes[:] = self._numbers(table, 0)[:, None]
        for index, name in enumerate(sorted(names), 1):
            codes = records.codes[table][names.index(name)]
            words = self._labels[table, name][codes] if (table, name) in self._labels else codes.astype(np.uint64)
            lanes += self._numbers(table, index)[:, None] * words
        for index, child in enumerate(sorted(self._tree.children(table)), len(names) + 1):
            below = _sums(self._hashes(records, child), records.counts(child))
            lanes += self._numbers(table, index)[:, None] * below
        return mixed(lanes)

    def _numbers(self, table: str, index: int) -> Lanes:
        place = (self._order.index(table) + 1).to_bytes(8, "little")
        return multipliers(place + index.to_bytes(8, "little"), self._secret)

    @cached_property
    def _labels(self) -> dict[tuple[str, str], NDArray[np.uint64]]:
        """Hash by reference the key of each public row; none comes after them. Shapes: [public rows + 1]."""
        labels = dict[tuple[str, str], NDArray[np.uint64]]()
        for name, branch in self._tree.tables.items():
            for one in branch.refers:
                texts = branch.public_of(one).labels
                words = [self._keyed(text.encode(errors="surrogatepass"), LABEL_BYTES) for text in texts]
                whole = [int.from_bytes(word, "little") for word in words]
                labels[name, one.name] = np.array([*whole, 0], dtype=np.uint64)
        return labels


def _sums(lanes: Lanes, counts: Whole) -> Lanes:
    """Add up the hashes of the rows of each parent, which follow each other. Shapes: [LANES, rows], [parents]."""
    ends = np.cumsum(counts)
    totals = np.zeros((LANES, lanes.shape[1] + 1), dtype=np.uint64)
    np.cumsum(lanes, axis=1, dtype=np.uint64, out=totals[:, 1:])
    sums: Lanes = totals[:, ends] - totals[:, ends - counts]
    return sums
