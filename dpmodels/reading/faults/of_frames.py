"""Which column keeps a data frame from being read as a table."""

from collections.abc import Collection
from typing import Any

import numpy as np

from dpmodels.codec.convert import mixes
from dpmodels.codec.names import looks_like_a_name

ONE_TYPE = "give every column one type, that of the schema, as pandas.to_numeric does"
DROP_ONE = "leave one out, as in frame.loc[:, ~frame.columns.duplicated()]"


def at_fault(data: Any, columns: Collection[str]) -> str:
    """Say which column of a pandas DataFrame is there twice or mixes types, and the cure; nothing if it is unknown.

    Privacy: names of the schema alone are said, and of other columns where they stand.
    """
    if "pandas" not in libraries_of(data) or not hasattr(data, "columns"):
        return ""
    names, total = list(data.columns), len(data.columns)
    twice = [name for name in columns if names.count(name) > 1]
    if twice:
        return f"it has column {twice[0]} more than once; {DROP_ONE}"
    for index, name in enumerate(names):
        if mixes_types(data.iloc[:, index]):
            label = name if isinstance(name, str) and name in columns else f"number {index + 1} of {total}"
            return f"column {label} mixes types; {ONE_TYPE}"
    again = next((index for index, name in enumerate(names) if name in names[:index]), None)
    return "" if again is None else f"column number {again + 1} of {total} has the name of another; {DROP_ONE}"


def names_of(data: Any, affirmed: bool) -> Collection[str]:
    """Return the names of a frame that a message may hold: all that are names, as a draft would print them."""
    names = [name for name in getattr(data, "columns", ()) if isinstance(name, str)]
    return names if affirmed or all(map(looks_like_a_name, names)) else ()


def libraries_of(data: Any) -> set[str]:
    """Name the libraries that an object's classes are from."""
    return {kind.__module__.split(".")[0] for kind in type(data).__mro__}


def mixes_types(column: Any) -> bool:
    """Tell whether a column of pandas holds values of several types."""
    values = getattr(column.dtype, "categories", column)  # of a category column its values, each once
    return bool(values.dtype == np.dtype(object) and mixes(values))
