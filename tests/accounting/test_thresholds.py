"""The deltas of thresholds are taken off the delta at which all else is added up; nothing else changes."""

from decimal import Decimal

import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from dpmodels.accounting.calibration import gaussian_delta, gaussian_noise_multiplier
from dpmodels.accounting.composition import (
    pld_epsilon,
    remaining_epsilon,
    renyi_epsilon,
    spent_delta,
    spent_epsilon,
)
from dpmodels.accounting.events import GaussianEvent, ParallelEvent, PureEvent, ThresholdEvent, check_adjacency
from dpmodels.accounting.meaning import probability_beyond, right_guesses
from dpmodels.accounting.renyi import filter_cost
from dpmodels.accounting.tally import Tally
from dpmodels.errors import InvalidArgument
from dpmodels.privacy import Adjacency, PrivacyBudget
from tests.kit.errors import refused

GAUSS, PURE = GaussianEvent(noise_multiplier=20.0), PureEvent(epsilon=0.25)
HALF = ThresholdEvent(delta=2.0**-21)  # of which decimals have every digit
DELTA = Decimal(2) ** -20
REST = Decimal(2) ** -21


@pytest.mark.parametrize("events", [[GAUSS], [PURE], [GAUSS, PURE]])
def test_the_rest_is_added_up_at_what_is_left_of_delta(events):
    for price in (spent_epsilon, renyi_epsilon, pld_epsilon):
        assert price([*events, HALF], DELTA) == price(events, REST)
    assert spent_epsilon([*events, HALF, HALF], Decimal(2) ** -19) == spent_epsilon(events, DELTA)


def test_where_nothing_is_left_only_pure_releases_have_a_price():
    assert spent_epsilon([PURE, HALF], REST) == Decimal("0.25")
    assert spent_epsilon([GAUSS, HALF], REST).is_infinite()
    assert spent_epsilon([PURE, HALF, HALF], REST).is_infinite()
    assert spent_epsilon([HALF], Decimal(0)).is_infinite()
    assert spent_epsilon([HALF], DELTA) == 0
    assert remaining_epsilon([HALF, HALF], Decimal(1), REST) == 0


def test_dp_accounting_finds_no_more():
    threshold = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(0.0, HALF.delta))
    both = pld.from_gaussian_mechanism(GAUSS.noise_multiplier).compose(threshold)
    true = both.get_epsilon_for_delta(float(DELTA))
    ours = float(spent_epsilon([GAUSS, HALF], DELTA))
    assert true <= ours * 1.0001 and ours <= true * 1.001
    assert both.get_delta_for_epsilon(0.3) <= spent_delta([GAUSS, HALF], 0.3) * 1.0001


def test_a_threshold_that_is_chosen_after_a_release_costs_nearly_twice_its_delta():
    """Why a filter takes thresholds first: the analyst goes on with noise where the loss is large, and else with names.

    Both ways spend the account's delta and no more, and whoever follows one of them whatever is seen keeps it.
    """
    epsilon, delta = 1.0, 1e-6
    whole = gaussian_noise_multiplier(PrivacyBudget(epsilon=epsilon, delta=delta)) ** -2
    first, second = (0.65 * whole) ** 0.5, (0.35 * whole) ** 0.5
    left = delta - gaussian_delta(1 / first, epsilon)
    loss = np.linspace(first**2 / 2 - 12 * first, first**2 / 2 + 12 * first, 200_001)
    chance = stats.norm.pdf(loss, first**2 / 2, first) * (loss[1] - loss[0])
    room = epsilon - loss
    noise = stats.norm.cdf(second / 2 - room / second) - np.exp(room) * stats.norm.cdf(-second / 2 - room / second)
    beyond = np.maximum(0, -np.expm1(room))
    names = beyond + (1 - beyond) * left
    assert chance @ noise == pytest.approx(delta, rel=1e-3) and chance @ names == pytest.approx(delta, rel=1e-3)
    assert 1.9 * delta < chance @ np.maximum(noise, names) < 2 * delta


def test_each_threshold_lowers_what_is_left():
    left = [remaining_epsilon([GAUSS, *[HALF] * times], Decimal(1), Decimal("1e-5")) for times in range(4)]
    assert left == sorted(left, reverse=True) and left[0] > left[3] > 0


def test_a_tally_adds_and_takes_away_exactly_and_old_ones_stay_as_they_were_written():
    whole = Tally.of([GAUSS, HALF, PURE])
    assert whole - Tally.of([HALF]) == Tally.of([GAUSS, PURE])
    assert Tally.model_validate(whole.brief) == whole
    assert "delta" not in Tally.of([GAUSS, PURE]).brief
    assert whole.threshold_delta == REST and whole.pure_epsilon is None


def test_parallel_parts_cost_their_largest_delta():
    parts = ParallelEvent(by="night", events=(PURE, HALF, GAUSS))
    tally = Tally.of([parts])
    assert tally.delta == Tally.of([HALF]).delta and tally.besides == Tally.of(
        [ParallelEvent(by="n", events=(PURE, GAUSS, PURE))]
    )
    assert spent_epsilon([parts], DELTA) <= spent_epsilon([PURE, GAUSS, HALF], DELTA)


def test_a_filter_counts_deltas_beside_its_divergences():
    order = 32
    cost = filter_cost([GAUSS, HALF], order)
    assert cost.renyi == filter_cost([GAUSS], order).renyi and cost.delta == Tally.of([HALF]).delta
    assert spent_epsilon(cost, DELTA, order) == spent_epsilon(filter_cost([GAUSS], order), REST, order)
    assert spent_epsilon(cost, REST, order).is_infinite()


def test_what_it_means_counts_the_delta_in():
    assert probability_beyond([PURE, HALF], 0.25) == pytest.approx(HALF.delta)
    assert right_guesses([HALF], 1.0, 0.1) == pytest.approx((1 + HALF.delta) / 2)


def test_nothing_is_proved_where_units_are_replaced():
    with refused(InvalidArgument, "for a threshold", name="adjacency"):
        check_adjacency([HALF], Adjacency.REPLACE_ONE)
