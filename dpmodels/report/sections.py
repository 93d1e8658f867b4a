"""The sections that the publishable reports of all kinds of data share."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import EVENT
from dpmodels.releases.contract import Contract
from dpmodels.releases.discoveries import joint_cost, price_of
from dpmodels.releases.plan import Line


def heading(contract: Contract, method: str, about: str = "") -> dict[str, Any]:
    """Name the data and the method."""
    kind = {"about": about} if about else {}
    return {"format": 2, **kind, "data_set": contract.name, "method": method}


def costs(line: Line, spent: Decimal, total: Decimal | None = None) -> dict[str, Any]:
    """State what was asked for, and what was spent: by a line, and by everything that was released."""
    budget, whole = line.budget, spent if total is None else total
    costs = {"target_epsilon": budget.epsilon, "spent_epsilon": float(spent), "total_epsilon": float(whole)}
    return {**costs, "delta": budget.delta}


def event_of(line: Line) -> dict[str, Any]:
    """State what the ledger was charged."""
    return {"event": line.event.model_dump(mode="json")}


def hashes_of(line: Line, release_sha256: str, entry: str) -> dict[str, str]:
    """Name the plan, the contract, the release and the charge that a report is about."""
    hashes = {"plan_sha256": line.hash, "schema_sha256": line.contract.hash, "release_sha256": release_sha256}
    return {**hashes, "ledger_charge": entry}


def privacy_of(line: Line, charged: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Say what a release costs, with the discoveries of its schema and the report's charged scores, if any."""
    lines = [line.event, *([EVENT.validate_python(charged["event"])] if charged and charged["charged"] else [])]
    total, delta = joint_cost(lines, line.budget.delta, line.contract)
    discoveries = [
        {
            "charge": one.charge,
            "spent_epsilon": float(price_of(one)),
            "delta": one.delta,
            "events": [event.model_dump(mode="json") for event in one.events],
        }
        for one in line.contract.discovered
    ]
    return {
        "unit": str(line.budget.unit),
        "rows_of_a_unit": line.budget.unit.max_rows,
        "adjacency": line.budget.adjacency.value,
        **costs(line, spent_epsilon([line.event], line.budget.delta_exact), total),
        **({"total_delta": delta, "discoveries": discoveries} if discoveries else {}),
        **event_of(line),
    }
