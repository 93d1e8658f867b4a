"""What released moments say once the known noise is taken into account: post-processing, no tuning on data.

- One-way counts: average all that was measured of them by their variances, and project onto the non-negative counts of
  the same total.
- Two-way tables: the product of their one-way counts, plus a residual whose singular values are shrunk by what the
  noise adds to them. Columns that are independent lose all their noise, and two columns rarely share many directions.
  The sum of several classes comes first and is given each class's margins: there the residual of a class starts.
- Rare categories that share a cell: their counts are drawn to their mean, so that noise alone takes none away.
- Fine cells: a dyadic split departs from the expected one by what of the difference is not noise (Haar shrinkage).

Source: Gavish and Donoho, "Optimal shrinkage of singular values" (2017), equation 7, for the Frobenius norm; Breiman,
"Better subset regression using the nonnegative garrote" (1995), for the splits.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHRINKAGE = 0.7
"""Part of the known noise that is shrunk away before the fit, which averages out the rest."""
LEAST_SHARE = 1e-3
"""Part of independence that is mixed into what the classes share, so that they rule out no cell for another class."""
STANDS_OUT = 1.1
"""How far beyond the largest singular value of noise alone a direction of a table lies that is taken for a relation."""
SPLIT_NOISE = 1.5
"""Standard deviations up to which a split of a fine histogram is taken for noise; beyond, it is shrunk by as many."""


def project(counts: Floats) -> Floats:
    """Return the nearest non-negative vector of the same sum (nothing at all if that is not positive)."""
    total = float(counts.sum())
    if total <= 0:
        return np.zeros_like(counts)
    descending = np.sort(counts)[::-1]
    excess = (np.cumsum(descending) - total) / np.arange(1, len(counts) + 1)
    result: Floats = np.maximum(counts - excess[np.nonzero(descending > excess)[0][-1]], 0)
    return result


def towards_mean(counts: Floats, noise_stddev: float) -> Floats:
    """Shrink counts of cells without an order towards their mean, by as much as noise explains how they differ.

    Source: James and Stein, "Estimation with quadratic loss" (1961), with Lindley's mean.
    """
    apart = counts - counts.mean()
    explained = (len(counts) - 3) * noise_stddev**2 / max(float(apart @ apart), 1e-12)
    shrunk: Floats = counts.mean() + (1 - min(max(explained, 0.0), 1.0)) * apart
    return shrunk


def pool(estimates: list[Floats], variances: list[Floats]) -> Floats:
    """Average unbiased estimates of the same numbers by their inverse variances, then project."""
    weights = 1 / np.stack(variances)
    result: Floats = (np.stack(estimates) * weights).sum(axis=0) / weights.sum(axis=0)
    return project(result)


def shrink(residual: Floats, noise_stddev: float) -> Floats:
    """Shrink the singular values of signal + white noise towards those of the signal.

    With y = s / (noise sqrt(n)) and aspect ratio beta = m / n:  y -> sqrt((y^2 - beta - 1)^2 - 4 beta) / y.
    """
    short, long = sorted(residual.shape)
    beta, unit = short / long, noise_stddev * math.sqrt(long)
    left, values, right = np.linalg.svd(residual, full_matrices=False)
    y = values / unit
    shrunk = np.sqrt(np.maximum((y**2 - beta - 1) ** 2 - 4 * beta, 0)) / np.maximum(y, 1e-12)
    result: Floats = (left * np.where(y > 1 + math.sqrt(beta), shrunk * unit, 0)) @ right
    return result


def denoise_pairs(
    pairs: Floats,
    one_way: Floats,
    offsets: NDArray[np.int64],
    paired: NDArray[np.bool_],
    noise_stddevs: tuple[Floats, Floats],
) -> Floats:
    """Rebuild the two-way tables of every class from its one-way counts, what the classes share, and its own residual.

    Shapes: pairs [classes, D, D] symmetric, one_way [classes, D] non-negative -> [classes, D, D], zero within a column
    and between columns that are not paired; noise_stddevs: of a class's tables and of their sum, [F, F] both.
    """
    blocks = [slice(a, b) for a, b in pairwise(offsets.tolist())]
    clean = np.zeros_like(pairs)
    for j, columns in enumerate(blocks):
        for i in np.flatnonzero(paired[:j, j]):
            margins = [(m[blocks[i]], m[columns]) for m in one_way]
            class_stddev, shared_stddev = (float(each[i, j]) for each in noise_stddevs)
            clean[:, blocks[i], columns] = _denoise_classes(
                pairs[:, blocks[i], columns], margins, class_stddev, shared_stddev
            )
    return clean + clean.transpose(0, 2, 1)


def _denoise_classes(
    tables: Floats, margins: list[tuple[Floats, Floats]], class_stddev: float, shared_stddev: float
) -> Floats:
    """Denoise one two-way table of every class; what all classes together show of its shape helps the small ones."""
    expected = np.stack([np.outer(row, column) / max(float(row.sum()), 1.0) for row, column in margins])
    if len(tables) > 1:
        together = expected.sum(axis=0)
        shape = denoise_table(tables.sum(axis=0), together, SHRINKAGE * shared_stddev)
        shape = np.maximum(shape, 0) + LEAST_SHARE * together
        expected = np.stack([rake(shape, *each) for each in margins])
    return np.stack(
        [denoise_table(table, e, SHRINKAGE * class_stddev) for table, e in zip(tables, expected, strict=True)]
    )


def rake(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Scale rows and columns in turn until they have these sums: the odds ratios stay, so no three-way interaction.

    Source: Deming and Stephan, "On a least squares adjustment" (1940); twelve turns, the last one for the columns.
    """
    raked = table
    for _ in range(12):
        raked = raked * (rows / np.maximum(raked.sum(axis=1), 1e-12))[:, None]
        raked = raked * (columns / np.maximum(raked.sum(axis=0), 1e-12))
    return raked


