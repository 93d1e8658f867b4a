"""What Prefect is told about the budget: public balances, never a private value."""

import re
from collections.abc import Mapping

from dpmodels import amounts
from dpmodels.escapes import escaped
from dpmodels.ledger.records import Balance
from flows.description import plain
from tasks.run.home import ledger_of
from tasks.run.store import Run

MARKS = (0.8, 1.0)  # parts of a cap; passing one of them emits an event
NOTHING_FITS = 0  # the remaining epsilon when not even the smallest release fits: the cap counts as used up


def key_of(name: str) -> str:
    """Turn a name into an artifact's key: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def used(balance: Balance) -> float:
    """Return the part of a cap that is used; 1 once no further release fits."""
    return 1.0 if balance.remaining_epsilon == NOTHING_FITS else balance.used


def passed(before: Balance | None, after: Balance) -> list[float]:
    """Return the marks that lie between two balances of an account; None is an account that was not open."""
    return [mark for mark in MARKS if (used(before) if before else 0.0) < mark <= used(after)]


def named_accounts(run: Run) -> list[str]:
    """Return the account that pays and the accounts above it.

    The account of a partition is left out: its cap is the budget of its one run, so it is always full.
    """
    ledger, settings, names = ledger_of(run), run.settings, list[str]()
    parents = {account.name: account.parent for account in ledger.accounts()}
    name = settings.account
    if settings.opens:  # it may not be open yet
        parents.setdefault(name, settings.opens.parent)
    while name:
        parent = parents[name]
        if not (parent and name.startswith(f"{parent}/")):
            names.append(name)
        name = parent
    return names


def balances(run: Run) -> dict[str, Balance]:
    """Return the balances of the named accounts of a run that are open."""
    if run.settings.is_paid_elsewhere:
        return {}
    ledger = ledger_of(run)
    opened = {account.name for account in ledger.accounts()}
    return {name: ledger.balance(name) for name in named_accounts(run) if name in opened}


def _remains(balance: Balance) -> str:
    """Say what remains of a cap for one release, and why it is not the cap less what was spent."""
    left, cap = amounts.remaining(balance.remaining_epsilon), amounts.written(balance.cap)
    why = amounts.composes(balance.cap, balance.spent_epsilon, balance.remaining_epsilon)
    sentence = f"epsilon={left} of cap={cap} remains at delta={amounts.written(balance.delta)}"
    return f"{sentence}, in one release; {why}" if why else sentence


def publish_budget(run: Run, before: Mapping[str, Balance]) -> None:
    """Publish the accounts' balances with the flow run, and emit an event for every mark that the run passed."""
    from prefect.artifacts import create_table_artifact
    from prefect.events import emit_event

    for name, after in balances(run).items():
        row = {key: escaped(str(value)) for key, value in after.model_dump(mode="json").items()}
        create_table_artifact(
            key=f"budget-{key_of(name)}",
            table=[{key: plain(value) for key, value in row.items()} | {"used": f"{after.used:.1%}"}],
            description=plain(_remains(after)),
        )
        for mark in passed(before.get(name), after):
            emit_event(
                event=f"nacre.budget.{mark:.0%}".rstrip("%"),
                resource={"prefect.resource.id": f"nacre.account.{key_of(name)}"},
                payload={"run": run.name, **row},
            )
