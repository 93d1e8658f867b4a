"""Histograms drawn as densities: what a bar stands for is where it stands, and labels can be read."""

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dpmodels.comparison.beside import _shares
from dpmodels.contract.columns import Continuous
from dpmodels.pages.drawing import fitted, two_lines
from dpmodels.pages.figures.classes import class_figures, class_names
from dpmodels.pages.figures.labels import brief
from dpmodels.pages.figures.rate_pictures import rate_figures
from dpmodels.pages.internal import _column as internal_figure
from dpmodels.pages.maps import beside
from dpmodels.pages.multiples import (
    FEW,
    FIRST,
    MOST,
    column_figure,
    multiples,
    pair_tables,
    pairs_figure,
)
from dpmodels.pages.plots import FLOOR, LEFT, ROOM, WIDTH, Shares, bars, histogram
from dpmodels.report.axis import axis_of
from dpmodels.report.bins import Bins
from dpmodels.report.report import column_facts
from tests.kit.every_kind import make

AMOUNT = "{type: number, round: 2, min: 0, max: 1000}"


def drawn(column: str, edges: list[float], shares: list[float]) -> Any:
    """Draw a column that was cut at these values, by the publishable report."""
    modelled = make(f"name: t\ncolumns:\n  x: {column}\n").modelled["x"]
    assert isinstance(modelled, Continuous)
    ranks = [*modelled.interval.rank(np.array(edges[:-1])), modelled.edges[-1]]
    cut = modelled.cut(np.array(ranks, dtype=np.int64))
    return column_figure(column_facts("x", cut, np.array(shares), None, {}))


def bars_of(figure: Any) -> np.ndarray:
    """Return left edge, width and height of every step of the synthetic line."""
    (steps,) = re.findall(r'<path class="mark" d="M([^"]+)"', str(figure.svg))
    rights = np.array([LEFT, *map(float, re.findall(r"H([\d.]+)", steps))])
    heights = FLOOR - np.array(re.findall(r"V([\d.]+)H", steps), dtype=float)
    return np.stack([rights[:-1], np.diff(rights), heights], axis=1)


def labels_of(figure: Any) -> list[tuple[float, float, str]]:
    """Return from where to where each label beneath the axis reaches, and what it says."""
    labels = []
    for x, anchor, words in re.findall(
        rf'<text x="([\d.]+)" y="{FLOOR + 15}" text-anchor="(\w+)">([^<]*)<', figure.svg
    ):
        width = 7.0 * len(words)
        left = float(x) - {"start": 0, "middle": width / 2, "end": width}[anchor]
        labels.append((left, left + width, words))
    return sorted(labels)


def test_cells_of_unequal_width_are_drawn_as_wide_as_they_are_and_by_density() -> None:
    figure = drawn(AMOUNT, [0, 100, 200, 1000], [0.25, 0.25, 0.5])
    _, width, height = bars_of(figure).T
    assert width / (WIDTH - LEFT) == pytest.approx([0.1, 0.1, 0.8], abs=1e-3)
    assert height[0] == height[1] and height[2] == pytest.approx(height[0] / 4, rel=0.02)  # half on eight tenths
    assert {"0", "400", "1,000"} <= {words for *_, words in labels_of(figure)}
    assert "share of rows per width of 25" in figure.foot and figure.rows[0][1].startswith("25")


def test_a_value_that_half_of_the_rows_have_stands_out_and_is_cut_with_its_share_above() -> None:
    figure = drawn(AMOUNT, [0, 500, 501, 1000], [0.25, 0.5, 0.25])
    _, width, height = bars_of(figure).T
    assert len(height) == 3 and height[1] == pytest.approx(1.5 * max(height[0], height[2]))
    assert width[1] * 40 == pytest.approx(WIDTH - LEFT, rel=0.02)  # wide enough to be seen, with what lies beside it
    assert "\N{UPWARDS ARROW} 5" in figure.svg
    assert (width * height)[0] == pytest.approx((width * height)[2], rel=0.06)  # areas of what is not cut are shares


