"""Which groups of a column count where rates are judged: one rule for pages and for shares of ``nacre means``.

Privacy: post-processing of a publishable report.
"""

from collections.abc import Mapping
from typing import Any

Facts = Mapping[str, Any]
SMALL, REST = 0.05, 0.1
"""Part of the rows below which a group's rate does not count for its column, unless it is one of the two largest; and
part of the rows whose groups may be left out together, since they are known worst."""
FEW_ROWS = f"it has less than {100 * SMALL:.0f} % of the rows"
WORST = f"it has at most {100 * REST:.0f} % of the rows, and a less sure rate than others"
"""Why the rate of a group does not count: others that have fewer rows may be less sure still."""


def counting(rates: Facts) -> list[int]:
    """Return the places of the groups whose rates count, of which there are two at least.

    They are the two largest and every other that is not small, but for those known worst that together have up to
    ``REST`` of the rows.
    """
    shares, within = rates["share"], rates["within"]
    largest = sorted(range(len(shares)), key=lambda index: -shares[index])
    count = [index for rank, index in enumerate(largest) if rank < 2 or shares[index] >= SMALL]
    rest = REST
    for index in sorted(count[2:], key=lambda index: -within[index]):
        if (rest := rest - shares[index]) < 0:
            break
        count.remove(index)
    return count


def why_pale(rates: Facts) -> dict[int, str]:
    """Say of each group whose rate does not count why that is, by its place; of none that is 0 by a rule."""
    count, figures = counting(rates), zip(rates["released"], rates["stddev"], strict=True)
    fixed = {index for index, (rate, stddev) in enumerate(figures) if rate == 0 == stddev}
    return {
        index: FEW_ROWS if share < SMALL else WORST
        for index, share in enumerate(rates["share"])
        if index not in count and index not in fixed
    }
