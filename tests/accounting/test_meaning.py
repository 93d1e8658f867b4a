"""What a page says of a budget in odds and guesses is what dp-accounting and simulation say."""

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import norm

from dpmodels.accounting.calibration import gaussian_delta, gaussian_noise_multiplier
from dpmodels.accounting.composition import spent_delta, spent_epsilon
from dpmodels.accounting.events import (
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    SampledGaussianEvent,
)
from dpmodels.accounting.meaning import Meaning, probability_beyond
from dpmodels.privacy import PrivacyBudget, exact_decimal

SGD = SampledGaussianEvent(noise_multiplier=1.1, sampling_probability=0.02, steps=200)


@pytest.mark.parametrize(("multiplier", "epsilon"), [(0.5, 6.0), (1.0, 0.0), (1.0, 3.0), (4.0, 0.0), (40.0, 0.1)])
def test_the_delta_of_gaussian_noise_is_that_of_dp_accounting(multiplier: float, epsilon: float) -> None:
    theirs = pld.from_gaussian_mechanism(multiplier, value_discretization_interval=1e-4)
    ours = gaussian_delta(multiplier, epsilon)
    assert ours <= theirs.get_delta_for_epsilon(epsilon) + 1e-9  # theirs is pessimistic
    assert ours == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=2e-3, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_best_attacker_on_gaussian_noise_is_right_in_phi_of_half_mu(epsilon: float) -> None:
    z = gaussian_noise_multiplier(PrivacyBudget(epsilon=epsilon, delta=1e-5))
    found = Meaning.of([GaussianEvent(noise_multiplier=z)], epsilon, 1e-5)
    assert found.right_guesses == pytest.approx(norm.cdf(1 / z / 2), abs=1e-9)
    assert found.right_guesses < found.right_guesses_of_budget
    assert found.right_guesses_of_budget == pytest.approx((math.exp(epsilon) + 1e-5) / (1 + math.exp(epsilon)))
    rng = np.random.default_rng(7)
    guesses = rng.normal(0, z, 200_000) < 0.5  # the likelier of 0 and 1, where the truth is 0
    assert guesses.mean() == pytest.approx(found.right_guesses, abs=0.006)


@pytest.mark.parametrize("event", [GaussianEvent(noise_multiplier=2.5), SGD])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_the_loss_is_larger_than_epsilon_more_often_than_delta_and_never_more_than_is_said(
    event: Event, delta: float
) -> None:
    epsilon = float(spent_epsilon([event], exact_decimal(delta)))
    said = probability_beyond([event], epsilon)
    assert delta < said < 100 * delta
    mass = pld.from_gaussian_mechanism(2.5, value_discretization_interval=1e-4)
    if isinstance(event, GaussianEvent):
        dense = mass._pmf_remove.to_dense_pmf()
        losses = (dense._lower_loss + np.arange(dense.size)) * 1e-4
        assert said == pytest.approx(dense._probs[losses > epsilon].sum(), rel=1e-2)


def test_a_pure_release_is_never_beyond_and_its_attacker_flips_a_coin_that_is_turned() -> None:
    found = Meaning.of([PureEvent(epsilon=2.0)], 2.0, 0.0)
    assert found.beyond == 0 and found.odds_factor == pytest.approx(math.exp(2))
    assert found.right_guesses == pytest.approx(math.exp(2) / (1 + math.exp(2)))
    assert Meaning.of([PureEvent(epsilon=100)] * 9, 900, 0).facts()["odds_factor"] is None


def test_compositions_of_all_kinds_are_bounded_by_what_they_are_made_of() -> None:
    whole = ComposedEvent(events=(GaussianEvent(noise_multiplier=3), SGD, LaplaceEvent(noise_multiplier=9)))
    alone = max(spent_delta([part], 0.3) for part in whole.events)
    together = spent_delta([whole], 0.3)
    assert alone < together < sum(spent_delta([part], 0.1) for part in whole.events)
    epsilon = float(spent_epsilon([whole], exact_decimal(1e-5)))
    assert spent_delta([whole], epsilon) <= 1.01e-5
    assert spent_delta([], 0.0) == 0


def test_numbers_are_rounded_up_to_six_figures() -> None:
    facts = Meaning(odds_factor=2.718281828, beyond=1.23456789e-7, right_guesses=0.5, right_guesses_of_budget=1).facts()
    assert facts == {
        "odds_factor": 2.71829,
        "beyond": 1.23457e-7,
        "right_guesses": 0.5,
        "right_guesses_of_budget": 1.0,
    }
