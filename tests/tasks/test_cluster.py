"""Partial sums on a real Dask cluster: a scheduler and two worker processes on loopback, one killed in the middle."""

import os
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import dask.config
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.codec.encode import Codec
from dpmodels.embeddings.summation import transform_sum
from dpmodels.errors import DataError, InvalidArgument, NacreError
from dpmodels.gate.expectations import Gate
from dpmodels.ledger.ledger import Ledger
from dpmodels.mechanisms import gaussian
from dpmodels.methods.tables.moments import MomentsSystem
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.reading.ingest import transform_encode
from dpmodels.reading.load import load_parts
from dpmodels.releases.release import read_release
from tasks.engine import cluster
from tasks.engine.cluster import open_cluster
from tasks.engine.encoded import EncodedTable
from tests.kit.clusters import Processes, begun, kill_in_the_middle
from tests.kit.errors import refused
from tests.kit.support import (
    charges,
    desk_in,
    make_records,
    make_schema,
    make_table,
    run_cli,
    synthesize_words,
    write_clinic,
)

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    cluster = Processes(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture
def processes(started: Processes) -> Processes:
    """Return the cluster that all tests share, with workers for those that another test killed."""
    started.heal()
    return started


def write_table(folder: Path) -> EncodedTable:
    """Write the clinic's rows as a table of many small parts."""
    folder.mkdir()
    codec = Codec(make_schema())
    records = make_records(6000)
    for part, index in enumerate(np.array_split(np.arange(6000), 24)):
        with pa.ipc.new_file(folder / f"part-{part:05d}.arrow", codec.arrow_schema) as file:
            file.write_batch(codec.to_arrow(records.take(index)))
    return EncodedTable(folder, codec.schema)


class Slow:
    """An engine whose workers tell that they have begun a part, and take their time over it."""

    def __init__(self, engine, marks: Path) -> None:
        self.engine, self.marks = engine, marks

    def map(self, function, parts):
        return self.engine.map(partial(slow, function, self.marks), parts)


def slow(function, marks: Path, part):
    place = part[1] if isinstance(part, tuple) else part.file  # a part that is encoded, or one that is summed
    (marks / f"{os.getpid()}-{place.name}").touch()
    time.sleep(0.1)
    return function(part)


BUDGET = PrivacyBudget(epsilon=1, delta=1e-5)
SYSTEM = MomentsSystem()
PLAN = SYSTEM.plan(make_schema(), BUDGET)


def measure(folder: Path, table: EncodedTable) -> tuple[Path, Ledger]:
    folder.mkdir(mode=0o700)
    ledger = Ledger(folder / "ledger.sqlite")
    ledger.open_account("a", dataset="clinic", budget_cap=BUDGET)
    return again(folder, table, ledger), ledger


def again(folder: Path, table: EncodedTable, ledger: Ledger) -> Path:
    return SYSTEM.measure(Sensitive(table), PLAN, desk_in(folder, PLAN, ledger=ledger)).value


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries() if entry.kind != "open"]


def test_a_worker_killed_in_the_middle_changes_no_bit_and_charges_nothing_more(processes, tmp_path, monkeypatch):
    table = write_table(tmp_path / "table")
    embedding = SYSTEM.design(SYSTEM.measurement, make_schema())
    truth = transform_sum(embedding, Sensitive(table)).reveal()
    noise = np.arange(len(truth))
    monkeypatch.setattr(gaussian, "_sampler", lambda values, scale: values + noise)  # replayed
    alone, _ = measure(tmp_path / "alone", table)
    marks = tmp_path / "marks"
    marks.mkdir()
    killed = processes.workers[0]
    with open_cluster(processes.address) as engine:
        thread = kill_in_the_middle(marks, killed)
        shared, ledger = measure(tmp_path / "shared", EncodedTable(table.folder, table.schema, Slow(engine, marks)))
        thread.join()
        total = transform_sum(embedding, Sensitive(EncodedTable(table.folder, table.schema, engine))).reveal()
    assert killed.wait() == -9
    assert begun(marks, killed) & begun(marks, processes.workers[1])  # the lost part was done again
    assert np.array_equal(total, truth)
    vectors = [read_release(path).value.vector for path in (alone, shared)]
    assert np.array_equal(vectors[0], truth + noise) and np.array_equal(*vectors)
    assert kinds(ledger) == ["reserve", "draw", "seal", "commit"]
    assert "Traceback" not in processes.said()


