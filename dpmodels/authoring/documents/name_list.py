"""A data dictionary that is a list in Markdown or text: lines such as ``- amount: what was lent, in cents``."""

import csv
import re
from io import StringIO

LINE = re.compile(
    r"(\s{0,20})(?:[-*+]\s{1,4}|\d{1,4}[.)]\s{1,4})?[`*]{0,3}([^\s:`*|#-][^:`*|]{0,99})[`*]{0,3}:[`*]{0,3}\s(.*)"
)
"""A name, which may be marked as code or as bold, a colon, and what it is."""
ITEM = re.compile(r"\s*(?:[-*+]|\d{1,4}[.)])\s+")
FORM = (
    "{} has no line of the form `- name: what it is`, which is what is read of a list; or write a data dictionary as a "
    ".csv or .xlsx file, whose first line is `name,type,min,max,description`"
)


def list_as_csv(text: str) -> str:
    """Return a list as a dictionary with a heading for names and one for descriptions; empty where there is no list.

    What is indented more than the first name belongs to the name above it; other lines, such as headings, to none.
    """
    entries, first = list[tuple[str, list[str]]](), None
    for line in text.splitlines():
        match, indent = LINE.fullmatch(line), len(line) - len(line.lstrip())
        first = indent if match and first is None else first
        if match and indent <= (first or 0):
            entries.append((match[2].strip(), [match[3].strip()]))
        elif entries and line.strip() and indent > (first or 0):
            mark = ITEM.match(line)
            entries[-1][1].append(f"; {line[mark.end() :].strip()}" if mark else f" {line.strip()}")
    table = StringIO()
    csv.writer(table).writerows([("name", "description"), *((name, "".join(words)) for name, words in entries)])
    return table.getvalue() if entries else ""
