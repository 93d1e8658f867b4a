"""The K-norm mechanism of the largest coordinate, on a lattice: sampled exactly with system randomness.

It is the exponential mechanism over all points of the lattice: it draws the point y of Z^d with a probability in
proportion to exp(-max_j |y_j - s_j| / scale), where s is a vector of whole numbers of which no coordinate differs by
more than D between neighboring data sets. The score of a point is minus its distance to s in the largest coordinate,
so by the triangle inequality no score differs by more than D. The sum that normalizes the probabilities is the same
for every s, because shifting Z^d maps it to itself. So a draw at the scale D / epsilon is epsilon-DP, without the
factor 2 that the exponential mechanism loses where its normalizer depends on the data, and two neighbors that differ
by D in one coordinate reach epsilon.

The noise of a coordinate has a standard deviation of about 0.58 d D / epsilon. Laplace noise, whose scale follows from
the sum of the d differences, has 1.41 d D / epsilon.

**The sampler.** With q = exp(-1 / scale), q^r is the sum over all R >= r of (1 - q) q^R. So let R have a probability
proportional to (2 R + 1)^d q^R, and let y be uniform among the (2 R + 1)^d points of which no coordinate differs from
that of s by more than R: the probability of y is proportional to q^max_j |y_j - s_j|. A sum of d + 1 geometric
variables has the probability C(R + d, d) (1 - q)^(d + 1) q^R. It becomes that of R where the sum is accepted with the
probability prod_{i = 1..d} (2 R + 1) / (2 R + 2 i), a fraction for which nothing is rounded. A geometric variable is
the magnitude, less 1, of one of OpenDP's discrete Laplace variables that is not 0.

Source: Hardt and Talwar, "On the geometry of differential privacy" (2010), for norms other than the sum; the sampler
on a lattice is the one above.
"""

import os
from collections.abc import Iterator
from itertools import islice

import numpy as np

from dpmodels.arrays import Whole
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.mechanisms.exponential import pure_scale
from dpmodels.privacy import Released, Sensitive

_LIMIT = 2**52
_BLOCK = 4096


def k_norm_scale(sensitivity: int, epsilon: float) -> float:
    """Return the scale at which a draw is epsilon-DP: D / epsilon, rounded up.

    Units: ``sensitivity`` D, of a single coordinate, and the scale are in steps of the lattice.
    """
    return pure_scale(sensitivity, epsilon, monotonic=True)  # whose price is D / scale as well


def measure_k_norm(vectors: Sensitive[Whole], *, scale: float) -> Released[Whole]:
    """Release a point of the lattice near each vector.

    Shapes: ``vectors`` is [n, d] int64, and so is the release.
    Privacy: neighboring data sets differ in one vector, and each of its coordinates by at most the sensitivity from
        which ``scale`` was computed (the caller's proof). Releases one point for each vector; charged by the caller's
        ledger entry, once for all vectors, as the pure epsilon of ``k_norm_scale``.

    Raises:
        InvalidArgument: a scale that is not positive and finite, or too large for the lattice.
        Unsuitable: the vectors could overflow.
    """
    if not 0 < scale < 2**40:
        raise InvalidArgument("scale", scale, "be positive and below 2**40")
    values = vectors.reveal()
    if values.size and max(abs(int(values.max())), abs(int(values.min()))) >= _LIMIT:
        raise Unsuitable("the vectors reach 2**52 in magnitude, where they could overflow; use shorter documents")
    radii = _radii(_geometric(scale), *values.shape)[:, np.newaxis]
    return Released(values + _below(np.broadcast_to(2 * radii + 1, values.shape)) - radii)


def _geometric(scale: float) -> Iterator[int]:
    """Yield geometric variables, of which r has the probability (1 - q) q^r with q = exp(-1 / scale)."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)
    laplace, zeros = dp.m.make_laplace(*space, scale=scale), [0] * _BLOCK
    while True:
        yield from (abs(value) - 1 for value in laplace(zeros) if value)


def _radii(geometric: Iterator[int], number: int, dim: int) -> Whole:
    """Draw the radii of cubes; those that are not accepted are drawn again."""
    count = number * (dim + 1)
    terms = np.fromiter(islice(geometric, count), dtype=np.int64, count=count).reshape(number, dim + 1)
    radii: Whole = terms.sum(axis=1)
    below = _below(2 * (radii[:, np.newaxis] + np.arange(1, dim + 1)))
    again = (below > 2 * radii[:, np.newaxis]).any(axis=1)
    if again.any():
        radii[again] = _radii(geometric, int(again.sum()), dim)
    return radii


def _below(bounds: Whole) -> Whole:
    """Draw whole numbers that are uniform from 0 up to the bounds, which stay out.

    Of the 2**64 random words those below 2**64 modulo the bound are refused: each remainder is left equally often.
    """
    limits = bounds.astype(np.uint64)
    words = np.frombuffer(os.urandom(8 * limits.size), dtype=np.uint64).reshape(limits.shape)
    uniform: Whole = (words % limits).astype(np.int64)
    refused = words < (np.uint64(0) - limits) % limits
    if refused.any():
        uniform[refused] = _below(bounds[refused])
    return uniform
