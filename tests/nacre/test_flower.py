"""A federation over Flower: real processes and gRPC on loopback, a home and a ledger for each client.

These tests run where ``nacre[federated]`` is installed, and are skipped elsewhere. It needs an environment of its own:

    pip install -e '.[federated,dask]' psutil pytest pytest-timeout pytest-xdist hypothesis
    python -m pytest tests/nacre/test_flower.py
"""

import hashlib
import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml

pytest.importorskip("flwr", reason="needs pip install 'nacre[federated]'")

from flwr.app import ConfigRecord, Message, RecordDict

from dpmodels.errors import Unsuitable
from dpmodels.hand_off.manifest import CARD, PAGES, read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.ledger import Ledger
from dpmodels.methods.federations.classifier import FederatedClassifier
from dpmodels.releases.plan import Plan
from flows.config import FederateConfig
from flows.kinds.federations import prepare
from flows.start import start
from flows.synthesize import carry_out
from nacre.flower.client import ClientConfig, answer, respond
from nacre.flower.hand_over import UNPLANNED, hand_over
from nacre.flower.messages import DISAGREED, NAME, Answer, Offer
from nacre.flower.server import TWICE, federate, sort_out
from tasks.kinds import clients
from tasks.kinds.federation import PUBLIC
from tests.kit.buckets import Bucket
from tests.kit.inputs import KEY
from tests.kit.support import charges
from tests.kit.wards import NAMES, make_ward, write_wards
from tests.nacre.flower import ROOT, agreement, network

pytestmark = [pytest.mark.flower, pytest.mark.timeout(600)]

QUIET = """
from dpmodels.mechanisms import gaussian
gaussian._sampler = lambda values, stddev: values
"""
"""Python imports this where it starts: releases then hold the exact sums, so that two runs can be compared."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a federation of three wards, a fourth of which never came, that was run twice."""
    folder = tmp_path_factory.mktemp("wards")
    config = write_wards(folder, round={"patience": 45})
    content = yaml.safe_load(config.read_text())
    config.write_text(yaml.safe_dump(content | {"clients": content["clients"] | {"east": "nowhere"}}))
    table = make_ward(300, 1).append_column("name", pa.array(["Quillfeather"] * 300))
    pq.write_table(table, folder / "south" / "records.parquet")
    with network(folder, NAMES) as flower:
        said = flower.finished(config, folder / "out")
        shutil.copytree(folder / "out", folder / "first")
        shutil.rmtree(folder / "out")
        (folder / "said").write_text(said + flower.finished(config, folder / "out"))
    return folder


@pytest.mark.slow
def test_each_client_charges_its_own_ledger_once_however_often_the_server_asks(ended: Path) -> None:
    for name in NAMES:
        ledger, own = Ledger(ended / f"home-{name}" / "ledger.sqlite"), charges(ended / f"home-{name}")
        assert [own.count(kind) for kind in ("reserve", "draw", "seal", "commit")] == [1, 1, 1, 1]
        assert {account.name for account in ledger.accounts()} == {"wards", f"wards.{name}"} and ledger.verify() == []
        assert 2.99 < ledger.balance(f"wards.{name}").spent_epsilon <= 3
    first, again = (read_manifest(ended / name) for name in ("first", "out"))
    assert first.release_sha256 == again.release_sha256 and first.clients == again.clients


@pytest.mark.slow
def test_the_hand_off_names_each_ledgers_entries_and_who_never_came(ended: Path) -> None:
    manifest, found = read_manifest(ended / "out"), verify_hand_off(ended / "out")
    assert found.faults == [] and "3 clients, each with a charge of its own" in found.charge
    assert manifest.dropped == {"east": clients.LATE} and [one.client for one in manifest.clients] == list(NAMES)
    for line in manifest.clients:
        entries = Ledger(ended / f"home-{line.client}" / "ledger.sqlite").entries(key=line.ledger.charge)
        assert [entry.hash for entry in entries] == [entry.hash for entry in line.ledger.entries]
    facts = json.loads((ended / "out" / "report.json").read_text())
    assert {one["name"]: one["dropped"] for one in facts["clients"]} == dict.fromkeys(NAMES, "") | manifest.dropped


@pytest.mark.slow
def test_a_planted_string_stays_with_its_client(ended: Path) -> None:
    found = [path for path in ended.rglob("*") if path.is_file() and b"Quillfeather" in path.read_bytes()]
    assert found == [ended / "south" / "records.parquet"]


@pytest.mark.slow
def test_without_noise_flower_and_dask_make_the_same_classifier(tmp_path: Path, monkeypatch) -> None:
    config, quiet = write_wards(tmp_path, round={"workers": "dask"}), tmp_path / "quiet"
    quiet.mkdir()
    (quiet / "sitecustomize.py").write_text(QUIET)
    path = f"{quiet}{os.pathsep}{ROOT}"
    with network(tmp_path, NAMES, path) as flower:
        flower.finished(config, tmp_path / "out")
    monkeypatch.setenv("PYTHONPATH", path)
    carry_out(start(FederateConfig.build({"out": tmp_path / "dask"}, config)), prefect=False)
    there, here = (FederatedClassifier.load(tmp_path / name / "classifier.safetensors") for name in ("out", "dask"))
    assert there.contract == here.contract and there.entries != here.entries
    assert np.array_equal(there.head.scores, here.head.scores) and np.array_equal(there.head.heads, here.head.heads)
    test = make_ward(400, 77)
    inputs = torch.from_numpy(np.stack([test[name].to_numpy() for name in test.column_names[:4]], 1)).float()
    np.testing.assert_allclose(there.probabilities(inputs), here.probabilities(inputs), atol=1e-12)


