"""Dirichlet splits: whole, disjoint, even in number, and as uneven in class as asked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.dirichlet import dirichlet_shares, dirichlet_split
from dpmodels.errors import InvalidArgument


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    clients=st.integers(1, 12),
    alpha=st.sampled_from([1e-3, 0.01, 0.1, 1.0, 100.0]),
    seed=st.integers(0, 2**32),
)
def test_every_record_has_one_client_and_all_clients_have_as_many(counts, clients, alpha, seed):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)) * 3, counts))
    if clients > len(labels):
        return
    parts = dirichlet_split(labels, clients, alpha, seed)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))
    sizes = [len(part) for part in parts]
    assert len(parts) == clients and max(sizes) - min(sizes) <= 1
    again = dirichlet_split(labels, clients, alpha, seed)
    assert all(np.array_equal(part, other) for part, other in zip(parts, again, strict=True))


@pytest.mark.parametrize("alpha", [0.1, 1.0, 100.0])
def test_shares_are_standardized_in_rows_and_columns(alpha):
    classes = np.array([0.5, 0.3, 0.2])
    shares = dirichlet_shares(classes, 7, alpha, np.random.default_rng(0))
    assert (shares > 0).all()
    assert np.allclose(shares.sum(axis=0), classes, rtol=1e-4) and np.allclose(shares.sum(axis=1), 1 / 7)


def largest_share(alpha: float) -> float:
    """Return the mean share of a client's largest class, over splits of 4000 records of 10 classes for 20 clients."""
    labels = np.tile(np.arange(10), 400)
    splits = [dirichlet_split(labels, 20, alpha, seed) for seed in range(5)]
    return float(np.mean([np.bincount(labels[part]).max() / len(part) for parts in splits for part in parts]))


def test_a_small_alpha_gives_clients_one_class_and_a_large_one_all():
    found = [largest_share(alpha) for alpha in (0.01, 0.1, 1.0, 100.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.75 and found[-1] < 0.15


def test_the_seed_decides():
    labels = np.tile(np.arange(3), 30)
    first, second = (dirichlet_split(labels, 3, 1.0, seed) for seed in (1, 2))
    assert any(not np.array_equal(np.sort(a), np.sort(b)) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(("clients", "alpha"), [(0, 1.0), (5, 1.0), (2, 0.0), (2, float("nan")), (2, float("inf"))])
def test_what_cannot_be_split_is_refused(clients, alpha):
    with pytest.raises(InvalidArgument):
        dirichlet_split(np.zeros(4, dtype=np.int64), clients, alpha, 0)
