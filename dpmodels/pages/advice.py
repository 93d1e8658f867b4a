"""What is left out of a page for recipients: sentences that tell the operator what to do, which a terminal prints.

A warning or a caution says first what it means for whoever reads a figure. Sentences of advice begin with words of
their own, by which they are known here; whoever writes a new one begins it with one of the first two.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

ADVICE = (
    "For the next release, ",
    "In the schema, ",
    "If its values are a few amounts ",
    "To hide whole documents, ",
    "Unless ",  # this and the next one begin advice of earlier versions
    "Spend more",
)
MORE, INSTEAD = (
    "Spend more, or measure more records or fewer quantities",
    "Spend more, or release something of all documents together: `nacre synthesize`",
)
"""What an operator may do where a release does not stand out of its noise, of all data and of documents one by one."""
SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")


def meaning_of(text: str) -> str:
    """Leave out of a warning or a caution what is advice to the operator; empty where it is nothing else."""
    return " ".join(part for part in SENTENCE.split(text) if not part.startswith(ADVICE))


def meanings_of(texts: Iterable[str]) -> list[str]:
    """Return what some cautions mean to recipients; one that is advice alone is left out."""
    return [text for text in map(meaning_of, texts) if text]


def drowned_in_words(report: Mapping[str, Any]) -> str:
    """Say to the operator that a release does not stand out of its noise, and what to do; empty where it does."""
    said = str(report.get("drowned", ""))
    if not said or "Spend more" in said:  # reports of earlier versions have the advice
        return said
    return f"{said}. {INSTEAD if report.get('about') == 'embeddings' else MORE}"
