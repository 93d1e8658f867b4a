"""Rules of one row such as ``when sick then fee > 0``: how they are written, and which rows keep them.

Both sides are conditions as in ``dpmodels/contract/conditions.py``, joined by ``and``. As in SQL, a null on either side
keeps the rule, unless the condition is about null itself (``then ward != null``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Mask
from dpmodels.contract.conditions import Condition, cell_shares, is_boolean
from dpmodels.contract.text_forms.written_conditions import conditions_of
from dpmodels.errors import Unsuitable

WHEN, THEN, AND = "when ", " then ", " and "
HELD = "\n"
"""What the name of a rule's own column begins with in the frame of a suite; no column of a schema may hold it."""

Seen = tuple[NDArray[np.int32], Floats]
"""States and numbers of one column."""


@dataclass(frozen=True)
class Implication:
    """``when GIVEN then THEN``: a row that meets all of the first conditions meets all of the others."""

    text: str
    premises: tuple[Condition, ...]
    then: tuple[Condition, ...]

    @classmethod
    def parse(cls, text: str, columns: Mapping[str, Any]) -> "Implication":
        """Read a rule, and hold its values against the columns.

        Raises:
            Unsuitable: it is no such rule, or no value of a column can meet it as it is written.
        """
        sides = text.strip().removeprefix(WHEN).partition(THEN)[::2]
        premises, then = conditions_of([_parts(side, columns) for side in sides], columns)
        for conditions, what in (
            (premises, "meets what stands after `when`"),
            (premises + then, "keeps it where it applies"),
        ):
            if name := next(_impossible(conditions), ""):
                raise Unsuitable(f"no value of column {name} {what}")
        return cls(text.strip(), premises, then)

    def __str__(self) -> str:
        return self.text

    @property
    def columns(self) -> tuple[str, ...]:
        """Name the columns it reads."""
        return tuple(dict.fromkeys(one.name for one in self.premises + self.then))

    def kept(self, codes: Mapping[str, Seen]) -> Mask:
        """Tell which rows keep the rule, by states and numbers of its columns."""
        applies: Mask = np.logical_and.reduce([one.holds(*codes[one.name]) for one in self.premises])
        broken: Mask = np.logical_or.reduce([_breaks(one, *codes[one.name]) for one in self.then])
        return ~(applies & broken)


def is_implication(text: str) -> bool:
    """Tell whether a constraint is of this form, and no comparison of two columns."""
    return text.strip().startswith(WHEN) and THEN in text


def _parts(side: str, columns: Mapping[str, Any]) -> list[str]:
    """Cut one side at every ``and`` that a condition follows; a value may hold the word."""
    parts: list[str] = []
    for piece in side.split(AND):
        bare = piece.strip().removeprefix("not ")
        tails = [(bare[len(name) :].strip(), column) for name, column in columns.items() if bare.startswith(name)]
        if not parts or any(tail[0] in "=!<>" if tail else is_boolean(column) for tail, column in tails):
            parts.append(piece)
        else:
            parts[-1] += AND + piece
    return parts


def _breaks(one: Condition, states: NDArray[np.int32], numbers: Floats) -> Mask:
    """Tell which values break a condition after ``then``: those that do not meet it, and are not null by chance."""
    about_null = one.of_state and one.value == one.null
    breaks: Mask = ~one.holds(states, numbers) & (about_null | (states != one.null))
    return breaks


def _impossible(conditions: Sequence[Condition]) -> Iterator[str]:
    """Name the columns of which no value meets all of the conditions on them."""
    for name in dict.fromkeys(one.name for one in conditions):
        mine = [one for one in conditions if one.name == name]
        if not cell_shares(mine, mine[0].column).any():
            yield name
