"""Records to compare, and users of one."""

import numpy as np

from dpmodels.audit.made import shop
from dpmodels.codec.records import Records


def same(left: Records, right: Records) -> bool:
    return np.array_equal(left.states, right.states) and np.array_equal(left.values, right.values)


SCHEMA = shop.make_schema()


def user_of(number: int, alike: bool) -> Records:
    """Return the rows of one user with so many children, at the ends of the schema or all in the same cells."""
    flat = SCHEMA.flat
    rows = max(number, 1)
    states, values = np.zeros((rows, len(flat.modelled)), dtype=np.int32), np.zeros((rows, len(flat.modelled)))
    names = list(flat.modelled)
    states[:, names.index("children")] = number
    states[:, names.index("position")] = np.arange(1, rows + 1) if number else 0
    if not alike:
        values[:, names.index("price")] = np.arange(rows) % 2
        states[:, names.index("product")] = np.arange(rows) % 4
    return Records(states, values)
