"""Deployments on a real Prefect server and real workers: scheduled, killed, approved, and trained without the data."""

import json
import os
import shutil
import subprocess
import sys
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from benchmarks import postgres
from dpmodels.errors import NacreError
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.approval import Officer
from flows.description import describe_run, plain
from flows.generate import CanRead, check_blind, generate
from flows.with_prefect.credential import credential
from flows.with_prefect.server import prefect_server
from flows.with_prefect.worker import name_of
from tasks.run.accounts import sign_run
from tasks.run.apart import STATUS, WAITING, is_alive
from tasks.run.store import Run
from tests.kit.api import Api, prefect_api_server, wait_until
from tests.kit.site import WAIT, Site, kill
from tests.kit.support import charges, write_clinic, write_key
from tests.kit.wheels import unpacked_wheel, write_project

pytestmark = pytest.mark.processes

NIGHTS = [datetime.now(UTC).date() - timedelta(days=days) for days in (3, 1, 0)]  # midnight may come meanwhile
EARLIER = NIGHTS[0]


@contextmanager
def site_at(folder: Path, api: Api, ledger_url: str = "") -> Iterator[Site]:
    site = Site(folder, api, ledger_url)
    try:
        site.open()
        for night in NIGHTS:
            shutil.copy(folder / "clinic.parquet", folder / f"{night}.parquet")
        yield site
    finally:
        site.close()


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
@pytest.mark.nightly  # schedules and automations are held in test_automations.py and test_production.py, too
def test_a_night_runs_on_schedule_and_another_survives_its_worker(site: Site) -> None:
    worker = site.start_worker()

    # A night whose worker dies while it trains: started again it goes on, and is charged once.
    killed = f"clinic-{EARLIER}"
    long = {"model": {"training": {"steps": 3000}}}
    again = {"config": long, "partitions": "sequential", "night": str(EARLIER)}
    dead = site.ask_for("synthesize-night/nightly", **again)
    wait_until(lambda: (site.home / "control" / killed / "stages" / "sanitize.json").exists(), WAIT)
    kill(worker)
    assert not (site.folder / f"night-{EARLIER}").exists()
    assert site.kinds(killed) == ["reserve", "draw", "seal", "commit"]
    assert site.api.get(f"flow_runs/{dead}")["state_type"] == "RUNNING"  # nobody is left to say otherwise
    site.start_worker()
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
    made = {"filter": {"event": {"name": ["prefect.asset.materialization.succeeded"]}}}
    expected = {f"file://{site.folder}/night-{one}/synthetic" for one in (EARLIER, night)}

    def assets() -> set[str]:
        return {event["resource"]["prefect.resource.id"] for event in site.api.ask("events/filter", made)["events"]}

    wait_until(lambda: assets() == expected)  # events are written a while after they are sent
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
@pytest.mark.nightly  # what the pool that trains may see is held in tests/privacy/test_two_pools.py, too
def test_an_approved_run_is_trained_where_the_data_cannot_be_seen(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(worker.poll() is None for worker in site.workers):
        site.start_worker()
    data = str(site.folder / "clinic.parquet")
    key, public = write_key(site.folder / "dana.pem")
    site.ledger.change_cap("clinic", reason="the board asked for it", officer=Officer.read("Dana", public))
    asked = site.config("approved", data=data)
    early = site.ask_for("synthesize-table/ad-hoc", config=asked, train_on="train-worker")
    assert "no train worker was heard of" in site.wait_for(early, "FAILED")["state"]["message"]
    elsewhere = site.folder / "apart"
    elsewhere.mkdir()
    for zone in ("released", "control"):
        (elsewhere / zone).symlink_to(site.home / zone)
    apart = site.start_train_worker(elsewhere)
    wait_until(lambda: is_alive(site.home), WAIT)
    assert_knows_nobody(apart, elsewhere)
    kill(apart)  # a run that waits for it goes on waiting, and it goes on when it is back
    flow_run = site.ask_for("synthesize-table/ad-hoc", config=asked, train_on="train-worker")
    run = name_of(flow_run)
    site.wait_for(flow_run, "PAUSED")
    facts = {row["what"]: row["value"] for row in json.loads(site.api.artifacts("plan-clinic")[-1]["data"])}
    described = describe_run(Run.find(site.home, run, site.ledger_url))
    assert {plain(what): plain(value) for what, value in described.items()}.items() <= facts.items()
    assert "by the train-worker, which never sees the data" in facts["training"]
    assert facts["officer"] == "Dana must sign before anything is charged"
    sign_run(Run.find(site.home, run, site.ledger_url), key)
    assert site.kinds(run) == []  # suspended before anything is read or charged
    site.api.resume_when_paused(run, "")  # empty: what counts is the signature, which lies where the run is
    wait_until(lambda: (site.home / "control" / run / "stages" / "sanitize.json").exists(), WAIT)

    # The train worker mounts the released zone only; here, whatever is sensitive is moved out of its sight.
    with pytest.raises(CanRead, match=r"can read .*sensitive"):
        check_blind(site.home)
    waiting = Run.find(site.home, run, site.ledger_url)
    with pytest.raises(CanRead, match=r"can read .*clinic\.parquet"):
        generate(waiting)
    hidden = site.folder / "hidden"
    hidden.mkdir()
    (site.home / "sensitive").rename(hidden / "sensitive")
    Path(data).rename(hidden / "clinic.parquet")
    (site.home / "released" / run / STATUS).write_text("[" * 100_000)  # what is said there is no more than said
    site.start_train_worker(elsewhere)
    site.wait_for(flow_run)
    assert not list((site.home / "control" / WAITING).iterdir())
    manifest = json.loads((site.folder / "approved" / "manifest.json").read_text())
    assert manifest["approved"]["officer"] == "Dana" and site.kinds(run) == ["reserve", "draw", "seal", "commit"]

    site.ledger.change_cap("clinic", reason="the other tests' nights", officer=None, key=key)

    monkeypatch.setenv("PREFECT_API_URL", site.api.url)
    monkeypatch.setenv("NACRE_HOME", str(site.home))
    if site.ledger_url:
        monkeypatch.setenv("NACRE_LEDGER", site.ledger_url)
    from flows.resample import resample
    from flows.validate import validate_run

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


def assert_knows_nobody(worker: subprocess.Popen[bytes], home: Path) -> None:
    """Hold that a train worker has neither the address nor the credential of a server, in its environment or files."""
    known = psutil.Process(worker.pid).environ()
    assert not [name for name in known if name.startswith(("PREFECT", "NACRE", "PG"))]
    assert not [path for path in home.rglob("*") if path.name in ("prefect", "credential", "profiles.toml")]
    opened = psutil.Process(worker.pid).net_connections(kind="inet")
    assert opened == []


@pytest.mark.nightly
@pytest.mark.slow
def test_one_process_serves_everything_and_takes_its_server_along(tmp_path: Path) -> None:
    port = postgres.free_port()
    words = [sys.executable, "-m", "nacre", "serve", "--home", str(tmp_path / "home"), f"--port={port}"]
    environment = {**os.environ, "PYTHONPATH": str(unpacked_wheel(tmp_path)), "PREFECT_WORKER_QUERY_SECONDS": "1"}
    project = write_project(tmp_path / "project")
    with open(tmp_path / "serve.log", "wb") as log:
        serving = subprocess.Popen(words, cwd=project, env=environment, stdout=log, stderr=log)
    try:
        wait_until(lambda: "serving 6 deployments" in (tmp_path / "serve.log").read_text(), WAIT)
        api = Api(f"http://127.0.0.1:{port}/api", credential(tmp_path / "home"))
        found = api.ask("deployments/filter", {"sort": "NAME_ASC"})
        assert [one["name"] for one in found] == ["ad-hoc", "documents", "federation", "nightly", "validate", "weekly"]
        assert [schedule["active"] for one in found for schedule in one["schedules"]] == [False, False]
        assert found[0]["entrypoint"] == "nacre.flows.table.synthesize_table"
        form = next(one for one in found if one["name"] == "ad-hoc")["parameter_openapi_schema"]
        assert "runtime" not in form["properties"]["config"]["properties"]  # it shows what may be chosen
        with pytest.raises(urllib.error.HTTPError, match=r"409|422"):  # the form is checked by the server
            api.ask(f"deployments/{found[0]['id']}/create_flow_run", {"parameters": {"config": {"rows": "many"}}})
        site = Site(tmp_path, api)
        write_clinic(tmp_path / "home" / "incoming", rows=60)
        (tmp_path / "home" / "incoming" / "clinic.yaml").rename(tmp_path / "home" / "schemas" / "clinic.yaml")
        privacy = {"target_epsilon": 0.5, "delta": 1e-5}
        below = {"data": "incoming/clinic.parquet", "schema": "schemas/clinic.yaml", "out": "hand-offs/clinic"}
        refused = site.ask_for("synthesize-table/ad-hoc", config=below | {"privacy": privacy})
        ended = site.wait_for(refused, "FAILED")["state"]["message"]
        assert "nacre ledger open clinic" in ended
        assert charges(tmp_path / "home") == []

        its_own = {"logs": {"flow_run_id": {"any_": [refused]}}}
        wait_until(lambda: "ledger open" in str(api.ask("logs/filter", its_own)), WAIT)
        assert "Flow run" in (tmp_path / "serve.log").read_text()
        family = psutil.Process(serving.pid).children(recursive=True)
        serving.terminate()
        serving.wait(60)
    finally:
        if serving.poll() is None:
            kill(serving)
    assert family and psutil.wait_procs(family, 20)[1] == []
