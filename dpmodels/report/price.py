"""What a publishable report says of the price of a release, and of the files that it is about."""

from collections.abc import Mapping
from typing import Any

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import EVENT
from dpmodels.releases.discoveries import joint_cost, price_of
from dpmodels.releases.release import Release


def price_of_release(release: Release, charged: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Say what a release costs, with the discoveries of its schema and the report's charged scores, if any."""
    line = release.line
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
        "target_epsilon": line.budget.epsilon,
        "spent_epsilon": float(spent_epsilon([line.event], line.budget.delta_exact)),
        "total_epsilon": float(total),
        "delta": line.budget.delta,
        **({"total_delta": delta, "discoveries": discoveries} if discoveries else {}),
        "event": line.event.model_dump(mode="json"),
    }


def hashes_of(release: Release, release_sha256: str) -> dict[str, str]:
    """Name what a release was planned, charged and sealed as; the manifest names the same."""
    return {
        "plan_sha256": release.line.hash,
        "schema_sha256": release.line.contract.hash,
        "release_sha256": release_sha256,
        "ledger_charge": release.entry,
    }
