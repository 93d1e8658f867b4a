"""The few lines at the end of a run: they follow the publishable report, and a ruined column is no good one."""

import pytest

from dpmodels.pages.asked.weak import _avoided, _weak
from dpmodels.pages.figures.categories import moved
from dpmodels.pages.figures.ruled import EVERY_ROW
from dpmodels.pages.glance import (
    cautions_of_whole,
    example,
    fits,
    glance,
    likely_error,
    warnings_of,
    worst_first,
    worst_means,
)
from dpmodels.pages.page import in_two, short, ticked
from dpmodels.pages.report import _charged

PRIVACY = {"spent_epsilon": 1.0, "delta": 1e-5, "unit": "record"}


def column(name: str, noise: float, fit: float, **more: object) -> dict:
    return {"name": name, "released": [1.0], "expected_distance": noise, "distance_to_release": fit, **more}


COLUMNS = [
    column("noisy", 0.03, 0.01),
    column("missed", 0.001, 0.2),
    column("ruined", 0.0001, 0.0001, warning="99 % of the records lie in one cell."),
    {"name": "never counted"},
]


def test_a_column_with_a_warning_is_named_first_however_little_noise_it_has() -> None:
    assert [one["name"] for one in worst_first(COLUMNS)] == ["ruined", "missed", "noisy"]
    said = glance({"privacy": PRIVACY, "method": "nacre", "columns": COLUMNS})["worst columns"]
    assert said.startswith("ruined (not resolved), missed 20.1\N{NO-BREAK SPACE}%, noisy 4")
    assert said.endswith("; of 1 more nothing is known")
    assert likely_error(column("far", 0.9, 0.9)) == 1


def test_a_warning_of_a_mean_alone_is_printed_and_leaves_the_column_resolved() -> None:
    mean = column("cut", 0.001, 0.001, warning="Its max 9 was discovered.", resolved=True)
    never = {"name": "unseen", "warning": "Its max 7 was discovered.", "resolved": True}
    facts = {"privacy": PRIVACY, "method": "nacre", "columns": [mean, *COLUMNS, never]}
    assert [one["name"] for one in worst_first(facts["columns"])] == ["ruined", "missed", "noisy", "cut"]
    assert [line.split(":")[0] for line in warnings_of(facts)] == ["column ruined", "column cut", "column unseen"]
    assert "cut" not in glance(facts)["worst columns"]


def test_a_category_whose_rows_rules_took_away_is_warned_of_and_one_that_noise_may_have_moved_is_not() -> None:
    wards = {"name": "ward", "ordered": False, "labels": ["a", "children", "null"]}
    wards |= {"distance_to_release": 0.02, "expected_distance": 0.01}
    figures = {"released": [0.97, 0.02, 0.01], "released_stddev": [0.002] * 3, "synthetic": [0.99, 0.009, 0.001]}
    facts = {"privacy": PRIVACY, "method": "nacre", "columns": [column("x", 0.1, 0.1), {**wards, **figures}]}
    (line,) = warnings_of(facts)
    assert line.replace("\N{NO-BREAK SPACE}", " ").startswith(
        "column ward: children is 0.9 % of the synthetic rows, and was released as 2 %; rules of the schema, or the fit"
    )
    facts["gate"] = [{"rule": f"`a <= b` {EVERY_ROW}"}]
    hired = {"name": "hired", "ordered": True, "labels": ["old", "mid", "new"], "released_stddev": [0.002] * 3}
    hired |= {"released": [0.5, 0.44, 0.06], "synthetic": [0.53, 0.46, 0.01], "expected_distance": 0.002}
    for distance, names in ((0.05, ["hired", "ward"]), (0.015, ["ward"])):
        facts["columns"][2:] = [hired | {"distance_to_release": distance}]
        lines = [one.replace("\N{NO-BREAK SPACE}", " ") for one in cautions_of_whole(facts)]
        assert [one.split(":")[0] for one in lines] == [f"column {name}" for name in names]
        said = "new is 1 % of the synthetic rows, and was released as 6 % (in all, 5 % of the rows lie elsewhere than"
        assert (said in lines[0]) is (distance == 0.05)
    del facts["gate"], facts["columns"][2:]
    assert moved(facts) == {"ward": ("children", 0.02, 0.009)}
    for stddev, synthetic in ((0.003, 0.009), (0.002, 0.0165), (0.006, 0.0)):  # noise; a sixth; not known itself
        wards |= figures | {"released_stddev": [stddev] * 3, "synthetic": [0.98, synthetic, 0.01]}
        assert not moved({"columns": [wards]})


def test_what_was_paid_for_is_shown_in_the_place_of_what_is_expected() -> None:
    charged = {"status": "measured", "columns": [{"name": "x", "low": 0.1, "high": 0.2}]}
    facts = {"privacy": PRIVACY | {"total_epsilon": 1.1}, "method": "nacre", "columns": COLUMNS, "charged": charged}
    assert glance(facts)["worst columns"].startswith("x 10\N{NO-BREAK SPACE}% to 20\N{NO-BREAK SPACE}%")
    assert glance(facts)["spent"] == "epsilon 1.1 at delta 1e-5, unit record"
    lost = glance(facts | {"charged": {"status": "lost"}})
    assert lost["worst columns"].startswith("ruined")


