"""Many draws of the exponential mechanism: each follows its formula exactly, and no number is rounded on the way."""

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.mechanisms import choices
from dpmodels.mechanisms.choices import exact_choices, select_each
from dpmodels.privacy import Sensitive
from tests.kit.errors import refused

ALPHA = 1e-6  # a false alarm in a million runs


@pytest.mark.parametrize(
    ("scores", "scale"),
    [
        ([0, -2, -4, -2, -6], 2.0),
        ([5, 5], 0.1),  # two that are equal
        ([0, 0, 0, -1], 0.25),  # ties, and one that is left behind
        ([2**40, 2**40 - 300, 2**40 - 200_000], 400.0),  # distances beyond a table
        ([0], 1.0),
    ],
)
def test_the_draws_follow_the_formula(scores, scale):
    drawn = exact_choices(np.tile(np.array(scores, dtype=np.int64), (4000, 1)), scale)
    expected = 4000 * softmax(np.array(scores) / scale)
    likely = expected > 1e-9
    seen = np.bincount(drawn, minlength=len(scores))
    assert not seen[~likely].any()
    assert likely.sum() < 2 or stats.chisquare(seen[likely], expected[likely]).pvalue > ALPHA


def test_a_wrong_scale_would_be_found():
    scores = np.tile(np.array([0, -2, -4, -2, -6]), (4000, 1))
    seen = np.bincount(exact_choices(scores, 2.0), minlength=5)
    found = [stats.chisquare(seen, 4000 * softmax(scores[0] / (2.0 * off))).pvalue > ALPHA for off in (2 / 3, 1, 3 / 2)]
    assert found == [False, True, False]


@pytest.mark.parametrize("bits", [1, 2])
def test_what_a_weight_has_beyond_its_whole_part_is_settled_exactly(bits, monkeypatch):
    """With a bit or two for the whole parts, nearly everything is settled by the fractions."""
    monkeypatch.setattr(choices, "BITS", bits)
    scores = np.tile(np.array([0, -1, -2, -3, -3]), (6000, 1))
    expected = 6000 * softmax(scores[0] / 1.7)
    seen = np.bincount(exact_choices(scores, 1.7), minlength=5)
    assert stats.chisquare(seen, expected).pvalue > ALPHA


def test_the_fractions_are_compared_beyond_their_first_word(monkeypatch):
    """A number that agrees with the first word of the fraction is settled by the second."""
    monkeypatch.setattr(choices, "BITS", 4)
    word = choices._WORD
    first = choices._floor(3, 1.7, 4 + word) - (choices._floor(3, 1.7, 4) << word)
    second = choices._floor(3, 1.7, 4 + 2 * word) - (choices._floor(3, 1.7, 4 + word) << word)
    for last, settled in ((second - 1, True), (second + 1, False)):
        drawn = iter([first, last])
        monkeypatch.setattr(choices.secrets, "randbits", lambda bits, drawn=drawn: next(drawn))
        assert choices._settled(3, 1.7) is settled


@pytest.mark.parametrize("below", [0, 1, 3, 200, 100_000])
@pytest.mark.parametrize("scale", [0.013, 0.4, 3.3, 1e9])
@pytest.mark.parametrize("bits", [1, 128, 192, 1024])
def test_a_weight_is_cut_to_its_true_whole_part(below, scale, bits):
    with mpmath.workdps(500):
        exact = mpmath.mpf(2) ** bits * mpmath.exp(-mpmath.mpf(below) / mpmath.mpf(scale))
        assert choices._floor(below, scale, bits) == int(mpmath.floor(exact))


def test_rows_are_drawn_for_one_by_one(monkeypatch):
    scores = np.array([[0, -500], [-500, 0], [-500, 0]], dtype=np.int16)
    assert select_each(Sensitive(scores), scale=1.0).value.tolist() == [0, 1, 1]
    assert select_each(Sensitive(scores[:0]), scale=1.0).value.tolist() == []


def test_what_could_not_be_drawn_is_refused():
    for scale in (0.0, -1.0, float("nan"), float("inf")):
        with refused(InvalidArgument, name="scale", value=scale):
            select_each(Sensitive(np.zeros((1, 2), dtype=np.int64)), scale=scale)
    with pytest.raises(Unsuitable, match="at least one candidate"):
        select_each(Sensitive(np.zeros((1, 0), dtype=np.int64)), scale=1.0)
    with pytest.raises(Unsuitable, match="overflow"):
        select_each(Sensitive(np.array([[0, -(2**62)]])), scale=1.0)
