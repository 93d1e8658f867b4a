"""The tiles of a report: how many columns, pairs, relations and means are good."""

import json
from pathlib import Path
from typing import Any

import pytest

from dpmodels.pages.by_column import by_column
from dpmodels.pages.multiples import pair_tables
from dpmodels.pages.tiles import tiles

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def facts() -> dict[str, Any]:
    report: dict[str, Any] = json.loads((ROOT / "docs" / "example" / "report.json").read_text())
    for one in report["columns"]:
        one |= {"shares_within": 0.01} | ({"quantiles_within": 0.01} if one["ordered"] else {})
    for pair in report["pairs"]["distances"]:
        pair[5], pair[6:] = 0.04, [0.3, 0.3, 0.001, 0.002]
    return report


def numbers(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one.kind, one.number) for one in tiles(facts, by_column(facts))]


def test_tiles_count_what_is_good(facts: dict[str, Any]) -> None:
    assert numbers(facts)[:3] == [("good", "7 of 7"), ("good", "21 of 21"), ("good", "21 of 21")]
    for pair in facts["pairs"]["distances"][:8]:
        pair[5], pair[7] = 0.06, 0.1
    for one in facts["columns"][:4]:
        one["shares_within"] = 0.3
    assert numbers(facts)[:3] == [("bad", "3 of 7"), ("care", "13 of 21"), ("care", "13 of 21")]
    for pair in facts["pairs"]["distances"]:
        pair[5] = 0.21
    assert numbers(facts)[1] == ("bad", "0 of 21")


def test_a_report_without_errors_has_no_tiles_and_none_of_what_is_not_there(facts: dict[str, Any]) -> None:
    assert tiles(facts | {"drowned": "it is lost"}, by_column(facts | {"drowned": "it is lost"})) == []
    facts["pairs"], facts["rates"] = None, None
    assert [one.words.split()[0] for one in tiles(facts, by_column(facts))] == ["columns", "columns"]


def test_pairs_of_which_noise_hides_that_they_depend_are_not_drawn_but_for_the_farthest(facts: dict[str, Any]) -> None:
    assert len(pair_tables(facts)) == len(facts["pairs"]["tables"]) > 2
    facts["rates"] = None
    for pair in facts["pairs"]["distances"]:
        pair[6] = 0.0005
    first = (*facts["pairs"]["tables"][0]["columns"],)
    for pair in facts["pairs"]["distances"]:
        pair[5] = 0.05 if (*pair[:2],) == first else 0.04
    (farthest,) = pair_tables(facts)
    assert "the farthest off" in farthest.note
