"""Real beside synthetic: the bars hold every row once, at the same places for both, and the page draws all of them."""

import numpy as np
import pandas as pd
import pytest

from dpmodels.comparison.beside import MOST_VALUES, ROWS
from dpmodels.pages.internal import render_internal
from tests.kit import population
from tests.kit.population import draw, judge

SEEN = ("marginals", "columns", "sample rows", "correlations")


@pytest.fixture(scope="module")
def tables() -> list[pd.DataFrame]:
    return [draw(2000, seed) for seed in range(2)]


def facts(made: pd.DataFrame, real: pd.DataFrame, name: str = "columns") -> dict:
    outcome = judge(made, real, None, only=SEEN, real_rows=True)["metrics"][name]
    assert outcome["status"] == "done", outcome
    return outcome["result"]


def test_every_row_is_in_one_bar_and_a_fresh_draw_fills_them_alike(tables) -> None:
    real, made = tables
    found = {one["name"]: one for one in facts(made, real)["columns"]}
    assert list(found) == list(real.columns)
    for name, one in found.items():
        assert 2 <= len(one["labels"]) <= MOST_VALUES + 1 and len(set(one["labels"])) == len(one["labels"])
        for side, null in zip(("real", "synthetic"), one.get("null", (0, 0)), strict=True):
            assert sum(one[side]) + null == pytest.approx(1, abs=1e-4), name
        assert np.abs(np.subtract(one["real"], one["synthetic"])).sum() / 2 < 0.1
    assert found["income"]["null"] == pytest.approx([0.05, 0.05], abs=0.02)
    assert found["ward"]["labels"] == ["north", "south", "west", "isle", "fort"]
    assert found["age"]["labels"][1].split(" to ") == ["4", "7"]  # bars of an integer column hold equally many values


def test_a_spike_that_was_smeared_shows_in_the_bars(tables) -> None:
    real, made = tables
    smeared = made.assign(rent=np.random.default_rng(0).uniform(0, 30_000, len(made)))
    rent = next(one for one in facts(smeared, real.assign(rent=9_000.0))["columns"] if one["name"] == "rent")
    spike = int(np.argmax(rent["real"]))
    assert rent["real"][spike] == 1 and rent["synthetic"][spike] < 0.1


def test_few_values_have_a_bar_each_and_one_value_or_none_are_no_fault(tables) -> None:
    real, made = tables
    few = [table.assign(age=7, income=np.nan) for table in (made, real)]
    age, income, *_ = facts(*few)["columns"]
    assert (age["labels"], age["real"]) == (["7"], [1.0])
    assert (income["labels"], income["synthetic"]) == (["null"], [1.0])
    assert render_internal(judge(*few, None, only=SEEN)).count("<figcaption>") == 6 + 3


def test_rows_are_shown_as_they_are_read(tables) -> None:
    real, made = tables
    rows = facts(population.foreign(made, real), real, "sample rows")
    assert [len(rows[side]) for side in ("real", "synthetic")] == [ROWS, ROWS]
    printed = {tuple(row) for row in rows["real"]}
    shown = real.assign(rent=real["rent"].map("{:.2f}".format), age=real["age"].astype(str))
    shown["income"] = real["income"].map("{:.2f}".format).replace("nan", "null")
    shown["smoker"] = real["smoker"].map({True: "true", False: "false"})
    assert printed <= set(shown.itertuples(index=False, name=None))


def test_the_page_says_what_the_overall_figure_hides(tables) -> None:
    real, made = tables
    page = render_internal(judge(made.assign(rent=0.0), real, None, only=SEEN))
    assert "What this figure hides" in page and "the worst column, rent, shares " in page.replace("\n", " ")
    assert page.index("<figcaption>rent") < page.index("<figcaption>age")
    assert page.count("Associations, real") >= 2 and "<script" not in page
