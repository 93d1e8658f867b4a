"""The discrete Gaussian mechanism on integer vectors, sampled exactly by OpenDP with system randomness.

Accounting. The mechanism is charged as a *continuous* Gaussian of noise multiplier z, so it must be at least as
private as one. Let N_Z(0, s^2) be the discrete Gaussian and s^2 = (z * sensitivity)^2 + SMOOTHING. Draw
y ~ N(q, s^2 - SMOOTHING) and round each coordinate to the integer x with probability proportional to
exp(-(x - y)^2 / (2 * SMOOTHING)). By Poisson summation the normalizer of that rounding is constant in y up to a factor
1 +- 2 exp(-2 pi^2 * SMOOTHING), so each coordinate of x follows q + N_Z(0, s^2) up to the square of that factor. With
SMOOTHING = 16 it is 1 +- 1e-136: the discrete Gaussian *is* a post-processing of the continuous one, up to an additive
epsilon below 1e-125 for 1e9 coordinates, which the one-sided calibration absorbs.

Source: Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (2020), for the sampler; the
smoothing argument is the one above.
"""

import math
from collections.abc import Callable

import numpy as np

from dpmodels.arrays import Whole
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.privacy import Released, Sensitive

Sampler = Callable[[Whole, float], Whole]
"""Adds zero-mean integer noise of a given standard deviation; only tests inject another sampler than the one below."""

SMOOTHING = 16.0
_LIMIT = 2**62


def discrete_gaussian(values: Whole, noise_stddev: float) -> Whole:
    """Add exact discrete Gaussian noise to every coordinate; cannot be seeded."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l2_distance(T=float)
    return np.asarray(dp.m.make_gaussian(*space, scale=noise_stddev)(values), dtype=np.int64)


_sampler: Sampler = discrete_gaussian


def lattice_noise_stddev(l2_sensitivity: int, noise_multiplier: float) -> float:
    """Return the noise scale of the discrete Gaussian, in lattice steps, that is charged as ``noise_multiplier``.

    Units: ``l2_sensitivity`` is in lattice steps; ``noise_multiplier`` is noise standard deviation over sensitivity.
    """
    stddev = math.sqrt((noise_multiplier * l2_sensitivity) ** 2 + SMOOTHING)
    return stddev * (1 + 2.0**-50)  # the four roundings above lose less than is added here


def measure_gaussian(total: Sensitive[Whole], *, l2_sensitivity: int, noise_multiplier: float) -> Released[Whole]:
    """Release an integer vector with discrete Gaussian noise.

    Shapes: ``total`` is any 1-d int64 vector; the release has the same shape.
    Privacy: releases ``total + N_Z(0, s^2 I)`` where neighboring totals differ by at most ``l2_sensitivity`` in L2
        norm (the caller's proof). Charged by the caller's ledger entry as Gaussian(noise_multiplier).

    Raises:
        InvalidArgument, Unsuitable: a scale that is not positive and finite, or a total that could overflow.
    """
    if not (l2_sensitivity > 0 and math.isfinite(noise_multiplier) and noise_multiplier > 0):
        raise InvalidArgument("noise_multiplier", noise_multiplier, "be positive and finite, as must the sensitivity")
    values = total.reveal()
    if values.size and max(abs(int(values.max())), abs(int(values.min()))) >= _LIMIT:
        raise Unsuitable("the sum reaches 2**62 in magnitude, where it could overflow; use fewer rows a run")
    return Released(_sampler(values, lattice_noise_stddev(l2_sensitivity, noise_multiplier)))
