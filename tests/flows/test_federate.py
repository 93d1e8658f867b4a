"""From clients' own data to one classifier: what is in it, what it costs each client, and who is dropped or refused."""

import ast
import json
import logging
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml

import nacre
from dpmodels.accounting.meaning import in_words
from dpmodels.errors import BudgetExhausted, InvalidArgument, Unsuitable
from dpmodels.hand_off.manifest import CARD, MANIFEST, read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.methods.federations import records
from dpmodels.methods.federations.classifier import FederatedClassifier
from dpmodels.reading.database import Query
from dpmodels.releases.release import read_release
from flows.command_line.show import show_hand_off
from flows.config import FederateConfig
from flows.start import start
from flows.synthesize import carry_out
from tasks.kinds import clients
from tasks.run.store import Run
from tasks.stages import federate
from tests.kit.buckets import Bucket
from tests.kit.children import ends_at
from tests.kit.errors import refused
from tests.kit.everything import everything
from tests.kit.inputs import KEY
from tests.kit.manifests import write_manifest
from tests.kit.support import charges, run_cli, write_key
from tests.kit.wards import (
    CLASSES,
    INPUTS,
    NAMES,
    begun,
    dies,
    digest_of_heads,
    dropped,
    each_charged_once,
    ledger_of,
    make_ward,
    only_run,
    replace,
    write_wards,
)

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a federation that was handed over."""
    folder = tmp_path_factory.mktemp("wards")
    code, _, err = run_cli("federate", write_wards(folder))
    assert code == 0, err
    return folder


def test_each_client_is_charged_once_and_the_federation_costs_what_its_heaviest_does(ended: Path) -> None:
    ledger, manifest = ledger_of(ended), read_manifest(ended / "out")
    spent = [ledger.balance(name).spent_epsilon for name in ("wards", *(f"wards.{name}" for name in NAMES))]
    assert len(set(spent)) == 1 and 2.99 < spent[0] <= 3
    assert each_charged_once(ended) and ledger.verify() == []
    assert (
        manifest.format == 7
        and manifest.part == "client"
        and manifest.spent.epsilon == manifest.clients[0].spent.epsilon
    )
    assert [line.client for line in manifest.clients] == list(NAMES) and manifest.ledger.account == "wards"
    assert [line.ledger.account for line in manifest.clients] == [f"wards.{name}" for name in NAMES]
    code, out, err = run_cli("verify", ended / "out")
    assert code == 3 and "for each client" in out and "3 clients, each with a charge of its own" in out
    assert "does not hide the client" in err


def test_sizes_are_private_unless_all_are_given(ended: Path, tmp_path: Path) -> None:
    manifest, text = read_manifest(ended / "out"), (ended / "out" / "schema.yaml").read_text()
    assert manifest.adjacency == "add_or_remove_one" and "size" not in text
    facts = json.loads((ended / "out" / "report.json").read_text())
    assert facts["sizes_are_public"] is False and "whether one record is there" in facts["cautions"][0]
    config = write_wards(tmp_path, sizes=dict.fromkeys(NAMES, 300))
    assert run_cli("federate", config)[0] == 0
    assert read_manifest(tmp_path / "out").adjacency == "replace_one"
    changed = yaml.safe_load(config.read_text()) | {"sizes": {"north": 300}}
    with pytest.raises(Unsuitable, match="of all clients, or of none"):
        start(FederateConfig.model_validate(changed | {"out": str(tmp_path / "more")}))


REFUSED = {
    "model.measurement.records=None must be a public guess": {"measurement": {}},
    "model.measurement.records=-1 must be greater": {"measurement": {"records": -1}},
    "model.measurement.heads.records=None must be": {"method": "federated-both"},
    "model.measurement.moments.trust=central must be local": {
        "method": "federated-both",
        "measurement": {"heads": {"records": 9}, "moments": {"trust": "central"}},
    },
    "model.method=moments must be a method; did you mean `federated-moments`": {"method": "moments"},
}


@pytest.mark.parametrize("said", REFUSED)
def test_a_setting_that_is_refused_is_named_by_its_key(tmp_path: Path, said: str) -> None:
    config = write_wards(tmp_path, model={"extractor": SMALL, **REFUSED[said]})
    with refused(InvalidArgument, re.escape(said), name=said.partition("=")[0]):
        nacre.federate(config, home=tmp_path / "home")


def test_a_plan_says_that_accounts_open_with_the_run_until_they_are_open(ended: Path, tmp_path: Path) -> None:
    """In a home whose ledger had other accounts it spoke of the account as if it were open, with nothing spent."""
    config, home = write_wards(tmp_path, name="clinics", out=str(tmp_path / "out")), ("--home", ended / "home")
    code, out, err = run_cli("plan-federation", config, *home)  # the run is refused without --open, and so is its plan
    assert code == 1 and "account: none is open that would pay" in out and "no account is open for data set" in err
    home = (*home, "--open")
    for place in ((), home):
        code, out, _ = run_cli("plan-federation", config, *place)
        assert code == 0 and "account: clinics, opens with this run, cap epsilon=3 at delta=1e-5" in out
        assert "spent" not in out
    code, out, _ = run_cli("plan-federation", ended / "federation.yaml")
    (spent,) = re.findall(r"spent: epsilon=([0-9.]+)", out)
    assert "account: wards, cap epsilon=3 at" in out and 2.99 < float(spent) <= 3


def test_the_classifier_tells_the_classes_that_no_client_has_enough_of(ended: Path) -> None:
    made, test = FederatedClassifier.load(ended / "out" / "classifier.safetensors"), make_ward(400, seed=77)
    inputs = np.stack([test[name].to_numpy() for name in INPUTS], axis=1).astype(np.float32)
    said = made.probabilities(torch.from_numpy(inputs)).argmax(axis=1)
    assert (np.array(CLASSES)[said] == np.array(test["label"])).mean() > 0.6  # a third by chance
    assert made.entries == tuple(line.ledger.charge for line in read_manifest(ended / "out").clients)


def test_the_report_says_who_took_part_and_what_epsilon_means(ended: Path) -> None:
    facts, page = json.loads((ended / "out" / "report.json").read_text()), (ended / "out" / "report.html").read_text()
    assert [one["name"] for one in facts["clients"]] == list(NAMES)
    assert all(2.99 < one["epsilon"] <= 3 and 0 < one["certainty"] < 1 for one in facts["clients"])
    assert sum(one["leads"] for one in facts["clients"]) == pytest.approx(1, abs=1e-3)
    assert "wards.west" in page and "<script" not in page
    meaning = json.loads((ended / "out" / CARD).read_text())["meaning"]
    by_noise, whatever_noise = (in_words(meaning[key]) for key in ("right_guesses", "right_guesses_of_budget"))
    _, plan, _ = run_cli("plan-federation", ended / "federation.yaml")
    assert f"whoever sees this wins {by_noise} of even bets" in plan and f"in at most {whatever_noise} of cases" in page
    assert f"at most {whatever_noise} of cases" in (ended / "out" / "statement.html").read_text()


def test_the_sheet_says_where_each_clients_account_stood_and_the_card_names_them_all(ended: Path) -> None:
    card = json.loads((ended / "out" / "model-card.json").read_text())
    assert [one["account"] for one in card["accounts"]] == [f"wards.{name}" for name in NAMES]
    assert {one["before"] for one in card["accounts"]} == {"0"} and {one["cap"] for one in card["accounts"]} == {"3.0"}
    assert [one["account"] for one in card["above"]] == ["wards"]
    page = (ended / "out" / "statement.html").read_text()
    assert (
        "one record of one client" in page.lower()
        and "<code>wards.north</code>" in page
        and "1 further client:" in page
    )
    assert all(f"wards.{name}" in (ended / "out" / "model-card.html").read_text() for name in NAMES)


@pytest.mark.parametrize("what", ["release", "cost", "client", "charge"])
def test_a_manifest_that_lies_about_a_client_is_found_out(ended: Path, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "out"
    shutil.copytree(ended / "out", folder)
    told = json.loads((folder / MANIFEST).read_text())
    first = told["clients"][0]
    if what == "release":
        first["release_sha256"] = "0" * 64
    elif what == "cost":
        first["spent"]["epsilon"] = "0.500000000000"
    elif what == "client":
        told["clients"].pop()
    else:
        first["run"] = "another"
    write_manifest(folder, told)
    assert not verify_hand_off(ended / "out").faults and verify_hand_off(folder).faults


def test_python_does_what_the_command_does(tmp_path: Path) -> None:
    config = yaml.safe_load(write_wards(tmp_path).read_text())
    made = nacre.federate({key: value for key, value in config.items() if key != "out"})
    assert made.folder.parent == tmp_path / "home" / "hand-offs" and not made.verify().faults
    assert "a classifier of 3 classes with 3 clients" in repr(made) and made.classifier.contract.name == "wards"
    again = nacre.federate(tmp_path / "federation.yaml", home=tmp_path / "other")
    assert again.folder == tmp_path / "out" and again.spent.epsilon == made.spent.epsilon
    assert nacre.resume(again.run, home=tmp_path / "other").folder == again.folder


def test_moments_are_the_other_method_and_their_plan_is_shown_beforehand(tmp_path: Path) -> None:
    model = {"method": "federated-moments", "extractor": {"features": 4, "width": 4, "pretraining": None}}
    config = write_wards(tmp_path, model=model)
    code, out, _ = run_cli("plan-federation", config)
    assert code == 0 and "wards.south" in out and "each client is charged on its own" in out
    assert not (tmp_path / "home").exists()
    assert run_cli("federate", config)[0] == 0 and not verify_hand_off(tmp_path / "out").faults
    assert FederatedClassifier.load(tmp_path / "out" / "classifier.safetensors").head.kind == "gaussians"
    assert run_cli("plan-federation", config)[0] == 1  # the accounts are used up


def test_a_client_that_joins_twice_is_refused_by_its_account(ended: Path, tmp_path: Path) -> None:
    config = FederateConfig.build({"out": tmp_path / "again"}, ended / "federation.yaml")
    with refused(BudgetExhausted, account="wards"):
        start(config)
    own = begun(tmp_path / "other")
    rival = start(FederateConfig.build({"out": tmp_path / "rival"}, tmp_path / "other" / "federation.yaml"))
    party = rival.parties[1]
    federate.take_part(party)  # between the start of one federation and its round another one charged this client
    carry_out(own, prefect=False)
    assert dropped(tmp_path / "other") == {"south": clients.REFUSED}
    assert not verify_hand_off(tmp_path / "other" / "out").faults


WRONG = {
    "a label that is no class": lambda good: good.set_column(4, "label", pa.array(["Quillfeather"] * len(good))),
    "a column less": lambda good: good.drop_columns("pulse"),
    "text for numbers": lambda good: good.set_column(0, "age", pa.array(["Quillfeather"] * len(good))),
    "too many records": lambda good: pa.concat_tables([good] * 4),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_records_drop_their_client_uncharged_and_the_round_goes_on(tmp_path: Path, what: str, caplog) -> None:
    run = begun(tmp_path)
    replace(tmp_path, "south", WRONG[what](make_ward(300, 1)))
    carry_out(run, prefect=False)
    assert dropped(tmp_path) == {"south": clients.UNFIT} and not verify_hand_off(tmp_path / "out").faults
    assert {entry.account for entry in ledger_of(tmp_path).entries() if entry.kind == "reserve"} == {
        "wards.north",
        "wards.west",
    }
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Quillfeather" not in caplog.text + everything(tmp_path) and clients.UNFIT in page


def test_data_that_are_not_found_drop_their_client_and_are_not_called_unfit(tmp_path: Path, capsys) -> None:
    run = begun(tmp_path)
    (tmp_path / "south" / "records.parquet").unlink()
    (tmp_path / "south").rmdir()
    carry_out(run, prefect=False)
    assert dropped(tmp_path) == {"south": clients.ABSENT} and not verify_hand_off(tmp_path / "out").faults
    show_hand_off(run)
    assert f"warning: client south was dropped: {clients.ABSENT}" in capsys.readouterr().err


def test_a_client_whose_path_does_not_exist_is_refused_by_name_before_anything_is_charged(tmp_path: Path) -> None:
    """It was dropped with a warning once the others had been charged, for a path that was mistyped."""
    content = yaml.safe_load(write_wards(tmp_path).read_text())
    content["clients"]["south"] = str(tmp_path / "suoth")
    (tmp_path / "federation.yaml").write_text(yaml.safe_dump(content))
    for command in ("plan-federation", "federate"):
        code, _, err = run_cli(command, tmp_path / "federation.yaml")
        assert code == 1 and f"clients.south={tmp_path / 'suoth'} must be a path, a pattern or a URI that leads" in err
    assert not (tmp_path / "home").exists() and not (tmp_path / "out").exists()
    content["clients"] = dict.fromkeys(content["clients"], "/on/the/clients/own/machine")
    (tmp_path / "federation.yaml").write_text(yaml.safe_dump(content))
    assert run_cli("federate", tmp_path / "federation.yaml")[0] == 1  # of this machine; over Flower a plan is enough
    assert run_cli("plan-federation", tmp_path / "federation.yaml")[0] == 0


def test_values_that_are_not_numbers_make_their_record_say_nothing(tmp_path: Path) -> None:
    run, bad = begun(tmp_path), make_ward(300, 1)
    replace(tmp_path, "south", bad.set_column(0, "age", pa.array([float("nan")] * 300)))
    carry_out(run, prefect=False)
    assert dropped(tmp_path) == {}
    head = read_release(run.parties[1].read("sanitize")).value.vector
    assert np.isfinite(head).all()


@pytest.mark.parametrize("which", ["public", "judge", "west", "a folder above", "a second name", "a link in a folder"])
def test_a_clients_files_are_nobody_elses_and_not_public(tmp_path: Path, which: str) -> None:
    """A network that was trained on a client's records would be handed over, and two clients' costs add up."""
    own, content = tmp_path / "north" / "records.parquet", yaml.safe_load(write_wards(tmp_path).read_text())
    (tmp_path / "link").symlink_to(tmp_path / "north")
    changed = {
        "public": {"public": str(own)},
        "judge": {"round": {"judge": str(tmp_path / "link" / "records.parquet")}},
        "west": {"clients": {**content["clients"], "west": str(tmp_path / "link")}},
        "a folder above": {"public": str(tmp_path)},
        "a second name": {"clients": {**content["clients"], "west": str(tmp_path / "second.parquet")}},
        "a link in a folder": {"clients": {**content["clients"], "west": str(tmp_path / "west")}},
    }
    (tmp_path / "second.parquet").hardlink_to(own)
    (tmp_path / "west").mkdir(exist_ok=True)
    (tmp_path / "west" / "records.parquet").unlink(missing_ok=True)
    (tmp_path / "west" / "records.parquet").symlink_to(own)
    with pytest.raises(Unsuitable, match=r"north and .* have files in common"):
        start(FederateConfig.build({**content, **changed[which]}))
    assert not (tmp_path / "home").exists()


def test_clients_places_in_an_object_store_are_nobody_elses_and_not_public(tmp_path: Path, bucket: Bucket) -> None:
    content = yaml.safe_load(write_wards(tmp_path).read_text())
    for name in NAMES:
        bucket.put(tmp_path / name, f"wards/{name}")
    apart = {name: bucket.uri(f"wards/{name}") for name in NAMES}
    for other in ("wards/north/", "wards/north/records.parquet", "wards", "wards/*/records.parquet"):
        for changed in ({"clients": {**apart, "west": bucket.uri(other)}}, {"public": bucket.uri(other)}):
            with pytest.raises(Unsuitable, match=r"north and .* have files in common"):
                start(FederateConfig.build({**content, "clients": apart, **changed}))
    with pytest.raises(InvalidArgument) as refusal:
        start(FederateConfig.build({**content, "clients": {**apart, "west": bucket.uri("wards/none")}}))
    assert refusal.value.name == "clients.west"
    with pytest.raises(InvalidArgument) as refusal:
        start(FederateConfig.build({**content, "clients": apart, "public": f"s3://nacre:{KEY}@wards/public.csv"}))
    assert refusal.value.name == "public" and KEY not in str(refusal.value) and not (tmp_path / "home").exists()
    run = start(FederateConfig.build({**content, "clients": apart}))
    bucket.delete("wards/west/records.parquet")
    carry_out(run, prefect=False)
    assert dropped(tmp_path) == {"west": clients.ABSENT} and charges(tmp_path / "home").count("reserve") == 2


def test_a_release_of_another_shape_drops_its_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = begun(tmp_path)
    real = federate.take_part

    def takes_part(party: Run) -> object:
        done = real(party)
        if party.name.endswith("west"):  # as if the client had put another file there
            other = pq.read_table(done.path)
            pq.write_table(other.slice(0, 5), done.path)
        return done

    monkeypatch.setattr(federate, "take_part", takes_part)
    carry_out(run, prefect=False)
    assert dropped(tmp_path) == {"west": federate.UNPLANNED}


def test_too_few_clients_make_no_classifier_and_may_mend_and_come_back(tmp_path: Path) -> None:
    run = begun(tmp_path, round={"workers": "here", "least_clients": 3})
    good = make_ward(300, 1)
    replace(tmp_path, "south", good.drop_columns("pulse"))
    with pytest.raises(nacre.NacreError, match=r"only 2 of 3 clients took part \(south: its records"):
        carry_out(run, prefect=False)
    replace(tmp_path, "south", good)
    carry_out(run, prefect=False)
    assert dropped(tmp_path) == {} and each_charged_once(tmp_path)


def test_each_clients_officer_signs_for_that_client(tmp_path: Path) -> None:
    config = write_wards(tmp_path)
    begun_run = start(FederateConfig.build({}, config))
    federate.take_part(begun_run.parties[0])
    federate.take_part(begun_run.parties[1])
    private, public = write_key(tmp_path / "dana.pem")
    home = ("--home", tmp_path / "home")
    named = ("officer", "wards", "--name", "Dana", "--key", public, "--reason", "the board asked for it")
    assert run_cli("ledger", *named, *home)[0] == 0
    west = begun_run.parties[2].name
    with pytest.raises(nacre.NacreError, match=f"Dana is to approve run {west}"):
        carry_out(begun_run, prefect=False)
    assert run_cli("approve", west, "--yes", "--key", private, *home)[0] == 0
    carry_out(begun_run, prefect=False)
    assert dropped(tmp_path) == {}
    found = verify_hand_off(tmp_path / "out")
    assert (
        found.faults == [] and found.approved.startswith("north, south: by nobody") and "west: Dana" in found.approved
    )
    whole = [
        verify_hand_off(tmp_path / "out", officer_key=key).faults
        for key in (public, write_key(tmp_path / "eve.pem")[1])
    ]
    assert [len(faults) for faults in whole] == [1, 2] and "approval of north, south" in whole[0][0]


# what follows starts a process for each client


@pytest.mark.slow
@pytest.mark.nightly  # in tests/kinds the clients of a server that is killed work in its own process
def test_a_server_that_is_killed_while_its_clients_work_goes_on_with_their_charges(tmp_path: Path) -> None:
    config = write_wards(tmp_path, round={"workers": "dask"})
    assert ends_at("distributed", "wait", True, "federate", config) == -signal.SIGKILL
    code, _, err = run_cli("resume", only_run(tmp_path), "--home", tmp_path / "home", "--no-prefect")
    assert code == 0, err
    assert dropped(tmp_path) == {} and each_charged_once(tmp_path) and not verify_hand_off(tmp_path / "out").faults


SERVER = """
import os, sys
from pathlib import Path
opened = []
def hear(event, args):
    if event in ("open", "os.listdir", "os.scandir") and isinstance(args[0], (str, bytes, os.PathLike)):
        opened.append(os.fsdecode(args[0]))
