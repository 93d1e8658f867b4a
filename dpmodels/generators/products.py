"""Tables of all pairs of columns from one noisy product each: post-processing, no tuning on data.

- What a product says beyond both columns' counts by class is a covariance of halves, with noise of a known size.
- Columns of a wide table share a few directions. So the matrix of these covariances is a matrix of low rank, whose
  eigenvalues stand out of the noise of all of them, plus single pairs that stand out of what is left.
- A table is that of two normal variables, cut where the columns' counts say, with the correlation at which their halves
  have that covariance. Categories, and states without a value, have no order: they follow the half that they are in.

Source: Benaych-Georges and Nadakuditi, "The eigenvalues and eigenvectors of finite, low rank perturbations of large
random matrices" (2011), for the eigenvalues; Pearson, "Mathematical contributions to the theory of evolution VII"
(1900), for the series of a normal table in Hermite functions.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.columns import Continuous
from dpmodels.embeddings.products import Products
from dpmodels.generators.denoise import rake
from dpmodels.late import torch

TERMS = 40
"""Terms of the series; at the largest correlation the next would be .95**41 = .12 of the first."""
CORRELATIONS = np.linspace(-0.95, 0.95, 191)
POWERS = CORRELATIONS[:, None] ** np.arange(1, TERMS + 1)
TURNS = 12
"""How often the diagonal, which no product measures, is set to what the low rank says of it."""
STANDS_OUT = 3.5
"""Standard deviations from which on a single pair is more than noise: one of two thousand pairs by chance."""
LEAST = 0.02
"""Part of independence that every pair of cells holds at least."""


def product_tables(moments: Products, released: Whole, clean: Floats, noise: float) -> tuple[Floats, float]:
    """Return the tables of all pairs by class, and the noise that a product spreads over an entry of its table.

    ``released`` is the vector of the look and ``noise`` the standard deviation of its noise, in lattice steps;
    ``clean`` are denoised counts of cells by class.

    Shapes: released [dim], clean [classes, D]; returns [classes, D, D], symmetric, zero within a column; in records.
    """
    covariances, stddev = covariances_of(moments, released, clean, noise)
    offsets, counts = moments.partition.offsets, clean.sum(axis=0)
    blocks = [slice(a, b) for a, b in pairwise(offsets.tolist())]
    axes = [Axis.of(moments, index, counts[block]) for index, block in enumerate(blocks)]
    tables = np.zeros((len(clean), len(counts), len(counts)))
    for i, j in zip(*moments.pairs, strict=True):
        table = normal_table(axes[i], axes[j], covariances[i, j], counts[blocks[i]].sum())
        for label, one_way in enumerate(clean):
            tables[label, blocks[i], blocks[j]] = rake(table, one_way[blocks[i]], one_way[blocks[j]])
    # a pattern of two halves has the squared norm of its two sides
    spread = np.array([float((axis.sides**2).sum()) for axis in axes])
    free = np.array(moments.partition.sizes) - 1
    both = np.triu(np.outer(spread, spread), 1).sum() / max(np.triu(np.outer(free, free), 1).sum(), 1)
    return tables + tables.transpose(0, 2, 1), stddev * math.sqrt(both)


def covariances_of(moments: Products, released: Whole, clean: Floats, noise: float) -> tuple[Floats, float]:
    """Return the covariances of the columns' halves within classes, denoised, and the noise of each; in records.

    Half i holds (n + m_i) / 2 of n records, so n times its covariance with half j is (p - m_i m_j / n) / 4.
    """
    sums, stddevs = moments.unpack_products(released)
    signs, starts = np.concatenate(moments.halves), moments.partition.offsets[:-1]
    halves = np.add.reduceat(clean * signs, starts, axis=1)
    records = np.maximum(np.add.reduceat(clean, starts, axis=1).mean(axis=1), 1.0)
    known = np.einsum("ci,cj->ij", halves, halves / records[:, None])
    noises = noise * stddevs / 4
    stddev = float(noises[moments.pairs].mean())
    covariances = (sums - known) / 4
    np.fill_diagonal(covariances, 0)
    alike = np.where(noises > 0, stddev / np.maximum(noises, 1e-12), 0)  # a workload has some measured more closely
    variances = (records.sum() - np.diagonal(known)) / 4
    shared = low_rank(covariances, variances, stddev)
    left = covariances - shared
    np.fill_diagonal(left, 0)
    apart = np.abs(left) * alike / stddev
    kept = np.where(apart > STANDS_OUT, 1 - (STANDS_OUT / np.maximum(apart, STANDS_OUT)) ** 2, 0)
    result = shared + kept * left
    np.fill_diagonal(result, 0)
    return result, stddev


def low_rank(covariances: Floats, variances: Floats, noise_stddev: float) -> Floats:
    """Return the part of a noisy symmetric matrix, whose diagonal is not known, that stands out as low rank.

    Noise of this size has eigenvalues up to 2 e with e = noise_stddev sqrt(F); one of s + e^2 / s stands for s, and its
    vector for 1 - e^2 / s^2 of the true one.
    """
    edge, shared = noise_stddev * math.sqrt(len(covariances)), np.zeros_like(covariances)
    diagonal = variances / 2
    for _ in range(TURNS):
        values, vectors = np.linalg.eigh(covariances + np.diag(diagonal))
        true = np.sign(values) * (np.abs(values) + np.sqrt(np.maximum(values**2 - 4 * edge**2, 0))) / 2
        true = np.where(np.abs(values) > 2 * edge, true - edge**2 / np.where(true == 0, 1, true), 0)
        shared = (vectors * true) @ vectors.T
        diagonal = np.clip(np.diagonal(shared), 0, 0.95 * variances)
    return shared


@dataclass(frozen=True)
class Axis:
    """One column of a normal table.

    Attributes:
        shares: of its cells. series: the integrals of the Hermite functions over them, and over the upper half.
        sides: each half's shares of itself, negative below. Shapes: [cells], [cells, TERMS], [TERMS], [cells].
    """

    shares: Floats
    series: Floats
    upper: Floats
    sides: Floats

    @classmethod
    def of(cls, moments: Products, index: int, counts: Floats) -> "Axis":
        """Lay a column's cells along a normal variable by their denoised counts."""
        column, up = moments.partition.columns[index], moments.halves[index] > 0
        shares = np.maximum(counts, 1e-9) / np.maximum(counts, 1e-9).sum()
        high = max(float(shares[up].sum()), 1e-12)
        low = max(1 - high, 1e-12)
        spread = np.stack([np.where(up, 0, shares) / low, np.where(up, shares, 0) / high], axis=1)
        groups = np.array([low, high])
        values = int(moments.partition.merge[index][column.cells - 1]) + 1 if isinstance(column, Continuous) else 0
        if values >= 2 and up[:values].any():
            spread, groups = _ordered(shares, up, values)
        series = spread @ _integrals(groups / groups.sum())
        return cls(shares, series, series[up].sum(axis=0), np.where(up, shares / high, -shares / low))


