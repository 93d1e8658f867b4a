"""A data dictionary: a CSV file with a row for each column, whose headings are read by their usual names."""

import csv
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from textwrap import shorten

from dpmodels.authoring.documents.clock import clock_in
from dpmodels.authoring.documents.forms import has_comma
from dpmodels.authoring.documents.formulas import with_formulas
from dpmodels.authoring.documents.intervals import INTERVAL, LABELED, RANGE, SIGNS, are_pieces, bare
from dpmodels.authoring.documents.joint_rows import columns_of, place_of_names
from dpmodels.authoring.documents.one_sided import limit_in
from dpmodels.authoring.documents.phrases import with_key, with_phrases
from dpmodels.authoring.documents.rows_of_cells import LONGEST_CELL, UNREAD, cells_of, joined_rows
from dpmodels.authoring.documents.value_lists import NO, YES, are_answers, cut, listed_in
from dpmodels.authoring.documents.value_words import with_plain_values
from dpmodels.authoring.documents.worded import with_worded
from dpmodels.authoring.documents.worded_days import with_plain_days
from dpmodels.authoring.facts import (
    RESOLUTIONS,
    SCALES,
    Facts,
    Tables,
    between,
    bound,
    joined,
    keyed,
    listed,
    scalars,
    stepping,
    typed,
)
from dpmodels.authoring.headings import IGNORED, MEANT, SECOND, folded
from dpmodels.authoring.marks import Marks, two_numbers
from dpmodels.authoring.type_words import is_primary, kind_of
from dpmodels.contract.formula import FUNCTIONS, Misread, names_in
from dpmodels.contract.text_forms.text_form import TextForm
from dpmodels.errors import Unsuitable

YES_ABROAD, NO_ABROAD = {"ja", "j", "oui", "o", "si", "sí", "s"}, {"nein", "non", "nee"}
"""Answers that say whether values may be missing; as values themselves they are words like others."""
EXCEL = re.compile(rf"\b({'|'.join(FUNCTIONS)})(?=\s*\()", re.IGNORECASE)
NO_HEADINGS = (
    "a data dictionary begins with a line of headings: one for the names of columns, such as `name`, `column` or "
    "`variable`, and another such as `type`, `min`, `max` or `values`; its first line {}. Write the codebook as CSV, "
    "as flows/demo/codebook.csv is, or give types with --types"
)
ASIDE = re.compile(r"\s*\([^()\d]*\)")
"""Words in brackets, as in `1 (worst) to 5 (best)`."""
OF_A_DAY = re.compile(r"\W*(?:the )?(?:day|calendar day|tag|jour|día) (?:of|de[rs]|d[eu]|del)\b", re.IGNORECASE)
"""How a description begins of a column whose moments are days."""
CENTS = re.compile(r"[-+]?[\d.,]*\d[.,]\d\d")
"""An end with two decimals, of which nobody writes a last zero unless the numbers have so many."""
MOST_HEADINGS, LONGEST_HEADING = 12, 40
"""Headings, and letters of each, that an error names."""
CLOCK_READ = r"(?:values|range) |type (?:time|heure|uhrzeit|hora)\b"
"""Cells that times of day are read of."""
AS = re.compile(r"(?:the )?(?:same as|as|like|wie|comme|como|idem|ditto:?)\s+(?P<name>\w+)(?!\w)", re.IGNORECASE)
"""How a description says that a column has the values of another, as `as from_station`."""
SAID = ("type", "min", "max", "range", "values", "decimals")
MOST_WORDS = 6  # of a category; a longer one is a sentence about the values


