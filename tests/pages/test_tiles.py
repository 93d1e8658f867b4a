"""The tiles of a report: how many columns, pairs, relations and means are good."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dpmodels.contract.remarks import NOT_HANDED_OVER
from dpmodels.pages.by_column import by_column, not_for
from dpmodels.pages.figures.means import far_figures
from dpmodels.pages.figures.rate_pictures import rate_figures
from dpmodels.pages.figures.relations import likely_relations, relations
from dpmodels.pages.glance import warned_columns
from dpmodels.pages.multiples import pair_tables
from dpmodels.pages.notes import not_handed_over, notes_of
from dpmodels.pages.report import render
from dpmodels.pages.tiles import tiles
from dpmodels.pages.uses import BROAD, GOOD_ALL, VAGUE, WEAKER, known_of, uses
from nacre.reporting import Report

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def facts() -> dict[str, Any]:
    report: dict[str, Any] = json.loads((ROOT / "docs" / "example" / "report.json").read_text())
    for one in report["columns"]:
        one |= {"shares_within": 0.01} | ({"quantiles_within": 0.01} if one["ordered"] else {})
    for pair in report["pairs"]["distances"]:
        pair[5], pair[6:] = 0.04, [0.3, 0.3, 0.001, 0.002]
    return report


def numbers(facts: dict[str, Any]) -> list[tuple[str, int, int, str]]:
    return [(one.kind, one.good, one.care, " ".join(one.words.split()[:2])) for one in tiles(facts, by_column(facts))]


def test_tiles_count_what_is_good(facts: dict[str, Any]) -> None:
    assert numbers(facts)[:3] == [("good", 7, 0, "of 7"), ("good", 21, 0, "of 21"), ("good", 21, 0, "of 21")]
    for pair in facts["pairs"]["distances"][:8]:
        pair[5], pair[7] = 0.06, 0.1
    for one in facts["columns"][:4]:
        one["shares_within"] = 0.3
    assert numbers(facts)[:3] == [("bad", 3, 0, "of 7"), ("care", 13, 8, "of 21"), ("care", 13, 8, "of 21")]
    for pair in facts["pairs"]["distances"]:
        pair[5] = 0.21
    assert numbers(facts)[1] == ("bad", 0, 0, "of 21")


def test_what_is_of_use_with_care_does_not_look_like_nothing_and_derived_columns_are_counted_too(
    facts: dict[str, Any],
) -> None:
    for one in facts["columns"]:
        one["shares_within"] = 0.1
    derived = {
        "name": "decade",
        "ordered": True,
        "type": "derived",
        "values": 1,
        "labels": ["1 to 2"],
        "follows": ["age"],
    }
    facts["derived"] = [derived | {"synthetic": [1.0], "verdict": "", "shares_within": 0.5}]
    assert numbers(facts)[0] == ("care", 0, 7, "of 8")
    assert tiles(facts, by_column(facts))[0].words.endswith("each by itself (good: within 5\N{NO-BREAK SPACE}%)")
    page = render(facts)
    assert '<span class="care">7 with care</span>, <span class="bad">1 not</span></strong> of 8 columns' in page


def test_tiles_and_lists_count_the_same_relations(facts: dict[str, Any]) -> None:
    """The tile counted relations as good that the list below has with care, since they are of many categories."""
    many = next(one for one in facts["columns"] if not one["ordered"])
    many |= {key: [*many[key], *[0.01] * 9] for key in ("synthetic", "released", "released_stddev")}
    many["labels"] = [*many["labels"], *map(str, range(9))]
    facts["pairs"]["distances"][0][7] = 0.1
    facts["pairs"]["distances"][1][5] = 0.25
    sorts = known_of(facts).received.certain()
    assert all(sorts[sort] for sort in (GOOD_ALL, BROAD, VAGUE, WEAKER)) and sum(map(len, sorts.values())) == 21
    assert numbers(facts)[2] == ("care", len(sorts[GOOD_ALL]), 21 - len(sorts[GOOD_ALL]), "of 21")
    sentences = uses(facts, is_tabled=True).whole
    (good,) = [line for line in sentences.good if line.startswith(GOOD_ALL)]
    assert good.count(" with ") == len(sorts[GOOD_ALL])


def test_a_column_that_nobody_receives_is_marked_and_in_no_tile_and_no_sentence(facts: dict[str, Any]) -> None:
    name = facts["columns"][0]["name"]
    facts["cautions"] = [NOT_HANDED_OVER.format(name=name)]
    assert not_handed_over(facts) == {name} and not_handed_over({"cautions": ["column a: else"]}) == frozenset()
    assert numbers(facts)[:3] == [("good", 6, 0, "of 6"), ("good", 15, 0, "of 15"), ("good", 15, 0, "of 15")]
    page = render(facts)
    assert f'<tr><th scope="row">{name} <small>not handed over</small></th>' in page
    assert f'<span title="{name}">{name}</span>' not in page and by_column(facts).lines[-1][0] == name
    assert "<summary>1 more column, not handed over</summary>" in page and "<summary>1 more column</summary>" in page
    assert re.search(rf"<figcaption>{name}<span>\w+ · not handed over · ", page)
    every = uses(facts)
    assert not any(name in line for line in (*every.good, *every.care, *every.never))
    facts["columns"][0]["p99"]["expected_error"] = 1e9
    assert name not in far_figures(facts).get("p99", ()) and not any("99 %" in one for one in not_for(facts))
    facts["columns"][0]["warning"] = facts["columns"][1]["warning"] = "Use no mean of it"
    assert [one["name"] for one in warned_columns(facts)] == [facts["columns"][1]["name"]]
    other = facts["columns"][2]["name"]
    facts["cautions"] += ["rows are few", NOT_HANDED_OVER.format(name=other)]
    page = render(facts)
    assert page.count("Note:") == 1 and f"Columns {name} and {other}: not handed over" in page
    assert notes_of(facts)[-1].endswith("they were left out") and "Warning:</strong> Rows are few.</p>" in page
    assert "Use no mean of it.</p>" in page and f"Warning: {name}:" not in page
    del facts["cautions"], facts["columns"][0]["warning"], facts["columns"][1]["warning"]
    assert name in far_figures(facts)["p99"] and f"Not for 99 % quantiles: {name}" in not_for(facts)[-1]


def test_a_report_without_errors_has_no_tiles_and_none_of_what_is_not_there(facts: dict[str, Any]) -> None:
    assert tiles(facts | {"drowned": "it is lost"}, by_column(facts | {"drowned": "it is lost"})) == []
    facts["pairs"], facts["rates"] = None, None
    assert [one.words.split()[2] for one in tiles(facts, by_column(facts))] == ["columns,", "columns"]


def test_pairs_of_which_noise_hides_that_they_depend_are_not_drawn_but_for_the_farthest(facts: dict[str, Any]) -> None:
    assert len(pair_tables(facts)) == len(facts["pairs"]["tables"]) > 2
    facts["rates"] = None
    for pair in facts["pairs"]["distances"]:
        pair[6] = 0.0005
    first = (*facts["pairs"]["tables"][0]["columns"],)
    for pair in facts["pairs"]["distances"]:
        pair[5] = 0.05 if (*pair[:2],) == first else 0.04
    (farthest,) = pair_tables(facts).values()
    assert "the farthest off" in farthest.note
    facts["pairs"]["asked_for"] = 2  # which a workload asks for
    assert len(pair_tables(facts)) == 2


def test_pairs_with_the_target_are_held_to_noise_by_themselves(facts: dict[str, Any]) -> None:
    """Of 21 pairs one that chance makes in 1 of 60 is hidden; of 6 with the target it is likely."""
    target, chance = facts["pairs"]["target"], 1 / 60
    for pair in facts["pairs"]["distances"]:
        pair[6:] = [0.01, 0.01, 0.01, 0.02]
    facts["rates"] = None
    first = next(pair for pair in facts["pairs"]["distances"] if target in pair[:2])
    other = next(pair for pair in facts["pairs"]["distances"] if target not in pair[:2])
    for pair in (first, other):
        while relations(facts)[pair[0], pair[1]].chance > chance:
            pair[6] += 0.0005
    assert [*likely_relations(facts)] == [(first[0], first[1])]


def test_what_is_left_of_values_that_were_cut_is_said_to_be_within_at_least(facts: dict[str, Any]) -> None:
    age = facts["columns"][0]
    age["discovered_bounds"], age["mean"]["expected_error"] = ["max"], 0.01
    table = by_column(facts)
    assert table is not None
    alone, mean = (cell[0] for cell in table.lines[0][1][:2])
    assert (alone.kind, alone.words) == ("care", "at least 1\N{NO-BREAK SPACE}%") and mean.kind == "care"
    assert mean.words.startswith("at least 0.")


def test_a_group_of_no_rows_has_no_rate(tmp_path: Path) -> None:
    facts = json.loads((ROOT / "docs" / "example" / "report.json").read_text())
    ethnicity = next(one for one in facts["rates"]["columns"] if len(one["labels"]) == 3)
    name = facts["columns"][ethnicity["column"]]["name"]
    ethnicity["share"][0], ethnicity["released"][0] = 0.0, 0.917
    drawn = {figure.title: figure for figure in rate_figures(facts).figures}
    assert len(drawn[name].rows) == 2 and "91.7" not in str(drawn[name].svg)
    (tmp_path / "report.json").write_text(json.dumps(facts))
    assert len(Report(tmp_path).rates.query("column == @name")) == 2


def test_a_number_of_few_values_has_no_quantile_to_judge(facts: dict[str, Any]) -> None:
    years = next(one for one in facts["columns"] if one["name"] == "school_years")
    table = by_column(facts)
    assert table is not None and table.kinds[2][0] == "99 % quantiles"
    assert table.lines[facts["columns"].index(years)][1][2] != ()
    years |= {key: years[key][:10] for key in ("labels", "synthetic", "released", "released_stddev")}
    table = by_column(facts)
    assert table is not None and table.lines[facts["columns"].index(years)][1][2] == ()
