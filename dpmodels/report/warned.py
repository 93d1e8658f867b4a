"""What a column is warned of: terminal, report, data sheet and Python show this, and warn of no other column.

Privacy: post-processing of released counts and of the public schema.
"""

from collections.abc import Mapping
from typing import Any

from dpmodels.contract.columns import Integer, Modelled, Number
from dpmodels.methods.parts.marginals import Marginal
from dpmodels.pages.page import short
from dpmodels.releases.contract import Contract
from dpmodels.releases.discoveries import discovered_keys
from dpmodels.report.bins import written
from dpmodels.report.largest import warning

Facts = Mapping[str, Any]
HIGHEST_SHARE = 0.01
"""Share of the records beyond the quantile that is stated."""
LOST_VALUES = "its values do not stand out of their noise, so no error of a mean or a quantile is stated: use neither."
REMEDY = "For the next release, declare narrower public bounds or spend more."
SIDES = {"min": "too high", "max": "too low"}


def warned(
    column: Modelled, noisy: Marginal, largest: Facts, together: Facts | None, measurement: Facts, errors: Facts
) -> dict[str, Any]:
    """Return the warning of a column that the release counted, and whether its counts are resolved all the same."""
    unresolved, doubted = warning(column, noisy, largest, together, measurement), doubt(column, errors)
    said = joined(doubted, unresolved, REMEDY if doubted and errors and not unresolved else None)
    return said | ({"resolved": True} if said and not unresolved and errors else {})


def joined(*sentences: str | None) -> dict[str, str]:
    """Return sentences as one warning, if there are any."""
    text = " ".join(one[0].upper() + one[1:] for one in sentences if one)
    return {"warning": text} if text else {}


def doubt(column: Modelled, errors: Facts) -> str | None:
    """Say that no mean is known, that its error exceeds it, or that noise leaves it open; None where none is so."""
    if not isinstance(column, Integer | Number):
        return None
    if not errors:
        return LOST_VALUES
    mean, unseen = errors["mean"], errors.get("unseen", {})
    stated, error = short(mean["estimate"]), short(mean["expected_error"])
    if unseen.get("open"):
        low, high = map(short, unseen["means"])
        quantile = ", and its 99 % quantile is not known" if unseen["share"] > HIGHEST_SHARE else ""
        return (
            f"by noise alone its mean lies anywhere from {low} to {high}{quantile}; {stated}, with an expected error "
            f"of {error}, holds only if its values thin out towards the bounds and within their cells."
        )
    if column.low < 0 < column.high or mean["expected_error"] <= abs(mean["estimate"]):
        return None  # a mean may well be 0
    return f"the expected error of its mean, {error}, exceeds it, {stated}: use no sum and no mean of it."


def cut(column: Modelled, name: str, contract: Contract) -> str | None:
    """Say that a bound was discovered and values beyond it were set to it; None where that is not so."""
    if not isinstance(column, Integer | Number) or column.outside != "clip":
        return None
    bounds = [key for key in SIDES if key in discovered_keys(contract, name)]
    if not bounds:
        return None
    ends = " and ".join(f"{key} {written(column, {'min': column.low, 'max': column.high}[key])}" for key in bounds)
    return (
        f"its {ends} {'were' if bounds[1:] else 'was'} discovered, and values beyond were set to the bound before "
        "anything was measured; the discovery said of what share of the rows that may be so. Mean, total and the "
        f"quantiles near the bound may be {' or '.join(SIDES[key] for key in bounds)} by more than is stated here. "
        "For the next release, write a bound that is public."
    )
