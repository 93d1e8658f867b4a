"""The attacks: what they find on leaks they must find, and what their bounds say when nothing leaks."""

import numpy as np
import pytest

from dpmodels.comparison.case import Skip
from dpmodels.comparison.frame import ParquetBatches
from dpmodels.comparison.membership import chance_of, epsilon_lower_bound, right_guesses
from dpmodels.comparison.release_attack import evaluate_release
from dpmodels.mechanisms import gaussian
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.release import Release
from tests.kit.support import make_records, make_schema, make_table, measured

MEAS = {"pearl": {"frequencies": {"count": 600}}, "nacre": {}}
MEMBER = np.repeat([True, False], 500)


def test_guessing_at_random_shows_no_epsilon() -> None:
    rng = np.random.default_rng(0)
    bounds = [epsilon_lower_bound(rng.random(1000), MEMBER, 0.0, seed) for seed in range(200)]
    assert np.mean(np.array(bounds) > 0) <= 0.1  # wrong at most one time in twenty, up to chance


def test_guesses_that_know_nothing_are_right_half_of_the_time_and_good_ones_more_often() -> None:
    rng = np.random.default_rng(0)
    known_nothing = [right_guesses(rng.random(1000), MEMBER, seed).mean() for seed in range(100)]
    assert abs(np.mean(known_nothing) - 0.5) < 0.01
    assert right_guesses(MEMBER * 1.0, MEMBER, 0).mean() == 1
    apart = [right_guesses(rng.normal(MEMBER * 1.0), MEMBER, seed).mean() for seed in range(20)]
    assert np.mean(apart) == pytest.approx(0.691, abs=0.02)  # the best test of means that are one deviation apart
    assert right_guesses(~MEMBER * 1.0, MEMBER, 0).mean() < 0.6  # a score has one direction, which is not turned round


def test_ties_are_no_knowledge() -> None:
    assert epsilon_lower_bound(np.zeros(1000), MEMBER, 0.0, 0) < 0.5


def test_randomised_response_is_bounded_by_its_epsilon_and_found() -> None:
    rng, epsilon = np.random.default_rng(1), 2.0
    told = rng.random((100, 1000)) < 1 / (1 + np.exp(-epsilon))
    bounds = [epsilon_lower_bound(np.where(right, MEMBER, ~MEMBER) * 1.0, MEMBER, 0.0, 0) for right in told]
    assert np.mean(np.array(bounds) > epsilon) <= 0.12
    assert np.median(bounds) > 1.2


def test_the_bound_is_a_binomial_tail_that_delta_makes_larger() -> None:
    from scipy.stats import binom

    share = np.exp(1) / (1 + np.exp(1))
    assert chance_of(80, 100, 500, 1.0, 0.0) == pytest.approx(sum(binom.pmf(k, 100, share) for k in range(80, 101)))
    assert chance_of(80, 100, 500, 1.0, 1e-5) > chance_of(80, 100, 500, 1.0, 0.0)
    assert chance_of(80, 100, 500, 1.0, 1e-5) - chance_of(80, 100, 500, 1.0, 0.0) < 0.01


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    import pyarrow.parquet as pq

    path = tmp_path_factory.mktemp("held") / "held.parquet"
    pq.write_table(make_table(300, seed=5), path)
    return path


def release_of(method: str, epsilon: float, folder) -> tuple[Release, list]:
    schema = make_schema()
    measurement = MEAS[method]
    system = create(method, measurement, {})
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5, unit=schema.unit)
    plan = system.plan(schema, budget)
    records = [make_records(600, seed=1)]
    release, _ = measured(system, folder / method, plan, *records)
    return release.value, records


@pytest.mark.parametrize("method", ["nacre", "pearl"])
def test_the_attack_on_the_released_vector_stays_below_the_charge(method, held, tmp_path) -> None:
    release, records = release_of(method, 1.0, tmp_path)
    rows = ParquetBatches(held, make_schema())
    found = evaluate_release(Sensitive(records), Sensitive(rows), release, 0).reveal()
    assert found["epsilon_lower_bound"] <= 1.0
    assert found["auroc_interval"][0] < found["auroc_of_the_best_attack_on_one_record"] + 0.05
    with pytest.raises(Skip, match="--test"):
        evaluate_release(Sensitive(records), None, release, 0)


@pytest.mark.parametrize("method", ["nacre", "pearl"])
def test_a_release_with_too_little_noise_is_found_out(method, held, tmp_path, monkeypatch) -> None:
    honest = gaussian.discrete_gaussian
    monkeypatch.setattr(gaussian, "_sampler", lambda values, stddev: honest(values, stddev / 300))
    release, records = release_of(method, 1.0, tmp_path)
    rows = ParquetBatches(held, make_schema())
    found = evaluate_release(Sensitive(records), Sensitive(rows), release, 0).reveal()
    assert found["auroc_interval"][0] > found["auroc_of_the_best_attack_on_one_record"] + 0.03
    assert found["epsilon_lower_bound"] > {"nacre": release.line.budget.epsilon, "pearl": 0.4}[method]
