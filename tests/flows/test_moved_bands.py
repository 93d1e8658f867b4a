"""What is said beside means: which share they are, bands that lie elsewhere than asked, and what edges leave out."""

import json
from datetime import time
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from dpmodels.contract.columns import Integer
from dpmodels.errors import Unsuitable
from flows.command_line.show_means import show_means
from nacre.listing import Listing
from tasks.stages.bands import said_of
from tasks.stages.ranges import groups_of, joined, with_shares
from tests.kit.errors import refused

AT = Integer(type="integer", min=28800, max=72000, dtype="time32[s]", resolution="minute")
RANGES = {
    "age": [(0.0, 21.0), (22.0, 39.0), (40.0, 101.0)],
    "fee": [(0.0, 1.5), (1.5, 4.0), (4.0, 9.0)],
    "day": [pd.to_datetime(one) for one in (["2025-01-02", "2025-06-05"], ["2025-06-06", "2025-12-31"])],
    "at": [(28800.0, 44160.0), (44220.0, 57540.0), (57600.0, 72000.0)],
}
JOINS = "the release counts ranges, and joins them whole: bands begin for "
BEYOND = "what lies beyond the edges is left out: "


def notes_of(name: str, edges: Any) -> list[str]:
    """Join the ranges of a column, and return what is said of the bands."""
    cells = pd.DataFrame(RANGES[name], columns=[f"{name}_low", f"{name}_high"]).assign(count=9.0, error=1.0)
    cells.insert(0, name, [str(number) for number in range(len(cells))])
    bands = joined(cells, {name: edges}, [name], ("count", "error"), {"at": AT})
    return list(said_of(bands.attrs, "paid").get("notes", []))


@pytest.mark.parametrize(
    ("name", "edges", "notes"),
    [
        ("age", [0, 22, 40, 105], []),
        ("age", [0, 40, 101], []),
        ("fee", [0, 1.5, 4, 9], []),
        ("age", [0, 18], [f"{JOINS}age at 0 (the last ends at 21)", f"{BEYOND}age above 21"]),
        ("age", 30, [f"{JOINS}age at 0, 22, 40 (the last ends at 101)"]),
        ("age", [22, 40], [f"{BEYOND}age below 22 and above 39"]),
        ("age", [200, 300], [f"{BEYOND}all of age"]),
        ("fee", [0, 3, 9], [f"{JOINS}fee at 0, 4 (the last ends at 9)"]),
        ("fee", [0, 4], [f"{BEYOND}fee above 4"]),
        ("day", ["2025-01-01", "2025-06-06", "2026-01-01"], []),
        ("day", ["2025-01-01", "2025-06-01"], [f"{JOINS}day at 2025-01-02 (the last ends at 2025-06-05)",
                                               f"{BEYOND}day above 2025-06-05"]),
        ("at", ["08:00", "12:17", "20:01"], []),
        ("at", [time(8), time(12), time(20, 1)], [f"{JOINS}at at 08:00, 12:17 (the last ends at 20:00)"]),
    ],
)  # fmt: skip
def test_bands_that_lie_elsewhere_than_asked_and_what_edges_leave_out_are_said(
    name: str, edges: Any, notes: list[str]
) -> None:
    assert notes_of(name, edges) == notes


def test_times_of_day_are_edges_of_columns_that_hold_them() -> None:
    assert groups_of(["at=08:00, 12:17,20:01"]) == {"at": ["08:00", "12:17", "20:01"]}
    with refused(Unsuitable, "^the edges of age must be numbers$"):
        notes_of("age", ["08:00", "12:00"])
    with refused(Unsuitable, "must be times of day, as '08:00', or numbers"):
        notes_of("at", ["2025-01-01", "2025-06-06"])


def test_which_share_a_mean_is_and_times_of_day_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    cells = with_shares(pd.DataFrame({"paid": ["oui", "non"]}), "paid", None, ("mean", "stddev"), is_boolean=False)
    said = said_of(cells.attrs, "paid")
    assert said == {"value": "oui", "notes": ["each mean is the share of rows whose paid is oui"]}
    contract = SimpleNamespace(kind="table", columns={"at": AT})
    figures = {"at": ["08:00 to 12:16"], "at_low": [28800.0], "at_high": [44160.0], "reason": [""]}
    shares = Listing(pd.DataFrame(figures | {"mean": [0.77], "within": [0.124]}))
    shares.attrs = said
    assert repr(shares).endswith("\nnote: each mean is the share of rows whose paid is oui")
    show_means(shares, None, True, contract, "paid")
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["value"], row["at_low"]) == ("oui", 28800)
    show_means(shares, None, False, contract, "paid")
    out = capsys.readouterr().out
    assert "13\N{NO-BREAK SPACE}%" in out and "08:00" in out and "12:16" in out and "28,800" not in out
    show_means(pd.DataFrame({"ward": ["a"], "mean": [51787.4], "within": [471.8]}), None, False, contract, "at")
    out = capsys.readouterr().out
    assert "14:23" in out and "7.9 min" in out
