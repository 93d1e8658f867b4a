"""What a description says a column is of others, where words alone say so.

`montant × taux / 100` is a formula where all names in it are columns of the table; a name that one column alone begins
with is taken for that column. It is offered, for a person to confirm.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from dpmodels.authoring.documents.fitted import CENTS
from dpmodels.authoring.documents.spans import NIGHTS, nights_in
from dpmodels.authoring.documents.spoken import is_paid, spoken_in
from dpmodels.authoring.documents.tariffs import states_of, tariff_in
from dpmodels.authoring.facts import Columns
from dpmodels.contract.derivation.affine import affine_of
from dpmodels.contract.formula import Misread, names_in

SIGNS = str.maketrans({"×": "*", "·": "*", "⋅": "*", "−": "-", "–": "-", "÷": "/", "\u00a0": " ", "\u202f": " "})
TIMES = re.compile(r"(?<=[\w)])\s+x\s+(?=[\w(])", re.IGNORECASE)
"""A letter that stands for a sign, where no column is called so."""
IN_WORDS = {
    "*": "times|multiplied by|mal|maal|keer|multiplié par|fois|por",
    "/": "divided by|geteilt durch|gedeeld door|divisé par|dividido por",
    "-": "minus|less|abzüglich|moins|menos",
    "+": "plus|zuzüglich|más",
}
"""Words that stand for a sign between two names, where no column is called so."""
LETTERS = r"[^\W\d]\w*"
SUM = re.compile(rf"(?:{LETTERS}|\d+(?:\.\d+)?|\s|[-+*/()])+")
BEHIND = re.compile(r"=|:\s")
SENTENCE = re.compile(r"[;\n]|[.!](?:\s|$)|,\s")
COMMA = re.compile(r"(?<=\d),(?=\d{1,2}(?!\d))")
"""A comma that stands before decimals, as in `netto * 1,19`."""
GOES_ON = re.compile(
    r",\s+(?:and |und |et |y )?(?:less|minus|plus|times|divided|reduced|net of|before|after|without|abzüglich|"
    r"zuzüglich|vermindert|ohne|moins|sans|menos|más|sin)\b",
    re.IGNORECASE,
)
"""What follows a formula and changes it, as in `fee + fare, less the discount`."""
LESS = re.compile(
    r",\s+(?:and |und |et |y )?(?:less|minus|abzüglich|moins|menos)\s+"
    r"(?:(?:the|an?|der|des|dem|le|la|une?|el)\s+)?(?P<word>\w+)(?=\s*(?:[;.,(]|$))",
    re.IGNORECASE,
)
PERCENT = re.compile(r"\b(?:pct|percent|per cent|prozent|pour ?cent|por ciento|procent)\b|%", re.IGNORECASE)
SHARE_OF = re.compile(
    rf"(?<![\w.,])(?P<percent>\d{{1,3}}(?:\.\d{{1,4}})?)\s*(?:{PERCENT.pattern})\s+(?:of|von|vom|van|de[l]?|du)\s+"
    r"(?:(?:the|der|des|dem|la|le|el)\s+)?(?=[^\W\d])",
    re.IGNORECASE,
)
"""A part in percent of what is named behind it, as `19 % of NETTO`."""
SEVERAL = 2  # operands of a formula


def with_formulas(columns: Columns) -> Columns:
    """Add the formulas that descriptions hold, to as many decimals as are documented, of the operands at least."""
    states, nights = states_of(columns), nights_in(columns)
    names_known = [*columns, nights] if nights else [*columns]
    formulas = {
        name: ""
        if one.derived
        else formula_in(one.description, name, names_known, nights)
        or _with_discount(one.description, name, columns)
        or tariff_in(name, columns, states, nights)
        for name, one in columns.items()
    }
    decimals = {
        name: one.decimals or CENTS * ("round(" in formulas[name] and is_paid(one)) for name, one in columns.items()
    }
    for _ in range(SEVERAL):  # a sum in words is of columns that words say too
        read = {name for name, formula in formulas.items() if formula or columns[name].derived}
        for name, one in ((name, spoken_in(name, columns, read)) for name in columns if name not in read):
            formulas[name] = one.formula if one else ""
            decimals[name] = decimals[name] or (CENTS if one and one.is_money else 0)
    decimals |= {name: decimals[name] or CENTS for name, formula in formulas.items() if _adds_money(formula, columns)}
    names = {name for name, formula in formulas.items() if formula}
    for _ in range(SEVERAL):  # a rest is of its part, which is of the whole
        decimals |= {
            name: decimals[name] or max(decimals.get(one, 0) for one in names_in(formula))
            for name, formula in formulas.items()
            if formula
        }
    follows = {name: {*names_in(formula)} & formulas.keys() for name, formula in formulas.items() if formula}
    circular = _circular(follows)
    return {
        name: replace(one, offered=_keys(formulas[name], decimals[name])) if name in names - circular else one
        for name, one in columns.items()
    }


def _circular(follows: Mapping[str, Collection[str]]) -> set[str]:
    """Return the columns that follow from themselves, by others that follow from them."""
    reached = {name: {*others} for name, others in follows.items()}
    for _ in follows:
        reached = {name: others.union(*(reached.get(one, ()) for one in others)) for name, others in reached.items()}
    return {name for name, others in reached.items() if name in others}


def _with_discount(words: str, name: str, columns: Columns) -> str:
    """Return a formula less a discount that words name behind it, in percent of it or an amount; empty without one."""
    if (match := LESS.search(words)) is None:
        return ""
    formula = formula_in(words[: match.start()], name, columns)
    discount = _column(match["word"], [one for one in columns if one != name])
    if not formula or not discount or discount in names_in(formula):
        return ""
    in_percent = PERCENT.search(f"{discount.replace('_', ' ')} {columns[discount].description}") is not None
    return f"{formula} - round(({formula}) * {discount}) / 100" if in_percent else f"{formula} - {discount}"


def _adds_money(formula: str, columns: Columns) -> bool:
    """Tell whether a formula adds amounts of money whose decimals nothing says, and so gives cents."""
    total = affine_of(formula) if formula else None
    parts = [columns.get(name) for name in total.slopes] if total else []
    return len(parts) > 1 and all(one is not None and is_paid(one) and one.decimals is None for one in parts)


def _keys(formula: str, decimals: int) -> dict[str, Any]:
    """Return the keys of a derived column; its `round` admits a half that the file rounds up or down."""
    in_units = decimals and re.fullmatch(rf"[^-+]* / {10**decimals}", formula) and "round(" not in formula
    written = _rounded(formula, decimals) if in_units else formula
    return {"type": "derived", "formula": written, **({"round": decimals} if decimals else {})}


def _rounded(text: str, decimals: int) -> str:
    """Write a formula rounded in whole units of its last decimal: `round(amount * percent) / 100` of a percentage."""
    power = 10**decimals
    if product := re.fullmatch(rf"([^-+]*) / {power}", text):
        return f"round({product[1]}) / {power}"
    whole = text if re.fullmatch(r"[^-+]*", text) else f"({text})"
    return f"round({whole} * {power}) / {power}"


def formula_in(words: str, column: str, names: Collection[str], nights: str = "") -> str:
    """Return the first formula of other columns that a description holds, as a schema writes it; empty without one.

    By nights, or days, words mean the column ``nights`` of the days between two dates, if no column is called so.
    """
    others = [name for name in names if name != column]
    has_x = any(name.casefold() == "x" for name in names)
    words = SHARE_OF.sub(lambda share: f"{float(share['percent']) / 100:.12g} * ", COMMA.sub(".", words))
    words = words.translate(SIGNS) if has_x else TIMES.sub(" * ", words.translate(SIGNS))
    words = _with_signs(words, {name.casefold() for name in names})
    if GOES_ON.search(words):
        return ""
    for sentence in SENTENCE.split(words):
        for part in dict.fromkeys([BEHIND.split(sentence)[-1], sentence]):
            if formula := _formula(part.strip(), others, BEHIND.search(sentence) is not None, nights):
                return formula
    return ""


def _with_signs(words: str, names: Collection[str]) -> str:
    """Write a sign for each word that stands for one."""
    for sign, spoken in IN_WORDS.items():
        free = "|".join(one for one in spoken.split("|") if one not in names)
        words = re.sub(rf"(?<=[\w)])\s+(?:{free})\s+(?=[\w(])", f" {sign} ", words, flags=re.IGNORECASE)
    return words


def _formula(text: str, names: Collection[str], is_led: bool, nights: str) -> str:
    """Read a sum of names, numbers and signs, all of whose names are columns; a slash alone may part two words."""
    operands = re.findall(rf"{LETTERS}|\d+(?:\.\d+)?", text)
    words = list(dict.fromkeys(re.findall(LETTERS, text)))
    is_sum = SUM.fullmatch(text) and re.search(r"[-+*/]", text)
    if not words or len(operands) < SEVERAL or not is_sum or not (is_led or re.search(r"\s[-+*]\s", text)):
        return ""
    columns = {word: _column(word, names) or (nights if NIGHTS.fullmatch(word) else "") for word in words}
    if not all(columns.values()) or len({*columns.values()}) < len(columns):
        return ""
    formula = re.sub(LETTERS, lambda word: columns[word[0]], " ".join(text.split()))
    try:
        return formula if {*names_in(formula)} == {*columns.values()} else ""
    except Misread:
        return ""


def _column(word: str, names: Collection[str]) -> str:
    """Return the column of a name, in letters of any size, or else the only one whose name has it as a part."""
    same = [name for name in names if name.casefold() == word.casefold()]
    parts = [name for name in names if word.casefold() in re.split(r"[_\W]+", name.casefold())]
    found = same or (parts if len(word) > SEVERAL else [])
    return found[0] if len(found) == 1 else ""
