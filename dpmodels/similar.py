"""The known name that was probably meant by one that there is not."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice

LONGEST_GUESSED, MOST_GUESSED = 64, 1000
"""Letters of a name, and names, among which the one that was probably meant is looked for."""
SHORTEST_PART = 3
"""Letters of a name that is looked for within another: shorter ones are in many by chance."""
MOST_LISTED = 12
"""Columns that a refusal lists where none is like the one that was named."""


def near(word: str, candidates: Iterable[str]) -> str:
    """Suggest the known word that was probably meant, as the tail of a sentence."""
    return f"; did you mean `{match}`?" if (match := close_match(word, candidates)) else ""


def near_or_listed(word: str, candidates: Iterable[str]) -> str:
    """Suggest the column that was probably meant or, where none is like it, list the first of those that there are."""
    names = list(islice(candidates, MOST_GUESSED))
    if said := near(word, names):
        return said
    more = ", …" if len(names) > MOST_LISTED else ""
    return f"; its columns are {', '.join(names[:MOST_LISTED])}{more}" if names else ""


def close_match(word: str, candidates: Iterable[str]) -> str:
    """Return the known word that was probably meant, or nothing."""
    if len(word) > LONGEST_GUESSED:
        return ""
    names = [name for name in islice(candidates, MOST_GUESSED) if len(name) <= LONGEST_GUESSED]
    return next(iter(get_close_matches(word, names, n=1, cutoff=0.6) or _around(word, names)), "")


def _around(word: str, names: Sequence[str]) -> list[str]:
    """Return the name that has a word in it or is a part of it, as `monthly_fee` has `fee`: whole words are first."""
    pairs = [(name, *sorted((word.lower(), name.lower()), key=len)) for name in names]
    parts = [(name, part, whole) for name, part, whole in pairs if len(part) >= SHORTEST_PART and part in whole]

    def distance(pair: tuple[str, str, str]) -> tuple[bool, int]:
        _, part, whole = pair
        is_of_words = re.search(rf"(?<![^\W_]){re.escape(part)}(?![^\W_])", whole)
        return is_of_words is None, len(whole) - len(part)

    return [min(parts, key=distance)[0]] if parts else []