@pytest.mark.slow
def test_a_client_and_a_server_that_are_killed_come_back_and_each_client_is_charged_once(tmp_path: Path) -> None:
    config = write_wards(tmp_path, round={"patience": 40})
    with network(tmp_path, NAMES) as flower:
        running = flower.run(config)
        while not (tmp_path / "home-north" / "ledger.sqlite").exists():  # it was asked, and is about to be charged
            assert running.poll() is None or running.returncode, "the round ended before its client was killed"
            time.sleep(0.05)
            running = flower.run(config) if running.poll() else running
        flower.kill("north")
        running.communicate(timeout=300)
        assert read_manifest(tmp_path / "out").dropped == {"north": clients.LATE}
        sealed = read_manifest(tmp_path / "out").clients
        flower.kill("superlink")
        (tmp_path / "out").rename(tmp_path / "first")
        flower.link()
        flower.join("north")
        flower.finished(config, tmp_path / "out")
    manifest = read_manifest(tmp_path / "out")
    assert manifest.dropped is None and manifest.clients[1:] == sealed
    for name in NAMES:
        own = charges(tmp_path / f"home-{name}")
        assert [own.count(kind) for kind in ("reserve", "seal", "commit")] == [1, 1, 1]


@pytest.fixture(scope="module")
def offered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Offer]:
    folder = tmp_path_factory.mktemp("offer")
    prepared = prepare(FederateConfig.build({}, write_wards(folder)))
    return folder, Offer(Plan(lines=tuple(prepared.lines)), prepared.files[PUBLIC])


@pytest.mark.parametrize("section", [{"model": {"trust": "central"}}, {"round": {"mode": "paper"}}])
def test_what_is_not_private_at_each_client_does_not_go_over_flower(offered: tuple[Path, Offer], section: dict) -> None:
    out = "" if "round" in section else offered[0] / "more"  # of rounds nothing is handed over
    config = FederateConfig.build({**section, "out": out}, offered[0] / "federation.yaml")
    with pytest.raises(Unsuitable, match="every client draws its own noise, once"):
        federate(config, None)


OTHER = {
    "classes": {"classes": ["well", "ill"]},
    "columns": {"records": {"inputs": ["age", "pulse", "fever", "sex"]}},
    "a bound on records": {"most_records": 999},
    "a public size": {"size": 300},
    "a smaller epsilon": {"privacy": {"target_epsilon": 2.9, "delta": 1e-5, "cap_epsilon": 9}},
    "a smaller delta": {"privacy": {"target_epsilon": 3.0, "delta": 1e-6, "cap_epsilon": 9}},
    "another federation": {"name": "clinics"},
    "another client": {"client": "east"},
}


@pytest.mark.parametrize("what", OTHER)
def test_a_client_that_agreed_to_something_else_opens_neither_data_nor_home(
    offered: tuple[Path, Offer], tmp_path: Path, what: str
) -> None:
    home = {"runtime": {"home": str(tmp_path / "home")}, "data": str(tmp_path / "nowhere")}
    config = ClientConfig.build(agreement(offered[0], "north", **home) | OTHER[what])
    assert answer(config, offered[1]).reason == DISAGREED and not (tmp_path / "home").exists()


def test_a_client_answers_once_and_is_refused_where_its_account_is_spent(
    offered: tuple[Path, Offer], tmp_path: Path
) -> None:
    folder, offer = offered
    config = ClientConfig.build(agreement(folder, "north", runtime={"home": str(tmp_path / "home")}))
    first, again = answer(config, offer), answer(config, Offer.unpack(offer.pack()))
    assert first == again == Answer.unpack(first.pack()) and first.reason == "" and len(first.paid["entries"]) == 4
    other = prepare(FederateConfig.build({"model": {"measurement": {"records": 301}}}, folder / "federation.yaml"))
    more = Offer(Plan(lines=tuple(other.lines)), other.files[PUBLIC])
    assert answer(config, more).reason == clients.REFUSED and charges(tmp_path / "home").count("commit") == 1


