"""The shipped automations on a real Prefect server: they pause what spends, and find what died."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from dpmodels.errors import InvalidArgument
from flows.with_prefect import automations
from flows.with_prefect.operators import SHIPPED, read_deployments
from tests.kit.api import Api, wait_until
from tests.kit.errors import refused

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def deployed(prefect_api: Api, tmp_path_factory: pytest.TempPathFactory) -> Api:
    """Register what is shipped, with its automations; twice, since names must not add up."""
    environment = {**os.environ, "PREFECT_API_URL": prefect_api.url, "DO_NOT_TRACK": "1", "PYTHONPATH": str(ROOT)}
    environment["PREFECT_HOME"] = str(tmp_path_factory.mktemp("client"))
    for _ in range(2):
        words = [sys.executable, "-m", "nacre", "deploy", "--automations"]
        done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "automation nacre: pause synthesize-night/nightly when account visits is spent" in done.stdout
    return prefect_api


def said(api: Api, name: str, resource: str, *tags: str) -> None:
    """Have the server hear of an event, as a flow run tells it."""
    related = [{"prefect.resource.id": f"prefect.tag.{tag}", "prefect.resource.role": "tag"} for tag in tags]
    event = {"event": name, "resource": {"prefect.resource.id": resource}, "related": related}
    from datetime import UTC, datetime
    from uuid import uuid4

    api.ask("events", [event | {"id": str(uuid4()), "occurred": datetime.now(UTC).isoformat()}])


@pytest.mark.slow
def test_the_schedule_of_a_deployment_stops_when_its_account_is_spent_and_no_other_does(deployed: Api) -> None:
    names = [one["name"] for one in deployed.ask("automations/filter", {})]
    assert len(names) == len(set(names)) == 2  # the other deployments name no account, or have no schedule
    nightly = deployed.get("deployments/name/synthesize-night/nightly")
    assert nightly["paused"] is False
    said(deployed, automations.SPENT, "nacre.account.another")
    said(deployed, automations.SPENT, "nacre.account.visits")
    wait_until(lambda: deployed.get(f"deployments/{nightly['id']}")["paused"])
    assert not deployed.get("deployments/name/resample/weekly")["paused"]


@pytest.mark.slow
def test_a_flow_run_that_is_not_heard_of_is_marked_as_crashed(deployed: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    monkeypatch.setattr(automations, "SILENCE", timedelta(seconds=10))
    with temporary_settings({PREFECT_API_URL: deployed.url}), get_client(sync_client=True) as client:
        client.create_automation(automations.crashed().model_copy(update={"name": "quick"}))
        with refused(InvalidArgument, name="notify"):
            automations.register(list(read_deployments(SHIPPED).values()), "slack-webhook/absent")
    found = deployed.get("deployments/name/synthesize-table/ad-hoc")
    runs = []
    for number in range(2):
        made = deployed.ask("flow_runs/", {"name": f"run {number}", "flow_id": found["flow_id"]})["id"]
        deployed.ask(f"flow_runs/{made}/set_state", {"state": {"type": "RUNNING", "name": "Running"}, "force": True})
        runs.append(made)
    for made, tag in zip(runs, ("nacre", "another"), strict=True):
        said(deployed, "prefect.flow-run.heartbeat", f"prefect.flow-run.{made}", tag)
    wait_until(lambda: deployed.get(f"flow_runs/{runs[0]}")["state_type"] == "CRASHED")
    assert "charged once" in deployed.get(f"flow_runs/{runs[0]}")["state"]["message"]
    assert deployed.get(f"flow_runs/{runs[1]}")["state_type"] == "RUNNING"
