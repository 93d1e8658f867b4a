"""Register the deployments with a Prefect server, or serve them all on one machine."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dpmodels.errors import InvalidArgument, NacreError, Unsuitable
from dpmodels.files import read_at_most
from dpmodels.limits import LARGEST_YAML
from dpmodels.plain_yaml import read_yaml
from flows.with_prefect.automations import register
from flows.with_prefect.configured import check_access

SHIPPED = Path(__file__).parents[2] / "deployments" / "prefect.yaml"
POOLS = {
    "nacre-cpu": "may mount the sensitive zone",
    "nacre-gpu": "trains and samples from sealed releases; mounts the released zone only",
}


def deploy(file: Path, automations: bool = False, notify: str = "", aside: bool = False) -> list[str]:
    """Make the work pools that are missing and register every deployment of a file; return the automations made.

    With ``aside`` what Prefect says goes to standard error.

    Raises:
        NacreError: no server is configured, or Prefect refuses the file.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.exceptions import ObjectNotFound
    from prefect.settings import get_current_settings

    if not (url := get_current_settings().api.url):
        raise NacreError("deploying needs a Prefect server: set PREFECT_API_URL, or serve on this machine: nacre serve")
    specs = read_deployments(file)
    check_access(url)
    try:
        with get_client(sync_client=True) as client:
            for name, description in POOLS.items():
                try:
                    client.read_work_pool(name)
                except ObjectNotFound:
                    client.create_work_pool(WorkPoolCreate(name=name, type="process", description=description))
    except Exception as fault:
        if not type(fault).__module__.startswith("httpx"):  # the errors of Prefect's own client, by the name it has
            raise
        said = f"no Prefect server answers at {url} ({type(fault).__name__})"
        raise NacreError(f"{said}; start it, or correct PREFECT_API_URL; nothing was registered") from None
    words = ["--no-prompt", "deploy", "--all", "--prefect-file", str(file)]
    command, out = [sys.executable, "-m", "prefect", *words], 2 if aside else None
    done = subprocess.run(command, cwd=file.parent, stdin=subprocess.DEVNULL, stdout=out)
    if done.returncode:
        raise NacreError(f"Prefect refused {file}; it says above why")
    return register(specs, notify) if automations or notify else []


def serve_here(file: Path, home: Path, port: int) -> None:
    """Run a server with its UI and a file's deployments in this process and its children, until it is stopped."""
    from flows.with_prefect.server import PrefectServer

    os.environ["NACRE_HOME"] = str(home.absolute())
    specs = read_deployments(file)
    with PrefectServer(home, port=port) as server:
        server.wait()
        from prefect import serve

        print(f"serving {len(specs)} deployments at {server.url.removesuffix('/api')}; schedules are as you left them")
        print(f"`nacre ui --home {home}` opens it, and says which password it asks for")
        serve(*[_served(spec) for spec in specs], pause_on_shutdown=False)


def read_deployments(file: Path) -> list[dict[str, Any]]:
    """Read a file of deployments and check every parameter against the flow that takes it.

    Raises:
        InvalidArgument: the file cannot be read, or a parameter does not fit.
    """
    from prefect.exceptions import ParameterTypeError
    from prefect.flows import load_flow_from_entrypoint

    try:
        specs: list[dict[str, Any]] = read_yaml(read_at_most(file, LARGEST_YAML).decode())["deployments"]
    except (OSError, KeyError, TypeError, ValueError):
        raise InvalidArgument("file", file, "be a readable list of deployments") from None
    for spec in specs:
        parameters = spec.get("parameters", {})
        if not parameters:
            continue  # the form asks for them, and checks them
        try:
            load_flow_from_entrypoint(spec["entrypoint"]).validate_parameters(parameters)
        except (ParameterTypeError, ValueError, TypeError) as error:
            raise Unsuitable(f"{file}: the parameters of {spec['name']} do not fit their flow: {error}") from None
    return specs


def _served(spec: dict[str, Any]) -> Any:
    """Make the deployment that Prefect's runner serves from one entry of the file."""
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.client.schemas.schedules import CronSchedule
    from prefect.flows import load_flow_from_entrypoint
    from prefect.types.entrypoint import EntrypointType

    schedules = [
        DeploymentScheduleCreate(
            schedule=CronSchedule(cron=one["cron"], timezone=one["timezone"]), active=one["active"], slug=one["slug"]
        )
        for one in spec.get("schedules", [])
    ]
    return load_flow_from_entrypoint(spec["entrypoint"]).to_deployment(
        spec["name"],
        schedules=schedules,
        parameters=spec.get("parameters"),
        description=spec["description"],
        tags=spec["tags"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
