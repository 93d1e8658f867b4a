"""How far every two columns together may be from the real table, as far as a release counted them together.

    groups   the cells of a column in four at most, of about the same released size; what is no value of a number
             column, such as null, in groups of their own where they are not few. Neighbors in a list of categories may
             have nothing in common, so how much columns depend on each other is looked at by single categories too
    d        half of sum |released - synthetic| over the shares of two columns in groups
    e        half of sum E|noise| over the same shares
    e95      what half of sum |noise| over the same shares exceeds in one release of twenty

Privacy: post-processing of released counts, public noise scales and synthetic rows.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.embeddings.branch import BranchSum
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.products import Products
from dpmodels.methods.parts.marginals import Marginals
from dpmodels.pages.figures.relations import GROUPS, MOST_SINGLE
from dpmodels.releases.steps import NoisySum
from dpmodels.report.pair import Grouped, Pair
from dpmodels.report.within import asked_first, drawn

MOST_COLUMNS = 100
"""Columns of a table whose pairs are listed, the first ones."""
MOST_CATEGORIES = 24
"""Categories of a column that are looked at one by one; of more, noise would hide how they differ."""
FEW = 0.05
"""Part of the records up to which exactly 0 or null are joined to the largest values."""
SIGNS = np.array([-1, 1])
"""The lower and the upper half of a column."""
Groups = Sequence[Whole]
"""The group of each cell of two columns, numbered from 0 on."""
Places = tuple[int, int]
"""The places of two columns in a report, the lesser first."""


def pairs_of(
    names: Sequence[str], sums: Sequence[NoisySum], synthetic: Sequence[Floats], marginals: Marginals | None = None
) -> dict[Places, Pair]:
    """Return every two columns that were counted together, by their places in a report, in order.

    Shapes: ``synthetic`` one array a sum, the same sum over the synthetic rows.
    """
    place, pairs = {name: index for index, name in enumerate(names[:MOST_COLUMNS])}, dict[Places, Pair]()
    for look, total in zip(sums, synthetic, strict=True):
        for pair in _counted(look, total, place, marginals):
            first, second = (place[one.name] for one in pair.columns)
            if first < second:
                pairs.setdefault((first, second), pair)
            else:
                pairs.setdefault((second, first), pair.turned)
    return dict(sorted(pairs.items()))


def pair_facts(
    pairs: Mapping[Places, Pair],
    asked: Collection[Places] = (),
    target: int | None = None,
    ruled: Collection[Places] = (),
    dropped: Collection[int] = (),
) -> dict[str, Any]:
    """List the distances of all pairs, and the shares of those that a report draws: those ``asked`` for first."""
    distances = [[*places, *pair.figures] for places, pair in pairs.items()]
    places = drawn(distances, asked, target, ruled, dropped)
    return {
        "distances": distances,
        "tables": [{"columns": [*two], **pairs[two].facts(two in asked)} for two in places],
        **({"asked_for": number} if (number := asked_first(places, asked)) else {}),
    }


def _counted(look: NoisySum, total: Floats, place: Mapping[str, int], marginals: Marginals | None) -> Iterator[Pair]:
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
    yield from _with_classes(class_counts(moments, look, marginals), moments, shares[1], records, group, place)
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
        group = groups_of(column, of_column, states_of(column, merge), zero_of(column, merge))
        numbers.append(first + group)
        first += int(group.max()) + 1
    return np.concatenate(numbers)


def states_of(column: Modelled, merge: Whole) -> int:
    """Return how many of the last cells of a column are of what is no value of it: exactly 0, null."""
    if not isinstance(column, Continuous):
        return 0
    return len(set(merge[column.cells :].tolist()) - set(merge[: column.cells].tolist()))


def zero_of(column: Modelled, merge: Whole) -> int:
    """Return the cell of what is exactly 0, if that is below all values and told apart from them; else -1."""
    if not isinstance(column, Continuous) or column.zero_state is None or column.low < 0:
        return -1
    cell = int(merge[column.cells])
    return -1 if cell in merge[: column.cells] else cell


def groups_of(column: Modelled, counts: Floats, states: int = 0, zero: int = -1) -> Whole:
    """Return the group of each cell of a column: categories by themselves where there are few. Shapes: [cells] both."""
    few = not isinstance(column, Continuous) and len(counts) <= GROUPS
    return np.arange(len(counts)) if few else grouped(counts, states, zero)


def grouped(counts: Floats, states: int = 0, zero: int = -1) -> Whole:
    """Join neighboring cells to groups of about the same size, by their noisy counts. Shapes: [cells] both.

    Categories stand in the order of the schema: sorted by noisy counts, those that noise made large would be together,
    and the noise of a group would be larger than the sum of that of its cells.

    Args:
        counts: of a column's cells.
        states: how many of the last cells are of no value. One that is not few is a group by itself, since nobody looks
            for it among the largest values.
        zero: which of these stands before all values where it is few; -1 for none.
    """
    sizes = np.maximum(counts, 0.0)
    alone = (np.arange(len(counts)) >= len(counts) - states) & (sizes > FEW * sizes.sum())
    joined = np.where(alone, 0.0, sizes)
    first = joined[zero] if zero >= 0 else 0.0
    middles = np.cumsum(joined) - joined / 2 + np.where(np.arange(len(joined)) < zero, first, 0.0)
    middles[zero] = first / 2 if zero >= 0 else middles[zero]
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
    cells = [moments.unpack(each)[1].sum(axis=0) for each in shares]  # type: ignore[arg-type]
    tables = [_joined(each, order, starts) for each in cells]
    firsts = np.searchsorted(column, np.arange(len(moments.partition.sizes) + 1))
    spans = [slice(begin, end) for begin, end in pairwise(firsts.tolist())]
    columns, offsets, merge = _grouped_columns(moments, group), moments.partition.offsets, moments.partition.merge
    for i, j in _together(moments, group, place):
        released, synthetic = (each[spans[i], spans[j]] for each in tables)
        covariance = (steps / records) ** 2 * moments.group_covariance(i, j, (numbers[spans[i]], numbers[spans[j]]))
        of_both, two = [slice(*offsets[one : one + 2]) for one in (i, j)], (columns[i], columns[j])

        def in_groups(groups: Groups, places: Places = (i, j), spans: Sequence[slice] = of_both) -> Pair:
            shown = [_added(each[spans[0], spans[1]], groups) for each in cells]
            of_noise = moments.group_covariance(*places, (np.bincount(groups[0]), np.bincount(groups[1])))
            both = [_regrouped(columns[one], merge[one], group) for one, group in zip(places, groups, strict=True)]
            return Pair((both[0], both[1]), shown[0], shown[1], (steps / records) ** 2 * of_noise, records)

        joined = [group[span] - group[span].min() for span in of_both]
        finer, single = _apart([one.column for one in two], joined, in_groups)
        yield Pair(two, released, synthetic, covariance, records, finer, single)


def _apart(
    columns: Sequence[Modelled], groups: Groups, in_groups: Callable[[Groups], Pair]
) -> tuple[tuple[Pair, ...], Callable[[], Pair] | None]:
    """Return a pair with the categories of one column by themselves, and what makes it with those of both.

    None makes it of two columns of numbers.
    """
    both = [
        np.arange(len(group)) if not isinstance(column, Continuous) and len(group) <= MOST_SINGLE else group
        for column, group in zip(columns, groups, strict=True)
    ]
    has_categories = not all(isinstance(column, Continuous) for column in columns)
    return tuple(map(in_groups, _finer(columns, groups))), partial(in_groups, both) if has_categories else None


def _regrouped(column: Grouped, merge: Whole, group: Whole) -> Grouped:
    """Return a column in other groups of its cells, which join fine ones."""
    return replace(column, group=group[merge])


def _finer(columns: Sequence[Modelled], groups: Groups) -> Iterator[list[Whole]]:
    """Yield groups of the cells of two columns in which the categories of one stand by themselves, if some are joined.

    Shapes: ``groups`` [cells] of each column, numbered from 0 on.
    """
    for place, (column, group) in enumerate(zip(columns, groups, strict=True)):
        if not isinstance(column, Continuous) and group.max() + 1 < len(group) <= MOST_CATEGORIES:
            yield [np.arange(len(each)) if other == place else each for other, each in enumerate(groups)]


def _added(cells: Floats, groups: Sequence[Whole]) -> Floats:
    """Add a table of pairs of cells of two columns up by groups."""
    table = np.zeros([int(group.max()) + 1 for group in groups])
    np.add.at(table, (groups[0][:, None], groups[1][None]), cells)
    return table


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


def class_counts(moments: Moments, look: NoisySum, marginals: Marginals | None) -> list[tuple[Floats, Floats]]:
    """Return how many records of each class are in the cells of every column, and the noise_stddev of these counts.

    It is the average of all that was released of the same cells where ``marginals`` has it, and so what
    ``nacre.means`` and ``nacre.marginals`` take; otherwise what this sum has. Shapes: [classes, cells] both.
    """
    partition, counts = moments.partition, _cells(moments, look.vector.astype(np.float64))
    columns = marginals.columns if marginals and [*marginals.codec.columns] == [*partition.codec.columns] else {}
    tables = list[tuple[Floats, Floats]]()
    for index, (name, merge) in enumerate(zip(partition.names, partition.merge, strict=True)):
        one, once = columns.get(name), counts[:, slice(*partition.offsets[index : index + 2])]
        if one is None or one.by_class is None or not np.array_equal(one.cell_of, merge):
            tables.append((once, np.full(once.shape, look.noise_stddev / moments.one_way)))
        else:
            tables.append(one.by_class)
    return tables


def _with_classes(
    released: Sequence[tuple[Floats, Floats]],
    moments: Moments,
    synthetic: Floats,
    records: float,
    group: Whole,
    place: Mapping[str, int],
) -> Iterator[Pair]:
    """Yield what counts by class say of the target with every other column."""
    partition = moments.partition
    if partition.class_column is None:
        return
    name, column = list(partition.codec.columns.items())[partition.class_column]
    label = groups_of(column, np.sum([counts.sum(axis=1) for counts, _ in released], axis=0))
    if name not in place or not label.any():
        return
    target, columns, drawn = Grouped(name, column, label), _grouped_columns(moments, group), _cells(moments, synthetic)
    for index, (other, (counts, stddev)) in enumerate(zip(columns, released, strict=True)):
        span = slice(*partition.offsets[index : index + 2])
        if other.name not in place or len(np.unique(group[span])) < 2:
            continue
        cells = counts / records, drawn[:, span], (stddev / records) ** 2

        def in_groups(groups: Groups, cells: Sequence[Floats] = cells, place: int = index) -> Pair:
            shares, of_synthetic, variance = (_added(each, groups) for each in cells)
            both = replace(target, group=groups[0]), _regrouped(columns[place], partition.merge[place], groups[1])
            return Pair(both, shares, of_synthetic, np.diag(variance.ravel()), records)

        joined = [label, group[span] - group[span].min()]
        finer, single = _apart([column, other.column], joined, in_groups)
        yield replace(in_groups(joined), finer=finer, single=single)
