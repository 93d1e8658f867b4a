"""Which columns an operator declares to be of a special category (GDPR, Art. 9), and which are tied to one of these."""

import re
from collections.abc import Mapping
from typing import Any

from dpmodels.pages.card_words import cut
from dpmodels.pages.figures.named import listed

Facts = Mapping[str, Any]


def tied_in_words(declared: str, content: Facts) -> list[str]:
    """Name what rules or formulas tie to each column that is declared to be special, and is not declared with it."""
    ties = {name: others for name, others in content.get("ties", {}).items() if is_named(name, declared)}
    others = {name: [one for one in some if not is_named(one, declared)] for name, some in ties.items()}
    tied = [f"to {cut(name)}: {listed([*map(cut, some)])}" for name, some in others.items() if some]
    return [f"Tied by a rule or formula of the schema {'; '.join(tied)}: ask whether these are declared too."][
        : len(tied)
    ]


def is_named(name: str, words: str) -> bool:
    """Tell whether words that are declared name a column."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words) is not None


def tied_to(name: str, declared: str, content: Facts) -> list[str]:
    """Return the declared columns that a rule or formula ties to one that is not declared with them."""
    if is_named(name, declared):
        return []
    return [one for one in content.get("ties", {}).get(name, ()) if is_named(one, declared)]
