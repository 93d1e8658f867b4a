import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpmodels.mechanisms.lattice import GRAIN_BITS, integer_radius, to_real, truncate

reals = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(reals, min_size=1, max_size=20))
def test_truncation_never_grows_a_coordinate(values):
    x = np.array(values)
    lattice = truncate(x)
    assert (np.abs(to_real(lattice)) <= np.abs(x)).all()
    assert (np.abs(x - to_real(lattice)) < 2.0**-GRAIN_BITS).all()


@given(st.integers(0, 2**120))
def test_the_integer_radius_is_the_least_bound(squared):
    r = integer_radius(squared)
    assert r * r >= squared
    assert r == 0 or (r - 1) ** 2 < squared
    assert r == math.isqrt(squared) or r == math.isqrt(squared) + 1


def test_a_feature_of_one_has_as_many_steps_as_in_every_release_that_was_paid_for():
    assert truncate(np.array([1.0, -1.0])).tolist() == [16_777_216, -16_777_216]
