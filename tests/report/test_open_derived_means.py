"""Means of derived columns whose parts, or whose copy, noise leaves open: stated on the same terms."""

from typing import Any

import pytest

from dpmodels.authoring.lint import parse
from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.hand_off.columns.check_derived import are_derived
from dpmodels.methods.registry import create
from dpmodels.pages.figures.open_means import supposes_thinning_out
from dpmodels.report.derived.means import counted_mean, has_counted_mean
from tests.kit.reports import facts_of

pa = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")

RENT = """
name: rents
columns:
  rent: {type: number, min: 0, max: 2000, round: 2}
  service: {type: number, min: 0, max: 300, round: 2}
  whole: {type: derived, formula: rent + service, round: 2}
  whole_counted: {type: number, min: 0, max: 2300, round: 2, computed: whole, keep: drop}
"""
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


def test_what_is_counted_in_place_of_a_derived_column_says_what_that_is_and_no_sum_of_parts() -> None:
    schema, faults = parse(RENT)
    assert isinstance(schema, Schema), faults
    rng = np.random.default_rng(1)
    rent, service = rng.gamma(9, 70, 4000).clip(0, 2000).round(2), rng.gamma(2, 20, 4000).clip(0, 300).round(2)
    records = Codec(schema).encode(
        pa.table({"rent": rent, "service": service, "whole_counted": (rent + service).round(2)})
    )
    facts = facts_of(create("nacre", {}, {}), records, records, schema)
    (whole,), (counted,) = facts["derived"], [one for one in facts["columns"] if one["name"] == "whole_counted"]
    assert whole["counted_as"] == "whole_counted" and whole["mean"]["estimate"] == counted["mean"]["estimate"]
    assert whole["mean"]["synthetic_stddev"] == pytest.approx(counted["mean"]["synthetic_stddev"], rel=0.02)
    assert whole.get("unseen", {}).get("means") == counted.get("unseen", {}).get("means")
    assert are_derived(facts, schema)
    assert not are_derived({**facts, "derived": [{**whole, "counted_as": "rent"}]}, schema)


def test_a_mean_holds_on_terms_where_that_of_what_is_counted_in_its_place_does() -> None:
    mean = {"estimate": 10.0, "expected_error": 0.1, "synthetic": 10.0}
    bill: dict[str, Any] = {"name": "bill", "follows": ["a", "b"], "mean": mean, "unseen": {"means": [8.0, 30.0]}}
    assert supposes_thinning_out(bill)  # by itself: values that noise hides move it by 200 times its error
    assert not supposes_thinning_out({**bill, "counted_as": "bill_counted"})
    assert supposes_thinning_out({**bill, "counted_as": "bill_counted", "unseen": {"means": [8.0, 30.0], "far": True}})
