"""The slots of our accounts that a server which was killed left taken."""

import json
from datetime import UTC, datetime
from pathlib import Path

SLOTS = "nacre-account-"
"""What the names of accounts' concurrency limits begin with."""
_PAGE = 200


def free_slots(leases: Path) -> None:
    """Give back every slot that no lease holds; one that is held falls free when its holder stops renewing the lease.

    A slot is in the database before its lease is on the disk, and earlier versions kept leases in memory.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import GlobalConcurrencyLimitUpdate

    leased, offset = _held(leases), 0
    with get_client(sync_client=True) as client:
        while limits := client.read_global_concurrency_limits(limit=_PAGE, offset=offset):
            for limit in limits:
                if limit.name.startswith(SLOTS) and limit.active_slots and str(limit.id) not in leased:
                    client.update_global_concurrency_limit(limit.name, GlobalConcurrencyLimitUpdate(active_slots=0))
            offset += len(limits)


def _held(leases: Path) -> set[str]:
    """Return the ids of the limits that leases on the disk still hold."""
    now, limits = datetime.now(UTC), set[str]()
    for file in leases.glob("*-*.json"):
        try:
            lease = json.loads(file.read_text(encoding="utf-8"))
            if datetime.fromisoformat(lease["expiration"]) > now:
                limits |= set(lease["resource_ids"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # torn when the machine stopped: it holds nothing
    return limits
