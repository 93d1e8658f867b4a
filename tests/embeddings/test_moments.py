"""The contract of the moments: every record has exactly the bound's norm; the sum sees only the set of rows."""

import numpy as np
import pytest
import torch

from dpmodels.codec.encode import Codec
from dpmodels.embeddings.moments import Moments, band, pairs_within
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.summation import check_repeatable
from dpmodels.errors import Unsuitable
from dpmodels.privacy import Sensitive
from tests.kit.support import make_records, make_schema, make_table

WEIGHTS = [(5, 0), (1, 1), (3, 7), (70_000, 65_536)]
CONDITIONAL, WHOLE = (Partition.fine(make_schema(), 8, conditional=c) for c in (True, False))


def squared(vector: torch.Tensor) -> int:
    return sum(int(v) ** 2 for v in vector)


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize("partition", [CONDITIONAL, WHOLE], ids=["conditional", "whole"])
def test_every_record_reaches_the_bound_and_none_passes_it(partition, weights):
    embedding, records = Moments(partition, *weights, max_rows=1), make_records(200)
    norms = {squared(embedding.lattice_sum(records.take(slice(i, i + 1)))) for i in range(len(records))}
    assert norms == {embedding.squared_norm}
    assert (embedding.l2_sensitivity - 1) ** 2 < embedding.squared_norm <= embedding.l2_sensitivity**2
    assert Moments(partition, *weights, max_rows=3).l2_sensitivity == 3 * embedding.l2_sensitivity


@pytest.mark.parametrize("reach", [1, 2, 3, 9])
def test_a_column_is_paired_with_the_next_few_only(reach):
    whole, some = Moments(CONDITIONAL, 3, 7, 1), Moments(CONDITIONAL, 3, 7, 1, band(4, reach))
    records = make_records(100)
    assert {squared(some.lattice_sum(records.take(slice(i, i + 1)))) for i in range(50)} == {some.squared_norm}
    assert pairs_within(4, reach) == {1: 3, 2: 5}.get(reach, 6)
    all_pairs, pairs = (m.unpack(m.lattice_sum(records).numpy())[1] for m in (whole, some))
    column = np.repeat(np.arange(4), CONDITIONAL.sizes)
    near = np.abs(column[:, None] - column[None, :]) <= reach
    assert np.array_equal(pairs, all_pairs * near) and (reach >= 3 or not np.array_equal(pairs, all_pairs))


def test_a_user_with_equal_rows_moves_the_sum_by_the_whole_bound_of_the_user():
    records = make_records(1)
    one, three = (Moments(CONDITIONAL, 3, 7, max_rows=m) for m in (1, 3))
    rows = records.concat([records] * 3)
    assert squared(three.lattice_sum(rows)) == 9 * one.squared_norm <= three.l2_sensitivity**2


def test_the_moments_are_the_marginals_of_every_class():
    embedding, records = Moments(CONDITIONAL, 3, 7, max_rows=1), make_records(500)
    one_way, pairs = embedding.unpack(embedding.lattice_sum(records).numpy())
    sick = make_table(500)["sick"].to_numpy() == "yes"
    smoker, ward = make_table(500)["smoker"].to_numpy(), make_table(500)["ward"].to_numpy()
    offsets = CONDITIONAL.offsets  # age, ward, dose, smoker
    assert one_way[1, offsets[3] + 1] == (smoker & sick).sum()
    assert pairs[1, offsets[1], offsets[3] + 1] == ((ward == "north") & smoker & sick).sum()
    assert np.array_equal(pairs, pairs.transpose(0, 2, 1))
    assert {len(names) for names in embedding.coordinates().values()} == {embedding.dim}


def test_first_moments_alone_need_no_memory_for_pairs():
    one_way, pairs = Moments(CONDITIONAL, 3, 0, max_rows=1).unpack(np.arange(2 * sum(CONDITIONAL.sizes)))
    assert one_way.shape == (2, sum(CONDITIONAL.sizes)) and pairs.size == 0


def test_a_stream_that_can_be_read_once_is_refused():
    check_repeatable(Sensitive([make_records(3)]))
    with pytest.raises(Unsuitable, match="read twice"):
        check_repeatable(Sensitive(iter([make_records(3)])))


def test_merging_keeps_mass_apart_and_bounds_the_cells():
    fine = Partition.fine(make_schema(), 64)
    histograms = [np.zeros(size, dtype=np.int64) for size in fine.sizes]
    histograms[0][:] = 10
    histograms[0][20] = 1000  # an atom
    histograms[1][:] = [500, 2, -40]  # two rare wards
    merged = fine.merged(histograms, least=100, runs=8, most_cells=1000)
    age, ward, dose, _ = merged.merge
    assert np.all(np.diff(age) >= 0) and age.max() < 8
    assert (age == age[20]).sum() <= 20 and age[19] != age[20]
    assert ward.tolist() == [0, 1, 1]
    assert dose.max() == 2  # nothing but noise: one cell of values, zero and null keep their own
    tight = fine.merged(histograms, least=0, runs=64, most_cells=12)
    assert sum(tight.sizes) <= 12


@pytest.mark.parametrize("seed", range(5))
def test_merged_cells_never_exceed_what_was_allowed(seed):
    rng = np.random.default_rng(seed)
    fine = Partition.fine(make_schema(), 100)
    histograms = [rng.integers(-50, 1 + 10 ** rng.integers(1, 5), size) for size in fine.sizes]
    for most in (8, 13, 20, 50):
        merged = fine.merged(histograms, least=int(rng.integers(0, 200)), runs=32, most_cells=most)
        assert sum(merged.sizes) <= max(most, 9)  # one for values and two for zero and null of the dose
        assert merged.cells(make_records(50)).max(axis=0).max() < max(merged.sizes)


def test_cells_have_the_same_records_whatever_their_number():
    coarse, records = Partition.fine(make_schema(), 4), make_records(100)
    back = coarse.codec.from_cells(coarse.codec.to_cells(records), np.random.default_rng(0))
    assert np.array_equal(back.states, records.states)
    assert Codec(make_schema()).decode(back).schema == Codec(make_schema()).decode(records).schema
