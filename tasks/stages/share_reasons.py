"""Why shares by groups are not to be relied on: for the reasons for which a report sets rates back, and for no other.

Privacy: post-processing of released counts and public noise scales.
"""

from typing import TYPE_CHECKING

from dpmodels.pages.figures.apart import Interval, apart_in_words
from dpmodels.pages.figures.rate_groups import why_pale
from dpmodels.report.groups.means import UNKNOWN

if TYPE_CHECKING:
    import pandas as pd


def judged_as_rates(shares: "pd.DataFrame") -> "tuple[pd.DataFrame, list[str]]":
    """Return shares by the values of one column with these reasons, and what a report says of all of them.

    Those that noise leaves unknown keep their reason.
    """
    rows = shares["count"].clip(lower=0)
    figures = {
        "share": (rows / max(float(rows.sum()), 1.0)).tolist(),
        "within": shares["within"].fillna(1.0).tolist(),
        "stddev": shares["standard_error"].fillna(1.0).tolist(),
        "released": shares["mean"].fillna(1.0).tolist(),
    }
    pale = why_pale(figures)
    reasons = [one if one in UNKNOWN else pale.get(at, "") for at, one in enumerate(shares["reason"])]
    known = zip(shares["mean"], shares["within"], reasons, strict=True)
    apart = apart_in_words([Interval(mean, off, bool(why)) for mean, off, why in known if why not in UNKNOWN])
    return shares.assign(reason=reasons), [apart] if apart else []
