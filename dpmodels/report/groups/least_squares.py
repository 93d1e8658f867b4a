"""The most likely values of unknowns of which sums were measured, each with an error of its own, between bounds.

Let y = A x + e with independent errors e of standard deviations s. What is stated is the x that minimises
sum ((y - A x) / s)^2 among those that meet what is exact, and the standard deviations that this has before bounds are
looked at. A measured sum whose s is 0 is exact.
"""

from typing import NamedTuple

import numpy as np

from dpmodels.arrays import Floats

ROUNDS = 2000
"""How often a sum that is beyond its bounds is brought to them, at most."""
NOTHING = 1e-4
"""What is known of an unknown before anything is measured: it is off by no more than a hundred times its range."""
FIXED = 1e-13
"""Part of the variance of all unknowns that rounding leaves of a sum which exact ones fix."""
SMALL = 1e-9
"""Part of an unknown's range that rounding makes of nothing."""


class Sums(NamedTuple):
    """Sums of the unknowns. Shapes: ``of`` [sums, unknowns], all others [sums].

    Attributes:
        of: what each unknown is multiplied with.
        first, second: what was measured and its standard deviation, or the bounds.
    """

    of: Floats
    first: Floats
    second: Floats


def estimate(measured: Sums, bounds: Sums, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the unknowns, and the covariance of what they are off by.

    Args:
        measured: sums, what was measured of them and its standard deviation.
        bounds: sums, and between what they lie.
        low: the least that each unknown can be. Shape: [unknowns].
        high: the most.
    """
    span, middle = np.maximum(high - low, 1e-300), (low + high) / 2
    of, values = measured.of * span, measured.first - measured.of @ middle  # unknowns from -1/2 to 1/2
    is_exact = measured.second <= 0
    exact, exact_values = of[is_exact], values[is_exact]
    weighed = of[~is_exact] / measured.second[~is_exact, None], values[~is_exact] / measured.second[~is_exact]
    unknowns, covariance = _solve(weighed, exact, exact_values)
    least, most = (one - bounds.of @ middle for one in bounds[1:])
    limits, ends = np.vstack([bounds.of, -bounds.of]) * span, np.append(most, -least)
    unknowns = _between(unknowns, covariance, limits[np.isfinite(ends)], ends[np.isfinite(ends)])
    return middle + span * unknowns, span[:, None] * covariance * span


def _between(unknowns: Floats, covariance: Floats, limits: Floats, ends: Floats) -> Floats:
    """Return the most likely unknowns of which no sum exceeds its end (Hildreth, 1957).

    The sum that is farthest beyond its end, or farthest within it without need, is brought to it, until none is.
    """
    lengths = np.maximum(np.sqrt((limits**2).sum(axis=1)), 1e-300)
    limits, ends = limits / lengths[:, None], ends / lengths
    moves = limits @ covariance  # what each sum moves of the unknowns
    variances, pressed = np.einsum("lu,lu->l", moves, limits), np.zeros(len(limits))
    can_move = variances > SMALL * SMALL + FIXED * np.trace(covariance)  # what is exact moves by rounding alone
    limits, ends, moves, variances, pressed = (one[can_move] for one in (limits, ends, moves, variances, pressed))
    for _ in range(ROUNDS if len(limits) else 0):
        steps = np.maximum((limits @ unknowns - ends) / variances, -pressed)
        one = int(np.argmax(np.abs(steps) * np.sqrt(variances)))
        if abs(steps[one]) * variances[one] < SMALL:
            break
        unknowns = unknowns - steps[one] * moves[one]
        pressed[one] += steps[one]
    return unknowns


def _solve(weighed: tuple[Floats, Floats], exact: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the unknowns and their covariance, from weighed sums and exact ones."""
    size = weighed[0].shape[1]
    start, free = np.zeros(size), np.eye(size)
    if len(exact):
        start += np.linalg.lstsq(exact, values, rcond=SMALL)[0]
        _, strengths, rows = np.linalg.svd(exact)
        rank = int((strengths > SMALL * strengths.max(initial=0.0)).sum())
        free = np.asarray(rows[rank:].T, dtype=np.float64)
    of, left = weighed[0] @ free, weighed[1] - weighed[0] @ start
    information = of.T @ of + NOTHING * np.eye(free.shape[1])
    inverse = np.linalg.inv(information)
    return start + free @ (inverse @ (of.T @ left)), free @ inverse @ free.T
