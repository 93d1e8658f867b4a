"""The publishable report of a hand-off: its page, its facts, and frames of what it says."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import time
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmodels.errors import ArtifactError

if TYPE_CHECKING:
    import pandas as pd

    from dpmodels.pages.figures.relations import Relation

FRAME = "width:100%;height:45rem;border:1px solid #8884"
OF_COLUMNS = ("column", "quantiles_within", "shares_within", "distance_to_release", "expected_distance", "verdict")
OF_GROUPS = ("column", "by", "group", "share", "released", "released_within", "synthetic", "reason")
OF_RATES = (
    *("rate_of", "column", "group", "low", "high"),
    *("share", "released", "released_within", "synthetic", "within", "pale"),
)
"""What the columns of the frames are called: first what a figure is of, then the same figures in the same order."""
EXACTLY_0, NULL = "exactly 0", "null"
"""What a report calls groups that are no range."""


class Report:
    """The publishable report of a hand-off; a notebook shows the page.

    What it says is in ``facts``, and as frames in ``columns``, ``means``, ``groups``, ``rates`` and ``pairs``: each is
    a pandas DataFrame with a row for each figure, none where the report has no such figures. ``released`` was counted
    with noise, and is within ``released_within`` of the figure of the real rows in nineteen releases of twenty;
    ``synthetic`` is that of the synthetic rows, and ``within`` and other ``…_within`` what that is off by at most.

        made = nacre.Result("demo/hand-off-1")
        made.report.means[["column", "released", "released_within", "synthetic", "within"]]
        made.report.rates.query("column == 'ethnicity'")[["group", "released", "released_within"]]

    Attributes:
        path: the page; its facts are beside it, in ``report.json``.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "report.html"

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The content of the page, as it is in ``report.json``."""
        facts: dict[str, Any] = json.loads(read_page(self.path.with_suffix(".json")))
        return facts

    @property
    def columns(self) -> "pd.DataFrame":
        """How far every column is from the real rows: a row for each, in the schema's order, derived ones last.

        - ``column``, and first ``table`` where there are several;
        - ``quantiles_within``, the share of rows by which a quantile is off; NaN of categories, which have no order;
        - ``shares_within``, by which shares are off, half the sum of all differences (total variation);
        - ``distance_to_release``, how far the synthetic shares are from the released ones, and ``expected_distance``,
          how far noise alone puts these from the real ones, on average; both as ``shares_within``;
        - ``verdict``, the same in words, or what is to be avoided.

        Units: parts of all rows, 0 to 1. Where nothing of a column was counted all of them are NaN.
        """
        columns = [*self.facts.get("columns", ()), *self.facts.get("derived", ())]
        several = any("table" in column for column in columns)
        rows = [[*([column.get("table")] if several else []), *_of_column(column)] for column in columns]
        return _frame(rows, ["table", *OF_COLUMNS] if several else OF_COLUMNS)

    @property
    def means(self) -> "pd.DataFrame":
        """The means and 99 % quantiles of number columns: a row for each column whose values stand out of the noise,
        derived ones last.

        - ``released``, the mean that the released counts tell, and ``released_within``, 1.96 times its standard error,
          if values thin out where noise leaves the mean open;
        - ``synthetic``, the mean of the synthetic rows, and ``within``, 1.96 times the error to expect of both
          (``facts`` has it), and NaN where noise leaves the mean open;
        - ``at_least`` and ``at_most``, what the mean could be where noise may hide values far away, otherwise NaN;
        - ``p99_released`` and ``p99_within``, the same of the value that one row of a hundred exceeds;
        - ``reason`` says why a figure, or ``within``, is not to be relied on, and is empty where nothing speaks
          against them.

        Units: those of the column.
        """
        from tasks.stages.means import MEANS, stated_mean

        columns = [*self.facts.get("columns", ()), *self.facts.get("derived", ())]
        wholes = self.facts.get("wholes", {})
        return _frame([stated_mean(column, wholes) for column in columns if "mean" in column], MEANS)

    @property
    def groups(self) -> "pd.DataFrame":
        """The means by groups that the page shows: a row for each group of each pair of columns.

        - ``column``, whose mean it is; ``by`` and ``group``, of which rows;
        - ``share``, the part of the rows that is in the group, as released, of those in which the column is not null;
        - ``released``, the mean that the released counts tell, ``released_within``, what it is off by at most in
          nineteen releases of twenty, and ``synthetic``, the mean of the synthetic rows; NaN where noise leaves none;
        - ``reason`` says why the released mean is not to be relied on, or told from that of another group; it is empty
          where nothing speaks against it.

        Units: those of the column. ``nacre.means`` of a run has further ones.
        """
        from dpmodels.pages.figures.group_means import called

        rows: list[Sequence[Any]] = []
        for one in self.facts.get("groups", ()):
            for group in one["groups"]:
                stated = (group[key] for key in ("share", "released", "within", "synthetic"))
                figures = [float("nan") if each is None else each for each in stated]
                name = called(group["labels"])
                rows.append((one["column"], one["by"], name, *figures, group["reason"]))
        return _frame(rows, OF_GROUPS)

    @property
    def rates(self) -> "pd.DataFrame":
        """How often the target has a class in each group of every other column: a row for each class and group.

        Columns of two classes that a workload names with another one have their rates by that, too, as parts of the
        rows in which they are not null.

        - ``rate_of``, the target and its class, such as ``married=true``; of three classes or more each has its rows,
          up to six; ``column`` and ``group``, which values;
        - ``low`` and ``high`` of the values in the group, as it writes them: numbers, timestamps of dates, or times of
          day, and NA of categories and nulls;
        - ``share``, the part of all rows that is in the group, as released; a group of none is left out;
        - ``released``, the rate as it was counted with noise, and ``released_within``, two standard deviations of that
          noise, which the page writes behind ±;
        - ``synthetic``, the rate of the synthetic rows, and ``within``, what that one is off by at most;
        - ``pale``, whether the page sets it back: a group of few rows, or known worst.

        Units: parts, 0 to 1, of all rows of a group, also where the target is null. Reports of layouts before 13, and
        of schemas without a target, have no rates.
        """
        from dpmodels.pages.figures.rate_groups import counting
        from dpmodels.pages.figures.rates import by_class, with_rows
        from dpmodels.pages.plots import DEVIATIONS

        every = [*filter(None, [self.facts.get("rates")]), *self.facts.get("asked_rates", ())]
        names = [column["name"] for column in self.facts.get("columns", ())]
        rows: list[Sequence[Any]] = []
        for of, one in [
            (of_class, one) for each in every for of_class in by_class(each) for one in of_class["columns"]
        ]:
            rate_of, name = f"{names[of['target']]}={of['class']}", names[one["column"]]
            groups = [_group(labels, self.facts["columns"][one["column"]]) for labels in one["labels"]]
            pale = [index not in counting(one) for index in range(len(groups))]
            noise = [DEVIATIONS * stddev for stddev in one["stddev"]]
            stated = (one["share"], one["released"], noise, one["synthetic"], one["within"])
            figures = zip(*zip(*groups, strict=True), *stated, pale, strict=True)
            rows += [[rate_of, name, *row] for place, row in enumerate(figures) if place in with_rows(one)]
        return _frame(rows, OF_RATES)

    @property
    def pairs(self) -> "pd.DataFrame":
        """How far every two columns together are from the release, and how much they depend on each other.

        A row for each pair of ``facts["pairs"]["distances"]``, with names in place of numbers:

        - ``first`` and ``second``, the columns;
        - ``relation``: ``ruled`` if a rule of the schema relates the two, which is no finding; ``kept`` if they
          depend on each other for certain, and about as strongly in the synthetic rows; ``weaker`` if less so there,
          ``stronger`` if by more than a quarter more so, and more than noise explains;
          ``likely`` if that stands out of the noise less clearly, so that one in ten of these may be noise; ``hidden``
          if noise hides whether they do; empty of earlier layouts;
        - ``expected_distance``, by noise alone; ``distance_to_release`` of the synthetic rows;
          ``noise_distance_95``, which noise exceeds in one release of twenty; ``distance_within``, within what the
          pair is;
        - ``released_dependence``, ``synthetic_dependence`` and ``noise_dependence``, how much the two depend on each
          other as released, in the synthetic rows, and by noise and chance alone; ``noise_dependence_95``, which
          these exceed in one release of twenty.

        All figures are of groups: the values of each column in at most four of about the same released size, exactly 0
        and null apart where they are not few; of some methods two halves. Of the pairs that the page draws
        ``facts["pairs"]["tables"]`` has the ``labels`` of these groups, first those of ``first``. Of any pair that is
        counted together ``nacre.marginals(made, first, second)`` has the finer cells that groups are made of.

        Units: total variation, 0 to 1. Earlier layouts have fewer columns.
        """
        from dpmodels.pages.figures.relations import likely_relations, relations
        from dpmodels.report.pair import FIGURES

        every, likely = relations(self.facts), likely_relations(self.facts)
        verdicts = {pair: _verdict(relation, pair in likely) for pair, relation in every.items()}
        names = [column["name"] for column in self.facts.get("columns", ())]
        listed = (self.facts.get("pairs") or {}).get("distances", ())
        rows = [[names[one], names[other], verdicts.get((one, other), ""), *figures] for one, other, *figures in listed]
        known = FIGURES[: len(rows[0]) - 3] if rows else FIGURES
        return _frame(rows, ["first", "second", "relation", *known])

    @property
    def html(self) -> str:
        """The page: one file that fetches nothing and runs no script."""
        return read_page(self.path)

    def __repr__(self) -> str:
        return f"<nacre report of {self.facts['data_set']}: {self.path}>"

    def _repr_html_(self) -> str:
        """Embed the page, without links to files beside it, in a frame that can run no script and read no notebook."""
        from dpmodels.pages.page import unlinked

        title = escape(f"Report on synthetic data: {self.facts['data_set']}")
        return f'<iframe title="{title}" sandbox="" style="{FRAME}" srcdoc="{escape(unlinked(self.html))}"></iframe>'


def _group(labels: Sequence[str], column: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """Return what a page calls a group of a column's values, and the first and the last of them as it writes these."""
    import pandas as pd

    from dpmodels.plural import OF_CATEGORIES, values_in_words

    if not column["ordered"]:
        return OF_CATEGORIES.join(labels), pd.NA, pd.NA
    value = pd.Timestamp if column["type"] == "datetime" else time.fromisoformat if column.get("clock") else float
    text = "0" if labels[0] == EXACTLY_0 else labels[0]
    ends: list[Any] = [pd.NA] if text == NULL else [value(end) for end in text.split(" to ")]
    if EXACTLY_0 in labels[1:]:  # joined to the range of the least values, or of the largest below 0
        ends = [min(ends[0], 0.0), max(ends[-1], 0.0)]
    return values_in_words(labels), ends[0], ends[-1]


