"""Deployments on a real Prefect server and real workers: scheduled, killed, approved, and trained without the data."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from benchmarks import postgres
from dpmodels.errors import NacreError
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from flows.description import describe_run
from flows.with_prefect.credential import credential
from flows.with_prefect.deploy import SHIPPED
from flows.with_prefect.server import prefect_server
from flows.with_prefect.worker import name_of
from tasks.accounts import sign_run
from tasks.store import Run
from tests.flows.api import Api, prefect_api_server, wait_until
from tests.nacre.wheels import unpacked_wheel, write_project
from tests.support import charges, write_clinic, write_key

ROOT = Path(__file__).parents[2]
NIGHTS = [datetime.now(UTC).date() - timedelta(days=days) for days in (3, 1, 0)]  # midnight may come meanwhile
EARLIER = NIGHTS[0]
CAP = PrivacyBudget(epsilon=2, delta=1e-5)
WAIT = 240  # seconds; a flow run imports for ten of them on a free core


@dataclass
class Site:
    """A folder with data, the home of its workers, and the server they ask for work."""

    folder: Path
    api: Api
    ledger_url: str = ""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.ledger_url or self.home / "ledger.sqlite")

    def environment(self, home: Path) -> dict[str, str]:
        own = {"PREFECT_API_URL": self.api.url, "PREFECT_HOME": str(self.folder / "prefect"), "NACRE_HOME": str(home)}
        own |= {"PREFECT_WORKER_QUERY_SECONDS": "1", "PYTHONPATH": str(ROOT), "DO_NOT_TRACK": "1"}
        return {**os.environ, **own} | ({"NACRE_LEDGER": self.ledger_url} if self.ledger_url else {})

    def config(self, out: str, **changes: Any) -> dict[str, Any]:
        """Return the parameters of a quick synthesis; ``{night}`` is the flow's to fill in."""
        model = yaml.safe_load((self.folder / "config.yaml").read_text())["model"]
        model["training"]["steps"] = changes.pop("steps", 6)
        privacy = {"target_epsilon": 0.5, "delta": 1e-5, "account": "clinic"}
        data = changes.pop("data", str(self.folder / "{night}.parquet"))
        schema = str(self.folder / "clinic.yaml")
        own = {"data": data, "schema": schema, "out": str(self.folder / out), "privacy": privacy, "model": model}
        return own | changes

    def deploy(self) -> None:
        """Register the shipped deployments, with this site's paths in the place of the shipped ones."""
        content = yaml.safe_load(SHIPPED.read_text())
        for one in content["deployments"]:
            if one["name"] == "nightly":
                one["parameters"]["config"] = self.config("night-{night}")
        file = self.folder / "prefect.yaml"
        file.write_text(yaml.safe_dump(content))
        words = [sys.executable, "-m", "nacre", "deploy", "--file", str(file)]
        done = subprocess.run(words, env=self.environment(self.home), cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def start_worker(self, pool: str, home: Path) -> subprocess.Popen[bytes]:
        words = [
            sys.executable,
            "-m",
            "prefect",
            "worker",
            "start",
            "--pool",
            pool,
            "--name",
            f"{pool}-{len(self.workers)}",
        ]
        log = open(self.folder / f"worker-{len(self.workers)}.log", "wb")  # noqa: SIM115
        with log:
            worker = subprocess.Popen(words, env=self.environment(home), cwd=ROOT, stdout=log, stderr=log)
        self.workers.append(worker)
        return worker

    def ask_for(self, deployment: str, **parameters: Any) -> str:
        found = self.api.get(f"deployments/name/{deployment}")
        wanted = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
        made: str = self.api.ask(f"deployments/{found['id']}/create_flow_run", wanted)["id"]
        return made

    def wait_for(self, flow_run: str, state: str = "COMPLETED") -> dict[str, Any]:
        def there() -> bool:
            now = self.api.get(f"flow_runs/{flow_run}")
            assert now["state_type"] not in {"FAILED", "CRASHED"} - {state}, now["state"]["message"]
            return bool(now["state_type"] == state)

        wait_until(there, WAIT)
        found: dict[str, Any] = self.api.get(f"flow_runs/{flow_run}")
        return found

    def kinds(self, run: str) -> list[str]:
        """Return the kinds of the ledger's entries about a run."""
        entries = self.ledger.entries()
        paid = {entry.charge for entry in entries if entry.run == run}
        return [entry.kind for entry in entries if entry.charge in paid]


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all its children at once, as a power cut does."""
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for member in family:
        member.send_signal(signal.SIGKILL)
    process.wait()
    psutil.wait_procs(family, 20)


@contextmanager
def site_at(folder: Path, api: Api, ledger_url: str = "") -> Iterator[Site]:
    write_clinic(folder, rows=60)
    for night in NIGHTS:
        os.link(folder / "clinic.parquet", folder / f"{night}.parquet")
    site = Site(folder, api, ledger_url)
    site.home.mkdir()
    site.ledger.open_account("clinic", dataset="clinic", budget_cap=CAP)
    try:
        site.deploy()
        yield site
    finally:
        for worker in site.workers:
            if worker.poll() is None:
                kill(worker)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Make a site whose server and ledger are both on SQLite, or both on PostgreSQL."""
    folder = tmp_path_factory.mktemp("site")
    if request.param == "sqlite":
        with site_at(folder, request.getfixturevalue("prefect_api")) as made:
            yield made
        return
    server = request.getfixturevalue("postgres_server")
    orchestration, ledger = (postgres.new_database(server, name) for name in ("orchestration", "production"))
    database = orchestration.replace("postgresql:", "postgresql+asyncpg:")
    (folder / "server").mkdir()
    with (
        prefect_api_server(folder / "server", PREFECT_SERVER_DATABASE_CONNECTION_URL=database) as api,
        site_at(folder, api, ledger) as made,
    ):
        yield made


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_night_runs_on_schedule_and_another_survives_its_worker(site: Site) -> None:
    worker = site.start_worker("nacre-cpu", site.home)

    # A night whose worker dies while it trains: started again it goes on, and is charged once.
    killed = f"clinic-{EARLIER}"
    again = {"config": site.config("night-{night}", steps=3000), "partitions": "sequential", "night": str(EARLIER)}
    dead = site.ask_for("synthesize-night/nightly", **again)
    wait_until(lambda: (site.home / "control" / killed / "stages" / "sanitize.json").exists(), WAIT)
    kill(worker)
    assert not (site.folder / f"night-{EARLIER}").exists()
    assert site.kinds(killed) == ["reserve", "draw", "seal", "commit"]
    assert site.api.get(f"flow_runs/{dead}")["state_type"] == "RUNNING"  # nobody is left to say otherwise
    site.start_worker("nacre-cpu", site.home)
    restarted = site.ask_for("synthesize-night/nightly", **again)

    # Meanwhile a schedule is activated, for the next minute.
    nightly = site.api.get("deployments/name/synthesize-night/nightly")
    (schedule,) = nightly["schedules"]
    assert schedule["active"] is False
    soon = datetime.now(UTC) + timedelta(seconds=80)
    cron = {"cron": f"{soon.minute} {soon.hour} * * *", "timezone": "UTC"}
    site.api.ask(f"deployments/{nightly['id']}/schedules/{schedule['id']}", {"active": True, "schedule": cron}, "PATCH")

    site.wait_for(restarted)
    assert site.kinds(killed) == ["reserve", "draw", "seal", "commit"]
    assert verify_hand_off(site.folder / f"night-{EARLIER}").faults == []

    wanted = {"deployments": {"id": {"any_": [nightly["id"]]}}, "flow_runs": {"tags": {"all_": ["auto-scheduled"]}}}
    first = min(site.api.ask("flow_runs/filter", wanted), key=lambda run: str(run["expected_start_time"]))
    ran = site.wait_for(first["id"])
    assert ran["expected_start_time"][:16] == f"{soon:%Y-%m-%dT%H:%M}"
    night = soon.date() - timedelta(days=1)
    assert site.kinds(f"clinic-{night}") == ["reserve", "draw", "seal", "commit"]
    assert verify_hand_off(site.folder / f"night-{night}").faults == [] and site.ledger.verify() == []
    facts = {row["what"]: row["value"] for row in json.loads(site.api.artifacts("plan-clinic")[-1]["data"])}
    assert "accepted" in facts["answer"] and facts["officer"] == "nobody must sign"
    assert facts["partitions"].startswith("sequential: runs on clinic add up")
    assert json.loads(site.api.artifacts("budget-clinic")[-1]["data"])[0]["charges"] == "2"
    assert site.api.artifacts("burn-down-clinic")[-1]["data"].startswith("data:image/svg+xml;base64,")
    reports = " ".join(one["data"] for one in site.api.artifacts("report-clinic"))
    assert all(f"night-{day}/report.html" in reports for day in (night, EARLIER))
    assert site.api.artifacts("progress-train")[-1]["data"] == 100


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_approved_run_is_trained_where_the_data_cannot_be_seen(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(worker.poll() is None for worker in site.workers):
        site.start_worker("nacre-cpu", site.home)
    data = str(site.folder / "clinic.parquet")
    key, public = write_key(site.folder / "dana.pem")
    site.ledger.change_cap("clinic", reason="the board asked for it", officer=Officer.read("Dana", public))
    asked = site.config("approved", data=data)
    flow_run = site.ask_for("synthesize-table/ad-hoc", config=asked, train_on="nacre-gpu")
    run = name_of(flow_run)
    site.wait_for(flow_run, "PAUSED")
    facts = {row["what"]: row["value"] for row in json.loads(site.api.artifacts("plan-clinic")[-1]["data"])}
    assert describe_run(Run.find(site.home, run, site.ledger_url)).items() <= facts.items()
    assert "in the pool nacre-gpu, which never sees the data" in facts["training"]
    assert facts["officer"] == "Dana must sign before anything is charged"
    sign_run(Run.find(site.home, run, site.ledger_url), key)
    assert site.kinds(run) == []  # suspended before anything is read or charged
    site.api.resume_when_paused(site.api.get(f"flow_runs/{flow_run}")["name"], "")  # empty: what counts is
    # the signature, which lies where the run is
    wait_until(lambda: (site.home / "control" / run / "stages" / "sanitize.json").exists(), WAIT)

    # The other pool mounts the released zone only; here, whatever is sensitive is moved out of its sight.
    monkeypatch.setenv("PREFECT_API_URL", site.api.url)
    monkeypatch.setenv("NACRE_HOME", str(site.home))
    if site.ledger_url:
        monkeypatch.setenv("NACRE_LEDGER", site.ledger_url)
    from flows.generate import generate
    from flows.resample import resample
    from flows.validate import validate_run

    refused = r"can read .*sensitive.*clinic\.parquet; the pool nacre-gpu must not mount it"
    with prefect_server(site.home), pytest.raises(NacreError, match=refused):
        generate(run)
    hidden = site.folder / "hidden"
    hidden.mkdir()
    (site.home / "sensitive").rename(hidden / "sensitive")
    Path(data).rename(hidden / "clinic.parquet")
    elsewhere = site.folder / "gpu"
    elsewhere.mkdir()
    for zone in ("released", "control"):
        (elsewhere / zone).symlink_to(site.home / zone)
    site.start_worker("nacre-gpu", elsewhere)
    site.wait_for(flow_run)
    (blind,) = [json.loads(one["data"]) for one in site.api.artifacts("blind-clinic")][-1:]
    assert {row["path"]: row["readable"] for row in blind} == {
        str(elsewhere / "sensitive"): "no",
        data: "no",
        str(elsewhere / "control" / run): "yes, and written: mount it read-only",  # root may write everywhere
    }
    manifest = json.loads((site.folder / "approved" / "manifest.json").read_text())
    assert manifest["approved"]["officer"] == "Dana" and site.kinds(run) == ["reserve", "draw", "seal", "commit"]

    site.ledger.change_cap("clinic", reason="the other tests' nights", officer=None)

    # What is free stays free, without the sensitive zone: sample again, and validate.
    before = site.ledger.entries()
    with prefect_server(site.home):
        resample(run, site.folder / "week-{week}", rows=40)
        validate_run(run)
    (week,) = site.folder.glob("week-*")
    assert verify_hand_off(week).faults == [] and site.ledger.entries() == before
    tables = [
        (site.folder / name / "synthetic" / "part-00000.parquet").read_bytes() for name in ("approved", week.name)
    ]
    assert tables[0] != tables[1] and (week / "report.html").exists()
    (site.folder / "approved" / "report.html").write_text("another")
    with prefect_server(site.home), pytest.raises(NacreError, match=r"report\.html"):
        validate_run(run)


@pytest.mark.slow
def test_one_process_serves_everything_and_takes_its_server_along(tmp_path: Path) -> None:
    port = postgres.free_port()
    words = [sys.executable, "-m", "nacre", "serve", "--home", str(tmp_path / "home"), f"--port={port}"]
    environment = {**os.environ, "PYTHONPATH": str(unpacked_wheel(tmp_path))}
    project = write_project(tmp_path / "project")
    with open(tmp_path / "serve.log", "wb") as log:
        serving = subprocess.Popen(words, cwd=project, env=environment, stdout=log, stderr=log)
    api = Api(f"http://127.0.0.1:{port}/api", credential(tmp_path / "home"))
    try:
        wait_until(lambda: "are being served" in (tmp_path / "serve.log").read_text(), WAIT)
        found = api.ask("deployments/filter", {"sort": "NAME_ASC"})
        assert [one["name"] for one in found] == [
            "ad-hoc",
            "documents",
            "federation",
            "gpu",
            "nightly",
            "validate",
            "weekly",
        ]
        assert [schedule["active"] for one in found for schedule in one["schedules"]] == [False, False]
        form = next(one for one in found if one["name"] == "ad-hoc")["parameter_openapi_schema"]
        assert {"PrivacyConfig", "RuntimeConfig"} <= set(form["definitions"])
        with pytest.raises(urllib.error.HTTPError, match=r"409|422"):  # the form is checked by the server
            api.ask(f"deployments/{found[0]['id']}/create_flow_run", {"parameters": {"config": {"rows": "many"}}})
        site = Site(tmp_path, api)
        write_clinic(tmp_path, rows=60)
        site.ledger.open_account("clinic", dataset="clinic", budget_cap=CAP)
        asked = site.config("out", data=str(tmp_path / "clinic.parquet"))
        refused = site.ask_for("synthesize-table/ad-hoc", config=asked, train_on="nacre-gpu")
        ended = site.wait_for(refused, "FAILED")["state"]["message"]
        assert "generate/gpu is served on this machine" in ended and "nothing was charged" in ended
        assert charges(tmp_path / "home") == []  # no other pool could have gone on with it

        its_own = {"logs": {"flow_run_id": {"any_": [refused]}}}

        def told() -> bool:
            return "is served on this machine" in str(api.ask("logs/filter", its_own))

        wait_until(told, WAIT)
        assert "Flow run" in (tmp_path / "serve.log").read_text()
        family = psutil.Process(serving.pid).children(recursive=True)
        serving.terminate()
        serving.wait(60)
    finally:
        if serving.poll() is None:
            kill(serving)
    assert family and psutil.wait_procs(family, 20)[1] == []
