"""Words in sentences for people."""

from collections.abc import Sequence

OF_VALUES, OF_CATEGORIES = " or ", ", "
"""What stands between the parts of a group's name: of values on an axis a range and states, and categories."""
ZERO = "exactly 0"
"""What the values of a number column are called that are 0, where these are kept apart."""


def values_in_words(labels: Sequence[str]) -> str:
    """Name a group of values on an axis: 0 before the range that it is joined to, and null behind it."""
    if ZERO not in labels[1:]:  # a range stands first wherever there is one
        return OF_VALUES.join(labels)
    return f",{OF_VALUES}".join([ZERO, *(label for label in labels if label != ZERO)])


def counted(number: int, noun: str) -> str:
    """Write how many there are of something, as ``1 fault`` and ``2 faults``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


MOST_NAMES = 5
"""Names that a sentence has; of more it says how many there are."""


def listed(names: list[str], word: str) -> str:
    """Name some columns, and how many more there are."""
    more = [f"{len(names) - MOST_NAMES:,} more"] if len(names) > MOST_NAMES else []
    *first, last = [*names[:MOST_NAMES], *more]
    return f"{', '.join(first)} {word} {last}" if first else last
