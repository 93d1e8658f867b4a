"""The publishable report: budget, noise and synthetic summaries, made of released objects only (post-processing)."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.evaluation.marginals import histogram
from dpmodels.evaluation.page import render_page
from dpmodels.evaluation.sheet import Sheet
from dpmodels.schema.encode import Codec, Records
from dpmodels.synthesizers.base import Release

NOT_PROMISED = (
    "The columns' names, bounds and categories come from the public schema and are not protected.",
    "Synthetic rows are drawn from a noisy model: single rows describe nobody, and rare groups can be wrong.",
    "The guarantee covers this release; further releases about the same people add up in the ledger.",
)


def summarise(
    release: Release, batches: Iterable[Records], noise: Mapping[str, float], gate: list[dict[str, Any]]
) -> dict[str, Any]:
    """Collect the publishable facts of a run.

    ``noise`` names what was released and the standard deviation of its noise; ``gate`` the expectations that held.
    """
    plan, codec = release.plan, Codec(release.plan.table)
    totals = [np.zeros(size) for size in codec.cell_sizes]
    rows, sheet = 0, Sheet(plan.table)
    for records in batches:
        sheet.add(records)
        cells = codec.to_cells(records)
        rows += len(records)
        for j, size in enumerate(codec.cell_sizes):
            totals[j] += histogram(cells[:, j], size) * len(records)
    return {
        "data_set": plan.table.name,
        "method": plan.method,
        "privacy": {
            "unit": str(plan.budget.unit),
            "adjacency": plan.budget.adjacency.value,
            "target_epsilon": plan.budget.epsilon,
            "spent_epsilon": float(spent_epsilon([plan.event], Decimal(plan.budget.delta))),
            "delta": plan.budget.delta,
            "event": plan.event.model_dump(mode="json"),
            "ledger_entry": release.entry,
        },
        "noise_stddev": dict(noise),
        "synthetic_rows": rows,
        "synthetic_shares": {
            name: [round(float(share), 6) for share in total / max(rows, 1)]
            for name, total in zip(codec.columns, totals, strict=True)
        },
        "sample_sheet": sheet.data_uri(),
        "gate": gate,
        "not_promised": list(NOT_PROMISED),
    }


def render(summary: Mapping[str, Any]) -> str:
    """Lay a summary out as one self-contained HTML page."""
    return render_page("report.html", report=summary)
