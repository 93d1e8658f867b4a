"""Partitions of a data set: their accounts under a common parent, and the settings that a flow of nights needs."""

from dpmodels.contract.schema import Schema
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from flows.config import SynthesizeConfig
from tasks.run.accounts import accounts_to_open, charges_of
from tasks.run.contents import partition_account as name_of
from tasks.run.settings import Opening
from tasks.run.store import Run

NIGHT = "{night}"
MAX_NIGHTS = 1000


def partition_account(ledger: Ledger, parent: str, schema: Schema, cap: PrivacyBudget) -> tuple[str, Opening]:
    """Return the name of a partition's account, under the parent that has the cap on all partitions, and its terms.

    Privacy: partitions of one column are disjoint in records, since ingest assigns rows to them by a rule that looks at
        each row alone. Partitions of two different columns are not disjoint, and the ledger refuses them under one
        account. The account's name holds column and value.
    """
    above, partition = ledger.account(parent), schema.partition
    column = partition.column if partition else ""
    note = f"one partition by column {column}, with its run's budget as the cap"
    return name_of(above.name, partition), Opening(cap=cap, note=note, parent=above.name, partition=column)


def check_nights(config: SynthesizeConfig, schema: Schema, disjoint: bool) -> None:
    """Refuse a deployment whose nights would read the same rows or write to the same place.

    Raises:
        InvalidArgument, Unsuitable: a path lacks ``{night}``, or nothing tells disjoint nights apart.
    """
    if not config.privacy.account:
        raise Unsuitable("nothing was given for privacy.account; name the account that pays for the nights")
    if NIGHT not in config.out:
        raise InvalidArgument("out", config.out, f"hold {NIGHT}, since every night is handed off by itself")
    if not disjoint and NIGHT not in config.data + config.query:
        raise InvalidArgument("data", config.data, f"hold {NIGHT}, or every sequential night would read the same rows")
    if disjoint and schema.unit.user is not None:
        raise InvalidArgument("partitions", "disjoint", "be sequential for a unit of users, who may come back")
    if disjoint and schema.partition is None:
        rule = "be sequential, unless the schema says which column tells nights apart (`partition: COLUMN`)"
        raise InvalidArgument("partitions", "disjoint", rule)


def explain(ledger: Ledger, run: Run, partition: str) -> str:
    """Say how the costs of this run and others like it add up."""
    name, opens = run.settings.account, run.settings.opens
    if not run.plan.lines:
        return "none: nothing is charged"
    if partition and opens:
        return (
            f"disjoint: {name} pays for this partition alone; under {opens.parent} partitions cost the "
            "largest of them, so any number of them fits"
        )
    more = nights_that_fit(ledger, run)
    return f"sequential: runs on {name} add up; after this one {more}{'+' * (more == MAX_NIGHTS)} like it fit"


def nights_that_fit(ledger: Ledger, run: Run) -> int:
    """Count how many more releases like this run's would fit after it, up to a thousand; nothing is written."""
    from dpmodels.accounting.events import ComposedEvent

    party = run.parties[0]  # clients of a federation are charged alike, and side by side
    planned, *others = charges_of(party)
    events, epsilon = [planned.event], planned.budget.epsilon
    for other in others:
        events, epsilon = [*events, other.event], epsilon + other.budget.epsilon
    first_opens = accounts_to_open(party.settings, party.plan.release.contract.name)
    counted = ledger.find(planned.key) is not None  # then the balance includes this run already

    def fit(more: int) -> bool:
        releases = more + (not counted)
        delta = min(0.5, planned.budget.delta * len(events) * releases)
        whole = planned.budget.model_copy(update={"epsilon": min(1000.0, epsilon * releases), "delta": delta})
        event = ComposedEvent(events=tuple(events) * releases)
        forecast = planned.model_copy(update={"event": event, "budget": whole, "run": "forecast"})
        return ledger.quote(forecast, first_opens=first_opens).accepted

    # pure releases add up, so at most so many fit under the largest cap that there is
    low, high = 0, MAX_NIGHTS if planned.budget.delta else min(MAX_NIGHTS, int(1000 / epsilon) - (not counted))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fit(middle) else (low, middle - 1)
    return low
