"""What a report says of every two columns: its noise is the noise, and a generator that lost a pair is seen to."""

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.codec.encode import Codec
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.embeddings.products import Products, halves_of
from dpmodels.embeddings.residuals import Residuals, mix_of
from dpmodels.releases.steps import NoisySum
from dpmodels.report.pairs import GROUPS, grouped, groups_of, pair_distances
from dpmodels.report.within import pair_within
from tests.kit.every_kind import make
from tests.kit.support import make_records, make_schema

SCHEMA = make_schema()
ROWS, NOISE = 2000, 3.0e5


def embeddings() -> dict[str, Moments]:
    """Return embeddings that measure pairs, each with several cells a column."""
    fine = Partition.fine(SCHEMA, 12)
    halves = halves_of([np.ones(size, dtype=np.int64) for size in fine.sizes])
    return {
        "counts": Moments(fine, 2**14, 2**14, 1),
        "residuals": Residuals(fine, 2**14, 2**22, 1, None, mix_of(0.75, fine.classes)),
        "products": Products(fine, halves, 2**14, 2**14, 1),
    }


@pytest.mark.parametrize("kind", ["counts", "residuals", "products"])
def test_the_distance_to_be_expected_of_noise_is_the_one_that_noise_makes(kind: str) -> None:
    embedding, rng = embeddings()[kind], np.random.default_rng(0)
    exact = embedding.lattice_sum(make_records(ROWS)).numpy().astype(np.float64)
    ratios, likely = [], []
    for _ in range(60):
        noisy = exact + rng.normal(0, NOISE, len(exact))
        look = NoisySum(noisy.astype(np.int64), NOISE, embedding)
        listed = pair_distances(list(SCHEMA.modelled), [look], [exact])
        assert [pair[:2] for pair in listed] == [[i, j] for i in range(5) for j in range(i + 1, 5)]
        ratios.append([distance / noise for _, _, noise, distance, *_ in listed])
        likely.append([distance / noise for _, _, _, distance, noise, _ in listed])
    assert np.mean(ratios) == pytest.approx(1, abs=0.12) and np.mean(ratios, axis=0).min() > 0.6
    assert all(within == pair_within(figures) for _, _, *figures, within in listed)
    beyond = np.mean(np.array(likely) > 1)
    assert 0.005 < beyond < 0.09, beyond  # one in twenty, of 60 releases of ten pairs


@pytest.mark.parametrize("kind", ["counts", "residuals", "products"])
def test_two_columns_that_were_torn_apart_are_far_off_and_no_others(kind: str) -> None:
    embedding, real, torn = embeddings()[kind], make_records(ROWS), make_records(ROWS)
    order = np.random.default_rng(0).permutation(ROWS)
    names = list(SCHEMA.modelled)
    ward = names.index("ward")
    torn.states[:, ward], torn.values[:, ward] = torn.states[order, ward], torn.values[order, ward]
    look = NoisySum(embedding.lattice_sum(real).numpy(), 1.0, embedding)
    listed = pair_distances(names, [look], [embedding.lattice_sum(torn).numpy().astype(np.float64)])
    touched = {distance for first, second, _, distance, *_ in listed if ward in (first, second)}
    assert max(touched) > 0.01 and max({pair[3] for pair in listed} - touched) < 1e-6


def test_groups_are_neighbors_of_about_the_same_size_and_the_rarest_categories_share_one() -> None:
    counts = np.array([5.0, 1, 1, 1, 1, 1, -3, 1])
    assert grouped(counts, ordered=True).tolist() == [0, 1, 1, 1, 2, 2, 2, 2] or GROUPS != 4
    assert len(set(grouped(np.array([9.0, 1, 1, 1, 1, 50]), ordered=False).tolist())) <= GROUPS
    assert grouped(np.zeros(3), ordered=True).tolist() == [0, 0, 0]


def test_what_counts_no_pairs_or_has_no_rows_says_nothing() -> None:
    once = Moments(Partition.fine(SCHEMA, 12), 2**14, 0, 1)
    total = once.lattice_sum(make_records(50)).numpy()
    assert pair_distances(["age"], [NoisySum(total, 1.0, once)], [total.astype(np.float64)]) == []
    pairs = embeddings()["counts"]
    total = pairs.lattice_sum(make_records(50)).numpy()
    assert pair_distances(list(SCHEMA.modelled), [NoisySum(total, 1.0, pairs)], [np.zeros(len(total))]) == []


@pytest.mark.parametrize("kind", ["counts", "residuals", "products"])
def test_the_groups_that_a_distance_is_of_can_be_asked_for(kind: str) -> None:
    embedding = embeddings()[kind]
    look = NoisySum(embedding.lattice_sum(make_records(ROWS)).numpy(), 1.0, embedding)
    groups = groups_of(look)
    assert groups.keys() == set(SCHEMA.modelled)
    for name, group in groups.items():
        assert len(group) == embedding.partition.codec.columns[name].size and 1 <= len(set(group.tolist())) <= GROUPS
    once = Moments(Partition.fine(SCHEMA, 12), 2**14, 0, 1)
    assert groups_of(NoisySum(once.lattice_sum(make_records(50)).numpy(), 1.0, once)) == {}


def test_of_a_column_of_one_cell_no_pair_is_listed() -> None:
    schema = make(
        "name: x\ncolumns:\n  a: {type: boolean}\n  b: {type: boolean}\n  c: {type: integer, min: 7, max: 7}\n"
    )
    rows = Codec(schema).encode(pa.table({"a": [True, False], "b": [False, True], "c": [7, 7]}))
    embedding = Moments(Partition.fine(schema, 12), 2**14, 2**14, 1)
    exact = embedding.lattice_sum(rows).numpy()
    listed = pair_distances(list(schema.modelled), [NoisySum(exact, 1.0, embedding)], [exact.astype(np.float64)])
    assert [pair[:2] for pair in listed] == [[0, 1]]