def test_bounds_that_are_far_too_wide_do_not_hide_the_rows() -> None:
    figure = drawn("{type: integer, min: 0, max: 1000000}", [0, 10, 20, 30, 1_000_000], [0.3, 0.4, 0.298, 0.002])
    assert (bars_of(figure).T[2] > 20).sum() == 3
    assert "under 0.2\N{NO-BREAK SPACE}% from 30 to 1,000,000 \N{RIGHTWARDS ARROW}" in figure.svg
    assert re.search(r'class="axis" d="M\d+ 116l4 -8M\d+ 116l4 -8"', figure.svg)  # two strokes across its end
    assert max(float(words) for *_, words in labels_of(figure)) == 20


@pytest.mark.parametrize(
    ("column", "edges"),
    [
        ("{type: datetime, min: 2013-01-01, max: 2014-12-31, resolution: minute}", None),
        ("{type: datetime, min: 2013-01-01, max: 2013-01-02, resolution: second}", None),
        ("{type: datetime, min: 1900-01-01, max: 2030-12-31}", None),
        ("{type: number, round: 2, min: -1234567, max: 7654321}", None),
        ("{type: number, min: 0, max: 10000000, scale: log}", None),
        ("{type: integer, min: 1999, max: 2003}", None),
    ],
)
def test_labels_of_an_axis_do_not_overlap_in_either_report(column: str, edges: None) -> None:
    modelled = make(f"name: t\ncolumns:\n  x: {column}\n").modelled["x"]
    assert isinstance(modelled, Continuous)
    even = np.full(modelled.size, 1 / modelled.size)
    values = np.linspace(modelled.low, modelled.high, 500)
    beside = {"name": "x", "type": modelled.type, **_shares(modelled, values, values)}
    for figure in (column_figure(column_facts("x", modelled, even, None, {})), internal_figure(beside, None)):
        labels = labels_of(figure)
        assert len(labels) >= 2 and all(first[1] < second[0] for first, second in pairwise(labels)), labels
        assert labels[0][0] >= 0 and labels[-1][1] <= WIDTH


def test_no_value_is_written_beneath_an_axis_that_the_column_cannot_have() -> None:
    figure = drawn("{type: integer, min: 0, max: 2}", [0, 1, 2, 3], [0.8, 0.1, 0.1])
    assert [words for *_, words in labels_of(figure)] == ["0", "1", "2"]


def test_whole_numbers_of_two_values_are_drawn_as_two_bars() -> None:
    for column, edges in (
        ("{type: integer, min: 0, max: 1}", [0, 1, 2]),
        ("{type: integer, min: 4, max: 5}", [4, 5, 6]),
    ):
        figure = drawn(column, edges, [0.9, 0.1])
        assert (
            figure.svg.count('class="mark"') == figure.small.count("M") / 2 == 2
            and "share of rows per" not in figure.foot
        )
        assert figure.brief == f"{edges[0]}: 90\N{NO-BREAK SPACE}%"
    facts = {"name": "x", "type": "integer", "labels": ["0", "1", "null"], "values": 2, "ordered": True}
    assert [row[0] for row in column_figure(facts | {"synthetic": [0.2, 0.3, 0.5]}).rows] == ["0", "1", "null"]


def test_a_long_name_is_written_small_then_on_two_lines_then_cut_with_a_title() -> None:
    assert "narrow" not in fitted(0, 12, "Verweildaue", 11, "start", lines=2)
    small = fitted(0, 12, "Verweildauer", 11, "start", lines=2)
    assert small.count("<text") == 1 and 'class="narrow"' in small and ">Verweildauer<" in small
    two = fitted(0, 12, "length_of_stay_in_days", 11, "start", lines=2)
    assert re.findall(">([^<]+)</text>", two) == ["length_of_", "stay_in_days"] and "<title>" not in two
    name = "pneumonoultramicroscopicsilicovolcanoconiosis"
    assert f"<title>{name}</title>" in fitted(
        0, 12, name, 11, "start", lines=2
    ) and f"<title>{2 * name}</title>" in str(bars("x", "", [2 * name], Shares("synthetic", [1.0])).svg)


