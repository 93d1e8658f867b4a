"""The most likely values of unknowns of which sums were measured, each with an error of its own, between bounds.

Let y = A x + e with errors e of standard deviations s. What is stated is the x that minimises sum ((y - A x) / s)^2
among those that meet what is exact, and by how much it moves with each y before bounds are looked at: by that and e it
is off. A measured sum whose s is 0 is exact.
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
    """Return the unknowns, and how much each moves with what was measured. Shapes: [unknowns], [unknowns, sums].

    Args:
        measured: sums, what was measured of them and its standard deviation.
        bounds: sums, and between what they lie.
        low: the least that each unknown can be. Shape: [unknowns].
        high: the most.
    """
    span, middle = np.maximum(high - low, 1e-300), (low + high) / 2
    of, values = measured.of * span, measured.first - measured.of @ middle  # unknowns from -1/2 to 1/2
    gains, covariance = _solve(of, measured.second)
    least, most = (one - bounds.of @ middle for one in bounds[1:])
    limits, ends = np.vstack([bounds.of, -bounds.of]) * span, np.append(most, -least)
    unknowns = _between(gains @ values, covariance, limits[np.isfinite(ends)], ends[np.isfinite(ends)])
    return middle + span * unknowns, span[:, None] * gains


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


def _solve(of: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Return what each unknown moves by with each sum, and their covariance. Shapes: ``of`` [sums, unknowns]."""
    is_exact, size = errors <= 0, of.shape[1]
    exact, weighed = of[is_exact], of[~is_exact] / errors[~is_exact, None]
    gains, start, free = np.zeros((size, len(of))), np.zeros((size, len(exact))), np.eye(size)
    if len(exact):
        left, strengths, rows = np.linalg.svd(exact)
        rank = int((strengths > SMALL * strengths.max(initial=0.0)).sum())
        start = rows[:rank].T / strengths[:rank] @ left[:, :rank].T
        free = np.asarray(rows[rank:].T, dtype=np.float64)
    of_free = weighed @ free
    covariance = free @ np.linalg.inv(of_free.T @ of_free + NOTHING * np.eye(free.shape[1])) @ free.T
    gains[:, ~is_exact] = covariance @ weighed.T / errors[~is_exact]
    gains[:, is_exact] = start - covariance @ (weighed.T @ (weighed @ start))
    return gains, covariance
