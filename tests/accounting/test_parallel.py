"""Parts in parallel cost the heaviest of them: never less, and never the sum."""

import itertools
import math
from decimal import Decimal

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from scipy import stats

from dpmodels.accounting.composition import renyi_epsilon, spent_epsilon
from dpmodels.accounting.events import (
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
    SampledGaussianEvent,
    leaves,
)
from dpmodels.accounting.renyi import filter_cost
from dpmodels.accounting.tally import MAX_KINDS, Tally
from dpmodels.accounting.translation import to_dp_accounting
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.privacy import Adjacency
from tests.kit.errors import refused

DELTA = Decimal("1e-5")
STEPS = SampledGaussianEvent(noise_multiplier=1.1, sampling_probability=0.01, steps=50)
KINDS: list[Event] = [
    GaussianEvent(noise_multiplier=4.0),
    LaplaceEvent(noise_multiplier=2.0),
    PureEvent(epsilon=0.7),
    STEPS,
    ComposedEvent(events=(PureEvent(epsilon=0.3), GaussianEvent(noise_multiplier=6.0))),
]


def parallel(*events: Event, by: str = "cluster") -> ParallelEvent:
    return ParallelEvent(by=by, events=events)


def spent(*events: Event, delta: Decimal = DELTA) -> float:
    return float(spent_epsilon(events, delta))


@pytest.mark.parametrize("event", KINDS)
def test_one_event_stands_for_any_number_of_parts_and_costs_what_one_does(event: Event) -> None:
    family = parallel(event, by="document")
    assert Tally.of([family]) == Tally.of([event]) == Tally.of([parallel(*[event] * 7)])
    assert filter_cost([family], 8) == filter_cost([event], 8)
    assert Tally.of([family, family]) == Tally.of([event, event])
    assert list(leaves([ComposedEvent(events=(family, event))])) == [family, *leaves([event])]


@pytest.mark.parametrize(
    ("heavy", "light"),
    [
        (GaussianEvent(noise_multiplier=2.0), GaussianEvent(noise_multiplier=3.0)),
        (LaplaceEvent(noise_multiplier=2.0), LaplaceEvent(noise_multiplier=3.0)),
        (PureEvent(epsilon=0.5), PureEvent(epsilon=0.2)),
        (STEPS, STEPS.model_copy(update={"noise_multiplier": 1.2})),
        (STEPS, STEPS.model_copy(update={"sampling_probability": 0.005, "steps": 40})),
        (ComposedEvent(events=(PureEvent(epsilon=0.5), STEPS)), PureEvent(epsilon=0.4)),
    ],
)
def test_parts_of_one_kind_cost_the_heavier_of_them(heavy: Event, light: Event) -> None:
    for order in ((heavy, light), (light, heavy)):
        assert Tally.of([parallel(*order)]) == Tally.of([heavy])
    assert spent(heavy) > spent(light)
    assert spent(parallel(heavy, light)) == spent(heavy) < spent(heavy, light)


def test_a_lighter_kind_is_not_left_out_where_there_is_more_of_it() -> None:
    many, few = [PureEvent(epsilon=0.2)] * 3, PureEvent(epsilon=0.5)
    mixed = parallel(ComposedEvent(events=tuple(many)), few)
    assert spent(mixed, delta=Decimal("1e-12")) == pytest.approx(0.6, abs=1e-3)
    assert spent(mixed) >= max(spent(*many), spent(few)) - 1e-6


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(KINDS, 2)))
@pytest.mark.parametrize("delta", ["1e-5", "0.01"])
@pytest.mark.nightly_if(
    "0.01-one5-*", "0.01-one7-*", *(f"1e-5-one{pair}-*" for pair in (0, 1, 2, 5, 7, 9)), "0.01-one9-*"
)  # beside the same pairs
def test_parts_that_differ_in_kind_cost_the_one_that_is_heaviest_at_that_delta(one: Event, other: Event, delta) -> None:
    alone = max(spent(one, delta=Decimal(delta)), spent(other, delta=Decimal(delta)))
    together = spent(parallel(one, other), delta=Decimal(delta))
    assert alone - 1e-6 <= together <= alone + 4e-4  # a few cells of the grid of privacy losses
    assert renyi_epsilon([parallel(one, other)], DELTA) >= max(renyi_epsilon([each], DELTA) for each in (one, other))


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(KINDS[:4], 2)))
@pytest.mark.nightly_if("one5-*", "one2-*", "one4-*")  # beside four other pairs
def test_repeated_and_beside_others_they_cost_at_least_every_choice_of_parts(one: Event, other: Event) -> None:
    beside, both = GaussianEvent(noise_multiplier=3.0), parallel(one, other)
    choices = [spent(*choice, beside) for choice in itertools.product((one, other), repeat=2)]
    assert max(choices) - 1e-6 <= spent(both, both, beside) <= 1.1 * max(choices)
    everything = spent(one, other, one, other, beside)
    assert spent(both, both, beside) < everything


