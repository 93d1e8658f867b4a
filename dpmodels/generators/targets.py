"""From a release of nacre to what its mixture is fitted to: denoised moments, class counts, spread within cells."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmodels.contract.columns import Continuous
from dpmodels.embeddings.interactions import Interactions
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.products import Products
from dpmodels.embeddings.residuals import Residuals, centered
from dpmodels.embeddings.zoom import Zoom
from dpmodels.generators.denoise import (
    SHRINKAGE,
    denoise_pairs,
    independent,
    pool,
    project,
    shrink,
    split_by_halves,
    towards_mean,
)
from dpmodels.generators.ends import Ends
from dpmodels.generators.moment_matching import JointTarget, MomentTarget
from dpmodels.generators.products import product_tables
from dpmodels.generators.refinements.tails import Pooled
from dpmodels.late import torch

Floats = NDArray[np.float64]
Estimates = tuple[list[Floats], list[Floats]]
"""Unbiased estimates of the same counts, and their variances."""
Joint = tuple[Interactions, NDArray[np.int64], float]
"""Interactions in joint tables, what was released of them, and its noise_stddev; in lattice steps."""
FEWEST = 8
"""Cells of a number column from which on its ends are told from its body."""
OFF_PRODUCTS = 0.15
"""How far a fit may be from tables that follow from products, where 1 is as far as the noise of these."""


def moment_target(
    first: Moments | None,
    moments: Moments,
    vector: NDArray[np.int64],
    noise: float,
    joint: Joint | None = None,
) -> tuple[MomentTarget, Floats]:
    """Turn a release into denoised moments as shares of all records, and the number of records of each class.

    ``first`` is the fine look that went before, if there was one; the vector begins with what it released. ``joint`` is
    what was released of joint tables, if a workload asked for some.
    """
    begin = first.dim if first else 0
    fine = first.unpack(vector[:begin])[0] if first else None
    one_way, pairs = moments.unpack(vector[begin:])
    offsets = moments.partition.offsets
    clean = np.zeros_like(one_way)
    for label in range(moments.partition.classes):
        for column in range(len(moments.partition.merge)):
            estimates = column_estimates(moments, one_way[label], pairs[label], column)
            if first and fine is not None:
                estimates = with_fine_counts(estimates, first, moments, fine[label], column)
            clean[label, offsets[column] : offsets[column + 1]] = pool(*estimates)
    counts = _agree(clean, moments.partition.sizes)
    total = max(float(counts.sum()), 1.0)
    if isinstance(moments, Products):
        return _of_products(moments, vector[begin:], counts, clean, noise), counts
    class_stddev, shared_stddev = (noise * each for each in moments.table_stddevs)
    two_way = denoise_pairs(pairs, clean, offsets, moments.paired, (class_stddev, shared_stddev))
    noisy = two_way + centered(pairs - two_way, offsets)
    less = np.array(moments.partition.sizes) - 1
    free = np.outer(less, less) * moments.paired  # how many entries of a table its margins leave free
    weights = moments.weights if isinstance(moments, Residuals) else None
    even = class_stddev if weights is None else class_stddev * weights
    stddev = math.sqrt(float((free * even**2).sum()) / max(int(free.sum()), 1))
    shares, ones, clear, noised = (torch.from_numpy(part / total).float() for part in (counts, clean, two_way, noisy))
    sizes = moments.partition.sizes
    weighed = None if weights is None else torch.from_numpy(weights).float()
    together = float(np.max(shared_stddev / class_stddev))
    target = MomentTarget(
        shares, ones, clear, noised, stddev / total, sizes, moments.paired, weighed, together=together
    )
    return replace(target, joint=joint_targets(joint, offsets, total) if joint else ()), counts


def joint_targets(joint: Joint, offsets: NDArray[np.int64], total: float) -> tuple[JointTarget, ...]:
    """Return the interactions in joint tables as shares of all records, with their noise and shrunk."""
    (embedding, released, stddev), targets = joint, []
    for table, coefficients, step in embedding.unpack(released):
        noise = stddev * step
        flat = coefficients.reshape(table.sizes[0], -1)
        clear = shrink(flat, SHRINKAGE * noise).reshape(table.sizes) * table.is_interaction
        cells = [slice(offsets[column], offsets[column + 1]) for column in table.columns]
        bases = [basis[group] for basis, group in zip(table.bases, table.groups, strict=True)]
        *sides, mask, clean, noisy = (
            torch.from_numpy(np.ascontiguousarray(each)).float()
            for each in (*bases, table.is_interaction, clear / total, coefficients / total)
        )
        targets.append(JointTarget(tuple(cells), tuple(sides), mask, clean, noisy, noise / total))
    return tuple(targets)


def _of_products(
    moments: Products, released: NDArray[np.int64], counts: Floats, clean: Floats, noise: float
) -> MomentTarget:
    """Return tables that follow from products; they are denoised, and a fit comes closer to them than to the noise."""
    two_way, stddev = product_tables(moments, released, clean, noise)
    total = max(float(counts.sum()), 1.0)
    shares, ones, clear = (torch.from_numpy(part / total).float() for part in (counts, clean, two_way))
    sizes, off = moments.partition.sizes, OFF_PRODUCTS
    return MomentTarget(shares, ones, clear, clear, stddev / total, sizes, moments.paired, tolerance=off)


def column_estimates(moments: Moments, one_way: Floats, pairs: Floats, column: int) -> Estimates:
    """List all that was measured of one column's cells in one class, and its variances in units of the noise."""
    sizes, offsets = moments.partition.sizes, moments.partition.offsets
    cells = slice(offsets[column], offsets[column + 1])
    estimates, variances = [one_way[cells]], [np.full(sizes[column], moments.one_way**-2.0)]
    for other, size in enumerate(sizes):
        if moments.counts_margins and moments.paired[column, other]:
            estimates.append(pairs[cells, offsets[other] : offsets[other + 1]].sum(axis=1))
            variances.append(np.full(sizes[column], size / moments.two_way**2))
    return estimates, variances