def test_a_report_of_an_earlier_version_is_still_drawn() -> None:
    facts = {"name": "x", "type": "number", "labels": ["0 to 1", "1 to 2"], "values": 2, "ordered": True}
    assert len(bars_of(column_figure({**facts, "synthetic": [0.25, 0.75]}))) == 2


@pytest.mark.parametrize("ordered", [True, False])
def test_released_counts_have_whiskers_of_their_noise_from_a_floor_of_zero(ordered: bool) -> None:
    facts = {"name": "x", "type": "t", "labels": ["1", "2"], "values": 2, "ordered": ordered, "synthetic": [0.5, 0.5]}
    counts = {"released": [0.6, -0.1], "released_stddev": [0.05, 0.01]}
    figure = column_figure(facts | counts)
    ends = re.findall(r'class="whisker" d="([^"]+)"', str(figure.svg))
    places = [float(place) for place in re.findall(r"[MHV ](-?[\d.]+)", "".join(ends).replace("M", " "))]
    assert figure.rows[1][1:] == ("-10\N{NO-BREAK SPACE}%", "2\N{NO-BREAK SPACE}%", "50\N{NO-BREAK SPACE}%")
    if ordered:  # the axis ends at 0.7, where the first whisker does; what is below zero is cut there
        middles = [(LEFT + (WIDTH - LEFT) * part, FLOOR) for part in (0.25, 0.75)]
        (first, floor), (second, _) = middles
        assert places == [first, pytest.approx(floor - (floor - 10) * 5 / 7, abs=0.1), 10, second, floor, floor]
    else:
        begin, end = (pytest.approx((WIDTH - ROOM) * part, abs=0.1) for part in (0.5, 0.7))  # the axis ends at all rows
        first, second = ends  # what is below zero is cut there, and has an arrow's head
        assert places[:7] == [begin, 39, end, begin, 36, end, 36] and "L" not in first
        assert second == "M0 85.5H0M3 82.5L0 85.5L3 88.5M0 82.5v6"


def test_bars_of_a_common_scale_are_cut_where_it_ends_and_have_a_line_over_all() -> None:
    shares = Shares("released", [0.2, 0.6], [0.01, 0.01])
    figure = bars("x", "", ["a", "b"], shares, Shares("synthetic", [0.1, 0.7]), (0.1, 0.4))
    svg = str(figure.svg)
    scale = (WIDTH - ROOM) / 0.4
    ends = [float(place) for place in re.findall(r"M([\d.]+) [\d.]+v6", svg)]
    assert ends[:2] == [pytest.approx(scale * share, abs=0.1) for share in (0.18, 0.22)]
    assert re.findall(rf"M{WIDTH - 3} [\d.]+L{WIDTH} [\d.]+L", svg)  # that of b goes on, under an arrow's head
    assert len(re.findall(rf"M{scale / 10:.1f} [\d.]+v", *re.findall(r'class="axis" d="([^"]+)"', svg))) == 2
    assert re.findall(r'class="mark" d="M([\d.]+)', svg) == [f"{scale / 10:.1f}", str(WIDTH)]
    assert re.findall(r">([\d.]+)(?:\N{NO-BREAK SPACE}%)?</text>", svg)[-5:] == ["0", "10", "20", "30", "40"]


def test_many_columns_are_few_pictures_and_the_rest_where_somebody_opens_them() -> None:
    facts = {"name": "x", "type": "t", "labels": ["1", "2"], "values": 2, "ordered": True, "synthetic": [0.5, 0.5]}
    columns = [facts | {"name": f"c{n}"} | ({"warning": "w"} if n == 900 else {}) for n in range(1000)]
    (one,) = multiples(columns)
    assert (len(one.first), len(one.further), one.left_out) == (FIRST, MOST - FIRST, 1000 - MOST)
    assert [each.title for each in one.first] == [*(f"c{n}" for n in range(FIRST - 1)), "c900"]
    (all_at_once,) = multiples(columns[: FIRST + FEW])
    assert len(all_at_once.first) == FIRST + FEW and not all_at_once.further
    several = multiples([one | {"table": "ab"[n % 2]} for n, one in enumerate(columns[:5])])
    assert [(each.table, len(each.first)) for each in several] == [("a", 3), ("b", 2)]


