"""Automations for what nobody is there to see: a worker that died, and an account whose budget is spent.

They are made from the file of deployments, since who is paused by which account stands there.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from dpmodels.errors import InvalidArgument
from flows.with_prefect.budget import key_of
from flows.with_prefect.operators import Deployment

SILENCE = timedelta(minutes=10)
"""Without a heartbeat for so long a flow run counts as dead: three beats of Prefect's own frequency, and one minute."""
ENDS = ("Completed", "Failed", "Cancelled", "Crashed", "Suspended", "Paused", "AwaitingRetry")
NEAR, SPENT = "nacre.budget.80", "nacre.budget.100"


def register(deployments: Sequence[Deployment], notify: str = "") -> list[str]:
    """Make the automations of a file's deployments, in the place of those of the same names; return the names.

    Args:
        deployments: of the operator's file, registered.
        notify: a notification block, TYPE/NAME, that is told when an account is nearly or wholly spent.

    Raises:
        InvalidArgument: there is no such block.
    """
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        block = _block(client, notify) if notify else None
        rules = [crashed(), *_paused(client, deployments), *(told(mark, block) for mark in (NEAR, SPENT) if block)]
        for automation in rules:
            for old in client.read_automations_by_name(automation.name):
                client.delete_automation(old.id)
            client.create_automation(automation)
    return [automation.name for automation in rules]


def crashed() -> Any:
    """Mark a flow run as crashed whose worker is no longer heard of; suspended ones hold no worker and are left."""
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState
    from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture

    beat = "prefect.flow-run.heartbeat"
    trigger = EventTrigger(
        after={beat},
        expect={beat, *(f"prefect.flow-run.{end}" for end in ENDS)},
        match_related={"prefect.resource.id": "prefect.tag.nacre", "prefect.resource.role": "tag"},
        for_each={"prefect.resource.id"},
        posture=Posture.Proactive,
        threshold=1,
        within=SILENCE,
    )
    message = "Its worker was not heard of for ten minutes. Start it again: it goes on, and is charged once."
    return AutomationCore(
        name="nacre: mark flow runs as crashed whose worker died",
        trigger=trigger,
        actions=[ChangeFlowRunState(name="Crashed", state=StateType.CRASHED, message=message, force=True)],
    )


def pausing(name: str, account: str, deployment: UUID) -> Any:
    """Pause a deployment that runs on a schedule once no further release fits into the account that it charges."""
    from prefect.events.actions import PauseDeployment
    from prefect.events.schemas.automations import AutomationCore

    return AutomationCore(
        name=f"nacre: pause {name} when account {account} is spent",
        trigger=_passed(SPENT, f"nacre.account.{key_of(account)}"),
        actions=[PauseDeployment(source="selected", deployment_id=deployment)],
    )


def told(mark: str, block: UUID) -> Any:
    """Notify somebody when an account passes a mark; what is said is public."""
    from prefect.events.actions import SendNotification
    from prefect.events.schemas.automations import AutomationCore

    share = f"{mark.rpartition('.')[2]} %"
    body = "{{ event.resource.id }}: " + share + " of the cap is used, by run {{ event.payload.run }}."
    return AutomationCore(
        name=f"nacre: say that an account is used to {share}",
        trigger=_passed(mark, "nacre.account.*"),
        actions=[SendNotification(block_document_id=block, subject=f"nacre: {share} of a budget", body=body)],
    )


def _passed(event: str, account: str) -> Any:
    from prefect.events.schemas.automations import EventTrigger, Posture

    return EventTrigger(expect={event}, match={"prefect.resource.id": account}, posture=Posture.Reactive, threshold=1)


def _paused(client: Any, deployments: Sequence[Deployment]) -> Iterator[Any]:
    """Yield one automation for each deployment that has a schedule and says which account it charges."""
    for one in deployments:
        privacy = one.parameters.get("config", {}).get("privacy", {})
        if one.schedules and (account := privacy.get("account")):
            yield pausing(one.full_name, account, client.read_deployment_by_name(one.full_name).id)


def _block(client: Any, notify: str) -> UUID:
    from prefect.exceptions import ObjectNotFound

    kind, _, name = notify.partition("/")
    try:
        block_id: UUID = client.read_block_document_by_name(name, kind).id
    except ObjectNotFound:
        raise InvalidArgument("notify", notify, "name a notification block of the server, as TYPE/NAME") from None
    return block_id
