"""The noise of DP-SGD is a rounded real Gaussian: its law, its tail, and the numbers that float64 cannot settle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy import stats
from scipy.special import ndtri

from dpmodels.mechanisms.dp_sgd.noise import rounded_gaussian
from dpmodels.mechanisms.dp_sgd.randomness import KeyStream
from tests.kit.noise import has_stddev

KEY = bytes(range(32))
NEGATIVE = 2**127  # of the 128 bits of a coordinate, the sign


class Injected(KeyStream):
    """A stream of given words."""

    def __init__(self, *bits: int, more: tuple[int, ...] = ()) -> None:
        self.left = [word for number in bits for word in (number >> 64, number % 2**64)] + list(more)

    def long_words(self, count: int) -> np.ndarray:
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


def tail(x) -> mp.mpf:
    return mp.erfc(x / mp.sqrt(2)) / 2


@pytest.mark.parametrize("stddev", [0.6, 1.7, 6.0])
@pytest.mark.parametrize("scale", [1.0, 2 / 3, 3 / 2])
def test_small_noise_has_the_exact_probabilities_of_a_rounded_gaussian(stddev, scale):
    noise = rounded_gaussian(KeyStream(KEY, 1), 40000, stddev)
    most = max(1, int(2.5 * stddev * scale))
    edges = np.arange(-most, most + 2) - 0.5
    expected = len(noise) * np.diff([0, *stats.norm(0, stddev * scale).cdf(edges), 1])
    seen = np.histogram(noise, [-(2**40), *edges, 2**40])[0]
    assert (stats.chisquare(seen, expected).pvalue > 1e-6) == (scale == 1.0)


@pytest.mark.parametrize("scale", [1.0, 2 / 3, 3 / 2])
@pytest.mark.parametrize("multiplier", [0.7, 30.0])
def test_large_noise_has_the_scale_it_is_asked_for(multiplier, scale):
    noise = rounded_gaussian(KeyStream(KEY, 2), 20000, multiplier * 2**20)
    assert noise.dtype == np.int64
    assert has_stddev(noise, scale * multiplier * 2**20) == (scale == 1.0)


def test_coordinates_and_steps_are_independent():
    one, two = (rounded_gaussian(KeyStream(KEY, step), 20000, 2.0**20) for step in (3, 4))
    assert np.array_equal(one, rounded_gaussian(KeyStream(KEY, 3), 20000, 2.0**20))
    for a, b in ((one, two), (one[1:], one[:-1])):
        assert abs(stats.pearsonr(a, b).statistic) < 0.05


@pytest.mark.parametrize(("bits", "sigmas"), [(2**70, 7.5), (2**64 + 5, 9.0), (2**60, 9.0), (2**20, 11.5), (1, 12.9)])
def test_magnitudes_beyond_those_of_53_bits_can_occur(bits, sigmas):
    for sign in (0, NEGATIVE):
        (noise,) = rounded_gaussian(Injected(bits + sign, more=(2**63,)), 1, 2.0**20)
        assert (noise < 0) == bool(sign) and abs(noise) > sigmas * 2**20


def test_the_tail_has_no_end():
    (noise,) = rounded_gaussian(Injected(0, more=(0, 0, 0, 1, 2**63)), 1, 3.0)
    with mp.workprec(600):
        p = mp.ldexp(2**64 + 2**63, -(128 + 5 * 64))
        assert tail((noise + 0.5) / mp.mpf(3)) <= p <= tail((noise - 0.5) / mp.mpf(3))
    assert noise > 20 * 3.0


@pytest.mark.parametrize("stddev", [2.5, 2.0**20, 0.3 * 2.0**20, 1e9])
@pytest.mark.parametrize("sigmas", [0.01, 1.0, 3.0, 8.9])
def test_a_number_beside_a_boundary_is_settled_at_high_precision_and_one_across_it_by_more_bits(stddev, sigmas):
    k = int(sigmas * stddev)
    with mp.workprec(300):
        boundary = mp.ldexp(tail((k + mp.mpf(0.5)) / mp.mpf(stddev)), 128)  # between k and k + 1
        cell = int(mp.floor(boundary))
        rest = int(mp.floor(mp.ldexp(boundary - cell, 64)))
    assert rounded_gaussian(Injected(cell + 1), 1, stddev) == k  # further in, so smaller
    assert rounded_gaussian(Injected(cell - 1), 1, stddev) == k + 1
    assert rounded_gaussian(Injected(cell, more=(rest + 1,)), 1, stddev) == k
    assert rounded_gaussian(Injected(cell, more=(rest - 1,)), 1, stddev) == k + 1
    assert rounded_gaussian(Injected(cell + NEGATIVE, more=(rest - 1,)), 1, stddev) == -k - 1


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 126), st.integers(2**126, 2**127 - 1), st.floats(1e-3, 2.0**50))
def test_every_number_is_the_rounding_of_its_real_gaussian(shift, bits, stddev):
    cell = bits >> shift
    (noise,) = rounded_gaussian(Injected(cell, more=(2**63,) * 4), 1, stddev)
    with mp.workprec(500):
        p = mp.ldexp(2 * cell + 1, -129)  # also where more bits were wanted: they are those of the middle
        assert tail((int(noise) + mp.mpf(0.5)) / mp.mpf(stddev)) <= p
        assert noise == 0 or p <= tail((int(noise) - mp.mpf(0.5)) / mp.mpf(stddev))


def test_float64_is_off_by_far_less_than_what_is_settled_apart():
    rng = np.random.default_rng(0)
    numbers = [int(rng.integers(2**62, 2**63)) << int(shift) for shift in rng.integers(2, 65, 400)]
    for number in [*numbers, 2**127 - 1, 2**126, int(np.exp(-2) * 2**128), int(np.exp(-32) * 2**128)]:
        x = -float(ndtri(number * 2.0**-128))
        with mp.workprec(300):
            p, off = mp.ldexp(number, -128), mp.ldexp(1, -45)
            assert tail(x + off) < p < tail(x - off)
