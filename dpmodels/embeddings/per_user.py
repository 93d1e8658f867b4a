"""Sums over the rows of users in which each user weighs one, whatever number of rows a user has.

    phi(user) = sum over the rows of the user   1 / max(n, 1)  phi(row)          n: how many children the user has

Privacy: adding or removing a user adds or removes all rows of that user in the flat table and no other row
    (schema/family.py). They are c = max(n, 1) rows, and each holds n. A nonzero coordinate of a row is w // c where
    that of an unweighted row is w, so a row's norm is at most ||phi(row)|| / c, and that of the c rows together at most
    the largest ||phi(row)|| (triangle inequality): the L2 sensitivity is that of one record. ``max_rows`` does not
    enter it; it is the public bound on n, so that n is one of a list of values.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from dpmodels.embeddings.cell_counts import STEP
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.zoom import ZoomCounts
from dpmodels.late import Tensor, torch
from dpmodels.schema.family import CHILDREN
from dpmodels.schema.flat import numbers_of
from dpmodels.schema.records import Records
from dpmodels.schema.schema import Schema


def _shared(schema: Schema, records: Records, sum_of: Callable[[Records, int], Tensor], dim: int) -> Tensor:
    """Add up what rows are whose users have one number of rows, for every such number. Shapes: [dim] int64."""
    number = np.maximum(numbers_of(schema, CHILDREN, records), 1)
    total = torch.zeros(dim, dtype=torch.int64)
    for each in np.unique(number).tolist():
        total += sum_of(records.take(np.flatnonzero(number == each)), each)
    return total


class UserMoments(Moments):
    """First and second moments of users' rows; ``one_way`` and ``two_way`` are the steps of a user with one row."""

    def lattice_sum(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        """Sum the features of a batch of rows, each weighed by how many its user has."""
        steps = torch.tensor([self.one_way] * self.cells + [self.two_way] * len(self.first))
        whole = steps.repeat(self.partition.classes)

        def share(rows: Records, each: int) -> Tensor:
            return self._rows.lattice_sum(rows, device) * (whole // each)

        return _shared(self.partition.codec.schema, records, share, self.dim)

    @cached_property
    def _rows(self) -> Moments:
        """The same moments with steps of 1: counts of rows."""
        return Moments(self.partition, 1, int(self.two_way > 0), self.max_rows, self.reach)


class UserZoomCounts(ZoomCounts):
    """The counts of the cells of the zoomed columns; a user with one row is ``STEP`` in a cell of each."""

    def lattice_sum(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        """Count the rows of a batch, each weighed by how many its user has."""

        def share(rows: Records, each: int) -> Tensor:
            return ZoomCounts.lattice_sum(self, rows) // STEP * (STEP // each)

        return _shared(self.zoom.partition.codec.schema, records, share, self.dim)