def _verdict(relation: "Relation", is_likely: bool) -> str:
    """Return a page's word for a relation."""
    if relation.by_rule:
        return "ruled"
    if relation.is_kept:
        return "kept"
    if relation.is_stronger:
        return "stronger"
    return "weaker" if relation.is_certain else "likely" if is_likely else "hidden"


def _of_column(column: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the figures of a column; those of earlier layouts are reckoned as their pages did."""
    from dpmodels.pages.glance import likely_error, rank_error

    counted, missing = "released" in column, float("nan")
    yield column["name"]
    if "follows" in column:
        yield from (column.get(figure, missing) for figure in ("quantiles_within", "shares_within"))
    else:
        yield rank_error(column) if counted and "rank_distance_to_release" in column else missing
        yield likely_error(column) if counted else missing
    yield from (column.get(figure, missing) for figure in ("distance_to_release", "expected_distance"))
    yield column.get("verdict", column.get("warning", "")).replace("\N{NO-BREAK SPACE}", " ")


def _frame(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> "pd.DataFrame":
    from nacre.listing import Listing

    return Listing(rows, columns=list(names))


def read_page(path: Path) -> str:
    """Read a page of a hand-off, or its facts.

    Raises:
        ArtifactError: there is no such file.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ArtifactError(f"{path} is missing or cannot be read; is {path.parent} a hand-off?") from None
