"""The publishable report: what was done, at what price, how far off it may be; of released objects only.

``summarise`` collects the facts, which are the report as JSON; ``report_page.render`` lays them out as one HTML page.

Privacy: post-processing of what was released, the synthetic rows and public parameters.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dpmodels.accounting.events import Event
from dpmodels.arrays import Floats
from dpmodels.clock import clock_of
from dpmodels.codec.encode import Records
from dpmodels.codec.flat import weights_of
from dpmodels.contract.columns import Continuous, Modelled
from dpmodels.contract.schema import Schema
from dpmodels.contract.workload import named_pairs, weighed
from dpmodels.methods.parts.marginals import Marginal, Marginals
from dpmodels.pages.figures.ruled import ruled_pairs
from dpmodels.releases.contract import Contract, table_of, tree_of
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.report.axis import axis_of
from dpmodels.report.bins import Bins, CellTally, group_labels
from dpmodels.report.counts.likely import Side
from dpmodels.report.counts.noisy_tables import Counted
from dpmodels.report.derived.places import helper_places
from dpmodels.report.derived.shares import derived_facts
from dpmodels.report.fidelity import (
    NORMAL_95,
    Measured,
    Summed,
    compare_with_release,
    drowned,
    expected_distance,
    noise_distance_95,
    number_moves,
)
from dpmodels.report.groups.joint import asked_joint, joint_facts
from dpmodels.report.groups.rates import asked_rates, rates_of
from dpmodels.report.groups.reconciled import MeanOfAll
from dpmodels.report.groups.stated import Known, asked_names, group_means, means_of_all
from dpmodels.report.groups.wholes import agreeing
from dpmodels.report.largest import counted_together, largest_cell
from dpmodels.report.numbers import errors_of
from dpmodels.report.pair import Pair
from dpmodels.report.pairs import Places, pair_facts, pairs_of
from dpmodels.report.ranks import rank_distances
from dpmodels.report.sheet import Sheet
from dpmodels.report.terms import terms_of_table
from dpmodels.report.warned import cut, discovered_bounds, joined, warned
from dpmodels.report.within import shares_within
from dpmodels.statistics.normal import HALF_NORMAL

MOST_RANGES = 64
"""Ranges of values that a report names."""
STANDS_OUT = 3.0
"""Standard deviations of its noise that a released share must be for an axis to reach to it."""


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
    summed = Summed.of(line, measured.sums, first)
    fit = compare_with_release(line, measured.sums, summed)
    lost = drowned(_deciding(line, fit), marginals.records if marginals else None, measured.least_units)
    return {
        **terms_of_table(line, release_sha256, release.entry, charged),
        **({"drowned": lost} if lost else {}),
        "noise_stddev": dict(measured.noise),
        **({"released_noise_stddev": dict(measured.released_noise)} if measured.released_noise else {}),
        "synthetic_rows": tally.rows,
        "released_records": marginals.records if marginals else None,
        **_of_columns(measured, tally, first, summed, gate),
        "fit": _looks(line, fit),
        **_sheet(line.contract, first),
        "charged": charged,
        "gate": gate,
    }


def _of_columns(
    measured: Measured, tally: CellTally, first: Sequence[Any], summed: Summed, gate: Sequence[Any]
) -> dict[str, Any]:
    """Describe the columns, by themselves and together."""
    release, line, marginals = measured.release, measured.release.line, measured.marginals
    columns, overview = _columns(line, marginals, tally), _overview(line.contract, tally)
    pairs = pairs_of(list(overview.modelled), measured.sums, summed.totals, marginals)
    named = named_pairs(weighed(line.contract), list(overview.modelled))
    together = _pairs(marginals, overview, pairs, named, _ruled(line, columns, gate))
    asked, tables = _asked(line.contract, overview), _by_groups(release, first, together)
    wholes = means_of_all(*tables, {"columns": columns, "pairs": together, **asked}) if tables else {}
    columns = _columns(line, marginals, tally, wholes, tables[0]) if tables else columns
    further = _derived(release, tally, first, columns, pairs if together else {}, wholes) | asked
    further |= _together(wholes, [*columns, *further.get("derived", ())])
    facts = {"columns": columns, **further, "pairs": together, **_rates(overview, measured, summed, release)}
    return facts | _groups(tables, tally, first, facts)


def _asked(contract: Contract, schema: Schema) -> dict[str, Any]:
    """List the pairs of columns, and the joint tables, that a workload names."""
    names, joint = asked_names(contract, schema.columns), asked_joint(contract, schema.columns)
    return ({"asked": names} if names else {}) | ({"joint": joint} if joint else {})


def _together(wholes: Mapping[str, MeanOfAll], columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """State which means of all rows are those that all tables tell together, each with its standard error."""
    stated = {one["name"]: one["mean"]["estimate"] for one in columns if "mean" in one}
    known = {name: [stated[name], float(f"{one.error:.3g}")] for name, one in wholes.items() if name in stated}
    return {"wholes": known} if known else {}


def _columns(
    line: Line,
    marginals: Marginals | None,
    tally: CellTally,
    wholes: Mapping[str, MeanOfAll] = MappingProxyType({}),
    counted: Counted | None = None,
) -> list[dict[str, Any]]:
    """Describe every column that was measured, in the order of the schema.

    Those of ``wholes`` have the mean that all tables tell; categories that ``counted`` tells better have these shares.
    """
    described = list[dict[str, Any]]()
    for (name, column), cells in zip(tally.codec.columns.items(), tally.cells, strict=True):
        shares = cells / max(tally.rows, 1)
        known = wholes[name].mean if name in wholes else None
        facts = column_facts(name, column, shares, marginals, line.measurement, tally.mean(name), known)
        if counted and marginals and not isinstance(column, Continuous) and (rows := counted.rows_of(name)):
            facts |= _shares(column, rows, marginals.records)
            facts |= {"shares_within": shares_within(facts)}
        described.append(table_of_column(line.contract, name) | with_cut(facts, column, line))
    return described


def _shares(column: Modelled, rows: Side, records: float) -> dict[str, Any]:
    """State the shares of categories, their noise and the largest of them, as all tables tell them."""
    bins = Bins.of(column)
    shares, noise = bins.join(rows.rows) / records, np.sqrt(bins.join(rows.variances)) / records
    largest = largest_cell(column, rows.rows, records)
    return {"released": _round(shares), "released_stddev": _round(noise), "largest_cell": largest}


def _deciding(line: Line, fit: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the looks that say whether a release stands out of its noise; of a tree those at the table of units."""
    of_units = f"{tree_of(line.contract).root}: " if line.contract.kind == "tree" else ""
    return [facts for name, facts in zip(look_names(line.event), fit, strict=False) if name.startswith(of_units)]


