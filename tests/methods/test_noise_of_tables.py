"""Counts of a table have noise in common: sums of them are as uncertain as their table says, by many draws of noise."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np
import pytest

from dpmodels.embeddings.interactions import Interactions, JointTable
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.products import Products, halves_of
from dpmodels.embeddings.residuals import Residuals
from dpmodels.methods.parts.joint_tables import joint_counts
from dpmodels.methods.parts.marginals import NoisyTable, moment_tables
from dpmodels.releases.steps import NoisySum
from tests.kit.support import make_schema

DRAWS, NOISE = 1500, 1e5
BY_CLASS, WHOLE = (Partition.fine(make_schema(), 4, conditional=is_by_class) for is_by_class in (True, False))
Draw = Callable[[np.random.Generator], Iterator[NoisyTable]]


def noise(embedding: Moments | Interactions, rng: np.random.Generator) -> NoisySum:
    return NoisySum(np.rint(rng.normal(0, NOISE, embedding.dim)).astype(np.int64), NOISE, embedding)


def of_moments(embedding: Moments) -> Draw:
    return lambda rng: (table for table in moment_tables(noise(embedding, rng)) if len(table.names) > 1)


def of_joint(rng: np.random.Generator) -> Iterator[NoisyTable]:
    tables = [JointTable((0, 1, 2), tuple(np.arange(size) for size in WHOLE.sizes[:3]))]
    joint = Interactions(WHOLE, tables, [10**6], 1)
    yield from joint_counts(noise(joint, rng), noise(Residuals(WHOLE, 200, 40_000, 1), rng))


def products() -> Products:
    return Products(WHOLE, halves_of([np.arange(size) for size in WHOLE.sizes]), 70_001, 1 << 20, 1)


EVERY: dict[str, Draw] = {
    "by class": of_moments(Residuals(BY_CLASS, 300, 40_000, 1, mix=(8, 3))),
    "whole": of_moments(Residuals(WHOLE, 200, 40_000, 1)),
    "counts": of_moments(Moments(WHOLE, 3, 2, 1)),
    "halves": of_moments(products()),
    "joint": of_joint,
}


def sums(counts: np.ndarray, axes: Sequence[int], rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Weigh counts by numbers that add up to nothing over some axes; the sums, and of the weights their squares'."""
    weights = rng.normal(size=[counts.shape[axis + 1] for axis in axes])
    weights -= weights.mean()
    shape = [counts.shape[axis] if axis - 1 in axes else 1 for axis in range(1, counts.ndim)]
    total: np.ndarray = (counts * weights.reshape(shape)).sum(axis=tuple(axis + 1 for axis in axes))
    return total, float((weights**2).sum())


@pytest.mark.parametrize("name", EVERY)
def test_what_is_compared_and_what_is_added_up_have_the_noise_that_a_table_says(name: str) -> None:
    """A band of a tenth accepts the stated deviations, and excludes 2/3 and 3/2 of them."""
    rng = np.random.default_rng(1)
    drawn = [list(EVERY[name](rng)) for _ in range(DRAWS)]
    compared, added, alone = list[float](), list[float](), list[float]()
    for tables in zip(*drawn, strict=True):
        over = [one.over(one.names[1:]) if one.by_class else one for one in tables]
        for each in (tables, over):
            counts, table = np.stack([one.counts for one in each]), each[0]
            alone.append(float(np.mean(counts.var(axis=0) / np.square(table.stddev))))
            for axis in range(len(table.names)):
                along = (table.names[axis],)
                if counts.shape[axis + 1] > 1:
                    total, squares = sums(counts, (axis,), rng)
                    stated = np.broadcast_to(np.square(table.compared(along).stddev), table.counts.shape).mean(
                        axis=axis
                    )
                    compared.append(float(np.mean(total.var(axis=0) / squares / stated)))
                added.append(float(np.mean(counts.sum(axis=axis + 1).var(axis=0) / table.total_variance(along))))
    for ratios in (alone, compared, added):
        assert np.sqrt(ratios) == pytest.approx(1, abs=0.1)


def test_two_columns_that_are_added_up_share_what_is_of_neither() -> None:
    rng = np.random.default_rng(2)
    drawn = [next(of_joint(rng)) for _ in range(DRAWS)]
    for along in combinations(drawn[0].names, 2):
        axes = tuple(drawn[0].names.index(name) for name in along)
        totals = np.stack([one.counts.sum(axis=axes) for one in drawn])
        assert np.sqrt(totals.var(axis=0) / drawn[0].total_variance(along)) == pytest.approx(1, abs=0.1)


def test_noise_of_every_count_by_itself_stays_as_it_is() -> None:
    table = NoisyTable(("a", "b"), (np.arange(2), np.arange(3)), np.zeros((2, 3)), 3.0)
    assert table.compared(("b",)) is table and table.total_variance(("b",)).tolist() == [27, 27]
