"""Products of halves: every record moves the sum by one norm, counts of halves are unbiased, and tables follow."""

import numpy as np
import pytest

from dpmodels.audit.data import inserted
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.products import Products, halves_of
from dpmodels.methods.parts.marginals import moment_tables
from dpmodels.releases.steps import NoisySum
from tests.kit.neighbors import extremes, random_weights, squared
from tests.kit.support import make_records, make_schema

SCHEMA = make_schema()
CONDITIONAL, WHOLE = (Partition.fine(SCHEMA, 8, conditional=c) for c in (True, False))
ONE_CELL = CONDITIONAL.merged([np.zeros(size, dtype=np.int64) for size in CONDITIONAL.sizes], 10**9, 1, 100)
PARTITIONS = pytest.mark.parametrize("partition", [CONDITIONAL, WHOLE, ONE_CELL], ids=["by class", "whole", "one cell"])


def products(partition: Partition = CONDITIONAL, max_rows: int = 1, weights=None, seed: int = 0) -> Products:
    rng = np.random.default_rng(seed)
    halves = halves_of([rng.integers(-9, 99, size) for size in partition.sizes])
    return Products(partition, halves, 70_001, 1 << 20, max_rows, weights)


@PARTITIONS
@pytest.mark.parametrize("weighed", [False, True], ids=["all alike", "a workload"])
@pytest.mark.parametrize("seed", range(3))
def test_every_record_inserted_anywhere_moves_the_sum_by_one_norm(partition, weighed, seed):
    weights = random_weights(len(partition.sizes), seed) if weighed else None
    embedding, crowd = products(partition, 1, weights, seed), make_records(60)
    before, moved = embedding.lattice_sum(crowd).numpy(), set()
    for record in [*(make_records(20, seed=1).take(slice(i, i + 1)) for i in range(20)), *extremes()]:
        for place in (0, 30, 60):
            moved.add(squared(embedding.lattice_sum(inserted(crowd, record, place)).numpy() - before))
    assert moved == {embedding.squared_norm}
    assert (embedding.l2_sensitivity - 1) ** 2 < embedding.squared_norm <= embedding.l2_sensitivity**2
    assert products(partition, 3, weights, seed).l2_sensitivity == 3 * embedding.l2_sensitivity
    assert {len(names) for names in embedding.coordinates().values()} == {embedding.dim}


def test_columns_are_cut_where_the_counts_come_closest_to_half():
    halves = halves_of([np.array([5, 1, 4]), np.array([1, 1, 98]), np.array([-3, 0, 0]), np.array([7])])
    assert [half.tolist() for half in halves] == [[-1, 1, 1], [-1, -1, 1], [-1, 1, 1], [-1]]


@PARTITIONS
def test_without_noise_the_halves_of_two_columns_are_counted_as_they_are(partition):
    records, embedding = make_records(300), products(partition)
    plain = Moments(partition, 1, 1, 1)
    one_way, pairs = plain.unpack(plain.lattice_sum(records).numpy())
    vector = embedding.lattice_sum(records).numpy()
    assert np.array_equal(embedding.unpack_cells(vector), one_way)
    tables = [t for t in moment_tables(NoisySum(vector, 0.0, embedding)) if len(t.counts) == 2 == t.counts.ndim]
    halves = [half > 0 for half in embedding.halves]
    offsets, total = partition.offsets, pairs.sum(axis=0)
    assert len(embedding.pairs[0]) == len(offsets[1:-1]) * len(offsets[1:]) / 2
    for i, j in np.stack(embedding.pairs, axis=1).tolist():
        block = total[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]
        true = [[block[np.ix_(halves[i] == b, halves[j] == c)].sum() for c in (False, True)] for b in (False, True)]
        names = (partition.names[i], partition.names[j])
        (table,) = [t for t in tables if t.names == names]
        assert np.allclose(table.counts, true) and [len(c) for c in table.cells_of] == [
            len(m) for m in (partition.merge[i], partition.merge[j])
        ]


def test_the_counts_of_halves_have_the_noise_that_they_name():
    embedding, rng, errors = products(), np.random.default_rng(0), []
    records = make_records(300)
    exact = embedding.lattice_sum(records).numpy()
    true = [t for t in moment_tables(NoisySum(exact, 1e6, embedding)) if t.counts.shape == (2, 2)]
    for _ in range(100):
        noisy = exact + np.rint(rng.normal(0, 1e6, len(exact))).astype(np.int64)
        tables = [t for t in moment_tables(NoisySum(noisy, 1e6, embedding)) if t.counts.shape == (2, 2)]
        errors += [((t.counts - u.counts) / t.stddev).ravel() for t, u in zip(tables, true, strict=True)]
    found = float(np.mean(np.square(errors))) ** 0.5
    assert found == pytest.approx(1, rel=5 / (2 * 100 * len(embedding.pairs[0])) ** 0.5)
