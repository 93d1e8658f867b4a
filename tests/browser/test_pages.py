"""The pages as a person sees them: loaded without a word or a request, drawn, within the screen, readable."""

from pathlib import Path

import numpy as np
import pytest

from dpmodels.report.within import DRAWN

pytestmark = pytest.mark.processes

EXAMPLE = Path(__file__).parents[2] / "docs" / "example" / "report.html"
PLOTS = {
    "table": 6,
    "every kind": 13,
    "images": 1,
    "images in color": 1,
    "internal": 9,
    "internal images": 1,
    "internal images in color": 1,
    "federation": 2,
    "documents": 2,
    "rounds": 2,
    "audit": 1,
}
SHEETS = ["statement", *(f"statement of {what}" for what in ("clients", "central trust", "documents", "long words"))]
SHEETS += ["data sheet", "data sheet of documents"]
NAMES = [*PLOTS, "checks", "raw checks", "comparison", "card", *SHEETS]
DESKTOP, PHONE = 1200, 390
UNDRAWN = """
return [...document.querySelectorAll('svg[role=img]')].filter(svg => {
  const shown = svg.getBoundingClientRect(), drawn = svg.getBBox(), marks = svg.querySelector('rect, path, circle');
  return !(shown.width > 50 && shown.height > 20 && drawn.width > 0 && drawn.height > 0 && marks);
}).map(svg => svg.querySelector('title')?.textContent).concat(
  [...document.images].filter(image => !(image.complete && image.naturalWidth > 0)).map(image => image.alt));
"""
NUMBERS = """
const byGroup = '#rates svg, #groups svg, #asked svg';
return ['svg[role=img]', '#pairs .cards svg', byGroup].map(these => document.querySelectorAll(these).length);
"""
CUT_OFF = """
return [...document.querySelectorAll('svg[role=img] text')].filter(text => {
  const box = text.getBBox(), view = text.ownerSVGElement.viewBox.baseVal;
  return box.x < -1 || box.x + box.width > view.width + 1 || box.y + box.height > view.height + 1;
}).map(text => text.textContent);
"""
INKS = """
const canvas = document.createElement('canvas'), image = document.images[0], inks = [];
[canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
const pen = canvas.getContext('2d');
pen.drawImage(image, 0, 0);
const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
for (let at = 0; at < data.length; at += 44) inks.push([data[at], data[at + 1], data[at + 2]]);
return inks;
"""
AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations']}).then(found => done(found.violations
  .filter(each => ['serious', 'critical'].includes(each.impact))
  .map(each => each.id + ': ' + each.nodes.map(node => node.html.slice(0, 200)).join(' | '))),
  error => done(['axe failed: ' + error]));
