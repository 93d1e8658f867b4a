"""What each column of a report may be used for, a line each: by itself, as a mean, and with the target."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpmodels.pages.figures.column_errors import error_by_itself
from dpmodels.pages.figures.empty import error_of_states, error_of_values, is_mostly_empty, states_of
from dpmodels.pages.figures.grades import BAD, MARKS, grade
from dpmodels.pages.figures.group_verdicts import stated_means
from dpmodels.pages.figures.means import (
    CLOSE,
    FAR,
    FIGURES,
    MOST_RELATIVE,
    UNKNOWN,
    PartOff,
    errors_of,
    in_words,
    terms,
)
from dpmodels.pages.figures.named import amounts_of, has_first_rows, listed
from dpmodels.pages.figures.open_means import AS_STATED, THIN_OUT
from dpmodels.pages.figures.rates import MIDDLE, NEAR, parts_of_rates, with_few
from dpmodels.pages.glance import has_few_values, unresolved, with_figures
from dpmodels.pages.page import percent_up
from dpmodels.pages.uses import Known, known_of

Facts = Mapping[str, Any]
NOT_FOR = "Not for "
"""How a headline's sentences begin on figures that are of no use."""
UNSTATED = PartOff(math.inf, math.inf)
ONLY_IF = "Only if "
"""How one begins on figures that noise leaves open, and that are stated on these terms."""
ALONE = ("by itself", "of all rows")
OF_ITSELF = "of itself, if nothing else is said"
OF_RATES = "in points"
PALE, HIDDEN, RULED = " \N{DAGGER}", " *", " \N{DOUBLE DAGGER}"
"""What stands behind rates of which those of some groups are left out, of which noise hides that they differ, and
behind what a column is within that follows from others by a rule."""
MOST_GROUPS = 3
"""Columns that a sentence names by which means of a column are of use."""
AT_ONCE, FEW = 16, 4
"""Columns that are seen at once; and so few more, that they are too."""
MOST = 1000
"""Columns of a table that have a line."""


@dataclass(frozen=True)
class Judgement:
    """Within what a figure is, in words, and whether it is good, to be used with care, or bad.

    ``of`` is what that is a part of, where it is not what the heading says; ``is_on_terms``: noise leaves the figure
    open, so that it is known only if values thin out.
    """

    kind: str
    words: str
    of: str = ""
    is_on_terms: bool = False


Cell = tuple[Judgement, ...]
Cells = Mapping[str, Cell]


@dataclass(frozen=True)
class ByColumn:
    """A table of judgements: what is judged and in what unit, a line for each column, and how many are seen at once.

    ``dropped``: columns that nobody receives.
    """

    kinds: tuple[tuple[str, str], ...]
    lines: tuple[tuple[str, tuple[Cell, ...]], ...]
    at_once: int
    dropped: frozenset[str] = frozenset()

    @property
    def received(self) -> list[tuple[str, tuple[Cell, ...]]]:
        """Return the lines of the columns that are handed over."""
        return [line for line in self.lines if line[0] not in self.dropped]

    @property
    def marks(self) -> str:
        """The marks that stand behind judgements."""
        said = {mark for _, cells in self.lines for cell in cells for one in cell for mark in one.words}
        return "".join(mark.strip() for mark in (PALE, HIDDEN, RULED) if mark.strip() in said)


def by_column(report: Facts) -> ByColumn | None:
    """Judge each column by what its report states; None where it states no error of one.

    Of a column without a figure of a kind the cell is empty. A kind that no column has is left out.
    """
    known = known_of(report)
    if known is None:
        return None
    kinds = {ALONE: _alone(known), **_figures(known), (f"rate of {_of_rates(report)}", OF_RATES): _rates(known)}
    kinds = {title: cells for title, cells in kinds.items() if cells}
    columns = sorted([*report["columns"], *report.get("derived", ())], key=lambda one: one["name"] in known.dropped)
    names = [one["name"] for one in columns[:MOST]]
    lines = tuple((name, tuple(cells.get(name, ()) for cells in kinds.values())) for name in names)
    received = sum(name not in known.dropped for name, _ in lines)
    at_once = AT_ONCE if received > AT_ONCE + FEW else received
    return ByColumn((*kinds,), lines, at_once, known.dropped)


def marked(report: Facts) -> dict[str, dict[str, dict[str, str]]]:
    """Say, by what is judged and by its mark, within what each column that is handed over is; its worst where several.

    Empty where a report states no error of a column.
    """
    table, every = by_column(report), dict[str, dict[str, dict[str, str]]]()
    for place, (title, _) in enumerate(table.kinds if table else ()):
        for name, line in table.received if table else ():
            if cell := line[place]:
                worst = max(cell, key=lambda one: MARKS.index(one.kind))
                words = " ".join(filter(None, (worst.words.rstrip(PALE + HIDDEN + RULED), worst.of)))
                every.setdefault(title, {}).setdefault(worst.kind, {})[name] = words
    return every


