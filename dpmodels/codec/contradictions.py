"""Which rule of a schema no row can keep that meets the conditions of a draw, as single columns tell."""

from collections.abc import Mapping, Sequence

from dpmodels.contract.conditions import Condition, bounds, cell_shares
from dpmodels.contract.constraints import Constraint
from dpmodels.contract.implications import Implication
from dpmodels.contract.schema import Schema

By = Mapping[str, Sequence[Condition]]
"""Conditions by the column that they are on."""
LEAST = 1e-12
"""What float64 may leave of a share that is none."""


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
