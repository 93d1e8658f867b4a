"""The account that a run is charged to: what it asks of the ledger, and what the ledger says to it.

The first run on a data set opens its account with that run's budget as the cap. It does so in the transaction that
charges it, so a run that fails before leaves nothing behind; until then the ledger is asked what it would say.
"""

from pathlib import Path

from pydantic import ValidationError

from dpmodels.accounting.approval import Approval, Officer, approval_text, approve, check_approval
from dpmodels.accounting.ledger import Account, Charge, Ledger, Quote
from dpmodels.errors import LedgerError, NacreError
from dpmodels.releases.plan import Plan
from tasks.store import Run, Settings, write_text

APPROVAL = "approval.json"


def charges_of(run: Run) -> list[Charge]:
    """Write the lines of a run's plan down as charges: the release, then the report if it is charged."""
    lines = [run.plan, *([run.report_plan] if run.report_plan else [])]
    return [charge_of(run.name, plan, run.settings.account) for plan in lines]


def charge_of(run_name: str, plan: Plan, account: str) -> Charge:
    """Write one line of a plan down as the charge that the ledger decides on."""
    return Charge(
        account=account,
        dataset=plan.table.name,
        mechanism=plan.method,
        event=plan.event,
        budget=plan.budget,
        plan_hash=plan.hash,
        schema_hash=plan.table.hash,
        run=run_name,
    )


def account_to_open(settings: Settings, dataset: str) -> Account | None:
    """Return the account that a run opens when it is charged, or None where it was open before."""
    if (terms := settings.opens) is None:
        return None
    return Account(name=settings.account, dataset=dataset, cap=terms.cap, note=terms.note, parent=terms.parent)


def quote(run: Run) -> Quote:
    """Ask the ledger what it would say to a run, or what it said."""
    return Ledger(run.ledger).quote(*charges_of(run), first_opens=_to_open(run))


def reserve(run: Run) -> Charge:
    """Reserve every line of a run's plan, all or none, and return the release's charge.

    Raises:
        NacreError: whatever the ledger has against it.
    """
    charge, *others = charges_of(run)
    Ledger(run.ledger).reserve(charge, *others, approval=read_approval(run), first_opens=_to_open(run))
    return charge


def officer_of(run: Run) -> Officer | None:
    """Return who must sign a run's charges, if anybody must."""
    settings, ledger = run.settings, Ledger(run.ledger)
    names = {account.name for account in ledger.accounts()}
    name = settings.account if settings.account in names else settings.opens and settings.opens.parent
    return ledger.officer(name) if name else None


def text_to_sign(run: Run) -> str:
    """Return what the officer of a run's account signs."""
    charges = charges_of(run)
    return approval_text(charges[0].account, run.name, [charge.plan_hash for charge in charges])


def sign_run(run: Run, key: Path) -> Approval:
    """Approve a run with the officer's private key, and keep the approval with the run.

    Raises:
        NacreError: nobody must approve this run, or this is not the key of whoever must.
    """
    officer, charges = officer_of(run), charges_of(run)
    if officer is None:
        raise NacreError(f"the account of run {run.name} has no officer; `nacre ledger officer` names one")
    plans = [charge.plan_hash for charge in charges]
    approval = approve(charges[0].account, run.name, plans, officer.name, key)
    check_run_approval(run, officer, approval)
    keep_approval(run, approval)
    return approval


def check_run_approval(run: Run, officer: Officer, approval: Approval | None) -> None:
    """Refuse what the ledger would refuse.

    Raises:
        LedgerError: the officer did not sign for this run.
    """
    charges = charges_of(run)
    check_approval(charges[0].account, run.name, [charge.plan_hash for charge in charges], officer, approval)


def keep_approval(run: Run, approval: Approval | None) -> None:
    """Keep an approval with the run."""
    if approval is not None:
        write_text(run.control / APPROVAL, approval.model_dump_json(indent=1))


def read_approval(run: Run) -> Approval | None:
    """Return the approval that was given to a run; whether it is true is for the ledger to say."""
    path = run.control / APPROVAL
    try:
        return Approval.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None
    except ValidationError:
        raise LedgerError(f"{path} is no approval; remove it and have the run approved again") from None


def _to_open(run: Run) -> Account | None:
    return account_to_open(run.settings, run.plan.table.name)
