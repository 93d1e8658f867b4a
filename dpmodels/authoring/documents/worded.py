"""What a description says in words of a column's type, bounds or values, as the cells that headings would have.

A code book in a list or in prose has no headings: `Punkte, 0 bis 100` stands for a range, `one of: a, b, c` for values.
What is read is a whole phrase, such as stands between commas; where it may be meant otherwise, as `f, m, d` may, or
where words beside it narrow it, the cells are unsure, so that a draft has a person confirm them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from dpmodels.authoring.documents.forms import date_format_in, moment_format_in
from dpmodels.authoring.documents.intervals import INTERVAL, RANGE, SIGNS, are_pieces, bare
from dpmodels.authoring.documents.one_sided import limit_in
from dpmodels.authoring.documents.phrases import EMPTY_IF, END, NARROWING, NEVER_EMPTY, QUALIFYING, SEPARATE
from dpmodels.authoring.documents.phrases import says as says_phrase
from dpmodels.authoring.documents.rows_of_cells import OF_CELLS
from dpmodels.authoring.documents.states import ANSWER_OF, EMPTY_WORDS
from dpmodels.authoring.documents.worded_days import with_plain_days
from dpmodels.authoring.type_words import kind_of

HEADED = ("min", "max", "range", "values", "formula", "of")
"""Headings beside which nothing is read of free words, for they say it."""
ONE_OF = r"one of|any of|either|eine?[rsm]? (?:von|aus|der)|entweder|(?:l')?une? de|soit|una? de|een van|één van"
LISTS = (
    "values?|allowed values?|possible values?|categories|levels|codes|(?:zulässige |mögliche |erlaubte )?werte?|"
    "ausprägung(?:en)?|kategorien|valeurs?(?: possibles?| autorisées)?|modalités|catégories|valores?(?: posibles)?|"
    "(?:toegestane |mogelijke )?waarden|categorieën"
)
LED = re.compile(
    rf"(?:^|[\s,;(.])(?:(?:{ONE_OF})(?P<colon>\s*[:;])?|(?:{LISTS})(?:\s+(?:are|sind|sont|zijn))?\s*(?P<mark>:))\s+(?P<list>.+)",
    re.IGNORECASE,
)
"""Words before a list; those that are no verb have a colon behind them."""
STOP = re.compile(r"[()\[\]\n]|[.!](?:\s|$)")
LAST_OF_LIST = re.compile(r"\s*,?\s+(?:or|oder|ou|o|(?<=\d\s)of(?=\s\d))\s+", re.IGNORECASE)
PLAIN_TYPES = (
    "integer|int|integers|whole numbers?|bigint|smallint|float|double|decimal number|numeric|string|varchar|boolean|"
    "bool|categorical|enum|datetime|timestamp|free text|ganzzahl|ganzzahlen|ganze zahl|ganze zahlen|ganzzahlig|"
    "dezimalzahl|kommazahl|gleitkommazahl|kategorial|wahrheitswert|boolesch|zeichenkette|freitext|zeitstempel|entiers?|"
    "nombre entier|nombre décimal|booléen|texte libre|horodatage|entero|número entero|booleano|texto libre|"
    "geheel getal|decimaal getal|vrije tekst|tijdstip"
)
FIRST_TYPES = (
    "number|numbers|decimal|text|date|day|category|identifier|id|zahl|datum|text|kennung|nombre|texte|jour|fecha|"
    "getal|tekst|dag"
)
"""Words that stand for a type where a description begins with them, and are words like others elsewhere."""
TYPED = re.compile(rf"({PLAIN_TYPES}|{FIRST_TYPES})(?:\s*:?\s+(.+))?", re.IGNORECASE)
ANSWER = "yes|no|true|false|ja|nein|nee|oui|non|s[ií]|[yntfjo01]"
ANSWERS = re.compile(rf"({ANSWER})\s*(?:/|\||,|\bor\b|\boder\b|\bof\b|\bou\b|\bo\b)\s*({ANSWER})", re.IGNORECASE)
CHOICE = re.compile(
    rf"[\"'`]?({ANSWER})[\"'`]?\s*(?:if|when|wenn|falls|als|indien|si|cuando|=)\s[^.;()]+?[,;]\s*(?:and |und |et |y )?"
    rf"(?:(?:else|otherwise|sonst|anders|sinon|si no),?:?\s+[\"'`]?({ANSWER})[\"'`]?|"
    rf"[\"'`]?({ANSWER})[\"'`]?\s+(?:otherwise|else|if not|sonst|anders|sinon|si no))\s*(?:[.;(].*)?",
    re.IGNORECASE,
)
"""Two answers of which the first is said to hold in some rows, as in `Y if they left, else N`."""
UNITS = (
    "points?|years?|months?|weeks?|days?|hours?|minutes?|seconds?|percent|degrees?|punkte?n?|jahre?n?|monate?n?|wochen?|"
    "tage?n?|stunden?|minuten?|sekunden?|prozent|grad|ans?|années?|mois|semaines?|jours?|heures?|secondes?|degrés?|"
    "años?|meses|mes|días?|horas?|minutos?|segundos?|puntos?|jaar|jaren|maand(?:en)?|weken|dagen|uur|uren|minuten|seconden|graden|procent|%|‰|°c?|k?m|cm|mm|k?g|mg|µg|k?wh?|mwh|ml|l|h|min|s|"
    "cents?|m²|m³|km/h|kwh|mmhg|bpm|pts?"
)
A_UNIT, A_TYPE = re.compile(UNITS, re.IGNORECASE), re.compile(rf"{PLAIN_TYPES}|{FIRST_TYPES}", re.IGNORECASE)
MEASURED = re.compile(rf"(.*\d)\s*(?:in\s+)?({UNITS})\.?", re.IGNORECASE)
NAMED = re.compile(r"(.*\d)\s+([^\W\d]+(?:\s[^\W\d]+)?)")
DECIMALS, DASH = re.compile(r"(?<=\d),(?=\d)"), re.compile(r"(?<=\d)\s[-–—]\s(?=[-+]?\d)")
OF_RANGE = re.compile(
    r"(?:(?:valid |allowed )?range|(?:werte)?bereich|plage|intervalle?|rango|bereik|waarden|values?|"
    r"werte|valeurs)(?: of)?:?\s+",
    re.IGNORECASE,
)
FEW_WORDS = re.compile(r"(?:[^\W\d]+\s+){1,3}(\d.*)")
BEHIND = re.compile(
    r"(.+?\S)\s+((?:between|from|zwischen|vo[nm]|van(?:af)?|tussen|entre|d[eu]|del|desde)\s+.+)", re.IGNORECASE
)
LABEL = re.compile(r"\s*([^\s=,;|:]+(?: [^\s=,;|:]+){0,2})\s*=\s*[^=|;]+")
HEDGED = re.compile(
    r"\b(usual|typical|typically|mostly|often|about|approximately|approx|circa|ca|roughly|normally|expected|average|mean|"
    r"example|e\.g|such as|üblich\w*|typisch\w*|etwa|ungefähr|rund|normal\w*|z\.\s?b|beispiel\w*|mittel|environ|"
    r"généralement|normalement|exemple|aproximadamente|normalmente|ejemplo|"
    r"ongeveer|meestal|gewoonlijk|doorgaans|bijvoorbeeld|bijv|gemiddeld)\b"
)
OBSERVED = re.compile(
    r"\b(observed|seen|found|occurring|actual|data|sampled?|file|dataset|median|quantiles?|percentiles?|std|sd|missing|"
    r"others|removed|excluded|etc|pages?|pp|see|cf|cited|described|figure|fig|article|section|chapter|annex|appendix|gdpr|"
    r"beobachtet\w*|gefunden|daten|stichprobe|datei|fehlend\w*|entfernt|usw|seiten?|siehe|vgl|abb|abbildung|tabelle|"
    r"artikel|kapitel|anhang|observée?s?|constatée?s?|données|échantillon|fichier|médiane|manquante?s?|autres|voir|"
    r"annexe|observad[oa]s?|datos|muestra|archivo|mediana|otr[oa]s|véase|página|"
    r"waargenomen|gevonden|steekproef|bestand|gegevens|bijlage|zie|blz)\b|[.…]{3}|§",
    re.IGNORECASE,
)
CITED = re.compile(r"\b(?:pp?|art|abb|fig|cf|vgl)\.\s?[\d\[]", re.IGNORECASE)
"""Words by which bounds or values may be those of rows that somebody saw, or numbers of pages and the like."""
OPEN_LIST = re.compile(r"(?:and|or|und|oder|et|ou|y|o)\s", re.IGNORECASE)
EITHER_NUMBER = re.compile(
    r"((?:\d+(?:\.\d+)?,?\s+)+(?:or|oder|ou|o)\s+\d+(?:\.\d+)?)\s+(?:for|if|when|where|für|wenn|falls|pour|si|para)\b",
    re.IGNORECASE,
)
"""Few numbers of which the last holds in some rows, as in `0, or 20 for members`."""
FIGURE, A_NUMBER = re.compile(r"\d+"), re.compile(r"\d+(?:\.\d+)?")
FEW, MANY, SHORT = 3, 4, 3
"""Values from which on a list needs no word before it, or may end with one of several words; letters of a code."""
BRACKETS = re.compile(r"\s*\([^()]*\)")
LONGEST = 1000
"""Letters of a description that is read; a longer one is a text."""
YEAR = re.compile(r"(?<![\d.,])(?:1[89]|20)\d\d(?![\d.,])")
IN_YEAR = re.compile(rf"(?:^|[,;(]\s*)(?:in|im jahr|en|en l'année)\s+({YEAR.pattern})(?=\s*[,;.)]|$)", re.IGNORECASE)
"""The one year of all days of a column."""
MOST_WORDS = 6  # of a category; a longer one is a sentence about the values


@dataclass(frozen=True)
class Cell:
    """What a phrase would be under a heading, and whether it can be meant in no other way."""

    heading: str
    text: str
    is_sure: bool = True


def with_worded(row: dict[str, str]) -> dict[str, str]:
    """Fill the cells of a row that its description says, unless cells of it say bounds or values.

    The cell `unsure` holds the description where a person should confirm what was read.
    """
    words = with_plain_days(row.get("description", "").strip())
    if not words or len(words) > LONGEST or any(row.get(heading, "").strip() for heading in HEADED):
        return row
    cells = list(dict.fromkeys(_cells(words)))
    if not cells and (bare_words := BRACKETS.sub("", words)) != words:
        cells = [Cell(one.heading, one.text, False) for one in dict.fromkeys(_cells(bare_words))]
    cells = _of_dates(words, cells)
    typed = [cell for cell in cells if cell.heading == "type"]
    types = {kind_of(cell.text) or cell.text for cell in typed}
    row = row | {"type": typed[0].text} if len(types) == 1 and not row.get("type", "").strip() else row
    bounds = [cell for cell in cells if cell.heading != "type" and not _are_words_of_numbers(cell, row)]
    if any(cell.heading != "values" for cell in bounds) and any(cell.heading == "values" for cell in bounds):
        bounds = [Cell(one.heading, one.text, False) for one in bounds if one.heading != "values"]
    sure = {cell.heading for cell in bounds if cell.is_sure}
    is_sure = all(cell.is_sure for cell in bounds) and not _is_qualified(words) and _is_unambiguous(words, bounds)
    is_length = kind_of(row.get("type", "")) == "text" and any(one.heading != "values" for one in bounds)
    bounds = [cell for cell in bounds if cell.is_sure or cell.heading not in sure]
    if not bounds or len({cell.heading for cell in bounds}) < len(bounds):
        return row
    return row | {cell.heading: cell.text for cell in bounds} | ({"unsure": words} if is_length or not is_sure else {})


def _are_words_of_numbers(cell: Cell, row: Mapping[str, str]) -> bool:
    """Tell whether a cell lists words, of a column that another cell says to hold numbers."""
    is_numeric = kind_of(row.get("type", "")) in ("integer", "number")
    return is_numeric and cell.heading == "values" and not any(map(str.isdigit, cell.text))


def _of_dates(words: str, cells: list[Cell]) -> list[Cell]:
    """Return what a description says as that of dates, where it says how these are written."""
    if not date_format_in(words) or any(cell.heading in ("type", "values") for cell in cells):
        return cells
    moments = moment_format_in(words)
    typed = [Cell("type", "datetime"), Cell("resolution", "second" if "%S" in moments else "minute")]
    typed = typed if moments else [Cell("type", "date")]
    if not cells and len(stated := {*IN_YEAR.findall(words)}) == 1:
        year = stated.pop()
        return [*typed, Cell("min", f"{year}-01-01", False), Cell("max", f"{year}-12-31", False)]
    years = [YEAR.findall(cell.text) for cell in cells if cell.heading == "range"]
    if not cells or len(cells) > 1 or [len(each) for each in years] != [2]:
        return cells or typed
    low, high = years[0]
    return [*typed, Cell("min", f"{low}-01-01"), Cell("max", f"{high}-12-31")]


def _is_qualified(words: str) -> bool:
    """Tell whether words beside the bounds may narrow them, or say that they are not meant strictly."""
    phrases = [
        phrase
        for phrase in map(str.casefold, _phrases(words))
        if not NEVER_EMPTY.fullmatch(phrase) and not _cells_of(phrase)
    ]
    phrases = [phrase for phrase in phrases if not LABEL.fullmatch(phrase)]
    found = {word for phrase in phrases if not says_phrase(phrase) for word in QUALIFYING.findall(phrase)}
    return bool(found - {*NARROWING, "no", "not"} or any(map(HEDGED.search, phrases)))


def _is_unambiguous(words: str, bounds: list[Cell]) -> bool:
    """Tell whether a description says each bound once, of the scale itself, and no other number beside them.

    What was observed, or stands on a page, is no scale, and a count or a deviation beside two bounds says that somebody
    looked at the data.
    """
    stated = {cell.heading for cell in bounds}
    rest = [phrase for phrase in map(str.casefold, _phrases(words)) if not says_phrase(phrase)]
    said = Counter(FIGURE.findall(" ".join(rest))) - Counter(FIGURE.findall(" ".join(cell.text for cell in bounds)))
    members = [one.strip() for cell in bounds if cell.heading == "values" for one in cell.text.split("|")]
    is_open = any(RANGE.fullmatch(bare(one)) or OPEN_LIST.match(one) for one in members)
    are_words = stated == {"values"} and not any(map(FIGURE.search, members))  # which no number beside them is one of
    once = not ("range" in stated and stated & {"min", "max"}) and (are_words or not said)
    return once and not is_open and not CITED.search(words) and not any(map(OBSERVED.search, rest))


def _phrases(words: str) -> list[str]:
    """Cut a description into its phrases, but for a comma or a dash within numbers, as in `0,5 - 80,000`."""
    whole = DASH.sub("-", DECIMALS.sub("\0", SEPARATE.sub(r"\1 ", words)))
    return [" ".join(part.replace("\0", ",").split()) for part in END.split(whole) if part.strip()]


def _cells(words: str) -> Iterator[Cell]:
    """Yield what the lists in a description are, or else what its phrases are."""
    lists = [cell for cell in (_led(words), _choice(words), *map(_labeled, _parts(words))) if cell]
    yield from lists[:1]
    rest = words
    if interval := next((one for one in INTERVAL.finditer(words) if {"[", "]"} & {*one[0]}), None):
        yield Cell("range", interval[0])
        rest = words.replace(interval[0], ";")
    found = [cell for place, part in enumerate(_phrases(rest)) for cell in _cells_of(part, place == 0)]
    found = [] if not lists and _names_a_type(words) else found
    yield from found
    if not lists and not interval and all(cell.heading == "type" and kind_of(cell.text) != "boolean" for cell in found):
        yield from list(filter(None, map(_bare_list, _parts(words))))[:1]


def _parts(words: str) -> list[str]:
    """Return a description as a whole, what its brackets hold, what stands behind a colon, and a sentence with `or`.

    Of several cells, which semicolons and line ends part, each is a part.
    """
    cells = [part.strip().rstrip(".") for part in words.split(OF_CELLS)] if OF_CELLS in words else []
    brackets = re.findall(r"\(([^()]*)\)", words)
    outside = STOP.split(words)[0].rpartition(": ")
    first = STOP.split(words)[0].split(";")[0].strip()
    listed, _, clause = first.rpartition(", ")
    first = listed if re.fullmatch(EMPTY_IF, clause, re.IGNORECASE) else first
    behind = outside[2].strip().rstrip(".") if outside[1] else ""
    whole = [*cells, words.strip().rstrip("."), *brackets]
    either = EITHER_NUMBER.match(first)
    return [*whole, *filter(None, [behind, either[1] if either else first * bool(LAST_OF_LIST.search(first))])]


def _choice(words: str) -> Cell | None:
    """Read two answers, a yes and a no in either order; a person confirms that the file has no others."""
    match = CHOICE.fullmatch(words.strip())
    pair = [one for one in match.groups() if one] if match else []
    says_yes = {ANSWER_OF.get(one.casefold(), one == "1") for one in pair}
    return Cell("values", " | ".join(pair), False) if says_yes == {True, False} else None


def _led(words: str) -> Cell | None:
    """Read a list that words such as `one of` stand before."""
    match = LED.search(words)
    if match is None:
        return None
    members = _members(STOP.split(match["list"])[0])
    is_led = bool(match["colon"] or match["mark"])
    are_names = len(members) >= FEW and all(member[:1].isupper() for member in members)
    longest = max((len(member.split()) for member in members), default=0)
    most = MOST_WORDS if is_led else FEW if are_names else 1
    return Cell("values", " | ".join(members), longest <= 1 or is_led) if members and longest <= most else None


def _members(text: str) -> list[str]:
    """Cut a list at its bars, commas, semicolons, slashes or the word before its last value."""
    first = text.split(";")[0]
    mark = next((mark for mark in ("|", ",", "/") if mark in first), ";" if ";" in text else "")
    tokens = re.split(re.escape(mark), first if mark in first else text) if mark else [text]
    tokens = [*tokens[:-1], *LAST_OF_LIST.split(re.sub(r"^\s*(?:or|oder|ou|o)\s+", "", tokens[-1]))]
    tokens = [token.strip().strip("\"'`").strip() for token in tokens]
    return tokens if len(tokens) > 1 and all(tokens) and not are_pieces(text, tokens) else []


def _labeled(part: str) -> Cell | None:
    """Read values with what they stand for; of whole numbers with others between them, they may be the ends alone."""
    tokens = [token for token in re.split(r"[;|\n]" if ";" in part or "|" in part else r",\s", part) if token.strip()]
    labels = [LABEL.fullmatch(token) for token in tokens]
    codes = [label[1] for label in labels if label]
    if len(codes) < max(len(tokens), 2):
        return None
    numbers = sorted(int(code) for code in codes if re.fullmatch(r"-?\d{1,9}", code))
    has_gaps = len(numbers) == len(codes) and any(after - one != 1 for one, after in pairwise(numbers))
    return Cell("values", " | ".join(token.strip() for token in tokens), not has_gaps)


def _bare_list(part: str) -> Cell | None:
    """Read words between commas, slashes or bars that nothing says to be values."""
    if INTERVAL.fullmatch(part) or RANGE.search(part):
        return None
    members = _without_unit(_members(part))
    is_code = all(len(member) <= SHORT for member in members)
    is_several = len(members) >= FEW or is_code or "|" in part or not re.search("[,/;]", part)
    spaced = [member for member in members if " " in member]
    is_whole = len(members) >= MANY or LAST_OF_LIST.search(part)
    if not members or not (not spaced or (is_whole and _is_named(spaced, members))) or not is_several or ";" in part:
        return None
    units = [one for one in members if len(one) > 1 and A_UNIT.fullmatch(one)]
    if 2 * len(units) > len(members) or any(says_phrase(one.casefold()) for one in members):
        return None
    if any(map(A_TYPE.fullmatch, members)) and not _names_a_type(part):
        return None
    return Cell("values", " | ".join(members), "|" in part)


def _without_unit(members: list[str]) -> list[str]:
    """Return listed numbers without the unit of all that stands behind the last, as in `0, 150 or 300 euros`."""
    if len(members) < FEW or not all(map(A_NUMBER.fullmatch, members[:-1])):
        return members
    last = bare(members[-1])
    match = MEASURED.fullmatch(last)
    last = match[1] if match else last
    return [*members[:-1], last] if A_NUMBER.fullmatch(last) else members


def _is_named(spaced: list[str], members: list[str]) -> bool:
    """Tell whether few of many values are short names of several words, such as `end of contract` behind words."""
    if any(re.search("[:()]", one) or one.split()[0].casefold() in EMPTY_WORDS for one in spaced):
        return False
    if len(members) < MANY:
        return len(members) == FEW and len(spaced) == 1 and spaced[0] in members[:-1] and len(spaced[0].split()) < FEW
    if len(spaced) > 1:
        return 2 * len(spaced) < len(members) and all(len(one.split()) < FEW for one in spaced)
    words = spaced[0].split()
    return spaced[0] == members[-1] and len(words) <= FEW and words[0].casefold() not in EMPTY_WORDS


def _names_a_type(words: str) -> bool:
    """Tell whether a whole sentence lists values of which one is called as a type: `single, double or suite`."""
    part = STOP.split(words)[0].strip()
    members = _members(part) if LAST_OF_LIST.search(part) else []
    return (
        len(members) >= FEW
        and not any(" " in one for one in members)
        and (sum(A_TYPE.fullmatch(one) is not None for one in members) == 1)
    )


def _cells_of(phrase: str, is_first: bool = False) -> list[Cell]:
    """Read one phrase: a type, yes or no, bounds, or a type and its bounds."""
    if match := ANSWERS.fullmatch(phrase):
        return [Cell("type", "boolean" if {match[1], match[2]} == {"0", "1"} else f"{match[1]}/{match[2]}")]
    if (match := TYPED.fullmatch(phrase)) and (is_first or re.fullmatch(PLAIN_TYPES, match[1], re.IGNORECASE)):
        further = _bounds(match[2]) if match[2] else []
        return [Cell("type", match[1]), *further] if further or not match[2] else []
    return _bounds(phrase)


def _bounds(phrase: str) -> list[Cell]:
    """Read the bounds of a phrase; those with words before them, or behind, may be meant otherwise."""
    phrase = OF_RANGE.sub("", phrase, count=1) if OF_RANGE.match(phrase) else phrase
    if cells := _exact(phrase):
        return cells
    if (match := NAMED.fullmatch(phrase)) and RANGE.fullmatch(bare(match[1])):
        return [Cell("range", bare(match[1]), False)]
    match = BEHIND.fullmatch(phrase) or FEW_WORDS.fullmatch(phrase)
    return [Cell(cell.heading, cell.text, False) for cell in _exact(match[match.re.groups])] if match else []


def _exact(phrase: str) -> list[Cell]:
    """Read bounds that nothing stands beside but a unit."""
    match = MEASURED.fullmatch(phrase)
    return [*_plain_bounds(phrase)] or ([*_plain_bounds(match[1])] if match else [])


def _plain_bounds(phrase: str) -> Iterable[Cell]:
    text = bare(phrase)
    if RANGE.fullmatch(text) or SIGNS.fullmatch(text):
        yield Cell("range", text)
    if limit := limit_in(text):
        yield Cell(*limit)
