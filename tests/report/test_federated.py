"""What a federation's report says of the classifiers that were made: which is better, if that is known."""

import numpy as np
import pytest

from dpmodels.pages.page import percent
from dpmodels.pages.rounds import _curves
from dpmodels.report.federated import Rated, compare


def rated(name: str, right: int, records: int = 1000) -> Rated:
    return Rated(name, np.arange(records) < right)


def test_the_better_classifier_is_named_with_both_figures() -> None:
    said = compare([rated("the one", 900), rated("the other", 700)])
    assert said["classifiers"] == [{"name": "the one", "accuracy": 0.9}, {"name": "the other", "accuracy": 0.7}]
    assert "the one is right about 90.0%" in said["words"] and "The other is right about 70.0%" in said["words"]
    assert "handed over is the one" in said["words"] and "so many records can tell" not in said["words"]


def test_a_difference_that_chance_explains_is_said_to_be_one() -> None:
    half = np.arange(200) % 2 == 0
    close = compare([Rated("the one", half), Rated("the other", ~half)])
    assert "within what so many records can tell" in close["words"]
    same = compare([rated("the one", 80, 100), rated("the other", 80, 100)])
    assert "within what so many records can tell" in same["words"]


@pytest.mark.parametrize("names", [("the one",), ("the one", "the other")])
def test_without_labeled_records_nothing_is_claimed(names: tuple[str, ...]) -> None:
    said = compare([Rated(name) for name in names])
    assert said["records"] == 0 and said["classifiers"] == [] and "nothing tells how often it is right" in said["words"]
    assert ("whether the other would be" in said["words"]) == (len(names) == 2)


def test_the_curves_of_rounds_are_drawn_and_written_down() -> None:
    rounds = [
        {"number": 1, "drawn": ["a", "b"], "dropped": {}, "accuracy": 0.25},
        {"number": 2, "drawn": ["a", "c"], "dropped": {"c": "it was late"}, "accuracy": 0.75},
    ]
    right, took = _curves(rounds)
    assert [row[1] for row in right.rows] == [percent(0.25), percent(0.75)]
    assert [row[1] for row in took.rows] == [percent(1), percent(0.5)]
    assert right.svg.count("<circle") == 2 and "round 2" in right.svg
    floor, top = 130, 10  # 25% lies a quarter of the way up, 75% three quarters
    assert f"{floor - 0.25 * (floor - top):g}" in right.svg and f"{floor - 0.75 * (floor - top):g}" in right.svg
    assert len(_curves([{**one, "accuracy": None} for one in rounds])) == 1
