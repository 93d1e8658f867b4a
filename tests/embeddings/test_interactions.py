"""Interactions: every record has exactly the bound's norm, and what is read of them is what pairs leave open."""

from functools import reduce
from itertools import combinations, product

import numpy as np
import pytest

from dpmodels.audit.data import inserted
from dpmodels.embeddings.interactions import Interactions, JointTable, contrasts, turned
from dpmodels.embeddings.partition import Partition
from tests.kit.neighbors import extremes, squared
from tests.kit.support import make_records, make_schema

CONDITIONAL, WHOLE = (Partition.fine(make_schema(), 8, conditional=c) for c in (True, False))
NORMS = (1 << 22, 3 << 22)


def joint(partition: Partition, columns: tuple[int, ...], most: int) -> JointTable:
    """Return a joint table of about even groups."""
    even = [np.ones(size, dtype=np.int64) for size in partition.sizes]
    return JointTable(columns, tuple(partition.groups(column, even[column], most) for column in columns))


def interactions(partition: Partition = CONDITIONAL, max_rows: int = 1, most: int = 4) -> Interactions:
    several = (0, 1, 2, 3) if partition is CONDITIONAL else (0, 1, 2, 3, 4)
    return Interactions(partition, [joint(partition, (0, 1, 2), most), joint(partition, several, 3)], NORMS, max_rows)


def counted(table: JointTable, partition: Partition, records) -> np.ndarray:
    """Count the records in the cells of a joint table, one by one."""
    counts = np.zeros(table.sizes, dtype=np.int64)
    for row in partition.cells(records):
        counts[tuple(group[row[column]] for column, group in zip(table.columns, table.groups, strict=True))] += 1
    return counts


@pytest.mark.parametrize("partition", [CONDITIONAL, WHOLE], ids=["conditional", "whole"])
@pytest.mark.parametrize("most", [2, 3, 8])
def test_every_record_inserted_anywhere_moves_the_sum_by_one_norm(partition, most):
    embedding, crowd = interactions(partition, most=most), make_records(60)
    before, moved = embedding.lattice_sum(crowd).numpy(), set()
    for record in [*(make_records(40, seed=1).take(slice(i, i + 1)) for i in range(40)), *extremes()]:
        for place in (0, 30, 60):
            moved.add(squared(embedding.lattice_sum(inserted(crowd, record, place)).numpy() - before))
    assert moved == {embedding.squared_norm}
    assert 0.999 * sum(norm**2 for norm in NORMS) < embedding.squared_norm <= sum(norm**2 for norm in NORMS)
    assert (embedding.l2_sensitivity - 1) ** 2 < embedding.squared_norm <= embedding.l2_sensitivity**2
    assert interactions(partition, 3, most).l2_sensitivity == 3 * embedding.l2_sensitivity


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 2, 4), (2, 3, 2, 3), (2, 2, 2, 2, 2), (5, 1, 4)], ids=str)
def test_every_cell_has_the_norm_of_the_proof_and_no_table_of_pairs(sizes):
    table = JointTable(tuple(range(len(sizes))), tuple(np.arange(size) for size in sizes))
    for cell in product(*map(range, sizes)):
        one = np.zeros(sizes, dtype=np.int64)
        one[cell] = 1
        row = table.interactions(one)
        assert squared(row.ravel()) == table.cells * table.free
        for pair in combinations(range(len(sizes)), 2):
            assert not row.sum(axis=tuple(axis for axis in range(len(sizes)) if axis not in pair)).any()


def test_the_sum_is_the_projection_of_the_joint_counts():
    """M (1 - all that tables of two columns say), by least squares on their indicators."""
    embedding, records = interactions(), make_records(50)
    parts = np.split(embedding.lattice_sum(records).numpy(), np.cumsum([t.cells for t in embedding.tables])[:-1])
    for table, scale, part in zip(embedding.tables, embedding.scales, parts, strict=True):
        counts, places = counted(table, CONDITIONAL, records), np.indices(table.sizes).reshape(len(table.sizes), -1)
        indicators = [
            places[i] * table.sizes[j] + places[j] == number
            for i, j in combinations(range(len(table.sizes)), 2)
            for number in range(table.sizes[i] * table.sizes[j])
        ]
        pairs = np.stack(indicators, axis=1).astype(float)
        explained = pairs @ np.linalg.lstsq(pairs, counts.ravel().astype(float), rcond=None)[0]
        assert np.allclose(part, scale * table.cells * (counts.ravel() - explained), atol=1e-3 * scale)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16])
