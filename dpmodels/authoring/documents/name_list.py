"""A data dictionary in Markdown or text: tables, lists of lines such as ``- amount: what was lent``, or headings.

All become the rows of one CSV file, which is read as any other data dictionary is.
"""

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from itertools import takewhile

from dpmodels.authoring.documents.joint_rows import columns_of, is_like, place_of_names
from dpmodels.authoring.headings import MEANT, folded

LINE = re.compile(
    r"(\s{0,20})(?:[-*+]\s{1,4}|\d{1,4}[.)]\s{1,4})?[`*]{0,3}([^\s:`*|#-][^:`*|]{0,99})[`*]{0,3}\s?"
    r"(?:(\([^()]{1,60}\))\s?)?:[`*]{0,3}(?:\s(.*)|$)"
)
"""A name, which may be marked as code or as bold, perhaps its type in brackets, a colon, and what it is."""
DASHED = re.compile(
    r"(\s{0,20})[-*+]\s{1,4}[`*]{0,3}([^\s:`*|#-][^\s:`*|]{0,99})[`*]{0,3}(?:\s?(\([^()]{1,60}\)))?\s[–—-]\s(.*)"
)
"""The same of an item whose name is one word, with a dash in place of the colon."""
BRACKETED = re.compile(r"(.*\S)\s\(([^()]{1,60})\)")
HEADED = re.compile(
    r"#{2,6}\s+[`*]{0,3}([^\s:`*|#()][^:`*|#()]{0,99}?)[`*]{0,3}(?:\s?(\([^()]{1,60}\)))?\s?:?(?:\s#+)?\s*"
)
"""A heading that may be the name of a column, or of several, perhaps with its type in brackets."""
SPACED = re.compile(
    r"(\s{0,20})(?:[-*+]\s{1,4}|\d{1,4}[.)]\s{1,4})?([^\s:|#-][^:|]{0,99}?)(?:\s?(\([^()]{1,60}\)))?"
    r"(?:\s?:\s|\s+[–—-]{1,2}\s+|\s*\t\s*|\s{2,})\s*(\S.*)"
)
"""A column of the data, or several, and what it is behind a colon, a dash, a tab or several blanks."""
MARKED = re.compile(r"`|\*\*")
"""What marks words as code or as bold."""
ITEM = re.compile(r"\s*(?:[-*+]|\d{1,4}[.)])\s+")
KEY = re.compile(r"\s*(?:[-*+]\s+)?[`*]{0,3}([^\W\d][^:=`*|]{0,40}?)[`*]{0,3}\s?[:=][`*]{0,3}(?:\s+(.*)|$)")
"""A heading of a data dictionary, and what its cell would hold, beneath a name."""
REMARK = re.compile(r"[^\W\d_a-zà-ÿ][^\s:|`]*(?:\s[^\s:|`]+){1,7}\s?:\s")
"""How a paragraph begins that is of the table, and not of the column above it: `What it is for: …`."""
PREPOSITIONS = frozenset(
    ["from", "to", "von", "bis", "of", "de", "desde", "hasta", "least", "most", "up", "low", "high", "name"]
)
"""Headings that begin a line of prose as often as they stand for a cell, which holds a number then."""
RULE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?")
"""The line below the headings of a table in Markdown."""
CUT = re.compile(r"(?<!\\)\|")
FOREIGN = re.compile(r"\b(?:bis|und|oder|der|das|von|ist|in|à|ou|et|les|des|est|hasta|los|las)\b", re.IGNORECASE)
ENGLISH = re.compile(r"\b(?:to|and|or|the|of|is|in)\b", re.IGNORECASE)
FORM = (
    "{} has no table with bars, no line of the form `- name: what it is` and no heading `## name`, which is "
    "what is read of such a file; or write a data dictionary as a .csv or .xlsx file, whose first line is "
    "`name,type,min,max,description`"
)


@dataclass
class Entry:
    """What a document says of a column, by headings, and the line in which it begins.

    Attributes:
        items: values that stand beneath a heading of values; words: what goes on with the description.
    """

    line: int
    cells: dict[str, str]
    items: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Listed:
    """A document as a data dictionary in CSV, and the lines in which it names its columns."""

    table: str
    lines: Mapping[str, int]


