"""How the tables of a comparison stand: which is best in each score, and of each table a plain sentence."""

from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.plural import counted

UP, DOWN, HALF, ONE = "higher", "lower", "near 0.5", "near 1"
IDEALS = {HALF: 0.5, ONE: 1.0}
"""The figures that real rows give in expectation, and that a score is best near."""


def show(figure: float | None) -> str:
    """Write a score."""
    return "–" if figure is None else f"{figure:.4f}" if abs(figure) < 10 else f"{figure:.1f}"


def mark_best(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Name in each line, as ``best``, the tables whose figure is the best of several, to the digits that are shown.

    No table is named where all are level, or where one alone has a figure.
    """
    return [{**line, "best": _best(line["better"], line["tables"])} for line in lines]


def _best(better: str, figures: Mapping[str, float | None]) -> list[str]:
    """Return the tables whose figure is the best."""
    losses = {name: _loss(better, float(show(figure))) for name, figure in figures.items() if figure is not None}
    if len(set(losses.values())) < 2:
        return []
    return [name for name, loss in losses.items() if loss == min(losses.values())]


def _loss(better: str, figure: float) -> float:
    """Return what is smaller the better a figure is."""
    if better in IDEALS:
        return round(abs(figure - IDEALS[better]), 6)
    return -figure if better == UP else figure


def verdicts(lines: Sequence[Mapping[str, Any]], reports: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Say of each table, by its name, in how many scores it is best, which checks fail, and what is farthest off.

    Privacy: made of exact figures of the real rows, so the sentences stay Sensitive like them.
    """
    return {name: "; ".join(filter(None, _of_table(name, lines, report))) for name, report in reports.items()}


def _of_table(name: str, lines: Sequence[Mapping[str, Any]], report: Mapping[str, Any]) -> tuple[str, ...]:
    judged = [line["best"] for line in lines if line["best"] and line["tables"][name] is not None]
    best = f"best in {sum(name in names for names in judged)} of {counted(len(judged), 'score')}" if judged else ""
    known = [check for check in report["checks"] if check["holds"] is not None]
    failing = [check["name"] for check in known if not check["holds"]]
    holding = f"checks: {len(known) - len(failing)} of {len(known)} hold" if known else ""
    return best, holding + (f", but not {', '.join(failing)}" if failing else ""), _farthest(report)


def _farthest(report: Mapping[str, Any]) -> str:
    """Say which pair of columns goes together least as in the real rows; of several tables, the farthest of all."""
    tables = report["tables"].values() if "edges" in report else [report]
    outcomes = [table["metrics"].get("correlations", {"status": "absent"}) for table in tables]
    pairs = [pair for one in outcomes if one["status"] == "done" for pair in one["result"]["largest"][:1]]
    if not pairs:
        return ""
    return f"farthest off of all pairs: {pair_in_words(max(pairs, key=lambda pair: float(pair['difference'])))}"


def pair_in_words(pair: Mapping[str, Any]) -> str:
    """Say how two columns go together in the real rows and in synthetic ones."""
    values = f"{pair['measure']} {pair['real']:.2f} in the real rows, {pair['synthetic']:.2f} here"
    return f"{' and '.join(pair['columns'])} ({values})"
