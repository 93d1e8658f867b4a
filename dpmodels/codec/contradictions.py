"""Conditions of a draw that no row can meet: by the values of a column, or by a rule of the schema."""

from collections.abc import Mapping, Sequence

from dpmodels.contract.columns import Discrete, names_of
from dpmodels.contract.conditions import Condition, bounds, cell_shares
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.implications import Implication
from dpmodels.contract.schema import Schema

By = Mapping[str, Sequence[Condition]]
"""Conditions by the column that they are on."""
LEAST = 1e-12
"""What float64 may leave of a share that is none."""
LISTED = 12
"""Values of a column that a message lists at most."""


def unmet(conditions: Sequence[Condition]) -> str:
    """Say that no value of a column meets the conditions on it, and which values there are; or nothing.

    ``conditions`` are those on one column.
    """
    column, name = conditions[0].column, conditions[0].name
    if cell_shares(conditions, column).any():
        return ""
    texts = list(dict.fromkeys(f"`{one.text}`" for one in conditions))
    these = "this" if len(texts) == 1 else "these together"
    fault = f"{' and '.join(texts)}: no value of column {name} meets {these}"
    if not isinstance(column, Discrete):
        return f"{fault}; a value {column.rule}"
    names = names_of(column)
    beyond = f", {len(names) - LISTED - 1} more and {names[-1]}" if len(names) > LISTED + 1 else ""
    return f"{fault}; it has {', '.join(names[:LISTED] if beyond else names)}{beyond}"


def contradicted(schema: Schema, conditions: Sequence[Condition]) -> Constraint | Implication | None:
    """Return a rule that every row breaks which meets the conditions; None where none is evident."""
    by = {name: [one for one in conditions if one.name == name] for name in {one.name for one in conditions}}
    for rule in schema.implications:
        if all(_is_met(one, by) for one in rule.premises) and any(_is_missed(one, by) for one in rule.then):
            return rule
    for pair in schema.rules:
        if {pair.lower, pair.upper} <= by.keys() and bounds(by[pair.lower])[0] > bounds(by[pair.upper])[1]:
            return pair
    return None


def _is_met(premise: Condition, by: By) -> bool:
    """Tell whether every value that meets the conditions on its column meets a premise."""
    given = by.get(premise.name, ())
    if not given:
        return False
    shares, both = (cell_shares(several, premise.column) for several in (given, [*given, premise]))
    return bool((both >= shares - LEAST).all())


def _is_missed(then: Condition, by: By) -> bool:
    """Tell whether no value that meets the conditions on its column keeps what a rule asks; a null may keep it."""
    given = by.get(then.name, ())
    is_null = any(one.of_state and one.value == one.null and one.sign == "=" for one in given)
    if not given or (is_null and not (then.of_state and then.value == then.null)):
        return False
    return not cell_shares([*given, then], then.column).any()
