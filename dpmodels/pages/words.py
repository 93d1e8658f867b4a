"""Plain words for what methods call things, and what the words of a report mean; names in files stay as they are."""

import re
from collections.abc import Mapping
from typing import Any

LOOKS = {
    "zoom": "rough counts of single columns, round",
    "fine one-way": "counts of single columns",
    "one- and two-way": "counts of single columns and of pairs",
    "tables of the network": "tables of a few columns each",
    "moments by class": "means and squares by class",
    "moments of the classes": "means and squares of the classes",
    "the release": "everything that was released",
}
QUANTITIES = {
    ", at each zoom": ", in each round of rough counts",
    " fine cell": " narrow cell",
    " merged cell": " joined cell",
    " of two columns that the workload asks for (": " of two of the columns that the workload asks for (",
}
MEANINGS = {
    "cell": "A category, or a run of neighboring values, in which records were counted. Narrow cells are cut first; "
    "joined ones are several that were too thin to stand out of the noise alone.",
    "rough counts": "Counts of wide cells of each column, taken first, in a round or more, to find where values lie.",
    "noise": "What was added to every count before it was released. How large it is on average is known exactly; a "
    "whisker reaches two of its standard deviations either way.",
    "quantile": "The value below which a share of the rows lies. “Quantiles within 3 %” means: what the synthetic rows "
    "call the 50 % quantile lies between the 47 % and the 53 % quantile of the real ones, in nineteen releases of "
    "twenty, and but for where in its narrow cell it lies.",
    "shares within": "How far off the share of the rows that answers any yes-or-no question about a column is at most, "
    "in nineteen releases of twenty (the total variation distance), values within a cell aside.",
    "two columns together": "The same of any question about two columns, each in four groups of its values at most.",
    "not resolved": "The release says too little of the column: see its warning.",
    "fit": "How closely the synthetic rows follow what was released. How closely that follows the real rows is a "
    "matter of the noise.",
}

YEARS = re.compile(r"[12]\d{3}( to [12]\d{3})?")
"""Whole numbers that may be years, from 1000 to 2999."""
STATES = ("exactly 0", "null")
"""Labels of what is no interval of values."""


def is_of_years(column: Mapping[str, Any]) -> bool:
    """Tell whether all values of a report's column may be years, of which nobody marks the thousands."""
    labels = [one for one in column.get("labels", ()) if one not in STATES]
    return bool(labels and column.get("ordered") and all(map(YEARS.fullmatch, labels)))


def look_in_words(name: str, numbered: bool = True) -> str:
    """Name a sum that was released in plain words, after its table where there are several, with its number."""
    table, _, mechanism = name.rpartition(": ")
    word, number = re.fullmatch(r"(.*?)( \d+)?", mechanism).groups()  # type: ignore[union-attr]  # it matches anything
    words = LOOKS.get(word, word)
    return f"{table}: " * bool(table) + (words + (number or "") if numbered else words.removesuffix(", round"))


def quantity_in_words(name: str) -> str:
    """Name a quantity that noise was added to in plain words."""
    for jargon, plain in QUANTITIES.items():
        name = name.replace(jargon, plain)
    return name
