"""The verdict of a column and the headline of a report: functions of its figures, and none says more than they do."""

from typing import Any

from dpmodels.pages.by_column import by_column
from dpmodels.pages.figures.grades import BAD, CARE
from dpmodels.report.verdicts import CLOSE, LOST, UNKNOWN, UNRESOLVED, headline, judged, verdict


def column(name: str = "x", noise: float = 0.01, fit: float = 0.01, **more: Any) -> dict[str, Any]:
    facts = {"name": name, "type": "categorical", "ordered": False, "released": [0.5, 0.5], "labels": ["0 to 1", "2"]}
    facts["synthetic"] = facts["released"]
    return {**facts, "expected_distance": noise, "distance_to_release": fit, **more}


def number(name: str = "n", **more: Any) -> dict[str, Any]:
    ranks = {"expected_rank_distance": 0.01, "rank_distance_to_release": 0.02}
    return column(name, type="number", ordered=True, **ranks, **more)


def report(*columns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"columns": list(columns), "pairs": None, "fit": [], **more}


def test_a_verdict_rounds_up_and_names_what_not_to_use() -> None:
    assert verdict(column(noise=0.0101, fit=0)) == "shares within 1.1\N{NO-BREAK SPACE}%"
    assert verdict(column(noise=0.01, fit=0)) == "shares within 1\N{NO-BREAK SPACE}%"
    assert verdict(number()) == "quantiles within 3\N{NO-BREAK SPACE}%, shares within 2\N{NO-BREAK SPACE}%"
    newer = number(cells=7, quantiles_within=0.0251, shares_within=0.012)
    assert (
        verdict(newer)
        == "quantiles within 2.6\N{NO-BREAK SPACE}%, shares of all 7 ranges within 1.2\N{NO-BREAK SPACE}%"
    )
    assert verdict({**newer, "cells": 1}).replace("\N{NO-BREAK SPACE}", " ") == "quantiles within 2.6 %"
    doubted = number(avoid=["mean", "total", "p99"])
    assert verdict(doubted).endswith("; use no mean, total or 99 % quantile")
    on_terms = {"estimate": 10.0, "expected_error": None, "expected_error_if_thinning_out": 2.0}
    far = {"estimate": 90.0, "expected_error": 30.0}
    amount = number(mean=on_terms, p99=far, avoid=["mean", "total"], unseen={"open": True, "means": [5.0, 80.0]})
    assert verdict(amount).endswith("; use no 99 % quantile; mean and total only if its values thin out")
    assert by_column(report(amount)).lines[0][1][2][0].kind == BAD  # as the table has it, mean and total with care
    assert by_column(report(amount)).lines[0][1][1][0].kind == CARE
    assert verdict(column(warning="w")) == UNRESOLVED and verdict({"name": "x"}) == UNKNOWN


def test_a_headline_says_within_what_all_are_or_how_many_are_close_and_what_is_worst() -> None:
    close = headline(report(column("a"), column("b", 0.02), number(), pairs={"distances": [[0, 1, 0.01, 0.02]]}))
    assert close.startswith("10 to 90 % quantiles within") and "in the one number column; shares within" in close
    assert "3\N{NO-BREAK SPACE}% in both category columns; two columns together" in close and close.endswith(
        "the one pair."
    )
    newer = headline(report(column("a"), column("b"), pairs={"distances": [[0, 1, 0.01, 0.02, 0.02, 0.03]]}))
    assert "two columns together, in broad groups, within 3\N{NO-BREAK SPACE}% in the one pair." in newer
    far = headline(report(column("a"), column("b", 0.2), column("c", CLOSE)))
    assert "in 1 of 3 category columns, farthest off b (21\N{NO-BREAK SPACE}%) and c (6\N{NO-BREAK SPACE}%)." in far
    assert (
        headline(report(column("a", 0.1), column("b", 0.2)))
        == "Shares within 21\N{NO-BREAK SPACE}% in both category columns."
    )


def test_a_headline_counts_what_is_not_resolved_and_the_relations_that_stand_out_of_the_noise() -> None:
    lost = headline(report(number("n"), number("m", warning="w")))
    assert "in 1 of 2 number columns." in lost and "Not resolved: m." in lost
    kept, weaker, hidden = (0.5, 0.5, 0.01, 0.02), (0.5, 0.1, 0.01, 0.02), (0.02, 0.0, 0.02, 0.03)
    distances = [[0, 1, 0, 0, 0, 0.02, *kept], [0, 2, 0, 0, 0, 0.04, *weaker], [1, 2, 0, 0, 0, 0.3, *hidden]]
    said = headline(report(column("a"), column("b"), column("c"), pairs={"distances": distances, "target": 1}))
    assert said.endswith(
        "In 2 of 3 pairs the columns depend on each other by more than noise shows, in 1 of these by less in these "
        "rows than as released; with b (the target) in 1 of 2."
    )
    stronger = [distances[0], [*distances[1][:7], 0.7, 0.01, 0.02], distances[2]]
    said = headline(report(column("a"), column("b"), column("c"), pairs={"distances": stronger}))
    assert said.endswith("more than noise shows, in 1 of these by over a quarter more.")
    assert "the target" not in headline(report(column("a"), column("b"), pairs={"distances": distances[:1]}))
    before = [one[:6] for one in distances]
    assert "noise shows" not in headline(report(column("a"), column("b"), column("c"), pairs={"distances": before}))


def test_a_headline_names_what_is_not_to_be_trusted_and_what_nobody_knows() -> None:
    figures = {key: {"estimate": 10.0, "expected_error": 0.01} for key in ("mean", "p99")}
    columns = [number("m", avoid=["mean", "total"], **figures), number("q", avoid=["p99"], **figures)]
    columns.append(column("r", warning="w"))
    columns.append({"name": "s", "type": "number", "ordered": True})
    fit = [{"left": 1.0, "explained": 1.0}]
    said = headline(report(*columns, fit=fit))
    assert "Of 1 of 4 columns nothing was released by itself. The rows follow what was released" in said
    assert said.endswith("Not resolved: r. Not for means and totals: m. Not for 99 % quantiles: q.")
    many = headline(report(*(number(f"m{n}", avoid=["mean"], **figures) for n in range(9))))
    assert many.endswith("Not for means and totals: m0, m1, m2, m3, m4, m5, m6, m7 and 1 more.")


def test_of_images_and_embeddings_a_label_is_not_all_that_is_said() -> None:
    fit = [{"left": 2.0, "explained": 1.0}]
    for beside in ("map", "sample_sheet"):
        assert headline(report(column("label"), fit=fit, **{beside: "x"})).endswith("as closely as its noise allows.")


def test_drowned_rows_are_not_praised_for_a_column() -> None:
    facts = judged(report(column(), drowned="what was released hardly stands out"))
    assert facts["headline"] == LOST and facts["columns"][0]["verdict"].startswith("shares within")
