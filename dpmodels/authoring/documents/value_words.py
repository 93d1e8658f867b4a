"""Cells of values that hold words about a column: a formula, a form, a unit, a rule, or bounds that are about so large.

Such a cell lists nothing, whatever commas stand in it: it is read as the description that it is, and what is taken of
it as bounds or values is for a person to confirm.
"""

import re
from collections.abc import Collection

from dpmodels.authoring.documents.intervals import RANGE, bare
from dpmodels.authoring.type_words import is_money

NO_LIST = "values as a list, for they are words about the column"
ABOUT = re.compile(
    r"(?<!\w)(?:about|approximately|approx\.?|circa|ca\.?|roughly|around|etwa|ungefähr|rund|environ|unos|"
    r"aproximadamente|[~≈])\s*(?=[-+]?\d)",
    re.IGNORECASE,
)
"""What stands before a number that is no strict bound."""
DESCRIBES = re.compile(
    r"(?<![\d.,])\d{1,2} (?:digits?|letters?|characters?|ziffern?|stellen|zeichen|chiffres?|lettres?|caractères|"
    r"dígitos?|cifras?|letras?|caracteres)\b|"
    r"\b(?:rounded (?:to|up|down|in)|in steps of|multiples? of|gerundet|afgerond|arrondie?s?|redondead[oa]s?)\b|"
    r"\b(?:not|nicht) (?:for|to be|zum?|zur) (?:pass|publi|shar|releas|disclos|hand|weiter|veröff)\w*|"
    r"\b(?:internal use|for internal|free text|freitext|vrije tekst|texte libre|texto libre)\b|"
    r"\b(?:exactly|only|nur|genau|genau dann,?) (?:when|if|wenn)\b|"
    r"\b(?:if|when|where|unless|wenn|falls|als|indien|tenzij|si|cuando) \S+ ?(?:!=|[<>≤≥]=?|=)|[\w)] [*×÷·] [\w(]",
    re.IGNORECASE,
)
"""What no category is called: how long, rounded or secret values are, a condition, or a product."""
OF_A_VALUE = re.compile(r"\S+(?: \S+)?(?:\s*=\s*|:\s+|\s+[-–]\s+)\S.*")
"""A value of one word or two, with what it stands for."""
CODED = re.compile(r"(-?\d{1,6})(?:\s+[^\W\d][^=:;|]*)?")
"""A number, perhaps with what it stands for behind a blank."""
LETTERED = re.compile(r"(?=\w*[A-Z])([A-Z\d]{2,6})\s+[^\W\d].*")
"""A code of capital letters, perhaps with digits, and what it stands for behind a blank."""
EMPTY_IS = re.compile(r"(?:empty|blank|null|leer|leeg|vide|vac[ií][oa])\s*[=:].+", re.IGNORECASE)
OR_MORE = re.compile(r",\s*(?:or|oder|ou|o) (?:more|less|mehr|weniger|plus|más)\b", re.IGNORECASE)
"""What takes bounds back that stand before it."""
END_LABELS = re.compile(r"\s*\(\s*(-?\d+)\s*=[^()]*\)")
"""What one number stands for, in brackets behind bounds that it is one of."""
FEWEST_CODES = 2  # plain numbers among those with words behind them
FEWEST_LETTERED = 3
SHORT = 2  # letters of a code, which is no name of a column


def with_plain_values(row: dict[str, str], names: Collection[str]) -> dict[str, str]:
    """Move what a cell of values says in words to the description, and keep the bounds or values that it begins with.

    Args:
        row: the cells of a column, by what their headings mean.
        names: of all columns, which stand in formulas and rules.
    """
    cell = END_LABELS.sub("", row.get("values", "")).strip()
    if not cell or row.get("values", "").startswith("["):
        return row
    plain = {heading: text for heading, text in row.items() if heading != "values"}
    if _is_currency(cell):
        return plain | {"type": row.get("type", "").strip() or cell}
    others = [one for one in names if one != row.get("name", "").strip() and is_no_word(one)]
    parts = [part.strip() for part in cell.split(";") if part.strip()]
    codes = _codes(parts[0])
    is_words = any(_is_about(part, others) for part in parts) and not OR_MORE.search(cell)
    if not is_words and not codes:
        return row | {"values": cell} if RANGE.fullmatch(bare(cell)) else row
    words = "; ".join(filter(None, (row.get("description", "").strip(), row["values"].strip())))
    plain |= {"description": words}
    if codes:
        return plain | {"values": " | ".join(codes), "unsure": words}
    if not _names_one(cell, others) and RANGE.fullmatch(bare(first := ABOUT.sub("", parts[0]))):
        return plain | {"range": first} | ({"unsure": words} if ABOUT.search(parts[0]) else {})
    if not _is_about(parts[0], others):
        return plain | {"values": parts[0], "unsure": words}
    money = next(filter(_is_currency, re.split(r",\s", cell)), "")
    typed = {"type": money} if money and not row.get("type", "").strip() else {}
    return plain | typed | {"unread": "\n".join(filter(None, (row.get("unread", ""), NO_LIST)))}


def is_no_word(name: str) -> bool:
    """Tell whether a column is called as no word of a sentence is: in capital letters, or with a sign or a number."""
    return (len(name) > 1 and re.search(r"[_\d]", name) is not None) or (len(name) > SHORT and name.isupper())


def _is_currency(text: str) -> bool:
    """Tell whether a cell is one word for money, or its sign, which says what numbers are."""
    return is_money(text) and re.fullmatch(r"[^\W\d_]+", text) is not None


def _names_one(text: str, names: Collection[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)


def _is_about(part: str, names: Collection[str]) -> bool:
    """Tell whether words between semicolons are no values; what a label says of its value is not looked at."""
    if EMPTY_IS.fullmatch(part):
        return True
    tokens = [token.strip() for token in re.split(r"[,|\n]", part)]
    plain = [token for token in tokens if not OF_A_VALUE.fullmatch(token)]
    if DESCRIBES.search(words := ", ".join(plain)) or ABOUT.search(words):
        return True
    return any(_names_one(token, names) for token in plain if " " in token)


def _codes(part: str) -> list[str]:
    """Return the codes of a list that words stand behind, as `0 none, 1, 2` or `ABD Aberdeen, …`; else nothing."""
    tokens = [token.strip() for token in re.split(r"[,|]", part)]
    lettered = [match[1] for token in tokens if (match := LETTERED.fullmatch(token))]
    if len(tokens) == len({*lettered}) >= FEWEST_LETTERED:
        return lettered
    matches = [CODED.fullmatch(token) for token in tokens]
    codes = [match[1] for match in matches if match]
    is_plain = [code == token for code, token in zip(codes, tokens, strict=False)]
    is_list = None not in matches and len({*codes}) == len(codes) and sum(is_plain) >= FEWEST_CODES
    return codes if is_list and not all(is_plain) else []
