"""Sums over the rows of users in which each user weighs one, whatever number of rows a user has.

    phi(user) = sum over the rows of the user   1 / max(n, 1)  phi(row)          n: how many children the user has

Privacy: adding or removing a user adds or removes all rows of that user in the flat table and no other row
    (contract/family.py). They are c = max(n, 1) rows, and each holds n. A coordinate of a row is a whole number times a
    step; the number does not depend on c, and the step is w // c where that of an unweighted row is w. So a row's norm
    is at most ||phi(row)|| / c, and that of the c rows together at most the largest ||phi(row)|| (triangle inequality):
    the L2 sensitivity is that of one record. ``max_rows`` does not
    enter it; it is the public bound on n, so that n is one of a list of values.
"""

from collections.abc import Callable

import numpy as np

from dpmodels.codec.flat import numbers_of
from dpmodels.codec.records import Records
from dpmodels.contract.family import CHILDREN
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.residuals import Residuals
from dpmodels.embeddings.zoom import ZoomCounts
from dpmodels.late import Tensor, torch


def _shared(schema: Schema, records: Records, sum_of: Callable[[Records, int], Tensor], dim: int) -> Tensor:
    """Add up what rows are whose users have one number of rows, for every such number. Shapes: [dim] int64."""
    number = np.maximum(numbers_of(schema, CHILDREN, records), 1)
    total = torch.zeros(dim, dtype=torch.int64)
    for each in np.unique(number).tolist():
        total += sum_of(records.take(np.flatnonzero(number == each)), each)
    return total


class UserMoments(Moments):
    """Moments of users' rows; its steps are those of a user with one row."""

    def lattice_sum(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        def share(rows: Records, each: int) -> Tensor:
            return self.weighed_sum(rows, device, each)

        return _shared(self.partition.codec.schema, records, share, self.dim)


class UserResiduals(UserMoments, Residuals):
    """Residuals of users' rows; its steps are those of a user with one row."""


class UserZoomCounts(ZoomCounts):
    """The counts of the cells of the zoomed columns; a user with one row is ``STEP`` in a cell of each."""

    def lattice_sum(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        def share(rows: Records, each: int) -> Tensor:
            return self.weighed_sum(rows, device, each)

        return _shared(self.zoom.partition.codec.schema, records, share, self.dim)