def as_csv(text: str, names: Collection[str] = ()) -> Listed | None:
    """Return the tables and the list of a document as one data dictionary; None where there is none of them.

    ``names`` are those of the data's columns, which tell rows for several of them, and prose, from other names.
    """
    lines, tabled, headed = text.splitlines(), [*_tabled(text, names)], [*_headed(text, names)]
    entries = [*tabled, *_listed(text, names)]
    entries = headed if _are_of_headings(headed, entries, lines) else entries
    entries = [replace(one, cells={**one.cells, "name": name}) for one in entries for name in _columns(one, names)]
    entries = _without_prose(entries, names, lines, {one.line for one in tabled})
    if not entries:
        return None
    headings = list(dict.fromkeys(heading for entry in entries for heading in entry.cells))
    table, delimiter = StringIO(), ";" if len(FOREIGN.findall(text)) > len(ENGLISH.findall(text)) else ","
    rows = ([entry.cells.get(heading, "") for heading in headings] for entry in entries)
    csv.writer(table, delimiter=delimiter).writerows([headings, *rows])
    return Listed(table.getvalue(), {entry.cells["name"]: entry.line for entry in entries})


def _columns(entry: Entry, names: Collection[str]) -> list[str]:
    return columns_of(entry.cells["name"], names)


def _without_prose(
    entries: Sequence[Entry], names: Collection[str], lines: Sequence[str], tabled: Collection[int]
) -> list[Entry]:
    """Leave out lines of prose, such as `Note: …`: they name no column, nor nearly, and look unlike others that do.

    Rows of tables are kept, and all of a document that names none of the columns. ``tabled``: the lines of those rows.
    """
    columns = {name.casefold() for name in names}
    known = [one for one in entries if one.cells["name"].casefold() in columns]
    looks = {_look(one, lines) for one in known}
    others = [name for name in names if name.casefold() not in {one.cells["name"].casefold() for one in known}]

    def is_row(entry: Entry) -> bool:
        return entry in known or entry.line in tabled or _look(entry, lines) in looks

    return [one for one in entries if not known or is_row(one) or is_like(one.cells["name"], others)]


def _look(entry: Entry, lines: Sequence[str]) -> tuple[bool, bool, str]:
    """Return how a name is written: of several words, with a capital, and as an item, a heading or neither."""
    name, line = entry.cells["name"], lines[entry.line - 1].lstrip()
    mark = ITEM.match(line)
    return " " in name, name[:1].isupper(), mark[0].strip()[-1] if mark else "#" * line.startswith("#")


def _headed(text: str, names: Collection[str] = ()) -> Iterator[Entry]:
    """Yield what stands beneath each heading of one word, or that names columns of the data.

    Items behind a line that ends with a colon are a list.
    """
    columns = {name.casefold() for name in names}
    entry, is_open, is_led, is_paragraph = None, False, False, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            yield from (one for one in _whole(entry) if one.cells["description"] or len(one.cells) > 2)
            match = HEADED.fullmatch(line)
            is_named = match and (match[1].casefold() in columns or len(columns_of(match[1], names)) > 1)
            match = match if match and (" " not in match[1] or is_named) else None
            words = f"{match[2][1:-1]}," if match and match[2] else ""
            entry = Entry(number, {"name": match[1], "description": words}) if match else None
            is_open = is_led = False
        elif entry and entry.words and is_paragraph and REMARK.match(line):
            yield from _whole(entry)
            entry = None
        elif entry and line.strip() and not line.lstrip().startswith("|"):
            mark = ITEM.match(line)
            if mark and is_led and not is_open:
                entry.words.append(f"{'' if entry.words[-1].endswith(':') else ','} {line[mark.end() :].strip()}")
                continue
            is_open = _continued(entry, line, is_open)
            is_led = line.rstrip().endswith(":") and bool(entry.words)
        is_paragraph = not line.strip()
    yield from (one for one in _whole(entry) if one.cells["description"] or len(one.cells) > 2)


def _are_of_headings(headed: Sequence[Entry], entries: Sequence[Entry], lines: Sequence[str]) -> bool:
    """Tell whether headings name the columns, and not lists beneath them: items there say a type, values or bounds."""
    items = [one for one in entries if ITEM.match(lines[one.line - 1])]
    others = len(entries) - len(items)
    is_said = all(MEANT.get(folded(one.cells["name"]), "name") != "name" for one in items)
    return bool(headed) and is_said and others <= len(headed)