def test_the_square_of_pairs_is_small_and_lists_the_worst_first() -> None:
    distances = [[i, j, 0.01, (i + j) / 1000] for i in range(100) for j in range(i + 1, 100)]
    facts = {"columns": [{"name": f"c{n}"} for n in range(100)], "pairs": {"distances": distances}}
    figure = pairs_figure(facts)
    assert figure is not None and len(figure.svg) < 200_000 and len(figure.rows) == 100
    assert figure.rows[0] == ("c98 with c99", *(f"{x:.3g}\N{NO-BREAK SPACE}%" for x in (1, 19.7, 21)))
    assert pairs_figure({"columns": [], "pairs": None}) is None


def test_bars_have_the_whole_width_of_a_drawing_and_each_category_a_line_of_its_height() -> None:
    heights = []
    for n in (2, 3, 4, 12):
        labels = [f"c{one}" for one in range(n)]
        drawing = str(bars("x", "", labels, Shares("released", [1 / n] * n), Shares("synthetic", [1 / n] * n)).svg)
        heights.append(float(re.findall(r'viewBox="0 0 320 ([\d.]+)"', drawing)[0]))
        assert drawing.count('class="bar" x="0" y') == drawing.count(f'width="{WIDTH - ROOM:g}" height="10"') == n
        assert "track" not in drawing
    assert heights[0] == heights[1] == heights[2] - 31 == heights[3] - 9 * 31  # few categories are as high as numbers


def test_a_pair_is_drawn_as_released_beside_the_synthetic_rows_with_its_dependence() -> None:
    columns = [{"name": "age", "ordered": True}, {"name": "ward", "ordered": False}]
    labels = [[["1 to 40", "null"], ["41 to 99"]], [["a", "b", "7 more"], ["<c>"]]]
    shares = {"released": [[0.51, -0.01], [0, 0.5]], "synthetic": [[0.25, 0.25], [0.25, 0.25]]}
    table = {"columns": [0, 1], "labels": labels, **shares, "stddev": [[0.01, 0.02], [0.03, 0.04]]}
    pairs = {"distances": [[0, 1, 0.1, 0.5, 0.1, 0.6, 0.51, 0.0, 0.01, 0.02]], "tables": [table]}
    (figure,) = pair_tables({"columns": columns, "pairs": pairs}).values()
    assert figure.title == "age with ward" and figure.note.replace("\N{NO-BREAK SPACE}", " ") == (
        "within 60 %, the farthest off"
    )
    assert (
        figure.foot.replace("\N{NO-BREAK SPACE}", " ")
        == "dependence: 51 % released (up to 2.16 % by noise alone), 0 % synthetic: weaker · "
        "9 categories of ward are joined to one group"
    )
    assert [row[0] for row in figure.rows] == [
        "1 to 40 or null; a, b, 7 more",
        "1 to 40 or null; <c>",
        "41 to 99; a, b, 7 more",
        "41 to 99; <c>",
    ]
    assert [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in figure.rows[1]][1:] == ["-1 %", "4 %", "25 %"]
    text = str(figure.svg)
    assert text.count(">51<") == text.count(">-1<") == 1 and text.count(">25<") == 4 and "heat s1 less" not in text
    assert "rotate(-90" not in text and "&lt;c&gt;" in text and "<c>" not in text
    assert pair_tables({"columns": columns, "pairs": None}) == pair_tables({"columns": [], "pairs": {}}) == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("1 to 40", ["1 to 40"]),
        ("3921.77 to 60000.00", ["3921.77 to", "60000.00"]),
        ("25862 or exactly 0", ["25862 or", "exactly 0"]),
        ("hispanic, other", ["hispanic,", "other"]),
        ("one very long category", ["one very", "long catego…"]),
        ("parapharmacie-homeopathie", ["parapharmacie-", "homeopathie"]),
        ("fruit/vegetables", ["fruit/", "vegetables"]),
        ("-1234567890123", ["-1234567890…"]),
        ("pneumonoultramicroscopic", ["pneumonoult…"]),
    ],
)
def test_a_label_is_broken_where_it_has_a_joint(text: str, lines: list[str]) -> None:
    assert two_lines(text, 14 if "home" in text else 12) == lines


