"""What a few words say of a row: the one value of a column that they name, by itself, its label, or a yes or no.

`economy` is `fare_class = Y` where a description has `Y (economy)`, `cancelled` is the column of that name, and
`sans ordonnance` the value of another one. Words that two columns have, or none, say nothing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpmodels.authoring.documents.compared import OPPOSITES, Comparisons

Keys = Mapping[str, Mapping[str, Any]]
"""The keys of columns as a draft has them, by their names."""
YES_WORDS, NO_WORDS = (
    "yes y true ja j wahr oui o vrai sí si s verdadero waar",
    "no n false nein falsch non faux falso nee onwaar",
)
ANSWER_OF = {**dict.fromkeys(YES_WORDS.split(), True), **dict.fromkeys(NO_WORDS.split(), False)}
SHORT = 2
"""Letters of a code, which is read in its own capitals alone."""
FILLING = (
    "a an the is are was were it its of in class category kind type customer customers passenger passengers patient "
    "patients worker workers employee employees staff le la les l un une est "
    "de du des d der die das dem den ein eine ist wird el los las es"
)
EMPTY_WORDS = frozenset(FILLING.split())
"""Words that say nothing of which value is meant."""
IS = ("is", "ist", "est", "es")
"""Verbs between a column of two answers and its answer, as in `complaint is yes`."""
NOT = re.compile(r"(?:not|nicht|kein|keine|niet|geen|non|pas|no)\s+", re.IGNORECASE)
WRITTEN = re.compile(r"(?P<name>\w+)\s*(?P<sign>!?=)\s*(?P<value>\w+)")
"""A state as a schema writes it."""
LABEL = r"(?<!\w){}\s*(?:\(([^()]{{1,60}})\)|=\s*([^=,;|()]{{1,60}}))"


@dataclass(frozen=True)
class State:
    """A value that a column has in a row, or has not; with a sign, a number that it is compared with."""

    column: str
    value: Any
    is_held: bool = True
    sign: str = ""

    def __str__(self) -> str:
        if self.sign:
            return f"{self.column} {self.sign} {self.value}"
        if isinstance(self.value, bool):
            return ("" if self.value == self.is_held else "not ") + self.column
        return f"{self.column} {'=' if self.is_held else '!='} {self.value}"

    @property
    def opposite(self) -> "State":
        """Return that it is not so; of two answers the other one."""
        if self.sign:
            return State(self.column, self.value, sign=OPPOSITES[self.sign])
        return State(self.column, self.value, not self.is_held)


class States:
    """The words by which the values of a table's columns are named."""

    def __init__(self, keys: Keys, descriptions: Mapping[str, str]) -> None:
        self._named: dict[str, set[tuple[str, Any]]] = {}
        self._parts: dict[str, set[str]] = {}
        self._comparisons, self._keys = Comparisons(keys, descriptions), keys
        for name, one in keys.items():
            self._parts[name] = {*re.split(r"[\W_]+", name.casefold())}
            for word, value in _words(name, one, descriptions.get(name, "")):
                self._named.setdefault(_folded(word), set()).add((name, value))

    def named(self, words: str, column: str) -> State | None:
        """Return the one state of another column that words name, and nothing else beside it; None where they do not.

        A comma, or an `or` between two values, says several.
        """
        is_held = NOT.match(words.strip()) is None
        words = NOT.sub("", words.strip(), count=1) if not is_held else words
        if compared := self._comparisons.read(words, column):
            name, sign, number = compared
            return State(name, number, sign=sign if is_held else OPPOSITES[sign])
        if written := WRITTEN.fullmatch(words):
            return self._written(written, is_held, column)
        tokens = re.findall(r"[^\W_]+(?:_\w+)?|\d+", re.sub(r"\b[dl]['’]", "", words))
        pairs, rest, at = set[tuple[str, Any]](), list[str](), 0
        while at < len(tokens):
            length = next((n for n in (3, 2, 1) if self._of(tokens[at : at + n], column) and at + n <= len(tokens)), 0)
            pairs |= self._of(tokens[at : at + length], column)
            rest += [] if length else [tokens[at].casefold()]
            at += length or 1
        if len(pairs) != 1:
            return None
        ((name, value),) = pairs
        return State(name, value, is_held) if {*rest} <= EMPTY_WORDS | self._parts[name] else None

    def _written(self, written: re.Match[str], is_held: bool, column: str) -> State | None:
        """Return what `NAME = VALUE` says of another column, of which the value is a listed one."""
        name, sign, word = written.group("name", "sign", "value")
        values = self._keys.get(name, {}).get("values") if name != column else None
        value = [one for one in values if str(one) == word] if isinstance(values, list | tuple) else []
        return State(name, value[0], is_held == (sign == "=")) if value else None

    def _of(self, tokens: list[str], column: str) -> set[tuple[str, Any]]:
        named = self._named.get(_folded(" ".join(tokens)), set()) if tokens else set()
        return {(name, value) for name, value in named if name != column}


def yes_of(keys: Mapping[str, Any]) -> Any:
    """Return the value that says yes of a column of two answers; None of any other."""
    if keys.get("type") == "boolean":
        return True
    values = keys.get("values")
    if keys.get("type") != "categorical" or not isinstance(values, list | tuple) or len(values) != 2:
        return None
    answers = {ANSWER_OF.get(str(value).casefold()): value for value in values if isinstance(value, str)}
    return answers.get(True) if answers.keys() == {True, False} else None


def _words(name: str, keys: Mapping[str, Any], description: str) -> Iterator[tuple[str, Any]]:
    """Yield the words for the values of a column: themselves, their labels, and for a yes the column's own name."""
    if (yes := yes_of(keys)) is not None:
        words = re.sub(r"[\W_]+", " ", name)
        yield words, yes
        no = False if yes is True else next(one for one in keys["values"] if one != yes)
        for verb in IS:
            yield from ((f"{words} {verb} {answer}", yes if says_yes else no) for answer, says_yes in ANSWER_OF.items())
        return
    values = keys.get("values")
    if keys.get("type") != "categorical" or not isinstance(values, list | tuple):
        return
    for value in (one for one in values if isinstance(one, str) and one.strip() and not _is_answer(one)):
        yield value, value
        for label in re.finditer(LABEL.format(re.escape(value)), description):
            yield (label[1] or label[2]).strip(" ."), value


def _is_answer(word: str) -> bool:
    """Tell whether a word is yes or no, which `0 for no` says of the column itself; a letter may be a code."""
    return len(word) > 1 and word.casefold() in ANSWER_OF


def _folded(word: str) -> str:
    """Write a word in small letters; a code keeps its capitals."""
    word = re.sub(r"[\W_]+", " ", word).strip()
    return word if len(word) <= SHORT else word.casefold()
