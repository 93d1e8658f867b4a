"""The publishable report: what was done, at what price, how far off it may be; of released objects only.

``summarise`` collects the facts, which are the report as JSON; ``report_page.render`` lays them out as one HTML page.

Privacy: post-processing of what was released, the synthetic rows and public parameters.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.methods.parts.marginals import Marginals
from dpmodels.releases.contract import Contract, table_of
from dpmodels.releases.discoveries import unpriced
from dpmodels.releases.plan import Line
from dpmodels.report.axis import axis_of
from dpmodels.report.bins import Bins, CellTally
from dpmodels.report.fidelity import (
    HALF_NORMAL,
    Measured,
    compare_with_release,
    drowned,
    expected_distance,
)
from dpmodels.report.largest import counted_together, largest_cell, warning
from dpmodels.report.numbers import doubt, errors_of
from dpmodels.report.sections import hashes_of, heading, privacy_of
from dpmodels.report.sheet import Sheet

DISCOVERED = (
    "The columns' names, and the bounds and categories that a person wrote into the schema, are public and not "
    "protected; those that schema.yaml names as discovered were released with noise, and the total has their price."
)
UNPRICED = (
    "Bounds and categories that schema.yaml names as from a charged release were paid for by a charge of their own, "
    "whose price is NOT in this total: add it."
)
NOT_PROMISED = (
    "The columns' names, bounds and categories come from the public schema and are not protected.",
    "Synthetic rows are drawn from a noisy model: single rows describe nobody, and rare groups can be wrong.",
    "The guarantee covers this release. Further releases about the same people add up, in one ledger account.",
)
ROWS_ALONE = (
    "What is made are rows and not users: no synthetic row belongs to anybody, and how many rows a user has is not "
    "kept; `users` in the schema keeps it."
)
UNCOMPARED = "Nothing here compares with the real rows: such figures are exact statistics of them and stay inside."
COMPARED = "Of the real rows there are only the scores that were charged for: exact figures of them stay inside."


def summarise(
    measured: Measured,
    tally: CellTally,
    first: Sequence[Any],
    gate: list[dict[str, Any]],
    release_sha256: str,
    charged: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Collect the publishable facts of a run.

    Args:
        measured: what was released.
        tally: the synthetic rows, counted on its cells.
        first: some of the synthetic rows, in batches.
        gate: the expectations that held.
        release_sha256: of the release's file.
        charged: the scores on real rows that were charged for, if the run was asked for them.
    """
    release, line, marginals = measured.release, measured.release.line, measured.marginals
    fit = compare_with_release(line, measured.sums, first) if measured.sums else []
    lost = drowned(fit, marginals.records if marginals else None, measured.least_units)
    return {
        **heading(line.contract, line.method, lost),
        "privacy": privacy_of(line, charged),
        "hashes": hashes_of(line, release_sha256, release.entry) | _sealed(charged),
        "noise_stddev": dict(measured.noise),
        "synthetic_rows": tally.rows,
        **({"rows_are": "users"} if line.contract.users else {}),
        "released_records": marginals.records if marginals else None,
        "columns": [
            _column(name, column, cells / max(tally.rows, 1), marginals, line.measurement)
            for (name, column), cells in zip(tally.codec.columns.items(), tally.cells, strict=True)
        ],
        "pairs": _pairs(marginals),
        "fit": _looks(line, fit),
        **_sheet(line.contract, first),
        "charged": charged,
        "gate": gate,
        "not_promised": _not_promised(line.contract, charged),
    }


def _sealed(charged: Mapping[str, Any] | None) -> dict[str, str]:
    """Name the file of the scores that were charged for, where there are any."""
    return {key: (charged or {})[key] for key in ("scores_sha256",) if key in (charged or {})}


def _looks(line: Line, fit: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Name each look of a release beside how far the synthetic rows are from it."""
    names = _numbered([getattr(event, "mechanism", "") for event in getattr(line.event, "events", [line.event])])
    return [{"look": name or "the release", **facts} for name, facts in zip(names, fit, strict=False)]


def _sheet(contract: Contract, first: Sequence[Any]) -> dict[str, Any]:
    """Lay synthetic images out, some of each class; none for what has no images."""
    if not contract.image:
        return {"sample_sheet": None, "sample_classes": []}
    sheet = Sheet(table_of(contract))
    for records in first:
        sheet.add(records)
    return {"sample_sheet": sheet.data_uri(), "sample_classes": list(sheet.names)}


def _not_promised(contract: Contract, charged: Mapping[str, Any] | None) -> list[str]:
    """Say what is not promised, where the keys of the schema are from, and what is said of the real rows."""
    first, *others = NOT_PROMISED
    return [
        DISCOVERED if contract.discovered else first,
        *others,
        *([UNPRICED] if unpriced(contract) else []),
        *([ROWS_ALONE] if contract.makes_rows_alone else []),
        COMPARED if charged and charged["status"] == "measured" else UNCOMPARED,
    ]


def _numbered(names: list[str]) -> list[str]:
    """Tell looks of one name apart by their number."""
    return [f"{name} {names[:at].count(name) + 1}" if names.count(name) > 1 else name for at, name in enumerate(names)]


def _column(
    name: str, column: Modelled, shares: Floats, marginals: Marginals | None, measurement: Mapping[str, Any]
) -> dict[str, Any]:
    """Describe one column: its bins, the synthetic shares, and the released ones where there are any."""
    bins = Bins.of(column)
    synthetic = bins.join(shares)
    facts: dict[str, Any] = {
        "name": name,
        "type": getattr(column, "type", ""),
        "labels": list(bins.labels),
        "values": bins.values,
        "ordered": bins.ordered,
        "synthetic": _round(synthetic),
        **({"axis": axis_of(column, bins, synthetic)} if isinstance(column, Continuous) else {}),
    }
    if marginals is None or name not in marginals.columns:
        return facts
    noisy, records = marginals.columns[name], marginals.records
    pooled = np.bincount(noisy.cell_of, shares, minlength=len(noisy.pooled))
    largest = largest_cell(column, noisy.counts, records)
    together = counted_together(column, noisy, records)
    errors = errors_of(column, noisy, shares)
    sentences = filter(None, (warning(column, largest, together, measurement), doubt(column, errors)))
    warned = " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)
    return facts | {
        "released": _round(bins.join(noisy.counts) / records),
        "released_stddev": _round(noisy.stddev * np.sqrt(bins.sizes) / records),
        "cells": len(noisy.pooled),
        "expected_error_of_a_share": round(float(HALF_NORMAL * noisy.pooled_stddev.mean() / records), 8),
        "expected_distance": round(expected_distance(noisy.pooled_stddev, records), 8),
        "distance_to_release": round(min(1.0, float(np.abs(pooled - noisy.pooled / records).sum() / 2)), 8),
        "largest_cell": largest,
        **({"counted_together": together} if together else {}),
        **errors,
        **({"warning": warned} if warned else {}),
    }


def _pairs(marginals: Marginals | None) -> dict[str, float] | None:
    """Say how far off the share of one pair of cells of two columns is on average, as it was released."""
    if marginals is None or marginals.pair_stddev is None or marginals.pair_cells is None:
        return None
    error = HALF_NORMAL * marginals.pair_stddev / marginals.records
    return {"expected_error_of_a_share": round(error, 8), "cells_of_a_column": round(marginals.pair_cells, 1)}


def _round(shares: Floats) -> list[float]:
    return [round(float(share), 8) for share in shares]
