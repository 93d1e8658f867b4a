"""Amounts are written alike everywhere: spent rounded up, remaining rounded down, a cap as it stands."""

from decimal import Decimal

import pytest

from dpmodels import amounts


@pytest.mark.parametrize(
    ("amount", "spent", "remaining"),
    [
        ("0.999998660665", "1", "0.9999"),
        ("1.50189426", "1.5019", "1.5018"),
        ("0", "0", "0"),
        ("10.0", "10", "10"),
        ("0.00001", "0.0001", "0"),
        ("Infinity", "Infinity", "Infinity"),
        ("1E+999999", "1e+999999", "1e+999999"),
    ],
)
def test_what_is_spent_is_rounded_up_and_what_remains_down(amount: str, spent: str, remaining: str) -> None:
    assert (amounts.spent(Decimal(amount)), amounts.remaining(amount)) == (spent, remaining)


@pytest.mark.parametrize(
    ("amount", "written"),
    [(3.0, "3"), (1e-5, "1e-5"), (Decimal("1E-9"), "1e-9"), (0.0, "0"), ("0.00123456", "0.00123456"), (20, "20")],
)
def test_a_cap_and_a_delta_stand_as_they_were_written(amount: object, written: str) -> None:
    assert amounts.written(amount) == written


def test_why_more_remains_than_cap_less_spent_is_said_only_where_it_does() -> None:
    assert "not cap - spent = 2: releases together cost less" in amounts.composes("3", "1", "2.7563")
    assert amounts.composes("3", "1", "2") == "" == amounts.composes("3", "0", "3")
