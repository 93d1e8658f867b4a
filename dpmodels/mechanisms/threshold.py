"""Noisy counts of keys that the data names: what is released is those whose noisy count reaches a threshold.

Unit and adjacency: a record, or a user with at most ``rows`` rows, is added or removed.

What is counted: each row adds one to the count of at most one key in each of ``columns`` columns, and to the number of
rows. Keys are public (nulls, cells of a fixed lattice) or found in the data (the values of an open set).

Sensitivity: the counts that one row adds are a vector of at most ``columns`` + 1 ones, so of L2 norm at most
sqrt(``columns`` + 1); those of a unit's rows add up, so one unit moves all counts together by at most ``rows`` times
that. They are counted in lattice steps, of which a row has many, so that rounding the root up costs next to nothing.

What is released: every public count, and of the found ones those that reach the threshold after noise, in the order of
their keys. No key is released for its own sake, and neither is how many there were.

Delta: with a unit more there may be keys that the neighbor lacks. Whatever the unit, its rows bring at most ``rows``
such keys a column, with counts c_1 + c_2 + ... <= ``rows``. Discrete Gaussian noise of deviation s is at least t with a
probability of at most P(N(0, s^2) >= t - 1) (Canonne, Kamath and Steinke 2020, proposition 25). With f(c) for that
probability at t = threshold - c, the probability that any of them shows is at most the sum of f(c_i), which is at most
the sum of c_i f(c_i) / c_i <= ``rows`` max_c f(c) / c, a column, with c from 1 to ``rows``. ``ThresholdEvent`` says why
this probability is added to the delta of the Gaussian, and that nothing else is to be paid.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmodels.arrays import Whole
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.privacy import Released, Sensitive

MARGIN = 1 + 1e-9
"""Relative; the rounding errors of the formula stay under it."""


@dataclass(frozen=True)
class Bringing:
    """The most that one unit brings: rows, in lattice steps each, to each of so many open columns."""

    rows: int
    steps_per_row: int
    columns: int

    def shown(self, threshold: int, noise_stddev: float) -> float:
        """Return the probability, rounded up, that a key of one unit alone reaches a threshold.

        Units: threshold and noise_stddev in lattice steps.
        """
        from scipy.special import ndtr

        counts = np.arange(1, self.rows + 1, dtype=np.float64)
        each = ndtr(-(threshold - 1 - counts * self.steps_per_row) / noise_stddev) / counts
        return min(1.0, float(each.max()) * self.rows * self.columns * MARGIN)

    def threshold(self, noise_stddev: float, delta: float) -> int:
        """Return the least threshold, in lattice steps, at which such a key shows with probability delta at most."""
        return _threshold(self, noise_stddev, delta)


@lru_cache(maxsize=256)
def _threshold(most: Bringing, noise_stddev: float, delta: float) -> int:
    low, high = 0, most.rows * most.steps_per_row + 1
    while most.shown(high, noise_stddev) > delta:
        low, high = high, high + max(1, int(noise_stddev))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if most.shown(middle, noise_stddev) > delta else (low, middle)
    return high


@dataclass(frozen=True)
class KeyCounts:
    """Counts of public keys, and of keys that were found. Units: lattice steps.

    Attributes:
        public: in the order in which the keys are listed where they are declared. Shapes: [public keys].
        keys: text of the found keys, each once; columns: the number of the column that each is of.
        found: their counts. Shapes: [found keys].
    """

    public: Whole
    keys: pa.Array
    columns: Whole
    found: Whole


def measure_thresholded(
    counts: Sensitive[KeyCounts], *, l2_sensitivity: int, noise_multiplier: float, threshold: int
) -> Released[KeyCounts]:
    """Release noisy counts: all of public keys, and those found ones that reach a threshold.

    Privacy: see above. Charged by the caller's ledger entry as Gaussian(noise_multiplier) and as a threshold; the
        caller's proof is of both, of the sensitivity and of the delta at this threshold.
    """
    exact = counts.reveal()
    size = len(exact.public)
    whole = Sensitive(np.concatenate([exact.public, exact.found]))
    noisy = measure_gaussian(whole, l2_sensitivity=l2_sensitivity, noise_multiplier=noise_multiplier).value
    indices = np.flatnonzero(noisy[size:] >= threshold)
    names = pa.table({"column": exact.columns[indices], "key": exact.keys.take(pa.array(indices))})
    order = pc.sort_indices(names, [("column", "ascending"), ("key", "ascending")]).to_numpy()
    indices = indices[order]
    keys = exact.keys.take(pa.array(indices)).cast(pa.string())
    return Released(KeyCounts(noisy[:size], keys, exact.columns[indices], noisy[size:][indices]))
