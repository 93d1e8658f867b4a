"""The joint tables that a workload asks for: their counts, from all that was released of their columns, and noise."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.workload import Tables
from dpmodels.embeddings.interactions import JointTable, turned
from dpmodels.embeddings.residuals import Residuals
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
    moments: Residuals = second.embedding
    one_way, pairs = (released.sum(axis=0) for released in moments.unpack(second.vector))
    for table, coefficients, stddev in joint.embedding.unpack(joint.vector):
        lower, of_pairs = _of_pairs(table, moments, one_way, pairs)
        names = tuple(moments.partition.names[column] for column in table.columns)
        grouped = zip(table.columns, table.groups, strict=True)
        merges = tuple(group[moments.partition.merge[column]] for column, group in grouped)
        counts = lower + turned(coefficients, [basis.T for basis in table.bases])
        variances = {
            frozenset(names[at] for at in over): one * second.noise_stddev**2 for over, one in of_pairs.items()
        }
        variances[frozenset(names)] = np.asarray(table.free / table.cells * (joint.noise_stddev * stddev) ** 2)
        yield NoisyTable(names, merges, counts, np.sqrt(sum(variances.values())), variances=variances)


def _of_pairs(
    table: JointTable, moments: Residuals, one_way: Floats, pairs: Floats
) -> tuple[Floats, dict[tuple[int, ...], Floats]]:
    """Return the counts of a joint table as its pairs give them, without interactions, and their variances by axes.

    Of each column with m groups of n cells together, let Z = (I - J / m) G C: cells are put together in groups, and
    what all groups or all cells share is taken away; and e be how far each group's number of cells is from the mean, as
    a share of it. With N records, first moments w and residuals R, the sums over columns and over pairs,

        M count = N (1 + sum e_i + sum e_i e_j) + sum m_i Z_i w_i (1 + sum_(j != i) e_j) + sum m_i m_j Z_i R_ij Z_j',

    are of independent noise: rows of Z add up to zero, and so w in them says nothing of N. N is the mean of what the
    columns add up to, weighed by the inverse of their numbers of cells. Units of the variances: noise of one step.
    Shapes: one_way [D], pairs [D, D] -> [m_1, m_2, ...] all.
    """
    partition, axes = moments.partition, range(len(table.columns))
    places = [slice(*partition.offsets[column : column + 2]) for column in table.columns]
    sizes = np.diff(partition.offsets)[list(table.columns)]
    step = partition.classes / moments.one_way**2
    indicators = [np.eye(groups)[:, group] for groups, group in zip(table.sizes, table.groups, strict=True)]
    contrasts = [groups * (each - each.mean(axis=0)) for groups, each in zip(table.sizes, indicators, strict=True)]
    uneven = [_along(each.mean(axis=1), axis, len(axes)) for axis, each in enumerate(contrasts)]
    maps = [each - each.mean(axis=1, keepdims=True) for each in contrasts]
    norms = [_along((each**2).sum(axis=1), axis, len(axes)) for axis, each in enumerate(maps)]

    share = 1 + sum(uneven) + sum(uneven[i] * uneven[j] for i, j in combinations(axes, 2))
    records = sum(one_way[place].sum() / size for place, size in zip(places, sizes, strict=True)) / (1 / sizes).sum()
    counts, variances = records * share, dict[tuple[int, ...], Floats]()
    variances[()] = step / (1 / sizes).sum() * share**2
    for i in axes:
        share = 1 + sum(uneven[j] for j in axes if j != i)
        counts = counts + _along(maps[i] @ one_way[places[i]], i, len(axes)) * share
        variances[i,] = step * norms[i] * share**2
    for i, j in combinations(axes, 2):
        residuals = maps[i] @ pairs[places[i], places[j]] @ maps[j].T
        counts = counts + np.expand_dims(residuals, [axis for axis in axes if axis not in (i, j)])
        stddev = moments.table_stddevs[1][table.columns[i], table.columns[j]]
        variances[i, j] = stddev**2 * norms[i] * norms[j]
    return counts / table.cells, {over: one / table.cells**2 for over, one in variances.items()}


def _along(values: Floats, axis: int, axes: int) -> Floats:
    """Lay values out along one of several axes."""
    return np.expand_dims(values, [other for other in range(axes) if other != axis])
