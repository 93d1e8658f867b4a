"""How far every two columns together may be from the real table, as far as a release counted them together.

    groups   the cells of a column in four at most, of about the same released size
    d        half of sum |released - synthetic| over the 16 shares of two columns in groups
    e        half of sum E|noise| over the same shares
    e95      what half of sum |noise| over the same shares exceeds in one release of twenty

Privacy: post-processing of released counts, public noise scales and synthetic rows.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.columns import Continuous
from dpmodels.embeddings.branch import BranchSum
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.products import Products
from dpmodels.releases.steps import NoisySum
from dpmodels.report.fidelity import HALF_NORMAL, absolute_95
from dpmodels.report.within import DIGITS, pair_within

GROUPS = 4
"""Groups that the cells of a column are joined to, at most: finer, noise would be most of every distance."""
MOST_COLUMNS = 100
"""Columns of a table whose pairs are listed, the first ones."""
Distance = tuple[str, str, float, float, float]
"""Two columns; the distance e that noise alone puts between release and real table; d of the synthetic rows; e95."""


def pair_distances(names: Sequence[str], sums: Sequence[NoisySum], synthetic: Sequence[Floats]) -> list[list[Any]]:
    """List for every two columns that were counted together their places in a report and its distances.

    Shapes: ``synthetic`` one array a sum, the same sum over the synthetic rows.
    """
    place, listed = {name: index for index, name in enumerate(names[:MOST_COLUMNS])}, dict[tuple[int, int], list[Any]]()
    for look, total in zip(sums, synthetic, strict=True):
        for one, other, *distances in _distances(look, total):
            if one in place and other in place:
                first, second = sorted((place[one], place[other]))
                figures = [round(min(1.0, figure), DIGITS) for figure in distances]
                listed.setdefault((first, second), [first, second, *figures, pair_within(figures)])
    return [listed[pair] for pair in sorted(listed)]


def _distances(look: NoisySum, total: Floats) -> Iterator[Distance]:
    """Yield what a sum says of every two columns; nothing where it counted none together."""
    moments = _pairing(look)
    if moments is None:
        return
    columns, released = len(moments.partition.sizes), look.vector.astype(np.float64)
    records, rows = (float(_cells(moments, each).sum()) / columns for each in (released, total))
    if records < 1 or rows <= 0:
        return
    apart, noise = released / records - total / rows, look.noise_stddev / records
    group = _groups(moments, _cells(moments, released).sum(axis=0))
    yield from _with_classes(moments, released, apart, noise, group)
    if isinstance(moments, Products):
        distance, expected, likely = _halves(moments, apart, noise)
    else:
        distance, expected, likely = _blocks(moments, apart, noise, group)
    names, apart_in = moments.partition.names, _several(moments, group)
    for i, j in np.argwhere(np.triu(moments.paired) & apart_in[:, None] & apart_in).tolist():
        yield names[i], names[j], float(expected[i, j]), float(distance[i, j]), float(likely[i, j])


def groups_of(look: NoisySum) -> dict[str, Whole]:
    """Return the group of each fine cell of each column that a sum counts with others; nothing where it counts none."""
    moments = _pairing(look)
    if moments is None:
        return {}
    partition, counts = moments.partition, _cells(moments, look.vector.astype(np.float64))
    parts = np.split(_groups(moments, counts.sum(axis=0)), partition.offsets[1:-1])
    groups = {
        name: (part - part.min())[merge]
        for name, part, merge in zip(partition.names, parts, partition.merge, strict=True)
    }
    if partition.class_column is not None:
        groups[list(partition.codec.columns)[partition.class_column]] = grouped(counts.sum(axis=1), ordered=False)
    return groups


def _pairing(look: NoisySum) -> Moments | None:
    """Return the moments that a sum counts columns together by; None where it counts none."""
    moments = look.embedding.rows if isinstance(look.embedding, BranchSum) else look.embedding
    return moments if isinstance(moments, Moments) and moments.paired.any() else None


def _several(moments: Moments, group: Whole) -> NDArray[np.bool_]:
    """Tell of which columns several groups are told apart: of one group every distance is 0, and says nothing."""
    return np.array([len(np.unique(part)) > 1 for part in np.split(group, moments.partition.offsets[1:-1])])


def _cells(moments: Moments, vector: Floats) -> Floats:
    """Return counts of cells by class, of shares as of whole numbers, since it is a linear map."""
    return moments.unpack_cells(vector)  # type: ignore[arg-type]


def _groups(moments: Moments, counts: Floats) -> Whole:
    """Number the groups of all columns one after another; of values in order they are neighbors. Shapes: [D] both."""
    partition, first, numbers = moments.partition, 0, list[Whole]()
    for column, of_column in zip(partition.columns, np.split(counts, partition.offsets[1:-1]), strict=True):
        group = grouped(of_column, isinstance(column, Continuous))
        numbers.append(first + group)
        first += int(group.max()) + 1
    return np.concatenate(numbers)


def grouped(counts: Floats, ordered: bool) -> Whole:
    """Join cells to groups of about the same size, by their noisy counts. Shapes: [cells] both."""
    order = np.arange(len(counts)) if ordered else np.argsort(-counts, kind="stable")
    sizes = np.maximum(counts[order], 0.0)
    middles = np.cumsum(sizes) - sizes / 2
    quarter = np.minimum(GROUPS * middles / max(float(sizes.sum()), 1e-300), GROUPS - 1).astype(np.int64)
    group = np.empty(len(counts), dtype=np.int64)
    group[order] = np.unique(quarter, return_inverse=True)[1]
    return group


def _blocks(moments: Moments, apart: Floats, noise: float, group: Whole) -> tuple[Floats, Floats, Floats]:
    """Return the distances d, e and e95 of every two columns in groups. Shapes: [F, F] each."""
    tables = moments.unpack(apart)[1].sum(axis=0)  # type: ignore[arg-type]  # a linear map, of shares as of counts
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(group.max() + 1))
    joined = np.add.reduceat(np.add.reduceat(tables[np.ix_(order, order)], starts, axis=0), starts, axis=1)
    column = np.repeat(np.arange(len(moments.partition.sizes)), moments.partition.sizes)[order][starts]
    stddevs = noise * moments.block_stddevs(np.bincount(group), column)
    firsts = np.searchsorted(column, np.arange(len(moments.partition.sizes)))
    distance, total, squares = (
        np.add.reduceat(np.add.reduceat(each, firsts, axis=0), firsts, axis=1)
        for each in (np.abs(joined), stddevs, stddevs**2)
    )
    return distance / 2, HALF_NORMAL * total / 2, absolute_95(total, squares) / 2


def _halves(moments: Products, apart: Floats, noise: float) -> tuple[Floats, Floats, Floats]:
    """Return the same where every two columns have one product: of the four shares of their halves.

    The noise of the product is the larger part of that of all four, which it moves together.
    """
    products = moments.unpack_products(apart)[0]  # type: ignore[arg-type]  # linear as well
    margins, records = moments.unpack_halves(apart)  # type: ignore[arg-type]
    middle = (records[:, None] + records) / 2
    sides = [
        np.abs(middle + one * margins[:, None] + other * margins + one * other * products) / 4
        for one in (-1, 1)
        for other in (-1, 1)
    ]
    stddevs: Floats = noise * moments.count_stddevs[0] * 2
    return np.sum(sides, axis=0) / 2, HALF_NORMAL * stddevs, absolute_95(stddevs, stddevs**2)


def _with_classes(moments: Moments, released: Floats, apart: Floats, noise: float, group: Whole) -> Iterator[Distance]:
    """Yield what first moments by class say of the target with every other column."""
    partition = moments.partition
    if partition.class_column is None:
        return
    several = _several(moments, group)
    target, one_way = list(partition.codec.columns)[partition.class_column], _cells(moments, apart)
    label = grouped(_cells(moments, released).sum(axis=1), ordered=False)
    table, ones = np.zeros((2, GROUPS, int(group.max()) + 1))
    places = (np.repeat(label, len(group)), np.tile(group, len(label)))
    np.add.at(table, places, one_way.ravel())
    np.add.at(ones, places, 1)
    bounds = zip(partition.names, partition.offsets[:-1], partition.offsets[1:], several, strict=True)
    for name, begin, end, tells in bounds if label.any() else ():
        if not tells:
            continue
        mine = np.unique(group[begin:end])
        of_a_cell, counts = noise / moments.one_way, ones[:, mine]
        total, squares = of_a_cell * float(np.sqrt(counts).sum()), of_a_cell**2 * float(counts.sum())
        distance, likely = float(np.abs(table[:, mine]).sum()), float(absolute_95(total, squares))
        yield target, name, HALF_NORMAL * total / 2, distance / 2, likely / 2
