"""Which pairs of columns a rule of the schema relates, or several do, or a formula: their relation is no finding.

Privacy: post-processing of a publishable report.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations, product
from typing import Any

from dpmodels.contract.remarks import FALLS_APART

EVERY_ROW = "must hold in every row"
"""What the gate says of a rule of a row."""
RULE = re.compile(rf"`(.+)` {EVERY_ROW}(?: of table (.+))?", re.DOTALL)
WHEN = re.compile(r"when (.+?) then (.+)", re.DOTALL)
BOTH = re.compile(r"(.+?)\s*(<=|>=|<|>)\s*(.+)", re.DOTALL)
SIGN = re.compile(r"\s*(<=|>=|!=|==|=|<|>)\s*(.+)", re.DOTALL)
OPPOSITE = {"!=": "=", ">": "<=", ">=": "<"}
"""Signs of conditions, and those of what holds where they do not."""
NOT = "not "
COMPUTED = re.compile(FALLS_APART.partition(" as the")[0].format(name="(.+?)", others="(.+?)") + " as the")
"""What a report says of a column that is computed as a table is read, and from which others."""
BY_RULE = "by a rule of the schema"
"""How pages and terminals call such a relation."""
Node = tuple[str, str]
"""A table, empty of one alone, and a condition on its columns, or one of them."""


def ruled_pairs(report: Mapping[str, Any]) -> frozenset[tuple[int, int]]:
    """Return the places of the columns that rules relate: both sides of ``a <= b``, and of ``when a ... then b``.

    Where one rule goes on where another ends, as ``a <= b`` and ``b <= c``, both together relate the first with the
    last; and formulas relate what is computed by them with what they reckon with. Two columns on one side of a rule are
    not related by it, nor are those that a derived column in it follows from; and where a rule needs two columns to
    say something of a third, it relates no two of them.
    """
    places = {one.get("name", ""): place for place, one in enumerate(report.get("columns", ()))}
    follows = dict[Node, set[Node]]()
    for check in report.get("gate", ()):
        for begin, end in _rules(str(check["rule"]), places):
            follows.setdefault(begin, set()).add(end)
    ends = {begin: _reached(follows, begin) for begin in follows}
    of_rules = ((_place(one, places), _place(other, places)) for one, some in ends.items() for other in some)
    both = [(one, other) for one, other in of_rules if one is not None and other is not None]
    return frozenset((min(pair), max(pair)) for pair in (*both, *_computed(report, places)) if len({*pair}) > 1)


def _reached(follows: Mapping[Node, Collection[Node]], begin: Node) -> set[Node]:
    """Return all that follows from a condition, by one rule or by several."""
    reached, further = set[Node](), [begin]
    while further:
        new = {*follows.get(further.pop(), ())} - reached
        reached |= new
        further += new
    return reached


def _rules(text: str, places: Mapping[str, int]) -> Iterator[tuple[Node, Node]]:
    """Yield what follows from what by a rule; nothing where a check is no rule of a row.

    What stands behind ``then`` follows from what stands behind ``when``; where it does not hold, that does not either.
    """
    if not (rule := RULE.fullmatch(text)):
        return
    table, words = rule[2] or "", rule[1].strip()
    if sides := WHEN.fullmatch(words):
        given, then = ([_as_condition(part, places, table) for part in one.split(" and ")] for one in sides.groups())
        if len({_place((table, one), places) for one in given}) > 1:
            return
        for one, other in product(given, then):
            yield (table, one), (table, other)
            yield (table, _opposite(other)), (table, _opposite(one))
    elif sides := BOTH.fullmatch(words):
        least, most = sides.group(1, 3) if "<" in sides[2] else sides.group(3, 1)
        yield (table, least.strip()), (table, most.strip())


def _as_condition(text: str, places: Mapping[str, int], table: str) -> str:
    """Write what is the same condition alike: ``not a = b`` for ``a != b``, and ``not a`` for ``a = false``."""
    bare = text.strip()
    name = max(_begins(bare, places, table), key=len, default="")
    match = SIGN.fullmatch(bare[len(name) :]) if name else None
    if not match:
        return bare
    sign, value = match[1].replace("==", "="), match[2].strip()
    if sign in ("=", "!=") and value in ("true", "false"):
        return name if (value == "true") is (sign == "=") else f"{NOT}{name}"
    return f"{NOT}{name} {OPPOSITE[sign]} {value}" if sign in OPPOSITE else f"{name} {sign} {value}"


def _opposite(condition: str) -> str:
    return condition.removeprefix(NOT) if condition.startswith(NOT) else f"{NOT}{condition}"


def _computed(report: Mapping[str, Any], places: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the places of columns of which one is computed from the other, or both from a third, as a report says."""
    related = dict[str, set[str]]()
    for match in filter(None, (COMPUTED.match(str(one)) for one in report.get("cautions", ()))):
        for source in re.split(", | and ", match[2]):
            related.setdefault(source, {source}).add(match[1])
    for names in related.values():
        yield from combinations([places[name] for name in names if name in places], 2)


def _place(node: Node, places: Mapping[str, int]) -> int | None:
    """Return the place of the column that a condition is about; None where the report has none of its name."""
    table, condition = node
    names = _begins(condition.removeprefix(NOT).strip(), places, table)
    return names[max(names, key=len)] if names else None


def _begins(bare: str, places: Mapping[str, int], table: str) -> dict[str, int]:
    """Return the names that a condition begins with, of columns of a table by what they are called there, too."""
    inside = f"{table}." if table else ""
    short = {name.removeprefix(inside): place for name, place in places.items() if name.startswith(inside)}
    return {
        name: place
        for name, place in {**places, **short}.items()
        if bare.startswith(name) and bare[len(name) :].lstrip()[:1] in ("", *"=!<>")
    }
