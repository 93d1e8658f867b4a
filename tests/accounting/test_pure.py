"""Pure epsilons add up exactly; with a delta the smaller of two true prices counts."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmodels.accounting.composition import pld_epsilon, remaining_epsilon, renyi_epsilon, spent_epsilon
from dpmodels.accounting.events import (
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
    SampledGaussianEvent,
)
from dpmodels.accounting.tally import Tally

NONE, DELTA = Decimal(0), Decimal("1e-5")
tenths = st.integers(1, 30).map(lambda n: PureEvent(epsilon=n / 10))
laplaces = st.integers(1, 40).map(lambda n: LaplaceEvent(noise_multiplier=n / 4))


def by_hand(event: Event) -> Fraction:
    return Fraction(repr(event.epsilon)) if isinstance(event, PureEvent) else 1 / Fraction(repr(event.noise_multiplier))


@given(st.lists(st.one_of(tenths, laplaces), min_size=1, max_size=12))
def test_at_delta_0_epsilons_add_up_to_the_last_digit(events: list[Event]) -> None:
    exact = sum(map(by_hand, events), Fraction(0))
    for spent in (spent_epsilon(events, NONE), spent_epsilon([ComposedEvent(events=tuple(events))], NONE)):
        assert 0 <= Fraction(spent) - exact < Fraction(1, 10**12)
    assert renyi_epsilon(events, NONE) == spent_epsilon(events, NONE)


@given(st.lists(st.lists(st.one_of(tenths, laplaces), min_size=1, max_size=4), min_size=1, max_size=4))
def test_parts_in_parallel_cost_the_largest_sum(parts: list[list[Event]]) -> None:
    family = ParallelEvent(by="document", events=tuple(ComposedEvent(events=tuple(part)) for part in parts))
    assert spent_epsilon([family], NONE) == max(spent_epsilon(part, NONE) for part in parts)


@pytest.mark.parametrize(
    "event", [GaussianEvent(noise_multiplier=1e12), SampledGaussianEvent(noise_multiplier=9, sampling_probability=1e-9)]
)
def test_what_is_not_pure_costs_an_infinite_epsilon_at_delta_0(event: Event) -> None:
    hidden = ParallelEvent(by="document", events=(PureEvent(epsilon=0.1), event))
    for events in ([event], [PureEvent(epsilon=0.1), event], [hidden], [ComposedEvent(events=(hidden,))]):
        assert spent_epsilon(events, NONE) == Decimal("Infinity")
        assert spent_epsilon(events, DELTA).is_finite()


def test_with_a_delta_few_releases_cost_their_sum_and_many_cost_less() -> None:
    few, many = [PureEvent(epsilon=0.1)] * 2, [PureEvent(epsilon=0.1)] * 200
    assert spent_epsilon(few, Decimal("1e-12")) == Decimal("0.2") < pld_epsilon(few, Decimal("1e-12"))
    assert spent_epsilon(many, DELTA) == pld_epsilon(many, DELTA) < Decimal(10)
    assert spent_epsilon(many, NONE) == 20
    assert spent_epsilon([], NONE) == 0 and str(spent_epsilon([], NONE)) == "0"


@settings(max_examples=15, deadline=None)
@given(st.lists(tenths, min_size=1, max_size=6))
def test_with_a_delta_the_smaller_price_counts(events: list[Event]) -> None:
    assert spent_epsilon(events, DELTA) == min(pld_epsilon(events, DELTA), spent_epsilon(events, NONE))


@given(st.lists(tenths, max_size=12))
def test_at_delta_0_what_remains_is_what_is_left(events: list[Event]) -> None:
    cap = Decimal("7.05")
    remaining, spent = remaining_epsilon(events, cap, NONE), spent_epsilon(events, NONE)
    assert remaining == max(cap - spent, 0)
    if remaining:
        assert spent_epsilon([*events, PureEvent(epsilon=float(remaining))], NONE) == cap
    assert remaining_epsilon([PureEvent(epsilon=0.9995)], Decimal(1), NONE) == 0  # less than any budget may be


def test_a_tally_of_pure_releases_knows_its_sum_and_another_has_none() -> None:
    assert Tally.of([LaplaceEvent(noise_multiplier=3.0)] * 3).pure_epsilon == 1
    assert Tally.of([GaussianEvent(noise_multiplier=3.0)]).pure_epsilon is None
    assert Tally().pure_epsilon == 0 and Tally(renyi=1).pure_epsilon is None
