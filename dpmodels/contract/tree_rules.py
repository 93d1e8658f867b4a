"""Rules of the rows of a tree of tables: between columns of one table, and with columns of the tables above it.

A rule stands with the table whose rows keep it, and names a column of that table as it is called there. Every column
may be named as flat tables do, with its table:

    date <= paid                 two columns of the table
    date >= account.date         a column of the table, and one of a table above
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from dpmodels.contract.conditions import Condition
from dpmodels.contract.constraints import Constraint, constraint_faults
from dpmodels.contract.implications import AND, THEN, WHEN, Implication, is_implication


@dataclass(frozen=True)
class NamedRule:
    """A rule with every column named in one way: as in flat tables, and as in its own table if it is of that alone."""

    flat: str
    alone: str | None


def named_rules(
    texts: Sequence[str], table: str, columns: Mapping[str, Any], above: Mapping[str, Any]
) -> list[NamedRule]:
    """Name the columns of rules that have no faults; arguments as of ``rule_faults``."""
    return [_named(text, table, columns, above) for text in texts]


def rule_faults(
    texts: Sequence[str], table: str, columns: Mapping[str, Any], above: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """List what is wrong with the rules of a table, as (place in the table, message).

    Args:
        texts: of the rules.
        table: whose rows keep them.
        columns: of this table, by the names that they have there.
        above: columns of the tables above it, by table and column.
    """
    flat = {**_flat(table, columns), **above}
    both = {**columns, **flat}
    if faults := constraint_faults(texts, both):
        yield from faults
        return
    for index, text in enumerate(texts):
        if twice := [name for name in _names(text, both) if name in columns and name in flat]:
            yield f"constraints.{index}", f"`{text}` may mean two columns by `{twice[0]}`: rename that of this table"
            return
    rules = named_rules(texts, table, columns, above)
    yield from constraint_faults([rule.flat for rule in rules], flat)
    for index, text in enumerate(texts):
        if not any(name in columns or name in _flat(table, columns) for name in _names(text, both)):
            yield (
                f"constraints.{index}",
                f"`{text}` names no column of this table; write it with the table that has one",
            )


def _flat(table: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{table}.{name}": column for name, column in columns.items()}


def _read(text: str, columns: Mapping[str, Any]) -> Implication | Constraint:
    """Read a rule whose faults were listed before."""
    return Implication.parse(text, columns) if is_implication(text) else cast(Constraint, Constraint.parse(text))


def _names(text: str, columns: Mapping[str, Any]) -> tuple[str, ...]:
    rule = _read(text, columns)
    return rule.columns if isinstance(rule, Implication) else (rule.lower, rule.upper)


def _named(text: str, table: str, columns: Mapping[str, Any], above: Mapping[str, Any]) -> NamedRule:
    flat = {**_flat(table, columns), **above}
    names = {name: name if name in flat else f"{table}.{name}" for name in (*columns, *flat)}
    alone = {name: name.removeprefix(f"{table}.") for name in flat if name not in above}
    rule = _read(text, {**columns, **flat})
    written = _renamed(rule, names)
    return NamedRule(
        written, _renamed(_read(written, flat), alone) if set(_names(written, flat)) <= alone.keys() else None
    )


def _renamed(rule: Implication | Constraint, names: Mapping[str, str]) -> str:
    if isinstance(rule, Constraint):
        return str(Constraint(names[rule.lower], names[rule.upper], rule.strict))
    sides = (AND.join(_condition(one, names) for one in side) for side in (rule.premises, rule.then))
    return WHEN + THEN.join(sides)


def _condition(one: Condition, names: Mapping[str, str]) -> str:
    """Write a condition with another name of its column, which stands first or after ``not``."""
    before = "not " if one.text == f"not {one.name}" else ""
    return before + one.text.removeprefix(before).replace(one.name, names[one.name], 1)
