"""Shares by groups have the reasons for which a report sets rates back."""

import pytest

from dpmodels.pages.figures.apart import NONE_APART, NOT_CERTAIN
from dpmodels.pages.figures.rate_groups import FEW_ROWS, WORST, why_pale
from dpmodels.report.groups.means import DROWNED, LARGER
from tasks.stages.share_reasons import judged_as_rates

pd = pytest.importorskip("pandas")


def test_a_share_is_set_back_where_a_report_sets_its_rate_back_and_for_that_reason() -> None:
    counts, noise = [5000.0, 4000.0, 3000.0, 600.0, 100.0], [0.003, 0.004, 0.005, 0.02, 0.05]
    shares = pd.DataFrame({"mean": [0.06, 0.06, 0.05, 0.05, 0.2], "standard_error": noise, "count": counts})
    shares["within"] = 1.96 * shares["standard_error"]
    shares["reason"] = ["", "", LARGER, "", ""]
    judged, notes = judged_as_rates(shares)
    assert judged.reason.tolist() == ["", "", "", FEW_ROWS, FEW_ROWS] and notes == [NOT_CERTAIN]
    rates = {
        "released": shares["mean"],
        "stddev": noise,
        "within": noise,
        "share": [one / sum(counts) for one in counts],
    }
    assert why_pale(rates) == {at: why for at, why in enumerate(judged.reason) if why}
    shares["count"] = [5000.0, 4000.0, 3000.0, 700.0, 0.0]
    judged, _ = judged_as_rates(shares.assign(reason=["", "", "", "", DROWNED]))
    assert judged.reason.tolist() == ["", "", "", WORST, DROWNED]
    alike, notes = judged_as_rates(shares.assign(mean=0.05))
    assert notes == [NONE_APART] and alike["mean"].eq(0.05).all()
