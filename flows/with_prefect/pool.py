"""The worker of a pool: it asks a Prefect server what is due, and believes nothing else.

Whoever reaches the server's API may write commands, entry points, images, storage and environments into deployments,
flow runs and work pools. Prefect's own workers and runners carry them out. This one reads the id of a flow run, its
deployment's name and its parameters; it runs what the operator's file calls by that name, as a process that it
starts with words of its own. So the server is a clock and a display.
"""

import logging
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from dpmodels.errors import NacreError, ParameterRefused
from flows.settings import home_here
from flows.with_prefect.allowance import shown
from flows.with_prefect.execute import Order
from flows.with_prefect.operators import PACKAGE, Deployment
from tasks.engine.progress import Terminal
from tasks.run.stopping import pause, stopping

LOG = logging.getLogger("nacre.worker")
AHEAD = timedelta(seconds=10)
"""How long before it is due a flow run gets its process, which needs as long to import what it runs."""
BEAT, GRACE, MOST_SILENCE = 30.0, 20.0, 60.0
_NOT_OURS = {
    "flow_run": ("job_variables", "infrastructure_document_id"),
    "deployment": ("job_variables", "pull_steps", "path", "storage_document_id", "infrastructure_document_id"),
    "work_pool": ("base_job_template",),
}
"""What a server may hold that would say how, where or with what to run; we write none of it, and use none of it."""


class Server:
    """The few things that are asked of a server, as plain JSON, of which only named fields are looked at."""

    def __init__(self, client: Any, pool: str) -> None:
        self._client, self.pool = client, pool

    def due(self) -> list[dict[str, Any]]:
        """Return the flow runs of the pool that are due."""
        before = (datetime.now(UTC) + AHEAD).isoformat()
        runs = self._ask("POST", f"/work_pools/{self.pool}/get_scheduled_flow_runs", {"scheduled_before": before})
        return [one["flow_run"] for one in runs]

    def beat(self, name: str) -> None:
        """Let the server know that this worker lives."""
        self._ask("POST", f"/work_pools/{self.pool}/workers/heartbeat", {"name": name})

    def work_pool(self) -> dict[str, Any]:
        """Return the pool."""
        return dict(self._ask("GET", f"/work_pools/{self.pool}"))

    def deployment(self, number: str) -> dict[str, Any]:
        """Return a deployment, with the name of its flow."""
        answer = self._ask("GET", f"/deployments/{number}")
        return {**answer, "flow": self._ask("GET", f"/flows/{answer['flow_id']}")["name"]}

    def states(self, flow_runs: list[str]) -> dict[str, str]:
        """Return the types of the states of flow runs."""
        runs = self._ask("POST", "/flow_runs/filter", {"flow_runs": {"id": {"any_": flow_runs}}}) if flow_runs else []
        return {one["id"]: one["state_type"] for one in runs}

    def set_state(self, flow_run: str, kind: str, message: str = "", force: bool = False) -> bool:
        """Propose a state; tell whether the server took it."""
        state = {"type": kind, "name": kind.capitalize(), "message": message}
        answer = self._ask("POST", f"/flow_runs/{flow_run}/set_state", {"state": state, "force": force})
        return bool(answer["status"] == "ACCEPT")

    def _ask(self, method: Any, path: Any, content: Any = None) -> Any:
        answer = self._client.request(method, path, **({} if content is None else {"json": content}))
        return answer.json() if answer.content else None


