"""A figure keeps six digits, or so many that its error has three."""

import math

import pytest

from dpmodels.pages.page import beside as written
from dpmodels.statistics.digits import beside


@pytest.mark.parametrize(
    ("number", "error", "kept"),
    [
        (2451594.59460, 0.055, 2451594.5946),
        (33.123456, 0.5, 33.1235),
        (0.0, 1.0, 0.0),
        (123456.7, 1e9, 123457.0),
        (1.23456789, 0.0, 1.23457),
        (1e300, 1e-300, 1e300),
    ],
)
def test_a_figure_keeps_three_digits_of_its_error_and_six_at_least(number: float, error: float, kept: float) -> None:
    assert beside(number, error) == kept


@pytest.mark.parametrize(
    ("number", "within", "of_years", "text"),
    [
        (2451594.5946, 0.11, False, "2,451,594.59"),
        (1987.3012, 0.13, True, "1987.30"),
        (33.372, 0.03, False, "33.37"),
        (4260.4, 158.0, False, "4,260"),
        (13927.2, 170.0, False, "13,927"),
        (12.0, None, False, "12"),
        (12.0, math.inf, False, "12"),
        (0.0, 0.5, False, "0"),
    ],
)
def test_a_figure_is_written_to_what_it_is_within(number: float, within: float, of_years: bool, text: str) -> None:
    assert written(number, within, of_years) == text