def read_dictionary(text: str, form: TextForm | None = None, names: Collection[str] = ()) -> Tables:
    """Read a data dictionary, whose numbers and dates are written in a form, if a person says so.

    ``names`` are those of the data's columns, several of which one row may describe.

    Raises:
        Unsuitable: none of the headings is one for the names of columns, a row has more cells than headings, or a
            quotation mark is not closed in the row that it opens in.
    """
    rows, meanings, delimiter = _rows(text, names)
    _check_quotes(text, delimiter)
    _check_lengths(text, delimiter, len(meanings))
    by_meaning = [cells_of(rows[0], meanings, row, number) for number, row in enumerate(rows[1:], 1)]
    rows_known = [*joined_rows(by_meaning)]
    known = {*names, *(row.get("name", "").strip() for row in rows_known)}
    cells = [with_worded(with_plain_values(row, known)) for row in rows_known]
    titled = [(title, row) for row in cells if (title := row.get("name", "").strip())]
    named_rows = {name: row for title, row in titled for name in columns_of(title, names)}
    named_rows = {name: _as_another(row, named_rows) for name, row in named_rows.items()}
    keys = [name for name, row in named_rows.items() if is_primary(row.get("type", ""))]
    marks = Marks.of((end for row in cells for end in _ends(row)), delimiter, form)
    if not marks.decimal and has_comma("\n".join(row.get("description", "") for row in cells)):
        marks = replace(marks, decimal=",")
    facts = {name: _facts(row, named_rows, marks) for name, row in named_rows.items()}
    facts = {name: replace(one, unique=one.unique or keys == [name]) for name, one in facts.items()}
    return {"": with_formulas({name: keyed(one) if one.kind == "text" else one for name, one in facts.items()})}


def _as_another(row: dict[str, str], rows: Mapping[str, dict[str, str]]) -> dict[str, str]:
    """Fill a row that says no bounds or values with those of the column that its description begins by naming."""
    match = AS.match(row.get("description", ""))
    other = rows.get(match["name"], {}) if match else {}
    said = {heading: cell for heading, cell in other.items() if heading in SAID and cell.strip()}
    if not said or any(row.get(heading, "").strip() for heading in SAID if heading != "type"):
        return row
    return row | said | {"unsure": row["description"]}


def _check_lengths(text: str, delimiter: str, headings: int) -> None:
    """Refuse a row with more cells than there are headings, by the line in which it begins and its first cell.

    Raises:
        Unsuitable: there is one.
    """
    reader, line = csv.reader(StringIO(text, newline=""), delimiter=delimiter), 1
    for row in reader:
        if any(row) and len(row) > headings:
            raise Unsuitable(
                f"line {line} of the data dictionary, which begins with `{shorten(row[0], LONGEST_HEADING)}`, has more "
                f"cells ({len(row)}) than headings ({headings}); put its text in quotes"
            )
        line = reader.line_num + 1


def _check_quotes(text: str, delimiter: str) -> None:
    """Refuse a quotation mark that swallows further rows; a quoted cell may have several lines, and ends at its mark.

    Raises:
        Unsuitable: there is one.
    """
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        first = reader.line_num + 1
        try:
            if next(reader, None) is None:
                return
        except csv.Error:
            if reader.line_num > first:
                message = f"the row of the data dictionary that begins in line {first} has a quotation mark"
                raise Unsuitable(f"{message} that is not closed, which swallows the rows below it; close it") from None


def _ends(row: dict[str, str]) -> Iterator[str]:
    """Yield the ends of the interval of a row, as they are written."""
    yield from (bare(row.get(end, "")) for end in ("min", "max"))
    for cell in (bare(row.get(heading, "")) for heading in ("range", "values")):
        match = RANGE.fullmatch(cell) or INTERVAL.fullmatch(cell) or SIGNS.fullmatch(cell)
        yield from filter(None, match.groups() if match else ())


def unread_headings(text: str, names: Collection[str] = ()) -> list[str]:
    """Name the headings of a data dictionary that say nothing to a draft; ``names`` are as for ``read_dictionary``.

    Raises:
        Unsuitable: none of the headings is one for the names of columns.
    """
    rows, meanings, _ = _rows(text, names)
    unread = (cell.strip() for cell, meaning in zip(rows[0], meanings, strict=True) if not meaning)
    return [heading for heading in unread if heading and not _is_known(heading)]


