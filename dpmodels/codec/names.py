"""The names of columns: which of a schema's a table lacks, and what a name looks like, since no value is shown."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from dpmodels.plural import counted

NAME = re.compile(r"[^\W\d][\w .()%#-]{0,63}")
FOUR_DIGITS = re.compile(r"\d{4}")
EMPTY_VALUES = {"true", "false", "null", "none", "na", "nan"}
RULE = "begin with a letter, have at most 64 letters, digits, spaces or _.()%#-, and no four digits in a row"
OTHER_LETTERS = "in other letters: upper or lower case, or spaces around it; write it as the schema does, there or here"
MOST_NAMED = 20
NO_COLUMN = "no column of this schema is in {} (is it the schema of another table?)"
NEAR = "; the data has a column whose name differs from {} in {}"
ONE_NEAR = ", which has a column whose name differs from it in {}"
RENAMED = ", number {} in their order, which may be {} by another name"
ONE_NAME = (
    "the first line was read as one name, and the schema has {} columns: its delimiter may be another than a comma, "
    "semicolon, tab or other single sign of ASCII, or it holds no names, as in a file that is no CSV"
)
DOUBLED = "every second name of the first line is empty: its delimiter has two characters; write the file with one"
FEWEST_BESIDE = 2
"""Names that are those of a schema, beside which another one is a name too."""
LETTERS_OF_A_SLIP = 3
"""Of a name that has at least so many letters one may be a slip of the pen, and of one of twice as many two."""
MOST_COMPARED = 200


def missing_from(declared: Iterable[str], names: Sequence[str], table: str = "the data") -> tuple[str, str] | None:
    """Return the first column of a schema that a table lacks, and what to say of it and of the others; None if none is.

    A column that is there in other letters is told from one that is not there. Where no column at all is there, none is
    returned by name.

    Privacy: names of the schema alone are said, which are public; and of a name of the data that looks like one at most
        how many letters of a name of the schema are others in it.
    """
    expected = list(declared)
    missing, folded = [name for name in expected if name not in names], set(map(_folded, names))
    alike = [name for name in missing if _folded(name) in folded]
    absent = [name for name in missing if name not in alike]
    slips = dict(_slips(absent, [name for name in names if name not in expected]))
    if 1 < len(expected) == len(absent) and not slips:
        return "", NO_COLUMN.format(table)
    if absent:
        rule = f"is in the schema but not in {table}" + _and_so(absent[1:])
        if [*slips] == absent[:1] == absent and not alike:
            return absent[0], rule + ONE_NEAR.format(counted(slips[absent[0]], "letter"))
        there = "is" if len(alike) == 1 else "are"
        rule += f"; {_listed(alike)} {there} there {OTHER_LETTERS}" if alike else ""
        return absent[0], rule + "".join(NEAR.format(name, counted(off, "letter")) for name, off in slips.items())
    return (alike[0], f"is in {table} {OTHER_LETTERS}{_and_so(alike[1:])}") if alike else None


def first_line_fault(names: Sequence[str], declared: Collection[str]) -> str:
    """Say that the delimiter of a text file is likely another than it was read with; empty where it is not.

    Privacy: how the first line was parted, and nothing of what stands in it.
    """
    if len(names) == 1 < len(declared) and names[0] not in declared:
        return ONE_NAME.format(len(declared))
    return DOUBLED if len(names) > 2 and not any(names[1::2]) and all(names[::2]) else ""


def in_place_of(declared: Collection[str], known: Collection[str], names: Sequence[str]) -> str:
    """Say where the one name that a schema lacks stands, if the table lacks one name too: the column may be that one.

    Privacy: the position of a name among those of the schema, and nothing of the name.
    """
    missing = [name for name in declared if name not in names]
    unknown = [at for at, name in enumerate(names, start=1) if name not in known]
    if len(missing) != 1 or len(unknown) != 1 or len(names) <= FEWEST_BESIDE:
        return ""
    is_slip = next(_slips(missing, [names[unknown[0] - 1]]), None) is not None
    return "" if is_slip else RENAMED.format(unknown[0], missing[0])


def count_unknown(declared: Collection[str], names: Sequence[str]) -> int:
    """Count the columns of a table that a schema lacks, but for those that it has in other letters."""
    missing = {_folded(name) for name in declared if name not in names}
    return sum(name not in declared and _folded(name) not in missing for name in names)


def _folded(name: str) -> str:
    return name.casefold().strip()


def _and_so(names: Sequence[str]) -> str:
    return f", and so {'is' if len(names) == 1 else 'are'} {_listed(names)}" if names else ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def looks_like_a_name(text: str) -> bool:
    """Tell by ``RULE`` whether what stands where a name should be may be one."""
    match = NAME.fullmatch(text) and not FOUR_DIGITS.search(text) and text == text.strip()
    return bool(match) and text.lower() not in EMPTY_VALUES


def nearest(name: str, candidates: Iterable[str]) -> tuple[int, str] | None:
    """Return the candidate that a slip of the pen makes of a name, and how many letters it changed; None of none."""
    least = min(2, len(name) // LETTERS_OF_A_SLIP)
    near = [
        (off, other)
        for other in candidates
        if abs(len(other) - len(name)) <= least and 0 < (off := letters_apart(name, other)) <= least
    ]
    return min(near, default=None)


def letters_apart(one: str, other: str) -> int:
    """Count the letters to add, leave out or change that make one name of another, whatever the case of letters."""
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one.casefold(), start=1):
        last, row[0] = row[0], at
        for place, second in enumerate(other.casefold(), start=1):
            last, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, last + (letter != second))
    return row[-1]


def _slips(absent: Sequence[str], unknown: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield the columns that a table may have by a name that a slip of the pen changed, and how many letters it did."""
    candidates = [name for name in unknown[:MOST_COMPARED] if looks_like_a_name(name)]
    for name in absent[:MOST_NAMED]:
        if near := nearest(name, candidates):
            yield name, near[0]
