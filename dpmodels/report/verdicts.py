"""One verdict for each column, and the headline of a report: what pages, terminals and programs say is made of these.

A verdict is a function of the other facts of a report, so whoever checks a hand-off makes it again.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dpmodels.pages.by_column import not_for
from dpmodels.pages.figures.labels import group_name
from dpmodels.pages.figures.means import doubted_figures
from dpmodels.pages.figures.named import listed
from dpmodels.pages.figures.open_means import IF_THIN
from dpmodels.pages.figures.relations import Relation, relations
from dpmodels.pages.figures.ruled import BY_RULE
from dpmodels.pages.glance import fits, likely_error, likely_of_pair, rank_error, unresolved
from dpmodels.pages.notes import not_handed_over
from dpmodels.pages.page import percent, percent_up
from dpmodels.plural import counted
from dpmodels.plural import listed as joined

Facts = Mapping[str, Any]
CLOSE = 0.05
"""Distance up to which a column, or two columns together, are counted among those that are close."""
MOST_NAMED = 3
"""Columns that a sentence names."""
KINDS = ("shares", "quantiles")
FIGURES = {"mean": "mean", "total": "total", "p99": "99 % quantile"}
PAIR = "pair"
UNKNOWN = "not counted by itself: how close it is, is not known"
DERIVED = "follows from {}: how close it is, is not known"
UNRESOLVED = "not resolved: see its warning"
LOST = "Hardly anything that was released stands out of its noise: do not rely on these rows."
LOST_DOCUMENTS = "Hardly anything that was released stands out of its noise: the places of these documents say little."
CLOSELY = "The rows follow what was released as closely as its noise allows"
NOT_CLOSELY = "The rows do not follow what was released as closely as its noise allows"


def judged(facts: Facts) -> dict[str, Any]:
    """Add to the facts of a report on synthetic rows the verdict of each column, derived ones too, and the headline."""
    kinds = ["columns", *({"derived"} & facts.keys())]
    columns = {kind: [{**one, "verdict": verdict(one)} for one in facts[kind]] for kind in kinds}
    return {**facts, "headline": headline(facts), **columns}


def verdict(column: Facts) -> str:
    """Say in a few words how close the synthetic values of a column are to be expected, and what not to use of it."""
    if "follows" in column:
        return _verdict_of_derived(column)
    if "released" not in column:
        return UNKNOWN
    cells = column["cells"] if "quantiles_within" in column else 0
    of_cells = f" of {_number(cells, cells, 'range')}" if cells else ""
    shares = f"shares{of_cells} within {percent_up(likely_error(column))}"
    quantiles = f"quantiles within {percent_up(rank_error(column))}" if column["ordered"] else ""
    close = ", ".join(filter(None, [quantiles, shares if cells != 1 else ""]))
    return "; ".join([UNRESOLVED if unresolved(column) else close, *_of_figures(column)])


def _of_figures(column: Facts) -> list[str]:
    """Say which figures are of no use, and which are of use on terms, as the table of all columns judges them."""
    of_no_use, on_terms = ([FIGURES[name] for name in names] for names in doubted_figures(column))
    said = [f"use no {joined(of_no_use, 'or')}"] if of_no_use else []
    return said + ([f"{joined(on_terms, 'and')} only {IF_THIN}"] if on_terms else [])


def _verdict_of_derived(column: Facts) -> str:
    """Say how close the values of a column are to be expected that follows from others."""
    of_which = listed(column["follows"], MOST_NAMED)
    within = [f"{key} within {percent_up(column[f'{key}_within'])}" for key in KINDS if f"{key}_within" in column]
    close = f"{within[0]}, as of {of_which}" if within else DERIVED.format(of_which)
    changed = column.get("changed") if within else None
    first = [f"values outside of {listed(changed, MOST_NAMED)} were changed first"] if changed else []
    return "; ".join([close, *first, *_of_figures(column)])


def headline(facts: Facts) -> str:
    """Say in two or three sentences what may be expected of synthetic rows, and what is not to be trusted.

    Columns that nobody receives are left out.
    """
    if "drowned" in facts:
        return LOST
    dropped = not_handed_over(facts)
    columns = [one for one in facts["columns"] if one["name"] not in dropped]
    known = [one for one in columns if "released" in one and not unresolved(one)]
    numbers = {one["name"]: rank_error(one) for one in known if one["ordered"]}
    others = {one["name"]: likely_error(one) for one in known if not one["ordered"]}
    of_numbers = "number or time column" if any(map(_is_of_time, known)) else "number column"
    kinds = [one["ordered"] for one in columns if "released" in one]
    pairs = _of_pairs(facts, dropped)
    named = (
        ("10 to 90 % quantiles", numbers, of_numbers, sum(kinds)),
        ("shares", others, "category column", len(kinds) - sum(kinds)),
        (_pairs_in_words(facts), pairs, PAIR, len(pairs)),
    )
    close = "; ".join(f"{words} {_within(errors, what, whole)}" for words, errors, what, whole in named if errors)
    sentences = [close[0].upper() + close[1:]] if close else []
    sentences += _relations(facts, {place for place, one in enumerate(facts["columns"]) if one["name"] in dropped})
    silent = sum("released" not in one for one in columns)
    if silent:
        sentences.append(f"Of {_number(silent, len(columns), 'column')} nothing was released by itself")
    if facts.get("fit") and (silent or facts.get("map") or facts.get("sample_sheet")):
        sentences.append(CLOSELY if all(map(fits, facts["fit"])) else NOT_CLOSELY)
    return " ".join(f"{one}." for one in [*sentences, *_doubts(facts, columns)])


def _is_of_time(column: Facts) -> bool:
    return column["type"] == "datetime" or "clock" in column


def headline_of_documents(facts: Facts) -> str:
    """Say in a sentence what was released of documents that are embedded one by one."""
    if "drowned" in facts:
        return LOST_DOCUMENTS
    documents, clusters = facts["documents"], facts["clusters"]
    largest = max(one["documents"] for one in clusters) / max(documents, 1)
    return (
        f"{documents:,} documents lie at {facts['candidates_chosen']:,} of {facts['candidates']:,} public places, "
        f"{percent(largest)} of them in the largest of {len(clusters)} clusters."
    )


def _pairs_in_words(facts: Facts) -> str:
    """Name what pairs are within; reports up to layout 10 do not say in how many groups."""
    distances = (facts.get("pairs") or {}).get("distances", ())
    return "two columns together, in broad groups," if distances and len(distances[0]) > 5 else "two columns together"


def _of_pairs(facts: Facts, dropped: Collection[str]) -> dict[str, float]:
    """Return the distance of every two columns that were counted together, not exceeded in nineteen of twenty."""
    names = [one["name"] for one in facts["columns"]]
    distances = (facts.get("pairs") or {}).get("distances", ())
    pairs = [(names[first], names[second], likely_of_pair(figures)) for first, second, *figures in distances]
    return {f"{one} with {other}": error for one, other, error in pairs if not {one, other} & {*dropped}}


def _relations(facts: Facts, dropped: Collection[int]) -> list[str]:
    """Say in how many pairs the columns depend on each other beyond noise, and in how many of these rows lose of it.

    Pairs that a rule of the schema relates are counted apart: that these depend on each other is no finding.
    """
    received = [one for one in relations(facts).values() if not {*one.columns} & {*dropped}]
    every = [one for one in received if not one.by_rule]
    certain = [one for one in every if one.is_certain]
    if not every:
        return []
    said = f"In {_number(len(certain), len(every), PAIR)} the columns depend on each other by more than noise shows"
    if weaker := sum(one.is_weakened for one in certain):
        said += f", in {weaker:,} of these by less in these rows than as released"
    if stronger := sum(one.is_stronger for one in certain):
        said += f", in {stronger:,} {'of them' if weaker else 'of these'} by over a quarter more"
    if (target := facts["pairs"].get("target")) is not None:
        of_target = [one.is_certain for one in every if target in one.columns]
        said += f"; with {facts['columns'][target]['name']} (the target) in {sum(of_target):,} of {len(of_target):,}"
        if by_rate := [_standing_out(facts, one) for one in certain if one.is_by_rate_alone]:
            rates = "whose rate differs" if len(by_rate) == 1 else "whose rates differ"
            said += f" (by {listed(by_rate, MOST_NAMED)} alone, {rates} from that of all other rows for certain)"
    if ruled := len(received) - len(every):
        said += f"; {counted(ruled, 'more pair')} {'is' if ruled == 1 else 'are'} related {BY_RULE}"
    return [said]


def _standing_out(facts: Facts, relation: Relation) -> str:
    """Name the group of the rows whose rate of the target makes a relation certain."""
    first, other = relation.columns
    column = facts["columns"][other if first == facts["pairs"]["target"] else first]
    labels = relation.standout.labels if relation.standout else ()
    return f"{column['name']} = {group_name(column, labels)}"


def _within(errors: Mapping[str, float], what: str, whole: int) -> str:
    """Say within what all errors are; where some are close and some are far, how many are, and which are worst.

    ``whole`` is how many there are with those of which none is known.
    """
    worst = sorted(errors, key=lambda name: -errors[name])
    if errors[worst[0]] <= CLOSE or errors[worst[-1]] > CLOSE:
        return f"within {percent_up(errors[worst[0]])} in {_number(len(errors), whole, what)}"
    far = [f"{name} ({percent_up(errors[name])})" for name in worst if errors[name] > CLOSE]
    count = _number(len(errors) - len(far), whole, what)
    return f"within {percent(CLOSE)} in {count}, farthest off {listed(far[: MOST_NAMED if what != PAIR else 1])}"


def _number(some: int, whole: int, what: str) -> str:
    """Count some of what there is."""
    if whole == 1:
        return f"the one {what}"
    if some == whole == 2:
        return f"both {what}s"
    return f"all {whole:,} {what}s" if some == whole else f"{f'{some:,}' if some else 'none'} of {whole:,} {what}s"


def _doubts(facts: Facts, columns: Sequence[Facts]) -> list[str]:
    """Say which columns are not resolved, and what of the others is of no use."""
    names = [one["name"] for one in columns if "released" in one and unresolved(one)]
    return [*([f"Not resolved: {listed(names, MOST_NAMED)}"] if names else []), *not_for(facts)]