def not_for(report: Facts) -> list[str]:
    """Say of which columns that are handed over the means, or the large quantiles, are of no use, or on what terms."""
    table, said = by_column(report), list[str]()
    stated, of_use = stated_means(report)
    thin_out = THIN_OUT
    for place, (title, unit) in enumerate(table.kinds if table else ()):
        cells = {name: line[place] for name, line in table.received} if table and unit == OF_ITSELF else {}
        figures, of_bad, of_open = " and ".join(title.rsplit(", ", 1)), dict[str, list[str]](), dict[str, list[str]]()
        for name, cell in cells.items():
            of = name if title.startswith(FIGURES["mean"][0]) else ""
            if any(one.is_on_terms and one.kind != BAD for one in cell):
                of_open.setdefault(", by group too," * (of in stated), []).append(name)
            elif any(one.kind == BAD for one in cell):
                by = f" (by {listed(of_use[of], MOST_GROUPS)})" if of in of_use else ""
                of_bad.setdefault(f", but {AS_STATED}" * bool(by), []).append(name + by)
        said += [f"{NOT_FOR}{figures}{terms}: {listed(names)}" for terms, names in of_bad.items()]
        for by_group, names in of_open.items():  # the first one says what that is
            said.append(f"{ONLY_IF}{thin_out}: {figures}{by_group} of {listed(names)}")
            thin_out = "values thin out"
    return said


def _of_rates(report: Facts) -> str:
    """Name the target and its class whose rates a report states; empty where it states none."""
    rates = report.get("rates")
    return f"{report['columns'][rates['target']]['name']} = {rates['class']}" if rates else ""


def _judged(error: float, words: str, close: float = CLOSE, far: float = FAR, of: str = "") -> Judgement:
    return Judgement(grade(error, close, far), words, of)


def _alone(known: Known) -> Cells:
    """Judge shares and quantiles."""
    cells = {one["name"]: _of_column(known, one) for one in known.report["columns"]}
    for one in known.report.get("derived", ()):
        error = known.errors.get(one["name"])
        by_itself = (Judgement(BAD, UNKNOWN) if error is None else _judged(error, percent_up(error) + RULED),)
        cells[one["name"]] = _of_empty(one, RULED) if is_mostly_empty(one) else by_itself
    return cells


def _of_column(known: Known, column: Facts) -> Cell:
    """Judge a column."""
    if "released" not in column or unresolved(column):
        return (Judgement(BAD, "not resolved" if "released" in column else UNKNOWN),)
    if not is_mostly_empty(column):
        error = known.errors[column["name"]]
        least = "at least " if column.get("discovered_bounds") else ""
        return (_judged(error, least + percent_up(error_by_itself(column))),)
    return _of_empty(column)


def _of_empty(column: Facts, mark: str = "") -> Cell:
    """Judge a column that is mostly empty by how often it is, and by its other values."""
    share, values = error_of_states(column), error_of_values(column)
    empty = " or ".join(states_of([column], [column["name"]]))
    of_share, of_values = f"{percent_up(share)} for {empty}{mark}", f"{percent_up(values)} of others{mark}"
    return _judged(share, of_share), _judged(values, of_values)


def _figures(known: Known) -> dict[tuple[str, str], Cells]:
    """Judge means and large quantiles, each as a part of itself; those that noise leaves open on terms, if at all."""
    kinds = dict[tuple[str, str], Cells]()
    for figure, words in FIGURES.items():
        errors = errors_of(known.report, figure)
        every = with_figures(known.report)
        few = set() if figure == "mean" else {one["name"] for one in every if has_few_values(one)}
        stated = [one["name"] for one in every if figure in one and one["name"] not in few]
        kinds[words[0] if has_first_rows(known.report) else ", ".join(words), OF_ITSELF] = {
            name: (_of_figure(errors.get(name, UNSTATED)),) for name in stated
        } | {one["name"]: (Judgement(BAD, UNKNOWN),) for one in amounts_of(known.report)}
    return kinds


def _of_figure(error: PartOff) -> Judgement:
    """Judge a figure by what it is within as its values thin out, and say how far off it is at the farthest."""
    if error.counted > MOST_RELATIVE:
        return Judgement(BAD, UNKNOWN)
    of = (f"of {error.of}" if error.of else "") + terms(error)
    return replace(_judged(error.counted, in_words(error), of=of.removeprefix(", ")), is_on_terms=error.is_on_terms)


def _rates(known: Known) -> Cells:
    """Judge the rates of the target by each column, in points, and say where noise hides that they differ.

    Those by a column that a rule of the schema relates to the target are no finding, and have no judgement.
    """
    if not known.report.get("rates"):
        return {}
    parts, worst, hidden = parts_of_rates(known.report, known.relations, known.likely)
    marks = {name: PALE * (name in with_few(known.report)) + HIDDEN * (name in hidden) for name in worst}
    points = {name: percent_up(error)[:-1].strip() + marks[name] for name, error in worst.items()}
    target, columns = known.report["rates"]["target"], known.report["columns"]
    related = [pair for pair, one in known.relations.items() if one.by_rule and target in pair]
    ruled = {columns[place]["name"] for pair in related for place in pair}
    return {name: (_judged(part, points[name], NEAR, MIDDLE),) for name, part in parts.items() if name not in ruled}
