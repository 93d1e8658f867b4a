"""Where a hand-off is weak, as rows of its data sheet: what, how far it is off, and what not to do with it."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dpmodels.pages import report
from dpmodels.pages.advice import meaning_of
from dpmodels.pages.card_words import cut
from dpmodels.pages.figures.means import FAR
from dpmodels.pages.figures.named import listed as named
from dpmodels.pages.glance import MOST_CLIPPED, clipped, worst_means
from dpmodels.pages.notes import not_handed_over
from dpmodels.pages.page import capital, percent, percent_up

FAR_WORDS = {"mean": "total, and no mean of all rows", "p99": "99 % quantile"}
TOO_FAR = f"farther off than {percent(FAR)} of itself, or of its spread"
"""What is said behind what figures are within that are stated, and of no use."""
FIGURES = {"mean": "mean", "total": "total", "p99": "99 % quantile"}
MINDED = 0.01
"""Distance from which on a column is named among those where a hand-off is weak."""
MOST_NAMES, MOST_WARNED = 600, 440
"""Letters of columns' names, and of warnings, for which a data sheet has room."""
OF_SHARES = "the most that any share of the rows is off (total variation; in nineteen releases of twenty)"
OF_MEANS = "within holds in nineteen releases of twenty, where values thin out towards the bounds"
NO_SHARE, NO_MEAN = "Take no smaller difference of shares for real.", "Take no smaller difference of it for real."
NO_EXTREME, NO_USE = "Take no largest or smallest value for real.", "Rely on no more than this."
NO_MEAN_OF_IT, BETWEEN = "Use no mean", re.compile(r"its mean lies anywhere from (\S+) to ([^\s;.]+(?:\.\d+)?)")
HIDDEN, MOST_OPEN = "Amounts whose mean noise leaves open", 12
USE_NONE = "Use no mean and no total of these, not by group either, unless you know that their values thin out."
Row = tuple[str, str, str]


def weaknesses(quality: Mapping[str, Any]) -> list[Row]:
    """Return the rows: what is weak, how far it is off, and what not to do; none where nothing tells it.

    Columns that nobody receives are left out. Which figures are not to be used a data sheet says in a place of its own,
    but for cards up to page layout 24.
    """
    dropped, far = not_handed_over(quality), quality.get("far", {})
    avoid, numbers, weakest = (
        {name: one for name, one in quality.get(part, {}).items() if name not in dropped}
        for part in ("avoid", "numbers", "weakest")
    )
    warnings = [one for one in quality["warnings"] if one.partition(": ")[0] not in dropped]
    warnings = [one for one in warnings if not _is_told(one.partition(": ")[0], avoid, numbers)]
    warned = list(_fitting(warnings))
    columns = [{"name": name, "avoid": avoid.get(name, ()), **one} for name, one in numbers.items()]
    shares = [f"{name} {percent_up(error)}" for name, error in _weak(weakest).items()]
    means, cut_values = _means(columns, far), clipped(columns, MOST_CLIPPED)
    rows = [
        *([("Shares, the farthest columns", f"{', '.join(shares)}: {OF_SHARES}", NO_SHARE)] if shares else []),
        *((f"Mean of {name}", said, NO_MEAN) for name, said in means),
        *([("Values beyond bounds", f"{capital(cut_values)}.", NO_EXTREME)] if cut_values else []),
        *([] if "marked" not in quality else _hidden(quality, dropped)),
        *([] if "marked" in quality else [*_avoided(avoid, numbers), *_too_far(far)]),
        *((name, said, NO_USE) for name, _, said in (one.partition(": ") for one in warned)),
    ]
    if further := len(warnings) - len(warned):
        have = "column has" if further == 1 else "columns have"
        rows.append((f"{further} more {have} a warning", "which report.html shows", NO_USE))
    return rows


def _hidden(quality: Mapping[str, Any], dropped: Collection[str]) -> Iterator[Row]:
    """Say of the amounts of which no mean is to be used between what noise alone leaves it."""
    every = list[str]()
    for one in quality["warnings"]:
        name, _, words = one.partition(": ")
        if name not in dropped and words.startswith(NO_MEAN_OF_IT) and (ends := BETWEEN.search(words)):
            every.append(f"{cut(name)} {ends[1]} to {ends[2]}")
    if every:
        yield HIDDEN, f"Between what it lies by noise alone: {named(every, MOST_OPEN)}", USE_NONE


