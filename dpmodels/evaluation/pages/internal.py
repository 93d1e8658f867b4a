"""The internal report as a page: what a person reads first comes first, and what failed says so."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from dpmodels.evaluation.pages.page import render_page, short
from dpmodels.evaluation.pages.plots import Figure, Shares, bars

Facts = Mapping[str, Any]
CELL = 300
MOST_LINES = 15


def render_internal(facts: Facts) -> str:
    """Lay the internal report out as one self-contained HTML page."""
    metrics = facts["metrics"]
    results = {name: one["result"] for name, one in metrics.items() if one["status"] == "done"}
    return render_page(
        "internal.html",
        report=facts,
        results=results,
        marginals=_marginals(results.get("marginals")),
        heat=_heat(results.get("correlations")),
        columns={
            name.removeprefix("utility of column ").removeprefix("utility of "): result
            for name, result in results.items()
            if name.startswith("utility of ")
        },
        attacks={name: facts for name, facts in _attacks(results).items() if facts},
        most_lines=MOST_LINES,
        unfinished=[(name, one["status"], one["reason"]) for name, one in metrics.items() if one["status"] != "done"],
        seconds=[(name, f"{one['seconds']:.1f}") for name, one in metrics.items()],
    )


def _marginals(facts: Facts | None) -> Figure | None:
    if facts is None:
        return None
    found = sorted(facts["total_variation_1_way"].items(), key=lambda item: -item[1])[:40]
    shares = Shares("total variation distance", [value for _, value in found])
    return bars("Distance of every column", "worst first", [name for name, _ in found], shares)


def _heat(facts: Facts | None) -> Figure | None:
    """Draw how far apart every association is, darker the further."""
    if facts is None or "columns" not in facts:
        return None
    names, real, made = facts["columns"], facts["real"], facts["synthetic"]
    side = CELL / len(names)
    parts = []
    for row in range(len(names)):
        for column in range(len(names)):
            far = abs(real[row][column] - made[row][column])
            box = '<rect class="heat" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill-opacity="{:.2f}"/>'
            parts.append(Markup(box.format(column * side, row * side, side, side, min(1.0, far / 0.4))))
    most = short(facts["largest"][0]["difference"]) if facts["largest"] else "none"
    said = f"Differences of associations between {len(names)} columns; the largest is {most}"
    svg = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        CELL, CELL, said, Markup("").join(parts)
    )
    rows = tuple(
        (name, *(f"{r:.2f} | {m:.2f}" for r, m in zip(real[i], made[i], strict=True))) for i, name in enumerate(names)
    )
    note = "columns in the order of the schema; full color is 0.4 apart or more"
    return Figure("Differences of associations", note, svg, ("real | synthetic", *names), rows)


def _attacks(results: Mapping[str, Facts]) -> dict[str, Facts | None]:
    seen = results.get("membership inference", {})
    return {
        "synthetic rows: distance to the nearest": seen.get("distance"),
        "synthetic rows: relative density": seen.get("relative_density"),
        "released vector, all other rows known": results.get("attack on the release"),
    }
