"""Residuals: every record has exactly the bound's norm, and what is read of them are counts, with true error bars."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from dpmodels.audit.data import inserted
from dpmodels.embeddings.moments import Moments, band
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.residuals import Residuals, centered, mix_of, scaled_to, squared_mix
from dpmodels.errors import Unsuitable
from tests.kit.neighbors import extremes, random_weights, squared
from tests.kit.support import make_records, make_schema

SCHEMA = make_schema()
CONDITIONAL, WHOLE = (Partition.fine(SCHEMA, 8, conditional=c) for c in (True, False))
ONE_CELL = CONDITIONAL.merged([np.zeros(size, dtype=np.int64) for size in CONDITIONAL.sizes], 10**9, 1, 100)
ONE_WAY, TWO_WAY = 70_001, 1 << 20
every_mix = pytest.mark.parametrize("mix", [(1, 0), (8, 3), (1, 5)], ids=str)


def residuals(
    partition: Partition = CONDITIONAL, mix=(8, 3), reach: int | None = None, max_rows: int = 1, weights=None
) -> Residuals:
    return Residuals(partition, ONE_WAY, TWO_WAY, max_rows, paired(partition, reach), mix, weights)


def paired(partition: Partition, reach: int | None) -> np.ndarray | None:
    return None if reach is None else band(len(partition.sizes), reach)


@every_mix
@pytest.mark.parametrize("partition", [CONDITIONAL, WHOLE, ONE_CELL], ids=["conditional", "whole", "single cells"])
@pytest.mark.parametrize("reach", [None, 1])
@pytest.mark.parametrize("weighed", [False, True], ids=["all alike", "a workload"])
def test_every_record_inserted_anywhere_moves_the_sum_by_one_norm(partition, mix, reach, weighed):
    weights = random_weights(len(partition.sizes)) if weighed else None
    embedding, crowd = residuals(partition, mix, reach, 1, weights), make_records(60)
    before, moved = embedding.lattice_sum(crowd).numpy(), set()
    for record in [*(make_records(40, seed=1).take(slice(i, i + 1)) for i in range(40)), *extremes()]:
        for place in (0, 30, 60):
            moved.add(squared(embedding.lattice_sum(inserted(crowd, record, place)).numpy() - before))
    assert moved == {embedding.squared_norm}
    assert (embedding.l2_sensitivity - 1) ** 2 < embedding.squared_norm <= embedding.l2_sensitivity**2
    assert residuals(partition, mix, reach, 3, weights).l2_sensitivity == 3 * embedding.l2_sensitivity


@every_mix
def test_the_sum_is_that_of_a_loop_over_records_classes_and_pairs(mix):
    embedding, records, (alpha, beta) = residuals(mix=mix, reach=2), make_records(50), mix
    cells, label = CONDITIONAL.cells(records), records.labels(CONDITIONAL.class_column)
    sizes, expected = CONDITIONAL.sizes, np.zeros((2, embedding.dim // 2), dtype=np.int64)
    names = {(a, b): n for n, (a, b) in enumerate(zip(embedding.first, embedding.second, strict=True), embedding.cells)}
    for row, own in zip(cells, label, strict=True):
        expected[own, CONDITIONAL.offsets[:-1] + row] += ONE_WAY
        for i, j in combinations(range(4), 2):
            if j - i > 2:
                continue
            m, k = sizes[i], sizes[j]
            scale = int((TWO_WAY**2 / squared_mix(mix, 2)) ** 0.5 / (m * k))
            for x, y, block in product(range(m), range(k), range(2)):
                entry = (m * (x == row[i]) - 1) * (k * (y == row[j]) - 1)
                place = names[CONDITIONAL.offsets[i] + x, CONDITIONAL.offsets[j] + y]
                expected[block, place] += scale * entry * (alpha * (block == own) + beta)
    assert np.array_equal(embedding.lattice_sum(records).numpy(), expected.ravel())


@every_mix
@pytest.mark.parametrize("partition", [CONDITIONAL, WHOLE, ONE_CELL], ids=["conditional", "whole", "single cells"])
@pytest.mark.parametrize("reach", [None, 1])
def test_without_noise_the_counts_are_read_as_they_were(partition, mix, reach):
    records = make_records(300)
    found, true = (
        each.unpack(each.lattice_sum(records).numpy())
        for each in (residuals(partition, mix, reach), Moments(partition, 1, 1, 1, paired(partition, reach)))
    )
    assert np.array_equal(found[0], true[0])
    assert np.allclose(found[1], true[1], atol=1e-9)


@every_mix
def test_counts_are_unbiased_and_their_error_bars_true(mix):
    """A band of 10 percent accepts the stated deviations and excludes 2/3 and 3/2 of them."""
    embedding, rng, noise = residuals(mix=mix), np.random.default_rng(0), 1e5
    exact, offsets = embedding.lattice_sum(make_records(300)).numpy(), CONDITIONAL.offsets
    true = embedding.unpack(exact)[1]
    drawn = [exact + np.rint(rng.normal(0, noise, len(exact))).astype(np.int64) for _ in range(400)]
    errors = np.stack([embedding.unpack(vector)[1] - true for vector in drawn]) / noise
    residual = centered(errors.reshape(-1, *true.shape[1:]), offsets).reshape(errors.shape)
    for i, j in combinations(range(4), 2):
        table, left = (
            each[..., offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]] for each in (errors, residual)
        )
        free = (1 - 1 / CONDITIONAL.sizes[i]) * (1 - 1 / CONDITIONAL.sizes[j])
        for counts, tables, several in zip(
            embedding.count_stddevs, embedding.table_stddevs, (False, True), strict=True
        ):
            parts = [each.sum(axis=1) if several else each for each in (table, left)]
            assert parts[0].std() == pytest.approx(counts[i, j], rel=0.1)
            assert parts[1].std() == pytest.approx(tables[i, j] * free**0.5, rel=0.1)
            assert abs(parts[0].mean(axis=0)).max() < 5 * counts[i, j] / 20


@pytest.mark.parametrize("classes", [2, 3, 10, 26, 1000])
@pytest.mark.parametrize("share", [0.55, 0.75, 0.9, 0.99])
def test_the_sum_over_the_classes_takes_the_share_that_was_asked_for(classes, share):
    alpha, beta = mix_of(share, classes)
    taken = Fraction((alpha + beta * classes) ** 2, classes * squared_mix((alpha, beta), classes))
    assert float(taken) == pytest.approx(share, abs=0.04) and alpha <= 64
    assert mix_of(0.0, classes) == mix_of(share, 1) == (1, 0)


@pytest.mark.parametrize("seed", range(10))
def test_weights_are_scaled_to_the_norm_that_was_planned_and_never_beyond(seed):
    rng, two_way = np.random.default_rng(seed), 1 << 28
    histograms = [rng.integers(-50, 1 + 10 ** rng.integers(1, 5), size) for size in CONDITIONAL.sizes]
    partition = CONDITIONAL.merged(histograms, int(rng.integers(0, 2000)), 8, 100)
    one_way, planned = int(two_way * rng.uniform(0.1, 3)), int(two_way**2 * rng.uniform(3, 20))
    for weights in (None, random_weights(len(partition.sizes), seed)):
        steps = scaled_to(planned, partition, band(4, 3), one_way, two_way, weights)
        found = Residuals(partition, *steps, 1, None, mix_of(rng.uniform(0.5, 0.95), 2), weights).squared_norm
        assert 0.999 * planned < found <= planned
        assert steps[0] / steps[1] == pytest.approx(one_way / two_way, rel=1e-6)


def test_a_pair_of_weight_ten_has_a_tenth_of_the_noise_and_the_same_counts():
    weights = random_weights(4)
    plain, weighed = residuals(), residuals(weights=weights)
    records, apart = make_records(500), weights[np.triu_indices(4, 1)]
    for one, other in zip(plain.table_stddevs, weighed.table_stddevs, strict=True):
        assert np.allclose((one / other)[np.triu_indices(4, 1)], apart, rtol=1e-3)
    counts = [each.unpack(each.lattice_sum(records).numpy())[1] for each in (plain, weighed)]
    assert np.allclose(*counts)


def test_a_weight_that_is_no_whole_step_for_a_pair_is_refused():
    with pytest.raises(Unsuitable, match="fewer than pairs of so many cells need"):
        Residuals(CONDITIONAL, 3, 7, 1)