def _too_far(far: Mapping[str, Mapping[str, str]]) -> Iterator[Row]:
    """Say within what figures are that are stated, and of no use."""
    for figure, words in FAR_WORDS.items():
        if every := far.get(figure):
            within = [f"{cut(name)} ({said})" for name, said in every.items()]
            yield ", ".join(map(cut, every)), f"{', '.join(within)}: {TOO_FAR}", f"Use no {words}."


def _weak(errors: Mapping[str, float]) -> dict[str, float]:
    """Leave out what is close enough that nobody minds, but for the first; the worst are first."""
    return {name: error for index, (name, error) in enumerate(errors.items()) if index == 0 or error >= MINDED}


def _is_told(name: str, avoid: Mapping[str, Sequence[str]], numbers: Mapping[str, Any]) -> bool:
    """Tell whether all that a column is warned of is said by naming the figures of it that are not to be used."""
    is_far = "far" in numbers.get(name, {}).get("unseen", {})
    return name in avoid and not (is_far and "mean" not in avoid[name])


def _fitting(warnings: Sequence[str]) -> Iterator[str]:
    """Yield as many warnings as there is room for, in whole sentences, of which advice is left out."""
    room = MOST_WARNED
    for words in map(meaning_of, warnings):
        whole = words if len(words) <= MOST_WARNED else f"{words[: MOST_WARNED - 1]}…"
        if len(whole) > room:
            return
        room -= len(whole)
        yield whole


def _means(columns: Sequence[Mapping[str, Any]], far: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    """Say what the report does of the columns whose means are known worst, and of one whose mean noise leaves open."""
    worst = worst_means({"columns": columns})
    open_means = [one for one in columns if "means" in one.get("unseen", {}) and one not in worst]
    sound = [one for one in open_means if "mean" not in one["avoid"] and "far" not in one["unseen"]]
    every = [_mean(far, *report.number_row(one)) for one in [*worst, *sound[:1]]]
    return [*every[:-1], *((name, f"{said}; {OF_MEANS}") for name, said in every[-1:])]


def _mean(
    far: Mapping[str, Mapping[str, str]],
    name: str,
    estimate: str,
    synthetic: str,
    within: str,
    quantile: str,
    within_of_quantile: str,
    low: str,
    high: str,
) -> tuple[str, str]:
    """Name a number column, and say of it what the report does in its table of means; no figure that is of no use.

    ``far``: by figure, the columns of which it is of no use.
    """
    rows = f", {synthetic} in these rows" if synthetic else ""
    could = f", or {low} to {high} if a few values that noise hides lie far off" if low else ""
    known = f"{quantile} within {within_of_quantile}" if within_of_quantile != "unknown" else "is not known"
    known = "is too far off to be used" if name in far.get("p99", ()) else known
    return name, f"{estimate} as released{rows}, within {within}{could}; its 99 % quantile {known}"


def _avoided(avoid: Mapping[str, Sequence[str]], numbers: Mapping[str, Any]) -> Iterator[Row]:
    """Say of which columns which figures are not to be used, those with the same verdict together."""
    verdicts: dict[tuple[str, bool], list[str]] = {}
    for name, figures in avoid.items():
        thin = "expected_error_if_thinning_out" in numbers.get(name, {}).get("mean", {})
        verdicts.setdefault((_either([FIGURES[one] for one in figures]), thin), []).append(name)
    for (figures, thin), names in verdicts.items():
        unless = ", not by group either" if FIGURES["mean"] in figures else ""
        unless += ", unless you know that their values thin out towards the bounds" if thin else ""
        yield ", ".join(map(cut, names)), f"{figures}: not known from what was released", f"Use no {figures}{unless}."


def _either(words: Sequence[str]) -> str:
    """Join words of which any may be meant."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if words[1:] else words[0]


def joined(words: Sequence[str]) -> str:
    """Join words as a list is spoken."""
    return f"{', '.join(words[:-1])} and {words[-1]}"


def listed(names: Sequence[str], room: int = MOST_NAMES) -> str:
    """Join names as far as there is room, and say how many more there are."""
    names_shown = list[str]()
    for name in names:
        if sum(map(len, names_shown)) + len(name) + 2 * len(names_shown) > room and names_shown:
            break
        names_shown.append(cut(name))
    more = len(names) - len(names_shown)
    return ", ".join(names_shown) + (f" and {more} more, which model-card.html names" if more else "")
