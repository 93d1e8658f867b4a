"""What lineage tells of a run: all that is public of it, in OpenLineage's words, and no run depends on who listens."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.hand_off.manifest import read_manifest
from dpmodels.ledger.ledger import Ledger
from flows import lineage
from flows.with_prefect.assets import key_of, publish_assets
from tasks.run.lineage import dataset
from tasks.run.runs import runs_of
from tests.kit.kinds import CANARY
from tests.kit.lineage import Event, read_events
from tests.kit.support import make_table, run_cli, synthesize_words, write_clinic

ROWS = 187


@contextmanager
def listening(answer: int = 201, seconds: float = 0) -> Iterator[tuple[str, list[bytes], list[str]]]:
    """Listen at a port of this machine; yield its address, the bodies that came, and the keys that came with them."""
    bodies, keys = list[bytes](), list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            keys.append(self.headers.get("Authorization", ""))
            time.sleep(seconds)
            self.send_response(answer)
            if answer == 307:
                self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies, keys
    finally:
        server.shutdown()
        server.server_close()


def run_clinic(folder: Path, **options: object) -> tuple[int, str]:
    write_clinic(folder, rows=ROWS)
    names = pa.array([f"{CANARY}-{row}" for row in range(ROWS)])
    pq.write_table(make_table(ROWS).set_column(0, "patient", names), folder / "clinic.parquet")
    code, out, err = run_cli(*synthesize_words(folder, rows=30, **options))
    return code, out + err


def numbers(content: object) -> set[float]:
    """Return every number in JSON, those that are written as text included."""
    if isinstance(content, dict | list):
        return set().union(*map(numbers, content.values() if isinstance(content, dict) else content))
    try:
        return {float(str(content))}
    except ValueError:
        return set()


def of(events: list[Event], job: str, kind: str) -> Event:
    (event,) = [one for one in events if one["job"]["name"] == job and one["eventType"] == kind]
    return event


def test_a_run_tells_its_stages_its_price_and_its_table_and_nothing_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lineage.jsonl"
    with listening() as (address, bodies, keys):
        for name, value in {"NACRE_LINEAGE": file, "OPENLINEAGE_URL": address, "OPENLINEAGE_API_KEY": "k"}.items():
            monkeypatch.setenv(name, str(value))
        code, said = run_clinic(tmp_path, report_epsilon=0.5)
    assert code == 0 and b"\n".join(bodies) + b"\n" == file.read_bytes() and set(keys) == {"Bearer k"}, said
    events = read_events(file.read_bytes())
    stages = ["ingest", "sanitize", "train", "sample", "score", "validate", "evaluate", "publish"]
    ordered = [f"clinic.{stage}" for stage in stages for _ in range(2)]
    assert [event["job"]["name"] for event in events] == ["clinic", *ordered, "clinic"]
    assert [event["eventType"] for event in events] == ["START", *["START", "COMPLETE"] * 8, "COMPLETE"]

    manifest, ledger = read_manifest(tmp_path / "out"), Ledger(tmp_path / "home" / "ledger.sqlite")
    (charge,) = of(events, "clinic.sanitize", "COMPLETE")["run"]["facets"]["nacre_privacyCharge"]["charges"][:1]
    assert (charge["account"], charge["charge"]) == ("clinic", manifest.ledger.charge)
    assert (charge["epsilon"], charge["delta"]) == (str(manifest.price.spent.epsilon), 1e-5)
    assert charge["remaining"] == str(ledger.balance("clinic").remaining_epsilon)
    whole = events[-1]
    assert len(whole["run"]["facets"]["nacre_privacyCharge"]["charges"]) == 2
    assert all(one["run"]["facets"]["parent"]["run"]["runId"] == whole["run"]["runId"] for one in events[1:-1])

    (source,) = of(events, "clinic.ingest", "START")["inputs"]
    assert source == {"namespace": "file", "name": str(tmp_path / "clinic.parquet")}
    (table,) = of(events, "clinic.publish", "COMPLETE")["outputs"]
    assert table["name"] == str(tmp_path / "out" / "synthetic")
    assert table["outputFacets"]["outputStatistics"]["rowCount"] == 30
    assert [one["name"] for one in table["facets"]["schema"]["fields"]] == list(make_table(1).column_names)
    checked = of(events, "clinic.validate", "COMPLETE")["inputs"][-1]
    assertions = checked["inputFacets"]["dataQualityAssertions"]["assertions"]
    assert all(one["success"] for one in assertions) and {one.get("column") for one in assertions} >= {"age", "ward"}
    assert CANARY.encode() not in file.read_bytes() and ROWS not in numbers(events)


def test_a_run_that_fails_says_where_and_not_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_LINEAGE", str(tmp_path / "lineage.jsonl"))
    write_clinic(tmp_path)
    wards = pa.array([CANARY, *["north"] * 99])
    pq.write_table(make_table(100).set_column(2, "ward", wards), tmp_path / "clinic.parquet")
    assert run_cli(*synthesize_words(tmp_path))[0] == 1
    events = read_events((tmp_path / "lineage.jsonl").read_bytes())
    assert [event["eventType"] for event in events] == ["START", "START", "FAIL", "FAIL"]
    assert events[2]["run"]["facets"]["errorMessage"]["message"] == "ingest failed"
    assert all("nacre_privacyCharge" not in event["run"]["facets"] for event in events)
    assert CANARY.encode() not in (tmp_path / "lineage.jsonl").read_bytes()


def test_a_run_that_goes_on_is_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "lineage.jsonl"
    monkeypatch.setenv("NACRE_LINEAGE", str(file))
    assert run_clinic(tmp_path)[0] == 0
    before = read_events(file.read_bytes())
    (name,) = [path.name for path in (tmp_path / "home" / "control").iterdir() if path.is_dir()]
    assert run_cli("resume", name, "--out", tmp_path / "again", "--home", tmp_path / "home", "--no-prefect")[0] == 0
    after = read_events(file.read_bytes())[len(before) :]
    assert after[-1]["run"]["runId"] == before[-1]["run"]["runId"]
    assert "clinic.sanitize" not in {event["job"]["name"] for event in after}
    assert of(after, "clinic.publish", "COMPLETE")["outputs"][0]["name"] == str(tmp_path / "again" / "synthetic")


def tell(address: str, monkeypatch: pytest.MonkeyPatch) -> float:
    """Tell of a run that has nothing but a name how it ended; return how long that took."""
    monkeypatch.setenv("OPENLINEAGE_URL", address)
    began = time.monotonic()
    lineage._send(address, [b"{}"] * 3)
    return time.monotonic() - began


def test_a_server_that_is_slow_delays_a_run_by_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lineage, "MOST_SECONDS", 0.3)
    with listening(seconds=0.2) as (address, _, _):
        assert tell(address, monkeypatch) < 3 and "of 3 events" in caplog.text
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert tell(f"http://127.0.0.1:{silent.getsockname()[1]}", monkeypatch) < 3


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9", "file:///etc/hostname", "ftp://127.0.0.1", "nonsense", "http://["]
)
def test_a_server_that_is_none_makes_no_run_fail(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    assert tell(address, monkeypatch) < 5 and "warning" in caplog.text
    assert "127.0.0.1" not in caplog.text


@pytest.mark.parametrize("answer", [307, 400, 500])
def test_nothing_more_is_sent_to_a_server_that_refuses_or_names_another(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, answer: int
) -> None:
    with listening(answer) as (address, bodies, _):
        tell(address, monkeypatch)
        assert len(bodies) == 1 and "took 0 of 3" in caplog.text


def test_a_file_that_is_none_makes_no_run_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for place in (tmp_path / "none" / "file", tmp_path, tmp_path / "fifo", tmp_path / "link"):
        lineage._append(str(place), [b"{}"])
    assert not (tmp_path / "target").exists()


def test_nobody_is_told_unless_the_operator_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        not lineage.wanted({}) and lineage.wanted({"NACRE_LINEAGE": "x"}) and lineage.wanted({"OPENLINEAGE_URL": "x"})
    )
    assert not lineage.wanted({"OPENLINEAGE_URL": "x", "OPENLINEAGE_DISABLED": "true"})


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/srv/a.parquet", {"namespace": "file", "name": "/srv/a.parquet"}),
        ("s3://bucket/a/b.csv?key=secret", {"namespace": "s3://bucket", "name": "a/b.csv"}),
        (
            "postgresql://me:secret@db.example:5432/clinic",
            {"namespace": "postgresql://db.example:5432", "name": "clinic"},
        ),
        ("sqlite:////srv/a.db", {"namespace": "sqlite://", "name": "//srv/a.db"}),
    ],
)
def test_a_place_is_named_without_what_opens_it(place: str, expected: dict[str, str]) -> None:
    assert dataset(place) == expected


@pytest.mark.parametrize("by_schedule", [True, False])
def test_a_nominal_time_is_that_of_a_schedule_and_no_other(by_schedule: bool) -> None:
    from prefect.client.schemas.objects import FlowRun
    from prefect.context import FlowRunContext

    asked = datetime(2026, 11, 25, 2, tzinfo=UTC)
    flow_run = FlowRun(flow_id=uuid4(), auto_scheduled=by_schedule, expected_start_time=asked)
    assert lineage._nominal() is None
    with FlowRunContext.model_construct(flow_run=flow_run):
        assert lineage._nominal() == (asked if by_schedule else None)


def test_prefect_is_told_of_assets_by_their_places_and_of_their_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import prefect.events
    from prefect.assets import Asset

    code, said = run_clinic(tmp_path / "a folder, 50 % full")
    assert code == 0, said
    events: list[dict] = []
    monkeypatch.setattr(prefect.events, "emit_event", lambda **event: events.append(event))
    home = tmp_path / "a folder, 50 % full" / "home"
    (run,) = runs_of(home)
    publish_assets(run)
    names = [event["event"] for event in events]
    assert names == ["prefect.asset.referenced", "prefect.asset.materialization.succeeded"]
    keys = [event["resource"]["prefect.resource.id"] for event in events]
    assert [Asset(key=key).key for key in keys] == keys  # Prefect takes them
    assert keys[0].endswith("/clinic.parquet") and keys[1].endswith("/out/synthetic")
    assert events[1]["related"][0] == {"prefect.resource.id": keys[0], "prefect.resource.role": "asset"}
    (charge,) = events[1]["payload"]["charges"]
    assert charge["account"] == "clinic" and 0 < float(charge["epsilon"]) <= 1
    assert CANARY not in str(events) and ROWS not in numbers(events)


@pytest.mark.parametrize(
    ("place", "key"),
    [
        ("s3://bucket/night 1/rows?.parquet", "s3://bucket/night_201/rows"),
        ("postgresql://me:secret@host:5432/clinic", "postgresql://host:5432/clinic"),
        ("/srv/data/rows.parquet", "file:///srv/data/rows.parquet"),
    ],
)
def test_the_key_of_an_asset_has_no_password_and_no_character_that_prefect_refuses(place: str, key: str) -> None:
    assert key_of(dataset(place)) == key