def test_the_cap_is_the_clients_own_and_not_the_first_offers_budget(
    offered: tuple[Path, Offer], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, offer = offered
    terms = {"target_epsilon": 4.0, "delta": 2e-5, "cap_epsilon": 9.0}
    own = {"runtime": {"home": str(tmp_path / "home")}, "privacy": terms}
    assert answer(ClientConfig.build(agreement(folder, "north", **own)), offer).reason == ""
    accounts = Ledger(tmp_path / "home" / "ledger.sqlite").accounts()
    assert {one.name: (one.cap.epsilon, one.cap.delta) for one in accounts} == {
        "wards": (9.0, 2e-5),
        "wards.north": (9.0, 2e-5),
    }
    del terms["cap_epsilon"]
    (tmp_path / "north.yaml").write_text(yaml.safe_dump(agreement(folder, "north", **own)))
    message = Message(offer.pack(), dst_node_id=1, message_type="train")
    reply = respond(message, SimpleNamespace(node_config={"nacre": str(tmp_path / "north.yaml")}))
    assert Answer.unpack(reply.content) == Answer("", clients.FAILED)
    assert "privacy.cap_epsilon is missing" in caplog.text


def test_a_client_reads_an_object_store_with_the_credentials_of_its_environment_alone(
    offered: tuple[Path, Offer], bucket: Bucket, tmp_path: Path
) -> None:
    folder, offer = offered
    own = {"runtime": {"home": str(tmp_path / "home")}}
    there = bucket.put(folder / "north")
    for uri in (bucket.uri("none"), there.replace("s3://", f"s3://nacre:{KEY}@")):
        reason = answer(ClientConfig.build(agreement(folder, "north", data=uri, **own)), offer).reason
        assert reason == (clients.FAILED if KEY in uri else clients.ABSENT)
        shutil.rmtree(tmp_path / "home")
    assert answer(ClientConfig.build(agreement(folder, "north", data=there, **own)), offer).reason == ""
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 5 and not [path for path in written if KEY.encode() in path.read_bytes()]
    copied = agreement(folder, "south", data=str(folder / "north"), **own)  # of another client, with a home in common
    assert answer(ClientConfig.build(copied), offer).reason == clients.CHARGED


def test_what_fails_at_a_client_is_told_in_fixed_words(offered: tuple[Path, Offer], tmp_path: Path) -> None:
    folder, offer = offered
    (tmp_path / "Quillfeather").write_text("no folder, so no home")
    config = ClientConfig.build(agreement(folder, "north", runtime={"home": str(tmp_path / "Quillfeather" / "home")}))
    assert answer(config, offer) == Answer("north", clients.FAILED)
    missing = agreement(folder, "north", data=str(tmp_path / "x"), runtime={"home": str(tmp_path / "home")})
    assert answer(ClientConfig.build(missing), offer) == Answer("north", clients.ABSENT)
    (tmp_path / "north.yaml").write_text("client: Quillfeather\n")
    for node in ({"nacre": str(tmp_path / "north.yaml")}, {}):
        message = Message(offer.pack(), dst_node_id=1, message_type="train")
        reply = respond(message, SimpleNamespace(node_config=node))
        assert Answer.unpack(reply.content) == Answer("", clients.FAILED)


def test_answers_that_are_not_of_the_plan_drop_their_client(offered: tuple[Path, Offer], tmp_path: Path) -> None:
    folder, offer = offered
    prepared = prepare(FederateConfig.build({}, folder / "federation.yaml"))
    north, south, west = (
        answer(ClientConfig.build(agreement(folder, name, runtime={"home": str(tmp_path / name)})), offer)
        for name in NAMES
    )
    taken, dropped = sort_out(prepared, [west, north, south, Answer("stranger", "", "run", north.release, north.paid)])
    assert list(taken) == list(NAMES) and dropped == {}
    assert taken["north"].told.release_sha256 == hashlib.sha256(north.release).hexdigest()
    assert sort_out(prepared, [north, south, south])[1] == {"south": TWICE, "west": clients.LATE}
    assert sort_out(prepared, [north, south, Answer("")])[1] == {"west": clients.FAILED}
    forged = [replace(west, release=south.release), replace(west, paid=south.paid), replace(west, run="another")]
    forged += [replace(west, release=west.release[:-9]), replace(west, paid={})]
    assert all(sort_out(prepared, [north, south, one])[1] == {"west": UNPLANNED} for one in forged)
    out = hand_over(
        FederateConfig.build({"out": tmp_path / "out"}, folder / "federation.yaml"), prepared, taken, dropped
    )
    assert verify_hand_off(out).faults == [] and {CARD, *PAGES} < {path.name for path in out.iterdir()}
    assert "an account in a ledger of its own, which it alone can read" in (out / "statement.html").read_text()


def test_what_a_client_says_in_other_words_or_shapes_is_not_repeated() -> None:
    good = Answer("north", clients.UNFIT)
    assert Answer.unpack(good.pack()) == good
    assert Answer.unpack(replace(good, reason="<b>Quillfeather</b>").pack()) == Answer("north", clients.FAILED)
    fields = dict(good.pack()[NAME])
    for wrong in ({"paid": "{"}, {"paid": "[1]"}, {"paid": "[" * 10_000}, {"release": 1.5}, {"paid": "3"}):
        record = RecordDict({NAME: ConfigRecord({**fields, **wrong})})
        assert Answer.unpack(record) == Answer("", clients.FAILED)
    assert Answer.unpack(RecordDict({})) == Answer("", clients.FAILED)
