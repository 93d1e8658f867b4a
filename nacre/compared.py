"""What a comparison shows of itself: a frame of scores, with a sentence on each table, and in a notebook small bars."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from dpmodels.comparison.report import BANNER
from dpmodels.comparison.standing import IDEALS, show
from dpmodels.pages import drawing
from nacre.notebook import cell, facts_as_html, line, table

FIGURES = ("score", "better", "real rows")
"""Columns of a comparison before those of its tables."""
NAMED = "tables are numbered as they were given; a dictionary, compare({'mine': frame, ...}, ...), names them"
"""What is said of rows in memory that a list gave, which have no names."""
BEST = "best"
"""Column of a comparison of several tables: the names of those that are best in a score."""
LINE, BAR, LABELS, LETTERS = 16, 10, 110, 16
"""Heights of a line of a picture and of its bar, the width of its labels, and their letters, in units of drawings."""


class Scores(pd.DataFrame):
    """The scores of tables beside the real rows, a row each; whatever is computed of it is a plain frame.

    ``attrs`` holds ``verdicts``, a sentence on each table by its name; ``checks``, a dictionary for each check of each
    table; ``best``, the best tables of each score; ``page``, where the page of all lies in the sensitive zone; and
    ``unnamed``, whether tables are numbered since a list gave them.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def __repr__(self) -> str:
        return "\n".join([self.to_string(index=False, na_rep="–", float_format=show), *self._said()])

    def _said(self) -> list[str]:
        lines = [f"{name}: {verdict}" for name, verdict in self.attrs.get("verdicts", {}).items()]
        return [*lines, *([NAMED] if self.attrs.get("unnamed") else [])]

    def _repr_html_(self) -> str:
        verdicts = self.attrs.get("verdicts", {})
        names = [name for name in self.columns if name not in (*FIGURES, BEST)]
        best = self.attrs.get("best", [()] * len(self))
        rows = (_row(score, names, of_line) for score, of_line in zip(self.to_dict("records"), best, strict=True))
        head = line(cell(escape(str(name)), "col") for name in (*FIGURES, *names, "the line: real rows"))
        scores = table(BANNER, rows, head)
        named = {"names": NAMED} if self.attrs.get("unnamed") else {}
        page = {"page": str(self.attrs.get("page", ""))}
        return scores + facts_as_html("how each table stands", {**verdicts, **named, **page})


def scores_of(facts: Mapping[str, Any], page: str, are_numbered: bool = False) -> Scores:
    """Make the frame of a comparison's facts; a column ``best`` is there where there are several tables.

    ``are_numbered``: whether some tables are rows in memory of a list, which have no names.
    """
    lines = [
        {
            **dict(zip(FIGURES, (one["score"], one["better"], one["real"]), strict=True)),
            **one["tables"],
            **({BEST: ", ".join(one["best"])} if len(one["tables"]) > 1 else {}),
        }
        for one in facts["scores"]
    ]
    scores = Scores(lines)
    checks = [{"table": name, **check} for name, table in facts["tables"].items() for check in table["checks"]]
    best = [one["best"] for one in facts["scores"]]
    scores.attrs |= {"page": page, "verdicts": facts["verdicts"], "checks": checks, "best": best}
    scores.attrs["unnamed"] = are_numbered
    return scores


def _row(score: Mapping[Any, Any], names: Sequence[str], best: Sequence[str]) -> str:
    """Lay a score out: what is better, the figure of real rows and of each table, the best in bold, and bars."""
    figures = {name: None if pd.isna(score[name]) else float(score[name]) for name in (FIGURES[-1], *names)}
    shown = (f"<b>{show(one)} (best)</b>" if name in best else show(one) for name, one in figures.items())
    picture = f'<img alt="" style="width:18rem" src="{_picture(score["score"], score["better"], figures)}">'
    words = cell(escape(score["score"]), "row"), cell(escape(score["better"]))
    return line((*words, *map(cell, shown), cell(picture)))


def _picture(title: str, better: str, figures: Mapping[str, float | None]) -> str:
    """Draw a bar for each table, and a line through them where real rows stand, as the address of a picture."""
    real, tables = figures[FIGURES[-1]], {name: one for name, one in figures.items() if name != FIGURES[-1]}
    top = max([abs(one) for one in figures.values() if one is not None] + [2 * IDEALS.get(better, 0.0), 1e-9])
    width, height, parts = drawing.WIDTH - LABELS, LINE * len(tables), []
    for place, (name, figure) in enumerate(tables.items()):
        y = LINE * place + (LINE - BAR) / 2
        parts += [
            drawing.words(0, y + BAR - 1, drawing.cut(name, LETTERS), "start", "label"),
            drawing.box(LABELS, y, width, BAR, "track"),
            drawing.box(LABELS, y, width * abs(figure or 0) / top, BAR),
        ]
    if real is not None:
        parts.append(drawing.path("mark", [f"M{drawing.number(LABELS + width * abs(real) / top)} 0v{height}"]))
    picture = drawing.svg(height, title, "bars of the tables, and a line where real rows stand", parts)
    return drawing.standalone(drawing.Figure(title, "", picture, (), ()))
