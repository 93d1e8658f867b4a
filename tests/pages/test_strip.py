"""Small pictures refer to the large ones that a page has, each once, and lead to them."""

import json
import re

import pytest

from dpmodels.pages.figures.strip import across
from dpmodels.pages.multiples import column_figure
from dpmodels.pages.page import is_long, parted, whole_days
from dpmodels.pages.plots import Shares, bars, histogram
from dpmodels.pages.report import render
from tests.hand_off.make_golden import GOLDEN


def page_of(*changes: str) -> str:
    facts = json.loads((GOLDEN / "LAYOUT-26" / "targeted" / "report.json").read_text())
    for name in changes:
        facts[name] = None
    return render(facts)


def test_every_small_picture_is_one_of_a_large_one_of_the_same_name() -> None:
    page = page_of()
    small = re.findall(r'<a href="#([\w-]+)"><svg[^>]*aria-hidden="true">(.*?)</svg><span title="[^"]+">([^<]+)<', page)
    large = dict(re.findall(r'<figcaption>([^<]+)(?:<span>[^<]*</span>)?</figcaption>\s*<svg id="([\w-]+)"', page))
    assert len(small) == len(large) > 3 and page.count('id="map-of-pairs"') == 1
    for link, drawing, name in small:
        assert link == large["Within how much" if name == "all pairs" else name]
        assert f'<use href="#{link}"' in drawing or ('class="bar"' in drawing and "<text" not in drawing)
    begin, strip = page.index('class="strip few across-4 narrow-3"'), page.index("<nav")
    assert begin < strip < page.index('id="use"')


def test_the_small_picture_of_all_pairs_fills_its_box_with_the_squares_alone() -> None:
    page = page_of()
    (part,) = re.findall(r'href="#map-of-pairs"><svg viewBox="([^"]+)" preserveAspectRatio="none"', page)
    left, top, width, height = map(float, part.split())
    (large,) = re.findall(r'<svg id="map-of-pairs" .*?</svg>', page, re.DOTALL)
    squares = re.findall(r'class="heat[^"]*" d="([^"]+)"', large)
    places = [tuple(map(float, place)) for d in squares for place in re.findall(r"M([\d.]+) ([\d.]+)", d)]
    inside = [(x, y) for x, y in places if y < top + height]
    assert left == min(x for x, _ in inside) == 0 and min(y for _, y in inside) >= top - 0.1
    assert max(x for x, _ in inside) > width / 2 and page.count('preserveAspectRatio="none"') >= 1


def test_a_report_without_pairs_has_small_pictures_of_its_columns_alone() -> None:
    page = page_of("pairs", "rates")
    assert 'href="#map-of-pairs"' not in page and 'href="#column-0"' in page


def test_no_small_picture_stands_alone_in_a_row_where_another_width_of_rows_has_room_for_it() -> None:
    assert across(8) == "few across-4 narrow-3" and across(9) == "few across-5 narrow-3"
    assert across(7) == "few across-4 narrow-4" and across(28) == "across-10 narrow-4"
    for number in range(2, 60):
        wide, *_ = [int(one.removeprefix("across-")) for one in across(number).split() if one.startswith("across")]
        assert number % wide != 1


def test_names_break_behind_what_parts_their_words_and_long_words_are_small() -> None:
    assert parted("passenger_age.<b>") == "passenger_<wbr>age.<wbr>&lt;b&gt;" and parted("_x__y") == "_<wbr>x__<wbr>y"
    assert is_long("department_x") is False and is_long("departmental_x")
    assert whole_days("<1> 2025-01-02 to x") == '&lt;1&gt; <span class="day">2025-01-02</span> to x'
    assert whole_days("2025-01-02 to 2025-02-03").endswith('</span> <span class="day">to 2025-02-03</span>')


def test_what_is_drawn_of_synthetic_rows_alone_has_bars_and_areas() -> None:
    """Two values that follow from another column were two short lines on an empty ground."""
    shares = Shares("synthetic", [0.8, 0.2])
    alone, both = bars("x", "", ["no", "yes"], None, shares), bars("x", "", ["no", "yes"], shares, shares)
    assert str(alone.svg).count('class="under"') == 2 and 'class="under"' in alone.small
    assert 'class="under"' not in str(both.svg) and 'class="under"' not in both.small
    assert 'class="under"' in str(histogram("x", "", ["1 to 2", "3 to 4"], None, shares).svg)
    assert 'class="under"' not in str(histogram("x", "", ["1 to 2", "3 to 4"], shares, shares).svg)


@pytest.mark.parametrize(
    ("labels", "brief"),
    [
        (["2025-01-01 00:00 to 2025-06-01 11:59", "2025-06-01 12:00 to 2025-12-31 23:59"], "2025-01-01 to 2025-12-31"),
        (["2025-01-01 00:00 to 2025-01-01 11:59", "2025-01-01 12:00 to 2025-01-01 23:59"], None),
        (["2025-01-01 to 2025-06-01", "2025-06-02 to 2025-12-31"], "2025-01-01 to 2025-12-31"),
    ],
)
def test_a_small_picture_of_moments_says_the_days_that_they_lie_in(labels: list[str], brief: str | None) -> None:
    axis = {"edges": [0, 0.5, 1], "ticks": [], "note": "", "bars": 2.0, "beyond": 0.0}
    shares = {"synthetic": [0.5, 0.5], "released": [0.5, 0.5], "released_stddev": [0.1, 0.1]}
    column = {"name": "at", "type": "datetime", "ordered": True, "values": 2, "labels": labels, "axis": axis, **shares}
    assert column_figure(column).brief == (brief or "2025-01-01 00:00 to 2025-01-01 23:59")