def test_a_word_that_is_too_long_for_a_picture_of_two_columns_is_small_and_whole() -> None:
    table = {"released": [[0.5, 0.1], [0.2, 0.2]]}
    drawn = str(beside("t", "d", ("kind", "city"), (["parapharmacie", "web"], ["a", "b"]), table))
    assert '"label narrow">parapharmacie</text>' in drawn and '"label">web</text>' in drawn


@pytest.mark.parametrize("axis", [{"edges": [0, 0.5, 1], "bars": 10**9}, {"edges": [0.5] * 10**5, "bars": 40}])
def test_an_axis_that_nobody_drew_is_refused_before_it_fills_the_memory(axis: dict[str, Any]) -> None:
    facts = {"name": "x", "type": "number", "labels": ["0", "1"], "values": 2, "ordered": True, "synthetic": [0.5, 0.5]}
    with pytest.raises(ValueError, match="bars"):
        column_figure({**facts, "axis": {**axis, "ticks": [], "note": "", "beyond": 0}})


def test_the_numbers_of_a_column_have_every_category_also_those_that_are_not_drawn() -> None:
    names, share = [f"c{n}" for n in range(30)], [1 / 30] * 30
    facts = {"name": "x", "type": "categorical", "labels": names, "values": 30, "ordered": False, "synthetic": share}
    figure = column_figure(facts | {"released": share, "released_stddev": [0.01] * 30})
    assert [row[0] for row in figure.rows] == names and len(figure.header) == len(figure.rows[0])
    assert figure.rows[0][1:] == ("3.33\N{NO-BREAK SPACE}%", "2\N{NO-BREAK SPACE}%", "3.33\N{NO-BREAK SPACE}%")
    assert figure.foot == "23 of 30 categories are one bar"
    assert "23 others together" in figure.svg and figure.svg.count('class="bar rest"') == 1
    assert figure.brief == "7 of 30, c0: 3.33\N{NO-BREAK SPACE}%" and figure.small.count("M") == 2 * 8
    together = {"released": 23 / 30, "deviation": 0.01 * 23**0.5}
    (whisker,) = re.findall(r'class="whisker" d="M([\d.]+) [\d.]+H([\d.]+)', str(figure.svg))[-1:]
    ends = [(WIDTH - ROOM) * (together["released"] + 2 * sign * together["deviation"]) for sign in (-1, 1)]
    assert [float(one) for one in whisker] == pytest.approx(ends, abs=0.1)  # of an axis that ends at all rows


LONG_TAIL = [0.0, 0.0, 0.3, 0.5, 0.2, 0.0, 0.0]


def tailed(released: list[float]) -> Any:
    """Draw a column whose synthetic rows are in the middle of a long axis, with what was released of it."""
    edges = [n / 4 - 0.5 for n in range(8)]
    facts = {"name": "x", "type": "number", "values": 7, "ordered": True, "synthetic": LONG_TAIL, "labels": []}
    facts["labels"] = [f"{n}000.50 to {n + 1}000.00" for n in range(7)]
    axis = {"edges": edges, "ticks": [(0.5, "4,000")], "bars": 40, "note": "share per 100", "beyond": 0.0}
    return column_figure(facts | {"axis": axis, "released": released, "released_stddev": [0.01] * 7})


def test_what_an_axis_leaves_out_is_said_at_its_edges_with_the_noise_that_may_hide_rows_there() -> None:
    figure = tailed([0.05, 0.0, 0.3, 0.5, 0.2, 0.0, -0.5])
    assert "under 7.9\N{NO-BREAK SPACE}% from 0.5 to 2,000" in figure.svg  # 5 % and twice the noise of two ranges
    assert (
        "under 2\N{NO-BREAK SPACE}% from 6,000 to 7,000" in figure.svg
    )  # less than nothing is nothing, with its noise


