"""Composition is exact for Gaussians, never rounds down, and never forgives."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from dpmodels.accounting.calibration import gaussian_epsilon, gaussian_noise_multiplier
from dpmodels.accounting.composition import pld_epsilon, remaining_epsilon, renyi_epsilon, spent_epsilon
from dpmodels.accounting.events import ComposedEvent, Event, GaussianEvent, leaves
from dpmodels.accounting.translation import to_dp_accounting
from dpmodels.privacy import PrivacyBudget

DELTA = Decimal("1e-5")
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
gaussians = st.floats(0.05, 1e4).map(lambda z: GaussianEvent(noise_multiplier=z))
events = st.recursive(
    gaussians, lambda inner: st.lists(inner, min_size=1, max_size=4).map(lambda e: ComposedEvent(events=tuple(e)))
)


def gaussian(epsilon: float, delta: float = 1e-5) -> GaussianEvent:
    return GaussianEvent(noise_multiplier=gaussian_noise_multiplier(PrivacyBudget(epsilon=epsilon, delta=delta)))


@given(events)
def test_an_event_survives_json_bit_for_bit(event: Event) -> None:
    assert EVENT.validate_json(EVENT.dump_json(event)) == event


@pytest.mark.parametrize("z", [0.0, -1.0, float("nan"), float("inf"), 1e-9])
def test_an_event_without_noise_is_refused(z: float) -> None:
    with pytest.raises(ValidationError):
        GaussianEvent(noise_multiplier=z)


def test_an_empty_or_unknown_event_is_refused() -> None:
    with pytest.raises(ValidationError):
        ComposedEvent(events=())
    with pytest.raises(ValidationError):
        EVENT.validate_python({"kind": "none", "noise_multiplier": 1.0})


@given(events)
def test_dp_accounting_sees_the_same_releases(event: Event) -> None:
    def walk(twin: object) -> list[float]:
        parts = getattr(twin, "events", None)
        return [twin.noise_multiplier] if parts is None else [z for part in parts for z in walk(part)]

    assert walk(to_dp_accounting(event)) == [part.noise_multiplier for part in leaves([event])]


@given(st.lists(events, max_size=5), events)
def test_one_more_event_never_costs_less(before: list[Event], event: Event) -> None:
    assert spent_epsilon([*before, event], DELTA) >= spent_epsilon(before, DELTA)


@given(st.lists(events, min_size=1, max_size=5), st.randoms())
def test_neither_order_nor_nesting_changes_the_cost(some: list[Event], random: object) -> None:
    shuffled = list(some)
    random.shuffle(shuffled)
    assert spent_epsilon(some, DELTA) == spent_epsilon(shuffled, DELTA)
    assert spent_epsilon(some, DELTA) == spent_epsilon([ComposedEvent(events=tuple(some))], DELTA)


@given(gaussians, st.sampled_from([Decimal("1e-9"), Decimal("1e-5"), Decimal("1e-3")]))
def test_a_smaller_delta_never_costs_less(event: Event, delta: Decimal) -> None:
    assert spent_epsilon([event], delta / 2) >= spent_epsilon([event], delta)


@given(gaussians)
def test_the_decimal_is_not_below_the_float(event: Event) -> None:
    assert spent_epsilon([event], Decimal(2) ** -17) >= Decimal(gaussian_epsilon(event.noise_multiplier, 2.0**-17))


def test_nothing_costs_nothing() -> None:
    assert spent_epsilon([], DELTA) == pld_epsilon([], DELTA) == renyi_epsilon([], DELTA) == 0


def test_four_releases_cost_as_one_with_half_the_noise() -> None:
    four, one = [GaussianEvent(noise_multiplier=8.0)] * 4, [GaussianEvent(noise_multiplier=4.0)]
    assert spent_epsilon(four, DELTA) == spent_epsilon(one, DELTA)


def test_the_three_accountants_stand_in_order() -> None:
    some = [gaussian(0.3), gaussian(0.5, 1e-6), gaussian(1.0)]
    exact, by_pld, by_renyi = (account(some, DELTA) for account in (spent_epsilon, pld_epsilon, renyi_epsilon))
    assert exact <= by_pld <= exact + Decimal("1e-3")
    assert exact < by_renyi < Decimal("1.3") * exact


@settings(max_examples=20)
@given(st.lists(st.floats(1.0, 50.0).map(lambda z: GaussianEvent(noise_multiplier=z)), max_size=4))
def test_what_remains_is_what_would_be_accepted(some: list[Event]) -> None:
    cap = Decimal(3)
    remaining = remaining_epsilon(some, cap, DELTA)
    if remaining:
        assert spent_epsilon([*some, gaussian(float(remaining))], DELTA) <= cap
    else:
        assert spent_epsilon([*some, gaussian(1e-3)], DELTA) > cap
    if remaining < cap:
        assert spent_epsilon([*some, gaussian(float(max(remaining, Decimal("0.001"))) + 1e-6)], DELTA) > cap


def test_all_of_an_untouched_cap_remains() -> None:
    assert remaining_epsilon([], Decimal("1.5"), DELTA) == Decimal("1.5")
    assert remaining_epsilon([gaussian(1.5)], Decimal("1.5"), DELTA) == 0
    assert remaining_epsilon([gaussian(1.0)], Decimal("1.5"), DELTA) > Decimal("0.9")  # epsilons do not add up
