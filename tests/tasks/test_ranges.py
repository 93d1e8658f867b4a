"""What groups and categories may be asked of means: edges and widths that make ranges, and shares of yes."""

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import pytest

from nacre import NacreError
from tasks.stages.ranges import RANGES, _limits, check_bins, columns_and_bins, groups_of, joined, with_shares


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


def test_categories_are_joined_as_they_are_listed_and_others_stay_by_themselves() -> None:
    cells = pd.DataFrame(
        {"ward": ["a", "b", "c, d", "null"] * 2, "mean": [1.0] * 4 + [2.0] * 4, "count": 5.0, "error": 3.0}
    )
    bins: dict[str, Any] = groups_of(["ward=c+d+a"])
    assert bins == {"ward": [["c", "d", "a"]]}
    made = joined(cells, bins, ["ward", "mean"], ("count", "error"))
    both = made[made["ward"] == "c, d, a"]
    assert both["count"].tolist() == [10.0, 10.0] and both["error"].tolist() == pytest.approx([18**0.5] * 2)
    assert set(made["ward"]) == {"c, d, a", "b", "null"}


def test_a_category_that_is_called_like_two_others_is_joined_by_its_own_name_alone() -> None:
    cells = pd.DataFrame({"way": ["east", "west", "east, west"], "count": 5.0, "error": 3.0})
    made = joined(cells, {"way": [["east", "west"]]}, ["way"], ("count", "error"))
    assert sorted(made["count"]) == [5.0, 10.0]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([["a", ""]], "each once"),
        ([["a", "c"]], "counts c, d of ward together"),
        ([["a", "e"]], "counts no e of ward, but a, b, c, d"),
        ([["a"], ["a", "b"]], "each once"),
        ([["a"], []], "each once"),
        ([[None]], "each once"),
    ],
)
def test_categories_that_cannot_be_joined_are_named(groups: Any, words: str) -> None:
    cells = pd.DataFrame({"ward": ["a", "b", "c, d"], "count": 5.0, "error": 3.0})
    with pytest.raises(NacreError, match=words):
        check_bins({"ward": groups})
        joined(cells, {"ward": groups}, ["ward"], ("count", "error"))


def test_a_number_alone_is_joined_to_ranges_unless_each_value_is_asked_for() -> None:
    assert columns_and_bins(groups_of(["age"])) == columns_and_bins("age") == (["age"], {}, True)
    assert columns_and_bins(groups_of(["age=each"])) == columns_and_bins({"age": None}) == (["age"], {}, False)
    assert columns_and_bins(groups_of(["age", "ward"])) == (["age", "ward"], {}, False)
    assert columns_and_bins({"age": RANGES}) == (["age"], {}, True)
    assert columns_and_bins(groups_of(["age=10"])) == (["age"], {"age": 10.0}, False)
