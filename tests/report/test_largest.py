"""A column most of which lies in one cell is named in the report, with what to do, and is not among the best."""

import json

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.codec.encode import Codec, Records
from dpmodels.contract.schema import Schema
from dpmodels.methods.parts.marginals import fine_codec
from dpmodels.methods.tables.looks import NacreMeasurement
from dpmodels.methods.tables.nacre import Nacre
from dpmodels.pages.advice import meaning_of
from dpmodels.pages.glance import glance, likely_error, unresolved, worst_first
from dpmodels.pages.page import percent, thousands
from dpmodels.pages.report import render
from dpmodels.report.fidelity import Measured
from dpmodels.report.largest import NARROWER, counted_together
from tests.kit.every_kind import make
from tests.kit.reports import facts_of, release_of

ROWS = 20_000
HEAVY = np.minimum(np.exp(np.random.default_rng(0).normal(7, 1.3, ROWS)), 999_999)  # half below 1,100
WIDE = "type: integer, min: 0, max: 1000000"
NACRE = Nacre(NacreMeasurement(zooms=0))
"""Nacre with equal cells alone; zooms leave hardly any column in one of them."""


def planted(amount: str) -> tuple[Schema, Records]:
    """Return a schema and rows: a heavy-tailed amount beside two columns of which the release says all there is."""
    schema = make(
        f"name: payments\ncolumns:\n  amount: {{{amount}}}\n  day: {{type: integer, min: 1, max: 31}}\n"
        "  kind: {type: categorical, values: [card, transfer]}\n"
    )
    rng = np.random.default_rng(1)
    days, kinds = rng.integers(1, 32, ROWS), np.where(rng.random(ROWS) < 0.95, "card", "transfer")
    return schema, Codec(schema).encode(pa.table({"amount": HEAVY.astype(np.int64), "day": days, "kind": kinds}))


def by_cell(schema: Schema, real: Records) -> Records:
    """Draw rows as a generator does that gets every cell right."""
    codec = fine_codec(schema)
    return codec.from_cells(codec.to_cells(real), np.random.default_rng(2))


def report(amount: str) -> tuple[dict, Records, Records]:
    schema, real = planted(amount)
    made = by_cell(schema, real)
    return facts_of(NACRE, real, made, schema), real, made


def column_of(facts: dict, name: str = "amount") -> dict:
    return next(column for column in facts["columns"] if column["name"] == name)


def test_a_column_in_one_cell_is_warned_of_and_listed_before_the_others() -> None:
    facts, real, made = report(WIDE)
    amounts = [records.values[:, 0] * 1_000_000 for records in (real, made)]
    off = np.abs(np.subtract(*(np.histogram(each, np.logspace(0, 6, 30))[0] / ROWS for each in amounts))).sum() / 2
    amount = column_of(facts)
    assert amount["expected_distance"] < 0.02 and off > 0.25  # what the report counts, and what is true
    assert amount["largest_cell"] == {
        "label": "0 to 3905",
        "share": pytest.approx((HEAVY < 3906).mean(), abs=0.01),
        "part_of_range": 0.003905,
    }
    share = percent(amount["largest_cell"]["share"])
    assert f"{share} of the records lie in one cell, 0 to 3905." in amount["warning"]
    assert (
        "declare zero_inflated: true (where many of them are exactly 0) or "
        f"{NARROWER} or declare scale: log (where few of them are) or "
        "ask for more cells (model.measurement.fine_cells, now 256)."
    ) in amount["warning"]
    least = [column | {"expected_distance": 0.0} if column is amount else column for column in facts["columns"]]
    assert worst_first(least)[0]["name"] == "amount"  # though no column has less noise
    assert glance(facts)["worst columns"].startswith("amount (not resolved), ")
    page = render(json.loads(json.dumps(facts)))
    assert (
        meaning_of(amount["warning"]) in page
        and "For the next release" not in page
        and page.count('"#warnings">warning<') == 1
    )


@pytest.mark.parametrize(
    "amount", [f"{WIDE}, scale: log", "type: integer, min: 0, max: 20000, outside: clip"], ids=["log", "narrow"]
)
def test_what_the_warning_advises_ends_it(amount: str) -> None:
    facts, _, _ = report(amount)
    said = column_of(facts).get("warning", "")
    assert "lie in one cell" not in said and ('"#warnings">warning<' in render(facts)) == bool(said)


def test_zooms_end_it_and_what_is_drawn_has_the_shape_of_the_column() -> None:
    schema, real = planted(WIDE)
    amount = column_of(facts_of(Nacre(), real, real, schema))
    assert not unresolved(amount) and amount["largest_cell"]["share"] < 0.05


@pytest.mark.parametrize("outside", ["refuse", "clip", "reject-row"])
def test_who_is_advised_of_narrower_bounds_is_told_to_cut_no_true_value(outside: str) -> None:
    facts, _, _ = report(f"{WIDE}, outside: {outside}")
    said = column_of(facts)["warning"]
    assert "narrower public bounds (not so narrow that a true value lies beyond them)" in said


@pytest.mark.nightly
def test_the_advice_is_only_what_would_help() -> None:
    schema, real = planted(WIDE)
    few = column_of(facts_of(Nacre(NacreMeasurement(fine_cells=4096, zooms=0)), real, real, schema))
    assert "warning" not in few or "more cells" not in few["warning"]
    spike = make("name: x\ncolumns:\n  x: {type: number, min: 0, max: 1000, scale: log}\n  y: {type: boolean}\n")
    rows = Codec(spike).encode(pa.table({"x": np.full(40_000, 700.5), "y": np.zeros(40_000, dtype=bool)}))
    said = column_of(facts_of(NACRE, rows, rows, spike), "x")["warning"]
    assert float(said.partition(" of the records")[0].split()[-2]) > 99  # all of them, but for the noise
    assert "scale" not in said and f"{NARROWER} or ask for more cells" in said


