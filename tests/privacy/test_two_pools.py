"""Who reaches the Prefect server, with its credential: they run no command beside the rows, and choose no path there.

A real server, and the real worker that reads data. Whatever the server lets its callers write is written here.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dpmodels.errors import NacreError
from flows.with_prefect.deploy import deploy, work_here
from flows.with_prefect.execute import Order
from tests.kit.api import prefect_api_server, wait_until
from tests.kit.site import ROOT, Site

pytestmark = pytest.mark.processes

AD_HOC, NIGHTLY = "synthesize-table/ad-hoc", "synthesize-night/nightly"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with prefect_api_server(tmp_path_factory.mktemp("server")) as api:
        site = Site(tmp_path_factory.mktemp("site"), api)
        site.open()
        api.ask("variables/", {"name": "where", "value": "/etc/passwd"})
        site.start_worker()
        try:
            yield site
        finally:
            site.close()


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """Return the file that an attacker's command would make."""
    return tmp_path / "canary"


def honest(site: Site, out: str = "out", **changes: Any) -> dict[str, Any]:
    """Return parameters that the operator's file allows."""
    asked = site.config(out, data=str(site.folder / "clinic.parquet"), **changes)
    return {"config": {name: asked[name] for name in ("data", "schema", "out", "privacy")} | changes}


def changed(site: Site, path: str, value: Any) -> dict[str, Any]:
    """Return honest parameters but for one."""
    parameters = honest(site)
    where = parameters
    *above, last = path.split(".")
    for key in above:
        where = where.setdefault(key, {})
    where[last] = value
    return parameters


def refusal(site: Site, flow_run: str) -> str:
    """Wait until a flow run failed; return what it says, which is what the worker's log says too."""
    message = str(site.wait_for(flow_run, "FAILED", 90)["state"]["message"])
    assert message.startswith("refused by the worker: ") and "\n" not in message
    sentence = message.removeprefix("refused by the worker: ")
    assert f"flow run {flow_run} was refused: {sentence}" in site.log().read_text()
    return sentence


def patched(site: Site, deployment: str, **said: Any) -> Callable[[], None]:
    """Write into a deployment, and return how to write it back."""
    found = site.api.get(f"deployments/name/{deployment}")
    site.api.ask(f"deployments/{found['id']}", said, "PATCH")
    return lambda: site.api.ask(f"deployments/{found['id']}", {name: found[name] for name in said}, "PATCH")


@pytest.mark.parametrize("field", ["command", "env", "working_dir", "image"])
@pytest.mark.nightly_if("working_dir", "image")  # beside a command and an environment
def test_job_variables_of_a_flow_run_are_refused(site: Site, canary: Path, field: str) -> None:
    said = {"command": f"touch {canary}", "env": {"PATH": "/x"}, "working_dir": "/tmp", "image": "evil"}[field]
    flow_run = site.ask_with(AD_HOC, parameters=honest(site), job_variables={field: said})
    assert refusal(site, flow_run).startswith("flow_run.job_variables must be empty")
    assert not canary.exists()


@pytest.mark.parametrize("field", ["pull_steps", "entrypoint", "path", "job_variables"])
def test_what_a_deployment_says_of_how_to_run_it_is_refused(site: Site, canary: Path, field: str) -> None:
    (canary.parent / "evil.py").write_text(f"open({str(canary)!r}, 'w')\ndef flow(): pass\n")
    step = {"prefect.deployments.steps.run_shell_script": {"script": f"touch {canary}"}}
    said: dict[str, Any] = {
        "pull_steps": [step],
        "entrypoint": f"{canary.parent}/evil.py:flow",
        "path": str(canary.parent),
        "job_variables": {"command": f"touch {canary}"},
    }
    undo = patched(site, AD_HOC, **{field: said[field]})
    try:
        assert refusal(site, site.ask_for(AD_HOC, **honest(site))).startswith(f"deployment.{field} ")
    finally:
        undo()
    assert not canary.exists()


