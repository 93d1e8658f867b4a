"""What a deployed flow knows of its worker and its flow run: where state lies, the run's name, whose turn it is.

The worker's environment and no parameter says where the state lies: ``NACRE_HOME``, ``NACRE_LEDGER``, ``NACRE_DASK``;
and with which key a manifest is signed: ``NACRE_SIGNING_KEY``.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from prefect import flow, runtime
from prefect.context import FlowRunContext

from dpmodels.errors import InvalidArgument, in_words_of
from flows.config import HandOverConfig
from flows.settings import from_environment, home_here, setting
from flows.settings import key_of as key_of_setting
from flows.with_prefect.budget import key_of
from flows.with_prefect.recorded import title_of
from tasks.run.store import Run

LEASE_SECONDS = 60  # how long a worker that died keeps its account busy; Prefect takes no less

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=HandOverConfig)


def deployed(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function a flow that deployments run; neither its result nor what it prints is stored."""
    as_flow: Any = flow(name=name, persist_result=False, log_prints=False)

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        return cast(Callable[P, R], as_flow(in_words_of(key_of_setting)(function)))

    return declare


def own_name() -> str:
    """Return the name of the run that belongs to the present flow run."""
    return name_of(str(runtime.flow_run.id))


def name_of(flow_run: str) -> str:
    """Name the run of a flow run: always the same name, without the time that is part of the flow run's id."""
    return f"flow-{hashlib.sha256(flow_run.encode()).hexdigest()[:16]}"


def name_flow_run(run: Run) -> None:
    """Name the present flow run by the data set of its run, which is public, and by the run."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        client.set_flow_run_name(runtime.flow_run.id, title_of(run))


def scheduled() -> datetime:
    """Return the time for which the present flow run was scheduled."""
    return cast(datetime, runtime.flow_run.scheduled_start_time)


def nominal() -> datetime | None:
    """Return the time for which a schedule asked for the present flow run; None where no schedule did."""
    context = FlowRunContext.get()
    flow_run = context.flow_run if context else None
    return flow_run.expected_start_time if flow_run is not None and flow_run.auto_scheduled else None


def run_here(name: str) -> Run:
    """Return a run, to go on with it on the ledger and the cluster of this worker's environment."""
    return Run.find(home_here(), name, from_environment("ledger"), from_environment("dask"))


def find_here(name: str) -> Run | None:
    """Return the run of this name, if it was started before."""
    return run_here(name) if Run(home=home_here(), name=name).exists else None


def placed_here(config: C) -> C:
    """Take the places of state, ledger, cluster and signing key from the worker's environment.

    Raises:
        InvalidArgument: a parameter of the flow run names a ledger, a cluster or a key; whoever may ask for a run must
            not choose which ledger is charged, which cluster's sums are believed, or who vouches for a hand-off.
    """
    for name in ("ledger", "dask", "signing_key"):
        if (entry := getattr(config.runtime, name)) is not None:
            raise InvalidArgument(f"runtime.{name}", entry, f"be left out: set {setting(name).variable} for the worker")
    settings = {"home": home_here(), "ledger": from_environment("ledger"), "dask": from_environment("dask")}
    key = from_environment("signing_key")
    settings |= {"signing_key": Path(key) if key else None}
    return config.model_copy(update={"runtime": config.runtime.model_copy(update=settings)})


@contextmanager
def alone_on(account: str) -> Iterator[None]:
    """Wait until no other flow run works for the account."""
    from prefect.client.orchestration import get_client
    from prefect.concurrency.sync import concurrency

    limit = f"nacre-account-{key_of(account)}"
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(limit, 1)
    # A lease that cannot be renewed ends nothing, because the ledger and not this limit enforces the cap.
    with concurrency(limit, lease_duration=LEASE_SECONDS, strict=True, raise_on_lease_renewal_failure=False):
        yield
