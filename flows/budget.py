"""What Prefect is told about the budget, and the officer it asks: nothing private, and never the account itself."""

import json
import re
from collections.abc import Mapping
from typing import Any

from dpmodels.accounting.ledger import Ledger
from dpmodels.accounting.records import Balance
from dpmodels.accounting.store import now
from dpmodels.errors import NacreError
from tasks.progress import is_deployed
from tasks.sanitize import charges_of
from tasks.store import Run, write_text

MARKS = (0.8, 1.0)  # parts of a cap whose passing is an event
NOTHING_FITS = 0  # what remains when not even the smallest release fits: the cap counts as used up


def key_of(name: str) -> str:
    """Turn a name into an artifact's key: lower-case letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def used(balance: Balance) -> float:
    """Return the part of a cap that is used; all of it once no further release fits."""
    return 1.0 if balance.remaining_epsilon == NOTHING_FITS else balance.used


def passed(before: Balance, after: Balance) -> list[float]:
    """Return the marks that lie between two balances of an account."""
    return [mark for mark in MARKS if used(before) < mark <= used(after)]


def named_accounts(run: Run) -> list[str]:
    """Return the account that pays and those above it.

    The account of a partition is left out: it has its one run's budget as the cap, so it is always full.
    """
    ledger, name, found = Ledger(run.ledger), run.settings.account, list[str]()
    while name:
        parent = ledger.account(name).parent
        if not (parent and name.startswith(f"{parent}/")):
            found.append(name)
        name = parent
    return found


def balances(run: Run) -> dict[str, Balance]:
    """Return the balances of the named accounts that a run counts against."""
    return {name: Ledger(run.ledger).balance(name) for name in named_accounts(run)}


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
        for mark in passed(before[name], after):
            emit_event(
                event=f"nacre.budget.{mark:.0%}".rstrip("%"),
                resource={"prefect.resource.id": f"nacre.account.{key_of(name)}"},
                payload={"run": run.name, **row},
            )


def ask_approver(run: Run, lasting_server: bool) -> None:
    """Pause until the named officer has read the plan and resumes the run; once per run, before any charge.

    A deployed flow run is suspended instead: it ends, holds nothing, and is started again when the officer answers.

    Raises:
        NacreError: nobody could answer, nobody did in time, or somebody else did.
    """
    settings, record = run.settings, run.released / "approval.json"
    if not settings.approver or record.exists():
        return
    if not lasting_server:
        raise NacreError(
            f"{settings.approver} is to approve run {run.name}, which needs a Prefect server that lasts: "
            "set PREFECT_API_URL and resume the run"
        )
    from prefect.exceptions import FlowPauseTimeout
    from prefect.flow_runs import pause_flow_run, suspend_flow_run
    from prefect.input import RunInput

    class Approval(RunInput):
        officer: str

    asked = Approval.with_initial_data(description=plan_text(run), officer="")
    wait = suspend_flow_run if is_deployed() else pause_flow_run
    try:
        answer: Any = wait(wait_for_input=asked, timeout=int(settings.approval_hours * 3600))
    except FlowPauseTimeout:
        raise NacreError(f"nobody approved run {run.name} in time; nothing was charged") from None
    if answer.officer != settings.approver:
        raise NacreError(f"run {run.name} was not approved by {settings.approver}; nothing was charged")
    write_text(record, json.dumps({"officer": answer.officer, "time": now()}))


def plan_text(run: Run) -> str:
    """Write the plan for the officer."""
    plan, settings, report = run.plan, run.settings, run.report_plan
    quote = Ledger(run.ledger).quote(*charges_of(run))
    lines = [
        f"Run {run.name} asks to release data set {plan.table.name} by {plan.method}.",
        f"Budget: epsilon={plan.budget.epsilon}, delta={plan.budget.delta}, unit {plan.budget.unit}.",
        *([f"Scores on the real rows, for the report: epsilon={report.budget.epsilon} more."] if report else []),
        f"Account {quote.account}: spent epsilon={quote.spent_before} before, {quote.spent_after} after, "
        f"of cap={quote.cap} at delta={quote.delta}.",
        f"To approve, resume with officer: {settings.approver}.",
    ]
    return "\n\n".join(lines)
