"""Sums and products that a description says without signs: `base pay, overtime pay and bonus`, `hours at the rate`.

What is read is a whole clause of which every part names one column of numbers; all of it is offered to be confirmed.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dpmodels.authoring.facts import Columns, Facts
from dpmodels.authoring.headings import folded
from dpmodels.authoring.suggest import A_UNIT_OF, suggestion
from dpmodels.authoring.type_words import names_money

CLAUSE = re.compile(r"[;\n(]|[.!](?:\s|$)|\s[–—]\s")
LED = re.compile(
    r"(?:(?:the )?(?:sum|total) of|summe (?:aus|von)|(?:la )?somme de|(?:la )?suma de|total|summe|somme|suma)\s*:?\s+",
    re.IGNORECASE,
)
LAST = re.compile(r"\s*,?\s+(?:and|plus|und|et|y)\s+", re.IGNORECASE)
BETWEEN = re.compile(rf"{LAST.pattern}|\s*,\s+", re.IGNORECASE)
TO_A_CENT = re.compile(r"(?:rounded )?(?:in|to) (?:(?:the|full|whole) )?(?:cents?|penn(?:y|ies)|pence)", re.IGNORECASE)
IN_MONEY = re.compile(
    r"(?:in\s+)?(?:EUR|euros?|USD|dollars?|GBP|CHF|[€$£])(?:\s+(?:net|netto|gross|brutto))?", re.IGNORECASE
)
IN_CENTS = re.compile(r"\bin (?:cents?|ct|pence)\b", re.IGNORECASE)
ARTICLE = re.compile(
    r"(?:the|their|his|her|its|an?|der|die|das|dem|den|les?|la|los|las|el|de|du|des)\s+", re.IGNORECASE
)
AT, MULTIPLIED = re.compile(r"\s+(?:at|zum|au|à)\s+"), re.compile(r"\s+(?:times|multiplied by|mal|fois|por)\s+")
SPAN = (
    r"(?:years?|months?|weeks?|days?|hours?|jahre?|monate?|wochen?|tage?|stunden?|ans?|mois|semaines?|jours?|heures?)"
)
COUNT = re.compile(rf"(?P<number>\d+(?:\.\d+)?)\s+(?:{SPAN}\s+(?:of|von|de|à)\s+)?(?P<rest>.+)", re.IGNORECASE)
FACTORS = {"half": 0.5, "twice": 2, "double": 2, "three times": 3, "one and a half times": 1.5, "time and a half": 1.5}
TIMES = re.compile(
    rf"(?:(?P<word>{'|'.join(FACTORS)})|(?P<number>\d+(?:\.\d+)?)\s+times)\s+(?:of\s+)?(?P<rest>.+)", re.IGNORECASE
)
POUNDS = re.compile(r"\b(?:pounds?|pence)\b", re.IGNORECASE)
KINDS = (None, "integer", "number")
SEVERAL = 2  # columns of a sum or a product


@dataclass(frozen=True)
class Spoken:
    """A formula that words say, and whether what it gives is paid, and so has cents."""

    formula: str
    is_money: bool


def spoken_in(column: str, columns: Columns, with_formulas: Collection[str]) -> Spoken | None:
    """Return the formula of other columns that a description says in words alone; None where it says none.

    Args:
        column: which is described.
        columns: of the table, with what is documented of each.
        with_formulas: the columns of which a formula was read, which so are numbers.
    """
    if columns[column].kind not in KINDS or columns[column].values is not None:
        return None
    names = _names(column, columns, with_formulas)
    clause = CLAUSE.split(columns[column].description)[0].strip()
    parts = [one.strip() for one in clause.split(", ")]
    while len(parts) > 1 and (TO_A_CENT.fullmatch(parts[-1]) or IN_MONEY.fullmatch(parts[-1])):
        parts.pop()
    words = ", ".join(parts)
    formula = _sum(words, names) or _product(words, names)
    if not formula:
        formula = _product(words, heads := _described(column, columns, with_formulas))
        names = names | heads
        small = {one for one in heads.values() if one in formula and IN_CENTS.search(columns[one].description)}
        formula += " / 100" if len(small) == 1 and not IN_CENTS.search(columns[column].description) else ""
    used = [names[one] for one in names if re.search(rf"\b{re.escape(names[one])}\b", formula)]
    return Spoken(formula, any(is_paid(columns[one]) for one in used)) if formula else None


def _names(column: str, columns: Columns, with_formulas: Collection[str]) -> dict[str, str]:
    """Return the other columns of numbers by their names as words; none of two that are called alike."""
    names: dict[str, list[str]] = {}
    for name in filter(str.isidentifier, columns):
        names.setdefault(folded(name), []).append(name)
    return {
        words: several[0]
        for words, several in names.items()
        if len(several) == 1
        and several[0] != column
        and (several[0] in with_formulas or _is_of_numbers(several[0], columns[several[0]]))
    }


def _described(column: str, columns: Columns, with_formulas: Collection[str]) -> dict[str, str]:
    """Return the other columns of numbers by all words with which the description of one alone begins."""
    beginnings: dict[str, list[str]] = {}
    for name in _names(column, columns, with_formulas).values():
        words = re.split(r"[;,(]", columns[name].description)[0].split()
        for count in range(1, len(words) + 1):
            beginnings.setdefault(folded(" ".join(words[:count])), []).append(name)
    return {words: several[0] for words, several in beginnings.items() if len(several) == 1}


def _is_of_numbers(name: str, facts: Facts) -> bool:
    """Tell whether something says that a column holds numbers: its type, bounds, values, unit or name."""
    if facts.kind not in KINDS or facts.keys is not None:
        return False
    ends = [end.value for end in (facts.low, facts.high) if end]
    values = [*(facts.values or ()), *ends]
    if values:
        return all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    suggested = suggestion(name, {"type": "TODO"})
    by_name = suggested.keys.get("type") if suggested else None
    is_measured = is_paid(facts) or A_UNIT_OF.search(facts.description) is not None
    return facts.kind is not None or is_measured or by_name in ("integer", "number")


def is_paid(facts: Facts) -> bool:
    """Tell whether a description says that a column holds money."""
    return facts.money or names_money(facts.description) or POUNDS.search(facts.description) is not None


def _sum(words: str, names: Mapping[str, str]) -> str:
    """Read columns that commas and a last `and` part."""
    words = LED.sub("", words, count=1) if LED.match(words) else words
    if not LAST.search(words):
        return ""
    columns = [_column(part, names) for part in BETWEEN.split(words)]
    is_read = len(columns) >= SEVERAL and all(columns) and len({*columns}) == len(columns)
    return " + ".join(columns) if is_read else ""


def _product(words: str, names: Mapping[str, str]) -> str:
    """Read an amount at a rate, each perhaps so many times: `52 weeks of weekly hours at the hourly rate`."""
    sides = AT.split(words) if AT.search(words) else MULTIPLIED.split(words)
    factors, columns = list[str](), list[str]()
    for side in sides:
        match = TIMES.fullmatch(side) or COUNT.fullmatch(side)
        word = match.groupdict().get("word") if match else None
        factors += [f"{FACTORS[word.casefold()]:g}" if word else match["number"]] if match else []
        columns.append(_column(match["rest"] if match else side, names))
    is_read = len(columns) == SEVERAL and all(columns) and columns[0] != columns[1]
    return " * ".join([*factors, *columns]) if is_read else ""


def _column(words: str, names: Mapping[str, str]) -> str:
    """Return the column that words name, perhaps behind an article."""
    plain = words.strip(" .")
    return names.get(folded(plain)) or names.get(folded(ARTICLE.sub("", plain, count=1))) or ""
