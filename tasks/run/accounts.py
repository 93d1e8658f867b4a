"""The account that a run is charged to: what the run asks of the ledger, what the ledger says, and the desk of a line.

The first run on a data set opens the data set's account with its own budget as the cap. It does so in the transaction
that charges the run, so a run that fails before leaves nothing behind; until then the ledger is only asked for a quote.
"""

from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from dpmodels.artifact import write_text
from dpmodels.errors import LedgerError, NacreError, refused
from dpmodels.ledger.approval import Approval, ApprovalRequest, Officer
from dpmodels.ledger.ledger import Account, Charge, Ledger, Quote
from dpmodels.releases.draw import Desk, Ticks
from dpmodels.releases.plan import RELEASE, REPORT, Line
from tasks.run.home import ledger_of
from tasks.run.settings import Opening, Settings
from tasks.run.signing import passphrase_of
from tasks.run.store import Run

APPROVAL = "approval.json"
STAGES = {RELEASE: "sanitize", REPORT: "score"}
"""The stage that measures a line."""


def desk_of(run: Run, name: str = RELEASE, device: str = "cpu", progress: Ticks | None = None) -> Desk:
    """Return the desk at which a line of a run's plan is measured: the ledger, the line's charge, and its files."""
    charge, path = _charge(run, run.plan[name]), run.place(STAGES[name])
    return Desk(ledger_of(run), charge, run.sensitive / path.name, path, device, progress)


def charges_of(run: Run) -> list[Charge]:
    """Return the lines of a run's plan as charges: the release, then the report; or each client's release."""
    return [_charge(party, line) for party in run.parties for line in party.plan.lines]


def _charge(run: Run, line: Line) -> Charge:
    return charge_of(run.settings.paid_by or run.name, line, run.settings.account)


def charge_of(run_name: str, line: Line, account: str) -> Charge:
    """Return one line of a plan as the charge that the ledger decides on."""
    return Charge(
        account=account,
        dataset=line.contract.name,
        mechanism=line.method,
        event=line.event,
        budget=line.budget,
        plan_hash=line.hash,
        schema_hash=line.contract.hash,
        run=run_name,
        part=line.family,
    )


def accounts_to_open(settings: Settings, dataset: str) -> list[Account]:
    """Return the accounts that a run opens when it is charged, the one above a client's first; none that were open."""
    accounts = [] if settings.opens is None else [_opened(settings.opens, settings.account, dataset)]
    if settings.above is not None and settings.opens is not None:
        accounts.insert(0, _opened(settings.above, settings.opens.parent, dataset.partition(".")[0]))
    return accounts


def _opened(terms: Opening, name: str, dataset: str) -> Account:
    details = terms.model_dump(include={"note", "parent", "partition"})
    try:
        return Account(name=name, dataset=dataset, cap=terms.cap, **details)
    except ValidationError as fault:
        raise refused(fault, "account") from None


def new_ledger(url: str | Path) -> str:
    """Say where a ledger is that has no entry yet: two ledgers are two budgets, and neither knows the other."""
    if isinstance(url, Path) and (not url.exists() or Ledger(url).head() is None):
        return f"a new ledger begins in {url}: it knows nothing of what another home has spent on the same data"
    return ""


def has_opened(run: Run) -> bool:
    """Tell whether a run opened the account that paid for it, whose cap is its budget still."""
    terms, name = run.settings.opens, run.settings.account
    with suppress(NacreError):  # a ledger that cannot be read says nothing here
        return bool(terms and not terms.parent and Ledger(run.ledger).account(name).cap == terms.cap)
    return False


def quote(run: Run) -> Quote:
    """Ask the ledger what it would answer to a run's charges, or what it answered."""
    return desk_of(run).ledger.quote(*charges_of(run), first_opens=_to_open(run))


def reserve(run: Run) -> None:
    """Reserve every line of a run's plan, all or none.

    Raises:
        NacreError: the ledger refuses.
    """
    opened = [terms for party in run.parties for terms in (party.settings.opens, party.settings.above) if terms]
    desk_of(run).ledger.reserve(
        *charges_of(run),
        approval=read_approval(run),
        first_opens=_to_open(run),
        alone=any(terms.alone for terms in opened),
        declared=run.settings.declared,
    )


def officer_of(run: Run) -> tuple[Officer, ApprovalRequest] | None:
    """Return who must sign a run's charges, if anybody must, and what is to be signed."""
    charges = charges_of(run)
    if not charges:
        return None
    return ledger_of(run).asked(*charges, first_opens=_to_open(run), declared=run.settings.declared)


def sign_run(run: Run, key: Path) -> tuple[Approval, ApprovalRequest]:
    """Approve a run with the officer's private key, and keep the approval with the run.

    Raises:
        NacreError: nobody must approve this run, or this is not the key of whoever must.
    """
    signing = officer_of(run)
    if signing is None:
        raise NacreError(f"the account of run {run.name} has no officer; `nacre ledger officer` names one")
    officer, request = signing
    approval = request.check(officer, request.approve(officer.name, key, passphrase_of(key, "key")))
    keep_approval(run, approval)
    return approval, request


def keep_approval(run: Run, approval: Approval | None) -> None:
    """Keep an approval with the run."""
    if approval is not None:
        write_text(run.control / APPROVAL, approval.model_dump_json(indent=1), 0o600)


def read_approval(run: Run) -> Approval | None:
    """Return the approval that was given to a run; the ledger checks its signature."""
    path = run.control / APPROVAL
    try:
        return Approval.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None
    except ValidationError:
        raise LedgerError(f"{path} is no approval; remove it and have the run approved again") from None


def _to_open(run: Run) -> list[Account]:
    terms = [(party.settings, party.plan.contract.name) for party in run.parties]
    return list({account.name: account for one in terms for account in accounts_to_open(*one)}.values())
