"""How many digits of a figure are kept beside its error."""

import math


def beside(number: float, error: float, least: int = 6) -> float:
    """Round a number to so many digits, or to three of its error where that needs more."""
    if not (math.isfinite(number) and 0 < error < math.inf) or not number:
        return float(f"{number:.{least}g}")
    digits = math.floor(math.log10(abs(number))) - math.floor(math.log10(error)) + 3
    return float(f"{number:.{min(max(least, digits), 17)}g}")
