"""Groups as a schema lists them: the values of a column in the place of their texts, and in the order of the list."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dpmodels.contract.columns import EXACT, Derived, Discrete, names_of
from dpmodels.plural import OF_CATEGORIES
from dpmodels.report.derived.counted import NULL, named_value

if TYPE_CHECKING:
    import pandas as pd


def counts_with_values(counts: pa.Table, names: Sequence[str], columns: Mapping[str, Any]) -> pa.Table:
    """Return the counts of some columns with numbers and booleans in the place of what cells of these are called."""
    for name in names:
        values = _values_of(counts[name].to_pylist(), columns.get(name))
        if values is not None:
            counts = counts.set_column(counts.column_names.index(name), name, pa.array(values))
    return counts


def in_order(groups: "pd.DataFrame", names: Sequence[str], columns: Mapping[str, Any]) -> "pd.DataFrame":
    """Return groups by the columns that make them in turn, as the schema lists their values, nulls last.

    A group of several values stands where the first of these does. What is not listed keeps its order, and groups of
    which nothing is listed stay as they are.
    """
    if not any(_listed(columns.get(name)) for name in names):
        return groups
    ranks = [_ranks(groups[name].tolist(), columns.get(name)) for name in names]
    order = sorted(range(len(groups)), key=lambda row: [rank[row] for rank in ranks])
    return groups.iloc[order].reset_index(drop=True)


def with_values(groups: "pd.DataFrame", names: Sequence[str], columns: Mapping[str, Any]) -> "pd.DataFrame":
    """Return groups with numbers and booleans in the place of what those that are one value each are called."""
    values = {name: _values_of(groups[name].tolist(), columns.get(name)) for name in names}
    return groups.assign(**{name: each for name, each in values.items() if each is not None})


def _ranks(labels: Sequence[str], column: Any) -> list[int]:
    """Return the place of each group, by what it is called."""
    places = {label: place for place, label in enumerate(_listed(column) or dict.fromkeys(labels))}
    last = len(places)

    def rank(label: str) -> int:
        parts = [label] if label in places else label.split(OF_CATEGORIES)
        return min(places.get(part, last) for part in parts)

    return [last + 1 if label == NULL and NULL not in _listed(column) else rank(label) for label in labels]


def _values_of(labels: Sequence[str], column: Any) -> list[Any] | None:
    """Return the numbers or booleans that groups are called after; None where one of them is anything else."""
    listed = _listed(column)
    if not listed or not labels or any(isinstance(one, str) or abs(one) > EXACT for one in listed.values()):
        return None
    if not listed.keys() >= {*labels}:
        return None
    kind = float if any(isinstance(one, float) for one in listed.values()) else type(listed[labels[0]])
    return [kind(listed[label]) for label in labels]


def _listed(column: Any) -> dict[str, Any]:
    """Return the values that a column lists, or is looked up in, by what cells of them are called."""
    if isinstance(column, Discrete):
        return dict(zip(names_of(column), column.keys if column.kind == "number" else column.values, strict=True))
    listed = column.values if isinstance(column, Derived) else None
    return {named_value(value): value for value in (listed or {}).values()}
