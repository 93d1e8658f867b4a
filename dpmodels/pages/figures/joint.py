"""Cards of tables of three columns that a workload asks for: means, or rates, by two columns together, as a grid.

Privacy: post-processing of a publishable report.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from markupsafe import Markup

from dpmodels.pages.drawing import SMALL_LINE, WIDTH, Figure, Label, box, svg, titled, words
from dpmodels.pages.figures.amounts import amount
from dpmodels.pages.figures.apart import Interval, apart_in_words
from dpmodels.pages.figures.grades import BAD, CARE, GOOD
from dpmodels.pages.figures.group_means import (
    called,
    described,
    note_of,
    written,
)
from dpmodels.pages.figures.group_verdicts import grade_of, is_pale, reason_of
from dpmodels.pages.figures.labels import brief, group_name, number_in
from dpmodels.pages.figures.mean_axis import Ends, ends_of, with_interval, within_in_words
from dpmodels.pages.figures.open_means import supposes_thinning_out
from dpmodels.pages.figures.rate_pictures import points_in_words
from dpmodels.pages.figures.rates import MIDDLE, NEAR
from dpmodels.pages.figures.reasons import pale_in_words, with_reasons
from dpmodels.pages.notes import not_handed_over
from dpmodels.pages.page import percent, percent_up
from dpmodels.plural import OF_CATEGORIES

Facts = Mapping[str, Any]
ACROSS, DOWN = 6, 12
"""Groups that a grid has room for beside one another, and beneath."""
LETTER, NAME_LETTER, HEAD, HIGH, LETTERS_HIGH = 7.0, 6.3, 32.0, 32.0, 12.0
"""The width of a letter of figures and of names; the height of the names of columns, of a line, and of letters."""
LEAST_BESIDE, LEAST_CELL = 56.0, 40.0
"""Room for the names of lines, and for a figure, at least."""
SHADES = 6
"""Steps of a color between the least and the largest figure."""
FAR_OFF = "it is off by more than half of the rate of all rows, and of what groups differ by"
ROUGH = "some off by more than a quarter of the rate of all rows, and of what groups differ by"
"""Why a rate is pale, and why rates that are not are to be used with care."""
DOT = " \N{MIDDLE DOT} "
FIXED = "what stands without an error is so by a rule"
"""What is said of rates that are 0 or 1 without noise."""
NO_GRID = "none of them is a number or has two classes, or the others make too many groups, or too small ones"
MORE = "this report states the figures of three columns together, not of more"
DROPPED = "nobody is handed {}"
"""Why a table has no grid."""
THREE = 3
"""Columns of a table that has one."""


def joint_cards(report: Facts) -> dict[int, list[Figure]]:
    """Draw the joint tables that a workload asks for, by how many of its pairs stand before each.

    One that no grid shows has the command that answers. Reports of earlier versions list none.
    """
    cards = dict[int, list[Figure]]()
    for one in report.get("joint", ()):
        cards.setdefault(one["place"], []).append(_card(report, one))
    return cards


def answered_pairs(report: Facts, names: Sequence[tuple[str, str]]) -> frozenset[int]:
    """Return the places of the pairs that a joint table asks for which has a card with figures.

    They stand behind one another, from the place of the table on; those that an earlier entry names stand before it.
    """
    places = list[int]()
    for one in report.get("joint", ()):
        behind = takewhile(frozenset(one["columns"]).issuperset, names[one["place"] :])
        places += [one["place"] + at for at, _ in enumerate(behind)] if _card(report, one).rows else []
    return frozenset(places)


def _card(report: Facts, joint: Facts) -> Figure:
    columns = {one["name"]: one for one in (*report.get("columns", ()), *report.get("derived", ()))}
    if "groups" not in joint or not {joint["column"], *joint["by"]} <= columns.keys():
        return _command(report, joint)
    sides = [_labels(joint["groups"], side) for side in (0, 1)]
    if len(sides[1]) > len(sides[0]):  # the side with more groups goes down
        turned = [{**one, "labels": one["labels"][::-1]} for one in joint["groups"]]
        joint, sides = {**joint, "by": joint["by"][::-1], "groups": turned}, sides[::-1]
    if len(sides[1]) > ACROSS or len(sides[0]) > DOWN:
        return _command(report, joint)
    return _rates(joint, columns, sides) if "class" in joint else _means(joint, columns, sides)


def _labels(groups: Sequence[Facts], side: int) -> list[list[str]]:
    """Return the groups of one of the two columns, in their order."""
    return [[*one] for one in dict.fromkeys(tuple(group["labels"][side]) for group in groups)]


def _command(report: Facts, joint: Facts) -> Figure:
    """Say which command answers, and what it says."""
    names = joint["columns"]
    dropped = [name for name in names if name in not_handed_over(report)]
    why = DROPPED.format(" and ".join(dropped)) if dropped else MORE if len(names) > THREE else NO_GRID
    command = shlex.join(["nacre", "marginals", "RUN", *names])
    all_names = f"{', '.join(names[:-1])} and {names[-1]}"
    says = f"every combination of {all_names} with its noisy count, the error of that, and its share"
    if "column" in joint and "class" not in joint:
        by = [word for name in joint["by"] for word in ("--by", name)]
        command = shlex.join(["nacre", "means", "RUN", joint["column"], *by])
        says = f"the mean of {joint['column']} in each combination, within what it is, and why not to rely on it"
    text = Markup('<p class="foot">Whoever made this may ask <code>{}</code>: {}.</p>').format(command, says)
    return Figure(all_names, why, text, (), (), grade=BAD)


def _means(joint: Facts, columns: Mapping[str, Facts], sides: Sequence[Sequence[list[str]]]) -> Figure:
    """Draw the means of a number by two columns together."""
    column, ends = columns[joint["column"]], ends_of(joint)
    on_terms = supposes_thinning_out(column)
    groups = [{**one, "labels": _name(one["labels"])} for one in joint["groups"]]
    known = [one for one in groups if one["released"] is not None]
    rows = [_row(one, column, ends) for one in groups]
    cells = [_cell(one, column, ends, on_terms) for one in joint["groups"]]
    title = f"{joint['column']} by {' and '.join(joint['by'])}"
    header = (" and ".join(joint["by"]), "mean, released", "within", "synthetic", "of these rows")
    lines = with_reasons(header, rows, [reason_of(one) for one in groups])
    drawn = _grid(title, described(known, column), joint, columns, sides, cells)
    ruled = _ruled(joint, sides, lambda mean: amount(column, mean, 0.0) if mean else "0")
    joined = _joined(joint, columns, sides)
    foot, judged = DOT.join([*ruled, *joined.values()]), grade_of(groups, on_terms)
    note, judged = _with_joined(note_of(groups, column, on_terms), judged, joined)
    return Figure(title, note, drawn, lines.header, lines.rows, foot, above=lines.above, grade=judged)


def _row(group: Facts, column: Facts, ends: Ends) -> tuple[str, ...]:
    released, synthetic = written(group, column)
    within = within_in_words(group, column, ends) if released else ""
    return called(group["labels"]), released, within, synthetic, percent(group["share"])


def _name(labels: Sequence[Sequence[str]]) -> list[str]:
    """Name a group of two columns, as the label of one."""
    return ["; ".join(called(one) for one in labels)]


def _cell(group: Facts, column: Facts, ends: Ends, on_terms: bool) -> tuple[str, bool]:
    released, _ = written(group, column)
    return with_interval(released, group, column, ends), is_pale(group, on_terms)


def _rates(joint: Facts, columns: Mapping[str, Facts], sides: Sequence[Sequence[list[str]]]) -> Figure:
    """Draw the rates of a class by two columns together."""
    known = [one for one in joint["groups"] if one["released"] is not None]
    whole = sum(one["share"] * one["released"] for one in known) / (sum(one["share"] for one in known) or 1.0)
    shown = [one["released"] for one in known if one["share"] > 0] or [0.0]
    size = max(min(whole, 1 - whole), max(shown) - min(shown), 1e-300)
    groups = [_judged(one, size) for one in joint["groups"]]
    title = f"{joint['column']} = {joint['class']}, by {' and '.join(joint['by'])}"
    named = [{**one, "labels": _name(one["labels"])} for one in groups]
    rows = [(called(one["labels"]), *_figures_of_rate(one)) for one in named]
    header = (" and ".join(joint["by"]), "rate, released", "within", "synthetic", "of all rows")
    lines = with_reasons(header, rows, [one["reason"] for one in groups])
    drawn = _grid(title, _described_rates(named), joint, columns, sides, [_rate_cell(one) for one in groups])
    sound = [one["within"] for one in groups if one["released"] is not None and not one["reason"]]
    judged = grade_of(groups, on_terms=False)
    is_rough = bool(sound) and max(sound) > NEAR * size
    judged = CARE if judged == GOOD and is_rough else judged
    without = [one["labels"][0] for one in groups if one["within"] == 0]
    has_fixed = any(labels not in _fixed(joint, sides) for labels in without)
    ruled = _ruled(joint, sides, lambda rate: percent(rate) if rate else "0")
    joined = _joined(joint, columns, sides)
    foot = DOT.join([*ruled, *joined.values(), *([FIXED] if has_fixed else [])])
    note = "; ".join([_note(groups), *[ROUGH] * is_rough])
    note, judged = _with_joined(note, judged, joined)
    return Figure(title, note, drawn, lines.header, lines.rows, foot, above=lines.above, grade=judged)


def _judged(group: Facts, size: float) -> Facts:
    """Give a rate the reason why it is pale; ``size``: what there is of its class, or what groups differ by."""
    is_far = group["released"] is not None and group["within"] > MIDDLE * size
    return {**group, "reason": group["reason"] or FAR_OFF * is_far}


def _figures_of_rate(group: Facts) -> tuple[str, ...]:
    within = "" if group["within"] is None else percent_up(group["within"])
    released, synthetic = ("" if group[key] is None else percent(group[key]) for key in ("released", "synthetic"))
    return released, within, synthetic, percent(group["share"])


def _rate_cell(group: Facts) -> tuple[str, bool]:
    if group["released"] is None:
        return "not known", True
    off = "" if group["within"] == 0 else f" \N{PLUS-MINUS SIGN} {percent_up(group['within'])[:-1].strip()}"
    low, high = group["released"] - group["within"], group["released"] + group["within"]
    if low < 0 or high > 1:  # a rate is neither
        off = f" ({' to '.join(percent(min(max(one, 0.0), 1.0))[:-1].strip() for one in (low, high))})"
    return percent(group["released"])[:-1].strip() + off, bool(group["reason"])


def _note(groups: Sequence[Facts]) -> str:
    """Say within what rates are, whether groups differ, and how many are pale, and why."""
    known = [one for one in groups if one["released"] is not None]
    offs = [one["within"] for one in known]
    within = f"in %, {points_in_words([one for one in offs if one > 0] or offs)}"
    apart = apart_in_words([Interval(one["released"], one["within"], bool(one["reason"])) for one in known])
    reasons = [one["reason"] for one in groups if one["reason"]]
    return "; ".join(filter(None, [within, apart, pale_in_words(reasons, len(groups))]))


def _described_rates(groups: Sequence[Facts]) -> str:
    known = [one for one in groups if one["released"] is not None]
    largest, worst = (max(known, key=lambda one: float(one[key])) for key in ("released", "within"))
    said = f"Rates of {len(known)} groups; the largest: {percent(largest['released'])} at {called(largest['labels'])}"
    return f"{said}, and the least sure: within {percent_up(worst['within'])} at {called(worst['labels'])}"


def _joined(joint: Facts, columns: Mapping[str, Facts], sides: Sequence[Sequence[list[str]]]) -> dict[str, str]:
    """Say which categories had to be joined, since the release counted them together in this table.

    The key of each column's says how many of them there are.
    """
    said, drawn = dict[str, str](), [[one for one in sides[0] if one not in _fixed(joint, sides)], sides[1]]
    for name, groups in zip(joint["by"], drawn, strict=True):
        joined = [one for one in groups if _is_joined(columns[name], one)]
        if joined:
            every, number = len(columns[name]["labels"]), sum(number_in(one) for one in joined)
            named = "; ".join(map(OF_CATEGORIES.join, joined))
            said[f"{number} of {every} of {name} joined"] = (
                f"{name}: {named} {'each ' * (len(joined) > 1)}counted as one"
            )
    return said


def _is_joined(column: Facts, labels: Sequence[str]) -> bool:
    return len(labels) > 1 and not column["ordered"]


def _with_joined(note: str, judged: str, joined: Iterable[str]) -> tuple[str, str]:
    """Say first how many categories that were asked for were joined: the figures of none of them are known."""
    return "; ".join([*joined, note]), CARE if judged == GOOD and [*joined] else judged


def _side_name(column: Facts, labels: Sequence[str]) -> str:
    """Name a line or a column of a grid; of several categories that were joined, how many these are."""
    name = group_name(column, labels)
    return f"{number_in(labels)} joined: {name}" if _is_joined(column, labels) else name


def _grid(
    title: str,
    description: str,
    joint: Facts,
    columns: Mapping[str, Facts],
    sides: Sequence[Sequence[list[str]]],
    cells: Sequence[tuple[str, bool]],
) -> Markup:
    """Draw a figure for each group of one column with each of another, shaded by how large it is; pale ones are not.

    Lines that a rule fixes are left out: a foot names them.
    """
    down, across = [one for one in sides[0] if one not in _fixed(joint, sides)], sides[1]
    names = [
        brief([_side_name(columns[name], labels) for labels in groups])
        for name, groups in zip(joint["by"], (down, across), strict=True)
    ]
    places = {(tuple(one["labels"][0]), tuple(one["labels"][1])): at for at, one in enumerate(joint["groups"])}
    at_cells = {
        (i, j): places[tuple(line), tuple(group)]
        for i, line in enumerate(down)
        for j, group in enumerate(across)
        if (tuple(line), tuple(group)) in places
    }
    beside = _beside(names[0], [cells[place][0] for place in at_cells.values()], len(across))
    wide = (WIDTH - beside) / len(across)
    parts = list[Markup]()
    for at, label in enumerate(names[1]):
        parts += _label(beside + (at + 0.5) * wide, HEAD / 2, label, wide, "middle")
    for at, label in enumerate(names[0]):
        parts += _label(0, HEAD + (at + 0.5) * HIGH, label, beside - 4, "start")
    figures = [joint["groups"][place]["released"] for place in at_cells.values()]
    known = [one for one in figures if one is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    for (i, j), place in at_cells.items():
        value = joint["groups"][place]["released"]
        shade = 0 if value is None else 1 + round((SHADES - 1) * (value - low) / ((high - low) or 1.0))
        parts += _drawn_cell(beside + j * wide, HEAD + i * HIGH, wide, *cells[place], shade)
    return svg(HEAD + HIGH * len(down) + 2, title, description, parts)


def _beside(names: Sequence[str], cells: Sequence[str], across: int) -> float:
    """Return how much room the names of lines have: as much as they need, or as figures leave."""
    lines = [line for text in cells for line in text.split(" ", 1)]
    needed = max(LEAST_CELL, LETTER * max(map(len, lines), default=0))
    longest = LETTER * max(map(len, names), default=0) + 6
    return max(min(longest, WIDTH - across * needed), LEAST_BESIDE)


def _label(x: float, middle: float, text: str, room: float, anchor: str) -> list[Markup]:
    """Write the name of a group on two lines, small ones only where it were cut else."""
    label = Label.of(text, max(int(room / NAME_LETTER), 1))
    high = SMALL_LINE if label.is_small else LETTERS_HIGH
    top = middle + 4 - (len(label.lines) - 1) / 2 * high
    lines = [words(x, top + n * high, line, anchor, label.kind) for n, line in enumerate(label.lines)]
    return [titled(text, Markup("").join(lines))] if any(line.endswith("…") for line in label.lines) else lines


def _fixed(joint: Facts, sides: Sequence[Sequence[list[str]]]) -> list[list[str]]:
    """Return the groups that go down whose figures are all one, without an error, by a rule; none if all are."""
    figures = {tuple(labels): set[tuple[Any, Any]]() for labels in sides[0]}
    for one in joint["groups"]:
        figures[tuple(one["labels"][0])].add((one["released"], one["within"]))
    fixed = [[*labels] for labels, some in figures.items() if len(some) == 1 and next(iter(some))[1] == 0]
    return fixed if len(fixed) < len(figures) else []


def _ruled(joint: Facts, sides: Sequence[Sequence[list[str]]], written: Callable[[float], str]) -> list[str]:
    """Name the groups that a grid leaves out, since a rule fixes their figures, by these figures."""
    fixed = {tuple(one) for one in _fixed(joint, sides)}
    named = dict[float, dict[str, None]]()
    for one in joint["groups"]:
        if tuple(one["labels"][0]) in fixed:
            named.setdefault(one["released"], {}).update(dict.fromkeys(one["labels"][0]))
    return [f"{', '.join(names)}: {written(figure)} by a rule" for figure, names in named.items()]


def _drawn_cell(x: float, y: float, wide: float, text: str, is_pale_one: bool, shade: int) -> list[Markup]:
    """Draw one figure, with what it is within beneath it."""
    kind = "track" if is_pale_one or not shade else f"heat s{shade}"
    figure, _, off = text.partition(" ")
    lines = [line for line in (figure, off) if line] if text != "not known" else ["not", "known"]
    parts = [box(x, y, wide - 1, HIGH - 1, kind)]
    for at, line in enumerate(lines):
        middle = y + HIGH / 2 + 4 + (at - (len(lines) - 1) / 2) * LETTERS_HIGH
        is_small = LETTER * len(line) > wide + LETTER
        sort = ("narrow" if is_pale_one else "cell") if is_small else "" if is_pale_one else "label"
        parts.append(words(x + (wide - 1) / 2, middle, line, "middle", sort))
    return parts
