"""How far every two columns together may be from the real table, as far as a release counted them together.

    groups   the cells of a column in four at most, of about the same released size; what is no value of a number
             column, such as null, in groups of their own where they are not few
    d        half of sum |released - synthetic| over the shares of two columns in groups
    e        half of sum E|noise| over the same shares
    e95      what half of sum |noise| over the same shares exceeds in one release of twenty

Privacy: post-processing of released counts, public noise scales and synthetic rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.embeddings.branch import BranchSum
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.products import Products
from dpmodels.pages.relations import GROUPS
from dpmodels.releases.steps import NoisySum
from dpmodels.report.pair import Grouped, Pair
from dpmodels.report.within import drawn

MOST_COLUMNS = 100
"""Columns of a table whose pairs are listed, the first ones."""
FEW = 0.05
"""Part of the records up to which exactly 0 or null are joined to the largest values."""
SIGNS = np.array([-1, 1])
"""The lower and the upper half of a column."""
Places = tuple[int, int]
"""The places of two columns in a report, the lesser first."""


def pairs_of(names: Sequence[str], sums: Sequence[NoisySum], synthetic: Sequence[Floats]) -> dict[Places, Pair]:
    """Return every two columns that were counted together, by their places in a report, in order.

    Shapes: ``synthetic`` one array a sum, the same sum over the synthetic rows.
    """
    place, pairs = {name: index for index, name in enumerate(names[:MOST_COLUMNS])}, dict[Places, Pair]()
    for look, total in zip(sums, synthetic, strict=True):
        for pair in _counted(look, total, place):
            first, second = (place[one.name] for one in pair.columns)
            if first < second:
                pairs.setdefault((first, second), pair)
            else:
                pairs.setdefault((second, first), pair.turned)
    return dict(sorted(pairs.items()))


def pair_facts(pairs: Mapping[Places, Pair]) -> dict[str, Any]:
    """List the distances of all pairs, and the shares of those that a report draws."""
    distances = [[*places, *pair.figures] for places, pair in pairs.items()]
    return {
        "distances": distances,
        "tables": [{"columns": [*places], **pairs[places].facts()} for places in drawn(distances)],
    }


def _counted(look: NoisySum, total: Floats, place: Mapping[str, int]) -> Iterator[Pair]:
    """Yield every two columns with a place that a sum counted together; nothing where it counted none."""
    moments = pairing(look)
    if moments is None:
        return
    columns, released = len(moments.partition.sizes), look.vector.astype(np.float64)
    records, rows = (float(_cells(moments, each).sum()) / columns for each in (released, total))
    if records < 1 or rows <= 0:
        return
    shares = released / records, total / rows
    group = _groups(moments, _cells(moments, released).sum(axis=0))
    steps = look.noise_stddev
    yield from _with_classes(moments, shares, steps, records, group, place)
    if isinstance(moments, Products):
        yield from _halves(moments, shares, steps, records, group, place)
    else:
        yield from _blocks(moments, shares, steps, records, group, place)


def _together(moments: Moments, group: Whole, place: Mapping[str, int]) -> Iterator[list[int]]:
    """Yield the places in a partition of every two columns that are counted together, told apart, and in a report."""
    told_apart = [len(np.unique(part)) > 1 for part in np.split(group, moments.partition.offsets[1:-1])]
    listed = np.array([name in place for name in moments.partition.names]) & np.array(told_apart)
    yield from np.argwhere(np.triu(moments.paired) & listed[:, None] & listed).tolist()


def _grouped_columns(moments: Moments, group: Whole) -> list[Grouped]:
    """Return the columns of a partition with the groups of their fine cells. Shapes: ``group`` [D]."""
    partition = moments.partition
    parts = zip(partition.names, partition.columns, np.split(group, partition.offsets[1:-1]), strict=True)
    return [
        Grouped(name, column, (part - part.min())[merge])
        for (name, column, part), merge in zip(parts, partition.merge, strict=True)
    ]


def pairing(look: NoisySum) -> Moments | None:
    """Return the moments that a sum counts columns together by; None where it counts none."""
    moments = moments_of(look)
    return moments if moments is not None and moments.paired.any() else None


def moments_of(look: NoisySum) -> Moments | None:
    """Return the moments that a sum is of; None where it is of something else."""
    moments = look.embedding.rows if isinstance(look.embedding, BranchSum) else look.embedding
    return moments if isinstance(moments, Moments) else None


def _cells(moments: Moments, vector: Floats) -> Floats:
    """Return counts of cells by class, of shares as of whole numbers, since it is a linear map."""
    return moments.unpack_cells(vector)  # type: ignore[arg-type]


def _groups(moments: Moments, counts: Floats) -> Whole:
    """Number the groups of all columns one after another. Shapes: [D] both."""
    partition, first, numbers = moments.partition, 0, list[Whole]()
    parts = zip(partition.columns, partition.merge, np.split(counts, partition.offsets[1:-1]), strict=True)
    for column, merge, of_column in parts:
        group = groups_of(column, of_column, states_of(column, merge))
        numbers.append(first + group)
        first += int(group.max()) + 1
    return np.concatenate(numbers)


def states_of(column: Modelled, merge: Whole) -> int:
    """Return how many of the last cells of a column are of what is no value of it: exactly 0, null."""
    if not isinstance(column, Continuous):
        return 0
    return len(set(merge[column.cells :].tolist()) - set(merge[: column.cells].tolist()))


def groups_of(column: Modelled, counts: Floats, states: int = 0) -> Whole:
    """Return the group of each cell of a column: categories by themselves where there are few. Shapes: [cells] both."""
    few = not isinstance(column, Continuous) and len(counts) <= GROUPS
    return np.arange(len(counts)) if few else grouped(counts, states)


def grouped(counts: Floats, states: int = 0) -> Whole:
    """Join neighboring cells to groups of about the same size, by their noisy counts. Shapes: [cells] both.

    Categories stand in the order of the schema: sorted by noisy counts, those that noise made large would be together,
    and the noise of a group would be larger than the sum of that of its cells.

    Args:
        counts: of a column's cells.
        states: how many of the last cells are of no value. One that is not few is a group by itself, since nobody looks
            for it among the largest values.
    """
    sizes = np.maximum(counts, 0.0)
    alone = (np.arange(len(counts)) >= len(counts) - states) & (sizes > FEW * sizes.sum())
    joined = np.where(alone, 0.0, sizes)
    middles = np.cumsum(joined) - joined / 2
    quarter = np.minimum(GROUPS * middles / max(float(joined.sum()), 1e-300), GROUPS - 1).astype(np.int64)
    quarter[alone] = GROUPS + np.arange(int(alone.sum()))
    group: Whole = np.unique(quarter, return_inverse=True)[1]
    return group


def _blocks(
    moments: Moments, shares: Sequence[Floats], steps: float, records: float, group: Whole, place: Mapping[str, int]
) -> Iterator[Pair]:
    """Yield every two columns in groups, by sums of counts of pairs of cells."""
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(group.max() + 1))
    column = np.repeat(np.arange(len(moments.partition.sizes)), moments.partition.sizes)[order][starts]
    numbers = np.bincount(group)
    tables = [_joined(moments.unpack(each)[1].sum(axis=0), order, starts) for each in shares]  # type: ignore[arg-type]
    firsts = np.searchsorted(column, np.arange(len(moments.partition.sizes) + 1))
    spans = [slice(begin, end) for begin, end in pairwise(firsts.tolist())]
    columns = _grouped_columns(moments, group)
    for i, j in _together(moments, group, place):
        released, synthetic = (each[spans[i], spans[j]] for each in tables)
        covariance = (steps / records) ** 2 * moments.group_covariance(i, j, (numbers[spans[i]], numbers[spans[j]]))
        yield Pair((columns[i], columns[j]), released, synthetic, covariance, records)


def _joined(tables: Floats, order: Whole, starts: Whole) -> Floats:
    """Add a table of pairs of cells up by groups. Shapes: [D, D] -> [G, G]."""
    sums: Floats = np.add.reduceat(np.add.reduceat(tables[np.ix_(order, order)], starts, axis=0), starts, axis=1)
    return sums


def _halves(
    moments: Products, shares: Sequence[Floats], steps: float, records: float, group: Whole, place: Mapping[str, int]
) -> Iterator[Pair]:
    """Yield every two columns in halves, by one product of each.

    The noise of the product is the larger part of that of all four shares, which it moves together.
    """
    columns = _grouped_columns(moments, np.concatenate([(half > 0).astype(np.int64) for half in moments.halves]))
    parts = [
        (moments.unpack_products(each)[0], *moments.unpack_halves(each))  # type: ignore[arg-type]  # linear maps
        for each in shares
    ]
    stddevs = steps / records * moments.count_stddevs[0]
    for i, j in _together(moments, group, place):
        tables = [
            (n[i] + n[j]) / 2 + h[i] * SIGNS[:, None] + h[j] * SIGNS + products[i, j] * np.outer(SIGNS, SIGNS)
            for products, h, n in parts
        ]
        signs = np.outer(SIGNS, SIGNS).ravel()
        covariance = stddevs[i, j] ** 2 * np.outer(signs, signs)
        yield Pair((columns[i], columns[j]), tables[0] / 4, tables[1] / 4, covariance, records)


def _with_classes(
    moments: Moments, shares: Sequence[Floats], steps: float, records: float, group: Whole, place: Mapping[str, int]
) -> Iterator[Pair]:
    """Yield what first moments by class say of the target with every other column."""
    partition = moments.partition
    if partition.class_column is None:
        return
    name, column = list(partition.codec.columns.items())[partition.class_column]
    label = groups_of(column, _cells(moments, shares[0]).sum(axis=1))
    if name not in place or not label.any():
        return
    target, columns = Grouped(name, column, label), _grouped_columns(moments, group)
    one_way = [_cells(moments, each) for each in shares]
    for index, other in enumerate(columns):
        span = slice(*partition.offsets[index : index + 2])
        part = group[span] - group[span].min()
        if other.name in place and part.any():
            at = np.repeat(label, len(part)), np.tile(part, len(label))
            tables = np.zeros((3, int(label.max()) + 1, int(part.max()) + 1))
            for table, each in zip(tables, (*one_way, np.ones_like(one_way[0])), strict=True):
                np.add.at(table, at, each[:, span].ravel())
            covariance = (steps / records / moments.one_way) ** 2 * np.diag(tables[2].ravel())
            yield Pair((target, other), tables[0], tables[1], covariance, records)