def _is_known(heading: str) -> bool:
    """Tell whether a heading hides nothing: it has no use, or is of several that are read, as `values / range`."""
    words = {*map(folded, re.split(r"[/,]|\s(?:or|oder|ou|o|of)\s", heading))}
    return folded(heading) in {*IGNORED, *SECOND} or (len(words) > 1 and words <= {*MEANT})


def has_headings(text: str) -> bool:
    """Tell whether a text begins with a line of headings, one of which is for names."""
    try:
        return bool(_rows(text, ()))
    except (Unsuitable, csv.Error):
        return False


def repeated_names(text: str, names: Collection[str] = ()) -> list[str]:
    """Name the columns that a data dictionary describes more than once; the last of their rows counts.

    Raises:
        Unsuitable: none of the headings is one for the names of columns.
    """
    rows, meanings, _ = _rows(text, names)
    counts = Counter(cells_of(rows[0], meanings, row).get("name", "").strip() for row in rows[1:])
    return [name for name, times in counts.items() if name and times > 1]


def _rows(text: str, names: Collection[str]) -> tuple[list[list[str]], list[str], str]:
    """Cut a dictionary at the delimiter by which a heading is for names; return what headings mean, and it.

    Without such a heading, cells that are columns of the data are names; in the first row, too, where it has no
    headings.
    """
    headings: list[str] = []
    for delimiter in ",;\t|":
        rows = [row for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter) if any(row)]
        meanings = [MEANT.get(folded(cell), "") for cell in rows[0]] if rows else []
        if "name" in meanings and len(meanings) > 1:
            return rows, [_meaning(heading, meanings) for heading in rows[0]], delimiter
        if len(meanings) > 1 and (place := place_of_names(rows[1:], names)) is not None and place < len(meanings):
            has_none = place_of_names([rows[0]], names) == place
            meanings = ["" if has_none else _meaning(heading, meanings) for heading in rows[0]]
            meanings[place] = "name"
            return [[""] * len(meanings)] * has_none + rows, meanings, delimiter
        headings = max(headings, rows[0] if rows else [], key=len)
    known = [cell for cell in headings if folded(cell) in MEANT]
    raise Unsuitable(NO_HEADINGS.format(_first_line(headings, known)))


def _first_line(headings: Sequence[str], known: Sequence[str]) -> str:
    """Say what a line without the headings has in their place: them, unless it is prose that commas cut."""
    if not any(headings):
        return "is empty"
    if not known and (len(headings) == 1 or any(" " in heading.strip() for heading in headings)):
        return "has none"
    return f"is {_quoted(headings)}, of which is known: {_quoted(known) or 'none'}"


def _quoted(headings: Sequence[str]) -> str:
    return ", ".join(f"`{shorten(heading, LONGEST_HEADING, placeholder='…')}`" for heading in headings[:MOST_HEADINGS])


def _meaning(heading: str, meanings: Collection[str]) -> str:
    """Return what a heading means beside others: nothing of a second word for what another says."""
    meaning = MEANT.get(folded(heading), "")
    return "" if folded(heading) in SECOND and Counter(meanings)[meaning] > 1 else meaning


def _facts(row: dict[str, str], names: Collection[str], marks: Marks) -> Facts:
    row = {heading: cell.strip() for heading, cell in row.items()}
    ends = {heading: with_plain_days(row[heading]) for heading in ("min", "max", "range") if heading in row}
    row |= {heading: marks.without_blanks(cell) for heading, cell in ends.items()}
    facts = [_derived(row, names), _typed(row.get("type", ""), row.get("values", ""))]
    kind = facts[1].kind
    marks = replace(marks, has_cents=_has_cents(row, facts[1]))
    facts += [_between(kind, marks, bare(row.get("min", "")) or None, bare(row.get("max", "")) or None)]
    facts += [_range(row["range"], kind, marks)] if row.get("range") else []
    facts += [_values(row["values"], kind, marks)] if row.get("values") else []
    facts += _answers(row)
    facts += [_decimals(word) for heading in ("decimals", "scale") if (word := row.get(heading, "").lower())]
    word = row.get("resolution", "").lower()
    if word or OF_A_DAY.match(row.get("description", "")):
        word = word or "day"
        facts += [Facts(resolution=word) if word in RESOLUTIONS else Facts(unread=(f"resolution {word}",))]
    unread = tuple(filter(None, row.get(UNREAD, "").split("\n")))
    facts += [Facts(description=row.get("description", ""), unsure=row.get("unsure", ""), unread=unread)]
    return _with_clock(with_key(with_phrases(joined(facts))), row)


