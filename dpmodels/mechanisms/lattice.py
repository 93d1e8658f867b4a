"""The integer lattice that every bounded feature is truncated onto before it is summed.

A real feature is truncated *toward zero* onto multiples of ``2**-GRAIN_BITS``, so no coordinate ever grows and the norm
bound of the real vector is a norm bound of the integer one. Integer sums are exact and associative: the total is the
same bits however the rows are split, shuffled or distributed.
"""

import math

import numpy as np
from numpy.typing import NDArray

GRAIN_BITS = 24
"""One unit of a feature is ``2**24`` lattice steps; an int64 then holds the sum of 2**39 features of norm 1."""


def truncate(features: NDArray[np.float64]) -> NDArray[np.int64]:
    """Truncate real features toward zero onto the lattice.

    Privacy: for every coordinate |q| <= |x| * 2**GRAIN_BITS, hence ||q||_2 <= ||x||_2 * 2**GRAIN_BITS.
    """
    return np.trunc(np.ldexp(features, GRAIN_BITS)).astype(np.int64)


def to_real(lattice: NDArray[np.int64]) -> NDArray[np.float64]:
    """Convert lattice steps back to feature units (post-processing)."""
    return np.ldexp(lattice.astype(np.float64), -GRAIN_BITS)


def integer_radius(squared_norm: int) -> int:
    """Return the least integer ``r`` with ``r * r >= squared_norm``: a norm bound that never rounds down."""
    root = math.isqrt(squared_norm)
    return root if root * root == squared_norm else root + 1