def test_an_axis_reaches_to_a_released_share_that_stands_out_of_its_noise_though_no_synthetic_row_is_there() -> None:
    modelled = make("name: t\ncolumns:\n  x: {type: number, round: 2, min: 0, max: 1000000, scale: log}\n").modelled[
        "x"
    ]
    assert isinstance(modelled, Continuous)
    bins = Bins.of(modelled)
    synthetic = np.zeros(len(bins.labels))
    synthetic[8:12] = 0.25
    far = synthetic.copy()
    far[-2] = 0.05
    narrow, wide = (axis_of(modelled, bins, synthetic, each) for each in (synthetic, far))
    assert narrow["edges"][8] == 0 and narrow["edges"][12] == 1 and narrow["beyond"] == 0
    assert wide["edges"][8] == 0 and wide["edges"][-2] == 1
    labels = [label for _, label in wide["ticks"]]
    assert labels[:2] == ["1,000", "10,000"] and labels[-1] == "100,000"


def test_a_rate_of_a_group_of_few_rows_is_pale() -> None:
    shares = {"labels": ["false", "true"], "values": 2, "ordered": False, "synthetic": [0.9, 0.1]}
    groups = {"labels": [["g"], ["h"], ["i"]], "share": [0.5, 0.46, 0.04], "within": [0.02, 0.01, 0.9]}
    of_each = {"column": 1, **groups, "released": [0.1, 0.12, 0.5], "stddev": [0.01] * 3, "synthetic": [0.1] * 3}
    rates = {"target": 0, "class": "true", "columns": [of_each]}
    facts = {
        "columns": [{"name": "died", **shares}, {"name": "ward", **shares}],
        "rates": rates,
        "released_records": 10_000,
    }
    drawn = rate_figures(facts)
    assert drawn is not None and drawn.figures[0].svg.count('class="bar rest"') == 1
    assert "\N{RIGHTWARDS ARROW}" not in drawn.figures[0].svg  # the bar is not cut, nor is its whisker at 52 %
    assert ">60\N{NO-BREAK SPACE}%</text>" in drawn.figures[0].svg
    assert drawn.figures[0].above == "Of i: it has less than 5 % of the rows."
    assert "1 of 3 pale: it has less than 5 % of the rows" in drawn.figures[0].note
    of_each["share"] = [0.5, 0.35, 0.15]
    drawn = rate_figures(facts)
    assert drawn is not None and 'class="bar rest"' not in drawn.figures[0].svg
    of_each["released"], of_each["stddev"] = [0.03, 0.5, 0.98], [0.02, 0.1, 0.02]
    drawn = rate_figures(facts)
    assert drawn is not None  # a rate is never below 0, nor above 1
    said = drawn.figures[0].svg.replace("\N{NO-BREAK SPACE}", " ")
    assert all(
        one in said for one in ("3.0 (0.0 to 7.0) %", "50.0 \N{PLUS-MINUS SIGN} 20.0 %", "98.0 (94.0 to 100.0) %")
    )


def test_all_classes_of_a_group_stand_end_to_end_and_their_noise_among_the_numbers() -> None:
    target = {"name": "rate", "labels": ["0", "30", "65", "null"], "ordered": False}
    of_first = {"labels": [["0.01 to 9.99", "exactly 0"], ["b"], ["c"]], "share": [0.6, 0.4, 0.0]}
    figures = {"stddev": [0.01] * 3, "within": [0.02, 0.03, 0.9]}
    columns = [
        {"column": 1, "released": [first, 0.2, 0.0], "synthetic": [first, 0.25, 0.0], **figures}
        for first in (0.5, 0.4, 0.05)
    ]
    others = [{"class": name, "columns": [one]} for name, one in zip(("0", "65"), columns[1:], strict=True)]
    rates = {"target": 0, "class": "30", "columns": [{**columns[0], **of_first}], "others": others}
    facts = {"columns": [target, {"name": "paid", "ordered": True}], "rates": rates}
    (drawn,) = class_figures(facts)
    assert [row[0] for row in drawn.rows[:3]] == [f"exactly 0, or 0.01 to 9.99; {name}" for name in ("0", "30", "65")]
    assert len(drawn.rows) == 6 and ">0 to 9.99<" in drawn.svg  # of a group without rows nothing is said
    assert [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in drawn.rows[0][1:]] == ["40 %", "2 %", "40 %", "2 %"]
    assert drawn.svg.count('class="heat s2"') == 1 + 2 * 2 and ">5<" not in drawn.svg  # too narrow for its number
    assert class_names(facts) == "" and class_figures({**facts, "rates": {**rates, "others": others[:1]}})
    facts["rates"]["others"] = others[:1]
    assert class_names(facts) == "These are the 2 largest of 3 classes."
    del facts["rates"]["others"]
    assert class_figures(facts) == [] and class_names(facts) == ""


