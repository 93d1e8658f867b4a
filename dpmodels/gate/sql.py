"""The rules of several columns as queries that count the rows which break them, for whoever checks a table by SQL."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpmodels.contract.columns import Datetime, Discrete, Integer
from dpmodels.contract.conditions import Condition
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.implications import Implication
from dpmodels.contract.schema import Schema

TABLE = "${table}"
"""Stands for the table in a query; a name with one of these signs would be taken for such a stand-in itself."""
STAND_IN = frozenset("${}")


def counting(rule: Constraint | Implication, columns: Mapping[str, Any]) -> str:
    """Return the query that counts rows which break a rule; empty where SQL reads a column otherwise than nacre does.

    As in nacre, a null keeps a rule unless a condition is about null: in SQL a comparison with null is neither true nor
    false, and ``WHERE`` counts what is true.
    """
    names = rule.columns if isinstance(rule, Implication) else (rule.lower, rule.upper)
    if any(_is_clock(columns[name]) or STAND_IN & set(name) for name in names):
        return ""
    if isinstance(rule, Constraint):
        sign = ">=" if rule.strict else ">"
        return f"SELECT COUNT(*) FROM {TABLE} WHERE {quoted(rule.lower)} {sign} {quoted(rule.upper)}"
    premises, then = (" AND ".join(map(_condition, side)) for side in (rule.premises, rule.then))
    query = f"SELECT COUNT(*) FROM {TABLE} WHERE {premises} AND NOT ({then})"
    return "" if STAND_IN & set(query.replace(TABLE, "")) else query


def compared(schema: Schema) -> list[Constraint | Implication]:
    """List the rules of several columns, of which a query may tell which rows break them."""
    return [*schema.rules, *schema.implications]


def quoted(name: str) -> str:
    """Write the name of a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _is_clock(column: Any) -> bool:
    """Tell whether a column is a time of day or a duration, which nacre compares as a number of its unit."""
    return isinstance(column, Integer) and column.resolved_dtype.startswith(("time", "duration"))


def _condition(one: Condition) -> str:
    name = quoted(one.name)
    if one.of_state and one.value == one.null:
        return f"{name} IS {'' if one.sign == '=' else 'NOT '}NULL"
    sign = "<>" if one.sign == "!=" else one.sign
    return f"{name} {sign} {_literal(one)}"


def _literal(one: Condition) -> str:
    if one.of_state and isinstance(one.column, Discrete):
        value = one.column.values[int(one.value)]
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return str(value).upper() if isinstance(value, bool) else repr(value)
    if isinstance(one.column, Datetime):
        ticks = np.array(one.value).astype(np.int64).astype(f"datetime64[{one.column.tick}]")
        return f"TIMESTAMP '{ticks.astype('datetime64[s]').item().isoformat()}'"
    return repr(int(one.value)) if float(one.value).is_integer() else repr(float(one.value))
