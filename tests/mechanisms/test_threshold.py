"""What one unit alone brings shows with probability delta at most, and nearly with it; the noise has its true scale."""

from itertools import combinations_with_replacement

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.mechanisms.threshold import Bringing, KeyCounts, measure_thresholded
from dpmodels.privacy import Released, Sensitive

ALPHA = 1e-6  # a false alarm in a million runs
STEPS, MULTIPLIER = 1024, 3.0
SENSITIVITY = int(np.ceil(STEPS * 2**0.5))
STDDEV = lattice_noise_stddev(SENSITIVITY, MULTIPLIER)


def released(found: list[int], threshold: int, public: int = 0) -> KeyCounts:
    keys = pa.array([f"s{index:06}" for index in range(len(found))], pa.large_string())
    counts = KeyCounts(
        np.zeros(public, np.int64), keys, np.zeros(len(found), np.int64), np.array(found, np.int64) * STEPS
    )
    made = measure_thresholded(
        Sensitive(counts), l2_sensitivity=SENSITIVITY, noise_multiplier=MULTIPLIER, threshold=threshold
    )
    assert isinstance(made, Released)
    return made.value


@pytest.mark.parametrize("delta", [0.05, 1e-6, 1e-12])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 7), (5, 2)])
def test_the_threshold_is_the_least_that_keeps_delta(rows, columns, delta):
    most = Bringing(rows, STEPS, columns)
    threshold = most.threshold(STDDEV, delta)
    assert most.shown(threshold, STDDEV) <= delta < most.shown(threshold - 1, STDDEV)


@pytest.mark.parametrize("rows", [1, 2, 3, 6])
def test_however_a_user_spreads_her_rows_she_shows_no_more_often(rows):
    most = Bringing(rows, STEPS, 1)
    threshold = most.threshold(STDDEV, 1e-3)
    for keys in range(1, rows + 1):
        for counts in combinations_with_replacement(range(1, rows + 1), keys):
            if sum(counts) <= rows:
                tails = stats.norm.sf([threshold - 1 - count * STEPS for count in counts], scale=STDDEV)
                assert tails.sum() <= most.shown(threshold, STDDEV)


@pytest.mark.parametrize("of_threshold", [1.0, 2 / 3])
def test_a_value_of_one_record_shows_as_often_as_delta_says(of_threshold):
    delta, trials = 0.05, 20_000
    threshold = Bringing(1, STEPS, 1).threshold(STDDEV, delta)
    shown = len(released([1] * trials, int(threshold * of_threshold)).found)
    low, high = stats.binom.ppf([ALPHA, 1 - ALPHA], trials, delta)
    assert (shown <= high) == (of_threshold == 1.0)
    if of_threshold == 1.0:  # and the bound is not far from the truth
        assert shown >= 0.9 * low


@pytest.mark.parametrize("scale", [1.0, 2 / 3, 3 / 2])
def test_public_counts_have_noise_of_the_charged_scale(scale):
    noise = released([], 1, public=5000).public
    quantile = stats.chi2(len(noise)).cdf(float((noise / (STDDEV * scale)) @ (noise / (STDDEV * scale))))
    assert (ALPHA / 2 < quantile < 1 - ALPHA / 2) == (scale == 1.0)


@pytest.mark.parametrize("scale", [1.0, 2 / 3, 3 / 2])
def test_so_have_found_ones_where_all_are_released(scale):
    noise = released([10**6] * 5000, 1).found - 10**6 * STEPS
    quantile = stats.chi2(len(noise)).cdf(float((noise / (STDDEV * scale)) @ (noise / (STDDEV * scale))))
    assert (ALPHA / 2 < quantile < 1 - ALPHA / 2) == (scale == 1.0)


def test_keys_come_out_in_their_own_order_and_not_in_that_of_the_rows():
    keys = pa.array(["sb", "sa", "sc"], pa.large_string())
    counts = KeyCounts(np.zeros(0, np.int64), keys, np.array([1, 1, 0]), np.array([10**6] * 3) * STEPS)
    made = measure_thresholded(Sensitive(counts), l2_sensitivity=1, noise_multiplier=1.0, threshold=1).value
    assert (made.keys.to_pylist(), made.columns.tolist()) == (["sc", "sa", "sb"], [0, 1, 1])