def test_many_groups_of_a_pair_stand_beneath_one_another_and_categories_that_were_counted_as_one_are_named() -> None:
    columns = [{"name": "sex", "ordered": False, "labels": ["f", "m"]}]
    columns.append({"name": "ward", "ordered": False, "labels": list("abcdefghij")})
    labels = [[["f"], ["m"]], [["a", "b", "c"], *([one] for one in "defghij")]]
    shares = {key: [[0.0625] * 8] * 2 for key in ("released", "synthetic", "stddev")}
    table = {"columns": [0, 1], "labels": labels, **shares, "distances": [0.2, 0.1, 0.3, 0.4]}
    pairs = {"distances": [[0, 1, 0.1, 0.05, 0.1, 0.2, 0.0, 0.0, 0.01, 0.02]], "tables": [table], "asked_for": 1}
    (figure,) = pair_tables({"columns": columns, "pairs": pairs}).values()
    assert figure.note.replace("\N{NO-BREAK SPACE}", " ") == (
        "within 40 % in these groups, 20 % in the broader ones of all pairs, the farthest off"
    )
    assert figure.foot.endswith("the release counted 3 categories of ward as one group, so nothing tells them apart")
    frames = re.findall(r'class="frame" x="[\d.]+" y="[\d.]+" width="([\d.]+)" height="([\d.]+)"', str(figure.svg))
    assert [high for _, high in frames] == ["160", "160"] and figure.rows[0][0] == "f; a, b, c"


def test_rates_are_sorted_by_how_clearly_they_differ_and_each_scale_ends_just_beyond_what_is_drawn() -> None:
    shares = {"labels": ["false", "true"], "values": 2, "ordered": False, "synthetic": [0.9, 0.1]}
    released = {"alike": [0.1, 0.1], "apart": [0.05, 0.2], "extreme": [0.09, 1.0], "hidden": [0.08, 0.12]}
    stddev = {"alike": 0.001, "apart": 0.005, "extreme": 0.2, "hidden": 0.05}
    of_each = [
        {
            "column": place,
            "labels": [["g"], ["h"]],
            "share": [0.5, 0.5],
            "within": [0.01, 0.01 * place],
            "released": rates,
            "stddev": [stddev[name]] * 2,
            "synthetic": rates,
        }
        for place, (name, rates) in enumerate(released.items(), 1)
    ]
    rates = {"target": 0, "class": "true", "columns": of_each}
    columns = [{"name": name, **shares} for name in ("died", *released)]
    drawn = rate_figures({"columns": columns, "rates": rates, "released_records": 10_000})
    assert drawn is not None
    assert [one.title for one in drawn.figures] == ["apart", "extreme", "hidden", "alike"]
    arrows = [str(one.svg).count("\N{RIGHTWARDS ARROW} 100") for one in drawn.figures]
    assert arrows == [0, 0, 0, 0]  # its own scale holds all that is
    ends = [re.findall(r">(\d+)\N{NO-BREAK SPACE}%</text>", str(one.svg))[-1] for one in drawn.figures]
    assert ends == ["25", "100", "25", "15"]  # of whiskers at 21, 22 and 10.2 %, the last behind the rate of all rows


def _rated(share: list[float], rates: list[float], stddev: list[float]) -> dict[str, Any]:
    labels = [[name] for name in "ghi"[: len(share)]]
    figures = {"share": share, "within": [2 * one for one in stddev], "released": rates, "stddev": stddev}
    return {"column": 1, "labels": labels, **figures, "synthetic": rates}


