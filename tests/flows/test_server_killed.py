"""A server that is killed takes `nacre serve` along, and leaves no account's slot taken for ever."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
from pathlib import Path

import psutil
import pytest
import yaml

from benchmarks.postgres import free_port
from flows.with_prefect.credential import credential
from flows.with_prefect.operators import SHIPPED
from flows.with_prefect.server import PrefectServer
from flows.with_prefect.worker import alone_on
from tests.kit.api import Api, wait_until
from tests.kit.support import servers_of

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
HOLD = """
import time
from flows.with_prefect.worker import alone_on
with alone_on("clinic"):
    print("holds", flush=True)
    time.sleep(600)
"""


def taken(api: Api) -> int:
    """Return how many slots of the account's limit are taken."""
    (limit,) = api.ask("v2/concurrency_limits/filter", {})
    return int(limit["active_slots"])


def expire(leases: Path) -> None:
    """Let the minute pass in which the lease's holder did not renew it."""
    past = "2020-01-01T00:00:00+00:00"
    index = json.loads((leases / "expirations.json").read_text())
    assert len(index) == 1
    (leases / "expirations.json").write_text(json.dumps(dict.fromkeys(index, past)))
    (lease,) = leases.glob("*-*.json")
    lease.write_text(json.dumps({**json.loads(lease.read_text()), "expiration": past}))


@pytest.mark.slow
@pytest.mark.nightly  # beside one process that serves everything, in test_deployments.py
def test_a_killed_server_ends_serve_and_its_accounts_go_on(tmp_path: Path) -> None:
    home, port, file = tmp_path / "home", free_port(), tmp_path / "one.yaml"
    shipped = yaml.safe_load(SHIPPED.read_text())["deployments"]
    file.write_text(yaml.safe_dump({"deployments": [one for one in shipped if one["name"] == "validate"]}))
    words = ["serve", "--home", str(home), f"--port={port}", "--file", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with open(tmp_path / "serve.log", "w+b") as log:
        serving = subprocess.Popen([sys.executable, "-m", "nacre", *words], env=environment, stdout=log, stderr=log)
    told = (tmp_path / "serve.log").read_text
    api = Api(f"http://127.0.0.1:{port}/api")
    try:
        wait_until(lambda: "serving 1 deployments" in told() or serving.poll() is not None)
        api = Api(api.url, credential(home))
        access = {"PREFECT_API_URL": api.url, "PREFECT_API_AUTH_STRING": api.credential}
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLD], env={**environment, **access}, stdout=subprocess.PIPE, text=True
        )
        asked = [sys.executable, "-m", "prefect", "deployment", "run", "validate-run/validate", "--start-in", "1 hour"]
        done = subprocess.run(
            [*asked, "--param", "run=a-run"], env=environment | access, capture_output=True, text=True
        )
        assert done.returncode == 0 and "Created flow run" in done.stdout, done.stdout + done.stderr
        with holder:
            assert holder.stdout and holder.stdout.readline() == "holds\n"
            assert taken(api) == 1
            (server,) = servers_of(home)
            family = psutil.Process(serving.pid).children(recursive=True)
            os.kill(server, signal.SIGKILL)
            assert serving.wait(60) == 1, told()
            holder.kill()
    finally:
        serving.kill()
        serving.wait()
    assert psutil.wait_procs(family, 10)[1] == []
    assert told().splitlines()[-1].startswith("error: the Prefect server of this home ended"), told()
    assert "nacre ui --home" in told() and api.credential not in told()

    leases = home / "prefect" / "concurrency_leases"
    with PrefectServer(home, port=port) as again:
        again.wait()
        with pytest.raises(urllib.error.HTTPError, match="401"):  # a tab of the last server's UI may have sent it
            taken(api)
        api = Api(api.url, credential(home))
        assert taken(api) == 1  # its holder may live, and renew it
        expire(leases)
        wait_until(lambda: taken(api) == 0, 60)
        with alone_on("clinic"):
            assert taken(api) == 1
        assert taken(api) == 0
        (limit,) = api.ask("v2/concurrency_limits/filter", {})
        api.ask(f"v2/concurrency_limits/{limit['id']}", {"active_slots": 1}, "PATCH")  # its lease was lost
    with PrefectServer(home, port=port) as again:
        again.wait()
        assert taken(Api(api.url, credential(home))) == 0
        begun = time.monotonic()
        with alone_on("clinic"):
            assert time.monotonic() - begun < 10