def test_contrasts_are_orthonormal_and_the_first_is_constant(size):
    basis = contrasts(size)
    assert np.allclose(basis.T @ basis, np.eye(size)) and np.allclose(basis[:, 0], size**-0.5)


def test_without_noise_the_coefficients_are_those_of_the_joint_counts():
    embedding, records = interactions(), make_records(300)
    for table, coefficients, _ in embedding.unpack(embedding.lattice_sum(records).numpy()):
        true = turned(counted(table, CONDITIONAL, records).astype(float), table.bases)
        assert np.allclose(coefficients, np.where(table.is_interaction, true, 0), atol=1e-6)
        assert int(table.is_interaction.sum()) == table.free


def test_coefficients_are_unbiased_and_their_error_bars_true():
    """A band of 10 percent accepts the stated deviations and excludes 2/3 and 3/2 of them."""
    embedding, rng, noise = interactions(), np.random.default_rng(0), 1e5
    exact = embedding.lattice_sum(make_records(300)).numpy()
    drawn = [exact + np.rint(rng.normal(0, noise, len(exact))).astype(np.int64) for _ in range(400)]
    for number, (table, true, stddev) in enumerate(embedding.unpack(exact)):
        errors = np.stack([embedding.unpack(vector)[number][1] - true for vector in drawn]) / noise
        assert errors[:, table.is_interaction].std() == pytest.approx(stddev, rel=0.1)
        assert not errors[:, ~table.is_interaction].any()
        assert abs(errors.mean(axis=0)).max() < 5 * stddev / 20
        cells = np.stack([turned(each, [basis.T for basis in table.bases]) for each in errors])
        assert cells.std() == pytest.approx(embedding.stddevs[number], rel=0.1)


def test_a_column_of_one_cell_has_no_interaction_and_adds_nothing():
    one_cell = JointTable((0, 1, 2), (np.zeros(8, dtype=np.int64), *(np.arange(CONDITIONAL.sizes[i]) for i in (1, 2))))
    embedding = Interactions(CONDITIONAL, [one_cell], NORMS[:1], 1)
    vector = embedding.lattice_sum(make_records(50)).numpy()
    assert not vector.any() and embedding.squared_norm == 0 and embedding.unpack(vector) == []
    assert embedding.stddevs == [0.0]


@pytest.mark.parametrize("most", [2, 3, 5])
def test_groups_are_runs_of_values_and_the_largest_categories(most):
    fine = Partition.fine(make_schema(), 8, conditional=True)
    for index, (column, size) in enumerate(zip(fine.columns, fine.sizes, strict=True)):
        counts = np.random.default_rng(index).integers(-5, 100, size)
        groups = fine.groups(index, counts, most)
        assert sorted(set(groups)) == list(range(groups.max() + 1))
        assert len(set(groups)) <= max(most, 1 + (column.states - 1 if column.continuous else 0))
        if column.continuous:
            assert (np.diff(groups[: column.cells]) >= 0).all()
        elif size > most:
            alone = [cell for cell in range(size) if (groups == groups[cell]).sum() == 1]
            assert set(np.argsort(-counts)[: most - 1]) <= set(alone)


def test_a_sum_travels_as_what_it_is_made_of():
    embedding = interactions()
    make, parts = embedding.__reduce__()
    records = make_records(30)
    assert np.array_equal(make(*parts).lattice_sum(records).numpy(), embedding.lattice_sum(records).numpy())
    assert len(embedding.coordinates()["cell"]) == embedding.dim == sum(t.cells for t in embedding.tables)


def test_an_exclusive_or_is_an_interaction_alone():
    table = JointTable((0, 1, 2), (np.arange(2),) * 3)
    sign = reduce(np.multiply.outer, [np.array([1, -1])] * 3)
    assert np.array_equal(table.interactions(5 + 5 * sign), 8 * 5 * sign)
