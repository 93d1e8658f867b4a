"""What the rows of a hand-off are not good for whatever the purpose is, and which of their means hold.

Somebody holds the declared purpose against it: nacre compares no words.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.pages.card_words import cut
from dpmodels.pages.figures.named import MOST_NAMED, listed
from dpmodels.pages.figures.open_means import IF_THIN
from dpmodels.plural import counted

Facts = Mapping[str, Any]
SINGLE = "a decision about a single person, or a search for one"
LINKED = "linking these rows with other files about the same people: no row is anybody's, and a match proves nothing"
SMALL = "groups of few rows{such_as}: noise and fit hide what these differ by, or make it up"
RARE = "rare {what}: that one is there, or is not there, proves nothing"
MARKED = "what report.html marks ✗, or lists as not to be used: {marks}"
NOT_FOR = "what report.html lists as “Not for” besides: {clauses}"
BELOW = "named below"
UNSTATED = "means by group that report.html does not state, or states pale"
MEANS, QUANTILES, RATE = "means", "99 % quantiles", "rate of "
"""How headings of a report begin."""
BY_GROUP = "means by group, as report.html states them and not as these rows give them"
OTHER_LIMITS = (
    "A mean by group holds where nothing speaks against it, such as an error beyond the mean itself, and one of all "
    "rows is good within 5 % alone; so the first may hold where the second is to be used with care"
)
"""Why a mean of a group may hold where that of all rows does not."""
MOST_LETTERS = 240
"""Letters of a clause for which a statement has room, names in it among them."""
SHORT = {"by itself": "shares and quantiles"}
"""What headings of a report are called where none stands above them."""
MOST_COLUMNS, MOST_GROUPS, ALL_NAMED = 5, 3, 12
"""So many pairs and groups are named, and columns, of which whoever ticks a list is to know each."""
TERMS = {
    "hold": "hold",
    "in some groups": "hold but for the pale groups",
    "if values thin out": "hold only if values thin out (become rarer towards the largest possible one, as wages do)",
}
"""How pages write on what terms means by group hold."""
UNLESS = "unless values thin out (become rarer towards the largest possible one, as wages do)"
OF_ALL = {
    "good": "good",
    "care": "with care",
    "open": "not to be used unless values thin out, which nothing here shows",
    "bad": "not to be used",
}


def hard_limits(facts: Facts, names_below: bool = False) -> list[str]:
    """Return what the rows, vectors or classes of a hand-off are not good for; the purpose needs none of these.

    They are as many, in the same order, on every page. ``names_below``: what a report marks as of no use, or lists, is
    named further down on the same page.
    """
    about, quality = facts["content"]["about"], facts["quality"]
    if about == "embeddings":
        return [SINGLE]
    if about == "federation":
        return [SINGLE, RARE.format(what="classes")]
    groups = [f"{cut(name)} ({cut(', '.join(labels))})" for name, labels in quality.get("pale", {}).items()]
    such_as = f", such as {listed(groups, MOST_GROUPS)}" if groups else ""
    rare = RARE.format(what="classes" if about == "images" else "combinations of values")
    marked, not_for = _marked(quality), _not_for(quality)
    if names_below:
        marked, not_for = [MARKED.format(marks=BELOW)] * len(marked), [NOT_FOR.format(clauses=BELOW)] * len(not_for)
    return [SINGLE, LINKED, SMALL.format(such_as=such_as), rare, *marked, *not_for]


def _not_for(quality: Facts) -> list[str]:
    """Name what a report lists as not to be used and marks nowhere; nothing of cards of earlier versions."""
    if not (clauses := quality.get("not_for", ())):
        return []
    whole = [one if len(one) <= MOST_LETTERS else f"{one[: MOST_LETTERS - 1]}…" for one in clauses]
    unstated = [UNSTATED] if "group_means" in quality else []
    return [NOT_FOR.format(clauses=_in_lines([*whole, *unstated]))]


def _marked(quality: Facts) -> list[str]:
    """Name what a report marks as of no use, by what is asked of it; nothing where it marks none."""
    bad = {title: [*marks["bad"]] for title, marks in _marks(quality).items() if "bad" in marks}
    moments = {} if "not_for" in quality else quality.get("moments", {})
    lost = {what: [*names] for what, names in moments.items()}
    every = [
        f"{heading(title)} {'by' if title.startswith(RATE) else 'of'} {_all(names)}"
        for title, names in (bad | lost).items()
    ]
    terms = [UNLESS, UNLESS.partition(" (")[0]]  # what it is to thin out is said once
    for title, names in _on_terms(quality).items():
        every.append(f"{heading(title)} of {_all(names)}, {terms[0]}")
        terms = terms[-1:]
    return [MARKED.format(marks=_in_lines(every))] if every else []


def _on_terms(quality: Facts) -> dict[str, list[str]]:
    """Name the columns by what of them is to be used with care, since noise leaves it open unless values thin out."""
    every = {
        title: [name for name, said in marks.get("care", {}).items() if IF_THIN in said]
        for title, marks in _marks(quality).items()
    }
    return {title: names for title, names in every.items() if names}


def _in_lines(clauses: Sequence[str]) -> str:
    """Put clauses into a line each, as a page shows them on a screen."""
    if len(clauses) == 1:
        return clauses[0]
    return "".join(f"\n– {clause}{';' * (at < len(clauses))}" for at, clause in enumerate(clauses, 1))


def heading(title: str) -> str:
    """Return what a heading of a report is called on pages that have no other headings."""
    return SHORT.get(title, title).replace(", ", " and ")


def _marks(quality: Facts) -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return the marks of the columns; cards up to page layout 24 have none."""
    marks: Mapping[str, Mapping[str, Mapping[str, str]]] = quality.get("marked", {})
    return marks


