"""Scores and tables of families: their sensitivity is what is claimed, and they see only the set of rows."""

import numpy as np
import pytest

from dpmodels.codec.encode import Records
from dpmodels.embeddings.contingency import SCORE_STEP, SHARE_BITS, ContingencyTables, Family, Views
from dpmodels.embeddings.partition import Partition
from dpmodels.privacy import Sensitive
from tests.kit.support import make_records, make_schema

PARTITION = Partition.fine(make_schema(), 12, conditional=False)  # age, ward, dose, smoker, sick
COLUMNS = range(len(PARTITION.sizes))
FAMILIES = [Family(1, ()), Family(4, (3,)), Family(0, (9, 4)), Family(2, (1, 3, 6)), Family(3, (0, 4, 9))]


def views(seed: int = 0, groups: int = 3) -> Views:
    rng = np.random.default_rng(seed)
    return Views.of(PARTITION, [rng.integers(-5, 100, size) for size in PARTITION.sizes], groups)


def shares(rng: np.random.Generator, sharpness: float = 1.0) -> list[np.ndarray]:
    """Any shares that could have been released: from even ones to all on one cell."""
    exact = [rng.dirichlet(np.full(size, sharpness)) for size in PARTITION.sizes]
    edges = [np.rint(np.cumsum(p)[:-1] * 2**SHARE_BITS).astype(np.int64) for p in exact]
    return [np.diff(edge, prepend=0, append=2**SHARE_BITS) for edge in edges]


def scores(records: Records, released: list[np.ndarray]) -> np.ndarray:
    tables = ContingencyTables(views(), Sensitive([records]))
    return tables.transform_scores(FAMILIES, released, [0] * len(FAMILIES)).reveal()


def any_record(rng: np.random.Generator) -> Records:
    """A record of any cells whatever, likely or not."""
    cells = np.array([[rng.integers(size) for size in PARTITION.sizes]], dtype=np.int32)
    return PARTITION.codec.from_cells(cells, rng)


def test_no_record_moves_a_score_by_more_than_the_sensitivity_and_the_worst_one_reaches_it():
    """Search by hill climbing over data sets, released shares and the record that is added or removed."""
    largest = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows, sharpness = rng.integers(0, 40), [0.02, 0.2, 2.0][seed % 3]
        records, released = make_records(int(rows), seed), shares(rng, sharpness)
        base = scores(records, released)
        for _ in range(40):
            record = any_record(rng)
            moved = np.abs(scores(Records.concat([records, record]), released) - base)
            assert moved.max() <= SCORE_STEP
            if moved.max() >= largest:  # climb: keep the worst neighbour as the next data set
                largest, records = int(moved.max()), Records.concat([records, record])
                base = scores(records, released)
    assert largest > 0.99 * SCORE_STEP


def test_a_score_is_the_distance_from_independence_in_records_less_the_penalty():
    records = make_records(4000)
    cells = PARTITION.cells(records)
    released = [np.bincount(column, minlength=size) for column, size in zip(cells.T, PARTITION.sizes, strict=True)]
    steps = [np.diff(np.rint(np.cumsum(c) / c.sum() * 2**SHARE_BITS).astype(int), prepend=0) for c in released]
    tables = ContingencyTables(views(), Sensitive([records]))
    sick_of_smoker = Family(4, (6,))
    score, penalised = tables.transform_scores([sick_of_smoker] * 2, steps, [0, 1000]).reveal()
    joint = np.histogram2d(cells[:, 3], cells[:, 4], bins=[2, 2])[0] / len(cells)
    distance = np.abs(joint - np.outer(joint.sum(1), joint.sum(0))).sum() / 2
    assert score / SCORE_STEP == pytest.approx(len(cells) * distance, abs=1)
    assert penalised == score - 1000 and score > 500 * SCORE_STEP


@pytest.mark.parametrize("seed", range(3))
def test_a_record_moves_the_tables_by_one_cell_each(seed):
    steps = [3, 5, 7, 11, 13]
    records, record = make_records(50, seed), any_record(np.random.default_rng(seed))
    without, within = (
        ContingencyTables(views(), Sensitive(batches)).transform_tables(FAMILIES, steps).reveal()
        for batches in ([records], [records, record])
    )
    moved = within - without
    assert np.sort(moved[moved != 0]).tolist() == steps and int((moved**2).sum()) == sum(s * s for s in steps)
    assert len(moved) == sum(np.prod(views().shape(family)) for family in FAMILIES)


@pytest.mark.parametrize("chunks", [1, 7, 64])
def test_scores_and_tables_are_the_same_for_any_chunks_and_any_order(chunks):
    records, released = make_records(2000), shares(np.random.default_rng(0))
    shuffled = records.take(np.random.default_rng(chunks).permutation(len(records)))
    parts = [shuffled.take(index) for index in np.array_split(np.arange(len(records)), chunks)]
    tables = ContingencyTables(views(), Sensitive(parts))
    assert np.array_equal(tables.transform_scores(FAMILIES, released, [0] * 5).reveal(), scores(records, released))
    whole = ContingencyTables(views(), Sensitive([records])).transform_tables(FAMILIES, [1] * 5).reveal()
    assert np.array_equal(tables.transform_tables(FAMILIES, [1] * 5).reveal(), whole)


@pytest.mark.parametrize("groups", [2, 3, 6])
def test_coarse_cells_are_few_nested_ordered_and_keep_special_states_apart(groups):
    made = views(groups=groups)
    for column in COLUMNS:
        coarse, size = made.coarse[column], PARTITION.sizes[column]
        assert len(coarse) == size and set(coarse) == set(range(coarse.max() + 1))
    age, ward, dose = made.coarse[0], made.coarse[1], made.coarse[2]
    assert (np.diff(age) >= 0).all() and age.max() < groups and ward.max() < groups
    zero, null = dose[-2:]
    assert zero != null and not {zero, null} & set(dose[:-2])
    assert made.of_column(3) == (6,)  # two cells cannot be fewer
    assert made.of_column(0) == (0, 1)


def test_no_rows_at_all_give_zero_tables_and_scores():
    nothing = ContingencyTables(views(), Sensitive([make_records(5).take(slice(0, 0))]))
    assert not nothing.transform_tables(FAMILIES, [1] * 5).reveal().any()
    assert not nothing.transform_scores(FAMILIES, shares(np.random.default_rng(1)), [0] * 5).reveal().any()
