"""A Gaussian rounded to whole numbers, exactly: by inversion of 128 bits a coordinate, and more where they decide.

    p = a uniform of (0, 1/2), x = Q^-1(p) with Q(x) = P(N(0, 1) > x), k = sign round(stddev x)

The bits say in which cell of width 2**-128 the real number p lies. Float64 finds k wherever stddev x is not close to a
boundary between two whole numbers. The rest, about one coordinate in a million, is settled by Q itself at high
precision: if the cell lies between Q at both boundaries of k, then k is right for every p in it; if a boundary cuts the
cell, p gets 64 bits more. So k has the law of the rounded real Gaussian, tails included, if the bits are uniform.
"""

import numpy as np
from numpy.typing import NDArray

from dpmodels.mechanisms.dp_sgd.randomness import KeyStream

_CELL_BITS = 128
_CLOSE = 2.0**-42
"""The float64 x is off by less: p by a relative 2**-51, so x by 2**-50; ndtri by a relative 2**-50 of x < 14; the
product with stddev by 2**-53. All is below 2**-45, and a test holds ndtri to it."""


def rounded_gaussian(stream: KeyStream, count: int, stddev: float) -> NDArray[np.int64]:
    """Draw ``round(stddev N(0, 1))`` for each coordinate.

    Privacy: added to whole numbers this is the continuous Gaussian mechanism, rounded.
    """
    from scipy.special import ndtri

    words = stream.long_words(2 * count).reshape(count, 2)
    high, low = words[:, 0] & np.uint64(2**63 - 1), words[:, 1]
    tail = high.astype(np.float64) * 2.0**-64 + (low.astype(np.float64) + 0.5) * 2.0**-_CELL_BITS
    size = stddev * -ndtri(tail)
    whole = np.rint(size).astype(np.int64)
    close = np.abs(size - np.floor(size) - 0.5) < stddev * _CLOSE
    for i in np.flatnonzero(close | (high == 0)):  # below 2**-64 the cell is wide beside p
        whole[i] = _settled(stream, (int(high[i]) << 64) + int(low[i]), int(whole[i]), stddev)
    signed: NDArray[np.int64] = np.where(words[:, 0] >> np.uint64(63), -whole, whole)
    return signed


def _settled(stream: KeyStream, cell: int, whole: int, stddev: float) -> int:
    """Return k for the p in ``cell``, starting from a guess; all beside ``whole`` is in units of the cell's width."""
    from mpmath import mp

    bits = _CELL_BITS
    while True:
        with mp.workprec(bits + 64):
            # erfc is right to the last few of its bits, so 2**-40 of a cell is far more than it is off by
            error, sides = mp.ldexp(1, -40), [(whole + side) / mp.mpf(stddev) for side in (-mp.mpf(0.5), mp.mpf(0.5))]
            above, below = (mp.ldexp(mp.erfc(x / mp.sqrt(2)), bits - 1) for x in sides)
            if whole > 0 and cell >= above + error:
                whole -= 1
            elif cell + 1 <= below - error:
                whole += 1
            elif cell >= below + error and (whole == 0 or cell + 1 <= above - error):
                return whole
            else:
                cell, bits = (cell << 64) + int(stream.long_words(1)[0]), bits + 64
