"""Derived columns by the columns that are counted in their place, where whoever asks names the derived ones."""

from collections.abc import Iterable, Mapping
from typing import Any

from dpmodels.contract.columns import Derived, copy_of

FIGURES = ("", "_low", "_high", "_mean", "_stddev")
"""What stands behind the name of a column where its cells are described."""


def counted_names(names: Iterable[str], columns: Mapping[str, Any]) -> dict[str, str]:
    """Return by derived column what is counted in its place; of those that follow from several columns alone.

    The cells of one that follows from one other column are those of that.
    """
    derived = (name for name in names if isinstance(columns.get(name), Derived) and len(columns[name].operands) > 1)
    return {name: copy for name in derived if (copy := copy_of(name, columns))}


def as_asked(written: Iterable[str], counted: Mapping[str, str]) -> dict[str, str]:
    """Return what columns of a table are called by the names that were asked for; ``counted``: as above."""
    names = {f"{copy}{figure}": f"{name}{figure}" for name, copy in counted.items() for figure in FIGURES}
    return {one: names.get(one, one) for one in written}
