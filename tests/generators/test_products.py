"""From noisy products to tables: what is shared stands out, noise alone does not, and tables have their margins."""

import numpy as np
import pytest

from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.products import Products, halves_of
from dpmodels.generators.products import Axis, covariances_of, low_rank, normal_table, product_tables
from tests.kit.support import make_schema

PARTITION = Partition.fine(make_schema(), 8)
COUNTS = [np.random.default_rng(index).integers(50, 200, size) for index, size in enumerate(PARTITION.sizes)]
MOMENTS = Products(PARTITION, halves_of(COUNTS), 1, 1, 1)


def symmetric(noise: float, size: int, seed: int = 0) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).normal(0, noise, (size, size)), 1)
    return upper + upper.T


def test_a_factor_stands_out_of_the_noise_of_all_pairs_and_noise_alone_leaves_nothing():
    loads = np.where(np.arange(80) < 40, 0.5, 0.0) * np.random.default_rng(1).choice([-1, 1], 80)
    truth, variances = np.outer(loads, loads), np.ones(80)
    np.fill_diagonal(truth, 0)
    found = low_rank(truth + symmetric(0.2, 80), variances, 0.2)
    np.fill_diagonal(found, 0)
    assert np.abs(found - truth).mean() < 0.4 * np.abs(symmetric(0.2, 80)).mean()
    assert np.linalg.norm(found) == pytest.approx(np.linalg.norm(truth), rel=0.15)
    assert not low_rank(symmetric(0.15, 80), 1e-9 * variances, 0.2).any()


@pytest.mark.parametrize("part", [-0.6, -0.2, 0.0, 0.3, 0.6])
@pytest.mark.parametrize("pair", [(0, 1), (0, 2), (1, 2), (2, 3)], ids=str)
def test_a_normal_table_has_the_margins_and_the_covariance_of_halves_that_it_is_asked_for(part, pair):
    one, other = (Axis.of(MOMENTS, index, COUNTS[index].astype(float)) for index in pair)
    up = [MOMENTS.halves[index] > 0 for index in pair]
    shares = [axis.shares[side].sum() for axis, side in zip((one, other), up, strict=True)]
    covariance = part * 1000 * min(share * (1 - share) for share in shares)
    table = normal_table(one, other, covariance, 1000.0)
    assert np.allclose(table.sum(axis=1), 1000 * one.shares, rtol=0.03) and table.min() > 0
    assert np.allclose(table.sum(axis=0), 1000 * other.shares, rtol=0.03)
    alone = 1000 * one.shares[up[0]].sum() * other.shares[up[1]].sum()
    assert table[np.ix_(*up)].sum() - alone == pytest.approx(covariance, abs=8)


def test_without_noise_products_say_the_covariance_within_classes_and_tables_keep_counts_by_class():
    rng, classes = np.random.default_rng(0), PARTITION.classes
    clean = np.stack([np.concatenate([1000 * c / c.sum() for c in COUNTS]) * (1 + label) for label in range(classes)])
    signs, starts = np.concatenate(MOMENTS.halves), PARTITION.offsets[:-1]
    margins = np.add.reduceat(clean * signs, starts, axis=1)
    alone = sum(np.outer(m, m) / (1000 * (1 + label)) for label, m in enumerate(margins))
    covariances = rng.uniform(60, 90, len(MOMENTS.pairs[0])) * rng.choice([-1, 1], len(MOMENTS.pairs[0]))
    sums = np.rint(alone[MOMENTS.pairs] + 4 * covariances).astype(np.int64)
    vector = np.concatenate([np.zeros(clean.size, dtype=np.int64), sums])
    found, _ = covariances_of(MOMENTS, vector, clean, 1e-3)
    assert np.allclose(found[MOMENTS.pairs], covariances, atol=0.5)
    tables, noise = product_tables(MOMENTS, vector, clean, 1e-3)
    assert noise > 0 and np.array_equal(tables, tables.transpose(0, 2, 1))
    offsets = PARTITION.offsets
    for label in range(classes):
        block = tables[label, offsets[0] : offsets[1], offsets[1] : offsets[2]]
        assert np.allclose(block.sum(axis=0), clean[label, offsets[1] : offsets[2]])
        assert not tables[label, offsets[0] : offsets[1], offsets[0] : offsets[1]].any()