@pytest.mark.parametrize(("left", "close"), [(1.0, True), (1.32, True), (1.33, False)])
def test_a_fit_is_close_up_to_what_noise_and_drawing_explain(left: float, close: bool) -> None:
    look = {"look": "pairs", "left": left, "explained": 1.2}
    assert fits(look) is close
    said = glance({"privacy": PRIVACY, "fit": [look, {"look": "fine", "left": 1.0, "explained": 1.0}]})["fit"]
    assert said == ("as close to the release as its noise allows" if close else said)
    assert ("further from the released pairs than noise explains (1.33 times" in said) is not close


def test_a_data_sheet_names_every_column_of_which_a_figure_is_not_to_be_used() -> None:
    open_mean = {"estimate": 5.0, "expected_error": None, "expected_error_if_thinning_out": 1.0}
    avoid = {"fee": ["mean", "total"], "bill": ["mean", "total", "p99"], "tax": ["mean", "total"], "age": ["p99"]}
    numbers = {name: {"mean": open_mean} for name in ("fee", "tax")}
    unknown = ": not known from what was released"
    assert list(_avoided(avoid, numbers)) == [
        (
            "fee, tax",
            f"mean or total{unknown}",
            "Use no mean or total, not by group either, unless you know that their values thin out towards the bounds.",
        ),
        ("bill", f"mean, total or 99 % quantile{unknown}", "Use no mean, total or 99 % quantile, not by group either."),
        ("age", f"99 % quantile{unknown}", "Use no 99 % quantile."),
    ]


def test_the_error_of_a_mean_that_is_not_to_be_used_is_not_listed() -> None:
    fact = {"estimate": 200.0, "expected_error": 10.0}
    columns = [{"name": name, "mean": fact, "p99": fact} for name in "ab"]
    assert [one["name"] for one in worst_means({"columns": columns})] == ["a", "b"]
    columns[0]["avoid"] = ["mean", "total"]
    assert [one["name"] for one in worst_means({"columns": columns})] == ["b"]


def test_an_error_of_a_mean_near_0_is_written_in_its_unit_and_not_in_percent_of_it() -> None:
    score = {"mean": {"estimate": -0.02, "expected_error": 0.015}, "p99": {"estimate": 2.4, "expected_error": 0.1}}
    price = {
        "mean": {"estimate": 20000.0, "expected_error": 500.0},
        "p99": {"estimate": 90000.0, "expected_error": 900.0},
    }
    columns = [column(name, 0.01, 0.01, ordered=True) | one for name, one in (("score", score), ("price", price))]
    said = glance({"privacy": PRIVACY, "method": "nacre", "columns": columns})
    words = "; ".join([said["means"], said["99 % quantiles"]]).replace("\N{NO-BREAK SPACE}", " ")
    assert "score -0.02 within 0.03" in words and "score 2.4 within 0.2" in words
    assert "price 20,000 within 980 (in nineteen" in words and "%" not in words


def test_large_numbers_have_their_digits_and_what_is_close_is_no_weakness() -> None:
    assert [short(x) for x in (13912.4, 1e16, 1.23456, 1e-5)] == ["13,912", "1e+16", "1.235", "1e-5"]
    assert _weak({"a": 0.2, "b": 0.01, "c": 0.009}) == {"a": 0.2, "b": 0.01} and _weak({"c": 0.009}) == {"c": 0.009}


def test_an_example_is_of_the_column_whose_quantiles_are_farthest_off() -> None:
    near = column("near", 0.01, 0.01, ordered=True, quantiles_within=0.01)
    far = column("far", 0.01, 0.01, ordered=True, quantiles_within=0.03)
    words = column("word", 0.01, 0.01, ordered=False)
    said = example({"columns": [near, far, words]}).replace("\N{NO-BREAK SPACE}", " ")
    assert (
        said == "what these rows call the median of far lies between the 47 % and the 53 % quantile of the real values"
    )
    assert example({"columns": [words]}) == example({}) == ""
    assert example({"columns": [{**far, "warning": "w"}]}) == ""
    assert example({"columns": [{**far, "labels": ["1", "2", "null"]}]}) == ""  # its ranks are among all rows


def test_what_stands_between_backticks_is_code_and_nothing_of_a_sentence_is_markup() -> None:
    assert ticked("write `a < b`, or <b>") == "Write <code>a &lt; b</code>, or &lt;b&gt;"


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        (
            "relations that are there for certain: a with b and c with d",
            ("relations that are there for certain", "a with b and c with d"),
        ),
        ("times from 08:00 on: only hours were counted", ("times from 08:00 on", "only hours were counted")),
        ("two columns together in 2 more pairs", ("two columns together in 2 more pairs", "")),
    ],
)
def test_names_and_reasons_of_uses_stand_in_a_column_of_their_own(sentence: str, parts: tuple[str, str]) -> None:
    assert in_two(sentence) == parts


def test_a_score_whose_interval_is_wide_is_said_to_be_open() -> None:
    scores = [{"score": "AUROC", "low": 0.1, "high": 0.9}, {"score": "accuracy", "low": 0.7, "high": 0.8}]
    facts = {"status": "measured", "classifiers": [{"model": "trees", "scores": scores}], "target": "sick"}
    laid_out = _charged({**facts, "columns": [], "columns_with_target": []})
    assert laid_out is not None and laid_out["open_scores"] == ["AUROC of trees"]
