"""Which of the formulas that a raw table breaks is the cause of others: those that name it are broken with it."""

from collections.abc import Iterator, Sequence

from dpmodels.gate.suite import Rule
from dpmodels.plural import listed

AND_FOLLOWING = ", and what follows from it: {names}"


def first_causes(rules: Sequence[Rule]) -> Iterator[tuple[Rule, str]]:
    """Yield the broken rules that no other one explains, with what to say of the columns that follow from theirs.

    A column that follows from several broken ones stands with the first of them.
    """
    of = {rule.column: rule.operands for rule in rules if rule.is_formula}
    causes = {name: _first_of(name, of) for name in of}
    for rule in rules:
        if not rule.is_formula:
            yield rule, ""
        elif causes[rule.column] == rule.column:
            names = [name for name, first in causes.items() if first == rule.column != name]
            yield rule, AND_FOLLOWING.format(names=listed(names, "and")) if names else ""


def _first_of(name: str, operands: dict[str, tuple[str, ...]]) -> str:
    """Return the broken column that a broken one follows from in the end; itself where it follows from none."""
    seen = set[str]()
    while name not in seen and (before := next((one for one in operands[name] if one in operands), "")):
        seen.add(name)
        name = before
    return name
