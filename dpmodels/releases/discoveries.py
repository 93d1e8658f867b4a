"""What was paid for the keys of a schema, as part of the price of whatever is made by it."""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import Event, leaves
from dpmodels.contract.discovery.discovery_charge import DiscoveryCharge
from dpmodels.errors import Unsuitable
from dpmodels.ledger.records import Charge, Reservation
from dpmodels.ledger.store import digest
from dpmodels.releases.contract import Contract

ORIGIN = re.compile(r"charged release (discover-[0-9a-f]{16}(?:-[0-9]+)?), epsilon=")
"""How a source of a schema names the run of a discovery."""
AGAIN = (
    "run `nacre schema discover` again, where it was charged, with its draft, epsilon and delta: it is charged once, "
    "so this costs nothing, and writes a schema that says what it cost"
)


def discovery_charge(charge: Charge, release_sha256: str) -> DiscoveryCharge:
    """Return all that a schema says of the charge that paid for its discovery."""
    return DiscoveryCharge.model_validate(
        {
            "charge": charge.key,
            "account": charge.account,
            "run": charge.run,
            "unit": str(charge.budget.unit),
            "epsilon": charge.budget.epsilon,
            "delta": charge.budget.delta,
            "events": list(leaves([charge.event])),
            "plan_sha256": charge.plan_hash,
            "release_sha256": release_sha256,
        }
    )


def unpriced(contract: Contract) -> list[str]:
    """Name the discoveries whose keys a schema has and whose price it does not state, as earlier versions wrote it."""
    runs = [name for words in contract.sources for name in ORIGIN.findall(words)]
    return [name for name in runs if name not in (one.run for one in contract.discovered)]


def discovered_keys(contract: Contract, column: str) -> set[str]:
    """Return the keys of a column that the schema names as from a charged release."""
    listed = rf"(?:: |; )([a-z_]+(?:, [a-z_]+)*) of {re.escape(column)}(?=; |$)"
    sources = [words for words in contract.sources if ORIGIN.search(words)]
    return {key for words in sources for keys in re.findall(listed, words) for key in keys.split(", ")}


def joint_delta(deltas: Iterable[float]) -> float:
    """Add the deltas of a release and of its schema's discoveries, as the decimals that were written."""
    return float(sum(Decimal(repr(delta)) for delta in deltas))


def price_of(one: DiscoveryCharge) -> Decimal:
    """Return the epsilon that a discovery cost at its delta, rounded up; infinite where its thresholds take more."""
    return spent_epsilon(one.events, Decimal(repr(one.delta)))


def joint_cost(events: Sequence[Event], delta: float, contract: Contract) -> tuple[Decimal, float]:
    """Return what a run's events and the discoveries of its schema cost together: epsilon, rounded up, and delta.

    Privacy:
        What all events spend is an upper bound at every delta that is chosen beforehand (``spent_epsilon``). The sum of
        the deltas is one at which the bound is finite, since a threshold's delta is below that of its discovery, and
        no more than the sum of the epsilons: (a, d) and (b, e) compose to (a + b, d + e).
    """
    discoveries = contract.discovered
    whole = joint_delta([delta, *(one.delta for one in discoveries)])
    further = [event for one in discoveries for event in one.events]
    return spent_epsilon([*events, *further], Decimal(repr(whole))), whole


def check_priced(contract: Contract, delta: float) -> None:
    """Refuse a schema that does not say what its discoveries cost, or says what cannot be.

    Raises:
        Unsuitable: an earlier version wrote it, its lines were edited, or the deltas add up to 1.
    """
    fault = next((f"has keys from the charged release {name} without its price" for name in unpriced(contract)), "")
    for one in contract.discovered:
        if one.charge != digest([one.account, one.plan_sha256, one.run]):
            fault = f"names the discovery {one.run} with a charge that is not of its account, plan and run"
        elif price_of(one) > Decimal(repr(one.epsilon)):
            fault = f"names the discovery {one.run} with events that cost more than its epsilon and delta"
    if fault:
        raise Unsuitable(f"schema {contract.name} {fault}: {AGAIN}; nothing was charged")
    deltas = [one.delta for one in contract.discovered]
    if deltas and joint_delta([delta, *deltas]) >= 1:
        raise Unsuitable(
            f"the deltas of this run and of what schema {contract.name} was discovered with add up to 1, so nothing "
            "would be hidden: give a smaller --delta, or discover with one; nothing was charged"
        )


def check_discovery(one: DiscoveryCharge, reservation: Reservation, contract: Contract) -> None:
    """Refuse a discovery of which the ledger that paid for it knows something else than the schema says.

    Raises:
        Unsuitable: it was given up, is not finished, is of another data set, or was edited.
    """
    fault = ""
    if reservation.state not in ("sealed", "committed"):
        fault = f"is {reservation.state} in the ledger, so nothing pays for its keys"
    elif reservation.charge.dataset not in _names(contract):
        fault = f"is of data set {reservation.charge.dataset}, and not of {contract.name}"
    elif (
        reservation.charge.mechanism != "discovery"
        or discovery_charge(reservation.charge, reservation.artifact_hash) != one
    ):
        fault = "is not the one in the ledger: its lines under `discovered` were edited"
    if fault:
        raise Unsuitable(
            f"the discovery {one.run} that schema {contract.name} names {fault}; {AGAIN}; nothing was charged"
        )


def _names(contract: Contract) -> tuple[str, ...]:
    """Return the name of a data set, and of the whole one where this is a part of it."""
    part = contract.partition
    return (contract.name, contract.name.removesuffix(f"-{part.value}")) if part else (contract.name,)