def with_fine_counts(estimates: Estimates, first: Moments, moments: Moments, fine: Floats, column: int) -> Estimates:
    """Add what the fine look before measured of the same cells."""
    merge, begin = moments.partition.merge[column], first.partition.offsets[column]
    added = np.bincount(merge, fine[begin : begin + len(merge)]).astype(np.float64)
    variance = np.bincount(merge) / first.one_way**2
    return [added, *estimates[0]], [variance, *estimates[1]]


def _agree(one_way: Floats, sizes: list[int]) -> Floats:
    """Give every column of a class the same total, in place, and return the totals. Shapes: [classes]."""
    starts = np.cumsum([0, *sizes[:-1]])
    totals = np.add.reduceat(one_way, starts, axis=1)
    counts: Floats = np.average(totals, axis=1, weights=1 / np.array(sizes))  # a sum over fewer cells has less noise
    factor = counts[:, None] / np.where(totals > 0, totals, 1)
    one_way *= np.repeat(factor, sizes, axis=1)
    one_way += np.repeat(np.where(totals > 0, 0, counts[:, None] / np.array(sizes)), sizes, axis=1)
    return counts


def zoomed_shares(zooms: Sequence[tuple[Zoom, list[Floats], float]], fine: Partition) -> dict[int, Floats]:
    """Estimate from the zooms how the values of each zoomed column spread over its fine cells, by the column's place.

    Each zoom splits what the one before said of the cells that its own were cut from.

    Args:
        zooms: cells, counts and their noise_stddev, in records.
        fine: the cells that the last zoom led to.
    """
    cells_by_column: dict[int, tuple[NDArray[np.int64], Floats]] = {}
    for zoom, histograms, noise in zooms:
        for index, counts in zip(zoom.zoomed, histograms, strict=True):
            edges = zoom.partition.edges(index)
            expected = _spread(*cells_by_column[index], edges) if index in cells_by_column else np.ones(len(edges) - 1)
            cells_by_column[index] = (
                edges,
                split_by_halves(counts[: len(expected)], expected, independent(np.full(len(expected), noise**2))),
            )
    return {index: _spread(edges, shares, fine.edges(index)) for index, (edges, shares) in cells_by_column.items()}


def _spread(edges: NDArray[np.int64], shares: Floats, cut: NDArray[np.int64]) -> Floats:
    """Spread the shares of cells evenly over the cells that they were cut into."""
    cell = np.searchsorted(edges, cut[:-1], side="right") - 1
    spread: Floats = (shares / np.maximum(np.bincount(cell, minlength=len(shares)), 1))[cell]
    return spread


def ends_of(
    zooms: Sequence[tuple[Zoom, list[Floats], float]],
    looks: Sequence[tuple[Moments, NDArray[np.int64], float]],
) -> dict[int, Ends]:
    """Pool all that was measured of the cells of every number column that has some, by the column's place.

    Args:
        zooms: cells, counts and their noise_stddev, in records; of the columns that have many values.
        looks: the first look, whose cells are the fine ones, and the second; vectors and their noise_stddev, in steps.
    """
    fine = looks[0][0].partition
    shares = zoomed_shares(zooms, fine)
    numbers = [
        index for index, column in enumerate(fine.columns) if isinstance(column, Continuous) and column.cells >= FEWEST
    ]
    return {index: _ends_of(fine, index, shares.get(index), zooms, looks) for index in numbers}