def without_use(facts: Facts) -> list[str]:
    """Return the columns that are handed over and of which no use holds: a report marks each figure of them as bad.

    Empty of cards that have no marks.
    """
    marks, means = _marks(facts["quality"]), " ".join(f" {one} " for one in _means_that_hold(facts["quality"]))
    of_column = {
        one["name"]: {mark for kinds in marks.values() for mark, names in kinds.items() if one["name"] in names}
        for one in facts["content"].get("columns", ())
    }
    return [name for name, kinds in of_column.items() if kinds == {"bad"} and f" {name} " not in means]


def _means_that_hold(quality: Facts) -> list[str]:
    """Return which means by group a report states, on whatever terms."""
    return [one for terms in TERMS for one in quality.get("group_means", {}).get(terms, ())]


def why_handed_over(facts: Facts) -> str:
    """Ask why columns are handed over of which no use holds; empty without any."""
    if not (names := without_use(facts)):
        return ""
    have, them = ("has", "Why is it") if len(names) == 1 else ("have", "Why are they")
    every = len(facts["content"]["columns"])
    return f"Of {counted(every, 'column')}, {len(names)} {have} no use that holds: {_all(names)}. {them} handed over?"


def _all(names: Sequence[str]) -> str:
    return listed([*map(cut, names)], ALL_NAMED)


def measured_in_words(content: Facts) -> str:
    """Ask whether what is measured most closely is what the purpose needs; empty without columns."""
    if not content.get("columns"):
        return ""
    asked = [f"{cut(one)} with {cut(other)}" for one, other in content.get("workload", ())]
    pairs = listed(asked, MOST_COLUMNS) if asked else ""
    closely = [f"{cut(content['target'])} (the target)"] if content.get("target") else []
    closely += [f"{pairs} (the workload)"] if pairs else []
    said = f"{'; '.join(closely)}: are these what the purpose asks?" if closely else "no column above the others."
    return f"Measured most closely: {said}"


def means_in_words(quality: Facts) -> list[tuple[str, str]]:
    """Say which means of all rows, means by group and large quantiles hold, with a heading each; nothing if none is."""
    said = [
        (f"{heading(title)} of all rows", _by_mark(marks))
        for title, marks in _marks(quality).items()
        if title.startswith((MEANS, QUANTILES))
    ]
    if said:
        stated = quality.get("group_means", {})
        parts = [f"{words}: {listed([*map(cut, stated[terms])])}" for terms, words in TERMS.items() if terms in stated]
        parts.append(f"no other is known. {OTHER_LIMITS}" if parts else "none is known")
        said.insert(1, (BY_GROUP, "; ".join(parts)))
    return said


def _by_mark(marks: Mapping[str, Mapping[str, str]]) -> str:
    """Name the columns by their marks: of those of no use all, since whoever has the sheet alone is to know each."""
    care = marks.get("care", {})
    on_terms = {name: words for name, words in care.items() if IF_THIN in words}
    known = {**marks, "open": on_terms, "care": {name: words for name, words in care.items() if name not in on_terms}}
    return "; ".join(
        f"{words}: {listed(every, MOST_NAMED if mark in ('good', 'care') else len(every))}"
        for mark, words in OF_ALL.items()
        if mark in known and (every := _with_limit(mark, known[mark]))
    )


def _with_limit(mark: str, columns: Mapping[str, str]) -> list[str]:
    """Name columns, each with what it is within; of those of no use without."""
    limits = {name: words.removesuffix(f" {IF_THIN}").rstrip(",") for name, words in columns.items()}
    then = "then " * (mark == "open")
    return [cut(name) if mark == "bad" else f"{cut(name)} ({then}within {words})" for name, words in limits.items()]
