"""Ask an account's officer before a charge, by Prefect or by hand; the ledger checks the signature."""

from typing import Any

from dpmodels.errors import AwaitsOfficer, NacreError
from dpmodels.ledger.approval import ApprovalRequest, Officer
from flows.description import as_markdown, describe_run
from tasks.engine.progress import is_deployed
from tasks.run.accounts import keep_approval, officer_of, quote, read_approval
from tasks.run.store import Run


def ask_approver(run: Run, lasting_server: bool) -> None:
    """Pause, before any charge, until the account's officer has signed for the run, if the account has an officer.

    A deployed flow run is suspended instead: it ends, holds no resources, and is started again when the officer
    answers. The answer is only passed on to the ledger, which refuses a charge without a valid signature.

    Raises:
        NacreError: nobody could be asked, nobody answered in time, or the answer is not a signature of the officer.
    """
    if (
        not run.plan.lines
        or run.finished("sanitize")
        or quote(run).state != "new"
        or (signing := officer_of(run)) is None
    ):
        return  # it charges nothing, was charged before, perhaps with others as a family, or nobody must sign
    officer, request = signing
    approval = read_approval(run)
    if approval is None and not lasting_server:
        how = f"by `nacre approve {run.name} --key KEY.pem --home {run.home}`; then resume it"
        raise AwaitsOfficer(run.settings.account, f"{officer.name} is to approve run {run.name} {how}", officer.name)
    if approval is None and (signature := _ask_in_prefect(run, officer, request)):
        approval = request.signed(officer, signature)
    # `nacre approve` may have written an approval while the run waited
    keep_approval(run, request.check(officer, approval or read_approval(run)))


def _ask_in_prefect(run: Run, officer: Officer, request: ApprovalRequest) -> str:
    """Show the plan in the form of a paused flow run; return the signature that was typed in, which may be empty."""
    from prefect.exceptions import FlowPauseTimeout
    from prefect.flow_runs import pause_flow_run, suspend_flow_run
    from prefect.input import RunInput

    class ApprovalInput(RunInput):
        signature: str = ""

    form = ApprovalInput.with_initial_data(description=plan_text(run, officer, request), signature="")
    wait = suspend_flow_run if is_deployed() else pause_flow_run
    try:
        answer: Any = wait(wait_for_input=form, timeout=int(run.settings.approval_hours * 3600))
    except FlowPauseTimeout:
        raise NacreError(f"nobody approved run {run.name} in time; nothing was charged") from None
    return str(answer.signature).strip()


def plan_text(run: Run, officer: Officer, request: ApprovalRequest) -> str:
    """Return the text for the officer: the plan, and what is to be signed."""
    parts = [
        f"Run {run.name} asks to release what this plan says.",
        as_markdown(describe_run(run)),
        f"To approve, {officer.name} runs `nacre approve {run.name} --key KEY.pem` where the run's home can be read, "
        "and resumes this flow run. Elsewhere, sign exactly this line, its end included, with the key, and resume with "
        "the signature in base64:",
        f"```\n{request.text}```",
    ]
    return "\n\n".join(parts)