def test_a_template_of_the_pool_is_refused(site: Site, canary: Path) -> None:
    job = {"command": f"touch {canary}", "env": {}, "name": "evil"}
    template = {"job_configuration": job, "variables": {"type": "object", "properties": {"x": {}}}}
    site.api.ask("work_pools/nacre-cpu", {"base_job_template": template}, "PATCH")
    try:
        assert refusal(site, site.ask_for(AD_HOC, **honest(site))).startswith("work_pool.base_job_template ")
    finally:
        site.api.ask("work_pools/nacre-cpu", {"base_job_template": {}}, "PATCH")
    assert not canary.exists()


@pytest.mark.parametrize(("flow", "name"), [("evil", "ad-hoc"), ("synthesize-table", "another")])
def test_a_deployment_that_the_file_does_not_have_is_refused(site: Site, canary: Path, flow: str, name: str) -> None:
    made = site.api.ask("flows/", {"name": flow})["id"]
    step = {"prefect.deployments.steps.run_shell_script": {"script": f"touch {canary}"}}
    said = {
        "flow_id": made,
        "name": name,
        "work_pool_name": "nacre-cpu",
        "pull_steps": [step],
        "entrypoint": "evil:flow",
    }
    deployment = site.api.ask("deployments/", said)
    asked = {"state": {"type": "SCHEDULED"}}
    flow_run = site.api.ask(f"deployments/{deployment['id']}/create_flow_run", asked)["id"]
    assert refusal(site, flow_run) == f"deployment {flow}/{name} is not in the operator's file"
    assert not canary.exists()


def test_a_pool_that_prefects_own_workers_would_serve_is_refused(site: Site, tmp_path: Path) -> None:
    from prefect.settings import PREFECT_API_URL, temporary_settings

    site.api.ask("work_pools/", {"name": "old", "type": "process"})
    (tmp_path / "mine.yaml").write_text(site.file.read_text().replace("nacre-cpu", "old"))
    with temporary_settings({PREFECT_API_URL: site.api.url}):
        for hand_over in (deploy, lambda file: work_here(file, "old")):
            with pytest.raises(NacreError, match="pool old is of type process"):
                hand_over(tmp_path / "mine.yaml")


def test_another_deployment_of_the_same_name_is_refused_too(site: Site, canary: Path) -> None:
    found = site.api.get(f"deployments/name/{NIGHTLY}")
    site.api.ask(f"deployments/{found['id']}", None, "DELETE")
    said = {"flow_id": found["flow_id"], "name": "nightly", "work_pool_name": "nacre-cpu", "entrypoint": "evil:flow"}
    site.api.ask("deployments/", said)
    try:
        assert refusal(site, site.ask_for(NIGHTLY)).startswith("deployment.entrypoint is another")
    finally:
        site.deploy()


OUTSIDE: list[tuple[str, Any]] = [
    ("config.data", "/etc/passwd"),
    ("config.data", "{folder}/../../etc/passwd"),
    ("config.data", "{folder}/link.parquet"),
    ("config.data", "{folder}/linked"),
    ("config.data", "{folder}/*.parquet"),
    ("config.data", "s3://bucket/x?endpoint_override=evil"),
    ("config.data", "postgresql://evil/x"),
    ("config.schema", "/proc/self/environ"),
    ("config.out", "{folder}/day-{{night}}"),
    ("config.out", "file:///srv"),
    ("config.query", "copy t to '/tmp/x'"),
    ("config.privacy.account", "payroll"),
    ("config.privacy.target_epsilon", 5),
    ("config.privacy.target_epsilon", "0.5"),
    ("config.privacy.allow_large_delta", True),
    ("config.runtime.home", "/tmp/elsewhere"),
    ("config.runtime.ledger", "postgresql://evil/x"),
    ("config.runtime.dask", "tcp://evil:8786"),
    ("config.runtime.signing_key", "/etc/nacre/sign.pem"),
    ("config.runtime.device", "cuda"),
    ("config.model.training", {"steps": 5, "network": {"hidden_dim": 10**9}}),
    ("config.data", {"__prefect_kind": "workspace_variable", "variable_name": "where"}),
    ("config.parents", {"__prefect_kind": "json", "value": '"/etc/passwd"'}),
]


