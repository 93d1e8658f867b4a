"""All formats that releases and plans were ever written in, and how each is read into the form of this version.

    1   a plan is one table and one event; its noise is a multiplier times one sensitivity; some parameters of a method
        are constants of the version; what PrivBayes chose lies among the values
    2   a plan is lines; a line names all parameters of its method; what was chosen or kept lies in the footer

A release is the most expensive file there is. So every published release is read for ever, to the same bits, and what
this module says of an earlier format is never changed.
"""

import json
from typing import Any

import pyarrow as pa

from dpmodels.arrays import Whole
from dpmodels.releases.plan import RELEASE, REPORT, Former, Line, Plan, canonical_hash

FORMAT = 2
"""The format that this version writes."""

ONE_SCALE = ("nacre", "privbayes")
"""Methods of format 1 all of whose sums had one noise scale."""
_PHASES = {"learning_rate": 2e-3, "average": 0.98, "clip_norm": 1.0, "sampling_probability": 0.02, "micro_batch": 4096}
_P3GM = {
    "table": {
        "directions": 25,
        "least_variance": 1.0,
        "pca_share": 0.2,
        "em_share": 0.4,
        "sgd": {**_PHASES, "steps": 600},
    },
    "ink": {
        "directions": 40,
        "least_variance": 0.5,
        "pca_share": 0.3,
        "em_share": 0.6,
        "sgd": {**_PHASES, "steps": 150, "learning_rate": 5e-4},
    },
}
NACRE_OF_2: dict[str, Any] = {
    "product_share": None,
    "product_columns": 160,
    "pooled_share": None,
    "zooms": 0,
    "zoom_values": 64,
    "zoom_share": 0.03,
    "coarse_cells": 16,
    "zoom_noise": 3.0,
}
"""Parameters of nacre that lines of formats 1 and 2 lack where they were planned before nacre zoomed, or measured
residuals, or products in wide tables.
"""
RULES_OF_1: dict[str, dict[str, Any]] = {
    "nacre": {
        "small_class": 60,
        "most_weight": 3,
        "resolved": 0.25,
        "least_runs": 8,
        "fine_limit": 2**17,
        "pair_limit": 2**19,
        "square_limit": 2**23,
        "paired_columns": 64,
        **NACRE_OF_2,
    },
    "nacre-images": {"floor": 3.0},
    "privbayes": {"fine_limit": 2**17, "family_limit": 2**17, "table_limit": 2**14},
}
"""The parameters that methods of format 1 used and did not write into the plan."""
NACRE_OF_1 = {"fine_cells": 256, "fine_share": 0.3, "one_way_weight": 1.0, "runs": 32, "least_noise": 2.0}
"""The parameters of nacre's measurement where it gave P3GM a warm start."""


def read_plan(text: str | bytes, report: str | bytes | None = None) -> Plan:
    """Read a plan of any format; in format 1 the report's line is a file of its own.

    Raises:
        ValueError: the text is no plan.
    """
    written = json.loads(text)
    if "lines" in written:
        plan = Plan.model_validate(written)
        return Plan(lines=tuple(map(_with_rules, plan.lines)), about=plan.about)
    return Plan(lines=tuple(_line(json.loads(each)) for each in (text, report) if each is not None))


def _with_rules(line: Line) -> Line:
    """Name what a line lacks where it was planned before there was such; of ``LATE`` it keeps hash and text."""
    measurement = _with_late(line.method, line.measurement)
    if measurement != line.measurement:
        return line.model_copy(update={"measurement": measurement})
    if line.method == "nacre":
        asked = {"asked_cells": False} if line.contract.workload else {}
        measurement = {**NACRE_OF_2, **asked, **measurement}
    elif isinstance(warm := measurement.get("warm"), dict) and "fine_cells" in warm:
        measurement = {**measurement, "warm": {**NACRE_OF_2, **warm}}
    if measurement == line.measurement:
        return line
    return line.model_copy(update={"measurement": measurement, "former": line.former or Former(hash=line.hash)})


def _with_late(method: str, measurement: dict[str, Any]) -> dict[str, Any]:
    """Say of the moments of a federation that was planned before ``floor`` that it has none."""
    if method == "federated-moments":
        return {"floor": None, **measurement}
    if method == "federated-both" and isinstance(moments := measurement.get("moments"), dict):
        return {**measurement, "moments": {"floor": None, **moments}}
    return measurement


def values_of(line: Line, table: pa.Table, values: Whole, chosen: Whole) -> tuple[Whole, Whole]:
    """Return the values and integers of a release as format 2 has them.

    PrivBayes of format 1 wrote its network among the values: for each family, beginning with that of the first column,
    the child and its parents.
    """
    if line.former is None or line.method != "privbayes" or "look" not in table.column_names:
        return values, chosen
    is_family = table["look"].to_numpy() == 2
    families = values[is_family]
    return values[~is_family], families[len(families) // len(line.table.modelled) :]


def _line(old: dict[str, Any]) -> Line:
    """Turn a plan of format 1 into a line of format 2."""
    method, table = old["method"], old["table"]
    settings = {key: value for key, value in old["measurement"].items() if value is not None}
    scale = (old["l2_sensitivity"], old["noise_multiplier"]) if method in ONE_SCALE else None
    written = {
        "name": REPORT if method == REPORT else RELEASE,
        "part": table["partition"]["column"] if isinstance(table.get("partition"), dict) else "",
        "method": method,
        "contract": {"table": table},
        "measurement": {**_rules(method, table, settings), **settings},
        "former": Former(hash=canonical_hash(old), scale=scale),
        **{key: old[key] for key in ("budget", "event", "fingerprint")},
    }
    return Line.model_validate(written)


def _rules(method: str, table: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that a method of format 1 used and did not write into the plan."""
    if method not in ("p3gm", "p3gm-ae", REPORT):
        return RULES_OF_1.get(method, {})
    has_image = any(column["type"] == "image" for column in table["columns"].values())
    if method == REPORT:
        return {"fine_cells": 256, "classifiers": ["logistic"] if has_image else ["logistic", "trees"]}
    warm = {"warm": {**NACRE_OF_1, **RULES_OF_1["nacre"]}} if settings.get("warm_share") else {"warm": None}
    return {**_P3GM["ink" if has_image else "table"], **warm}