sys.addaudithook(hear)
from flows.command_line.show import show_hand_off
from flows.config import FederateConfig
from flows.start import start
from flows.synthesize import carry_out
run = start(FederateConfig.build({}, Path(sys.argv[1])))
carry_out(run, prefect=False)
private = sys.argv[2:] + [str(party.sensitive) for party in run.parties]
print(sorted({path for path in opened for place in private if path.startswith(place)}))
print(len(opened))
"""


SMALL = {"features": 4, "width": 4, "pretraining": None}
MODES: dict[str, dict[str, object]] = {
    "one release each": {},
    "one noise for all": {"model": {"method": "federated-moments", "trust": "central", "extractor": SMALL}},
    "rounds": {
        "model": {"measurement": {"records": 300}, "extractor": SMALL},
        "round": {
            "workers": "dask",
            "mode": "paper",
            "rounds": 1,
            "participation": 1,
        },
        "out": "",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.nightly_if("rounds", "one noise for all")
def test_the_server_opens_no_clients_file_and_a_planted_string_stays_with_its_client(tmp_path: Path, mode: str) -> None:
    """What an aggregator, or a server of rounds, is handed by clients lies in its own folder, not in theirs."""
    config = write_wards(tmp_path, **{"round": {"workers": "dask"}, **MODES[mode]})
    planted = make_ward(300, 1).append_column("name", pa.array(["Quillfeather"] * 300))
    replace(tmp_path, "south", planted)
    (tmp_path / "server.py").write_text(SERVER)
    words = [sys.executable, tmp_path / "server.py", config, *(tmp_path / name for name in NAMES)]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=os.environ | ROOT)
    assert done.returncode == 0, done.stderr
    of_clients, number = done.stdout.splitlines()[-2:]
    assert int(number) > 100  # the hook heard what was opened
    opened = [Path(path) for path in ast.literal_eval(of_clients) if not is_staged(path, mode)]
    assert [path for path in opened if not path.is_dir()] == []  # it lists names, to see that no file is two clients'
    found = [path for path in tmp_path.rglob("*") if path.is_file() and b"Quillfeather" in path.read_bytes()]
    assert found == [tmp_path / "south" / "records.parquet"] and "Quillfeather" not in done.stdout + done.stderr
    kinds = [entry.kind for entry in ledger_of(tmp_path).entries()]
    assert [kinds.count(kind) for kind in ("reserve", "seal", "commit")] == [3, 3, 3]
    assert mode == "rounds" or dropped(tmp_path) == {}


def is_staged(path: str, mode: str) -> bool:
    """Tell whether it is where an aggregator stages the one release for a client's account; never a client's data."""
    names, place = ("release.parquet", "draw-", ".lock-", ".part-"), Path(path)
    staged = place.parent.name == "sensitive" or any(name in place.name for name in names)
    return mode == "one noise for all" and "/sensitive/" in path and staged


ROOT = {"PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.mark.slow
@pytest.mark.nightly  # beside clients that work in the server's process, in tests/kinds
def test_workers_compute_the_same_bits_as_here_and_the_dead_and_the_late_are_named(
    tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    content = yaml.safe_load(write_wards(tmp_path).read_text())
    content["clients"]["north"] = bucket.put(tmp_path / "north")
    run = start(FederateConfig.build(content))
    for workers in ("here", "dask"):
        assert set(clients.run_clients(run.parties, digest_of_heads, workers, 120).values()) == {""}
    lines = [[line.split() for line in (own.sensitive / "digests").read_text().splitlines()] for own in run.parties]
    assert all(here[1] == there[1] for here, there in lines)
    assert len({there[0] for _, there in lines}) == 3 and {here[0] for here, _ in lines} == {str(os.getpid())}
    monkeypatch.setattr(logging.getLogger("distributed"), "propagate", True)  # as Prefect has it
    said = clients.run_clients(run.parties, dies, "dask", 25)
    assert list(said.values()) == [clients.LOST, "", clients.LATE]
    assert not [one for one in caplog.records if one.name.startswith("distributed")]
    with refused(InvalidArgument, name="workers"):
        clients.run_clients(run.parties, dies, "federate", 10)


def ask_sqlite(config: Path, wards: tuple[str, ...] = ("north",), **changes: object) -> Path:
    """Move wards' records into a database each, and have the federation ask them."""
    content, folder = yaml.safe_load(config.read_text()), config.parent
    for ward in wards:
        path = folder / f"{ward}.db"
        with closing(sqlite3.connect(path)) as database:
            pq.read_table(folder / ward).to_pandas().to_sql("records", database, index=False)
        shutil.rmtree(folder / ward)
        content["clients"][ward] = f"sqlite:///{path}"
        content.setdefault("queries", {})[ward] = "select * from records"
    config.write_text(yaml.safe_dump({**content, **changes}))
    return config


