"""Write the tables of the pages anew from the records in ``benchmarks/results``.

    python -m benchmarks.NAME --json benchmarks/results/RECORD.json
    python -m benchmarks.pages

A page names the record above a table, and which of its tables if it is not the first: ``<!-- results: adult -->``,
``<!-- results: tails 2 -->``. In a record a cell may quote others: ``{adult: moments: AUROC}`` is the mean of that
column over the rows of the record ``adult`` that begin with ``moments``, to three digits; above 1, to the whole number.
"""

import json
import re
from statistics import mean

from benchmarks.common import RESULTS, ROOT, Table

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
MARKED = re.compile(r"(<!-- results: ([\w-]+)(?: (\d+))? -->\n\n)(?:\|.*\n)*\n?")
QUOTED = re.compile(r"\{([\w-]+)(?: (\d+))?: ([^:}]+): ([^}]+)\}")


def table(name: str, number: str | None) -> Table:
    """Read a table of a record; the first is number 1."""
    record = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return Table(**record["tables"][int(number or 1) - 1])


def rendered(text: str) -> str:
    """Return a page's text with every table that is named in it as its record has it."""
    return MARKED.sub(lambda found: found[1] + quoted("\n".join([*table(found[2], found[3]).lines(), "", ""])), text)


def quoted(text: str) -> str:
    """Return a cell's text with the figures that it quotes."""
    return QUOTED.sub(lambda found: _figure(table(found[1], found[2]), found[3], found[4]), text)


def _figure(source: Table, row: str, column: str) -> str:
    at = source.columns.index(column)
    shown = [cells for cells in map(source.shown, source.rows) if " ".join(cells).startswith(f"{row} ")]
    figure = mean(float(cells[at].split()[0].strip("*")) for cells in shown)
    return f"{figure:.0f}" if figure > 1 else f"{figure:.3f}".lstrip("0")


def main() -> None:
    """Write the pages whose tables differ from their records, and name them."""
    for page in PAGES:
        before = page.read_text(encoding="utf-8")
        if (after := rendered(before)) != before:
            page.write_text(after, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
