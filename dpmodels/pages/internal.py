"""The internal report as a page: what a person reads first comes first, and what failed says so."""

from collections.abc import Mapping
from typing import Any

from dpmodels.pages.drawing import Figure
from dpmodels.pages.maps import heat
from dpmodels.pages.page import percent, render_page, short
from dpmodels.pages.plots import Shares, bars, histogram

Facts = Mapping[str, Any]
FAR = 0.1
"""Total variation from which a column is counted among those that are far off."""
FULL = 0.4
"""Difference of two associations that is drawn in full color."""
MOST_CATEGORIES = 12
"""Categories of a column that are drawn."""
MOST_LINES = 15


def render_internal(facts: Facts) -> str:
    """Lay the internal report out as one self-contained HTML page."""
    metrics = facts["metrics"]
    results = {name: one["result"] for name, one in metrics.items() if one["status"] == "done"}
    return render_page(
        "internal.html",
        report=facts,
        results=results,
        overall=_overall(results.get("marginals")),
        beside=_columns(results),
        left_out=results.get("columns", {"left_out": 0})["left_out"],
        rows=_rows(results.get("sample rows")),
        heats=_heats(results.get("correlations")),
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


def render_edges(facts: Facts) -> str:
    """Lay the internal report of a tree of tables out: what its edges are like, and where the page of each table is."""
    lines = [
        (
            f"{one['table']} per {one['parent']}",
            *(f"{one[key]:.3f}" for key in ("mean_real", "mean_synthetic", "total_variation")),
        )
        for one in facts["edges"]
    ]
    return render_page("internal-tree.html", report=facts, lines=lines)


def _overall(facts: Facts | None) -> dict[str, Any] | None:
    """Put the marginals into one figure, and beside it what that figure hides."""
    if facts is None:
        return None
    distances, pairs = facts["total_variation_1_way"], facts["worst_pairs"]
    two = facts["mean_total_variation_2_way"]
    means = [facts["mean_total_variation_1_way"], *([] if two is None else [two])]
    column = max(distances, key=lambda name: float(distances[name]))
    return {
        "figure": 1 - sum(means) / len(means),
        "one": 1 - means[0],
        "two": None if two is None else 1 - two,
        "column": column,
        "worst_column": 1 - distances[column],
        "far": sum(distance > FAR for distance in distances.values()),
        "pair": " and ".join(pairs[0]["columns"]) if pairs else "",
        "worst_pair": 1 - pairs[0]["total_variation"] if pairs else None,
    }


def _columns(results: Mapping[str, Facts]) -> list[Figure]:
    """Draw the real values of every column beside the synthetic ones, the column that is furthest off first."""
    distances = results.get("marginals", {}).get("total_variation_1_way", {})
    columns = results.get("columns", {"columns": ()})["columns"]
    return [
        _column(one, distances.get(one["name"]))
        for one in sorted(columns, key=lambda one: -distances.get(one["name"], 0.0))
    ]


def _column(facts: Facts, distance: float | None) -> Figure:
    labels, real, synthetic = facts["labels"], facts["real"], facts["synthetic"]
    note = [facts["type"]] if facts["type"] else []
    if distance is not None:
        note.append(f"distance {percent(distance)}")
    if any(facts.get("null", ())):
        note.append("null: real {}, synthetic {}".format(*map(percent, facts["null"])))
    if facts["ordered"] and labels:
        return histogram(
            facts["name"],
            " · ".join(note),
            labels,
            Shares("synthetic", synthetic),
            Shares("real", real),
            facts.get("axis"),
        )
    order = sorted(range(len(labels)), key=lambda index: -max(real[index], synthetic[index]))[:MOST_CATEGORIES]
    if len(order) < len(labels):
        note.append(f"the {len(order)} largest of {len(labels)}")
    ordered = [[each[index] for index in order] for each in (labels, synthetic, real)]
    return bars(
        facts["name"], " · ".join(note), ordered[0], Shares("synthetic", ordered[1]), Shares("real", ordered[2])
    )


def _heats(facts: Facts | None) -> list[Figure]:
    """Draw the associations of all pairs of columns: of the real rows, of the synthetic ones, and what is between."""
    if facts is None or "columns" not in facts:
        return []
    names, real, synthetic = facts["columns"], facts["real"], facts["synthetic"]
    apart = [[m - r for r, m in zip(*lines, strict=True)] for lines in zip(real, synthetic, strict=True)]
    full = f"full color is {FULL} or more"
    most = short(facts["largest"][0]["difference"]) if facts["largest"] else "none"
    return [
        heat("Associations, real", "full color is 1", names, real, 1.0),
        heat("Associations, synthetic", "full color is 1", names, synthetic, 1.0),
        heat("Difference, synthetic less real", f"{full}; the largest is {most}", names, apart, FULL),
    ]


def _rows(facts: Facts | None) -> tuple[tuple[str, ...], list[tuple[str, ...]]] | None:
    """Lay sample rows out with a line a column, real rows before synthetic ones, so that wide tables fit."""
    if facts is None:
        return None
    sides = [(side, facts[side]) for side in ("real", "synthetic") if side in facts]
    header = ("column", *(f"{side} {number + 1}" for side, rows in sides for number in range(len(rows))))
    values = [row for _, rows in sides for row in rows]
    return header, [(name, *(row[j] for row in values)) for j, name in enumerate(facts["columns"])]


def _attacks(results: Mapping[str, Facts]) -> dict[str, Facts | None]:
    membership = results.get("membership inference", {})
    return {
        "synthetic rows: distance to the nearest": membership.get("distance"),
        "synthetic rows: relative density": membership.get("relative_density"),
        "released vector, all other rows known": results.get("attack on the release"),
    }