"""


def test_the_largest_pages_take_less_than_a_second(browser, pages):
    """Of processor time, which other work on the machine leaves alone."""
    browser.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    for page in sorted([EXAMPLE, *pages.values()], key=lambda page: page.stat().st_size)[-2:]:
        browser.open(page, DESKTOP)
        assert browser.run("return document.body.getBoundingClientRect().height") > 600  # it is laid out
        took = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        assert 0 < next(one["value"] for one in took if one["name"] == "TaskDuration") < 1


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_and_image_is_drawn_and_no_label_is_cut_off(browser, pages, name):
    browser.open(pages[name], DESKTOP)
    plots, pairs, rates = browser.run(NUMBERS)
    assert plots - pairs - rates == PLOTS[name] and (0 < pairs <= DRAWN) == (name in ("table", "every kind"))
    assert (rates > 0) == (pairs > 0)
    assert browser.run("return document.images.length") == ("images" in name)
    assert browser.run(UNDRAWN) == []
    assert browser.run(CUT_OFF) == []


@pytest.mark.parametrize(("name", "colored"), [("images", False), ("images in color", True)])
def test_a_sheet_of_images_is_shown_in_the_colors_that_they_have(browser, pages, name, colored):
    browser.open(pages[name], DESKTOP)
    inks = browser.run(INKS)
    assert len(inks) > 100 and any(max(ink) - min(ink) > 60 for ink in inks) == colored


@pytest.mark.parametrize(
    ("width", "dark"), [(DESKTOP, False), (DESKTOP, True), (PHONE, False)], ids=["light", "dark", "phone"]
)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.nightly_if(
    "every kind-dark",
    "images*-dark",
    "internal*-dark",
    "documents-dark",
    "rounds-dark",
    "audit-dark",
    "raw checks-dark",
    "comparison-dark",
    "statement of *-dark",
    "data sheet*-dark",
    "statement of *-phone",
    "internal images*-phone",
    "raw checks-phone",
)  # beside one page of each sort
def test_a_page_opens_without_a_word_or_a_request_and_fills_its_screen(browser, pages, name, width, dark):
    browser.open(pages[name], width, dark)
    assert browser.requests() == [pages[name].as_uri()]
    assert browser.complaints() == []
    inner, outer = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
    assert inner <= outer == width
    picture = browser.picture()
    assert picture.shape[1] == width and picture.shape[0] >= 600
    seen = picture[::3, ::3].astype(np.int64)
    corner = picture[-5, 5].astype(np.int64)
    assert (corner.mean() < 60) == dark
    ink = np.abs(seen - corner).max(axis=2) > 40
    assert 0.01 < ink.mean() < 0.6
    assert len(np.unique(seen @ [1, 256, 65536])) > 50


@pytest.mark.parametrize("name", ["every kind", "card", "checks"])
def test_no_table_of_words_is_wider_than_a_phone(browser, pages, name):
    browser.open(pages[name], PHONE)
    browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    wide = """return [...document.querySelectorAll('table.stack, table.judged')].filter(
      each => each.scrollWidth > each.parentNode.clientWidth).map(each => each.textContent.slice(0, 80))"""
    assert browser.run("return document.querySelectorAll('table.stack').length") > 0 and browser.run(wide) == []


def test_no_name_of_a_section_is_cut_on_a_wide_screen_however_many_there_are(browser, pages):
    browser.open(pages["every kind"], DESKTOP)
    cut = """const list = document.querySelector('body > nav ul'), edge = list.getBoundingClientRect().right + 1;
      [...list.children].forEach(each => list.append(each.cloneNode(true)));
      return [...list.querySelectorAll('a')].filter(each => each.getBoundingClientRect().right > edge).length"""
    assert browser.run(cut) == 0


def test_the_numbers_of_a_plot_are_a_table_beneath_it(browser, pages):
    browser.open(pages["table"], PHONE)
    rows = browser.run("""
      document.querySelectorAll('details').forEach(each => each.open = true);
      return [...document.querySelectorAll('figure')].map(each => [each.querySelectorAll('tbody tr').length,
        each.querySelector('td').getBoundingClientRect().height])""")
    assert len(rows) > PLOTS["table"] and all(count >= 2 and height > 0 for count, height in rows)
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE


def test_a_folded_section_is_open_where_a_link_leads_to_it(browser, pages):
    browser.open(pages["table"], PHONE)
    seen = "return document.querySelector('#words dd').checkVisibility({contentVisibilityAuto: true})"
    assert browser.run(seen) is False
    browser.run("document.querySelector('nav a[href=\"#words\"]').click()")
    assert browser.run(seen) is True


def test_large_drawings_are_there_on_a_wide_screen_and_on_a_phone_where_somebody_follows_a_small_one(browser, pages):
    seen = "return document.querySelector('#column-0 text').checkVisibility({contentVisibilityAuto: true})"
    browser.open(pages["table"], DESKTOP)
    assert browser.run(seen) is True
    browser.open(pages["table"], PHONE)
    assert browser.run(seen) is False
    lines = browser.run("""return [...document.querySelectorAll('.judged tr')].map(
      each => [...each.children].every(cell => cell.getBoundingClientRect().right <= innerWidth))""")
    assert len(lines) > PLOTS["table"] / 2 and all(lines)
    fits = """const head = [...document.querySelectorAll('.judged thead th')].pop();
      head.textContent = 'rate of Entlassungsgrundverlegung'; return head.scrollWidth <= head.clientWidth"""
    assert browser.run(fits) is True
    browser.run("document.querySelector('.strip a[href=\"#column-0\"]').click()")
    assert browser.run(seen) is True


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.nightly_if(
    "every kind-dark",
    "internal-light",
    "internal images*",
    "raw checks-*",
    "statement of *",
    "data sheet of documents-*",
    "card-dark",
    "comparison-dark",
    "rounds-dark",
    "audit-dark",
    "images-dark",
    "statement of *-dark",
    "images in color-*",
    "documents-dark",
    "federation-dark",
)
def test_axe_finds_no_serious_violation(browser, pages, axe, name, dark):
    browser.open(pages[name], DESKTOP if name != "table" else PHONE, dark)
    browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    browser.run(axe)
    assert browser.driver.execute_async_script(AXE) == []


def test_the_eye_sees_what_is_wrong(browser, axe, tmp_path):
    """A page with one fault of each kind: without it none of the tests above would prove anything."""
    page = tmp_path / "bad.html"
    page.write_text(
        '<html lang="en"><title>bad</title><main><h1 style="color: #ddd; width: 2000px">pale</h1>'
        '<img src="http://127.0.0.1:9/missing.png"><svg role="img" viewBox="0 0 9 9"><title>empty</title></svg>'
        '<svg role="img" aria-label="cut" viewBox="0 0 99 99"><text x="90" y="20">long words</text></svg>'
        "<script>console.error('oh')</script></main></html>"
    )
    browser.open(page, PHONE)
    assert "http://127.0.0.1:9/missing.png" in browser.requests()
    assert any("oh" in complaint for complaint in browser.complaints())
    assert browser.run("return document.documentElement.scrollWidth") > PHONE
    assert "empty" in browser.run(UNDRAWN) and browser.run(CUT_OFF) == ["long words"]
    browser.run(axe)
    found = browser.driver.execute_async_script(AXE)
    assert {fault.split(":")[0] for fault in found} >= {"color-contrast", "image-alt"}


@pytest.mark.parametrize("name", SHEETS)
def test_a_data_sheet_is_printed_on_one_page_and_a_statement_on_both_sides_of_a_sheet(browser, pages, name):
    """However much there is to say."""
    browser.open(pages[name], DESKTOP)
    assert browser.printed_pages() == (2 if "statement" in name else 1)
    browser.open(pages["table"], DESKTOP)
    assert browser.printed_pages() > 1  # so that the count is seen to be one