def _with_clock(facts: Facts, row: dict[str, str]) -> Facts:
    """Offer times of day where a row says no other type, bounds or values."""
    if facts.kind or facts.low or facts.high or facts.values is not None or facts.derived:
        return facts
    keys = clock_in("; ".join(row.get(heading, "") for heading in ("type", "range", "values", "description")))
    unread = tuple(words for words in facts.unread if not re.match(CLOCK_READ, words))
    return replace(facts, offered=keys, unread=unread) if keys else facts


def _has_cents(row: dict[str, str], typed: Facts) -> bool:
    """Tell whether the numbers of a row are money, whole, or of one or two decimals, by its type, signs or decimals."""
    decimals = [
        typed.decimals,
        *(_decimals(row[key].lower()).decimals for key in ("decimals", "scale") if row.get(key)),
    ]
    in_signs = any(bare(row.get(heading, "")) != row.get(heading, "") for heading in ("min", "max", "range", "values"))
    return typed.money or typed.kind == "integer" or in_signs or any(one is not None and one <= 2 for one in decimals)


def _typed(words: str, values: str) -> Facts:
    """Read a type; of answers that the data is not read for, such as ja/nein, take the words for values."""
    answers = re.split(r"\s*[/|,_-]\s*|\s+", words)
    if values or len(answers) != 2 or kind_of(words) != "boolean" or are_answers(answers):
        return typed(words)
    return Facts(kind="category", values=tuple(answers))


def _answers(row: dict[str, str]) -> Iterator[Facts]:
    """Read what is answered by yes or no: may values be missing, are many zero, is each in one row alone?"""
    for heading in ("nullable", "required", "zero_inflated", "unique"):
        if word := row.get(heading, "").lower():
            says_yes = word in YES | YES_ABROAD
            if not says_yes and word not in NO | NO_ABROAD:
                yield Facts(unread=(f"{heading} {word}",))
            elif heading == "zero_inflated":
                yield Facts(zeros=says_yes)
            elif heading == "unique":
                yield Facts(unique=says_yes)
            else:
                yield Facts(nullable=(heading == "nullable") == says_yes)


def _decimals(word: str) -> Facts:
    """Read a number of decimals, a step such as 0.01, or a scale, which databases mean decimals by."""
    if word.isdecimal():
        return Facts(decimals=int(word))
    if word in SCALES:
        return Facts(scale=SCALES[word])
    step = stepping(bound(word))
    return step if step.decimals else Facts(unread=(f"decimals or scale {word}",))


def _derived(row: dict[str, str], names: Collection[str]) -> Facts:
    """Read what a column follows from: a formula of other columns, or the column whose values it has names for."""
    formula, of = row.get("formula", ""), row.get("of", "")
    if of in names:
        pairs = [LABELED.fullmatch(token) for token in cut(row.pop("values", ""))]
        labels = {pair[1].strip(): pair[2].strip() for pair in pairs if pair}
        whole = bool(labels) and None not in pairs
        return Facts(derived={"of": of, "values": labels}) if whole else Facts(unread=(f"the names of {of}",))
    formula = _plain_formula(formula)
    try:
        complete = bool(formula) and set(names_in(formula)) <= set(names)
    except Misread:
        complete = False
    return Facts(derived={"formula": formula}) if complete else Facts(unread=("formula",) if formula else ())


def _plain_formula(formula: str) -> str:
    """Write a formula as a schema has it, of one that a spreadsheet has: ``=MAX(0; a - 0,5)``."""
    if ";" in formula:  # which parts operands where a comma stands before decimals
        formula = re.sub(r"(?<=\d),(?=\d)", ".", formula).replace(";", ",")
    return EXCEL.sub(lambda name: name[0].lower(), formula.removeprefix("=").strip())