def _ordered(shares: Floats, up: NDArray[np.bool_], values: int) -> tuple[Floats, Floats]:
    """Keep the order of values; states without one take their part of all values of the upper half."""
    among = up[:values]
    high = float(shares[up].sum())
    others = shares[values:] / high
    spread = np.eye(len(shares), values)
    spread[np.arange(values), np.arange(values)] = np.where(among, 1 - others.sum(), 1)
    spread[values:] = np.outer(others, among)
    return spread, np.where(among, shares[:values] / (1 - others.sum()), shares[:values])


def _integrals(shares: Floats) -> Floats:
    """Integrate the normed Hermite functions, times the normal density, over cells of these shares.

    The integral of He_n phi is -He_(n-1) phi. Shapes: [cells] -> [cells, TERMS].
    """
    below = np.concatenate([[0.0], np.cumsum(shares)])
    inside = (below > 1e-9) & (below < 1 - 1e-9)
    at = torch.special.ndtri(torch.from_numpy(np.clip(below, 1e-9, 1 - 1e-9))).numpy()
    density = np.where(inside, np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi), 0)
    terms, before, current = [], np.zeros_like(at), np.ones_like(at)
    for n in range(1, TERMS + 1):
        terms.append(np.diff(-current * density) / math.sqrt(n))
        before, current = current, (at * current - math.sqrt(n - 1) * before) / math.sqrt(n)
    return np.stack(terms, axis=1)


def normal_table(one: Axis, other: Axis, covariance: float, records: float) -> Floats:
    """Return the table of two columns whose halves have this covariance; in records."""
    table = records * np.outer(one.shares, other.shares)
    if not covariance:
        return table
    reached = POWERS @ (one.upper * other.upper)
    correlation = float(np.interp(covariance / max(records, 1.0), reached, CORRELATIONS))
    powers = correlation ** np.arange(1, TERMS + 1)
    found: Floats = np.maximum(table + records * (one.series * powers) @ other.series.T, LEAST * table)
    return found
