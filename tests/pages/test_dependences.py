"""The two pictures of how much columns depend on each other: which pairs have a color, and what their table says."""

import json
import re

import pytest

from dpmodels.pages.figures.dependences import dependence_figures
from dpmodels.pages.figures.relations import likely_relations, relations
from dpmodels.pages.page import percent
from tests.hand_off.make_golden import GOLDEN

REPORT = GOLDEN / "LAYOUT-26" / "targeted" / "report.json"


def test_every_pair_that_noise_does_not_hide_has_a_color_in_both_pictures_and_a_line() -> None:
    report = json.loads(REPORT.read_text())
    every, likely = relations(report), likely_relations(report)
    shown = {pair: one for pair, one in every.items() if one.is_certain or one.by_rule or pair in likely}
    released, synthetic = dependence_figures(report)
    assert 2 <= len(shown) < len(every)
    assert len(released.rows) == len(shown)
    for drawn, strength in ((released, "released"), (synthetic, "synthetic")):
        numbers = sorted(int(one) for one in re.findall(r'text-anchor="middle" class="cell">(\d+)</text>', drawn.svg))
        values = [100 * getattr(one, strength) for one in shown.values()]
        assert numbers == pytest.approx(sorted(values), abs=1.01)
    names = [one["name"] for one in report["columns"]]
    strongest = max(shown.values(), key=lambda one: one.released)
    first, second = (names[place] for place in strongest.columns)
    figures = (strongest.released, strongest.synthetic, strongest.most)
    assert released.rows[0][:4] == (f"{first} with {second}", *map(percent, figures))


def test_of_a_report_in_which_noise_hides_all_nothing_is_drawn() -> None:
    report = json.loads(REPORT.read_text())
    for one in report["pairs"]["distances"]:
        one[6] = one[7] = 0.0
    report.pop("rates")
    assert dependence_figures(report) == []
    assert dependence_figures({"columns": [], "pairs": None}) == []
