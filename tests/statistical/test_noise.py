"""The noise is there, at its true scale: the tests accept it and reject two thirds and three halves of it."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import leaves
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.mechanisms.gaussian import (
    SMOOTHING,
    discrete_gaussian,
    lattice_noise_stddev,
    measure_gaussian,
)
from dpmodels.methods.tables.pearl import Pearl
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from tests.kit.noise import ALPHA, has_stddev
from tests.kit.support import make_records, make_schema


@pytest.mark.parametrize("scale", [1.0, 2 / 3, 3 / 2])
def test_the_sampler_has_the_scale_it_is_asked_for(scale):
    noise = discrete_gaussian(np.zeros(5000, dtype=np.int64), 6.1e7)
    assert has_stddev(noise, 6.1e7 * scale) == (scale == 1.0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_release_has_the_noise_its_plan_is_charged_for(epsilon):
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5)
    line = Pearl().plan(make_schema(), budget)
    embedding, (event,) = Pearl().of(line), leaves([line.event])
    total = embedding.lattice_sum(make_records(50)).numpy()
    scale = dict(zip(("l2_sensitivity", "noise_multiplier"), line.noise(event, embedding.l2_sensitivity), strict=True))
    release = measure_gaussian(Sensitive(total), **scale)
    assert isinstance(release, Released)
    noise = release.value - total
    true_stddev = gaussian_noise_multiplier(budget) * embedding.l2_sensitivity
    assert has_stddev(noise, true_stddev)
    assert not has_stddev(noise, true_stddev * 2 / 3)
    assert not has_stddev(noise, true_stddev * 3 / 2)


def test_coordinates_are_independent_and_no_draw_repeats():
    first, second = (discrete_gaussian(np.zeros(4000, dtype=np.int64), 1e6) for _ in range(2))
    assert (first != second).any()
    for a, b in ((first, second), (first[:-1], first[1:])):
        assert stats.pearsonr(a, b).pvalue > ALPHA


def test_the_lattice_scale_is_never_below_the_charged_one():
    for multiplier in (1e-3, 1.0, 3.73, 1e5, *np.random.default_rng(0).lognormal(1, 3, 1000)):
        charged = (Fraction(float(multiplier)) * 2**24) ** 2 + Fraction(SMOOTHING)
        stddev = Fraction(lattice_noise_stddev(2**24, float(multiplier)))
        assert charged <= stddev**2 <= charged * (1 + Fraction(1, 2**48))


@pytest.mark.parametrize("multiplier", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_no_scale_is_refused(multiplier):
    with pytest.raises(InvalidArgument):
        measure_gaussian(Sensitive(np.zeros(3, dtype=np.int64)), l2_sensitivity=1, noise_multiplier=multiplier)


def test_a_sum_that_could_overflow_is_refused_without_naming_it():
    with pytest.raises(Unsuitable, match="use fewer rows"):
        measure_gaussian(Sensitive(np.array([2**62])), l2_sensitivity=1, noise_multiplier=1.0)
