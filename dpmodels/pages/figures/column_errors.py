"""Within what single columns of a report count as, those included that follow from others.

Privacy: post-processing of a publishable report.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.pages.figures.means import CLOSE
from dpmodels.pages.glance import likely_error, rank_error

Facts = Mapping[str, Any]


def counted_error(column: Facts) -> float:
    """Return what a column counts as within.

    Of values that were set to a discovered bound it says what was left, so such a column is to be used with care.
    """
    return max(error_by_itself(column), math.nextafter(CLOSE, 1) if column.get("discovered_bounds") else 0.0)


def error_by_itself(column: Facts) -> float:
    """Return the larger of what the quantiles and the shares of a column are within."""
    return max(likely_error(column), rank_error(column) if column["ordered"] else 0.0)


def with_derived(errors: Mapping[str, float], derived: Sequence[Facts]) -> dict[str, float]:
    """Add the columns that follow from one whose error holds for them; the worst are last."""
    keys = ("shares_within", "quantiles_within")
    known = {one["name"]: float(one[key]) for one in derived for key in keys if key in one}
    every = {**errors, **known}
    return {name: every[name] for name in sorted(every, key=every.__getitem__)}
