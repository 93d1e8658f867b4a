"""Mixes of events agree with dp-accounting, and are never below it."""

import math
import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.accounting.composition import pld_epsilon, renyi_epsilon, spent_epsilon
from dpmodels.accounting.events import (
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SampledGaussianEvent,
)
from dpmodels.accounting.renyi import divergence, filter_cost, filter_epsilon, filter_order
from dpmodels.accounting.tally import SCALE, Tally
from dpmodels.accounting.translation import to_dp_accounting

DELTA = Decimal("1e-5")
gaussians = st.floats(0.5, 50).map(lambda z: GaussianEvent(noise_multiplier=z))
laplaces = st.floats(0.5, 50).map(lambda z: LaplaceEvent(noise_multiplier=z))
sampled = st.builds(
    SampledGaussianEvent,
    noise_multiplier=st.floats(0.7, 3),
    sampling_probability=st.floats(1e-4, 0.05),
    steps=st.integers(1, 200),
)
mixes = st.tuples(st.lists(gaussians, max_size=4), st.lists(laplaces, max_size=2), st.lists(sampled, max_size=2)).map(
    lambda parts: [event for part in parts for event in part]
)


def theirs(events: list[Event], grid: float = 1e-4) -> float:
    import dp_accounting
    from dp_accounting import pld

    accountant = pld.PLDAccountant(
        dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=grid
    )
    accountant.compose(to_dp_accounting(ComposedEvent(events=tuple(events))))
    return float(accountant.get_epsilon(float(DELTA)))


@pytest.mark.nightly
@settings(max_examples=10)
@given(mixes.filter(lambda events: any(not isinstance(event, GaussianEvent) for event in events)))
def test_a_mix_agrees_with_dp_accounting_and_is_not_below_it(events: list[Event]) -> None:
    ours, reference = float(spent_epsilon(events, DELTA)), theirs(events)
    pure = float(spent_epsilon(events, Decimal(0)))  # the plain sum, where all are pure
    assert min(reference, pure) <= ours <= reference + 1e-6 * max(1.0, reference)


def large_mix(epsilon: float) -> list[Event]:
    from dpmodels.accounting.calibration import gaussian_noise_multiplier
    from dpmodels.privacy import PrivacyBudget

    half = gaussian_noise_multiplier(PrivacyBudget(epsilon=0.7 * epsilon, delta=1e-5))
    return [
        GaussianEvent(noise_multiplier=half),
        LaplaceEvent(noise_multiplier=max(0.01, 5 / epsilon)),
        SampledGaussianEvent(noise_multiplier=0.7, sampling_probability=0.05, steps=20),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [60])
def test_a_mix_of_large_epsilon_is_not_below_dp_accounting(epsilon: float) -> None:
    ours, reference = float(spent_epsilon(large_mix(epsilon), DELTA)), theirs(large_mix(epsilon))
    assert 0.5 * epsilon < reference <= ours <= reference * (1 + 1e-6)


# Their time and memory grow with epsilon / grid, so their grid is coarser here: their answer is then the higher one.
@pytest.mark.parametrize(("epsilon", "grid"), [(280, 2e-3), (560, 5e-3), (740, 5e-3)])
def test_a_mix_of_any_epsilon_agrees_with_dp_accounting(epsilon: float, grid: float) -> None:
    ours, reference = float(spent_epsilon(large_mix(epsilon), DELTA)), theirs(large_mix(epsilon), grid)
    assert 0.5 * epsilon < reference < 700
    assert ours == pytest.approx(reference, rel=1e-6)


def test_where_e_to_the_epsilon_overflows_dp_accounting_answers_on_its_grid_and_agrees_to_a_cell() -> None:
    events, grid = large_mix(1000), 1e-2
    ours, reference = float(spent_epsilon(events, DELTA)), theirs(events, grid)
    assert reference > 710 and abs(ours - reference) <= grid
    assert reference / grid == pytest.approx(round(reference / grid), abs=1e-6)  # so it says no more than its grid


