"""What groups and categories may be asked of means: edges and widths that make ranges, and shares of yes."""

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest

from nacre import NacreError
from tasks.stages.ranges import _limits, check_bins, with_shares


@pytest.mark.parametrize("edges", [1e-320, 10**400, 0, True, {0: 1, 1: 2}, {1, 2}, "ab", [1, 1]])
def test_what_makes_no_ranges_is_refused(edges: Any) -> None:
    with pytest.raises(NacreError, match="write edges that rise"):
        check_bins({"age": edges})


@pytest.mark.parametrize("edges", [[2019, 2020], ["01/02/2020", "2020-03-01"], [datetime(2020, 1, 1, tzinfo=UTC)] * 2])
def test_edges_of_days_are_days_in_one_reading_and_without_a_zone(edges: list[Any]) -> None:
    day = pd.Timestamp("2020-01-01")
    with pytest.raises(NacreError, match="must be days, as '2020-01-31'"):
        _limits("seen", edges, day, day)
    assert len(_limits("seen", ["2019-01-01", day, datetime(2021, 1, 1)], day, day)) == 3


@pytest.mark.parametrize(
    ("labels", "meant"),
    [
        (["yes", "no"], "yes"),
        (["J", "N"], "J"),
        (["1", "0"], "1"),
        (["1", "2"], None),
        (["x", "y"], None),
        (["y", "yes"], None),
    ],
)
def test_a_mean_is_the_share_of_yes_where_the_other_category_is_no(labels: list[str], meant: str | None) -> None:
    cells = with_shares(pd.DataFrame({"smoker": labels}), "smoker", None, ("mean", "stddev"), is_boolean=False)
    assert ("mean" in cells) == (meant is not None)
    assert meant is None or cells.loc[cells["smoker"] == meant, "mean"].tolist() == [1.0]
