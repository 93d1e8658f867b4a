"""How amounts of a budget are written for people, with the same digits wherever they are shown.

What is spent or asked for is rounded up, what remains is rounded down, and a cap stands as it was written. So nobody
reads that less was spent, or that more remains, than the ledger says.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

PLACES, MOST = Decimal("0.0001"), Decimal(10) ** 12


def spent(epsilon: object) -> str:
    """Write an epsilon that was spent, or would be."""
    return _rounded(epsilon, ROUND_CEILING)


def remaining(epsilon: object) -> str:
    """Write an epsilon that remains."""
    return _rounded(epsilon, ROUND_FLOOR)


def written(amount: object) -> str:
    """Write a cap or a delta with all its digits, and small numbers with an exponent."""
    value = Decimal(str(amount)).normalize()
    return f"{value:f}" if not value or PLACES <= value < MOST else f"{value:e}"


def composes(cap: object, before: object, left: object) -> str:
    """Say why what remains is not the cap less what was spent, where it is not; empty where it is."""
    less = Decimal(str(cap)) - Decimal(str(before))
    if Decimal(str(left)) <= less:
        return ""
    return f"not cap - spent = {remaining(less)}: releases together cost less than the sum of their epsilons"


def _rounded(amount: object, rounding: str) -> str:
    value = Decimal(str(amount))
    return f"{value.quantize(PLACES, rounding).normalize():f}" if abs(value) < MOST else f"{value:e}"