def _ends_of(
    fine: Partition,
    index: int,
    even: Floats | None,
    zooms: Sequence[tuple[Zoom, list[Floats], float]],
    looks: Sequence[tuple[Moments, NDArray[np.int64], float]],
) -> Ends:
    column, edges, measured = fine.columns[index], fine.edges(index), []
    if not isinstance(column, Continuous):
        raise TypeError(f"column {index} has no interval")
    for zoom, histograms, noise in zooms:
        if index not in zoom.zoomed:
            continue
        coarse = zoom.partition.edges(index)
        cell = np.searchsorted(coarse, edges[:-1], side="right") - 1
        measured.append((cell, histograms[zoom.zoomed.index(index)][: len(coarse) - 1], noise))
    for moments, vector, noise in looks:
        begin, cell = moments.partition.offsets[index], moments.partition.merge[index][: column.cells]
        counts = moments.unpack_cells(vector)[:, begin : begin + cell.max() + 1].sum(axis=0)
        measured.append((cell, counts, math.sqrt(fine.classes) * noise / moments.one_way))
    return Ends(column, Pooled.of(measured), np.ones(column.cells) if even is None else even)


def details(
    partition: Partition,
    fine: Floats,
    offsets: NDArray[np.int64],
    noise: float,
    ends: Mapping[int, Ends] | None = None,
) -> list[Floats]:
    """Estimate how each class spreads over the fine cells of every merged cell.

    Values are expected to spread evenly over the fine cells, or as ``ends`` says of a column, by its place.

    Shapes: fine [classes, fine cells of all columns] in records; returns one [classes, fine cells] a column.
    """
    result = []
    for index, (column, merge, begin) in enumerate(zip(partition.columns, partition.merge, offsets, strict=False)):
        counts = fine[:, begin : begin + len(merge)]
        shares = np.ones_like(counts)
        if ends and index in ends and isinstance(column, Continuous):
            values = slice(0, column.cells)
            shares[:, values] = ends[index].shares(merge[values], counts[:, values], noise)
            result.append(shares)
            continue
        for cell in np.flatnonzero(np.bincount(merge) > 1):
            inside = np.flatnonzero(merge == cell)
            spread = independent(np.full(len(inside), noise**2))
            together = counts[:, inside].sum(axis=0)
            if isinstance(column, Continuous):
                pooled = independent(np.full(len(inside), noise**2 * partition.classes))
                shape = split_by_halves(together, np.ones(len(inside)), pooled)
            else:
                shape = project(towards_mean(together, noise * math.sqrt(partition.classes)))
            for label in range(partition.classes):
                shares[label, inside] = split_by_halves(counts[label, inside], shape, spread)
        result.append(shares)
    return result


def joined(partition: Partition, ends: Mapping[int, Ends]) -> tuple[Partition, NDArray[np.int64]]:
    """Join the merged cells that hold nothing but a tail with the next one.

    Returns:
        The partition, and for each of its cells before the one that it is joined with. Shapes: [D].
    """
    merges, numberings = [], []
    for index, merge in enumerate(partition.merge):
        numbering = np.arange(merge.max() + 1)
        if index in ends:
            values = ends[index].joined(merge[: ends[index].column.cells])
            numbering = np.concatenate([values, values.max() + 1 + np.arange(len(numbering) - len(values))])
        merges.append(numbering[merge])
        numberings.append(numbering)
    starts = np.cumsum([0, *(numbering.max() + 1 for numbering in numberings)])
    cells = np.concatenate([begin + numbering for begin, numbering in zip(starts[:-1], numberings, strict=True)])
    return Partition(partition.codec, tuple(merges), partition.classes, partition.class_column), cells


def cut(partition: Partition, shares: list[Floats], ends: Mapping[int, Ends]) -> tuple[Partition, list[Floats]]:
    """Cut the fine cells of tails into parts, each with its share of what its cell holds."""
    edges, merges, spread = {}, list(partition.merge), list(shares)
    for index, each in ends.items():
        edges[index], cell, within = each.parts()
        special = np.arange(each.column.cells, len(merges[index]))
        merges[index] = merges[index][np.concatenate([cell, special])]
        spread[index] = np.concatenate([shares[index][:, cell] * within, shares[index][:, special]], axis=1)
    codec = partition.cut(edges).codec
    return Partition(codec, tuple(merges), partition.classes, partition.class_column), spread