def _range(cell: str, kind: str | None, marks: Marks) -> Facts:
    """Read a range: two numbers or days with a word or a mark between them, an interval, or comparisons."""
    cell = bare(cell)
    if match := RANGE.fullmatch(cell):
        return _between(kind, marks, match[1], match[2])
    if match := INTERVAL.fullmatch(cell):
        low, high = match[2] or match[4], match[3] or match[5]
        return _between(kind, marks, low, high, match[1] != "[", match[6] != "]")
    return _compared(cell, kind, marks)


def _compared(cell: str, kind: str | None, marks: Marks) -> Facts:
    """Read one comparison, or one for each end, such as ``>= 0`` and ``> 0 and <= 100``, or one bound in words."""
    if limit := limit_in(cell, is_headed=True):
        least, most = (limit[1] if limit[0] == end else None for end in ("min", "max"))
        return _between(kind, marks, least, most)
    match = SIGNS.fullmatch(cell)
    signs = [(sign, end) for sign, end in (match.groups()[:2], match.groups()[2:]) if sign] if match else []
    sides = {("high" if set(sign) & set("<≤") else "low"): (end, sign in "<>") for sign, end in signs}
    if not signs or len(sides) < len(signs):
        return Facts(unread=(f"range {cell}",))
    low, high = (sides.get(side, (None, False)) for side in ("low", "high"))
    return _between(kind, marks, low[0], high[0], low[1], high[1])


def _between(
    kind: str | None, marks: Marks, low: str | None, high: str | None, low_open: bool = False, high_open: bool = False
) -> Facts:
    """Read two bounds, of which one such as 60.000 may be two numbers; of decimals few people write a last zero."""
    doubtful = [end for end in (low, high) if end and marks.is_doubtful(end, kind)]
    least, most = (marks.plain(end, kind) if end and end not in doubtful else None for end in (low, high))
    facts = between(least, most, low_open=low_open, high_open=high_open)
    unread = map(two_numbers, doubtful)
    is_open = kind is None or (kind == "number" and not marks.has_cents)
    in_cents = is_open and all(end and CENTS.fullmatch(end) for end in (low, high))
    is_plain = not in_cents or not any(end.endswith("0") for end in (low, high) if end)
    return replace(facts, decimals=None if is_plain else 2, unread=(*unread, *facts.unread))


def _values(cell: str, kind: str | None, marks: Marks) -> Facts:
    """Read a list of values, with or without their labels, or a range."""
    plain = bare(with_plain_days(ASIDE.sub("", cell)))
    if RANGE.fullmatch(plain) or SIGNS.fullmatch(plain) or limit_in(plain, is_headed=True):
        return _range(plain, kind, marks)
    unread = Facts(unread=(f"values {shorten(cell, LONGEST_CELL, placeholder='…')}",))
    if cell.startswith("["):
        try:
            return listed(json.loads(cell))
        except (json.JSONDecodeError, RecursionError):
            cell = cell.strip("[]")
    tokens, is_nullable = listed_in(cell, kind)
    if (
        not tokens
        or are_pieces(cell, tokens)
        or any(len(token.split()) > MOST_WORDS or token.strip(".") in ("", "…", "etc") for token in tokens)
    ):
        return unread
    codes = [LABELED.fullmatch(token) for token in tokens]
    bare_codes = [code[1].strip() for code in codes if code]
    values = bare_codes if len(bare_codes) == len(tokens) else tokens
    if kind in ("integer", "number"):
        values = [bare(value) for value in values]
        if any((re.search(r"\d", one) and bound(one) is None) or marks.is_doubtful(one, kind) for one in values):
            return unread  # such as `up to 80000`: words around numbers list nothing
        values = [str(bound(marks.plain(one, kind))) if "," in one or marks.form else one for one in values]
    facts = listed([False, True] if kind == "boolean" and are_answers(values) else scalars(values, kind))
    return replace(facts, nullable=True) if is_nullable else facts