def _looks(line: Line, fit: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Name each look of a release beside how far the synthetic rows are from it."""
    return [{"look": name, **facts} for name, facts in zip(look_names(line.event), fit, strict=False)]


def look_names(event: Event) -> list[str]:
    """Name the looks that a release was charged for."""
    names = _numbered([getattr(one, "mechanism", "") for one in getattr(event, "events", [event])])
    return [name or "the release" for name in names]


def _sheet(contract: Contract, first: Sequence[Any]) -> dict[str, Any]:
    """Lay synthetic images out, some of each class; none for what has no images."""
    if not contract.image:
        return {"sample_sheet": None, "sample_classes": []}
    sheet = Sheet(table_of(contract))
    for records in first:
        sheet.add(records)
    return {"sample_sheet": sheet.data_uri(), "sample_classes": list(sheet.names)}


def _numbered(names: list[str]) -> list[str]:
    """Tell looks of one name apart by their number."""
    return [f"{name} {names[:at].count(name) + 1}" if names.count(name) > 1 else name for at, name in enumerate(names)]


def column_facts(
    name: str,
    column: Modelled,
    shares: Floats,
    marginals: Marginals | None,
    measurement: Mapping[str, Any],
    mean: float | None = None,
    known: float | None = None,
) -> dict[str, Any]:
    """Describe one column: its bins, the synthetic shares and mean, and the released ones where there are any.

    ``mean`` is that of the synthetic values, and ``known`` that of the real ones as all tables tell it, if they do.
    """
    bins = Bins.of(column)
    synthetic = bins.join(shares)
    facts: dict[str, Any] = {"name": name, "type": getattr(column, "type", ""), "labels": list(bins.labels)}
    facts |= {"values": bins.values, "ordered": bins.ordered, "synthetic": _round(synthetic)}
    facts |= {"clock": clock} if (clock := clock_of(column)) else {}
    if marginals is None or name not in marginals.columns:
        return facts | _axis(column, bins, synthetic, synthetic)
    noisy, records = marginals.columns[name], marginals.records
    released, released_stddev = bins.join(noisy.counts) / records, noisy.stddev * np.sqrt(bins.sizes) / records
    seen = np.where(released > STANDS_OUT * released_stddev, np.maximum(released, synthetic), synthetic)
    facts |= _axis(column, bins, synthetic, seen)
    whole = noisy.adding_up_to(records)
    moved = marginals.records_stddev * number_moves(noisy, whole, records) / records
    pooled = np.bincount(noisy.cell_of, shares, minlength=len(noisy.pooled))
    figures = {
        "released": _round(released),
        "released_stddev": _round(released_stddev),
        "cells": len(noisy.pooled),
        **_ranges(column, noisy),
        "expected_error_of_a_share": round(float(HALF_NORMAL * whole.pooled_stddev.mean() / records), 8),
        "expected_distance": _joined(expected_distance(whole.pooled_stddev, records), HALF_NORMAL * moved),
        "noise_distance_95": _joined(noise_distance_95(noisy.pooled_stddev, records), NORMAL_95 * moved),
        "distance_to_release": round(min(1.0, float(np.abs(pooled - whole.pooled / records).sum() / 2)), 8),
        **rank_distances(column, noisy, shares, records, marginals.records_stddev),
        **_warned(column, noisy, records, measurement, errors_of(column, noisy, shares, mean, known)),
    }
    return facts | figures | {"shares_within": shares_within(facts | figures)}


def _warned(
    column: Modelled, noisy: Marginal, records: float, measurement: Mapping[str, Any], errors: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the errors of a column's figures beside its largest cell, what is counted together, and its warning."""
    largest, together = largest_cell(column, noisy.counts, records), counted_together(column, noisy, records)
    counted = {"largest_cell": largest, **({"counted_together": together} if together else {})}
    return {**counted, **errors, **warned(column, noisy, largest, together, measurement, errors)}


def _ranges(column: Modelled, noisy: Marginal) -> dict[str, list[str]]:
    """Name the ranges of values that a number column was counted in, of which its shares are judged; few of them."""
    if not isinstance(column, Continuous) or not 1 < len(noisy.pooled) <= MOST_RANGES:
        return {}
    return {"ranges": [" or ".join(labels) for labels in group_labels(column, noisy.cell_of)]}


def _axis(column: Modelled, bins: Bins, synthetic: Floats, seen: Floats) -> dict[str, Any]:
    """Describe the axis of a column that has one."""
    return {"axis": axis_of(column, bins, synthetic, seen)} if isinstance(column, Continuous) else {}


def _joined(*noises: float) -> float:
    """Put independent noises together, as a distance."""
    return round(min(1.0, math.hypot(*noises)), 8)


def with_cut(facts: dict[str, Any], column: Modelled, line: Line) -> dict[str, Any]:
    """Add that values were cut at a bound which was discovered; whatever the method, that is in its figures."""
    bounds = discovered_bounds(column, facts["name"], line.contract)
    if not bounds:
        return facts
    known = {} if "warning" in facts else {"resolved": True}
    return facts | {"discovered_bounds": bounds} | joined(facts.get("warning"), cut(column, bounds)) | known


def _rates(schema: Schema, measured: Measured, summed: Summed, release: Release) -> dict[str, Any]:
    """State the rates of the target by every other column, where it was counted with them."""
    is_counted = schema.target_index is not None and release.line.contract.is_table and measured.marginals is not None
    likely = Counted(release).likely if is_counted else None
    rates = rates_of(list(schema.modelled), measured.sums, summed.totals, measured.marginals, likely)
    return {"rates": rates} if rates else {}


def _pairs(
    marginals: Marginals | None,
    schema: Schema,
    pairs: Mapping[Places, Pair],
    asked: Collection[Places],
    ruled: Collection[Places],
) -> dict[str, Any] | None:
    """Say how far off the share of one pair of cells of two columns is on average, and how far every two columns."""
    if marginals is None or marginals.pair_stddev is None or marginals.pair_cells is None:
        return None
    error = HALF_NORMAL * marginals.pair_stddev / marginals.records
    cells = {"expected_error_of_a_share": round(error, 8), "cells_of_a_column": round(marginals.pair_cells, 1)}
    target = {} if schema.target_index is None else {"target": schema.target_index}
    return cells | target | pair_facts(pairs, asked, schema.target_index, ruled, helper_places(schema))


def _ruled(line: Line, columns: Sequence[Any], gate: Sequence[Any]) -> Collection[Places]:
    """Return the places of the columns that rules and formulas of the schema relate."""
    return ruled_pairs({"columns": columns, "gate": gate, "cautions": line.contract.remarks})


def table_of_column(contract: Contract, name: str) -> dict[str, str]:
    """Say in which table a column of a report is, where there are several."""
    if contract.kind == "tree":
        tree = tree_of(contract)
        return {"table": next(table for table in tree.measured if name in tree.attributes(table))}
    if contract.users:
        return {"table": "children" if name in table_of(contract).children.columns else "parents"}
    return {}


def _derived(
    release: Release,
    tally: CellTally,
    first: Sequence[Any],
    columns: Sequence[dict[str, Any]],
    pairs: Mapping[Places, Pair],
    wholes: Mapping[str, MeanOfAll],
) -> dict[str, Any]:
    """Describe the columns of a table that follow from others, by the first synthetic rows; trees.py has others.

    Those of ``wholes`` have the mean that all tables tell together, with the error of the counts of their columns.
    """
    contract = release.line.contract
    if not contract.is_table or not first or not (derived := table_of(contract).flat.derived):
        return {}
    records, weights = Records.concat(first), weights_of(contract, Records.concat(first))
    operands = {name for one in derived.values() if one.formula for name in one.operands}
    counted = Counted(release, operands) if operands and pairs and weights is None else None

    def mean_of(name: str) -> tuple[float, float] | None:
        mean = counted.mean(name) if counted else None
        return (wholes[name].mean, mean[1]) if mean and name in wholes else mean

    facts = derived_facts(derived, tally.codec, records, columns, weights, pairs, mean_of=mean_of)
    if weights is None:
        facts = agreeing(facts, columns, table_of(contract).flat.columns, table_of(contract).flat.rules, wholes)
    return {"derived": [table_of_column(contract, one["name"]) | one for one in facts]} if facts else {}


def _by_groups(release: Release, first: Sequence[Any], pairs: Mapping[str, Any] | None) -> tuple[Counted, Known] | None:
    """Return the tables of a release whose rows are all alike and whose pairs are drawn, and what they tell."""
    contract = release.line.contract
    if not contract.is_table or contract.users or not first or not (pairs or {}).get("tables"):
        return None
    return Counted(release), Known()


def _groups(
    tables: tuple[Counted, Known] | None, tally: CellTally, first: Sequence[Any], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """State means and rates by one column and by two."""
    if tables is None:
        return {}
    (counted, known), records = tables, Records.concat(first)
    means = group_means(counted, tally.codec, records, facts, known)
    rates = asked_rates(counted, tally.codec, tally.codec.to_cells(records).astype(np.int64), facts)
    stated = ({"groups": means} if means else {}) | ({"asked_rates": rates} if rates else {})
    if facts.get("joint"):
        stated["joint"] = joint_facts(counted, tally.codec, records, {**facts, **stated})
    return stated


def _overview(contract: Contract, tally: CellTally) -> Schema:
    """Return the schema of the columns of a report; those of a tree are of all its tables."""
    return tree_of(contract).overview if contract.kind == "tree" else tally.codec.schema


def _round(shares: Floats) -> list[float]:
    return [round(float(share), 8) for share in shares]