def test_parameters_outside_of_the_file_are_refused(site: Site) -> None:
    """All of them are asked for at once, since the worker looks once in a second."""
    (site.folder / "linked").mkdir()
    for link in (site.folder / "link.parquet", site.folder / "linked" / "rows.parquet"):
        link.symlink_to("/etc/passwd")
    # as an automation, or somebody who writes into the database of the server, would: past what the form checks
    undo = patched(site, AD_HOC, enforce_parameter_schema=False)
    try:
        flow_runs = [
            site.ask_for(AD_HOC, **changed(site, path, v.format(folder=site.folder) if isinstance(v, str) else v))
            for path, v in OUTSIDE
        ]
    finally:
        undo()
    said = [refusal(site, flow_run) for flow_run in flow_runs]
    wrong = [(*one, s) for one, s in zip(OUTSIDE, said, strict=True) if not s.startswith(one[0]) or "passwd" in s]
    assert wrong == []
    assert len(site.ledger.entries()) == 1  # the account that the operator opened


def test_defaults_of_the_servers_copy_are_not_believed(site: Site) -> None:
    undo = patched(site, NIGHTLY, parameters={"config": site.config("evil", data="/etc/passwd")})
    try:
        flow_run = site.ask_for(NIGHTLY)
    finally:
        undo()
    assert refusal(site, flow_run).startswith("config.")


@pytest.fixture
def pickle_bomb(canary: Path) -> dict[str, Any]:
    """Return what a state says of a result in a file that runs a command when it is loaded."""
    from prefect._internal.result_records import ResultRecord, ResultRecordMetadata
    from prefect.serializers import PickleSerializer

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {canary}",)

    place = canary.parent / "result"
    metadata = ResultRecordMetadata(storage_key=str(place), serializer=PickleSerializer())
    place.write_bytes(ResultRecord(result=Bomb(), metadata=metadata).serialize())
    return json.loads(metadata.model_dump_json(serialize_as_any=True))


def test_a_result_that_a_state_names_is_not_loaded(site: Site, canary: Path, pickle_bomb: dict[str, Any]) -> None:
    # the state is changed after the worker's look: the server answers Running with this Completed
    flow_id = site.api.get(f"deployments/name/{AD_HOC}")["flow_id"]
    made = site.api.ask("flow_runs/", {"flow_id": flow_id, "parameters": {}})["id"]
    state = {"type": "COMPLETED", "name": "Completed", "data": pickle_bomb}
    site.api.ask(f"flow_runs/{made}/set_state", {"state": state, "force": True})
    order = Order(flow_run=made, flow="flows.table.synthesize_table", parameters=honest(site))
    words = [sys.executable, "-m", "flows.with_prefect.execute"]
    done = subprocess.run(
        words, input=order.model_dump_json().encode(), env=site.environment(site.home), cwd=ROOT, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert not canary.exists()


@pytest.mark.nightly  # what a worker of the pool that trains refuses is held beside it
def test_a_cancellation_ends_our_process_and_no_other_and_the_worker_goes_on(site: Site) -> None:
    asked = changed(site, "config.model.training.steps", 100_000)
    asked["config"]["privacy"]["target_epsilon"] = (
        0.25  # another plan than that of the run after it, should it be charged
    )
    flow_run = site.ask_with(AD_HOC, parameters=asked, name="\x1b[2Jgone")
    site.wait_for(flow_run, "RUNNING")
    wait_until(lambda: "Beginning flow run '?[2Jgone'" in site.log().read_text(), 60)
    (worker,) = site.workers
    (process,) = psutil.Process(worker.pid).children()
    with subprocess.Popen(["sleep", "600"]) as victim:
        try:
            site.api.ask(f"flow_runs/{flow_run}", {"infrastructure_pid": f"localhost:{victim.pid}"}, "PATCH")
            site.api.ask(f"flow_runs/{flow_run}/set_state", {"state": {"type": "CANCELLING"}, "force": True})
            wait_until(lambda: site.api.get(f"flow_runs/{flow_run}")["state_type"] == "CANCELLED", 60)
            assert not process.is_running() and victim.poll() is None
        finally:
            victim.kill()
    assert worker.poll() is None
    done = site.ask_for(AD_HOC, **honest(site, "served"))
    site.wait_for(done)
    assert (site.folder / "served" / "manifest.json").is_file()
