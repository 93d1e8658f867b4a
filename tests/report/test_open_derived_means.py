"""Means of derived columns whose parts, or whose copy, noise leaves open: stated on the same terms."""

from typing import Any

import pytest

from dpmodels.authoring.lint import parse
from dpmodels.contract.schema import Schema
from dpmodels.report.derived.means import counted_mean, has_counted_mean

SCHEMA = """
name: claims
columns:
  care: {type: categorical, values: [a, b]}
  paid: {type: number, min: 0, max: 15000, round: 2}
  rate: {type: derived, formula: "{'a': 70, 'b': 60}[care]", dtype: int64}
  part: {type: derived, formula: "round(paid * {'a': 70, 'b': 60}[care]) / 100", round: 2}
  part_counted: {type: number, min: 0, max: 11000, round: 2, computed: part, keep: drop}
"""
MEANS = {"means": [90.0, 400.0], "open": True}


def columns() -> dict[str, Any]:
    schema, faults = parse(SCHEMA)
    assert isinstance(schema, Schema), faults
    return dict(schema.columns)


def reported(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "number", "ordered": True, "labels": ["0 to 1"], "released": [1.0], **more}


def open_amount(name: str) -> dict[str, Any]:
    mean = {"estimate": 138.0, "expected_error": None, "synthetic": 136.0, "expected_error_if_thinning_out": 12.0}
    return reported(name, mean=mean, unseen={"records": 200.0, "share": 0.02, **MEANS}, avoid=["mean", "total"])


@pytest.mark.parametrize("copy", ["", "part_counted"])
def test_a_mean_whose_parts_or_copy_are_open_is_open_too(copy: str) -> None:
    known = [reported("care"), open_amount("part_counted" if copy else "paid")]
    made = counted_mean(columns()["part"], columns(), known, (90.0, 10.0), [80.0, 100.0], copy)
    assert made["mean"]["expected_error"] is None and made["mean"]["expected_error_if_thinning_out"] == 10.0
    assert made["unseen"]["open"] is True and (not copy or made["unseen"] == MEANS)


def test_nothing_is_said_where_values_were_cut() -> None:
    cut = {**open_amount("part_counted"), "clipped": ["max"]}
    assert not has_counted_mean(columns()["part"], columns(), [reported("care"), cut], "part_counted")


def test_whole_numbers_that_are_looked_up_have_a_mean_however_small_its_error() -> None:
    made = counted_mean(columns()["rate"], columns(), [reported("care")], (65.0, 0.03), [70.0, 60.0])
    assert made["mean"]["expected_error"] == 0.03
