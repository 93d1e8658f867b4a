"""The estimators of an audit: they keep to the truth, come near it, and see where what they assume is not so."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from dpmodels.audit.attack import DELTA, epsilon_of
from dpmodels.audit.lower_bound import (
    ALARM,
    assumption_free,
    ceilings,
    clopper_pearson,
    deviation_is,
    epsilon_assumption_free,
    epsilon_at,
    is_fine,
    noise_tests,
    one_run,
    parametric,
)

MU, STDDEV = 0.7, 1e6


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize(("hits", "tries"), [(0, 10), (3, 10), (10, 10), (480, 1000)])
def test_bounds_of_a_share_are_those_of_the_exact_test(hits, tries):
    low, high = clopper_pearson(hits, tries, 0.025)
    exact = stats.binomtest(hits, tries).proportion_ci(0.95, "exact")
    assert (low, high) == pytest.approx((exact.low, exact.high))


def test_without_assumptions_most_of_mu_is_found_and_never_more(rng):
    found = [assumption_free(rng.standard_normal(5000), rng.standard_normal(5000) + MU) for _ in range(40)]
    assert max(found) <= MU and min(found) > 0.5 * MU and np.median(found) > 0.7 * MU


def test_a_bound_exceeds_the_truth_as_seldom_as_it_says(rng):
    """At a level of one tenth, of 100 bounds no more may than chance lets in all but one of a million tests."""
    most = stats.binom(100, 0.1).isf(1e-6)
    free = sum(assumption_free(rng.standard_normal(400), rng.standard_normal(400) + MU, 0.1) > MU for _ in range(100))
    intervals = [parametric(STDDEV * rng.standard_normal((50, 8)), MU * STDDEV, 0.1) for _ in range(100)]
    below, above = sum(one.low > MU for one in intervals), sum(one.high < MU for one in intervals)
    assert max(free, below, above) <= most and min(below, above) > 0


def test_the_parametric_bound_recovers_nine_tenths_from_two_thousand_values(rng):
    found = parametric(STDDEV * rng.standard_normal((100, 20)), MU * STDDEV)
    assert 0.9 * MU < found.low < MU < found.high
    assert parametric(np.zeros((5, 5)), 1.0).low == np.inf


BROKEN = {
    "another law": lambda rng, shape: rng.laplace(0, 0.5**0.5, shape),
    "one noise for all coordinates": lambda rng, shape: np.repeat(rng.standard_normal((shape[0], 1)), shape[1], axis=1),
    "noise that is drawn twice": lambda rng, shape: np.repeat(
        rng.standard_normal((shape[0] // 2, shape[1])), 2, axis=0
    ),
    "noise without tails": lambda rng, shape: rng.standard_normal(shape).clip(-3, 3),
    "one coordinate with less noise": lambda rng, shape: (
        rng.standard_normal(shape) * np.linspace(0.5, 1.5, 20).clip(0, 1)
    ),
    "noise that knows the values": lambda rng, shape: rng.standard_normal(shape) + 0.3 * np.linspace(-1, 1, shape[1]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_noise_that_is_not_what_the_bound_assumes_is_seen(rng, name):
    values, shape = np.linspace(-1, 1, 20) * STDDEV, (400, 20)
    good = STDDEV * rng.standard_normal((2, *shape))
    assert noise_tests(*good, values).hold
    assert not noise_tests(STDDEV * BROKEN[name](rng, shape), STDDEV * BROKEN[name](rng, shape), values).hold


def test_less_noise_for_one_of_two_data_sets_is_seen_and_none_at_all(rng):
    one, other = STDDEV * rng.standard_normal((2, 400, 20))
    assert not noise_tests(one, 0.8 * other, np.zeros(20)).hold
    assert not noise_tests(one, 0 * other, np.zeros(20)).hold


@pytest.mark.parametrize("grid", [1, 2, 7, 1000])
def test_noise_on_a_grid_is_told_from_noise_of_all_whole_numbers(rng, grid):
    noise = np.rint(STDDEV / grid * rng.standard_normal((400, 20))) * grid
    assert is_fine(noise) == (grid == 1)


def test_noise_of_few_bits_is_not_fine_and_small_noise_is_not_asked_to_be(rng):
    assert not is_fine(np.float64(np.float16(10_000 * rng.standard_normal(8000))))
    assert is_fine(np.rint(rng.standard_normal(8000)))


@pytest.mark.parametrize("scale", [2 / 3, 0.9, 1.0, 1.1, 3 / 2])
def test_a_deviation_is_told_from_others(rng, scale):
    assert deviation_is(scale * STDDEV * rng.standard_normal(5000), STDDEV) == (scale == 1.0)


def test_epsilon_is_bounded_by_what_an_event_says(rng):
    """Randomized response at epsilon 1, with scores that are the answers."""
    truth = stats.bernoulli(1 / (1 + np.exp(-1)))
    said, other = 1.0 - truth.rvs(4000, random_state=rng), truth.rvs(4000, random_state=rng) + 0.0
    noisy = said + 1e-3 * rng.random(4000), other + 1e-3 * rng.random(4000)
    assert 0.8 < epsilon_assumption_free(*noisy, 1e-5) <= 1.0


def test_one_run_is_what_the_binomial_law_says_where_delta_is_nothing():
    found = one_run(200, 100, 100, 0.0, alpha=0.05)
    assert 1 / (1 + np.exp(-found)) == pytest.approx(0.05 ** (1 / 100))
    assert one_run(200, 100, 50, 1e-5) == 0 and one_run(200, 0, 0, 1e-5) == 0
    assert one_run(200, 100, 100, 1e-3, alpha=0.05) < found


@pytest.mark.parametrize(("guesses", "right", "delta"), [(10, 10, 1e-3), (40, 36, 1e-4), (40, 40, 1e-5)])
def test_one_run_is_the_epsilon_at_which_the_theorem_allows_just_so_many_right_guesses(guesses, right, delta):
    """Theorem 5.2 of Steinke and others, term by term: at the bound that is found, the chance is alpha."""
    canaries, alpha = 50, 0.05
    found = one_run(canaries, guesses, right, delta, alpha)
    chance = [stats.binom(guesses, 1 / (1 + np.exp(-found))).pmf(k) for k in range(guesses + 1)]
    extra = max(sum(chance[right - fewer : right]) / fewer for fewer in range(1, right + 1))
    assert found > 0 and sum(chance[right:]) + 2 * canaries * delta * extra == pytest.approx(alpha)


@pytest.fixture
def oracle() -> ModuleType:
    """Load the auditing module of jax_privacy alone, which needs no jax."""
    package = importlib.util.find_spec("jax_privacy")
    if package is None or not package.submodule_search_locations:
        pytest.skip("jax_privacy is not installed")
    place = Path(package.submodule_search_locations[0]) / "auditing.py"
    spec = importlib.util.spec_from_file_location("jax_privacy_auditing", place)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("delta", [1e-6, 1e-3])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.5])
def test_another_library_finds_the_same(rng, oracle, delta, threshold):
    out, held = rng.standard_normal(500), rng.standard_normal(500) + 1.5
    auditor, at = oracle.CanaryScoreAuditor(held, out), oracle.Explicit(threshold)
    theirs = auditor.epsilon_clopper_pearson(0.01, delta, threshold_strategy=at)
    assert epsilon_at(out, held, threshold, delta, 0.01) == pytest.approx(theirs, abs=1e-6)
    right, guesses = int((held >= threshold).sum()), int((held >= threshold).sum() + (out >= threshold).sum())
    theirs = auditor.epsilon_one_run(0.01, delta, threshold_strategy=at)
    assert one_run(1000, guesses, right, delta, 0.01) == pytest.approx(theirs, abs=1e-4)


def test_a_bound_reaches_its_ceiling_where_there_is_no_noise_and_passes_it_nowhere() -> None:
    nothing, all_of_it = np.zeros(301), np.ones(400)
    mu, epsilon = ceilings(301, 400, 1e-5)
    assert assumption_free(nothing, all_of_it) == pytest.approx(mu)
    assert epsilon_assumption_free(nothing, all_of_it, 1e-5) == pytest.approx(epsilon)
    rng = np.random.default_rng(0)
    for distance in (1.0, 4.0, 40.0):
        noisy = rng.standard_normal(301), rng.standard_normal(400) + distance
        assert assumption_free(*noisy) <= mu * (1 + 1e-9) and epsilon_assumption_free(*noisy, 1e-5) <= epsilon * (
            1 + 1e-9
        )
    assert ceilings(10, 10)[0] < 1 < ceilings(100, 100)[0]


def test_the_attack_could_show_something() -> None:
    """At the delta of a plan its bound was 0 whatever was guessed."""
    member = np.arange(200) % 2 == 0
    found, most = epsilon_of(np.where(member, 1.0, -1.0), member, float(DELTA))
    assert found == most > 1 and one_run(200, 80, 80, 1e-5, ALARM) == 0
    assert epsilon_of(np.zeros(200), member, float(DELTA)) == (0.0, most)