@pytest.mark.parametrize(
    ("column", "advice"),
    [
        ("min: -1000000, max: 10000", "{zero} or {narrow} or {more}."),  # a log scale is fine near its lower bound
        ("min: 0, max: 1000000, scale: log", "{zero} or {narrow} or {more}."),
        ("min: -0.02, max: 5", "{zero}."),  # a cell of 0.00 and 0.01
    ],
)
def test_zeros_in_a_cell_with_others_are_advised_to_be_a_state_of_their_own(column: str, advice: str) -> None:
    schema = make(f"name: x\ncolumns:\n  x: {{type: number, round: 2, {column}}}\n  y: {{type: boolean}}\n")
    rows = Codec(schema).encode(pa.table({"x": np.arange(40_000) % 10 // 9 * 4.5, "y": np.zeros(40_000, dtype=bool)}))
    said = column_of(facts_of(NACRE, rows, rows, schema), "x")["warning"]
    zero = "declare zero_inflated: true (where many of them are exactly 0)"
    more = "ask for more cells (model.measurement.fine_cells, now 256)"
    expected = advice.format(zero=zero, narrow=NARROWER, more=more)
    assert f"For the next release, {expected}" in said


@pytest.mark.parametrize(
    ("column", "values", "label"),
    [
        ("{type: categorical, values: [a, b]}", ["a"], "a"),
        ("{type: integer, min: 0, max: 9}", [3], "3"),
        ("{type: number, min: 0, max: 1000000, zero_inflated: true}", [0.0], "exactly 0"),
        ("{type: number, min: 0, max: 1000000, nullable: true}", [None], "null"),
    ],
)
def test_a_cell_of_one_value_assumes_nothing(column: str, values: list, label: str) -> None:
    schema = make(f"name: one\ncolumns:\n  x: {column}\n  y: {{type: boolean}}\n")
    made = pa.table({"x": pa.array(values * 3000), "y": np.zeros(3000, dtype=bool)})
    table = Codec(schema).encode(made)
    x = column_of(facts_of(NACRE, table, table, schema), "x")
    assert x["largest_cell"]["label"] == label and x["largest_cell"]["share"] > 0.9
    assert set(x["largest_cell"]) == {"label", "share"}
    assert "lie in one cell" not in x.get("warning", "")  # of zeros alone the mean is less than its error


def test_a_report_from_before_there_were_largest_cells_is_still_laid_out() -> None:
    facts, _, _ = report(WIDE)
    for column in facts["columns"]:
        del column["largest_cell"]
        column.pop("warning", None)
        column.pop("counted_together", None)
    assert "Expected error by column" in render(facts)


def towns(rows: int) -> tuple[Schema, Records]:
    """Return rows of which a third live in one of three cities, and the others in one of two thousand villages."""
    names = ["York", "Hull", "Leeds", *(f"village {index}" for index in range(2000))]
    schema = make(
        f"name: towns\ncolumns:\n  town: {{type: categorical, values: {json.dumps(names)}}}\n  old: {{type: boolean}}\n"
    )
    rng = np.random.default_rng(3)
    place = np.where(rng.random(rows) < 1 / 3, rng.integers(0, 3, rows), rng.integers(3, len(names), rows))
    return schema, Codec(schema).encode(pa.table({"town": np.array(names)[place], "old": rng.random(rows) < 0.5}))


def test_rare_categories_are_said_to_be_counted_together_with_what_noise_adds_among_them() -> None:
    schema, real = towns(200_000)
    marginals = Measured.of(release_of(NACRE, real, schema)).marginals
    noisy = marginals.columns["town"]
    said = counted_together(marginals.codec.columns["town"], noisy, marginals.records)
    members = np.bincount(noisy.cell_of)[noisy.cell_of] > 1
    truth = np.bincount(real.states[:, 0], minlength=2003)
    assert not members[:3].any() and (said["members"], said["of"], said["into"]) == (members.sum(), 2003, 1)
    assert said["share"] == pytest.approx(truth[members].sum() / 200_000, abs=0.01)
    guess = noisy.counts[members].clip(0)
    within = np.abs(guess / guess.sum() * truth[members].sum() - truth[members]).sum() / (2 * 200_000)
    assert 0.3 * said["distance_within"] < within < 1.1 * said["distance_within"]


def test_a_column_of_categories_that_are_mostly_noise_is_warned_of_and_is_the_worst() -> None:
    schema, real = towns(20_000)
    facts = facts_of(NACRE, real, real, schema)
    town = column_of(facts, "town")
    together = town["counted_together"]
    assert together["share"] > together["distance_within"] > 0.25 > town["expected_distance"]
    assert f"{together['members']} categories too thin to be counted alone" in town["warning"]
    assert "list fewer categories or spend more" in town["warning"]
    assert worst_first(facts["columns"])[0] is town and likely_error(town) > together["distance_within"]
    page = render(facts)
    assert meaning_of(town["warning"]) in page and f"of {thousands(2003)} categories, as one" in page


def test_a_table_whose_cells_all_stand_alone_says_nothing_of_it() -> None:
    schema = make("name: one\ncolumns:\n  x: {type: categorical, values: [a, b]}\n  y: {type: boolean}\n")
    rows = Codec(schema).encode(pa.table({"x": ["a", "b"] * 2000, "y": np.zeros(4000, dtype=bool)}))
    facts = facts_of(NACRE, rows, rows, schema)
    assert not any("counted_together" in column for column in facts["columns"])
    assert "What was counted together" not in render(facts)
