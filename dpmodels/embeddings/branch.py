"""Sums over the rows of one table of a tree in which each unit weighs at most one, whatever it holds.

    phi(unit) = sum over the unit's rows r of the table    1 / w(r)  phi(r)

    w(r) = 1 in the root;  w(r) = w(parent of r) c      c: how many rows of the table that parent has

Privacy: adding or removing a unit adds or removes all of its rows in every table and no others (contract/tree.py), and
    what they are in the flat table depends on the unit's own rows alone. The weights of a parent's rows add up to that
    of the parent, if it has any, and the unit's row in the root weighs 1. So from the root down, those of a unit's rows
    in a table add up to at most 1: sum_r 1 / w(r) <= 1. A coordinate of phi(r) is a whole number times a step; the
    number does not depend on w, and the step is s // w where that of an unweighted row is s. So the unit moves the sum
    by at most sum_r ||phi(r)|| / w(r) <= max_r ||phi(r)|| (triangle inequality): the L2 sensitivity is that of one
    record. ``most`` does not enter it.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dpmodels.codec.encode import Records
from dpmodels.codec.tree import TreeRecords
from dpmodels.embeddings.base import Embedding
from dpmodels.late import Tensor, torch
from dpmodels.mechanisms.lattice import integer_radius


class Weighed(Protocol):
    """An embedding of the rows of a flat table, whose steps can be divided."""

    dim: int
    l2_sensitivity: int

    def weighed_sum(self, records: Records, device: "str | torch.device", share: int) -> Tensor:
        """Sum the features of a batch with every step divided by ``share``, rounded down."""

    def coordinates(self) -> dict[str, Any]:
        """Name every coordinate of the vector."""


@dataclass(frozen=True)
class BranchSum(Embedding):
    """Another embedding, summed over the flat table of one table of a tree.

    Attributes:
        rows: the embedding of one row, whose steps are those of a row that weighs 1.
    """

    table: str
    rows: Weighed

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Length of the released vector."""
        return self.rows.dim

    @property
    def l2_sensitivity(self) -> int:  # type: ignore[override]
        """Bound on what one unit adds, that of one row."""
        return self.rows.l2_sensitivity

    def lattice_sum(self, records: TreeRecords, device: "str | torch.device" = "cpu") -> Tensor:
        flat, shares = records.flat(self.table), records.shares[self.table]
        total = torch.zeros(self.dim, dtype=torch.int64)
        for share in np.unique(shares).tolist():
            total += self.rows.weighed_sum(flat.take(np.flatnonzero(shares == share)), device, share)
        return total

    def coordinates(self) -> dict[str, Any]:
        return self.rows.coordinates()


@dataclass(frozen=True)
class BranchSums(Embedding):
    """Sums over several tables of a tree, one after another in one vector.

    Privacy: a unit moves each part by at most its sensitivity, and parts share no coordinate: by the root of the sum of
    squares together.
    """

    parts: tuple[BranchSum, ...]

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Length of the released vector."""
        return sum(part.dim for part in self.parts)

    @property
    def l2_sensitivity(self) -> int:  # type: ignore[override]
        """Bound on what one unit adds."""
        return integer_radius(sum(part.l2_sensitivity**2 for part in self.parts))

    def lattice_sum(self, records: TreeRecords, device: "str | torch.device" = "cpu") -> Tensor:
        return torch.cat([part.lattice_sum(records, device) for part in self.parts])

    def coordinates(self) -> dict[str, Any]:
        """Name every coordinate of the vector: its branch, and as that part does."""
        named = [{"branch": np.full(part.dim, at), **part.coordinates()} for at, part in enumerate(self.parts)]
        return {key: np.concatenate([names[key] for names in named]) for key in named[0]}