def test_a_cluster_that_dies_leaves_a_charge_that_resuming_uses_up(processes, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 1.0)
    table, marks = write_table(tmp_path / "table"), tmp_path / "marks"
    marks.mkdir()
    with open_cluster(processes.address) as engine:
        threads = [kill_in_the_middle(marks, worker) for worker in processes.workers]
        with pytest.raises(
            NacreError, match=r"is gone .* resume the run: what it was charged stands, and is not charged again"
        ):
            measure(tmp_path / "run", EncodedTable(table.folder, table.schema, Slow(engine, marks)))
        for thread in threads:
            thread.join()
    ledger = Ledger(tmp_path / "run" / "ledger.sqlite")
    assert kinds(ledger) == ["reserve"]  # no noise was drawn
    again(tmp_path / "run", table, ledger)
    assert kinds(ledger).count("reserve") == kinds(ledger).count("commit") == 1


def fail(_: object) -> None:
    raise ValueError("Zebulon-Quillfeather")


def test_what_a_worker_chokes_on_is_not_repeated_anywhere(processes, tmp_path):
    with open_cluster(processes.address) as engine:
        with pytest.raises(NacreError, match="failed: ValueError; mend the cluster") as caught:
            list(engine.map(fail, [1, 2]))
        parts = EncodedTable(tmp_path / "gone", make_schema()), write_table(tmp_path / "table")
        part = next(parts[1].parts())
        part.file.unlink()
        with pytest.raises(NacreError, match="must be readable by whoever sums it"):
            list(engine.map(list, [part]))
    assert "Zebulon" not in str(caught.value) + processes.said()


def test_a_cluster_that_cannot_help_is_refused_before_anything_is_charged(processes, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1.0)
    for address, rule in (
        ("127.0.0.1:8786", "be the address of a scheduler, such as tcp://host:8786"),
        ("tcp://127.0.0.1:9", "be reachable: no scheduler answered, so nothing was drawn"),
    ):
        with refused(InvalidArgument, rule, name="dask", value=address), open_cluster(address):
            pass
    monkeypatch.setattr(cluster, "ALIKE", (*cluster.ALIKE, "pip"))  # which no worker is asked about
    with refused(InvalidArgument, "pip None there", name="dask"), open_cluster(processes.address):
        pass
    for worker in processes.workers:
        worker.kill()
        worker.wait()
    with refused(InvalidArgument, "none came", name="dask"), open_cluster(processes.address):
        pass


@pytest.mark.nightly  # the refusal is held above, and a run that goes on elsewhere in tests/kinds
def test_from_the_command_line_an_unreachable_cluster_costs_nothing_and_resuming_goes_on_elsewhere(
    processes, tmp_path, monkeypatch
):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1.0)
    write_clinic(tmp_path)
    home = tmp_path / "home"
    code, _, err = run_cli(*synthesize_words(tmp_path, dask="tcp://127.0.0.1:9"))
    assert code == 1 and "dask=tcp://127.0.0.1:9 must be reachable" in err and charges(home) == []
    words = ["resume", next((home / "released").iterdir()).name, "--home", home, "--no-prefect", "--dask"]
    assert run_cli(*words, "tcp://127.0.0.1:10")[0] == 1 and charges(home) == []
    assert run_cli(*words, "none")[0] == 0
    other = tmp_path / "other"
    code, _, err = run_cli(*synthesize_words(tmp_path, dask=processes.address, home=other, out=tmp_path / "again"))
    assert code == 0, err
    assert charges(home) == charges(other) == ["reserve", "draw", "seal", "commit"]


