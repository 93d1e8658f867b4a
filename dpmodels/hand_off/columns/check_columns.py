"""Check the columns of a report: they are the schema's, in its order, and their labels are of their values."""

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from dpmodels.clock import clock_of
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.contract.schema import Schema
from dpmodels.hand_off.columns.check_doubts import has_its_doubts
from dpmodels.hand_off.columns.figures import are_figures, ascend, has_figures, is_number
from dpmodels.pages.figures.relations import GROUPS
from dpmodels.releases.contract import Contract
from dpmodels.report.within import NAMED

Facts = Mapping[str, Any]
VALUE = r"[-+0-9:.,e ]{1,40}"
LABEL = re.compile(rf"{VALUE}( to {VALUE})?|exactly 0|null")
"""What is written of a cell of an interval: its values, or the state that it stands for."""
STATES = ("exactly 0", "null")
MORE = re.compile(r"[0-9,]{1,20} more")
"""What is written of the categories of a group that are not named."""
TICK = re.compile(VALUE)
NOTE = re.compile(
    r"share per (bar of a logarithmic axis|[-+0-9.,e]{1,20}|([-+0-9.,e]{1,20} )?(day|hour|minute|second)s?)"
)
AXIS, LARGEST, TOGETHER = {"edges", "bars", "beyond"}, {"share"}, {"members", "of", "into", "share", "distance_within"}
FIGURES = {"values", "ordered", "synthetic", "released", "released_stddev", "cells", "expected_error_of_a_share"}
FIGURES |= {"expected_distance", "expected_rank_distance", "distance_to_release", "rank_distance_to_release"}
FIGURES |= {"noise_distance_95", "noise_rank_distance_95", "rank_distance_in_a_cell", "clipped", "resolved", "clock"}
WITHIN = {"shares_within", "quantiles_within"}
FIGURES |= WITHIN
REQUIRED = {"name", "type", "labels", "values", "ordered", "synthetic", "verdict"}
ERRORS = {"estimate", "expected_error", "expected_error_if_thinning_out"}
OF_MEAN = ERRORS | {"synthetic", "synthetic_stddev"}
UNSEEN = {"records", "share", "means", "open", "far", "quantile", "quantiles"}
WORDS = {"axis", "largest_cell", "counted_together", "mean", "p99", "unseen", "warning", "avoid", "discovered_bounds"}
WORDS |= {"table", "ranges"}


def are_columns(columns: Any, table: Schema, contract: Contract, later: bool = False) -> bool:
    """Tell whether the columns of a report are those of a table that are modeled, as nacre describes them.

    ``later``: a later version made it, which may warn in other words.
    """
    return len(columns) == len(table.modelled) and all(
        _is_column(facts, name, column, contract, later)
        for facts, (name, column) in zip(columns, table.modelled.items(), strict=True)
    )


def _is_column(facts: Facts, name: str, column: Modelled, contract: Contract, later: bool) -> bool:
    """Tell whether facts are of a column: its name and type, labels of its values, and figures."""
    from dpmodels.hand_off.check_warnings import is_warning
    from dpmodels.report.report import table_of_column
    from dpmodels.report.verdicts import verdict
    from dpmodels.report.warned import FIGURES as DOUBTED
    from dpmodels.report.warned import discovered_bounds

    return (
        REQUIRED <= facts.keys() <= REQUIRED | FIGURES | WORDS
        and (facts["name"], facts["type"]) == (name, getattr(column, "type", ""))
        and all(are_figures(facts[key]) for key in facts.keys() & FIGURES)
        and are_figures(facts.get("mean", {}), OF_MEAN)
        and are_figures(facts.get("p99", {}), ERRORS)
        and are_figures(facts.get("unseen"), UNSEEN)
        and facts.get("clock", 0) == clock_of(column)
        and facts["ordered"] is isinstance(column, Continuous)
        and _are_labels(facts["labels"], column)
        and type(facts["values"]) is int
        and facts["values"] == len(facts["labels"]) - facts["ordered"] * sum(one in STATES for one in facts["labels"])
        and all(LABEL.fullmatch(one) for each in facts.get("ranges", ()) for one in each.split(" or "))
        and _is_axis(facts.get("axis"), column)
        and _are_cells(facts, column)
        and ("warning" not in facts or is_warning(facts["warning"], later))
        and set(facts.get("avoid", ())) <= set(DOUBTED)
        and (later or has_its_doubts(facts, column))
        and facts.get("discovered_bounds", []) == discovered_bounds(column, name, contract)
        and facts["verdict"] == verdict(facts)
        and {key: facts[key] for key in facts.keys() & {"table"}} == table_of_column(contract, name)
    )


def _are_labels(labels: Any, column: Modelled) -> bool:
    """Tell whether labels are those of a column's states, or are written as values of its interval are."""
    from dpmodels.report.bins import Bins

    if not isinstance(column, Continuous):
        return bool(labels == list(Bins.of(column).labels))
    return isinstance(labels, list) and all(LABEL.fullmatch(one) for one in labels)


def are_groups(
    groups: Any, column: Modelled, labels: Sequence[str], categories: int = GROUPS, ranges: int = GROUPS
) -> bool:
    """Tell whether groups of a column's values are called after these, as ``group_labels`` does; ``labels``: of all.

    Of an interval each group has a range at most, and the states without a value; of categories the first ones, and
    how many more there are. No group has nothing; there are so many of ``categories``, or of ``ranges``, at most.
    """
    most = ranges + len(STATES) if isinstance(column, Continuous) else categories
    if not isinstance(groups, list) or not 0 < len(groups) <= most or not all(map(_is_group, groups)):
        return False
    named = list(chain.from_iterable(groups))
    if isinstance(column, Continuous):
        of_values = [[one for one in group if one not in STATES] for group in groups]
        known = set(named) & set(STATES) <= set(labels) and len(set(named)) == len(named)
        return known and all(len(one) <= 1 and all(map(LABEL.fullmatch, one)) for one in of_values)
    return all(set(group[:NAMED]) <= set(labels) and all(map(MORE.fullmatch, group[NAMED:])) for group in groups)


def _is_group(group: Any) -> bool:
    return isinstance(group, list) and 0 < len(group) <= NAMED + 1 and all(isinstance(one, str) for one in group)


def _is_axis(axis: Any, column: Modelled) -> bool:
    """Tell whether an axis is one of numbers or moments."""
    return axis is None or (isinstance(column, Continuous) and is_drawn(axis))


def is_drawn(axis: Any) -> bool:
    """Tell whether an axis has numbers or moments beneath it."""
    return (
        has_figures(axis, AXIS, "ticks", "note")
        and NOTE.fullmatch(axis["note"]) is not None
        and all(is_number(at) and TICK.fullmatch(label) for at, label in axis["ticks"])
        and ascend(axis["edges"])
        and is_number(axis["bars"])
        and is_number(axis["beyond"])
    )


def _are_cells(facts: Facts, column: Modelled) -> bool:
    """Tell whether the largest cell and those that were counted together are called what nacre calls them."""
    largest, together = facts.get("largest_cell"), facts.get("counted_together")
    what = "intervals" if isinstance(column, Continuous) else "categories"
    known = largest is None or (
        has_figures(largest, LARGEST | (largest.keys() & {"part_of_range"}), "label")
        and (bool(LABEL.fullmatch(largest["label"])) if what == "intervals" else largest["label"] in facts["labels"])
    )
    return known and (together is None or (has_figures(together, TOGETHER, "what") and together["what"] == what))
