"""Check the derived columns of a report: they are the schema's, and what they are within follows from other figures."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from dpmodels.contract.columns import copy_of
from dpmodels.contract.derivation.derived import Derived
from dpmodels.contract.derivation.reach import reach
from dpmodels.contract.schema import Schema
from dpmodels.hand_off.columns.check_columns import LABEL, REQUIRED, STATES, WITHIN, is_drawn
from dpmodels.hand_off.columns.figures import are_figures
from dpmodels.pages.notes import COUNTED_AS
from dpmodels.releases.contract import Contract, table_of

Facts = Mapping[str, Any]
NEEDED = REQUIRED | {"follows"}
ROUNDED = 1e-4
"""By how much shares may miss a sum of 1 by their rounding."""


def are_derived(report: Facts, contract: Contract) -> bool:
    """Tell whether derived columns are a contract's, each once, and are called and within what nacre says."""
    if "derived" not in report:
        return True
    columns = report["derived"]
    names = [one["name"] for one in columns]
    return bool(columns) and len({*names}) == len(names) and all(_is_derived(one, report, contract) for one in columns)


def _is_derived(facts: Facts, report: Facts, contract: Contract) -> bool:
    """Tell whether facts are of a derived column: what it follows from, labels of its values, and figures."""
    from dpmodels.report.derived.means import FIGURES, known_means
    from dpmodels.report.derived.shares import IN_GROUPS, TO_COUNTED, changed_in, known_within
    from dpmodels.report.report import table_of_column
    from dpmodels.report.verdicts import verdict

    tree, table, name = contract if contract.kind == "tree" else None, facts.get("table"), facts["name"]
    if tree is None and table != table_of_column(contract, name).get("table"):
        return False
    prefix = f"{table}." if tree else ""
    schema = tree.schema_of(str(table)) if tree else table_of(contract)
    column = schema.derived[name.removeprefix(prefix)]
    distances = (report["pairs"] or {}).get("distances", ())
    copy = copy_of(name.removeprefix(prefix), schema.columns)
    known = known_within(column, report["columns"], distances, facts, prefix, copy)
    may_have = {"axis", "table", "changed", COUNTED_AS, IN_GROUPS, TO_COUNTED, *FIGURES}
    within = {key: facts[key] for key in facts.keys() & WITHIN}
    figures = {key: facts[key] for key in facts.keys() & {*FIGURES}}
    return (
        name.startswith(prefix)
        and NEEDED <= facts.keys() <= NEEDED | may_have | WITHIN
        and (facts["type"], facts["follows"]) == ("derived", [prefix + one for one in column.operands])
        and {key: facts[key] for key in facts.keys() & {"changed"}} == changed_in(column, schema.columns, prefix)
        and within in ({}, known)  # nothing is said of one that is null where what it follows from is there
        and (
            figures in ({}, known_means(column, report["columns"], prefix))
            or _is_counted(facts, column, schema, report)
        )
        and (COUNTED_AS not in facts or (bool(copy) and facts[COUNTED_AS] == prefix + copy))
        and (TO_COUNTED not in facts or (bool(copy) and _is_share(facts[TO_COUNTED])))
        and (IN_GROUPS not in facts or _is_of_groups(facts[IN_GROUPS], column, schema, contract))
        and _are_shares(facts, column)
        and (facts.get("axis") is None or (facts["ordered"] and is_drawn(facts["axis"])))
        and facts["verdict"] == verdict(facts)
    )


def _is_counted(facts: Facts, column: Derived, schema: Schema, report: Facts) -> bool:
    """Tell whether a mean may be stated by counts, and lies with all that is said of it where the formula reaches."""
    from dpmodels.report.derived.means import has_counted_mean, of_copy

    copy = copy_of(str(facts["name"]), schema.columns)
    is_copied = bool(copy) and has_counted_mean(column, schema.columns, report["columns"], copy)
    may_be = is_copied or has_counted_mean(column, schema.columns, report["columns"])
    beside = {key: facts[key] for key in facts.keys() & {"unseen", "p99"}}
    is_beside = is_copied and beside == of_copy(next(one for one in report["columns"] if one["name"] == copy))
    if not may_be or "mean" not in facts or ("p99" in facts and not is_beside):
        return False
    low, high = reach(str(column.formula), schema.columns)
    slack = ROUNDED * max(1.0, abs(low), abs(high))
    unseen, mean = facts.get("unseen", {}), {**facts["mean"]}
    if unseen.get("open"):
        mean["expected_error"] = mean.pop("expected_error_if_thinning_out", None)
    if mean.keys() != {"estimate", "expected_error", "synthetic", "synthetic_stddev"}:
        return False
    ends = unseen.get("means", ())
    values = [mean["estimate"], mean["synthetic"], *ends]
    errors = [mean["expected_error"], mean["synthetic_stddev"]]
    return (
        unseen.keys() in (set(), {"means"}, {"means", "far"}, {"means", "open"})
        and all(unseen[key] is True for key in unseen.keys() - {"means"})
        and all(type(one) in (int, float) and math.isfinite(one) for one in (*values, *errors))
        and len(ends) == 2 * ("unseen" in facts)
        and list(ends) == sorted(ends)
        and errors[0] > 0 <= errors[1]
        and all(low - slack <= one <= high + slack for one in values)
    )


def _is_of_groups(moved: Any, column: Derived, schema: Schema, contract: Contract) -> bool:
    """Tell whether values may be said to move so far in groups of two columns."""
    from dpmodels.report.derived.shares import is_of_two

    is_alone = contract.is_table and not contract.users
    return is_alone and _is_share(moved) and is_of_two(column, schema.columns)


def _is_share(number: Any) -> bool:
    return type(number) in (int, float) and 0 <= number <= 1


def _are_apart(labels: Sequence[str]) -> bool:
    return len({*labels}) == len(labels)


def _are_shares(facts: Facts, column: Derived) -> bool:
    """Tell whether a derived column has a share for each label, all together 1, and labels of its own values."""
    from dpmodels.report.derived.shares import names_of_values

    labels, shares, ordered = facts["labels"], facts["synthetic"], facts["ordered"]
    named = {*names_of_values(column), "null"}
    of_values = len(labels) - (ordered is True) * sum(one in STATES for one in labels)
    return (
        are_figures(shares)
        and all(type(one) in (int, float) and 0 <= one <= 1 for one in shares)
        and abs(sum(shares) - 1) <= ROUNDED
        and len(labels) == len(shares)
        and _are_apart([one for one, _ in groupby(labels)] if ordered else labels)  # neighbors may read alike, as 24.17
        and type(ordered) is bool
        and (column.formula is not None or not ordered)
        and type(facts["values"]) is int
        and facts["values"] == of_values
        and all(one in named or (column.formula and LABEL.fullmatch(one)) for one in labels)
    )
