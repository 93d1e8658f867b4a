"""Check that a report doubts its figures where others of its figures say that they are to be doubted.

A column that noise leaves open says so, and so does each mean by groups of it; a mean whose error hides what groups
differ by has its reason. Whoever leaves a doubt out makes a figure look sure.
"""

from collections.abc import Mapping
from typing import Any

from dpmodels.contract.columns import Datetime, Modelled
from dpmodels.contract.schema import Schema

Facts = Mapping[str, Any]
HIDDEN = {"mean": "open", "p99": "quantile"}
"""What a report says to be hidden of a figure that has no error but on terms."""
SHRUNK = 0.98
"""What is left of an interval whose rounding might decide on which side of a limit it is."""


def has_its_doubts(facts: Facts, column: Modelled) -> bool:
    """Tell whether facts of a column say to use none of the figures that its errors leave open, and why."""
    if "released" not in facts:
        return "avoid" not in facts
    errors = {key: facts[key] for key in ("mean", "p99", "unseen") if key in facts} if "mean" in facts else {}
    if ("resolved" in facts) > ("warning" in facts):
        return False
    return _are_hidden(errors) and _is_said(facts, column, errors) and _is_crowd_said(facts)


def _are_hidden(errors: Facts) -> bool:
    """Tell whether exactly those figures have no error that noise leaves open."""
    unseen = errors.get("unseen", {})
    return all(
        (errors[key].get("expected_error") is None) == bool(unseen.get(why)) for key, why in HIDDEN.items() if errors
    )


def _is_said(facts: Facts, column: Modelled, errors: Facts) -> bool:
    from dpmodels.report.warned import FIGURES, ONE_CELL, doubt

    doubted, warning = doubt(column, errors), facts.get("warning", "")
    avoided = [*facts.get("avoid", ())]
    if avoided == [*FIGURES[:2]] and warning.startswith(_capital(ONE_CELL)):
        return "open" not in errors.get("unseen", {})
    if doubted is None:
        return not avoided
    return avoided == [*doubted.figures] and warning.startswith(_capital(doubted.sentence))


def _is_crowd_said(facts: Facts) -> bool:
    """Tell whether a column of which too much was counted together has a warning, and is said to be unresolved."""
    from dpmodels.report.largest import MOST_WITHIN

    together = facts.get("counted_together", {}).get("distance_within", 0.0)
    return together <= MOST_WITHIN or ("warning" in facts and "resolved" not in facts)


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def are_doubted(means: Facts, report: Facts, table: Schema) -> bool:
    """Tell whether means by groups have reasons to distrust them where their column, or their intervals, give some."""
    from dpmodels.report.groups.means import is_doubted, reasons_of
    from dpmodels.report.groups.reconciled import ends_of_values

    known = [one for one in means["groups"] if one["released"] is not None]
    if all(one["reason"] for one in known):
        return True
    if is_doubted(report, means["column"], table.columns):
        return all(one["reason"] or one["within"] == 0 for one in known)
    if _is_dated(means["column"], table):
        return True
    figures = [[one[key] for one in known] for key in ("released", "within")]
    reasons = reasons_of(
        figures[0], [SHRUNK * one for one in figures[1]], ends_of_values(table.columns, means["column"])
    )
    return all(one["reason"] or not reason for one, reason in zip(known, reasons, strict=True))


def _is_dated(name: str, table: Schema) -> bool:
    """Tell whether the means of a column are dates, which are held beside all that was counted, and not beside 0."""
    from dpmodels.contract.formula import moment_of

    column: Any = table.columns[name]
    formula = getattr(column, "formula", None)
    return isinstance(column, Datetime) or (formula is not None and moment_of(formula, table.columns) is not None)
