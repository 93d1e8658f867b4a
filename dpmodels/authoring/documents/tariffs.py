"""Prices by the piece that a description says: `25 for each bag, 0 in business class (J)`, as a formula."""

import re
from collections.abc import Mapping

from dpmodels.authoring.documents.spans import NIGHTS
from dpmodels.authoring.documents.states import EMPTY_WORDS, State, States
from dpmodels.authoring.facts import Columns, Facts
from dpmodels.authoring.headings import folded
from dpmodels.contract.derivation.tariff import written_table

SENTENCE = re.compile(r"[;\n]|[.!](?:\s|$)|\s[–—]\s")
PRICE = r"(?P<price>\d+(?:[.,]\d{1,2})?)\s*(?:[€$£]|euros?|eur|cents?|dollars?|francs?|chf)?"
EACH = re.compile(
    rf"(?:[^\W\d]+:\s+)?{PRICE}\s+"
    r"(?:for (?:each|every)|per|an?|each|je|pro|für jede[nrs]?|pour chaque|par|por cada|por)\s+(?P<piece>\w+)"
    r"(?:\s+(?:and|und|et|y)\s+(?P<second>\w+))?"
    r"(?:\s+(?:with|if|when|mit|bei|wenn|avec|si|con)\s+(?P<state>.+))?",
    re.IGNORECASE,
)
BUT = re.compile(
    rf"(?:and |but |und |aber |et |mais |y |pero )?{PRICE}\s+(?:if|when|in|for|with|bei|wenn|im|für|si|pour|en|con)\s+"
    r"(?P<state>.+)",
    re.IGNORECASE,
)
FREE = re.compile(
    r"(?:and |und |et )?(?:the |die |les )?(?:first|ersten|(?=\d+ premi))\s*(?P<free>\d+)(?: premi\w+)?(?:\s\w+){0,2}\s"
    r"(?:free|included|frei|gratis|gratuit\w*)",
    re.IGNORECASE,
)
"""So many pieces that cost nothing, as in `0.15 a minute, the first 30 free`."""
ELSE = re.compile(rf"(?:else|otherwise|sonst|sinon|si no)\s*:?\s+{PRICE}", re.IGNORECASE)
BY_VALUE = (
    re.compile(r"(?:^|[,;:(]\s*)([^\W\d](?:[\w -]*[^\W_])?)\s*[:=]?\s+(\d+(?:[.,]\d+)?)(?=\s*(?:[,;.)]|$))"),
    re.compile(rf"(?:^|[,;:(]\s*){PRICE}\s+(?:for|für|bei|pour|para)\s+([^\W\d](?:[\w -]*[^\W_])?)(?=\s*(?:[,;.)]|$))"),
)
"""A category with its number, in either order: `basic 0.342, green 0.368` and `80 for public, 70 for private`."""
BY_VALUES = re.compile(
    rf"{PRICE}\s+(?:%\s*)?(?:for|in|für|bei|im|in der|pour|en|para)\s+(?P<words>[^\W\d][^\d.;,()]*)", re.IGNORECASE
)
OR_ELSE = re.compile(rf"{PRICE}\s+(?:otherwise|else|for (?:all )?others|sonst|sinon|si no)", re.IGNORECASE)
AND, CLAUSE = re.compile(r"\s+(?:and|or|und|oder|et|ou|y|o)\s+"), re.compile(r"[;,()\n]\s*|\s*:\s+|[.!](?:\s|$)")
PLURAL, SEVERAL = ("", "s", "es", "e", "n", "en"), 2
COMMA = re.compile(r",\s+(?![^()]*\))")


def states_of(columns: Columns) -> States:
    """Return the words for the values of columns, by what is documented of them."""
    return States(
        {name: _keys(one) for name, one in columns.items()}, {n: one.description for n, one in columns.items()}
    )


def tariff_in(column: str, columns: Columns, states: States, nights: str = "") -> str:
    """Return the formula of a price by the piece, perhaps another one by the value of a category; empty without one.

    A price that is paid in some rows is read where words say what is paid else.
    """
    for sentence in SENTENCE.split(columns[column].description):
        first, *others = (part.strip() for part in COMMA.split(sentence))
        match = EACH.fullmatch(first)
        words = [match[part] for part in ("piece", "second") if match[part]] if match else []
        pieces = [_counted(word, column, columns) or (nights if NIGHTS.fullmatch(word) else "") for word in words]
        if match is None or not all(pieces) or len({*pieces}) < len(pieces):
            continue
        free = [one["free"] for part in others if (one := FREE.fullmatch(part))]
        rest = [part for part in others if not FREE.fullmatch(part)]
        table = _prices(match, rest, column, columns, states) if len(free) <= (len(pieces) == 1) else ""
        if table:
            charged = [f"max({pieces[0]} - {free[0]}, 0)"] if free else pieces
            return f"{' * '.join(charged)} * {table}"
    return _number_by_value(column, columns)


