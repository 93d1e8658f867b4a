"""What a report says of means and large values: about as far off as it says, and a warning where that is hopeless."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpmodels.codec.encode import Codec
from dpmodels.contract.schema import Schema
from dpmodels.generators.ends import Ends
from dpmodels.generators.moment_matching import MixtureSpec
from dpmodels.generators.refinements.tails import Pooled
from dpmodels.hand_off.check_warnings import DISCOVERED, is_warning
from dpmodels.methods.parts.marginals import Marginal
from dpmodels.methods.registry import create
from dpmodels.methods.tables.nacre import Nacre
from dpmodels.pages.advice import meaning_of
from dpmodels.pages.glance import clipped, glance, relative_error, worst_means
from dpmodels.pages.report import number_row
from dpmodels.privacy import Released
from dpmodels.releases.system import Craft
from dpmodels.report.bins import CellTally
from dpmodels.report.fidelity import Measured, drowned
from dpmodels.report.largest import UNCUT, warning
from dpmodels.report.numbers import Spread, _unseen, errors_of
from dpmodels.report.posterior import places
from dpmodels.report.warned import FEW_AMOUNTS, crowded, cut, discovered_bounds, doubt, warned
from tests.kit.every_kind import make
from tests.kit.reports import facts_of, release_of

KEYS = {"type": "number", "round": 2, "min": 0, "max": 10_000_000, "scale": "log"}


def columns() -> dict[str, tuple[dict[str, object], np.ndarray]]:
    """Make columns as people have them: with a long tail, with round amounts, many zeros, and up to a bound."""
    rng = np.random.default_rng(1)
    wage = np.round(rng.lognormal(10, 0.7, 8000), -4).clip(0, 10**6)
    gain = np.where(rng.random(20_000) < 0.9, 0, rng.choice([3103, 7688, 15_024, 99_999], 20_000)).astype(np.int64)
    fee = np.where(rng.random(40_000) < 0.97, 12, rng.uniform(0, 100_000, 40_000))
    return {
        "bill": (KEYS, rng.lognormal(6.5, 1, 8000).round(2)),
        "wage": ({"type": "integer", "min": 0, "max": 10**6, "scale": "log"}, wage.astype(np.int64)),
        "gain": ({"type": "integer", "min": 0, "max": 99_999, "scale": "log", "zero_inflated": True}, gain),
        "fee": ({**KEYS, "max": 100_000, "scale": "linear"}, fee.round(2)),
    }


@pytest.mark.nightly
def test_synthetic_means_and_quantiles_are_as_far_off_as_is_said() -> None:
    errors: dict[str, list[list[float]]] = {}
    for name, (keys, values) in columns().items():
        schema = Schema.model_validate({"name": "t", "columns": {"x": keys, "paid": {"type": "boolean"}}})
        records = Codec(schema).encode(pa.table({"x": values, "paid": values > 500}))
        for seed in range(6):
            release = release_of(Nacre(), records, schema)
            marginals, model = (
                Nacre().marginals(release),
                Nacre(training=MixtureSpec(components=64, steps=100)).fit(Released(release), Craft(seed=seed)),
            )
            rows = next(iter(model.sample(len(values), seed)))
            tally = CellTally(marginals.codec)
            tally.add(rows)
            made = Codec(schema).decode(rows)["x"].to_numpy()
            said = errors_of(marginals.codec.columns["x"], marginals.columns["x"], tally.cells[0] / tally.rows)
            for key, true, real in (("mean", np.mean(values), made.mean()), ("p99", *quantiles(values, made))):
                errors.setdefault(f"{name} {key}", []).append([stated(said[key]), real - true])
    ratios = {name: float(np.divide(*np.sqrt(np.mean(np.square(each), axis=0)))) for name, each in errors.items()}
    for key in ("mean", "p99"):
        together = float(np.exp(np.mean([math.log(x) for name, x in ratios.items() if name.endswith(key)])))
        assert 0.7 < together < 2.5, ratios
    assert min(ratios.values()) > 0.25, ratios
    assert ratios["fee mean"] > 0.45, ratios  # what lies evenly up to the bound is no tail that falls


def stated(fact: dict[str, float]) -> float:
    """Return the error that is stated of a figure, if only for values that thin out."""
    return fact.get("expected_error_if_thinning_out") or fact["expected_error"]


def quantiles(*tables: np.ndarray) -> list[float]:
    """Return the 99 % quantile of each column."""
    return [float(np.quantile(each, 0.99)) for each in tables]


@pytest.mark.parametrize("low", [0, -10_000_000])
def test_a_mean_that_noise_exceeds_is_warned_of_unless_it_may_be_nothing(low: int) -> None:
    columns = {"x": {**KEYS, "min": low, "scale": "linear", "cells": 3}, "y": {"type": "boolean"}}
    column = Codec(Schema.model_validate({"name": "t", "columns": columns})).columns["x"]
    noisy = Marginal.plain(np.array([1000.0, -40.0, 10.0]), 60.0)
    errors = {"mean": {"estimate": 10.0, "expected_error": 20.0}, "p99": {"estimate": 50.0, "expected_error": 5.0}}
    assert (doubt(column, errors) is not None) == (low == 0)
    made = np.array([1.0, 0.0, 0.0])
    assert stated(errors_of(column, noisy, made)["mean"]) > 0
    assert errors_of(column, Marginal.plain(np.zeros(3), 60.0), made) == {}


def test_nothing_is_said_of_numbers_whose_squares_are_none(recwarn: pytest.WarningsRecorder) -> None:
    columns = {"x": {"type": "number", "min": 0, "max": 1e299, "cells": 8}, "y": {"type": "boolean"}}
    column = Codec(Schema.model_validate({"name": "t", "columns": columns})).columns["x"]
    counts = np.array([5000.0, 900, 300, 100, 30, 10, 3, 1])
    assert errors_of(column, Marginal.plain(counts, 5.0), counts / counts.sum()) == {} and not recwarn.list


def test_fewer_records_than_the_plan_asks_for_are_warned_of_whatever_the_size_of_the_release() -> None:
    loud = [{"signal": 5.0}]
    assert drowned(loud) is None and drowned(loud, 150, 149) is None
    assert "about 40 were counted, and about 149 are needed" in str(drowned(loud, 40, 149))


def test_the_worst_means_are_named_at_the_end_of_a_run() -> None:
    fact = {"estimate": 200.0, "expected_error": 10.0}
    column = {"name": "bill", "mean": fact, "p99": {"estimate": 1000.0, "expected_error": 200.0}}
    facts = {"privacy": {"spent_epsilon": 1, "delta": 1e-5, "unit": "record"}, "method": "nacre", "columns": [column]}
    assert lines(facts)["means"].startswith("bill 200 within 20 (in nineteen")
    assert lines(facts)["99 % quantiles"] == "bill 1,000 within 400 (in as many)" and "at the bounds" not in lines(
        facts
    )
    column["clipped"] = [0.0, 2000.0]
    assert lines(facts)["at the bounds"].startswith("values beyond 0 to 2,000 of bill, if there were any, were set to")
    column["unseen"] = {"quantile": True}
    assert lines(facts)["99 % quantiles"] == "bill not known" and lines(facts)["means"].startswith("bill 200 within 20")


def test_an_error_of_years_is_held_against_how_far_they_lie_apart() -> None:
    year = {"mean": {"estimate": 2010.0, "expected_error": 1.0}, "p99": {"estimate": 2020.0, "expected_error": 1.0}}
    assert relative_error(year, "mean") < 0.001 and relative_error(year, "p99") < 0.001  # of earlier versions
    year["mean"]["synthetic_stddev"] = 5.0
    assert relative_error(year, "mean") == 0.2 and relative_error(year, "p99") == 0.1
    year["mean"]["synthetic_stddev"] = 4000.0
    assert relative_error(year, "mean") < 0.001 and relative_error(year, "p99") < 0.001


def test_the_synthetic_mean_is_that_of_the_rows_themselves() -> None:
    schema = make("name: one\ncolumns:\n  x: {type: integer, min: 0, max: 999, cells: 4, nullable: true}\n")
    table = pa.table({"x": pa.array([249, None] * 300 + [751] * 300, pa.int64())})
    records = Codec(schema).encode(table)
    facts = facts_of(create("nacre", {}, {}), records, records, schema)
    (column,) = facts["columns"]
    assert column["mean"]["synthetic"] == 500.0 and column["mean"]["synthetic_stddev"] == pytest.approx(251, rel=0.05)
    tally = CellTally(Codec(schema))
    tally.add(records, 1.0, np.repeat([1.0, 3.0], [600, 300]))
    half = CellTally(Codec(schema))
    half.join(tally)
    assert tally.mean("x") == half.mean("x") == pytest.approx((249 * 300 + 3 * 751 * 300) / 1200)


def lines(facts: dict[str, Any]) -> dict[str, str]:
    """Return what is said of a run, with plain spaces."""
    return {name: said.replace("\N{NO-BREAK SPACE}", " ") for name, said in glance(facts).items()}


@pytest.mark.parametrize("outside", ["clip", "reject-row"])
def test_figures_of_a_clipped_column_say_that_they_are_of_what_was_left(outside: str) -> None:
    columns = {"x": {**KEYS, "min": -4, "max": 2000, "outside": outside, "cells": 3}, "y": {"type": "boolean"}}
    column = Codec(Schema.model_validate({"name": "t", "columns": columns})).columns["x"]
    facts = errors_of(column, Marginal.plain(np.array([1000.0, 400.0, 100.0]), 6.0), np.array([0.6, 0.3, 0.1]))
    assert facts.get("clipped") == ([-4.0, 2000.0] if outside == "clip" else None)
    said = clipped([{"name": "x", **facts}])
    assert said.startswith("values beyond -4 to 2,000 of x, if there") if outside == "clip" else said == ""


WIDE = np.array([0.0] * 5 + [40.7, 34.7, 17.5] + [0.0] * 8)
RESTLESS = np.array([-2.3, 6.7, 10.1, -13.7, 4.8, 5, 6, 25.8, 29.4, 16.1, -2.7, 7.5, 5.4, 9.5, 1.5, -8.8])


@pytest.mark.parametrize("counts", [WIDE, RESTLESS])
def test_few_values_in_the_middle_are_not_spread_up_to_the_bound(counts: np.ndarray) -> None:
    """Counts of a release of 3,000 records, 97 % of which are zero: the mean of the others is about 2,200."""
    keys = {**KEYS, "max": 1_000_000, "cells": 16}
    column = Codec(Schema.model_validate({"name": "t", "columns": {"x": keys, "y": {"type": "boolean"}}})).columns["x"]
    ends = Ends(column, Pooled(counts, 6.0**2 * np.eye(16)), np.ones(16))
    shares = ends.expected
    mean = float(shares @ (ends.edges[:-1] + ends.edges[1:]) / 2)
    assert shares[12:].sum() < 0.1 and 300 < mean < 12_000


@pytest.mark.parametrize("high", [1e5, 1e7])
def test_how_values_lie_in_the_one_cell_that_holds_them_is_in_the_error(high: float) -> None:
    """A bound that is a thousand times too wide leaves all values in the first cell of a linear scale."""
    keys = {"type": "number", "round": 2, "min": 0, "max": high, "cells": 64}
    column = Codec(Schema.model_validate({"name": "t", "columns": {"x": keys, "y": {"type": "boolean"}}})).columns["x"]
    counts = np.random.default_rng(2).normal(0, 9, 64).round()
    counts[0] = 600
    noisy = Marginal.plain(counts, 9.0)
    ends = Ends(column, Pooled(counts, 81 * np.eye(64)), np.ones(64))
    facts = errors_of(column, replace(noisy, ends=ends), ends.expected)
    assert ends.lower is None and ends.expected[0] > 0.8
    width = high / 64
    assert facts["mean"]["estimate"] < width and stated(facts["mean"]) > 0.15 * width
    assert facts["unseen"]["records"] > 100 and facts["unseen"]["means"][1] > 0.1 * high
    assert facts["unseen"]["means"][0] == 0  # and no further down, where no value may be
    assert (
        facts["unseen"]["open"] and "by noise alone its mean lies anywhere from 0 to" in doubt(column, facts).sentence
    )


@pytest.mark.parametrize(("low", "high"), [(-25_000, 1000), (-1000, 25_000)])
def test_what_noise_may_hide_at_either_bound_is_said_where_it_exceeds_the_stated_error(low: int, high: int) -> None:
    keys = {"type": "number", "round": 2, "min": low, "max": high, "cells": 64}
    column = Codec(Schema.model_validate({"name": "t", "columns": {"x": keys, "y": {"type": "boolean"}}})).columns["x"]
    counts = np.zeros(64)
    counts[63 if low < -high else 0] = 4000
    facts = errors_of(column, Marginal.plain(counts, 30.0), counts / counts.sum())
    least, most = facts["unseen"]["means"]
    error, mean = stated(facts["mean"]), facts["mean"]["estimate"]
    assert max(mean - least, most - mean) > 2 * error and least <= mean - 0.9 * error and most >= mean + 0.9 * error


def test_a_mean_that_noise_leaves_open_is_warned_of_and_not_listed_beside_the_others() -> None:
    column = Codec(Schema.model_validate({"name": "t", "columns": {"x": KEYS, "y": {"type": "boolean"}}})).columns["x"]
    fact = {"estimate": 200.0, "expected_error": 10.0}
    columns = [{"name": name, "mean": fact, "p99": fact} for name in "abc"]
    columns.append({"name": "far", "mean": {**fact, "expected_error": 11.0}, "p99": fact})
    columns[-1]["unseen"] = {"records": 330.0, "share": 0.1, "means": [195.0, 300.0]}
    assert [one["name"] for one in worst_means({"columns": columns})] == ["far", "a", "b"]
    assert doubt(column, columns[-1]) is None
    columns[-1]["unseen"] |= {"means": [195.0, 9000.0], "open": True, "quantile": True, "quantiles": [200.0, 8000.0]}
    assert [one["name"] for one in worst_means({"columns": columns})] == ["a", "b", "c"]
    columns[-1]["mean"] |= {"expected_error": None, "expected_error_if_thinning_out": 11.0}
    verdict = doubt(column, columns[-1])
    assert verdict.figures == ("mean", "total", "p99") and "anywhere from 195 to 9,000" in verdict.sentence
    assert verdict.sentence.startswith("use no mean, total or 99 % quantile")
    row = number_row(columns[-1])
    assert row == ("far", "200", "", "22, if its values thin out", "200", "unknown", "195", "9,000")
    assert number_row(columns[0] | {"discovered_bounds": ["max"]}) == (
        "a", "200", "", "at least 20", "200", "at least 20", "", ""
    )  # fmt: skip


def test_an_error_of_a_quantile_is_half_a_step_of_its_column_at_least() -> None:
    rated, rng = Schema.model_validate(NARROW), np.random.default_rng(1)
    records = Codec(rated).encode(pa.table({"x": rng.integers(1, 4, 5000), "y": rng.random(5000) < 0.5}))
    marginals = Nacre().marginals(release_of(Nacre(), records, rated))
    noisy, column = marginals.columns["x"], marginals.codec.columns["x"]
    facts = errors_of(column, noisy, np.clip(noisy.counts, 0, None) / noisy.counts.sum())
    row = number_row({"name": "x", **facts})
    assert (row[4], row[5]) == ("3", "0.98")
    assert row[2] == f"{facts['mean']['synthetic']:.4g}" and float(row[2]) == pytest.approx(2, abs=0.1)


NARROW = {"name": "t", "columns": {"x": {"type": "integer", "min": 1, "max": 3}, "y": {"type": "boolean"}}}


def test_bounds_that_values_are_set_to_are_named_alike_and_as_far_as_there_is_room() -> None:
    columns = [{"name": f"c{n}", "clipped": [0.0, n]} for n in range(7)]
    said = clipped(columns, 5)
    assert "0 to 4 of c4, those of 2 more columns, if there" in said and "c5" not in said
    assert clipped(columns).count(" of c") == 7 and clipped(columns[:5], 5) == clipped(columns[:5])


def crowd_of(keys: dict[str, object], values: np.ndarray) -> str:
    """Return what is said of values that crowd at a bound, of a release of them."""
    columns = {"x": {"type": "number", "round": 2, "outside": "clip", **keys}, "y": {"type": "boolean"}}
    schema = Schema.model_validate({"name": "t", "columns": columns})
    column = schema.columns["x"]
    kept = values.clip(column.low, column.high)
    records = Codec(schema).encode(pa.table({"x": kept, "y": values > np.median(values)}))
    marginals = Nacre().marginals(release_of(Nacre(), records, schema))
    return str(crowded(column, marginals.columns["x"]))


def test_values_that_crowd_at_a_bound_are_said_to_be_set_to_it_and_others_are_not() -> None:
    rng = np.random.default_rng(5)
    amounts = rng.lognormal(4, 1, 5000).round(2)
    for keys in ({"min": 0, "max": 150}, {"min": 0, "max": 150, "scale": "log"}):
        said = crowd_of(keys, amounts)
        assert said.startswith(("15", "16", "17")) and "cell at its max, 150.00" in said, said
        assert "are too low by more than is stated here. For the next release, write a larger" in said
    assert "at its min, -150.00" in crowd_of({"min": -150, "max": 0}, -amounts)
    assert "at its min, 40.00" in crowd_of({"min": 40, "max": 5000}, amounts)
    for keys in ({"min": 0, "max": 100_000}, {"min": 0, "max": 5000}, {"min": 0.5, "max": 1e6, "scale": "log"}):
        assert crowd_of(keys, amounts) == "None", keys
    assert crowd_of({"min": 0, "max": 100}, rng.uniform(0, 100, 5000)) == "None"
    assert crowd_of({"min": 0.01, "max": 99_999}, amounts) == "None"
    assert crowd_of({"min": 0, "max": 150, "outside": "reject-row"}, amounts) == "None"
    thousandths = np.where(rng.random(5000) < 0.002, 50_000, 52.345)  # read as amounts far below the min
    assert "at its min, 20000.00" in crowd_of({"min": 20_000, "max": 400_000, "scale": "log"}, thousandths)


REFUND = {"type": "number", "round": 2, "min": 0, "max": 5000, "outside": "clip", "zero_inflated": True}


@pytest.mark.parametrize("sign", [1, -1])
def test_values_in_one_cell_beside_zeros_may_lie_at_its_lower_end_and_are_warned_of(sign: int) -> None:
    """Of 1,991 refunds 6 % are above zero; all of them lie in the first cell, most of them near its lower end."""
    rng = np.random.default_rng(7)
    refunds = np.where(rng.random(1991) < 0.06, rng.lognormal(2.6, 1.1, 1991), 0).clip(0, 710).round(2)
    keys = REFUND if sign > 0 else {**REFUND, "min": -5000, "max": 0}
    schema = Schema.model_validate({"name": "t", "columns": {"x": keys, "y": {"type": "boolean"}}})
    records = Codec(schema).encode(pa.table({"x": sign * refunds, "y": refunds > 5}))
    for _ in range(3):
        measured = Measured.of(release_of(Nacre(), records, schema))
        (noisy, column), true = (measured.marginals.columns["x"], measured.codec.columns["x"]), sign * refunds.mean()
        made = np.append(noisy.ends.expected * 0.06, 0.94)
        facts = errors_of(column, noisy, made)
        least, most = facts["unseen"]["means"]
        assert least <= true <= most and column.low <= least and most <= column.high
        said = str(warned(column, noisy, {}, None, {}, facts)["warning"])
        assert "values other than zero lie in one cell" in said and "zero_inflated" not in said
        assert ("declare scale: log" in said) == (sign > 0)  # which is fine near the lower bound alone
        assert said.count("For the next release") == 1


def test_a_discovered_bound_of_days_is_warned_of_and_verify_knows_the_sentence() -> None:
    days = {"type": "datetime", "min": "1999-01-01", "max": "1999-12-31", "outside": "clip"}
    source = f"charged release discover-{'0' * 16}, epsilon=0.1, delta=1e-06: min of x; max of x"
    schema = Schema.model_validate({"name": "t", "sources": [source], "columns": {"x": days}})
    bounds = discovered_bounds(schema.columns["x"], "x", schema)
    said = str(cut(schema.columns["x"], bounds))
    assert bounds == ["min", "max"] and "max 1999-12-31 were discovered, as the schema's `sources` say, and" in said
    assert is_warning(said) and is_warning(DISCOVERED.format(ends="max 1999-12-31", were="was", off="too low"))
    by_hand = schema.model_copy(update={"sources": (source.replace("min of x; ", ""),)})  # its min is by now the law's
    assert "min" not in str(cut(schema.columns["x"], discovered_bounds(schema.columns["x"], "x", by_hand)))
    assert "leave its key out" in said and "sources" in meaning_of(said) and "leave its key out" not in meaning_of(said)


def test_what_is_stated_lies_within_the_public_bounds() -> None:
    columns = {"x": {"type": "integer", "min": 1, "max": 5}, "y": {"type": "boolean"}}
    column = Codec(Schema.model_validate({"name": "t", "columns": columns})).columns["x"]
    counts = np.array([100.0, 200, 300, 500, 900])
    facts = errors_of(column, Marginal.plain(counts, 5.0), counts / counts.sum())
    assert facts["p99"]["estimate"] == 5


@pytest.mark.parametrize(("key", "side"), [("max", "too low"), ("min", "too high")])
def test_a_discovered_bound_that_values_were_cut_to_is_warned_of(key: str, side: str) -> None:
    columns = {name: {"type": "integer", "min": 0, "max": 20000, "outside": "clip"} for name in ("x", "gain of x")}
    source = f"charged release discover-{'0' * 16}, epsilon=0.1, delta=1e-06: values of y; {key} of x; min of z"
    schema = Schema.model_validate({"name": "t", "sources": [source, "max of gain of x"], "columns": columns})
    said = str(cut(schema.columns["x"], discovered_bounds(schema.columns["x"], "x", schema)))
    assert said.startswith(f"its {key} {20000 if key == 'max' else 0} was discovered") and side in said
    assert discovered_bounds(schema.columns["gain of x"], "gain of x", schema) == []
    assert cut(schema.columns["x"], []) is None
    refused = schema.columns["x"].model_copy(update={"outside": "reject-row"})
    assert discovered_bounds(refused, "x", schema) == []


def number_column(low: float, high: float, cells: int):
    """Return a number column with clipped values, in a schema of its own."""
    keys = {"type": "number", "round": 2, "min": low, "max": high, "cells": cells, "outside": "clip"}
    return Codec(Schema.model_validate({"name": "t", "columns": {"x": keys, "y": {"type": "boolean"}}})).columns["x"]


def test_a_quantile_is_not_known_where_noise_may_hide_a_second_group_of_values() -> None:
    """Prices end in the fifth of 64 cells; by the noise of the others, 1.5 % of all may cost four times as much."""
    column, counts = number_column(0, 250, 64), np.zeros(64)
    counts[[1, 2, 5]] = 1500, 900, 600
    for stddev, hidden in ((40.0, True), (2.0, False)):
        facts = errors_of(column, Marginal.plain(counts, stddev), counts / counts.sum())
        assert facts.get("unseen", {}).get("quantile", False) == hidden, facts
        assert ("p99" in getattr(doubt(column, facts), "figures", ())) == hidden


@pytest.mark.parametrize(("high", "far"), [(10_000, True), (500, False)])
def test_a_mean_that_a_few_values_far_away_would_move_is_warned_of_where_the_bounds_leave_room(
    high: int, far: bool
) -> None:
    """Of 20,000 prices up to 500, .2 % at 9,000 would not show; a mean of 250 is stated to about 1."""
    prices, rng = np.random.default_rng(3).uniform(0, 500, 20_000).round(2), np.random.default_rng(4)
    column = number_column(0, high, 256)
    counts = np.histogram(prices, 256, (0, high))[0].astype(np.float64)
    covariance = 5.0**2 * np.eye(256)
    counts += rng.normal(0, 5, 256)
    noisy = replace(Marginal.plain(counts, 5.0), ends=Ends(column, Pooled(counts, covariance), np.ones(256)))
    facts = errors_of(column, noisy, noisy.ends.expected)
    said = warned(column, noisy, {}, None, {}, facts)
    assert ("far" in facts.get("unseen", {})) == far, facts
    assert [one["name"] for one in worst_means({"columns": [{"name": "x", **facts, **said}]})] == ([] if far else ["x"])
    if not far:
        assert said == {}
        return
    assert facts["unseen"].keys() >= {"means", "share"} and "open" not in facts["unseen"]
    least, most = facts["unseen"]["means"]
    assert f"it may be anywhere from {least:.4g} to {most:.4g}." in said["warning"]
    assert "mean is about 250" in said["warning"] and ", within " in said["warning"]
    assert "narrower public bounds (not so narrow" in said["warning"] and said["resolved"]
    assert said["avoid"] == ["p99"] and "99 % quantile is not known: by noise alone it lies" in said["warning"]


def test_a_quantile_that_the_released_counts_contradict_is_not_known() -> None:
    """Half a percent beyond the stated quantile is an error of it; 1.3 % in the last cells are another quantile."""
    column, counts = number_column(0, 1000, 64), np.zeros(64)
    counts[:3], counts[60:] = (30_000, 12_000, 7400), 160
    fact = {"estimate": 38.8, "expected_error": 4.1}
    spread = Spread.of(Ends(column, Pooled(counts, 27.0**2 * np.eye(64)), np.ones(64)), np.ones(65), 0.0, 0.0)
    assert _unseen(spread, {"expected_error": 1e9}, fact)["quantiles"][1] > 900
    assert _unseen(spread, {"expected_error": 1e9}, {"estimate": 400.0, "expected_error": 300.0}) == {}
    assert _unseen(spread, {"expected_error": 1e9}, {"estimate": 400.0, "expected_error": 401.0})["quantile"]
    assert _unseen(spread, {"expected_error": 1e9}, {"estimate": 950.0, "expected_error": 0.1}) == {}
    counts[60:] = 20
    spread = Spread.of(Ends(column, Pooled(counts, 27.0**2 * np.eye(64)), np.ones(64)), np.ones(65), 0.0, 0.0)
    assert _unseen(spread, {"expected_error": 1e9}, fact) == {}


LUMPS = [(share, noise, off) for share in (0.008, 0.012) for noise in (0.0015, 0.003) for off in (-2, -1, 0, 1, 2)]


@pytest.mark.parametrize(("share", "noise", "off"), LUMPS)
def test_a_quantile_beside_a_far_amount_that_one_percent_may_have_is_off_by_as_much_or_not_known(
    share: float, noise: float, off: int
) -> None:
    """Of 10,000 values, about a hundred are 75,000 and the others below 500; noise decides what the release says."""
    column, counts = number_column(0, 80_000, 64), np.zeros(64)
    counts[0], counts[60] = 10_000 * (1 - share), 10_000 * (share + off * noise)
    pooled = Pooled(counts, (10_000 * noise) ** 2 * np.eye(64) / 8)  # the sum of the cells in between has more
    pooled.covariance[60, 60] *= 8
    noisy = replace(Marginal.plain(counts, 10_000 * noise), ends=Ends(column, pooled, np.ones(64)))
    facts = errors_of(column, noisy, noisy.ends.expected)
    truth = 75_000 if share > 0.01 else 500
    is_told = abs(facts["p99"]["estimate"] - truth) <= max(3 * (facts["p99"]["expected_error"] or 0), 1250)
    assert is_told or "p99" in doubt(column, facts).figures, facts
    if facts.get("unseen", {}).get("quantile"):
        least, most = facts["unseen"]["quantiles"]
        assert least <= truth <= most + 1250


def test_a_quantile_that_noise_moves_from_one_group_to_another_has_the_way_between_them_in_its_error() -> None:
    pooled = Pooled(np.array([989.0, 0, 0, 11]), 1.0 * np.eye(4))
    column = number_column(0, 400, 4)
    far = places(Ends(column, pooled, np.ones(4)), (0.0, 0.0), 0.01, shaped=False)
    chance = 0.159  # of fewer than 10, where 11 are counted with a noise of 1
    assert far.error(350.0) == pytest.approx(math.sqrt(chance) * 280, rel=0.1)
    assert far.reach(0.5)[0] >= 300 and far.reach(2)[0] <= 100 and far.reach(2)[1] > 380


def test_one_wide_cell_that_holds_most_has_no_mean_and_no_advice_to_widen_its_bounds() -> None:
    column, counts = number_column(-1000, 1000, 4), np.array([3.0, -2.0, 4.0, 900.0])
    noisy = Marginal.plain(counts, 5.0)
    made = np.array([0.0, 0.0, 0.0, 1.0])
    largest = {"label": "", "share": 1.0}
    errors = errors_of(column, noisy, made)
    said = warned(column, noisy, largest, None, {}, errors)["warning"]
    assert said.startswith("How its values lie in one wide cell decides its mean") and "write a larger" not in said
    clipped = np.array([900.0, 300.0, 100.0, 700.0])
    errors = errors_of(column, Marginal.plain(clipped, 5.0), clipped / clipped.sum())
    said = warned(column, Marginal.plain(clipped, 5.0), largest, None, {}, errors)["warning"]
    assert "write a larger max" in said and "narrower" not in said


def test_a_quantile_of_whole_numbers_is_one_of_them() -> None:
    rng = np.random.default_rng(3)
    for high in (3, 5, 9):
        keys = {"type": "integer", "min": 0, "max": high}
        fact = estimate_of(keys, rng.integers(0, high + 1, 20_000))["p99"]
        assert fact["estimate"] == high and stated(fact) < 1


def test_a_quantile_at_a_fixed_price_is_about_as_far_off_as_is_said() -> None:
    """A release tells how many values a cell holds, and not that all of them are one price at its end."""
    keys = {"type": "number", "min": 0, "max": 2000, "round": 2, "scale": "log"}
    prices = np.random.default_rng(5).choice([19.9, 49.9, 99, 1299], 12_000, p=[0.5, 0.3, 0.18, 0.02])
    facts = [estimate_of(keys, prices, seed)["p99"] for seed in range(10)]
    off = [(fact["estimate"] - 1299) / stated(fact) for fact in facts]
    assert math.sqrt(np.mean(np.square(off))) < 2.4, facts  # 3 with a density that is even over the cell


def estimate_of(keys: dict[str, object], values: np.ndarray, seed: int = 0) -> dict[str, dict[str, float]]:
    """Return what is said of a column, as if the synthetic one were as the release."""
    schema = Schema.model_validate({"name": "t", "columns": {"x": keys, "paid": {"type": "boolean"}}})
    records = Codec(schema).encode(pa.table({"x": values, "paid": values > float(np.median(values))}))
    release = release_of(Nacre(), records, schema)
    marginals, model = (
        Nacre().marginals(release),
        Nacre(training=MixtureSpec(components=64, steps=100)).fit(Released(release), Craft(seed=seed)),
    )
    tally = CellTally(marginals.codec)
    tally.add(next(iter(model.sample(len(values), seed))))
    return errors_of(marginals.codec.columns["x"], marginals.columns["x"], tally.cells[0] / tally.rows)


def told_of(keys: dict[str, object], values: np.ndarray) -> str:
    """Return the warning of a column, by a release of it."""
    columns = {"x": {"round": 2, "outside": "clip", "type": "number", **keys}, "y": {"type": "boolean"}}
    schema = Schema.model_validate({"name": "t", "columns": columns})
    held = values.clip(schema.columns["x"].low, schema.columns["x"].high) if "min" in keys else values
    records = Codec(schema).encode(pa.table({"x": held, "y": values > np.median(values)}))
    facts = facts_of(Nacre(), records, records, schema)
    return str(facts["columns"][0].get("warning", ""))


@pytest.mark.parametrize("key", ["min", "max"])
def test_values_that_were_cut_at_zero_are_not_taken_for_zeros_alone(key: str) -> None:
    """Of temperatures most lie beyond a bound of 0, and are set to it."""
    keys = {"type": "number", "round": 2, "outside": "clip", **dict(zip(("min", "max"), CUT_AT[key], strict=True))}
    column = Codec(Schema.model_validate({"name": "t", "columns": {"x": {**keys, "cells": 8}}})).columns["x"]
    counts = np.array([8000.0, 500, 300, 100, 50, 20, 10, 5])[:: 1 if key == "min" else -1]
    said = str(warning(column, Marginal.plain(counts, 5.0), {"share": 0.89}, None, {}))
    assert "declare zero_inflated: true" in said and UNCUT[key] in said and is_warning(said)
    kept = column.model_copy(update={"outside": "reject-row"})
    assert UNCUT[key] not in str(warning(kept, Marginal.plain(counts, 5.0), {"share": 0.89}, None, {}))


CUT_AT = {"min": (0, 200), "max": (-200, 0)}


def test_a_quantile_of_zero_that_is_certain_is_known() -> None:
    column, counts = number_column(-200, 0, 8), np.zeros(8)
    counts[7] = 8000
    facts = errors_of(column, Marginal.plain(counts, 2.0), counts / counts.sum())
    assert "quantile" not in facts.get("unseen", {})


def test_a_fixed_amount_can_be_declared_so_that_its_warning_ends() -> None:
    fees = np.where(np.random.default_rng(2).random(3000) < 0.6, 0, 250.0)
    for high in (250, 1000):
        said = told_of({"min": 0, "max": high, "zero_inflated": True}, fees)
        assert said.endswith(FEW_AMOUNTS) and is_warning(said)
    columns = {"x": {"type": "categorical", "values": [0, 250], "dtype": "float64"}, "y": {"type": "boolean"}}
    schema = Schema.model_validate({"name": "t", "columns": columns})
    records = Codec(schema).encode(pa.table({"x": fees, "y": fees > 0}))
    assert "warning" not in facts_of(Nacre(), records, records, schema)["columns"][0]
