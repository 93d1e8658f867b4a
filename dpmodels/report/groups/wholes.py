"""Means of all rows that agree: with those by groups, which all tables tell, with formulas, and with each other.

The counts of an amount alone reach far, so noise far out moves its mean; beside a category it is counted in fewer
ranges, of which many are empty by group. What the groups make up is a second estimate of the mean of all rows, with an
error of its own, and each table has one. The one with the least error is stated, and the groups of all tables make it
up. No average is, since all tables take values to lie alike in a cell, so that their errors are not independent.

Privacy: post-processing of released counts, public noise scales and the public schema.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dpmodels.contract.columns import Derived, copy_of
from dpmodels.contract.constraints import Constraint
from dpmodels.report.derived.means import known_means
from dpmodels.report.derived.possible import Rules
from dpmodels.report.groups.cells import Inside
from dpmodels.report.groups.means import Measured, Term
from dpmodels.report.groups.reconciled import MeanOfAll, errors_of_groups, reconciled, related
from dpmodels.statistics.digits import beside

Facts = Mapping[str, Any]


def of_all_tables(
    alone: Mapping[str, MeanOfAll], pairs: Iterable[tuple[str, str]], measured: Callable[[str, str], Measured | None]
) -> dict[str, MeanOfAll]:
    """Return means of all rows, each by the table that tells it best, of those that several tables tell.

    Args:
        alone: what the counts of each amount tell by themselves.
        pairs: amounts, and columns by whose groups they are measured.
        measured: returns the means of an amount by a column; None where there are none.
    """
    every = {name: [one] for name, one in alone.items()}
    for name, by in pairs:
        if name in every and (means := measured(name, by)) and not means.is_dated:
            every[name] += [one] if (one := _made_up(means.whole)) else []
    together = dict[str, MeanOfAll]()
    for name, told in every.items():
        if len(told) > 1:
            together[name] = min(told, key=lambda one: one.error)._replace(is_exact=True)
    return together


def _made_up(term: Term) -> MeanOfAll | None:
    """Return the mean of all rows that groups make up; None where that of one is not known."""
    groups, counts = term.groups, term.groups["count"].clip(lower=0.0)
    if not len(groups) or not counts.sum() > 0 or groups["mean"].isna().any():
        return None
    means, off = np.asarray(groups["mean"], dtype=np.float64), np.asarray(groups["off"], dtype=np.float64)
    shares = np.asarray(counts / counts.sum(), dtype=np.float64)
    mean = float(shares @ means)
    errors = shares * errors_of_groups(groups), off * (means - mean) / float(counts.sum())
    error = math.sqrt(sum(float(one @ one) for one in errors))
    return MeanOfAll(mean, error) if math.isfinite(mean) and math.isfinite(error) and error > 0 else None


def wholes_of(facts: Facts, names: Collection[str], columns: Mapping[str, Any]) -> dict[str, MeanOfAll]:
    """Return the means of all rows that a report states, each with its standard error as values thin out.

    That of a column which is counted beside is that of its counts, whose error is no more than noise and ranges. Those
    that all tables tell together (``wholes`` of the report) are exact: groups make them up.
    """
    stated, wholes, together = dict[str, Facts](), dict[str, MeanOfAll](), facts.get("wholes", {})
    for one in (*facts.get("columns", ()), *facts.get("derived", ())):
        if one["type"] != "datetime":
            stated[one["name"]] = one.get("mean", {})
    for name in names:
        mean = stated.get(copy_of(name, columns)) or stated.get(name, {})
        error = mean.get("expected_error") or mean.get("expected_error_if_thinning_out")
        if error:
            wholes[name] = MeanOfAll(float(mean["estimate"]), float(error))
        if name in together:
            wholes[name] = MeanOfAll(float(together[name][0]), float(together[name][1]), is_exact=True)
    return wholes


def agreeing(
    derived: Sequence[Facts],
    measured: Sequence[Facts],
    columns: Mapping[str, Any],
    pairs: Sequence[Constraint],
    known: Collection[str] = (),
) -> list[dict[str, Any]]:
    """Return what a report says of derived columns, with means of all rows that agree with each other.

    Those move that are counted by themselves, each by no more than it is off; what follows from stated means stays, and
    so do columns that are handed over as they were counted, of which parts make up the whole.

    Args:
        derived: the columns that follow from others.
        measured: the others.
        columns: those of the schema.
        pairs: the rules of two columns.
        known: derived columns whose means agree already, as all tables tell them.
    """
    stated, agreed = wholes_of({"columns": measured, "derived": derived}, [*columns], columns), list[dict[str, Any]]()
    for one in derived:
        name, is_free = one["name"], "mean" in one and one["name"] not in known
        if not is_free or name not in stated or known_means(columns[name], measured):
            agreed.append({**one})
            continue
        moved = _agreed(name, stated, columns, pairs)
        agreed.append({**one, "mean": {**one["mean"], "estimate": beside(moved, stated[name].error)}})
    return agreed


def made_to_agree(
    wholes: Mapping[str, MeanOfAll], columns: Mapping[str, Any], pairs: Sequence[Constraint]
) -> dict[str, MeanOfAll]:
    """Return means of all rows of which those of derived columns are what formulas make of the others."""
    return {
        name: one._replace(mean=_agreed(name, wholes, columns, pairs)) if isinstance(columns[name], Derived) else one
        for name, one in wholes.items()
    }


def _agreed(
    name: str, stated: Mapping[str, MeanOfAll], columns: Mapping[str, Any], pairs: Sequence[Constraint]
) -> float:
    """Return the mean of a derived column that agrees with others, moved by no more than it is off."""
    mean, error, _ = stated[name]
    others = [other for other in related(name, columns, pairs) if other in stated]
    every = {other: _of_all(stated[other], isinstance(columns[other], Derived)) for other in others}
    if len(every) < 2:
        return mean
    try:  # no mean is worth a hand-off that was paid for
        inside = Inside(Rules((), pairs, columns, {}), [])
        moved = float(reconciled(every, {}, columns, inside).groups["mean"].iloc[0])
    except (ValueError, ArithmeticError):
        return mean
    return min(max(moved, mean - error), mean + error)


def _of_all(one: MeanOfAll, can_move: bool) -> Measured:
    """Return the mean of all rows as that of one group, exact if it cannot move."""
    import pandas as pd

    noise = one.error if can_move else 0.0
    figures = {"count": 1.0, "mean": one.mean, "noise": noise, "inside": 0.0, "shift": 0.0, "off": 0.0}
    term = Term(pd.DataFrame([figures]), one.mean, one.mean)
    return Measured(term, [("", term)], is_dated=False)
