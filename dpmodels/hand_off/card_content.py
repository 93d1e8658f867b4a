"""What is in a hand-off, as its card says it: columns, what of them is left out, made anew or reckoned, and sources.

Privacy: made of the contract and of the publishable report, both of which are public.
"""

from collections.abc import Mapping
from typing import Any

from dpmodels.contract.ages import ages_of_minors
from dpmodels.contract.columns import computed
from dpmodels.contract.formula import names_in
from dpmodels.contract.helpers import without_helpers
from dpmodels.contract.identifiers.identifier import Identifier, uniques_of
from dpmodels.contract.schema import columns_in
from dpmodels.contract.special import hints
from dpmodels.errors import ArtifactError
from dpmodels.releases.contract import Contract


def content_of(contract: Contract, report: Mapping[str, Any]) -> dict[str, Any]:
    """Say what is in a hand-off, from the contract and from what was released."""
    if "words" in report:  # a kind that has no page of its own
        return {"about": report["about"], "words": report["words"]}
    if contract.kind == "federation":
        return {"about": "federation", "classes": list(contract.classes), "public_records": report["public_records"]}
    if contract.kind == "each document":
        return {"about": "embeddings", "documents": report["documents"], "dim": report["dim"]}
    if contract.kind == "documents":
        classes = list(contract.classes)
        return {"about": "documents", "rows": report["synthetic_rows"], "dim": contract.encoder.dim, "classes": classes}
    if contract.kind == "tree":
        return {
            "about": "tree",
            "rows": report["synthetic_rows"],
            **_counted(report),
            "target": contract.target,
            "tables": list(contract.tables),
            **({"public": list(contract.public)} if contract.public else {}),
            "columns": [{"name": name, "type": column.type} for name, column in contract.handed_over_columns.items()],
            "left_out": contract.left_out,
            **_to_ask_about(contract.handed_over_columns),
            **_made_anew(contract.handed_over_columns),
            **_sources(contract),
        }
    if not contract.is_table:
        raise ArtifactError(f"the contract {contract.name} is of a kind that no model card is written for")
    rows = without_helpers(contract)
    columns = {name: contract.columns[name] for name, one in rows.columns.items() if not _is_dropped(one)}
    return {
        "about": contract.kind,
        "rows": report["synthetic_rows"],
        **_counted(report),
        "target": contract.target,
        "columns": [{"name": name, "type": column.type} for name, column in columns.items()],
        "left_out": [name for name, one in contract.columns.items() if _is_dropped(one)],
        **({"unique": unique} if (unique := uniques_of(contract.columns)) else {}),
        **_to_ask_about(columns),
        **({"ties": ties} if (ties := _ties(contract, columns)) else {}),
        **({"workload": asked} if (asked := report.get("asked")) else {}),
        **_made_anew(columns),
        **_reckoned(contract.columns, columns),
        **_sources(contract),
    }


def _reckoned(columns: Mapping[str, Any], received: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Name the columns that are left out and follow all the same from others, which are received; nothing without."""
    formulas = computed(columns)
    operands = {name: names_in(formulas[name]) for name in formulas if name not in received}
    reckoned = {name: some for name, some in operands.items() if received.keys() >= {*some}}
    return {"reckoned": reckoned} if reckoned else {}


def _to_ask_about(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Name the columns that a person is asked about, by what their names, lists and bounds say; nothing without any."""
    asked = {"may_be_special": hints(columns), "ages": ages_of_minors(columns)}
    return {name: some for name, some in asked.items() if some}


def _ties(contract: Any, received: Mapping[str, Any]) -> dict[str, list[str]]:
    """Name the columns that a rule or a formula of a schema ties to each that is handed over; nothing without any."""
    formulas = computed(contract.columns)
    tied = [{name, *names_in(formulas[name])} for name in formulas]
    tied += [{name, *one.operands} for name, one in contract.derived.items()]
    tied += [columns_in(text, contract.columns) for text in contract.constraints]
    ties = {name: [other for other in received if any({name, other} <= some for some in tied)] for name in received}
    return {name: others for name, some in ties.items() if (others := [one for one in some if one != name])}


def _counted(report: Mapping[str, Any]) -> dict[str, float]:
    """Return how many units there are, as far as noisy counts tell it; nothing where none was released."""
    return {"counted": report["released_records"]} if report.get("released_records") else {}


def _sources(contract: Contract) -> dict[str, Any]:
    return {"sources": list(contract.sources)} if contract.sources else {}


def _made_anew(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Name the identifiers that synthetic rows have all the same, by how they are made; nothing without any."""
    ways: dict[str, list[str]] = {}
    for name, column in columns.items():
        if isinstance(column, Identifier) and not _is_dropped(column):
            ways.setdefault(column.keep.partition(":")[0], []).append(name)
    return {"made_anew": ways} if ways else {}


def _is_dropped(column: Any) -> bool:
    return isinstance(column, Identifier) and column.keep == "drop"
