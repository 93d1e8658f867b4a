"""What Prefect is told about the budget, and the officer it asks: nothing private, and never the account itself."""

import re
from collections.abc import Mapping
from typing import Any

from dpmodels.errors import NacreError
from dpmodels.ledger.approval import Approval, Asked, Officer
from dpmodels.ledger.records import Balance
from tasks.accounts import keep_approval, officer_of, quote, read_approval
from tasks.home import ledger_of
from tasks.progress import is_deployed
from tasks.store import Run

MARKS = (0.8, 1.0)  # parts of a cap whose passing is an event
NOTHING_FITS = 0  # what remains when not even the smallest release fits: the cap counts as used up


def key_of(name: str) -> str:
    """Turn a name into an artifact's key: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def used(balance: Balance) -> float:
    """Return the part of a cap that is used; all of it once no further release fits."""
    return 1.0 if balance.remaining_epsilon == NOTHING_FITS else balance.used


def passed(before: Balance | None, after: Balance) -> list[float]:
    """Return the marks that lie between two balances of an account, which may not have been open before."""
    return [mark for mark in MARKS if (used(before) if before else 0.0) < mark <= used(after)]


def named_accounts(run: Run) -> list[str]:
    """Return the account that pays and those above it.

    The account of a partition is left out: it has its one run's budget as the cap, so it is always full.
    """
    ledger, settings, found = ledger_of(run), run.settings, list[str]()
    parents = {account.name: account.parent for account in ledger.accounts()}
    name = settings.account
    if settings.opens:  # it may not be open yet
        parents.setdefault(name, settings.opens.parent)
    while name:
        parent = parents[name]
        if not (parent and name.startswith(f"{parent}/")):
            found.append(name)
        name = parent
    return found


def balances(run: Run) -> dict[str, Balance]:
    """Return the balances of the named accounts that a run counts against, of those that are open."""
    ledger = ledger_of(run)
    opened = {account.name for account in ledger.accounts()}
    return {name: ledger.balance(name) for name in named_accounts(run) if name in opened}


def publish_budget(run: Run, before: Mapping[str, Balance]) -> None:
    """Leave the accounts' balances with the flow run, and tell of every mark that the run passed."""
    from prefect.artifacts import create_table_artifact
    from prefect.events import emit_event

    for name, after in balances(run).items():
        row = {key: str(value) for key, value in after.model_dump(mode="json").items()}
        create_table_artifact(
            key=f"budget-{key_of(name)}",
            table=[{**row, "used": f"{after.used:.1%}"}],
            description=f"epsilon={after.remaining_epsilon} of cap={after.cap} remains at delta={after.delta}",
        )
        for mark in passed(before.get(name), after):
            emit_event(
                event=f"nacre.budget.{mark:.0%}".rstrip("%"),
                resource={"prefect.resource.id": f"nacre.account.{key_of(name)}"},
                payload={"run": run.name, **row},
            )


def ask_approver(run: Run, lasting_server: bool) -> None:
    """Pause until the account's officer has signed for the run, if the account has one; before any charge.

    A deployed flow run is suspended instead: it ends, holds nothing, and is started again when the officer answers.
    What is taken here is only carried to the ledger, which refuses a charge without a true signature.

    Raises:
        NacreError: nobody could be asked, nobody answered in time, or the answer is no signature of the officer.
    """
    found = officer_of(run)
    if found is None or run.finished("sanitize"):
        return
    officer, asked = found
    approval = read_approval(run)
    if approval is None and not lasting_server:
        raise NacreError(
            f"{officer.name} is to approve run {run.name} by `nacre approve {run.name} --key KEY.pem`; then resume it"
        )
    if approval is None and (signature := _ask_in_prefect(run, officer, asked)):
        approval = Approval(
            officer=officer.name,
            public_key=officer.public_key,
            ledger=asked.ledger,
            plans=asked.plans,
            signature=signature,
        )
    # while the run waited, `nacre approve` may have written it
    keep_approval(run, asked.check(officer, approval or read_approval(run)))


def _ask_in_prefect(run: Run, officer: Officer, asked: Asked) -> str:
    """Show the plan in the form of a paused flow run; return the signature that was typed in, which may be empty."""
    from prefect.exceptions import FlowPauseTimeout
    from prefect.flow_runs import pause_flow_run, suspend_flow_run
    from prefect.input import RunInput

    class ApprovalInput(RunInput):
        signature: str = ""

    form = ApprovalInput.with_initial_data(description=plan_text(run, officer, asked), signature="")
    wait = suspend_flow_run if is_deployed() else pause_flow_run
    try:
        answer: Any = wait(wait_for_input=form, timeout=int(run.settings.approval_hours * 3600))
    except FlowPauseTimeout:
        raise NacreError(f"nobody approved run {run.name} in time; nothing was charged") from None
    return str(answer.signature).strip()


def plan_text(run: Run, officer: Officer, asked: Asked) -> str:
    """Write the plan for the officer, and what is to be signed."""
    plan, report, said = run.plan.release, run.plan.report, quote(run)
    lines = [
        f"Run {run.name} asks to release data set {plan.contract.name} by {plan.method}.",
        f"Budget: epsilon={plan.budget.epsilon}, delta={plan.budget.delta}, unit {plan.budget.unit}.",
        *([f"Scores on the real rows, for the report: epsilon={report.budget.epsilon} more."] if report else []),
        f"Account {said.account}: spent epsilon={said.spent_before} before, {said.spent_after} after, "
        f"of cap={said.cap} at delta={said.delta}.",
        f"To approve, {officer.name} runs `nacre approve {run.name} --key KEY.pem` where the run's home can be read, "
        "and resumes this flow run. Elsewhere, sign exactly this line, its end included, with the key, and resume with "
        "the signature in base64:",
        f"```\n{asked.text}```",
    ]
    return "\n\n".join(lines)