def denoise_table(table: Floats, expected: Floats, noise_stddev: float) -> Floats:
    """Return what is expected plus the shrunk residual, whose rows and columns have sum zero. Shapes: [m, n]."""
    result: Floats = expected + shrink(doubly_centered(table - expected), noise_stddev)
    return result


def doubly_centered(table: Floats) -> Floats:
    """Return a table whose rows and columns have sum zero. Shapes: [m, n]."""
    centered: Floats = table - (table.mean(axis=0) + table.mean(axis=1, keepdims=True) - table.mean())
    return centered


def unmet(released: Floats, clean: Floats, modeled: Floats, noise_stddev: float) -> Floats:
    """Return what a model lacks of the directions that stand out of the noise: where it is more than the noise of one.

    The noise of all entries together hides a direction that is off by several deviations of its own. Shapes: [m, n],
    all three without what their rows and columns say; ``clean`` is ``released`` as it was denoised.
    """
    left, values, right = np.linalg.svd(released, full_matrices=False)
    edge = noise_stddev * (math.sqrt(released.shape[0] - 1) + math.sqrt(released.shape[1] - 1))
    left, right = left[:, values > STANDS_OUT * edge], right[values > STANDS_OUT * edge]
    lacks = np.einsum("ik,ij,kj->k", left, clean - modeled, right)
    result: Floats = (left * np.where(np.abs(lacks) > noise_stddev, lacks, 0)) @ right
    return result


Spread = Callable[[int, int, int, float], float]
"""The noise_stddev of counts[start:middle].sum() - share * counts[start:stop].sum()."""


def independent(variances: Floats) -> Spread:
    """Return the spread of counts whose noise is independent. Shapes: [n]."""
    sums = np.concatenate([[0.0], np.cumsum(variances)]).tolist()

    def spread(start: int, middle: int, stop: int, share: float) -> float:
        left, right = sums[middle] - sums[start], sums[stop] - sums[middle]
        return math.sqrt((1 - share) ** 2 * left + share**2 * right)

    return spread


def correlated(covariance: Floats) -> Spread:
    """Return the spread of counts whose noise has a covariance. Shapes: [n, n]."""

    def spread(start: int, middle: int, stop: int, share: float) -> float:
        weights = np.full(stop - start, -share)
        weights[: middle - start] += 1
        return math.sqrt(max(float(weights @ covariance[start:stop, start:stop] @ weights), 0.0))

    return spread


def split_by_halves(counts: Floats, expected: Floats, spread: Spread) -> Floats:
    """Estimate a distribution over ordered cells: ``expected``, except where the counts differ by more than noise.

    Shapes: counts and expected [n]; returns [n], non-negative and of sum 1.
    """
    shares = np.zeros(len(counts))
    todo = [(0, len(counts), 1.0)]
    while todo:
        start, stop, mass = todo.pop()
        if stop - start == 1:
            shares[start] = mass
            continue
        middle = (start + stop) // 2
        left, right = float(counts[start:middle].sum()), float(counts[middle:stop].sum())
        whole = float(expected[start:stop].sum())
        share = float(expected[start:middle].sum()) / whole if whole > 0 else (middle - start) / (stop - start)
        noise = SPLIT_NOISE * spread(start, middle, stop, share)
        differs = abs(left - share * max(left + right, 0.0))
        if differs > noise and max(left, right) > 0:
            counted = max(left, 0.0) / (max(left, 0.0) + max(right, 0.0))
            share += (1 - (noise / differs) ** 2) * (counted - share)
        todo += [(start, middle, mass * share), (middle, stop, mass * (1 - share))]
    return shares
