"""The calibration never spends more than was asked, and hardly less."""

import math
from decimal import Decimal

import dp_accounting
import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmodels.accounting.calibration import (
    gaussian_epsilon,
    gaussian_noise_multiplier,
    pure_epsilon,
)
from dpmodels.accounting.composition import pld_epsilon, spent_epsilon
from dpmodels.accounting.events import GaussianEvent, PureEvent
from dpmodels.accounting.remainder import sampled_noise_multiplier
from dpmodels.errors import InvalidArgument
from dpmodels.privacy import Adjacency, PrivacyBudget
from tests.kit.errors import refused

EPSILONS = (0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0)
DELTAS = (1e-3, 1e-5, 1e-9)
GRID = [(epsilon, delta) for epsilon in EPSILONS for delta in DELTAS]
CORNERS = [
    (epsilon, delta) for epsilon in (1e-3, 1 / 3, 30.0, 1e3) for delta in (5e-324, 1e-300, 1e-30, 0.4, 0.7, 0.999)
]

epsilons = st.floats(math.log(1e-3), math.log(1e3)).map(lambda log: min(max(math.exp(log), 1e-3), 1e3))
deltas = st.floats(-690, -0.01).map(math.exp)


def calibrate(epsilon: float, delta: float) -> float:
    return gaussian_noise_multiplier(PrivacyBudget(epsilon=epsilon, delta=delta))


def exact_delta(epsilon: float, noise_multiplier: float) -> mpmath.mpf:
    """Balle and Wang's theorem 8 as printed, with digits enough for any cancellation."""
    with mpmath.workdps(80):
        epsilon, mu = mpmath.mpf(epsilon), 1 / mpmath.mpf(noise_multiplier)
        cdf = [mpmath.erfc(-x / mpmath.sqrt(2)) / 2 for x in (mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu)]
        return cdf[0] - mpmath.exp(epsilon) * cdf[1]


@pytest.mark.parametrize(("epsilon", "delta"), GRID + CORNERS)
def test_one_sided_and_not_wasteful_by_the_exact_formula(epsilon: float, delta: float) -> None:
    noise_multiplier = calibrate(epsilon, delta)
    assert exact_delta(epsilon, noise_multiplier) <= delta
    assert exact_delta(epsilon, noise_multiplier / (1 + 1e-6)) > delta


@given(epsilons, deltas)
def test_one_sided_everywhere(epsilon: float, delta: float) -> None:
    noise_multiplier = calibrate(epsilon, delta)
    assert exact_delta(epsilon, noise_multiplier) <= delta
    assert exact_delta(epsilon, noise_multiplier / (1 + 1e-6)) > delta


@given(epsilons, deltas)
def test_a_calibrated_release_costs_at_most_its_target_on_the_ledgers_grid(epsilon: float, delta: float) -> None:
    event = GaussianEvent(noise_multiplier=calibrate(epsilon, delta))
    assert spent_epsilon([event], Decimal(repr(delta))) <= Decimal(repr(epsilon))


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_dp_accounting_agrees(epsilon: float, delta: float) -> None:
    noise_multiplier = calibrate(epsilon, delta)
    assert dp_accounting.get_epsilon_gaussian(noise_multiplier, delta) <= epsilon
    assert noise_multiplier == pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta), rel=1e-6)
    assert gaussian_epsilon(noise_multiplier, delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-5), (3.0, 1e-9), (10.0, 1e-5)])
def test_privacy_loss_distributions_agree_up_to_their_grid(epsilon: float, delta: float) -> None:
    by_pld = pld_epsilon([GaussianEvent(noise_multiplier=calibrate(epsilon, delta))], Decimal(repr(delta)))
    assert epsilon * (1 - 1e-6) <= float(by_pld) <= epsilon + 2e-4


@given(st.floats(0.02, 1e5), deltas)
def test_the_inverse_is_rounded_up(noise_multiplier: float, delta: float) -> None:
    epsilon = gaussian_epsilon(noise_multiplier, delta)
    assert exact_delta(epsilon, noise_multiplier) <= delta
    assert epsilon == 0 or exact_delta(epsilon * (1 - 1e-8) - 1e-12, noise_multiplier) > delta


def test_a_release_that_delta_alone_pays_for_costs_nothing() -> None:
    assert gaussian_epsilon(1e6, 1e-3) == 0
    assert gaussian_epsilon(1e6, 1e-9) > 0


@pytest.mark.parametrize("noise_multiplier", [0.0, -1.0, math.inf, math.nan])
def test_refuses_noise_that_is_none(noise_multiplier: float) -> None:
    with refused(InvalidArgument, name="noise_multiplier", value=noise_multiplier):
        gaussian_epsilon(noise_multiplier, 1e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-9, 1e-5), (1e9, 1e-5), (math.nan, 1e-5), (1.0, 0.0), (1.0, 1.0)])
def test_refuses_a_budget_that_was_never_validated(epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidArgument):
        gaussian_noise_multiplier(PrivacyBudget.model_construct(epsilon=epsilon, delta=delta))


@given(epsilons, st.integers(1, 1000))
def test_equal_pure_releases_share_an_epsilon_to_the_last_digit_and_never_pass_it(
    epsilon: float, releases: int
) -> None:
    budget = PrivacyBudget(epsilon=epsilon, delta=0)
    if budget.epsilon / releases < 1e-6 or budget.epsilon > 100:
        return
    exact = Decimal(repr(epsilon))
    spent = spent_epsilon([PureEvent(epsilon=pure_epsilon(budget, releases))] * releases, Decimal(0))
    assert exact * (1 - Decimal("1e-13")) - Decimal("1e-12") <= spent <= exact + Decimal("1e-12")
    if len(exact.as_tuple().digits) < 12:
        assert spent <= exact


@pytest.mark.parametrize("calibrated", [gaussian_noise_multiplier, lambda b: sampled_noise_multiplier(b, [], 0.1, 10)])
def test_no_gaussian_keeps_a_delta_of_0(calibrated) -> None:
    with refused(InvalidArgument, "only pure releases", name="delta", value=0):
        calibrated(PrivacyBudget(epsilon=1.0, delta=0))


def test_dp_sgd_is_not_calibrated_under_replace_one() -> None:
    budget = PrivacyBudget(epsilon=1.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE)
    with refused(InvalidArgument, "for DP-SGD", name="adjacency"):
        sampled_noise_multiplier(budget, [], 0.1, 10)
