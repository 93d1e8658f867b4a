"""Where everything stands in a contract's file, and what YAML makes of it that a person would not expect."""

import re
from typing import Any

from dpmodels.errors import SchemaFault, without_marks
from dpmodels.plain_yaml import Place, Scalar, Watch, YamlFault

MOST_KEPT = 100
"""Faults that are kept; of the others the number is told."""
PLAIN_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|[-+]?\.[0-9]+([eE][-+]?[0-9]+)?")
GROUPED = re.compile(r"([-+]?[1-9][0-9]{0,2}\.[0-9]{3})([eE][-+]?0+)?")
"""A number of which nobody knows, but by who wrote it, whether its point is before decimals or between thousands."""
SPLIT = (
    "begins with a digit, as keys do where a number has a comma: between { and } a comma ends a value, so write "
    "1000000 for 1,000,000 and 0.19 for 0,19"
)
SPLIT_NUMBER = (
    "follows a comma within a number: between {{ and }} a comma ends a value, so of `{0}: {1},{2}` write `{0}: {1}.{2}`"
)
SWITCHES = ("nullable", "zero_inflated", "joint", "unique")  # here yes and no can only be meant as true and false
TODO = "is still TODO: write it from public documentation, never by looking at the data"
DECIDED = {
    "confirm": "is still TODO: delete `confirm: TODO` if what is suggested is right by what is public of it",
    "zero_inflated": "is still TODO: write true if by what is public many values are exactly 0, else false",
    "scale": "is still TODO: write log if by what is public few values are large, else linear",
}
"""What is said of a TODO that one word settles, by its key."""


NO_VALUE = (
    "YAML {} no value here; put it in quotes to mean the text, or leave it out of the list and write `nullable: true` "
    "beside the values where some are missing"
)


class Outline(Watch):
    """The line of every place in the file, and the faults YAML itself would pass over in silence."""

    def __init__(self) -> None:
        self.lines: dict[Place, int] = {(): 1}
        self.faults: list[SchemaFault] = []
        self.more = 0
        """Faults that are counted and not kept."""
        self.grouped: dict[Place, str] = {}
        """Bounds of columns that may be meant as thousands, as they are written."""
        self.last: tuple[Place, str] = ((), "")
        self.tangled = False  # aliases, impossible dates, keys that hide one another: the content is not read

    def line(self, key_path: Place) -> int:
        """Return the line of a place, or of the nearest place around it."""
        while key_path not in self.lines:
            key_path = key_path[:-1]
        return self.lines[key_path]

    def thousands(self, key_path: Place) -> str:
        """Say what a bound may mean that has three digits after its point; nothing of any other place."""
        text = self.grouped.get(key_path, "")
        whole = mantissa(text).replace(".", "")
        return f"{text} may mean {float(text):g} or {whole}: write the one that is meant" if text else ""

    def on_key(self, key_path: Place, key: Scalar, first_line: int) -> bool:
        """Take note of a key; one that hides another, or is no text, is a fault."""
        if key_path[:1] == ("columns",) and len(key_path) == 3 and key.text[:1].isdigit():
            self.tangled = True
            if not first_line:
                self._fault(key_path, self._split(key.text), key.line)
        elif key.kind != "str" and not _is_looked_up(key_path, key):
            self.tangled = True
            self._fault(key_path, "must be text: YAML reads this name as something else; put it in quotes", key.line)
        elif first_line:
            self.tangled = True
            self._fault(key_path, f"is written twice, first on line {first_line}", key.line)
            return False
        self.lines.setdefault(key_path, key.line)
        self.last = (key_path, "")
        return True

    def _split(self, digits: str) -> str:
        """Say what to write for a number that a comma cut, of which the part before it was the last that was read."""
        key, number = self.last[0][-1:], self.last[1]
        if key in (("min",), ("max",)) and re.fullmatch(r"[-+]?\d+", number) and digits.isdigit():
            thousands = (
                f", or `{number}{digits}` if its comma parts thousands (write 1000000 for 1,000,000)"
                if len(digits) == len("000")
                else ""
            )
            return SPLIT_NUMBER.format(key[0], number, digits) + thousands
        return SPLIT

    def on_item(self, key_path: Place, line: int) -> None:
        """Take note of an item's line."""
        self.lines[key_path] = line

    def on_alias(self, key_path: Place, line: int) -> bool:
        """Count an alias as a fault, and leave out what it stands for."""
        self.tangled = True
        self._fault(key_path, "repeats another part by an alias (*); write it out", line)
        return False

    def on_scalar(self, key_path: Place, scalar: Scalar) -> Any:
        """Return a scalar's value; what a person would not expect of it is a fault."""
        self.last = (key_path, scalar.text)
        if scalar.kind == "float" and key_path[-1:] in (("min",), ("max",)) and GROUPED.fullmatch(scalar.text):
            self.grouped[key_path] = scalar.text
        if scalar.is_plain and scalar.text == "TODO":
            message = DECIDED.get(key_path[-1] if key_path else "", TODO)
            self._fault(key_path[:-1] if key_path and key_path[-1].isdigit() else key_path, message, scalar.line)
        elif key_path and (trap := _trap(scalar, key_path[-1]) or _no_value(scalar, key_path)):
            self._fault(key_path, trap, scalar.line)
        try:
            return scalar.value()
        except YamlFault:
            if scalar.kind != "timestamp":
                raise
            self.tangled = True
            self._fault(key_path, f"{scalar.text} is no date of the calendar", scalar.line)
            return None

    def _fault(self, key_path: Place, message: str, line: int) -> None:
        if len(self.faults) < MOST_KEPT:
            self.faults.append(SchemaFault(line, ".".join(key_path), message))
        else:
            self.more += 1


def _is_looked_up(key_path: Place, key: Scalar) -> bool:
    """Tell whether a key is a value of another column, a number or true or false, which nobody can mean otherwise."""
    is_value = key_path[-4:-3] == ("columns",) and key_path[-2] == "values"
    return is_value and (key.text in ("true", "false") if key.kind == "bool" else key.text == _number_text(key))


def _number_text(key: Scalar) -> str:
    """Return a number as a schema writes it; an empty text of what is none."""
    return str(key.value()) if key.kind in ("int", "float") else ""


def mantissa(text: str) -> str:
    """Return what stands before the exponent of a number."""
    return text.lower().partition("e")[0]


def _no_value(scalar: Scalar, key_path: Place) -> str:
    """Say what YAML makes of a plain word such as null or ~ among the values of a column."""
    if not scalar.is_plain or scalar.kind != "null" or key_path[-2:-1] != ("values",) or not key_path[-1].isdigit():
        return ""
    return NO_VALUE.format(f"reads {scalar.text} as" if scalar.text else "finds")


def _trap(scalar: Scalar, key: str) -> str:
    """Say what YAML 1.1 makes of a plain word such as no, 012 or 12:30, if a person would not expect it."""
    if not scalar.is_plain or scalar.kind in ("null", "timestamp"):
        return ""
    if scalar.kind == "bool":
        value, word = scalar.value(), scalar.text
        expected = key in SWITCHES or word.lower() in ("true", "false")
        return "" if expected else f"YAML reads {word} as {str(value).lower()}; put it in quotes to mean the text"
    odd = scalar.is_number_elsewhere or (scalar.kind in ("int", "float") and not PLAIN_NUMBER.fullmatch(scalar.text))
    if odd and (number := without_marks(scalar.text)):
        return f"YAML does not read {scalar.text} as a number: write {number}, or put it in quotes to mean the text"
    return f"YAML does not read {scalar.text[:80]} as it is written; quote it" if odd else ""
