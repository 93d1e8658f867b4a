"""The exponential mechanism for many score vectors, such as one for each document: exact, with system randomness.

From a vector of whole scores it draws candidate i with probability proportional to exp(score_i / scale), as
``exponential.gumbel_maximum`` does; what a draw costs is proved in mechanisms/exponential.py. That one asks for a noise
of each candidate; this one asks for one random number, for the candidates of one score are alike.

Why it is exact. Let d_i be how far score_i lies below the largest score, w_i = 2**BITS exp(-d_i / scale), and f_i the
whole part of w_i. A round draws one of sum (f_i + 1) numbers, all alike, of which candidate i has f_i + 1. One of its
first f_i accepts the candidate; its last one accepts it with the probability w_i - f_i, which is settled bit by bit: as
many bits of the fraction are computed as random bits are drawn, until they differ. Otherwise there is another round. So
a round accepts candidate i with a probability of exactly w_i / sum (f_j + 1), and what is accepted in the end is
candidate i with a probability of exactly w_i / sum w_j. Nothing is rounded on the way: exp(-d / scale) is enclosed
between two decimals (``_floor``), and d / scale is a ratio of whole numbers.

Source: the settling of a uniform number bit by bit is von Neumann's (1951); Canonne, Kamath and Steinke (2020) draw
Bernoulli(exp(-x)) exactly in another way.
"""

import math
import secrets
from bisect import bisect_right
from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Whole
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.privacy import Released, Sensitive

IntegerMatrix = NDArray[np.integer[Any]]
Chooser = Callable[[IntegerMatrix, float], Whole]
"""Draws an index for each row with probability proportional to exp(score / scale); only tests inject another one."""

BITS = 128
"""Binary digits of a weight that are drawn at once; the rest is settled with a probability of 5000 in 2**128."""
_WORD = 64
_RANGE = 2**62
_DENSE = 2**16


def exact_choices(scores: IntegerMatrix, scale: float) -> Whole:
    """Draw an index for each row; cannot be seeded."""
    return np.array([_choose(row.astype(np.int64), scale) for row in scores], dtype=np.int64)


_chooser: Chooser = exact_choices


def select_each(scores: Sensitive[IntegerMatrix], *, scale: float) -> Released[Whole]:
    """Release, for each row, the index of a high score.

    Privacy: the rows are of different parts of the data, and the scores of one part differ between neighboring data
        sets by at most the sensitivity from which ``scale`` was computed (the caller's proof). Charged by the caller's
        ledger entry, once for all parts, as the pure epsilon of ``exponential.pure_scale``.

    Shapes: scores [parts, candidates]; the indices are [parts].

    Raises:
        InvalidArgument: the scale is not positive and finite.
        Unsuitable: there are no candidates, or scores could overflow.
    """
    if not (math.isfinite(scale) and scale > 0):
        raise InvalidArgument("scale", scale, "be positive and finite")
    values = scores.reveal()
    if not values.shape[1]:
        raise Unsuitable("there is nothing to choose from; give the score of at least one candidate")
    if values.size and max(abs(int(values.max())), abs(int(values.min()))) >= _RANGE:
        raise Unsuitable("the scores reach 2**62 in magnitude, where they could overflow")
    return Released(_chooser(values, scale))


def _choose(scores: Whole, scale: float) -> int:
    below = scores.max() - scores
    kinds, counts = _tally(below)
    weights = [_floor(kind, scale, BITS) + 1 for kind in kinds]
    ends = [0, *accumulate(map(mul, counts, weights))]
    while True:
        number = secrets.randbelow(ends[-1])
        group = bisect_right(ends, number) - 1
        index, part = divmod(number - ends[group], weights[group])
        if part < weights[group] - 1 or _settled(kinds[group], scale):
            return int(np.flatnonzero(below == kinds[group])[index])


def _tally(below: Whole) -> tuple[list[int], list[int]]:
    """Return the distances that occur, and how often."""
    if below.max() < _DENSE:
        counts = np.bincount(below)
        kinds = np.flatnonzero(counts)
        return kinds.tolist(), counts[kinds].tolist()
    kinds, counts = np.unique(below, return_counts=True)
    return kinds.tolist(), counts.tolist()


def _settled(below: int, scale: float) -> bool:
    """Return True with the probability by which a weight exceeds its whole part."""
    bits = BITS
    while True:
        digits = _floor(below, scale, bits + _WORD) - (_floor(below, scale, bits) << _WORD)
        word = secrets.randbits(_WORD)
        if word != digits:
            return word < digits
        bits += _WORD


@lru_cache(maxsize=2**17)
def _floor(below: int, scale: float, bits: int) -> int:
    """Return the whole part of 2**bits exp(-below / scale).

    ``Decimal.exp`` rounds correctly, so the true value lies between the neighbors of what it returns. The precision
    grows until both ends have one whole part; unless the exponent is 0, exp of a ratio is no ratio, so they will.
    """
    if not below:
        return 1 << bits
    ratio, digits = Fraction(-below) / Fraction(scale), bits // 3 + 20
    while True:
        down, up = (Context(digits, mode, MIN_EMIN, MAX_EMAX) for mode in (ROUND_FLOOR, ROUND_CEILING))
        ends = []
        for context in (down, up):
            power = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)).exp(context)
            power = power.next_minus(context) if context is down else power.next_plus(context)
            ends.append(int(context.multiply(power, Decimal(1 << bits))))
        if ends[0] == ends[1]:
            return ends[0]
        digits = min(2 * digits, MAX_PREC)
