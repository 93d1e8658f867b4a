"""Identifiers that are made after a pattern such as ``[A-Z]{2}[0-9]{6}``: classes, literals and counts, nothing else.

An identifier is a function of the number of its row alone, one to one, so no two rows of a table share one; no file of
the table needs to know another, and nothing is taken from the data.
"""

import math
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ITEM = re.compile(r"(?:\[(?P<set>(?:\\.|[^\]\\])+)\]|(?P<one>\\.|[^\[\]{}()|*+?.^$\\]))(?:\{(?P<count>\d{1,2})\})?")
RANGE = re.compile(r"(\\.|[^\\])(?:-(\\.|[^\\]))?")
MOST_CHARACTERS = 64
GROUP = 2**31
"""Largest number of combinations that are counted through together, so that products stay within 64 bits."""
Numbers = NDArray[np.uint64]


@dataclass(frozen=True)
class Pattern:
    """The characters that may stand at each place of an identifier."""

    alphabets: tuple[str, ...]

    @cached_property
    def groups(self) -> list[tuple[int, int, int]]:
        """Cut the places into runs, the last one first: first place, end, and number of combinations."""
        runs, end = [], len(self.alphabets)
        while end > 0:
            begin, size = end, 1
            while begin > 0 and size * len(self.alphabets[begin - 1]) <= GROUP:
                begin, size = begin - 1, size * len(self.alphabets[begin - 1])
            runs.append((begin, end, size))
            end = begin
        return runs

    @property
    def most(self) -> int:
        """Count the rows that can have an identifier of their own."""
        return math.prod(size for _, _, size in self.groups[:2])

    def write(self, first_row: int, rows: int) -> pa.Array:
        """Return the identifiers of rows that follow each other."""
        return self.write_at(np.arange(first_row, first_row + rows, dtype=np.uint64))

    def write_at(self, number: Numbers) -> pa.Array:
        """Return the identifiers of rows by their numbers.

        The last run of places is the row's number times a whole number without a common divisor, so it is one to one;
        the run before it counts how often that went round, from a start that depends on it. Further runs are free.
        """
        rows = len(number)
        characters = np.empty((rows, len(self.alphabets)), dtype="<U1")
        mixed, times = np.zeros(rows, dtype=np.uint64), number
        for index, (begin, end, size) in enumerate(self.groups):
            here = np.uint64(size)
            code = number % here * np.uint64(_coprime(size)) % here if index == 0 else (mixed + times) % here
            times = number // here if index == 0 else np.zeros_like(number)
            mixed = _mix(code + mixed)
            for at in range(end - 1, begin - 1, -1):
                alphabet = np.array(list(self.alphabets[at]))
                characters[:, at] = alphabet[(code % np.uint64(len(alphabet))).astype(np.int64)]
                code = code // np.uint64(len(alphabet))
        return pa.array(characters.view(f"<U{len(self.alphabets)}")[:, 0])


@lru_cache
def read_pattern(text: str) -> Pattern:
    """Read a pattern.

    Raises:
        ValueError: it has a part that no pattern may have, or describes one identifier only; the message goes on from
            "must".
    """
    alphabets: list[str] = []
    at = 0
    while at < len(text):
        match = ITEM.match(text, at)
        if match is None:
            raise ValueError(
                f"be made of classes, characters and counts, as [A-Z]{{2}}-[0-9]{{6}} is; it is not at `{text[at:]}`, "
                "and a sign such as . is written \\."
            )
        alphabet = _alphabet(match["set"]) if match["set"] else match["one"][-1]
        alphabets += [alphabet] * int(match["count"] or 1)
        at = match.end()
    if not alphabets or len(alphabets) > MOST_CHARACTERS or not "".join(alphabets).isprintable():
        raise ValueError(f"be 1 to {MOST_CHARACTERS} printable characters long")
    pattern = Pattern(tuple(alphabets))
    if pattern.most < 2:
        raise ValueError("have a class such as [0-9], since each row gets an identifier of its own")
    return pattern


def _alphabet(text: str) -> str:
    if text[0] == "^":
        raise ValueError("list what a class has; [^...] says what it has not")
    characters: dict[str, None] = {}
    for first, last in RANGE.findall(text):
        low, high = ord(first[-1]), ord((last or first)[-1])
        if low > high:
            raise ValueError(f"have ranges that go up; {first}-{last} goes down")
        characters |= dict.fromkeys(map(chr, range(low, high + 1)))
    return "".join(characters)


def _coprime(size: int) -> int:
    """Return a step of about the golden ratio of a size, by which counting round visits every place."""
    step = max(1, round(size * (math.sqrt(5) - 1) / 2))
    while math.gcd(step, size) > 1:
        step += 1
    return step


def _mix(number: Numbers) -> Numbers:
    """Scatter numbers over 32 bits; the same number always goes to the same place."""
    product = (number + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)  # wraps round
    return (product ^ (product >> np.uint64(29))) >> np.uint64(32)
