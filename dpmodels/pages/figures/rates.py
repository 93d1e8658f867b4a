"""What the rates of a target by the groups of other columns say of these columns.

Privacy: post-processing of a publishable report.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from dpmodels.pages.figures.rate_groups import counting
from dpmodels.pages.figures.relations import Relation, likely_relations, relations
from dpmodels.pages.page import percent, percent_up

Facts = Mapping[str, Any]
NEAR, MIDDLE = 0.25, 0.5
"""Parts of a rate of all rows within which the rates of groups are of use, and beyond which they are of none."""
GIVEN, OPEN = 0.98, 0.95
"""Part of the rows whose class one column settles if it is said to give the target away; and the largest part that the
more frequent class may have, since a target that hardly varies is settled by any column."""
NULL = "null"
FEW_NULLS = 0.01
"""Share of rows with null for the target up to which a rate of all rows is that of the others."""


def worst_rate(rates: Facts) -> float:
    """Return within what the rates by a column are, in its two largest groups and every other that is not small."""
    return max((rates["within"][index] for index in counting(rates)), default=1.0)


def by_class(rates: Facts) -> list[dict[str, Any]]:
    """Return the rates of each class that a report states, the one by which columns are judged first.

    A report lists what every class has in common, such as the groups, with the first one alone.
    """
    others = [
        [{**first, **one} for first, one in zip(rates["columns"], other["columns"], strict=True)]
        for other in rates.get("others", ())
    ]
    names = [rates["class"], *(other["class"] for other in rates.get("others", ()))]
    return [
        {"target": rates.get("target"), "class": name, "columns": columns}
        for name, columns in zip(names, [rates["columns"], *others], strict=True)
    ]


def with_rows(rates: Facts) -> list[int]:
    """Return the places of the groups that have rows, as released: of no rows there is no rate."""
    return [index for index, share in enumerate(rates["share"]) if share > 0]


def spread_of(rates: Facts) -> float:
    """Return by how much the rates of the groups that count differ, as released or in the synthetic rows: the less."""
    spreads = [[one[index] for index in counting(rates)] for one in (rates["released"], rates["synthetic"])]
    return min(max(one, default=0.0) - min(one, default=0.0) for one in spreads)


def with_few(report: Facts) -> list[str]:
    """Name the columns of which a group has so few rows that its rate does not count for its column."""
    rates = report.get("rates") or {"columns": ()}
    few = [one for one in rates["columns"] if len(counting(one)) < len(one["share"])]
    return [report["columns"][one["column"]]["name"] for one in few]


def whole_rate(report: Facts) -> float:
    """Return how many of all synthetic rows have the class of the target whose rates a report states."""
    return class_share(report, report["rates"])


def released_rate(rates: Facts) -> float:
    """Return the rate of all rows that those of the groups of a column make up, as released."""
    first = rates["columns"][0]
    made_up = sum(share * rate for share, rate in zip(first["share"], first["released"], strict=True))
    return float(made_up / (sum(first["share"]) or 1.0))


def class_share(report: Facts, rates: Facts, of_values: bool = False) -> float:
    """Return how many of all synthetic rows, or of those that are not null, have the class that rates are of."""
    target = report["columns"][rates["target"]]
    share = float(target["synthetic"][target["labels"].index(rates["class"])])
    return share / not_null(target, "synthetic") if of_values else share


def not_null(column: Facts, figure: str) -> float:
    """Return the part of the rows in which a column is not null, ``synthetic`` or as ``released``."""
    nulls = column[figure][column["labels"].index(NULL)] if NULL in column["labels"] else 0.0
    return max(1.0 - nulls, 1e-9)


def giving_away(report: Facts) -> list[str]:
    """Name the columns by whose groups nearly all rows have one class of the target, as released.

    Whoever knows the group of a row guesses its class right in the sum of shares times the larger of rate and 1 - rate.
    """
    rates = report.get("rates")
    if not rates or max(whole := whole_rate(report), 1 - whole) > OPEN:
        return []
    return [report["columns"][one["column"]]["name"] for one in rates["columns"] if _settled(one) >= GIVEN]


def models_that_see(report: Facts, dropped: Collection[str], named: Callable[[Sequence[str]], str]) -> Iterator[str]:
    """Warn of models of the target that see what settles it, or what follows from it; ``named`` joins names."""
    rates = report.get("rates")
    if not rates:
        return
    target = report["columns"][rates["target"]]["name"]
    if giving := [name for name in giving_away(report) if name not in dropped]:
        one = "which" if len(giving) == 1 else "each of which"
        settles = f"{one} settles in {percent(GIVEN)} of the rows or more whether it is {rates['class']}"
        yield f"models of {target} that see {named(giving)}, {settles}"
    if following := [one["name"] for one in report.get("derived", ()) if target in one["follows"]]:
        yield f"models of {target} that see {named(following)}, which the schema derives from it"


def _settled(rates: Facts) -> float:
    """Return the part of the rows whose class is guessed right by their group, noise kept within 0 and 1."""
    parts = [max(share, 0.0) for share in rates["share"]]
    sure = [max(rate, 1 - rate) for rate in (min(max(one, 0.0), 1.0) for one in rates["released"])]
    return float(sum(part * one for part, one in zip(parts, sure, strict=True)) / (sum(parts) or 1.0))


def parts_of_rates(
    report: Facts, every: Mapping[tuple[int, int], Relation], likely: Collection[tuple[int, int]]
) -> tuple[dict[str, float], dict[str, float], set[str]]:
    """Return by column within what the target's rates are, as a part of what there is of its class, and as they are.

    Last come the columns of which noise would hide that the target depends on them.

    A rate of 4 % within 5 points says nothing, and one of 50 % much: parts of the lesser of the rate and what is left,
    or of what the groups differ by, where that is more: 1, 14 and 24 % are told apart within 5 points.
    Where noise would hide that the target depends on a column, its rates tell no group from another: they count as far.

    Args:
        report: one that states rates.
        every: the relations of its columns by their places.
        likely: the places of those that are not certain, and likely.
    """
    rates, whole = report["rates"], whole_rate(report)
    parts, worst, hidden = dict[str, float](), dict[str, float](), set[str]()
    for one in rates["columns"]:
        relation = every.get((min(one["column"], rates["target"]), max(one["column"], rates["target"])))
        is_seen = relation is None or relation.is_seen or relation.columns in likely
        name = report["columns"][one["column"]]["name"]
        hidden |= set() if is_seen else {name}
        worst[name], parts[name] = worst_rate(one), part_off(one, whole, is_seen)
    return parts, worst, hidden


def part_off(rates: Facts, whole: float, is_seen: bool = True) -> float:
    """Return within what the rates by a column are, as a part of what there is of the class; ``whole``: in all rows."""
    least = 0.0 if is_seen else math.nextafter(NEAR, 1)
    return max(least, worst_rate(rates) / max(min(whole, 1 - whole), spread_of(rates), 1e-300))


def why_not_good(rates: Facts, whole: float, is_seen: bool) -> str:
    """Say why the rates by a column are not good; empty where they are. The arguments are those of ``part_off``."""
    if not is_seen:
        return "noise and chance may make all that groups differ by"
    part = part_off(rates, whole)
    limit = next((words for most, words in ((MIDDLE, "half"), (NEAR, "a quarter")) if part > most), "")
    points = percent_up(worst_rate(rates))[:-1].strip()
    off = f"synthetic rates are within {points} points, more than {limit} of the rate of all rows"
    return f"{off} and of what groups differ by" if limit else ""


def hidden_rates(report: Facts) -> set[str]:
    """Name the columns of which noise would hide that the target depends on them."""
    return parts_of_rates(report, relations(report), likely_relations(report))[2]


def without_outcome(report: Facts) -> str:
    """Say that rows with null for the target count in its rates, and how many these are; nothing where they are few."""
    target = report["columns"][report["rates"]["target"]] if report.get("rates") else {"labels": ()}
    shares = dict(zip(target["labels"], target.get("synthetic", ()), strict=True))
    if (share := shares.get("null", 0.0)) < FEW_NULLS:
        return ""
    return (
        f"A rate is a part of all rows, and {percent(share)} of the synthetic ones have null for {target['name']}: of "
        "the others it is larger, and a group that has fewer nulls has the larger rate for that alone."
    )