def test_a_client_whose_records_a_database_holds_takes_part(tmp_path: Path) -> None:
    config = ask_sqlite(write_wards(tmp_path))
    assert run_cli("plan-federation", config)[0] == 0
    code, _, err = run_cli("federate", config)
    assert code == 0, err
    assert verify_hand_off(tmp_path / "out").faults == [] and dropped(tmp_path) == {}
    content = yaml.safe_load(config.read_text()) | {"name": "others", "out": str(tmp_path / "again")}
    config.write_text(yaml.safe_dump(content))
    code, _, err = run_cli("federate", config, "--open")
    assert code == 1 and err.count("charged to another account") == 3


def test_what_a_database_answers_is_what_a_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever batches the answer comes in, one of which is all null and one of whole numbers."""
    rows = make_ward(40, 3).to_pylist()
    for row in rows[7:14]:
        row["age"] = None
    for row in rows[14:21]:
        row["pulse"] = round(row["pulse"])
    ward = pa.Table.from_pylist([{**row, "pulse": float(row["pulse"])} for row in rows])
    pq.write_table(ward, tmp_path / "ward.parquet")
    with closing(sqlite3.connect(tmp_path / "ward.db")) as database:
        database.execute(
            f"create table records ({', '.join(rows[0])})"
        )  # without types, so that each value has its own
        database.executemany("insert into records values (?, ?, ?, ?, ?)", [tuple(row.values()) for row in rows])
        database.commit()
    monkeypatch.setattr(records, "BATCH_ROWS", 7)
    spec, contract = records.RecordsSpec(inputs=INPUTS), SimpleNamespace(classes=CLASSES, most=1000, size=None)
    asked = records.load_examples(Query(f"sqlite:///{tmp_path / 'ward.db'}", "records"), spec, contract).reveal()
    given = records.load_examples(tmp_path / "ward.parquet", spec, contract).reveal()
    assert torch.equal(asked.labels, given.labels) and given.inputs.isnan().sum() == 7
    assert torch.equal(asked.inputs.nan_to_num(-1), given.inputs.nan_to_num(-1))


@pytest.mark.parametrize(
    ("wards", "changes", "words"),
    [
        ((), {"queries": {"east": "records"}}, "be of a client that is named"),
        ((), {"queries": {"north": "records"}}, "the URL of a database"),
        (("north",), {"queries": {}}, "clients.north"),
        (("north",), {"queries": {"north": "delete from records"}}, "read"),
    ],
)
def test_a_query_that_cannot_be_a_clients_is_refused_before_anything_is_charged(
    tmp_path: Path, wards: tuple[str, ...], changes: dict[str, object], words: str
) -> None:
    code, _, err = run_cli("federate", ask_sqlite(write_wards(tmp_path), wards, **changes))
    assert code == 1 and words in " ".join(err.split()), err
    assert not (tmp_path / "home").exists()


def test_two_clients_do_not_ask_one_database_the_same(tmp_path: Path) -> None:
    config = ask_sqlite(write_wards(tmp_path))
    content = yaml.safe_load(config.read_text())
    for key in ("clients", "queries"):
        content[key]["south"] = content[key]["north"]
    config.write_text(yaml.safe_dump(content))
    code, _, err = run_cli("federate", config)
    assert code == 1 and "north and south ask one database the same" in " ".join(err.split())
