"""The sections that the publishable reports of all kinds of data share."""

from decimal import Decimal
from typing import Any

from dpmodels.releases.contract import Contract
from dpmodels.releases.plan import Line


def heading(contract: Contract, method: str, lost: str | None, about: str = "") -> dict[str, Any]:
    """Name the data and the method; ``lost`` says that what was released does not stand out of its noise."""
    kind = {"about": about} if about else {}
    drowned = {"drowned": lost} if lost else {}
    return {"format": 2, **kind, "data_set": contract.name, "method": method, **drowned}


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
