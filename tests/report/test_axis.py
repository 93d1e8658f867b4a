"""Axes that show how values lie: logarithmic for long tails, cut where few are beyond, years as they are written."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nacre
from dpmodels.clock import clock_of, duration
from dpmodels.contract.columns import Continuous
from dpmodels.hand_off.columns.check_columns import LABEL, NOTE
from dpmodels.pages.multiples import column_figure
from dpmodels.pages.report import number_row
from dpmodels.report.axis import BARS, MIDDLE, axis_of, ticks
from dpmodels.report.bins import Bins, written
from dpmodels.report.report import column_facts
from tests.kit.every_kind import make

LOGARITHMIC = "share per bar of a logarithmic axis"


def column(text: str) -> Continuous:
    modelled = make(f"name: t\ncolumns:\n  x: {text}\n").modelled["x"]
    assert isinstance(modelled, Continuous)
    return modelled


def cut_at_quantiles(text: str, values: np.ndarray, cells: int = 22) -> tuple[Continuous, np.ndarray]:
    """Cut a column into cells that hold about as many of some values each, and return their shares."""
    whole = column(text)
    inner = whole.interval.rank(np.quantile(values, np.linspace(0, 1, cells)[1:-1]))
    cut = whole.cut(np.unique([whole.edges[0], *inner.astype(np.int64), whole.edges[-1]]))
    ranks = whole.interval.rank(np.clip(values, whole.low, whole.high))
    return cut, np.histogram(ranks, [*cut.edges[:-1], np.inf])[0] / len(values)


def test_amounts_over_orders_of_magnitude_have_a_logarithmic_axis_with_round_values_beneath() -> None:
    values = np.exp(np.random.default_rng(1).normal(7, 1.5, 20_000))
    cut, shares = cut_at_quantiles("{type: number, min: 0, max: 1000000, round: 2}", values)
    axis = axis_of(cut, Bins.of(cut), shares, shares)
    assert axis["note"] == LOGARITHMIC and axis["bars"] == BARS
    assert {"0", "1,000", "10,000"} <= {label for _, label in axis["ticks"]}
    begin, end = np.interp([0.25, 0.75], np.append(0, np.cumsum(shares)), axis["edges"])
    assert end - begin > MIDDLE
    figure = column_figure(column_facts("x", cut, shares, None, {}))
    assert "logarithmic; share of rows per bar" in figure.foot and figure.brief.endswith(", logarithmic")


@pytest.mark.parametrize(
    ("text", "sample"),
    [
        ("{type: integer, min: 0, max: 1000}", "normal"),
        ("{type: number, min: -1000000, max: 1000000, round: 2}", "long"),  # no logarithm of what may be negative
        ("{type: number, min: 0, max: 1000000, round: 2}", "exponential"),
    ],
)
def test_other_numbers_lie_in_proportion(text: str, sample: str) -> None:
    rng = np.random.default_rng(2)
    samples = {
        "normal": rng.normal(500, 50, 9999),
        "long": np.exp(rng.normal(7, 2, 9999)),
        "exponential": rng.exponential(900, 9999),
    }
    cut, shares = cut_at_quantiles(text, samples[sample])
    axis = axis_of(cut, Bins.of(cut), shares, shares)
    values = np.append(cut.grid.bounds[0], cut.high)
    inside = (np.array(axis["edges"]) >= 0) & (np.array(axis["edges"]) <= 1)
    slopes = np.diff(values[inside]) / np.diff(np.array(axis["edges"])[inside])
    assert axis["note"] != LOGARITHMIC and np.ptp(slopes) < 0.05 * slopes.mean()


def test_an_axis_ends_where_few_rows_are_beyond_if_the_others_had_no_room_else() -> None:
    cut = column("{type: integer, min: 0, max: 10000}").cut(np.array([0, 10, 20, 30, 3000, 10_001]))
    shares = np.array([0.3, 0.36, 0.3, 0.035, 0.005])
    axis = axis_of(cut, Bins.of(cut), shares, shares)
    assert axis["edges"][3] == 1 and axis["beyond"] == pytest.approx(0.04)
    figure = column_figure(column_facts("x", cut, shares, None, {}))
    assert "under 4\N{NO-BREAK SPACE}% from 30 to 10,000 \N{RIGHTWARDS ARROW}" in figure.svg
    some = np.array([0.3, 0.3, 0.3, 0.095, 0.005])  # too many to be left out
    assert axis_of(cut, Bins.of(cut), some, some)["edges"][-1] == 1


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("{type: integer, min: 1930, max: 2006}", "1980"),
        ("{type: integer, min: 1000, max: 3000}", "2,000"),
        ("{type: number, round: 2, min: 1000, max: 2900}", "2,000"),
    ],
)
def test_whole_numbers_that_may_be_years_have_no_mark_of_thousands(text: str, label: str) -> None:
    one = column(text)
    assert label in [words for _, words in ticks(one, one.low, one.high)]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("{type: integer, min: 1940, max: 2002}", "share per 2"),
        ("{type: integer, min: 0, max: 92}", "share per 3"),
        ("{type: number, round: 2, min: 0, max: 1000}", "share per 25"),
        ("{type: datetime, min: 2022-01-01, max: 2024-12-31}", "share per 30 days"),
        ("{type: datetime, min: 2022-01-01, max: 2022-01-02, resolution: minute}", "share per 2 hours"),
    ],
)
def test_a_bar_is_as_wide_as_a_round_number(text: str, note: str) -> None:
    one = column(text)
    bins, even = Bins.of(one), np.full(one.size, 1 / one.size)
    assert axis_of(one, bins, bins.join(even), bins.join(even))["note"] == note


@pytest.mark.parametrize("bounds", [(0.0, 5e-324), (0.0, 1e-310), (1e16, 10000000000000008.0)])
def test_bounds_that_a_number_hardly_tells_apart_have_an_axis_and_a_report(
    tmp_path: Path, bounds: tuple[float, float]
) -> None:
    low, high = bounds
    columns = {"a": {"type": "number", "min": low, "max": high}, "t": {"type": "boolean"}}
    rows = pd.DataFrame({"a": [low, high] * 150, "t": [True, False, False] * 100})
    training = {"components": 8, "steps": 20}
    made = nacre.synthesize(
        rows, {"name": "tiny", "columns": columns}, epsilon=4, delta=1e-5, home=tmp_path / "home", training=training
    )
    (one, _) = made.report.facts["columns"]
    assert one["name"] == "a" and one["axis"]["bars"] >= 1


def test_times_of_day_are_written_as_times_and_an_axis_has_round_ones() -> None:
    schema = make(
        "name: x\ncolumns:\n  at: {type: integer, min: 25200, max: 72000, dtype: 'time32[s]', resolution: minute}\n"
        "  to: {type: integer, min: 0, max: 86399999, dtype: 'time32[ms]'}\n"
        "  long: {type: integer, min: 0, max: 7200, dtype: 'duration[s]'}\n"
    )
    at, fine, long = schema.modelled.values()
    assert [clock_of(one) for one in (at, fine, long)] == [1, 1000, 0]
    assert [at.rule, long.rule] == ["must lie between 07:00 and 20:00", "must lie between 0 and 7200"]
    assert [written(at, 28800), written(fine, 28801000), written(long, 28800)] == ["08:00", "08:00:01", "28800"]
    assert Bins.of(at).labels[0].startswith("07:00 to 07:") and Bins.of(at).labels[-1].endswith(" to 20:00")
    assert [label for _, label in ticks(at, 25200, 72000)] == ["09:00", "12:00", "15:00", "18:00"]
    assert [label for _, label in ticks(at, 25200, 25560)] == ["07:00", "07:05"]
    assert [label for _, label in ticks(fine, 0, 90_000)][:2] == ["00:00:00", "00:00:30"]
    shares = np.full(len(Bins.of(at).labels), 1 / len(Bins.of(at).labels))
    axis = axis_of(at, Bins.of(at), shares, shares)
    assert axis["note"] == "share per 30 minutes" and NOTE.fullmatch(axis["note"])
    assert all(LABEL.fullmatch(label) for column in (at, fine) for label in Bins.of(column).labels)
    assert [duration(one, 1) for one in (61, 90, 95 * 60 + 1, 0)] == ["61 s", "1.5 min", "1.6 h", "0 s"]
    column = {"name": "at", "clock": 1, "mean": {"estimate": 37890.0, "expected_error": 49.0, "synthetic": 37900.0}}
    column |= {"p99": {"estimate": 55890.0, "expected_error": 10.0}, "unseen": {"means": [37800, 38000]}}
    assert number_row(column) == ("at", "10:32", "10:32", "1.7 min", "15:32", "20 s", "10:30", "10:33")
    column["mean"]["expected_error"] = 9.0
    assert number_row(column)[1:4] == ("10:31:30", "10:31:40", "18 s")
