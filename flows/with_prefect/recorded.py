"""Record a run as one flow run, on the configured server or on one that lives as long as the run."""

from collections.abc import Callable
from typing import Any

from dpmodels.errors import NacreError
from flows.with_prefect.allowance import shown
from flows.with_prefect.server import PrefectServer
from tasks.run.store import Handle, Run
from tasks.stages.stage import as_task

NAMES = {"": "synthesize", "client": "federate"}
"""The flow's name by the kind of part that is charged on its own; whatever is not named here is of documents."""
Call = Callable[..., Handle]
"""A function that runs a stage: it is called with the stage and its handles."""


def title_of(run: Run) -> str:
    """Name a flow run by the data set and the run that it records."""
    return f"{shown(run.plan.whole.name)} {run.name}"


def run_as_flow(run: Run, body: Callable[[bool, Call], None]) -> None:
    """Run ``body`` within a flow run; it is called with whether the server outlives the run, and how to run a stage."""
    with PrefectServer(run.home) as server:
        from prefect import flow

        @flow(
            name=NAMES.get(run.plan.family, "embed-documents"),
            flow_run_name=title_of(run).replace("{", "{{").replace("}", "}}"),
            persist_result=False,
            validate_parameters=False,
        )
        def recorded(home: str, name: str) -> None:
            body(server.pid is None, run_stage)

        server.wait()
        recorded(str(run.home), run.name)


def run_stage(stage: Callable[..., Handle], *handles: Any) -> Handle:
    """Run a stage as a task of the flow run that is under way; its log says how far it is, and nothing of the data."""
    from prefect import get_run_logger

    logger, policy = get_run_logger(), stage.policy  # type: ignore[attr-defined]
    reads = "private data, is never retried" if policy.sensitive else "released objects only, may be retried"
    logger.info("stage %s begins: reads %s", policy.name, reads)
    try:
        handle = as_task(stage)(*handles)
    except Exception as error:
        reason = str(error) if isinstance(error, NacreError) else type(error).__name__  # others quote what they fail on
        logger.error("stage %s failed: %s", policy.name, reason)
        raise
    logger.info("stage %s is done", policy.name)
    return handle
