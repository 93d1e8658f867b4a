"""The pages show what the records hold, and no table of figures without one."""

import json
import re
from datetime import date

import pytest

from benchmarks.common import RESULTS, ROOT, Table, dump
from benchmarks.pages import MARKED, PAGES, quoted, rendered

RECORDS = sorted(RESULTS.glob("*.json"))
MEASURED = [ROOT / "README.md", *sorted(ROOT.glob("docs/benchmarks*.md"))]


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