def _number_by_value(column: str, columns: Columns) -> str:
    """Return the table of numbers that a description gives for each value of one other column; empty without one."""
    words = columns[column].description
    by_word = dict(BY_VALUE[0].findall(words)) or {word: number for number, word in BY_VALUE[1].findall(words)}
    stated = {folded(word): _number(number) for word, number in by_word.items()}
    for name, one in columns.items():
        values = [str(value) for value in one.values or ()]
        if name != column and len(values) > 1 and name.isidentifier() and {*map(folded, values)} == {*stated}:
            return written_table(name, {value: stated[folded(value)] for value in values})
    return _number_by_values(column, columns)


def _number_by_values(column: str, columns: Columns) -> str:
    """Return the table of numbers that a description gives for values in the plural, or for all others; empty without.

    `1.50 for single trips, 0 for subscribers and day passes`, and `70 for a consultation, 60 otherwise`.
    """
    stated, other = dict[str, str](), ""
    for clause in CLAUSE.split(columns[column].description):
        if match := ELSE.fullmatch(clause.strip()) or OR_ELSE.fullmatch(clause.strip()):
            other = match["price"]
        elif match := BY_VALUES.fullmatch(clause.strip()):
            stated |= {_bare(one): match["price"] for one in AND.split(match["words"])}
    for name, one in columns.items():
        values = [str(value) for value in one.values or ()]
        if name == column or len(values) < SEVERAL or not name.isidentifier() or len(stated) < 1 + (not other):
            continue
        named = {value: [word for word in stated if _is_called(word, value)] for value in values}
        words = [word for several in named.values() for word in several]
        if sorted(words) == sorted(stated) and (other or all(named.values())):
            return written_table(name, {v: _number(stated[w[0]] if w else other) for v, w in named.items()})
    return ""


def _bare(words: str) -> str:
    """Leave out of words those before the first that say nothing, such as an article."""
    rest = words.strip().casefold().split()
    while len(rest) > 1 and rest[0] in EMPTY_WORDS:
        rest.pop(0)
    return " ".join(rest)


def _is_called(words: str, value: str) -> bool:
    """Tell whether words are a value, perhaps in the plural or with a noun behind it."""
    plain = value.casefold()
    first, _, noun = words.removeprefix(plain).partition(" ")
    return words.startswith(plain) and first in PLURAL and " " not in noun


def _prices(first: re.Match[str], others: list[str], column: str, columns: Columns, states: States) -> str:
    """Write the price of a piece, by the value of the category that tells it; empty where a part is not understood."""
    if first["state"]:
        state, rest = states.named(first["state"], column), [ELSE.fullmatch(part) for part in others]
        is_read = state is not None and len(rest) == 1 and rest[0] is not None
        return _table(rest[0]["price"], [(first["price"], state)], columns) if is_read and rest[0] and state else ""
    prices = [(but["price"], states.named(but["state"], column)) for part in others if (but := BUT.fullmatch(part))]
    table = _table(first["price"], [(price, one) for price, one in prices if one], columns)
    return table if len(prices) == len(others) else ""


def _keys(facts: Facts) -> Mapping[str, object]:
    if facts.kind == "boolean":
        return {"type": "boolean"}
    return {"type": "categorical", "values": facts.values} if facts.values is not None else {"type": facts.kind}


def _counted(word: str, column: str, columns: Columns) -> str:
    """Return the one column of whole numbers that is called as a piece, in the plural or with words beside it."""
    forms = {folded(word) + ending for ending in ("", "s", "e", "n", "en", "es")}
    counted = [name for name, one in columns.items() if name != column and _is_count(one)]
    same = [name for name in counted if folded(name) in forms]
    parts = [name for name in counted if forms & {*folded(name).split("_")}]
    matching = same or parts
    return matching[0] if len(matching) == 1 and matching[0].isidentifier() else ""


def _is_count(facts: Facts) -> bool:
    if facts.kind in ("integer", "number"):
        return True
    ends = [end.value for end in (facts.low, facts.high) if end]
    return facts.kind is None and (len(ends) == 2 or _are_numbers(facts)) and all(isinstance(e, int) for e in ends)


def _are_numbers(facts: Facts) -> bool:
    return facts.values is not None and all(isinstance(one, int) and not isinstance(one, bool) for one in facts.values)


def _table(price: str, others: list[tuple[str, State]], columns: Columns) -> str:
    """Write one price, or that of each value of the one column by which others are told."""
    if not others:
        return f"{_number(price):g}"
    names = {one.column for _, one in others}
    column = columns[next(iter(names))]
    values = [True, False] if column.kind == "boolean" else list(column.values or ())
    if len(names) > 1 or not all(one.is_held for _, one in others) or not next(iter(names)).isidentifier():
        return ""
    by = {one.value: other for other, one in others}
    prices = {_written(value): _number(by.get(value, price)) for value in values}
    return written_table(others[0][1].column, prices)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(text: str) -> float:
    number = float(text.replace(",", "."))
    return int(number) if number.is_integer() else number