def _tabled(text: str, names: Collection[str] = ()) -> Iterator[Entry]:
    """Yield the rows of those tables in Markdown that have a heading for names, and another one that is known.

    Other tables are read whose cells name columns of the data.
    """
    lines = text.splitlines()
    for number, rule in enumerate(lines[1:], 2):
        if "-" not in rule or "|" not in lines[number - 2] or not RULE.fullmatch(rule.strip()):
            continue
        headings = _cells_of(lines[number - 2])
        rows = [_cells_of(line) for line in takewhile(lambda line: "|" in line, lines[number:])]
        meanings = [MEANT.get(folded(one), "") for one in headings]
        place = meanings.index("name") if "name" in meanings and {*meanings} - {"name", ""} else None
        place = place_of_names(rows, names) if place is None else place
        if place is None or place >= len(headings):
            continue
        for further, row in enumerate(rows, number + 1):
            cells = dict(zip(headings, row, strict=False))
            if name := cells.pop(headings[place], ""):
                yield Entry(further, {"name": name, **{one: cell for one, cell in cells.items() if one}})


def _cells_of(line: str) -> list[str]:
    """Return the cells of a row in Markdown, without what marks them as code or as bold."""
    inner = line.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    cells = (re.sub(r"<br ?/?>", "; ", cell.replace("\\|", "|")) for cell in CUT.split(inner))
    return [re.sub(r"`|\*\*", "", cell).strip() for cell in cells]


def _listed(text: str, names: Collection[str] = ()) -> Iterator[Entry]:
    """Yield the entries of a list.

    What is indented more than the first name belongs to the name above it: a heading with its cell, or words that go
    on. Other lines, such as headings of sections, belong to none.
    """
    entry, first, is_open, is_apart, in_items = None, None, False, False, False
    for number, line in enumerate(text.splitlines(), 1):
        match, indent = _named(line, names), len(line) - len(line.lstrip())
        is_item = ITEM.match(line) is not None
        if RULE.fullmatch(line.strip()) or line.lstrip().startswith("|"):
            continue
        match = None if match and not is_item and not match[4] else match
        first = indent if match and (first is None or (is_item and is_apart and not in_items)) else first
        if match and indent <= (first or 0):
            yield from _whole(entry)
            entry, is_open, in_items = _entry(match, number), False, is_item
        elif entry and line.strip() and indent > (first or 0):
            is_open = _continued(entry, line, is_open)
        is_apart = not line.strip()
    yield from _whole(entry)


def _named(line: str, names: Collection[str]) -> re.Match[str] | None:
    """Return a line as a name and what it is; blanks or a dash alone are behind the names of columns of the data."""
    if match := LINE.fullmatch(line) or DASHED.fullmatch(line):
        return match
    match = SPACED.fullmatch(MARKED.sub("", line)) if names else None
    name = match[2].strip() if match else ""
    is_of_data = name.casefold() in {one.casefold() for one in names} or len(columns_of(name, names)) > 1
    return match if is_of_data else None


def _entry(match: re.Match[str], number: int) -> Entry:
    """Return what a line says of a column: its name, and what it is, of which the first may stand in brackets."""
    name, inner, words = match[2].strip(), match[3], (match[4] or "").strip()
    if not inner and (bracketed := BRACKETED.fullmatch(name)):
        name, inner = bracketed[1], f"({bracketed[2]})"
    words = ", ".join(filter(None, [inner[1:-1] if inner else "", words]))
    return Entry(number, {"name": name, "description": words})


def _continued(entry: Entry, line: str, is_open: bool) -> bool:
    """Add an indented line to an entry; return whether the heading above it still takes items for its values."""
    key, mark = KEY.fullmatch(line), ITEM.match(line)
    heading = folded(key[1]) if key else ""
    cell = (key[2] or "").strip() if key else ""
    meaning = MEANT.get(heading, "name")
    is_cell = meaning != "name" and not (heading in PREPOSITIONS and not re.match(r"\W*\d", cell))
    if key and is_cell and not (is_open and mark):
        place = key[1].strip() if meaning != "description" else "description"
        entry.cells[place] = "; ".join(filter(None, (entry.cells.get(place, ""), cell)))
        return meaning == "values" and not cell
    item = line[mark.end() :].strip() if mark else line.strip()
    if is_open and mark:
        entry.items.append(item)
        return True
    entry.words.append(f"; {item}" if mark else f" {item}")
    return False


def _whole(entry: Entry | None) -> Iterable[Entry]:
    """Write the items beneath a heading of values into its cell, and return the entry, if there is one."""
    if entry is None:
        return []
    if entry.items:
        place = next(one for one in entry.cells if MEANT.get(folded(one)) == "values")
        entry.cells[place] = " | ".join(entry.items)
    entry.cells["description"] = "".join([entry.cells["description"], *entry.words]).strip().removesuffix(",")
    return [entry]
