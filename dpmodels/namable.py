"""Which columns a formula can name: it is read as Python is, which knows no quotation marks around a name."""

import re
from collections.abc import Iterable
from keyword import iskeyword
from unicodedata import normalize

NAMES = (
    "a column in it has a name of letters, digits and _, which is no word of Python such as `class`; there are no "
    "quotation marks for others, so rename such a column in the data and in the schema"
)
UNNAMABLE = (
    "; `{name}` cannot be named in a formula: rename it in the data and in the schema to letters, digits and _, as "
    "Unicode composes them (NFKC)"
)


def is_namable(name: str) -> bool:
    """Tell whether a formula names this column by this name: Python reads `ﬁne`, with a ligature, as `fine`."""
    return name.isidentifier() and not iskeyword(name) and normalize("NFKC", name) == name


def meant_by(name: str, columns: Iterable[str]) -> str:
    """Say which column a formula cannot name that has a name, which is none, as a word in it; or nothing."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    meant = (one for one in columns if not is_namable(one) and word.search(normalize("NFKC", one)))
    return next((UNNAMABLE.format(name=one) for one in meant), "")