class PoolWorker:
    """Run what is due in a pool, each flow run in a process of its own, until it is told to stop.

    Args:
        deployments: of the operator's file, by the names that Prefect knows them by.
        server: what is asked when.
        limit: of flow runs at a time.
    """

    def __init__(self, deployments: Mapping[str, Deployment], server: Server, limit: int) -> None:
        self.deployments, self.server, self.limit = deployments, server, limit
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.name = f"nacre-{platform.node()}-{os.getpid()}"

    def run(self, seconds: float, is_over: Callable[[], bool], ends_with_server: bool = False) -> None:
        """Look again every few seconds, until ``is_over`` says that this worker is to stop.

        Raises:
            NacreError: the server has not answered for a minute, and this worker is to end with it.
        """
        beaten, heard = -BEAT, time.monotonic()
        try:
            while not is_over():
                try:
                    if time.monotonic() >= beaten + BEAT:
                        self.server.beat(self.name)
                        beaten = time.monotonic()
                    self.look()
                    heard = time.monotonic()
                except Exception as fault:  # a server that is restarted, or that says what nobody can read
                    LOG.warning("the server did not answer as it should (%s)", type(fault).__name__)
                    if ends_with_server and time.monotonic() > heard + MOST_SILENCE:
                        raise NacreError("the Prefect server no longer answers; start again") from None
                pause(seconds, is_over)
        finally:
            self.end()

    def look(self) -> None:
        """Start what is due, and end what was cancelled."""
        self._tidy()
        for flow_run in self.server.due():
            if len(self.processes) >= self.limit:
                return
            try:
                self._begin(flow_run)
            except Exception as fault:  # one flow run must not keep the others from running
                LOG.warning("flow run %s was left alone (%s)", shown(str(flow_run.get("id"))), type(fault).__name__)

    def _begin(self, flow_run: Mapping[str, Any]) -> None:
        number = str(flow_run["id"])
        if number in self.processes:
            return
        try:
            order = self._read(flow_run)
        except ParameterRefused as refusal:
            LOG.error("flow run %s was refused: %s", shown(number), refusal)
            self.server.set_state(number, "FAILED", f"refused by the worker: {refusal}", force=True)
            return
        if self.server.set_state(number, "PENDING"):
            self.processes[number] = _start(order)

    def _read(self, flow_run: Mapping[str, Any]) -> Order:
        """Return the order for a flow run; what is no flow run that we can read is refused as well."""
        try:
            return self.order(flow_run)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OSError, ArithmeticError) as fault:
            raise ParameterRefused("flow_run", f"cannot be read ({type(fault).__name__})") from None

    def order(self, flow_run: Mapping[str, Any]) -> Order:
        """Return what to run for a flow run: of the server its deployment's name and its parameters, no more.

        Raises:
            ParameterRefused: the file has no such deployment, the parameters are not allowed, or the server says how
                to run it.
        """
        if not flow_run.get("deployment_id"):
            raise ParameterRefused("deployment", "must be one of the operator's file; this flow run has none")
        deployment = self.server.deployment(str(flow_run["deployment_id"]))
        name = f"{deployment['flow']}/{deployment['name']}"
        mine = self.deployments.get(name)
        if mine is None:
            raise ParameterRefused("deployment", f"{shown(name)} is not in the operator's file")
        answers = {"flow_run": flow_run, "deployment": deployment, "work_pool": self.server.work_pool()}
        for what, fields in _NOT_OURS.items():
            for field in fields:
                if answers[what].get(field):
                    raise ParameterRefused(f"{what}.{field}", "must be empty: a server does not say how to run a flow")
        if str(deployment.get("entrypoint") or "").removeprefix("nacre.") != mine.entrypoint:
            raise ParameterRefused("deployment.entrypoint", "is another than in the operator's file")
        parameters = mine.permitted(flow_run.get("parameters") or {}, home_here())
        return Order(flow_run=flow_run["id"], flow=f"{PACKAGE}{mine.entrypoint}", parameters=parameters)

    def _tidy(self) -> None:
        """Forget processes that ended, and end those whose flow runs were cancelled: ours, by the handles we hold."""
        states = self.server.states(list(self.processes))
        for number, process in list(self.processes.items()):
            if process.poll() is not None:
                del self.processes[number]
                if process.returncode and states.get(number) in ("PENDING", "RUNNING"):
                    message = f"its process ended with {process.returncode}; started again it goes on"
                    self.server.set_state(number, "CRASHED", message, force=True)
            elif states.get(number) in ("CANCELLING", "CANCELLED"):
                _end([process])
                del self.processes[number]
                self.server.set_state(number, "CANCELLED", "cancelled; started again it goes on", force=True)

    def end(self) -> None:
        """End every process of this worker, and wait for it."""
        _end(list(self.processes.values()))
        self.processes.clear()


def work(
    deployments: Mapping[str, Deployment], pool: str, limit: int, ends_with_server: bool = False
) -> None:  # pragma: no cover - runs until it is stopped
    """Serve a pool of the server that Prefect is configured for, until this process is told to stop."""
    from prefect.client.orchestration import get_client
    from prefect.settings import get_current_settings

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING, handlers=[Terminal()])
    LOG.setLevel(logging.INFO)
    seconds = float(get_current_settings().worker.query_seconds)
    with get_client(sync_client=True) as client, stopping() as is_over:
        PoolWorker(deployments, Server(client, pool), limit).run(seconds, is_over, ends_with_server)


def _start(order: Order) -> "subprocess.Popen[bytes]":
    """Start the process of a flow run: our words, and the environment of this worker."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT__")}
    ours = str(Path(__file__).parents[__name__.count(".")])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [ours, environment.get("PYTHONPATH")]))
    # -P: modules come from the installation, and never from the folder that the worker was started in
    words = [sys.executable, "-P", "-m", f"{PACKAGE}flows.with_prefect.execute"]
    with TemporaryFile() as file:
        file.write(order.model_dump_json().encode())
        file.seek(0)
        return subprocess.Popen(words, env=environment, stdin=file, start_new_session=True)


def _end(processes: list["subprocess.Popen[bytes]"]) -> None:
    """End processes of ours politely, and after a while by force."""
    for process in processes:
        process.terminate()
    end = time.monotonic() + GRACE
    for process in processes:
        try:
            process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
