"""How the tables of a comparison stand: which is best in each score, and of each table a plain sentence."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpmodels.plural import counted

UP, DOWN, HALF, ONE = "higher", "lower", "near 0.5", "near 1"
IDEALS = {HALF: 0.5, ONE: 1.0}
"""The figures that real rows give in expectation, and that a score is best near."""
TOO_CLOSE, LEAST_COLUMNS = 0.2, 5
"""Other real rows hardly ever come as near as a fifth of the distance that is expected of them: a column of two values
does with a probability of 1/8, any other more rarely, and so five that are independent with one of 1/30,000."""
SUSPICIOUS = (
    "suspiciously close: single columns are nearer to the real ones than other real rows are, as those of copies are, "
    "or of counts of very many rows"
)


def show(figure: float | None) -> str:
    """Write a score."""
    return "–" if figure is None else f"{figure:.4f}" if abs(figure) < 10 else f"{figure:.1f}"


def mark_best(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Name in each line, as ``best``, the tables whose figure is the best of several, to the digits that are shown.

    No table is named where all are level, or where one alone has a figure. What is beyond the figure of real rows,
    where that is known, is level with it: no table can be better than they are.
    """
    return [{**line, "best": _best(line["better"], line.get("real"), line["tables"])} for line in lines]


def _best(better: str, real: float | None, figures: Mapping[str, float | None]) -> list[str]:
    """Return the tables whose figure is the best."""
    ceiling = None if real is None else float(show(real))
    losses = {
        name: _loss(better, ceiling, float(show(figure))) for name, figure in figures.items() if figure is not None
    }
    if len(set(losses.values())) < 2:
        return []
    return [name for name, loss in losses.items() if loss == min(losses.values())]


def _loss(better: str, ceiling: float | None, figure: float) -> float:
    """Return what is smaller the better a figure is; of a ratio, a half is as far from 1 as two."""
    if better == ONE:
        return round(abs(math.log(figure)), 6) if figure > 0 else math.inf
    if better == HALF:
        return round(abs(figure - IDEALS[HALF]), 6)
    sign = -1 if better == UP else 1
    return sign * figure if ceiling is None else max(sign * figure, sign * ceiling)


def verdicts(lines: Sequence[Mapping[str, Any]], reports: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Say of each table, by its name, in how many scores it is best, which checks fail, and what is farthest off.

    Privacy: made of exact figures of the real rows, so the sentences stay Sensitive like them.
    """
    return {name: "; ".join(filter(None, _of_table(name, lines, report))) for name, report in reports.items()}


def _of_table(name: str, lines: Sequence[Mapping[str, Any]], report: Mapping[str, Any]) -> tuple[str, ...]:
    judged = [line["best"] for line in lines if line["best"] and line["tables"][name] is not None]
    best = (
        f"best in {sum(name in names for names in judged)} of {counted(len(judged), 'score')} that differ"
        if judged
        else ""
    )
    known = [check for check in report["checks"] if check["holds"] is not None]
    failing = [check["name"] for check in known if not check["holds"]]
    holding = f"passes {len(known) - len(failing)} of {counted(len(known), 'check')}" if known else ""
    close = SUSPICIOUS if any(map(_is_too_close, _outcomes(report, "marginals"))) else ""
    return best, holding + (f" and fails {', '.join(failing)}" if failing else ""), close, _farthest(report)


def _outcomes(report: Mapping[str, Any], metric: str) -> list[Any]:
    """Return what a metric found of a table, or of each of several."""
    tables = report["tables"].values() if "edges" in report else [report]
    outcomes = [table["metrics"].get(metric, {"status": "absent"}) for table in tables]
    return [one["result"] for one in outcomes if one["status"] == "done"]


def _is_too_close(facts: Mapping[str, Any]) -> bool:
    """Tell whether single columns are nearer to the real ones than other real rows can be expected to come."""
    expected = facts["chance_1_way"]
    close = [name for name, off in facts["total_variation_1_way"].items() if off < TOO_CLOSE * expected[name]]
    return len(close) >= LEAST_COLUMNS and (
        facts["mean_total_variation_1_way"] < TOO_CLOSE * facts["mean_chance_1_way"]
    )


def _farthest(report: Mapping[str, Any]) -> str:
    """Say which pair of columns goes together least as in the real rows; of several tables, the farthest of all."""
    pairs = [pair for result in _outcomes(report, "correlations") for pair in result["largest"][:1]]
    if not pairs:
        return ""
    worst = max(pairs, key=lambda pair: float(pair["difference"]))
    return f"the pair of columns farthest from the real rows: {pair_in_words(worst)}"


def pair_in_words(pair: Mapping[str, Any]) -> str:
    """Say how two columns go together in the real rows and in synthetic ones."""
    values = f"{pair['measure']} {pair['real']:.2f} in the real rows, {pair['synthetic']:.2f} in this table"
    return f"{' and '.join(pair['columns'])} ({values})"
