"""A mixture of the flat table of users and their rows, drawn as users with all their rows (contract/family.py).

    user      its columns and n, the number of its children: from the mixture, in which each user weighs one
    child j   p(child | user's columns, n, j), exactly: component k weighs
              p_k(user's columns) p_k(n) p_k(j) p_k(there is a child), and the child's columns are drawn from it

Given the user and the position, children are independent of each other. A probability below ``LEAST`` counts as
``LEAST``: where no component has mass for all that is given, those decide that lack it for the fewest columns. Values
of the order column are sorted within a user.

Privacy: post-processing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpmodels.arrays import Indices, Whole
from dpmodels.codec.encode import Records
from dpmodels.codec.flat import numbers_of
from dpmodels.contract.columns import Continuous
from dpmodels.contract.continuous import decode_numbers
from dpmodels.contract.family import CHILDREN, POSITION, Users
from dpmodels.generators.mixture import Floats, MixtureModel
from dpmodels.generators.randomness import cumulate, draw_grouped

LEAST = 1e-30
BLOCK = 2**22
"""Weights of components that are held at once."""


@dataclass
class UserModel(MixtureModel):
    """Draws users with their rows; ``rows`` and the released number of records count users."""

    kind: ClassVar[str] = "users"
    batch_rows: ClassVar[int] = 16_384

    @property
    def merged_cells(self) -> None:
        """None: rows of a user share values, which cannot change places."""

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        """Draw so many users; a user's rows stand together, by position."""
        flat = self.partition.codec.schema
        users = super().draw(rows, rng, device)
        number = numbers_of(flat, CHILDREN, users)
        user = np.repeat(np.arange(rows), np.maximum(number, 1))
        begin = np.cumsum(np.maximum(number, 1)) - np.maximum(number, 1)
        position = np.where(number[user] > 0, np.arange(len(user)) - begin[user] + 1, 0)
        cells = self._child_cells(self.partition.cells(users), user, position, rng)
        records = self.partition.codec.from_cells(cells, rng)
        user_columns = [index for index, name in enumerate(flat.modelled) if name in (*self._users.columns, CHILDREN)]
        records.states[:, user_columns] = users.states[user][:, user_columns]
        records.values[:, user_columns] = users.values[user][:, user_columns]
        if isinstance(order := flat.modelled.get(name := self._users.order or ""), Continuous):
            _sort(records, list(flat.modelled).index(name), order, user)
        return records

    @property
    def _users(self) -> Users:
        return self.schema.users or Users()

    @cached_property
    def _children(self) -> list[int]:
        """Places of the children's columns."""
        others = (*self._users.columns, CHILDREN, POSITION)
        return [column for column, name in enumerate(self.partition.names) if name not in others]

    def _child_cells(self, user_cells: Whole, user: Whole, position: Whole, rng: np.random.Generator) -> Indices:
        """Draw the fine cells of all rows' child columns and position; others are 0. Shapes: [rows, F] int32."""
        sizes, at = [len(merge) for merge in self.partition.merge], self.partition.names.index(POSITION)
        cells = np.zeros((len(user), len(sizes)), dtype=np.int32)
        cells[:, at] = position - self._users.fewest
        for column in self._children:
            cells[:, column] = sizes[column] - 1  # null, where there is no child
        child = np.flatnonzero(position > 0)
        component = np.empty(len(child), dtype=np.int64)
        for block, weights in self._weights(user_cells, user[child], cells[child, at], at):
            running = cumulate(weights)
            component[block] = (running < rng.random(len(running))[:, None]).sum(axis=1)
        for column, fine in zip(self._children, self._fine, strict=True):
            cells[child, column] = draw_grouped(cumulate(fine), component, rng)
        return cells

    def _weights(self, user_cells: Whole, user: Whole, position: Whole, at: int) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of children with their components' weights. Shapes: [block, K]."""
        logs = np.log(np.maximum(self.probabilities[0].numpy().astype(np.float64), LEAST))
        offsets, present = self.partition.offsets, np.zeros(len(logs))
        for fine in self._fine:
            present += np.log(np.maximum(fine.sum(axis=1), LEAST))
        conditioned = [column for column in range(len(self.partition.merge)) if column not in (*self._children, at)]
        size = max(1, BLOCK // len(logs))
        for start in range(0, len(user), size):
            block = slice(start, start + size)
            weights = present + logs[:, offsets[at] + self.partition.merge[at][position[block]]].T
            for column in conditioned:
                weights += logs[:, offsets[column] + user_cells[user[block], column]].T
            yield block, np.exp(weights - weights.max(axis=1, keepdims=True))

    @cached_property
    def _fine(self) -> list[Floats]:
        """For each column of the children: what each component gives to its fine cells, without null if none may be.

        Shapes: [K, fine cells].
        """
        shares, offsets = [], self.partition.offsets
        for column in self._children:
            coarse = self.probabilities[0].numpy()[:, offsets[column] : offsets[column + 1]]
            fine = coarse[:, self.partition.merge[column]] * self.detail[column][0]
            if not self.schema.modelled[self.partition.names[column]].nullable and self._users.fewest == 0:
                fine[:, -1] = 0
            shares.append(fine)
        return shares


def _sort(records: Records, index: int, column: Continuous, user: Whole) -> None:
    """Sort one column within each user, null last."""
    states, values = records.states[:, index].copy(), records.values[:, index].copy()
    order = np.lexsort((decode_numbers(column, states, values), user))
    records.states[:, index], records.values[:, index] = states[order], values[order]
