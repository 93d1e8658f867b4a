"""The joint tables that a workload asks for: their counts, from all that was released of their columns, and noise."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.workload import Tables
from dpmodels.embeddings.interactions import JointTable, contrasts, turned
from dpmodels.embeddings.moments import Moments
from dpmodels.methods.parts.marginals import NoisyTable
from dpmodels.releases.steps import NoisySum

JOINT = "records by which a cell of the joint table that the workload asks for ({text}) departs from its pairs, at most"


def joint_noise(workload: Sequence[Tables], stddevs: Sequence[float], steps: float) -> dict[str, float]:
    """Name the noise_stddev of a cell of the interactions of every joint table.

    ``steps``: the standard deviation of the noise, in lattice steps; ``stddevs``: what one of them is in records.
    """
    asked = [tables for tables in workload if tables.joint]
    return {JOINT.format(text=one.text): steps * stddev for one, stddev in zip(asked, stddevs, strict=True)}


def joint_counts(joint: NoisySum, second: NoisySum) -> Iterator[NoisyTable]:
    """Yield the counts of every joint table: its interactions, and the pairs of its columns at the second look."""
    moments: Moments = second.embedding
    partition, pairs = moments.partition, moments.unpack(second.vector)[1].sum(axis=0)
    for table, coefficients, stddev in joint.embedding.unpack(joint.vector):
        lower, variance = _of_pairs(table, moments, pairs)
        names = tuple(partition.names[column] for column in table.columns)
        grouped = zip(table.columns, table.groups, strict=True)
        merges = tuple(group[partition.merge[column]] for column, group in grouped)
        counts = turned(coefficients + lower, [basis.T for basis in table.bases])
        variance = variance * second.noise_stddev**2 + table.free * (joint.noise_stddev * stddev) ** 2
        yield NoisyTable(names, merges, counts, float(np.sqrt(variance / table.cells)))


def _of_pairs(table: JointTable, moments: Moments, pairs: Floats) -> tuple[Floats, float]:
    """Return the coefficients of a joint table that its pairs give, and the sum of their variances.

    Each of several estimates of what pairs share, which are the margins, is as good. Units of the variance: that of
    noise of one lattice step.
    """
    coefficients, variances = np.zeros(table.sizes), np.zeros(table.sizes)
    offsets = moments.partition.offsets
    for one, other in combinations(range(len(table.columns)), 2):
        sides, sizes, places = [], [], []
        for axis in (one, other):
            column, group = table.columns[axis], table.groups[axis]
            indicator = np.eye(table.sizes[axis])[group]
            sides.append(indicator @ contrasts(table.sizes[axis]))
            sizes.append(np.bincount(group))
            places.append(slice(offsets[column], offsets[column + 1]))
        left = table.cells // (table.sizes[one] * table.sizes[other])  # cells over which the others spread a pair
        at = tuple(slice(None) if axis in (one, other) else 0 for axis in range(len(table.columns)))
        coefficients[at] = sides[0].T @ pairs[places[0], places[1]] @ sides[1] / np.sqrt(left)
        columns = (np.full(len(each), table.columns[axis]) for each, axis in zip(sizes, (one, other), strict=True))
        blocks = moments.block_stddevs(np.concatenate(sizes), np.concatenate(list(columns)))
        mean = (blocks[: len(sizes[0]), len(sizes[0]) :] ** 2).mean()
        variances[at] = mean / left
    return coefficients, float((variances * ~table.is_interaction).sum())