def encoded(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_table_is_encoded_by_workers_to_the_same_bytes_and_its_faults_are_told_here(processes, tmp_path):
    """Four files, in several row groups, of which one is not the schema's; the workers alone read them."""
    schema, data = make_schema(), tmp_path / "data"
    data.mkdir()
    for number in range(4):
        pq.write_table(make_table(500, number), data / f"{number}.parquet", row_group_size=100)
    with open_cluster(processes.address) as engine:
        for name, run in (("here", map), ("there", engine.map)):
            (tmp_path / name).mkdir()
            gate = Gate(schema, raw=True)
            transform_encode(load_parts(data, schema, 64), gate, tmp_path / name, run)
            assert gate.outcomes[0].checked == 2000
        here, there = encoded(tmp_path / "here"), encoded(tmp_path / "there")
        assert here == there and len(here) > 1
        pq.write_table(make_table(50).drop(["age"]).append_column("age", pa.array([999] * 50)), data / "bad.parquet")
        (tmp_path / "bad").mkdir()
        with refused(DataError, "column age must lie between") as told:
            transform_encode(load_parts(data, schema, 64), Gate(schema, raw=True), tmp_path / "bad", engine.map)
        assert "999" not in str(told.value)
        (data / "bad.parquet").unlink()
        patients = {"patient": {"type": "identifier", "keep": "regenerate", "unique": True}}
        once = make_schema(columns={**schema.model_dump()["columns"], **patients})
        with refused(DataError, "column patient must not have the same value in two rows") as told:  # in two files
            transform_encode(load_parts(data, once, 64), Gate(once, raw=True), tmp_path / "bad", engine.map)
        parts = load_parts(data, schema, 64)
        (data / "3.parquet").unlink()
        with refused(DataError, "by whoever encodes it; it is not there", column=""):
            transform_encode(parts, Gate(schema, raw=True), tmp_path / "bad", engine.map)


@pytest.mark.nightly  # beside a worker that is killed while it sums
def test_a_worker_killed_while_it_encodes_leaves_the_same_files(processes, tmp_path):
    schema, data, marks = make_schema(), tmp_path / "data", tmp_path / "marks"
    for folder in (data, marks, tmp_path / "here", tmp_path / "there"):
        folder.mkdir()
    for number in range(24):
        pq.write_table(make_table(20, number), data / f"part-{number:05d}.parquet")
    parts = load_parts(data, schema, 64)
    transform_encode(parts, Gate(schema, raw=True), tmp_path / "here")
    watcher = kill_in_the_middle(marks, processes.workers[0])
    with open_cluster(processes.address) as engine:
        transform_encode(parts, Gate(schema, raw=True), tmp_path / "there", Slow(engine, marks).map)
    watcher.join()
    assert processes.workers[0].poll() is not None and begun(marks, processes.workers[0])
    here, there = encoded(tmp_path / "here"), encoded(tmp_path / "there")
    assert here == there and len(here) == 24


def certificates(folder: Path) -> dict[str, str]:
    """Make an authority and a certificate of it, as docs/production.md says; return how Dask finds them."""
    folder.mkdir()
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca",
        "req -newkey rsa:2048 -nodes -keyout dask.key -out dask.csr -subj /CN=dask",
        "x509 -req -in dask.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out dask.pem -days 2",
    ):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)
    roles = {f"{role}__{kind}": file for role in ("SCHEDULER", "WORKER", "CLIENT") for kind, file in PEM.items()}
    return {
        f"DASK_DISTRIBUTED__COMM__TLS__{key}": str(folder / file)
        for key, file in {**roles, "CA_FILE": "ca.pem"}.items()
    }


PEM = {"CERT": "dask.pem", "KEY": "dask.key"}


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_cluster_over_tls_makes_a_whole_run_and_lets_in_nobody_without_a_certificate(tmp_path):
    write_clinic(tmp_path)
    folder, named = tmp_path / "tls", certificates(tmp_path / "tls")
    cluster = Processes(tmp_path, "tls://", **named)
    shown = {"ca-file": "ca.pem", "client.cert": PEM["CERT"], "client.key": PEM["KEY"]}
    shown = {f"distributed.comm.tls.{key}": str(folder / file) for key, file in shown.items()}
    try:
        assert cluster.address.startswith("tls://")
        words = synthesize_words(tmp_path, dask=cluster.address)
        code, _, err = run_cli(*words)
        assert code == 1 and "must be met with a certificate" in err and charges(tmp_path / "home") == []
        with dask.config.set(shown):
            code, _, err = run_cli(*words)
        assert code == 0, err
    finally:
        cluster.stop()
    assert charges(tmp_path / "home") == ["reserve", "draw", "seal", "commit"]
