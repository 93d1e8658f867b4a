"""Tell whether a column's warning is made of sentences that nacre writes, whatever the figures in them."""

import re
from functools import cache
from string import Formatter

from dpmodels.report.largest import (
    AT_BOUND,
    FEW_ZEROS,
    FEWER,
    IN_A_CELL,
    LOGARITHMIC,
    MORE_CELLS,
    NARROWER,
    SETTINGS,
    TOO_THIN,
    UNCUT,
    ZEROS_APART,
)
from dpmodels.report.warned import (
    ALSO,
    CROWDED,
    CUT,
    EXCEEDED,
    FAR_AWAY,
    FEW_AMOUNTS,
    LOST_VALUES,
    MOST,
    ONE_CELL,
    OPEN,
    OPEN_QUANTILE,
    REMEDY,
    SIDES,
    UNUSABLE,
    WIDER,
)

HIDDEN_QUANTILE = (
    "its 99 % quantile is not known: by noise alone more than 1 % of the records may lie anywhere between it and the "
    "upper bound."
)
"""What nacre wrote before it wrote between what the quantile lies."""
DISCOVERED = (
    "its {ends} {were} discovered, and values beyond were set to the bound before anything was measured; the discovery "
    "said of what share of the rows that may be so. Mean, total and the quantiles near the bound may be {off} by more "
    "than is stated here. For the next release, write a bound that is public."
)
"""What nacre wrote before it said where that a bound was discovered stands."""
TOGETHER_RIGHT = (
    "{share} of the records lie in {members} {what} too thin to be counted alone. Together they are right; among one "
    "another the noise may put them {apart} apart from the truth. For the next release, {advice} or spend more."
)
"""What nacre wrote before it said that their number together has noise as well."""
OPEN_BY_ITSELF = OPEN.replace(", not by group either,", "")
"""What nacre wrote before it said the same of means by group."""
SENTENCES = (
    CROWDED,
    CUT,
    DISCOVERED,
    EXCEEDED,
    FAR_AWAY,
    FEW_AMOUNTS,
    HIDDEN_QUANTILE,
    IN_A_CELL,
    LOST_VALUES,
    ONE_CELL,
    OPEN,
    OPEN_BY_ITSELF,
    OPEN_QUANTILE,
    REMEDY,
    TOGETHER_RIGHT,
    TOO_THIN,
)
"""Whoever changes a sentence leaves the earlier one here as well, or raises the layout."""
LONGEST = 4000
"""Letters of a warning."""
FIGURE = "[-+0-9.,e:%\N{NO-BREAK SPACE} ]{1,45}(?:h|min|s)?"
BOUND, OFF = f"(min|max) {FIGURE}", "|".join(SIDES.values())
CROWD = f"{FIGURE} of the (records|values other than (zero|null|zero and null))"


def is_warning(text: object, later: bool = False) -> bool:
    """Tell whether a text is one or several sentences of a warning; of a later version it may be any short text."""
    return isinstance(text, str) and len(text) <= LONGEST and (later or _warnings().fullmatch(text) is not None)


@cache
def _warnings() -> re.Pattern[str]:
    one = f"({'|'.join(map(_pattern, SENTENCES))})"
    return re.compile(f"{one}( ({ALSO})?{one})*")


def _pattern(template: str) -> str:
    """Return the expression of a sentence, which may begin with a capital, with others for what is filled in."""
    parts = list(Formatter().parse(template))
    texts = [re.escape(text) + (f"({_filler(field)})" if field else "") for text, field, _, _ in parts]
    first = texts[0]
    return (f"[{first[0]}{first[0].upper()}]{first[1:]}" if first[0].isalpha() else first) + "".join(texts[1:])


@cache
def _filler(field: str) -> str:
    """Return the expression of what stands in a place of a sentence."""
    fillers = {
        "crowd": CROWD,
        "label": f"{FIGURE}( to {FIGURE})?",
        "what": "intervals|categories",
        "advice": _advice(),
        "figures": "|".join(map(re.escape, UNUSABLE)),
        "key": "min|max",
        "ends": f"{BOUND}( and {BOUND})?",
        "were": "was|were",
        "off": f"({OFF})( or ({OFF}))?",
        "most": "|".join(MOST.values()),
        "wider": "|".join(WIDER.values()),
    }
    return fillers.get(field, FIGURE)


def _advice() -> str:
    """Return the expression of what is advised for the next release."""
    cells = [re.escape(MORE_CELLS.format(setting=name, members="@")).replace("@", "[0-9]{1,9}") for name in SETTINGS]
    known = map(
        re.escape, (AT_BOUND, FEWER, LOGARITHMIC + FEW_ZEROS, LOGARITHMIC, NARROWER, ZEROS_APART, *UNCUT.values())
    )
    one = f"({'|'.join([*known, *cells])})"
    return f"{one}((, | or ){one}){{0,5}}"