@given(st.lists(gaussians, min_size=1, max_size=20))
def test_gaussians_agree_with_the_exact_formula_of_dp_accounting(events: list[Event]) -> None:
    import dp_accounting

    together = math.fsum(event.noise_multiplier**-2 for event in events) ** -0.5
    exact = dp_accounting.get_epsilon_gaussian(together, float(DELTA))
    assert exact * (1 - 1e-9) <= float(spent_epsilon(events, DELTA)) <= exact + 1e-6 * max(1.0, exact)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.floats(0.01, 3).map(lambda e: PureEvent(epsilon=e)), min_size=1, max_size=3), mixes)
def test_pure_events_cost_at_most_their_sum(pure: list[Event], others: list[Event]) -> None:
    alone = spent_epsilon(pure, DELTA)
    assert float(alone) <= sum(event.epsilon for event in pure) * (1 + 1e-6) + 1e-3
    assert spent_epsilon([*pure, *others[:1]], DELTA) >= alone * Decimal("0.9999999")


@pytest.mark.parametrize("order", [2, 3, 10, 64, 256])
@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(noise_multiplier=3.0),
        LaplaceEvent(noise_multiplier=2.0),
        LaplaceEvent(noise_multiplier=500.0),
        SampledGaussianEvent(noise_multiplier=1.1, sampling_probability=0.01),
        SampledGaussianEvent(noise_multiplier=5.0, sampling_probability=0.2),
    ],
)
def test_divergences_are_those_of_dp_accounting(event, order: int) -> None:
    from dp_accounting import rdp

    delta = 1e-30  # so small that the conversion does not clip, and can be undone
    accountant = rdp.RdpAccountant(orders=[order])
    accountant.compose(to_dp_accounting(event))
    epsilon = accountant.get_epsilon(delta)
    undone = epsilon - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)
    assert divergence(event, order) == pytest.approx(undone, rel=1e-6, abs=1e-10)


def test_a_pure_divergence_is_randomised_response() -> None:
    p = math.exp(0.7) / (1 + math.exp(0.7))
    by_hand = math.log(p**3 * (1 - p) ** -2 + (1 - p) ** 3 * p**-2) / 2
    assert divergence(PureEvent(epsilon=0.7), 3) == pytest.approx(by_hand)
    assert divergence(PureEvent(epsilon=0.7), 1024) == pytest.approx(0.7, rel=1e-2)


@given(st.lists(st.one_of(gaussians, laplaces, sampled), max_size=6), st.one_of(gaussians, laplaces, sampled))
def test_a_void_takes_back_exactly_what_its_charge_added(events: list[Event], further: Event) -> None:
    tally = Tally.of(events)
    assert tally + Tally.of([further]) - Tally.of([further]) == tally
    assert Tally.of([*events, further]) == Tally.of([further, *events])
    assert (filter_cost([*events, further], 5) - filter_cost([further], 5)) == filter_cost(events, 5)


@pytest.mark.parametrize(("cap", "least"), [("0.01", 0.8), ("0.1", 0.8), ("1", 0.8), ("10", 0.8), ("100", 0.7)])
def test_a_filter_leaves_most_of_what_exact_composition_leaves(cap: str, least: float) -> None:
    from dpmodels.accounting.composition import remaining_epsilon

    order = filter_order(Decimal(cap), DELTA)
    room = remaining_epsilon([], Decimal(cap), DELTA, order)
    assert least * float(cap) <= room < Decimal(cap)
    cost = filter_cost([GaussianEvent(noise_multiplier=5.0)], order).renyi / SCALE
    assert filter_epsilon(cost, order, 1e-5) >= float(spent_epsilon([GaussianEvent(noise_multiplier=5.0)], DELTA))


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0, 1000.0])
def test_the_time_is_bounded_for_any_epsilon(scale: float) -> None:
    from dpmodels.accounting.calibration import gaussian_noise_multiplier
    from dpmodels.privacy import PrivacyBudget

    z = gaussian_noise_multiplier(PrivacyBudget(epsilon=0.6 * scale, delta=1e-5))
    mixed = [
        GaussianEvent(noise_multiplier=z),
        LaplaceEvent(noise_multiplier=max(0.02, min(10 / scale, 1e5))),
        SampledGaussianEvent(noise_multiplier=2.0, sampling_probability=0.001, steps=1000),
    ]
    began = time.process_time()
    exact = spent_epsilon(mixed, DELTA)
    assert time.process_time() - began < 10
    assert 0.5 * scale < exact <= renyi_epsilon(mixed, DELTA)
    assert exact == pld_epsilon(mixed, DELTA)
