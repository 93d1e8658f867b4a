"""How large a table may be for which a method ends in a time that somebody waits."""

from dpmodels.contract.columns import Categorical
from dpmodels.contract.schema import Schema
from dpmodels.limits import MOST_COLUMNS, MOST_VALUES


def size_fault(schema: Schema) -> str:
    """Say which limit a table passes, by its columns or by the values that they list; empty if it passes none."""
    listed = {name: len(column.values) for name, column in schema.columns.items() if isinstance(column, Categorical)}
    if len(schema.columns) > MOST_COLUMNS:
        return (
            f"has {len(schema.columns):,} columns, and a run takes {MOST_COLUMNS:,} at most: leave out of the schema "
            "and the data what nobody will ask for"
        )
    if sum(listed.values()) > MOST_VALUES:
        longest = max(listed, key=lambda name: listed[name])
        return (
            f"list {sum(listed.values()):,} values, {listed[longest]:,} of them in {longest}, and a run takes "
            f"{MOST_VALUES:,} at most: list the frequent ones, and one for all others (`outside: other`)"
        )
    return ""
