"""The pages show what the records hold, and no table of figures without one."""

import json
import re
from datetime import date
from functools import cache
from importlib.util import find_spec

import pytest

from benchmarks.common import RESULTS, ROOT, Table, dump
from benchmarks.pages import MARKED, PAGES, quoted, rendered
from benchmarks.papers import PAPERS

RECORDS = sorted(RESULTS.glob("*.json"))
MEASURED = [ROOT / "README.md", *sorted(ROOT.glob("docs/benchmarks*.md"))]
FIVE = ROOT / "docs" / "papers.md"
LINK, FIGURE = re.compile(r"\((benchmarks[\w-]*\.md)#([^)]+)\)"), re.compile(r"(?<![\w.])\d*\.\d+(?!\w)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_of_a_page_are_those_of_its_records(page) -> None:
    text = page.read_text(encoding="utf-8")
    assert rendered(text) == text, "python -m benchmarks.pages"


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.name)
def test_no_table_of_figures_is_without_a_record(page) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("\n| --- ") == len(MARKED.findall(text)) > 0


def test_every_record_is_shown_or_quoted_and_says_when_it_was_measured() -> None:
    texts = [path.read_text(encoding="utf-8") for path in [*PAGES, *RECORDS]]
    for path in RECORDS:
        record = json.loads(path.read_text(encoding="utf-8"))
        assert date.fromisoformat(record["date"][:10]) and (record.get("command") or record["source"])
        assert any(re.search(rf"(results: |{{){path.stem}[ :]", text) for text in texts), path
        assert path.read_text(encoding="utf-8") == dump(record)


def test_a_figure_that_was_written_by_hand_is_replaced() -> None:
    page = "Text.\n\n<!-- results: adult-mst -->\n\n| method |\n| --- |\n| mst | .999 |\n\nMore.\n"
    after = rendered(page)
    assert "0.8140" in after and ".999" not in after
    assert after.startswith("Text.\n\n<!--") and after.endswith("|\n\nMore.\n") and rendered(after) == after


def test_a_cell_quotes_the_mean_of_the_rows_that_it_names() -> None:
    assert quoted("p3gm {p3gm-images: fashion_mnist full p3gm: CNN} (two runs)") == "p3gm .763 (two runs)"
    with pytest.raises(ValueError, match="at least one data point"):
        quoted("{p3gm-images: no such row: CNN}")


def test_a_record_reads_back_and_has_a_line_for_each_row() -> None:
    rows = [["a", 0.5, [0.1, 0.2]], ['b, "c"', 1, {"mean": 0.3, "stdev": 0.1}]]
    table = {"title": "T", "columns": ["x", "y", "z"], "digits": 2, "rows": rows}
    text = dump({"date": "2026-11-23", "tables": [table, table]})
    assert json.loads(text)["tables"] == [table, table] and text.count("\n") == 3 + 2 * 4 + 2
    assert Table(**table).lines()[-1] == '| b, "c" | 1 | 0.30 ± 0.10 |'


def test_a_figure_without_a_digit_left_is_below_what_it_lies_and_an_exact_zero_is_one() -> None:
    rows = [[[0.01, 0.02]], [[0.0, 0.0]], [[0.0, 0.2]], [[-0.01, -0.02]]]
    shown = Table("T", ["x"], digits=1, rows=rows).lines()[2:]
    assert shown == ["| < 0.05 |", "| 0.0 ± 0.0 |", "| 0.1 ± 0.1 |", "| -0.0 ± 0.0 |"]


@cache
def section(page: str, anchor: str) -> str:
    """Return the part of a page below the heading of an anchor, with all parts inside of it."""
    depth, lines = 0, []
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        heading = re.match(r"(#+) (.*)", line)
        if heading and len(heading[1]) <= (depth or 9):
            named = re.sub(r"[^\w -]", "", heading[2].lower()).replace(" ", "-") == anchor
            depth = len(heading[1]) if named else 0
        lines += [line] if depth else []
    assert lines, f"{page}#{anchor}"
    return "\n".join(lines)


def unsupported(text: str) -> list[str]:
    """Return the figures of ours that are neither said nor shown, to their digits, in the sections that a row names.

    A row without a link is printed by the section of the row above it.
    """
    missing, links = [], []
    for row in (line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")):
        links = LINK.findall("|".join(row)) or links
        shown = [float(each) for page, anchor in links for each in re.findall(r"\d*\.?\d+", section(page, anchor))]
        for figure in FIGURE.findall(row[4]):
            half = 0.5001 * 10.0 ** -len(figure.split(".")[1])
            missing += [] if any(abs(each - float(figure)) <= half for each in shown) else [figure]
    return missing


def test_figures_of_the_five_papers_are_those_of_the_sections_that_print_them() -> None:
    text = FIVE.read_text(encoding="utf-8")
    assert not unsupported(text)
    assert len(FIGURE.findall(text)) > 100
    assert unsupported(text.replace("| .8880, .7110 |", "| .8895, .7110 |")) == [".8895"]


def test_each_of_the_five_papers_has_its_rows_and_what_is_missing_has_a_line() -> None:
    text = FIVE.read_text(encoding="utf-8")
    missing = text.partition("## Of the papers, and not here")[2]
    assert [name for name in PAPERS if f"**{name}**" not in missing.lower()] == []
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    assert all(line.count("|") == 7 for line in rows) and len(rows) > 30


def test_every_command_of_a_paper_is_a_module() -> None:
    names = [words.split()[0] for commands in PAPERS.values() for words in commands]
    assert {"archive.pearl", "archive.p3gm", "archive.dpkg", "sentdp", "archive.fedaux"} <= set(names)
    assert all(find_spec(f"benchmarks.{name}") for name in names)