def _figure_of(one: dict[str, Any]) -> Any:
    both = {"labels": ["false", "true"], "values": 2, "ordered": False, "synthetic": [0.9, 0.1]}
    columns = [{"name": name, **both} for name in ("died", "ward")]
    rates = {"target": 0, "class": "true", "columns": [one]}
    drawn = rate_figures({"columns": columns, "rates": rates, "released_records": 10_000})
    assert drawn is not None
    return drawn.figures[0]


def test_the_long_whisker_of_a_group_of_few_rows_does_not_stretch_a_scale() -> None:
    svg = str(_figure_of(_rated([0.5, 0.498, 0.002], [0.09, 0.08, 0.11], [0.002, 0.002, 0.4])).svg)
    assert re.findall(r">(\d+)\N{NO-BREAK SPACE}%</text>", svg)[-1] == "15"
    wide = str(_figure_of(_rated([0.6, 0.4], [0.55, 0.6], [0.002, 0.002])).svg)
    assert re.findall(r">(\d+)\N{NO-BREAK SPACE}%</text>", wide)[-1] == "80"


def test_a_card_of_rates_that_is_to_be_used_with_care_says_why() -> None:
    good = _figure_of(_rated([0.5, 0.5], [0.05, 0.2], [0.005, 0.005]))
    assert good.grade == "good" and "synthetic rates" not in good.note
    care = _figure_of(_rated([0.5, 0.5], [0.05, 0.2], [0.005, 0.025]))
    assert care.grade == "care" and care.note.replace("\N{NO-BREAK SPACE}", " ").endswith(
        "synthetic rates are within 5 points, more than a quarter of the rate of all rows and of what groups differ by"
    )


def test_columns_with_long_lists_of_categories_are_drawn_behind_the_others() -> None:
    few, many = ({"labels": list(text), "synthetic": [1 / len(text)] * len(text)} for text in ("ab", "abcdef"))
    shared = {"type": "t", "values": 2, "ordered": False}
    columns = [{"name": f"c{n}", **shared, **labels} for n, labels in enumerate((many, few, many, few))]
    columns.append({**columns[0], "name": "c4", "ordered": True})
    (one,) = multiples(columns)
    assert [figure.title for figure in one.first] == ["c1", "c3", "c4", "c0", "c2"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["2016-01-01 to 2019-06-22", "2019-06-23 to 2020-02-27"], ["2016-01–2019-06", "2019-06–2020-02"]),
        (["2025-03-01 to 2026-09-29", "2026-09-30"], ["2025-03-01 to 2026-09-29", "2026-09-30"]),
        (["2026-06-23 to 2026-06-27", "null"], ["2026-06-23–27", "null"]),
        (["2026-05-23 to 2026-06-20", "2026-06-21 to 2026-06-30"], ["2026-05-23–06-20", "2026-06-21–30"]),
    ],
)
def test_days_of_a_group_are_as_short_as_tells_them_apart(labels: list[str], expected: list[str]) -> None:
    assert brief(labels) == expected


@pytest.mark.parametrize("bars", [-1, 0, float("nan"), 0.5, 1e9])
def test_an_axis_of_so_many_bars_is_refused_and_not_drawn_for_ever(bars: float) -> None:
    axis = {"edges": [0.0, 0.5, 1.0], "bars": bars, "ticks": []}
    with pytest.raises(ValueError, match="no axis that nacre draws"):
        histogram("x", "", ["1 to 2", "3 to 4"], None, Shares("synthetic", [0.5, 0.5]), axis)


def test_lying_bars_with_a_scale_say_of_each_share_what_it_is_within() -> None:
    shares = Shares("released", [0.043, 0.0], [0.0155, 0.0])
    drawn = bars("x", "", ["a", "b"], shares, Shares("synthetic", [0.05, 0.0]), (0.04, 0.1))
    assert "4.3 \N{PLUS-MINUS SIGN} 3.1\N{NO-BREAK SPACE}%" in drawn.svg
    assert ">0.0\N{NO-BREAK SPACE}%" in drawn.svg and drawn.svg.count("\N{PLUS-MINUS SIGN}") == 1
    assert "\N{PLUS-MINUS SIGN}" not in bars("x", "", ["a", "b"], shares).svg
