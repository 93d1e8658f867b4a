"""What a deployed flow knows of its worker and its flow run: where state lies, the run's name, which others work.

The worker's environment and no parameter says where the state lies: ``NACRE_HOME``, ``NACRE_LEDGER``, ``NACRE_DASK``.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from prefect import flow, runtime

from dpmodels.errors import ArtifactError, InvalidArgument, NacreError
from flows.config import HOME, HandOverConfig, from_environment, setting
from flows.with_prefect.budget import key_of
from tasks.store import Handle, Run

GPU_DEPLOYMENT = "generate/gpu"
HERE = "set `train_on` to `here`; nothing was charged"
LEASE_SECONDS = 60  # how long a worker that died keeps its account busy; Prefect takes no less

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=HandOverConfig)


def deployed(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function a flow that deployments run; neither its result nor what it prints is stored."""
    made: Any = flow(name=name, persist_result=False, log_prints=False)
    return cast(Callable[[Callable[P, R]], Callable[P, R]], made)


def own_name() -> str:
    """Return the name of the run that belongs to the present flow run."""
    return name_of(str(runtime.flow_run.id))


def name_of(flow_run: str) -> str:
    """Name the run of a flow run: always the same name, without the time that is part of the flow run's id."""
    return f"flow-{hashlib.sha256(flow_run.encode()).hexdigest()[:16]}"


def scheduled() -> datetime:
    """Return the time for which the present flow run was scheduled."""
    return cast(datetime, runtime.flow_run.scheduled_start_time)


def home_here() -> Path:
    """Return where this worker keeps its state."""
    return Path(from_environment("home") or HOME).absolute()


def run_here(name: str) -> Run:
    """Return a run, to go on with it on the ledger and the cluster of this worker's environment."""
    return Run.find(home_here(), name, from_environment("ledger"), from_environment("dask"))


def find_here(name: str) -> Run | None:
    """Return the run of this name, if it was started before."""
    return run_here(name) if Run(home=home_here(), name=name).exists else None


def placed_here(config: C) -> C:
    """Take the places of state, ledger and cluster from the worker's environment.

    Raises:
        InvalidArgument: a parameter of the flow run names a ledger or a cluster; whoever may ask for a run must not
            choose which ledger is charged, or which cluster's sums are believed.
    """
    for name in ("ledger", "dask"):
        if (given := getattr(config.runtime, name)) is not None:
            raise InvalidArgument(f"runtime.{name}", given, f"be left out: set {setting(name).variable} for the worker")
    places = {"home": home_here(), "ledger": from_environment("ledger"), "dask": from_environment("dask")}
    return config.model_copy(update={"runtime": config.runtime.model_copy(update=places)})


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


def check_pool() -> None:
    """Refuse to begin what the pool without data access could not go on with.

    Raises:
        NacreError: nobody serves that pool, or a process does that can read what this one reads.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client:
        try:
            pool = client.read_deployment_by_name(GPU_DEPLOYMENT).work_pool_name
        except ObjectNotFound:
            raise NacreError(f"no deployment {GPU_DEPLOYMENT} is registered (`nacre deploy`); {HERE}") from None
    if not pool:
        raise NacreError(f"{GPU_DEPLOYMENT} is served on this machine, where the data can be read; {HERE}")


def have_generated(run: Run, stage: str) -> Handle:
    """Return the artifact of a free stage, after the pool without data access has run it if it was not finished."""
    if run.finished(stage) is None:
        from prefect.deployments import run_deployment

        ended: Any = run_deployment(GPU_DEPLOYMENT, parameters={"run": run.name}, poll_interval=2)
        if not ended.state.is_completed():
            raise NacreError(f"{GPU_DEPLOYMENT} ended as {ended.state.name}; start this flow run again to go on")
    done = run.finished(stage)
    if done is None:
        raise ArtifactError(
            f"{GPU_DEPLOYMENT} left no {stage} in {run.released}; do both pools mount the released zone?"
        )
    return done
