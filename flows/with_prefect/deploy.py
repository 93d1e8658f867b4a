"""Register the operator's deployments with a Prefect server, for its clock and its forms; or serve them here."""

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpmodels.errors import NacreError
from flows.settings import home_here
from flows.with_prefect.automations import register as register_automations
from flows.with_prefect.configured import check_access
from flows.with_prefect.operators import PACKAGE, POOL, Deployment, folders_of, read_deployments
from tasks.run.folders import make_private

TYPE = "nacre"
"""The type of our pools: Prefect's own workers know no such type, and so serve none of them."""
MOST_AT_ONCE = 10


def deploy(file: Path, automations: bool = False, notify: str = "") -> tuple[list[str], list[str]]:
    """Register every deployment of a file and make the pools that are missing; return their names, and automations.

    Raises:
        NacreError: no server is configured, or it does not answer, or has a pool of another type.
    """
    from prefect.settings import get_current_settings

    if not (url := get_current_settings().api.url):
        raise NacreError("deploying needs a Prefect server: set PREFECT_API_URL, or serve on this machine: nacre serve")
    deployments = read_deployments(file)
    check_access(url)
    with _answering(url):
        _register(deployments)
    names = register_automations(list(deployments.values()), notify) if automations or notify else []
    return list(deployments), names


def work_here(file: Path, pool: str, limit: int = MOST_AT_ONCE) -> None:
    """Serve a pool of the configured server, as a file allows, until this process is stopped.

    Raises:
        NacreError: no server is configured, or it does not answer, or the pool is of another type.
    """
    from prefect.settings import get_current_settings

    from flows.with_prefect.pool import work

    if not (url := get_current_settings().api.url):
        raise NacreError("a worker needs a Prefect server: set PREFECT_API_URL, or serve on this machine: nacre serve")
    deployments = {name: one for name, one in read_deployments(file).items() if one.work_pool.name == pool}
    if not deployments:
        raise NacreError(f"{file} has no deployment for pool {pool}; name another with --pool")
    check_access(url)
    with _answering(url):
        _check_pools({pool})
    _make_folders(deployments)
    print(f"pool {pool}: {len(deployments)} deployments of {file} at {url.removesuffix('/api')}", flush=True)
    work(deployments, pool, limit)


def serve_here(file: Path, home: Path, port: int, limit: int = MOST_AT_ONCE) -> None:
    """Run a server with its UI, and the worker of its pool, in this process and its children, until it is stopped."""
    from flows.with_prefect.server import PrefectServer

    os.environ["NACRE_HOME"] = str(home.absolute())
    deployments = read_deployments(file)
    with PrefectServer(home, port=port) as server:
        server.wait()
        from flows.with_prefect.pool import work

        moved = {
            name: one.model_copy(update={"work_pool": one.work_pool.model_copy(update={"name": POOL})})
            for name, one in deployments.items()
        }
        _register(moved)
        _make_folders(moved)
        count, url = len(moved), server.url.removesuffix("/api")
        print(f"serving {count} deployments at {url}; schedules are as you left them", flush=True)
        print(f"`nacre ui --home {home}` opens it, and says which password it asks for", flush=True)
        work(moved, POOL, limit, ends_with_server=True)


def _register(deployments: Mapping[str, Deployment]) -> None:
    """Write deployments whole, with nothing that says how to run them; schedules stay as they were left."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    pools = {one.work_pool.name for one in deployments.values()}
    _check_pools(pools, make=True)
    with get_client(sync_client=True) as client:
        for name, one in deployments.items():
            try:
                before = {each.slug: each for each in client.read_deployment_by_name(name).schedules if each.slug}
            except ObjectNotFound:
                before = {}
            client.create_deployment(
                flow_id=client.create_flow_from_name(one.flow.name),
                name=one.name,
                description=one.description,
                tags=list(one.tags),
                work_pool_name=one.work_pool.name,
                entrypoint=f"{PACKAGE}{one.entrypoint}",
                parameters=one.parameters,
                parameter_openapi_schema=one.form(),
                enforce_parameter_schema=True,
                schedules=_schedules(one, before),
                pull_steps=[],
                job_variables={},
            )


def _schedules(deployment: Deployment, before: Mapping[str, Any]) -> list[Any]:
    """Return the schedules of a deployment: as they are on the server, or else as the file has them."""
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.client.schemas.schedules import CronSchedule

    schedules = []
    for one in deployment.schedules:
        cron, active = CronSchedule(cron=one.cron, timezone=one.timezone), one.active
        if one.slug in before:
            cron, active = before[one.slug].schedule, before[one.slug].active
        schedules.append(DeploymentScheduleCreate(schedule=cron, active=active, slug=one.slug))
    return schedules


def _check_pools(pools: set[str], make: bool = False) -> None:
    """Hold pools to our type, or make those that are missing.

    Raises:
        NacreError: there is one of another type, which any worker of Prefect would serve.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
    from prefect.exceptions import ObjectNotFound

    description = "may mount the sensitive zone; served by `nacre worker`, which believes its own file alone"
    with get_client(sync_client=True) as client:
        for name in sorted(pools):
            try:
                pool = client.read_work_pool(name)
            except ObjectNotFound:
                if not make:
                    raise NacreError(f"the server has no pool {name}; register it first: nacre deploy") from None
                client.create_work_pool(WorkPoolCreate(name=name, type=TYPE, description=description))
                continue
            if pool.type != TYPE:
                raise NacreError(
                    f"pool {name} is of type {pool.type}, so that workers would run what the server says; delete it "
                    f"(prefect work-pool delete {name}) and register again: nacre deploy"
                )
            if make and pool.base_job_template:
                client.update_work_pool(name, WorkPoolUpdate(base_job_template={}))


def _make_folders(deployments: Mapping[str, Deployment]) -> None:
    """Make the folders below the home from which flow runs may read and into which they may write.

    A folder that is missing from a mount that is read-only is left to whoever fills the mount.
    """
    home = home_here()
    make_private(home)
    for folder in folders_of(deployments):
        try:
            make_private(home / folder)
        except OSError as fault:
            if fault.errno != errno.EROFS:
                raise


@contextmanager
def _answering(url: str) -> Iterator[None]:
    """Say in a sentence that a server does not answer."""
    try:
        yield
    except Exception as fault:
        if not type(fault).__module__.startswith("httpx"):  # the errors of Prefect's own client, by the name it has
            raise
        sentence = f"no Prefect server answers at {url} ({type(fault).__name__})"
        raise NacreError(f"{sentence}; start it, or correct PREFECT_API_URL; nothing was registered") from None