def test_the_curve_is_the_largest_of_the_exact_ones_at_every_epsilon() -> None:
    """The pair of a Gaussian and a pure part, against formulas in closed form, not against distributions on a grid."""
    z, e = 4.0, 0.7
    for epsilon in (0.05, 0.2, 0.4, 0.6, 0.69):
        a, b = 0.5 / z - epsilon * z, -0.5 / z - epsilon * z
        gaussian = stats.norm.cdf(a) - math.exp(epsilon) * stats.norm.cdf(b)
        pure = (math.exp(e) - math.exp(epsilon)) / (1 + math.exp(e))
        delta = Decimal(max(gaussian, pure))
        assert spent(parallel(GaussianEvent(noise_multiplier=z), PureEvent(epsilon=e)), delta=delta) >= epsilon - 1e-9
        assert spent(parallel(GaussianEvent(noise_multiplier=z), PureEvent(epsilon=e)), delta=delta) <= epsilon + 4e-4


def test_a_filter_takes_the_heaviest_part_at_its_order() -> None:
    for order in (2, 8, 64):
        each = [filter_cost([event], order).renyi for event in KINDS]
        assert filter_cost([parallel(*KINDS)], order).renyi == max(each)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4), st.randoms())
def test_a_parallel_event_survives_json_and_its_parts_have_no_order(parts: list[Event], random) -> None:
    event, adapter = parallel(*parts), TypeAdapter(Event)
    assert adapter.validate_json(adapter.dump_json(event)) == event
    shuffled = list(parts)
    random.shuffle(shuffled)
    tally = Tally.of([event])
    assert tally == Tally.of([parallel(*shuffled)]) == Tally.model_validate_json(tally.model_dump_json())
    assert tally + Tally.of(KINDS) - tally == Tally.of(KINDS)


def test_parallel_events_nest() -> None:
    inner = parallel(KINDS[0], KINDS[2], by="document")
    assert Tally.of([parallel(inner, KINDS[0])]) == Tally.of([parallel(inner)]) or spent(parallel(inner, KINDS[0])) > 0
    assert spent(parallel(inner, KINDS[0])) == pytest.approx(spent(inner), abs=4e-4)


def test_parts_of_no_name_none_and_too_many_prices_are_refused() -> None:
    for words in ({"by": "", "events": (KINDS[0],)}, {"by": "cluster", "events": ()}):
        with pytest.raises(ValidationError):
            ParallelEvent.model_validate(words)
    many = [ComposedEvent(events=(PureEvent(epsilon=0.1 * n), GaussianEvent(noise_multiplier=n))) for n in range(1, 67)]
    with pytest.raises(Unsuitable, match=f"at most {MAX_KINDS}"):
        Tally.of([parallel(*many)])


RELATIONS = {
    Adjacency.ADD_OR_REMOVE_ONE: dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE,
    Adjacency.REPLACE_ONE: dp_accounting.NeighboringRelation.REPLACE_ONE,
}


def theirs(adjacency: Adjacency, *events: Event, delta: float = 1e-5) -> float:
    accountant = pld.PLDAccountant(RELATIONS[adjacency])
    for event in events:
        accountant.compose(to_dp_accounting(event, adjacency))
    return float(accountant.get_epsilon(delta))


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("events", [[PureEvent(epsilon=0.7)], [PureEvent(epsilon=0.1)] * 20, [KINDS[0]], KINDS[:3]])
def test_dp_accounting_prices_the_translated_events_as_we_do(adjacency: Adjacency, events: list[Event]) -> None:
    reference, ours = theirs(adjacency, *events), spent(*events)
    if adjacency == Adjacency.REPLACE_ONE and KINDS[1] in events:  # a Laplace event becomes a pure one
        assert ours <= reference <= spent(PureEvent(epsilon=0.5), *events[::2]) + 1e-3
    else:
        assert ours == pytest.approx(reference, abs=3e-3)


@pytest.mark.parametrize("epsilon", [0.01, 0.7, 4.0])
def test_the_twin_of_a_pure_event_is_randomized_response_exactly(epsilon: float) -> None:
    """Both twins, by the probabilities of their outcomes: the odds of the two answers differ by e^epsilon, no more."""
    twin = to_dp_accounting(PureEvent(epsilon=epsilon), Adjacency.REPLACE_ONE)
    lie = twin.noise_parameter / twin.num_buckets
    assert math.log((1 - lie) / lie) == pytest.approx(epsilon)
    twin = to_dp_accounting(PureEvent(epsilon=epsilon))
    x = np.arange(-150, 151)
    p, q = (np.exp(-twin.noise_parameter * np.abs(x - shift)) for shift in (0, twin.sensitivity))
    assert np.unique(np.round(np.log(p / q), 9)).tolist() == pytest.approx([-epsilon, epsilon])
    assert twin.sensitivity == 1 and 1 / (1 + math.exp(-epsilon)) == pytest.approx(1 - lie)  # the odds of x <= 0


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_parallel_parts_are_translated_to_their_heaviest_or_to_all_that_may_be(adjacency: Adjacency) -> None:
    heavy, light = PureEvent(epsilon=0.7), PureEvent(epsilon=0.5)
    assert to_dp_accounting(parallel(light, heavy, heavy), adjacency) == to_dp_accounting(heavy, adjacency)
    assert theirs(adjacency, parallel(heavy, KINDS[0])) >= spent(parallel(heavy, KINDS[0])) - 1e-3


def test_poisson_samples_are_refused_under_replace_one_wherever_they_hide() -> None:
    for event in (STEPS, ComposedEvent(events=(STEPS,)), parallel(KINDS[0], STEPS)):
        assert to_dp_accounting(event) is not None
        with refused(InvalidArgument, "for DP-SGD", name="adjacency"):
            to_dp_accounting(event, Adjacency.REPLACE_ONE)
