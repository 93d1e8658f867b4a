"""What synthetic rows may be used for, with care, or not at all, by the bounds that their report states."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpmodels.contract.remarks import dates_of
from dpmodels.pages.figures.categories import (
    absent,
    joined,
    joined_in_rates,
    moved,
    places_of_several,
    within_ranges,
)
from dpmodels.pages.figures.column_errors import counted_error, with_derived
from dpmodels.pages.figures.empty import error_of_states, error_of_values, is_mostly_empty, states_of
from dpmodels.pages.figures.group_means import means_told_apart, means_with_care
from dpmodels.pages.figures.group_verdicts import stated_means
from dpmodels.pages.figures.means import (
    CLOSE,
    FAR,
    FIGURES,
    ON_TERMS,
    UNKNOWN,
    PartOff,
    bound_of_figures,
    errors_of,
    words_by_kind,
)
from dpmodels.pages.figures.moments import uncounted_in_words
from dpmodels.pages.figures.named import DAY, MOST_NAMED, amounts_of, has_first_rows, listed, moved_apart
from dpmodels.pages.figures.open_means import AS_STATED, THIN_OUT, is_open
from dpmodels.pages.figures.rates import MIDDLE, NEAR, models_that_see, parts_of_rates, whole_rate, with_few
from dpmodels.pages.figures.relations import (
    FALSE,
    KEPT,
    Relation,
    asked_pairs,
    but_joint,
    likely_relations,
    relations,
)
from dpmodels.pages.figures.ruled import BY_RULE
from dpmodels.pages.glance import (
    OF_LARGE,
    SPREAD,
    likely_of_pair,
    unresolved,
    worst_first,
)
from dpmodels.pages.notes import not_handed_over
from dpmodels.pages.page import percent, percent_up
from dpmodels.plural import counted

Facts = Mapping[str, Any]
MOST_PAIRS, MOST_ABSENT = 3, 4
"""Pairs that a sentence names, and categories of a column that it does."""
MOST_WANTED = 12
"""Pairs that are named where so many have the target, or are of a workload: no other pair stands before these."""
OFF = 0.1
"""What two columns together may be within at most, for a relation that is kept to be good in every group."""
SLOPES = "slopes and correlations of numbers, which mostly come out weaker than they are, of skewed amounts most"
"""What single cells of two columns do not show, and no figure of a report is about."""
ALL, ALL_PAIRS = 1_000, 100
"""Names, and pairs, in a sentence that is not abridged: a page has no room for those of any table."""


@dataclass(frozen=True)
class Uses:
    """Sentences on what rows are good for, what they show with care alone, and what they must not be used for.

    ``whole`` has those that leave names out, with all of these.
    """

    good: tuple[str, ...]
    care: tuple[str, ...]
    never: tuple[str, ...]
    whole: "Uses | None" = None


GOOD_ALL = "which columns go together, and how in groups of many rows"
BROAD = "relations that are kept as a whole, though not in every group, or for every single category"
VAGUE = "relations that are there for certain, though not how strong they are"
BARE = "relations that show above all whether there is a value at all, or 0"
WEAKER = "relations that are there for certain, and weaker in these rows than as released"
STRONGER = "relations that are there for certain, and stronger in these rows than as released, by more than a quarter"
"""Sorts of relations that are certain: the first is good, and the others are to be taken with care."""
RULED = "rules and formulas of the schema, which hold in every row, and nothing more of how these columns go together"
TOGETHER = "what only three or more columns show together"
WEAKER_RULED = f"relations {BY_RULE} that are weaker in these rows than as released"


@dataclass(frozen=True)
class Known:
    """A report, what its columns and pairs are within, how they depend, and whether sentences name all of them.

    ``is_tabled``: a table beside the sentences says of single columns what they are within.
    ``has_means_apart``: a page says in one place of its own which means, totals and large quantiles hold.
    ``most``: names in a sentence that does not name all.
    ``dropped``: columns that nobody receives.
    """

    report: Facts
    errors: Mapping[str, float]
    within: Mapping[tuple[int, int], float]
    relations: Mapping[tuple[int, int], Relation]
    likely: Mapping[tuple[int, int], Relation]
    names_all: bool = False
    is_tabled: bool = False
    has_means_apart: bool = False
    most: int = MOST_NAMED
    dropped: frozenset[str] = frozenset()

    @property
    def received(self) -> "Known":
        """Return the same of what is handed over alone."""
        columns = self.report["columns"]
        places = {place for place, one in enumerate(columns) if one["name"] not in self.dropped}
        within = {pair: one for pair, one in self.within.items() if places >= {*pair}}
        every, likely = (
            {pair: one for pair, one in some.items() if places >= {*pair}} for some in (self.relations, self.likely)
        )
        errors = {name: error for name, error in self.errors.items() if name not in self.dropped}
        return replace(self, errors=errors, within=within, relations=every, likely=likely)

    @property
    def columns(self) -> list[Facts]:
        """Return the columns of the schema that are handed over."""
        return [one for one in self.report["columns"] if one["name"] not in self.dropped]

    def certain(self) -> dict[str, list[Relation]]:
        """Sort the relations that are certain, each into one sort: those that are good, and five to take with care.

        Those that a rule of the schema makes are in no sort.
        """
        columns, several = self.report["columns"], places_of_several(self.report)
        empty = {place for place, one in enumerate(columns) if is_mostly_empty(one)}
        sorts: dict[str, list[Relation]] = {sort: [] for sort in (GOOD_ALL, BROAD, VAGUE, BARE, WEAKER, STRONGER)}
        for one in self.relations.values():
            if one.is_certain and not one.by_rule:
                within, places = self.within[one.columns], {*one.columns}
                whole = BROAD if several & places or within > OFF else GOOD_ALL
                kept = BARE if empty & places else VAGUE if within > FAR else whole
                sorts[kept if one.is_kept else STRONGER if one.is_stronger else WEAKER].append(one)
        return sorts

    def named(self, names: Sequence[str], most: int = MOST_NAMED) -> str:
        """Name some, as many as a sentence has room for."""
        return listed(names, ALL if self.names_all else min(most, self.most))

    def strongest(self, some: Sequence[Relation]) -> str:
        """Name the strongest relations; first those with the target, since it is what rows should teach, and those
        that a workload asks for.
        """
        target, columns = self.report["pairs"].get("target"), self.report["columns"]
        asked = asked_pairs(self.report)
        order = sorted(some, key=lambda one: (target not in one.columns, one.columns not in asked, -one.released))
        wanted = sum(target in one.columns or one.columns in asked for one in order)
        pairs = [" with ".join(columns[place]["name"] for place in one.columns) for one in order]
        most = max(MOST_PAIRS, min(wanted, MOST_WANTED, self.most))
        return listed(pairs, ALL_PAIRS if self.names_all else most)


def uses(report: Facts, is_tabled: bool = False) -> Uses | None:
    """Sort columns and pairs of a report by what they are within; None where it states no such figure.

    Columns most of whose values are exactly 0 or null are judged by how often they are, and by their other values.
    """
    if not (known := known_of(report)):
        return None
    known = replace(known.received, is_tabled=is_tabled)
    brief, whole = (_sorted(one, worst_first(known.columns)) for one in (known, replace(known, names_all=True)))
    return replace(brief, whole=_abridged(brief, whole))


def all_uses(report: Facts) -> Uses | None:
    """Return the same with all names in each sentence, for whoever is to keep to them, but for means."""
    if not (known := known_of(report)):
        return None
    known = replace(known.received, names_all=True, has_means_apart=True)
    return _sorted(known, worst_first(known.columns))


def known_of(report: Facts) -> Known | None:
    """Return what a report says of its columns and pairs; None where it states no error of a column."""
    columns = worst_first(report.get("columns", ()))
    if not columns or "drowned" in report:
        return None
    resolved = [one for one in reversed(columns) if not unresolved(one)]
    errors = {one["name"]: counted_error(one) for one in resolved if not is_mostly_empty(one)}
    errors = with_derived(errors, [one for one in report.get("derived", ()) if not is_mostly_empty(one)])
    of_pairs = _pairs(report), relations(report), likely_relations(report)
    return Known(report, errors, *of_pairs, dropped=not_handed_over(report))


def _sorted(known: Known, columns: Sequence[Facts]) -> Uses:
    return Uses(tuple(_close(known)), tuple(_with_care(known)), tuple(never_for(known, columns)))


def _abridged(brief: Uses, whole: Uses) -> Uses | None:
    """Return the sentences, with all names, of which the brief ones leave some out; None if they leave out none."""
    lists = ((brief.good, whole.good), (brief.care, whole.care), (brief.never, whole.never))
    good, care, never = (tuple(two for one, two in zip(*both, strict=True) if one != two) for both in lists)
    return Uses(good, care, never) if good or care or never else None


def _pairs(report: Facts) -> dict[tuple[int, int], float]:
    listed = (report.get("pairs") or {}).get("distances", ())
    return {(first, second): likely_of_pair(figures) for first, second, *figures in listed}


def _columns(known: Known, above: float, most: float) -> Iterator[str]:
    names = [name for name, error in known.errors.items() if above < error <= most][::-1]
    if names and not known.is_tabled:
        yield f"shares and quantiles of {known.named(names)} ({_bound(known.errors, names, above, most)})"


def _close(known: Known) -> Iterator[str]:
    yield from _of_columns(known, -1.0, CLOSE)
    if near := known.certain()[GOOD_ALL]:
        yield f"{GOOD_ALL}, at least {percent(KEPT)} as strong as released: {known.strongest(near)}"
    if ruled := [one for one in known.relations.values() if one.by_rule and not one.is_weakened]:
        yield f"{RULED}: {known.strongest(ruled)}"
    if close := sum(error <= CLOSE for error in known.within.values()):
        of_pairs = f"{close:,} of {counted(len(known.within), 'pair')}"
        yield f"tables of two columns in broad groups, in {of_pairs} (within {percent(CLOSE)} of all rows)"
    yield from _rates(known, -1.0, NEAR)
    yield from _means_of_groups(known)
    yield "writing and testing programs, and models that are then held against the real rows, inside"


def _with_care(known: Known) -> Iterator[str]:
    yield from _of_columns(known, CLOSE, FAR)
    if number := sum(CLOSE < error <= FAR for error in known.within.values()):
        yield f"two columns together in {counted(number, 'more pair')} (within {percent(FAR)})"
    yield from _rates(known, NEAR, MIDDLE)
    yield from _means_of_groups(known, with_care=True)
    if sum(one["ordered"] and one["name"] not in known.dropped for one in known.report["columns"]) > 1:
        yield SLOPES
    yield from models_that_see(known.report, known.dropped, known.named)
    if few := [name for name in with_few(known.report) if name not in known.dropped]:
        yield f"rates in the pale groups, of few rows or less sure (some of {known.named(few)}): see their whiskers"
    certain = known.certain()
    yield from (f"{sort}: {known.strongest(certain[sort])}" for sort in (BROAD, VAGUE) if certain[sort])
    if known.likely:
        said = f"relations that stand out of the noise less clearly, of which one in {1 / FALSE:.0f} may be noise"
        yield f"{said}: {known.strongest([*known.likely.values()])}"
    yield from (f"{sort}: {known.strongest(certain[sort])}" for sort in (BARE, WEAKER, STRONGER) if certain[sort])
    if ruled := [one for one in known.relations.values() if one.by_rule and one.is_weakened]:
        yield f"{WEAKER_RULED}: {known.strongest(ruled)}"
    yield from moved_apart(known.report, known.named)


def _means_of_groups(known: Known, with_care: bool = False) -> Iterator[str]:
    """Say which means by groups are good, or to be taken with care, unless a page says so apart."""
    if not known.has_means_apart:
        said = means_with_care if with_care else means_told_apart
        yield from said(known.report, lambda apart: known.named(apart, MOST_PAIRS))


def _of_columns(known: Known, above: float, most: float) -> Iterator[str]:
    """Say which single columns, and which of their means and large quantiles, are within so much."""
    yield from _columns(known, above, most)
    yield from _amounts(known, above, most)
    yield from _figures(known, above, most)


def _lost(known: Known, columns: Sequence[Facts]) -> Iterator[str]:
    """Name the columns that say nothing by themselves."""
    lost = [one["name"] for one in columns if unresolved(one)]
    if far := [*lost, *(name for name, error in known.errors.items() if error > FAR)]:
        yield f"questions about {known.named(far)}" + " by itself" * (len(far) == 1)
    yield from _amounts(known, FAR, math.inf)


def never_for(known: Known, columns: Sequence[Facts]) -> Iterator[str]:
    """Say what rows must not be used for, and of which of these columns no row has a category."""
    report = known.report
    if not known.is_tabled:
        yield from _lost(known, columns)
    if has_first_rows(known.report):
        yield "totals, and how many rows there are: only the first rows of each user are in these"
    yield from _figures(known, FAR, math.inf)
    if number := sum(error > FAR for error in known.within.values()):
        yield f"tables of two columns in {counted(number, 'pair')} (beyond {percent(FAR)})"
    yield from _rates(known, MIDDLE, math.inf)
    every = [one for one in known.relations.values() if not one.by_rule]
    if hidden := [one for one in every if not one.is_certain and one.columns not in known.likely]:
        which = "all" if len(hidden) == len(every) else f"{len(hidden):,} of the"
        named = f" ({known.strongest(hidden)})" if len(hidden) <= MOST_PAIRS else ""
        hidden_in = f"whether two columns depend on each other, in {which} {counted(len(every), 'pair')}{named}"
        yield f"{hidden_in}: noise and chance make as much, so what these rows show of it may be nothing else"
    if pairs_of_dates := list(filter(None, map(dates_of, report.get("cautions", ())))):
        yield f"how far apart {known.named([' and '.join(dates) for dates in pairs_of_dates])} are"
    if several := [name for name in joined(report) if name not in known.dropped]:
        but = ", but in rates of the target" if report.get("rates") and not joined_in_rates(report) else ""
        of = known.named(several)
        yield f"how single categories of {of} differ in another column{but}: they are judged all together, or in groups"
    if lost := {name: one for name, one in moved(report).items() if name not in known.dropped}:
        those = [
            f"{label} of {name} ({percent(r)} as released, {percent(s)} here)" for name, (label, r, s) in lost.items()
        ]
        yield f"how many rows are {known.named(those)}: rules of the schema, or the fit, have moved them"
    yield from within_ranges(report, known.dropped)
    derived = report.get("derived", ())
    if reckoned := [one["name"] for one in derived if one["name"] not in known.errors and not is_mostly_empty(one)]:
        yield f"shares of {known.named(reckoned)}, which follow from other columns: no error of them is known"
    if (amounts := amounts_of(report)) and not known.has_means_apart:
        of = known.named([one["name"] for one in amounts])
        yield f"means, totals and 99 % quantiles of {of}, which follow from others: no error of these is known"
    yield from uncounted_in_words(report, known.named)
    if days := [one["name"] for one in report.get("derived", ()) if DAY.match(one["labels"][0])]:
        yield f"how many rows share one day of {known.named(days)}: a computed day spreads over the days beside it"
    for one in columns:
        if gone := absent(one):
            yield f"whether {one['name']} is ever {known.named(gone, MOST_ABSENT)}: no row has it, which noise may do"
    together = f"{TOGETHER}{but_joint(report)}"
    if any(one.is_certain and not one.by_rule for one in known.relations.values()):
        together += ", such as whether two go together by themselves or through a third"
    yield f"{together}, rare combinations, and anything about a single person"


def _figures(known: Known, above: float, most: float) -> Iterator[str]:
    """Say of which columns means, and large quantiles, are known to be within so much of themselves."""
    if known.is_tabled or known.has_means_apart:
        return
    words = dict[tuple[tuple[str, ...], str], list[str]]()
    bounds = dict[tuple[tuple[str, ...], str], list[PartOff]]()
    stated, of_use = stated_means(known.report)
    thin_out = THIN_OUT
    for figure in FIGURES:
        errors = {name: one for name, one in errors_of(known.report, figure).items() if name not in known.dropped}
        within = {name: error for name, error in errors.items() if above < error.counted <= most}
        open_on_terms = [name for name, one in within.items() if one.is_on_terms]
        by_measure = {
            of: [name for name, one in within.items() if one.of == of and name not in open_on_terms]
            for of in ("", SPREAD, OF_LARGE)
        } | {ON_TERMS: open_on_terms}
        if most == math.inf:
            columns = [*(one for one in known.columns if not unresolved(one)), *known.report.get("derived", ())]
            by_measure[UNKNOWN] = [one["name"] for one in columns if is_open(one, figure) and one["name"] not in errors]
        for measure, every in by_measure.items():
            for some, said in words_by_kind(known.report, figure, every):
                words.setdefault(((*some,), measure), []).extend(said)
                bounds.setdefault(((*some,), measure), []).extend(within[name] for name in some if name in within)
    for (names, measure), figures in words.items():
        if names:
            bound = bound_of_figures(bounds[names, measure], measure, above, most, len(names) == 1)
            if measure == ON_TERMS:  # the first one says what that is
                bound, thin_out = bound.replace(THIN_OUT, thin_out), "values thin out"
            if FIGURES["mean"][0] in figures:
                bound += ", means by group too" * (measure == ON_TERMS and not stated.isdisjoint(names))
                is_known = most == math.inf and measure not in (UNKNOWN, ON_TERMS)
                bound += f", but {AS_STATED}" * (is_known and of_use.keys() >= {*names})
            yield f"{known.named(figures)} of {known.named(names)} ({bound})"


def _amounts(known: Known, above: float, most: float) -> Iterator[str]:
    """Say of columns that are mostly 0 or null how often they are, and what the quantiles of their values are within.

    Let F be the share of values up to x, F0 that of zeros, s = 1 - F0 in the synthetic rows, and e what F is off by at
    most. Of the other values (F - F0) / s lie up to x, which is off by |e(x) - e(0) (1 - F')| / s: by 2 e / s at most.
    Of nulls the same holds with the share of all values in the place of 1.
    """
    every = [*known.columns, *known.report.get("derived", ())]
    mostly = [one for one in every if is_mostly_empty(one) and not known.is_tabled]
    shares = {one["name"]: error_of_states(one) for one in mostly}
    if names := [name for name, error in shares.items() if above < error <= most]:
        none = " or ".join(states_of(mostly, names))
        verb, bound = "is" if len(names) == 1 else "are", _bound(shares, names, above, most)
        yield f"how often {known.named(names)} {verb} {none} ({bound})"
    errors = {one["name"]: error_of_values(one) for one in mostly}
    if names := [name for name, error in errors.items() if above < error <= most]:
        values = f"among the values that are not {' or '.join(states_of(mostly, names))}"
        yield f"quantiles of {known.named(names)} {values} ({_bound(errors, names, above, most)} of these)"


def _bound(errors: Mapping[str, float], names: Sequence[str], above: float, most: float) -> str:
    return (
        f"within {percent_up(max(map(errors.__getitem__, names)))}" if most < math.inf else f"beyond {percent(above)}"
    )


def _rates(known: Known, above: float, most: float) -> Iterator[str]:
    """Say by which columns the rates of the target are within so much of what there is of its class in all."""
    if known.is_tabled or not known.report.get("rates"):
        return
    parts, worst, _ = parts_of_rates(known.report, known.relations, known.likely)
    report, whole = known.report, whole_rate(known.report)
    target = report["columns"][report["rates"]["target"]]
    received = [name for name in sorted(parts, key=parts.__getitem__) if name not in known.dropped]
    if names := [name for name in received if above < parts[name] <= most]:
        least, farthest = (percent_up(pick(map(worst.__getitem__, names)))[:-1].strip() for pick in (min, max))
        bound = f"within {least} to {farthest} points" if least != farthest else f"within {farthest} points"
        if most == math.inf:
            bound += ", more than half of the rate, or of what is left, and of what groups differ by"
        said = f"rates of {target['name']} = {report['rates']['class']}, {percent(whole)} of the synthetic rows"
        yield f"{said}, by {known.named(names)} ({bound})"
