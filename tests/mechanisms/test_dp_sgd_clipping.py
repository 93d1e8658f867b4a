"""The lattice of DP-SGD: a record's integers are within the bound whatever its gradient is, and sums are exact."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.mechanisms.dp_sgd import clipping
from dpmodels.mechanisms.dp_sgd.clipping import FACTOR_BITS, REACH, lattice_factors, lattice_sum
from tests.kit.errors import refused

UNIT = 4**FACTOR_BITS
Terms = list[tuple[torch.Tensor, torch.Tensor]]


def make_terms(seed: int, records: int, draws: int, decades: float, sizes=((3, 4), (1, 2))) -> Terms:
    """Return random terms whose records and layers differ in size by many decades, some of them opposed or zero."""
    rng = np.random.default_rng(seed)

    def rows(width: int) -> torch.Tensor:
        spread = 10 ** rng.uniform(-decades, decades, (records, 1, 1))
        held = rng.normal(size=(records, draws, width)) * spread * rng.integers(0, 2, (records, draws, 1))
        held[:, draws // 2 :] *= -1
        return torch.from_numpy(held.astype(np.float32)).double()

    return [(rows(i), rows(o)) for i, o in sizes]


def copy(terms: Terms) -> Terms:
    return [(a.clone(), g.clone()) for a, g in terms]


def whole_gradients(factors: Terms) -> list[list[np.ndarray]]:
    """Return each record's gradient in Python's integers, layer by layer."""
    records = len(factors[0][0])
    whole = [[np.array(t.tolist()).astype(np.int64).astype(object) for t in pair] for pair in factors]
    return [[beta[i].T @ alpha[i] for alpha, beta in whole] for i in range(records)]


def squared_norm(gradient: list[np.ndarray]) -> int:
    return sum(int(entry) ** 2 for layer in gradient for entry in layer.ravel())


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**31),
    st.sampled_from([1, 2, 5, 16]),
    st.floats(0, 37),
    st.sampled_from([1e-300, 1e-6, 0.3, 1.0, 1e6]),
    st.floats(0.875, 1.0),
)
def test_the_integers_of_every_record_are_within_the_bound(seed, draws, decades, clip, bound):
    terms = make_terms(seed, 6, draws, decades)
    terms[0][0][1, 0, 0], terms[1][1][2, 0, 0] = float("inf"), float("nan")
    factors = lattice_factors(terms, torch.ones(6, dtype=torch.bool), clip, bound)
    gradients = whole_gradients(factors)
    for gradient in gradients:
        assert squared_norm(gradient) <= (bound * UNIT) ** 2
        assert max(abs(int(entry)) for layer in gradient for entry in layer.ravel()) <= REACH * UNIT
    assert squared_norm(gradients[1]) == squared_norm(gradients[2]) == 0
    for found, layer in zip(lattice_sum(factors), zip(*gradients, strict=True), strict=True):
        assert found.dtype == torch.int64 and (found.numpy() == sum(layer)).all()


@pytest.mark.parametrize("clip", [1e-3, 1.0, 1e3])
def test_the_integers_are_the_clipped_gradient(clip):
    terms = make_terms(1, 50, 3, 2.0)
    exact = [torch.cat([torch.einsum("lo,lj->oj", g[i], a[i]).flatten() for a, g in terms]) for i in range(50)]
    found = whole_gradients(lattice_factors(copy(terms), torch.ones(50, dtype=torch.bool), clip, 1.0))
    clipped = 0
    for gradient, lattice in zip(exact, found, strict=True):
        wanted = gradient / clip * min(1.0, clip * (1 - 2.0**-10) / max(float(gradient.norm()), 1e-300))
        got = np.concatenate([layer.astype(float).ravel() for layer in lattice]) / UNIT
        assert np.allclose(got, wanted.numpy(), atol=5e-5)
        clipped += float(gradient.norm()) > clip
    assert clipped or clip > 1


def test_a_record_that_rounding_puts_above_the_bound_adds_nothing(monkeypatch):
    monkeypatch.setattr(clipping, "TARGET", 1.01)  # as if rounding could add a hundredth
    terms = make_terms(2, 20, 2, 0.0)
    for a, g in terms:
        a[:], g[:] = 1e3, 1.0
        a[10:] = 1e-6
    gradients = whole_gradients(lattice_factors(terms, torch.ones(20, dtype=torch.bool), 1.0, 1.0))
    assert [squared_norm(gradient) > 0 for gradient in gradients] == [False] * 10 + [True] * 10


def test_a_record_that_is_not_usable_adds_nothing():
    usable = torch.arange(8) % 2 == 0
    factors = lattice_factors(make_terms(3, 8, 1, 0.0, ((3, 4),)), usable, 1.0, 1.0)
    assert not [i for i, gradient in enumerate(whole_gradients(factors)) if squared_norm(gradient) and not usable[i]]


def test_the_largest_block_is_added_up_exactly_and_a_larger_one_refused():
    """Every record at the very reach in one and the same entry: the sum is 2**53, which a float64 just holds."""
    alpha = torch.full((clipping.MOST_ROWS, 1, 1), 2.0**FACTOR_BITS, dtype=torch.float64)
    beta = REACH * alpha
    (total,) = lattice_sum([(alpha, beta)])
    assert int(total) == 2**53
    alpha[0], beta[0] = alpha[0] - 1, beta[0] - 1
    (total,) = lattice_sum([(alpha, beta)])
    assert int(total) == (clipping.MOST_ROWS - 1) * 32 * UNIT + (2**FACTOR_BITS - 1) * (32 * 2**FACTOR_BITS - 1)
    with pytest.raises(Unsuitable, match="at most 1024"):
        lattice_sum([(torch.cat([alpha, alpha]), torch.cat([beta, beta]))])


def test_more_draws_than_the_error_of_a_norm_allows_are_refused():
    with refused(InvalidArgument, name="draws", value=1025):
        lattice_factors(
            [(torch.ones(1, 1025, 1).double(), torch.ones(1, 1025, 1).double())], torch.ones(1).bool(), 1, 1
        )
