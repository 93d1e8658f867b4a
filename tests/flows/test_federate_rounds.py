"""Rounds without a guarantee: no epsilon is stated, nothing leaves without consent, and every round can be resumed."""

import json
import re
import shutil
import signal
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml

import nacre
from dpmodels.artifact import sha256_of
from dpmodels.contract.federation import UNCHARGED, UNPROTECTED
from dpmodels.errors import InvalidArgument, NacreError
from dpmodels.hand_off.manifest import CARD, MANIFEST, read_manifest
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.methods.federations.messages import read_server, read_update, write_update
from dpmodels.methods.federations.models import ModelSpec, build, loaded, state_of
from dpmodels.methods.federations.rounds import Update, accuracy
from dpmodels.methods.federations.trained_classifier import TrainedClassifier
from flows.description import describe_run
from flows.partitions import explain
from flows.synthesize import carry_out, record
from flows.with_prefect.budget import balances
from tasks.kinds import clients
from tasks.run.accounts import officer_of
from tasks.run.remove import charged_for
from tasks.run.store import Run
from tasks.stages import rounds
from tests.kit.children import ends_at
from tests.kit.manifests import write_manifest
from tests.kit.parties import SPEC as MODEL
from tests.kit.parties import make_examples
from tests.kit.support import charges, run_cli, write_key
from tests.kit.wards import (
    CLASSES,
    INPUTS,
    NAMES,
    begun,
    dropped,
    each_charged_once,
    ledger_of,
    make_ward,
    only_run,
    replace,
    train_or_die,
    write_wards,
)

pytestmark = pytest.mark.processes

SCORES = {"measurement": {"records": 300}, "training": {"local": {"epochs": 3, "learning_rate": 0.01}}}
EXTRACTOR = {"features": 8, "width": 4, "pretraining": {"steps": 5, "batch_size": 32}}


def paper(folder: Path, **changes: object) -> dict[str, object]:
    terms = {"mode": "paper", "rounds": 3, "participation": 1.0, "judge": str(folder / "judge.parquet")}
    return {"workers": "here", "allow_unprotected_models": True, **terms, **changes}


def write_rounds(folder: Path, model: dict[str, object] | None = None, **changes: object) -> Path:
    return write_wards(
        folder, model={**SCORES, "extractor": EXTRACTOR, **(model or {})}, round=paper(folder, **changes)
    )


def begun_rounds(folder: Path, **changes: object) -> Run:
    return begun(folder, model={**SCORES, "extractor": EXTRACTOR}, round=paper(folder, **changes))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a federation that was trained in rounds and handed over with consent."""
    folder = tmp_path_factory.mktemp("rounds")
    code, _, err = run_cli("federate", write_rounds(folder))
    assert code == 0, err
    return folder


def facts_of(folder: Path) -> dict:
    return json.loads((folder / "out" / "report.json").read_text())


def test_no_epsilon_is_stated_of_what_is_handed_over(ended: Path) -> None:
    told, manifest = json.loads((ended / "out" / MANIFEST).read_text()), read_manifest(ended / "out")
    assert not {"asked", "spent", "events", "total_spent"} & told.keys() and told["unprotected"] == UNPROTECTED
    assert manifest.method == "federated-scores"
    assert all(2.99 < line.price.spent.epsilon <= 3 for line in manifest.clients)  # of the scores
    with pytest.raises(NacreError, match="states no epsilon, because none holds"):
        _ = manifest.whole_cost
    facts = facts_of(ended)
    assert [facts["privacy"][name] for name in ("spent_epsilon", "total_epsilon", "delta")] == [None] * 3
    assert 2.99 < facts["privacy"]["scores_alone"]["spent_epsilon"] <= 3 and facts["cautions"][0] == UNPROTECTED
    code, out, err = run_cli("verify", ended / "out")
    assert code == 3 and "NONE: NO EPSILON HOLDS" in out and "The scores cost epsilon=2.9" in out and UNPROTECTED in err
    page = (ended / "out" / "report.html").read_text()
    assert "NO EPSILON HOLDS" in page and "guesses right" not in page and "<dd>none" in page
    made = nacre.Result(ended / "out")
    assert "NO EPSILON HOLDS" in made.statement and "no price of the models" in made.statement
    assert not any(word in made.statement for word in ("In odds", "In guesses", "What was promised"))
    card = json.loads((ended / "out" / CARD).read_text())
    assert card["meaning"] == {} and card["hand_off"]["epsilon"] is None and card["hand_off"]["charges"] == []
    assert "WITHOUT a guarantee" in (ended / "out" / "model-card.html").read_text()
    assert made.spent.epsilon == Decimal("Infinity") and "no epsilon holds" in repr(made)


def test_the_plan_states_the_price_of_the_scores_alone(tmp_path: Path) -> None:
    code, out, _ = run_cli("plan-federation", write_rounds(tmp_path))
    own = [line for line in out.splitlines() if not line.startswith("account: wards, opens with this run, cap")]
    priced = [line for line in own if "epsilon=" in line or "bets" in line]
    assert code == 0 and len(priced) == 2 and all(line.startswith("scores alone: ") for line in priced)
    assert UNPROTECTED in out


@pytest.mark.parametrize("lie", ["an epsilon", "silence", "protected"])
def test_a_manifest_that_states_an_epsilon_of_such_models_is_found_out(ended: Path, tmp_path: Path, lie: str) -> None:
    folder = tmp_path / "out"
    shutil.copytree(ended / "out", folder)
    told = json.loads((folder / MANIFEST).read_text())
    first = told["clients"][0]
    stated = {name: first[name] for name in ("asked", "spent", "events")}
    if lie == "an epsilon":
        told |= stated
    else:
        del told["unprotected"]
        told |= stated if lie == "protected" else {}
    write_manifest(folder, told)
    assert verify_hand_off(folder).faults


def test_another_methods_name_and_the_scores_price_do_not_make_such_models_private(ended: Path, tmp_path: Path) -> None:
    """Manifest and report were of one mind, with the price of the clients' lines; the classifier knows better."""
    folder = tmp_path / "out"
    shutil.copytree(ended / "out", folder)
    told, facts = (json.loads((folder / name).read_text()) for name in (MANIFEST, "report.json"))
    del told["unprotected"]
    told |= {name: told["clients"][0][name] for name in ("asked", "spent", "events")} | {"method": "federated-heads"}
    price = dict.fromkeys(("spent_epsilon", "total_epsilon"), float(told["spent"]["epsilon"]))
    facts["privacy"] |= price | {"delta": told["spent"]["delta"]}
    (folder / "report.json").write_text(json.dumps(facts))
    told["artifacts"]["report.json"] = sha256_of(folder / "report.json")
    write_manifest(folder, told)
    assert verify_hand_off(folder).faults == [
        "the manifest states an epsilon of a classifier that was trained without any noise"
    ]


def test_the_model_learns_from_all_and_every_round_is_kept_inside(ended: Path) -> None:
    facts = facts_of(ended)
    assert [one["number"] for one in facts["rounds"]] == [1, 2, 3] and facts["rounds"][-1]["accuracy"] > 0.6
    made, judge = TrainedClassifier.load(ended / "out" / "classifier.safetensors"), make_ward(200, 10)
    inputs = torch.from_numpy(np.stack([judge[name].to_numpy() for name in INPUTS], axis=1).astype(np.float32))
    said = np.array(CLASSES)[made.probabilities(inputs).argmax(axis=1)]
    right = (said == np.array(judge["label"])).mean()
    assert right == pytest.approx(facts["rounds"][-1]["accuracy"], abs=1e-4)
    run = Run.find(ended / "home", only_run(ended))
    for number in (1, 2, 3):
        folder = rounds.round_folder(run, number)
        assert {path.name for path in folder.iterdir()} == {"server.safetensors", "soft-labels.parquet", "round.json"}
        assert folder.stat().st_mode & 0o777 == 0o700
    labels = pq.read_table(ended / "out" / "soft-labels.parquet")
    assert labels["row"].to_pylist() == list(range(40, 200))  # a fifth of the public records tells clients from others
    assert [f"certainty of {name}" in labels.column_names for name in NAMES] == [True] * 3
    page = (ended / "out" / "report.html").read_text()
    assert page.count("<svg") >= 3 and "Accuracy" in page and "Participation" in page


@pytest.mark.parametrize("algorithm", ["fedavg", "fedprox", "feddf", "fedbe"])
def test_every_algorithm_takes_the_same_flow_and_charges_nothing_that_it_does_not_use(
    tmp_path: Path, algorithm: str
) -> None:
    carry_out(begun_rounds(tmp_path, algorithm=algorithm, rounds=2), prefect=False)
    assert charges(tmp_path / "home") == [] and not ledger_of(tmp_path).accounts()
    assert facts_of(tmp_path)["compared"]["classifiers"][0]["name"].startswith(f"the model of {algorithm}")
    assert facts_of(tmp_path)["rounds"][-1]["accuracy"] > 0.45 and not verify_hand_off(tmp_path / "out").faults


@pytest.fixture(scope="module")
def uncharged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a federation that draws nothing; one of its clients has records of other columns."""
    folder = tmp_path_factory.mktemp("uncharged")
    config = write_rounds(folder, algorithm="fedavg", rounds=1)
    replace(folder, "south", make_ward(30, 1).drop_columns("pulse"))
    code, _, err = run_cli("federate", config)
    assert code == 0, err
    return folder


def test_what_nothing_was_charged_for_is_called_neither_free_nor_private(uncharged: Path) -> None:
    told, manifest = json.loads((uncharged / "out" / MANIFEST).read_text()), read_manifest(uncharged / "out")
    assert told["format"] == 9 and told["uncharged"] == ["north", "west"] and told["unprotected"] == UNCHARGED
    assert manifest.dropped == {"south": clients.UNFIT}
    absent = {"asked", "spent", "events", "ledger", "plan_sha256", "release_sha256", "clients", "trust", "total_spent"}
    assert not absent & told.keys()
    code, out, err = run_cli("verify", uncharged / "out")
    assert code == 3 and "NONE: NO EPSILON HOLDS" in out and "does not make it private" in out and UNCHARGED in err
    facts, card = facts_of(uncharged), json.loads((uncharged / "out" / CARD).read_text())
    assert facts["privacy"]["spent_epsilon"] is None and "scores_alone" not in facts["privacy"]
    assert card["hand_off"]["epsilon"] is None and card["hand_off"]["delta"] is None and card["accounts"] == []
    assert facts["clients"][0] == {"name": "north", "account": "", "dropped": ""}
    for name in ("report.html", "model-card.html", "statement.html", "data-sheet.html"):
        page = (uncharged / "out" / name).read_text()
        assert "NO EPSILON HOLDS" in page and "does not make it private" in page, name
        assert not re.search(r"(ε|epsilon)[ =]*\d|None[^:]|[cC]ertainty|Noise was|noise was|spent before</th>", page), (
            name
        )
        assert "north" in page or name != "model-card.html"
    made = nacre.Result(uncharged / "out")
    assert "no epsilon holds, account none" in repr(made) and "hides   nothing" in repr(made)
    assert made.spent.epsilon == Decimal("Infinity")


def test_the_plan_of_what_draws_nothing_states_no_price(tmp_path: Path) -> None:
    code, out, _ = run_cli("plan-federation", write_rounds(tmp_path, algorithm="fedprox"))
    assert code == 0 and UNCHARGED in out and "charge: nothing" in out
    assert "epsilon=" not in out and "account:" not in out


@pytest.mark.parametrize(
    "change",
    [
        {"method": "federated-scores"},
        {"unprotected": None},
        {"ledger": {"charge": "0" * 64}},
        {"release_sha256": "0" * 64},
        {"asked": {"epsilon": 1, "delta": 0}, "spent": {"epsilon": "0", "delta": 0}},
        {"uncharged": None},
        {"dropped": {"north": "it was late"}},
        {"trust": "local"},
    ],
)
def test_a_manifest_without_a_charge_says_nothing_else(
    uncharged: Path, tmp_path: Path, change: dict[str, object]
) -> None:
    folder = tmp_path / "out"
    shutil.copytree(uncharged / "out", folder)
    told = json.loads((folder / MANIFEST).read_text()) | change
    write_manifest(folder, {name: value for name, value in told.items() if value is not None})
    assert verify_hand_off(folder).faults


def test_a_flow_run_that_charges_nothing_is_described_and_recorded(tmp_path: Path) -> None:
    run = begun_rounds(tmp_path, algorithm="fedavg", rounds=1)
    assert describe_run(run)["caution"] == UNCHARGED and "nothing is charged" in explain(ledger_of(tmp_path), run, "")
    assert officer_of(run) is None and balances(run) == {}
    record(run, False, lambda stage, *handles: stage(*handles))
    assert not verify_hand_off(tmp_path / "out").faults and charged_for(run) == []


def test_an_officer_cannot_be_passed_by_because_nothing_is_charged(tmp_path: Path) -> None:
    """An officer signs charges, and could have refused those of the scores."""
    carry_out(begun_rounds(tmp_path, rounds=1), prefect=False)
    _, public = write_key(tmp_path / "dana.pem")
    named = ("--name", "Dana", "--key", public, "--reason", "the board asked for it", "--home", tmp_path / "home")
    assert run_cli("ledger", "officer", "wards", *named)[0] == 0
    config = yaml.safe_load((tmp_path / "federation.yaml").read_text())
    config["round"]["algorithm"], config["out"] = "fedavg", str(tmp_path / "again")
    (tmp_path / "federation.yaml").write_text(yaml.safe_dump(config))
    code, _, err = run_cli("federate", tmp_path / "federation.yaml")
    assert code == 1 and "account wards has an officer" in err and not (tmp_path / "again").exists()


def test_without_consent_nothing_leaves_and_it_can_be_given_later(tmp_path: Path) -> None:
    run = begun_rounds(tmp_path, allow_unprotected_models=False, rounds=1)
    with pytest.raises(NacreError, match=f"nacre resume {run.name} --allow-unprotected-models"):
        carry_out(run, prefect=False)
    assert not (tmp_path / "out").exists() and not (run.control / "report").exists()
    kept = [
        path for path in (tmp_path / "home").rglob("*") if path.name in ("server.safetensors", "soft-labels.parquet")
    ]
    assert kept and all((tmp_path / "home" / "sensitive") in path.parents for path in kept)
    code, _, err = run_cli(
        "resume", run.name, "--home", tmp_path / "home", "--no-prefect", "--allow-unprotected-models"
    )
    assert code == 0, err
    assert not verify_hand_off(tmp_path / "out").faults and each_charged_once(tmp_path)


def test_only_a_federation_in_paper_mode_asks_for_that_consent(tmp_path: Path) -> None:
    run = begun(tmp_path)
    code, _, err = run_cli("resume", run.name, "--home", tmp_path / "home", "--allow-unprotected-models")
    assert code == 1 and "trains no models without a guarantee" in err


def test_modes_and_settings_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    for number, (model, mode, words) in enumerate(
        [
            ({"method": "federated-heads"}, "paper", "for the paper mode"),
            ({"method": "federated-scores"}, "private", "for the private mode"),
            ({"training": {"locally": {}}}, "paper", "locally"),
            ({"training": {"model": {}}}, "paper", "settled elsewhere"),
        ]
    ):
        config = {"extractor": EXTRACTOR, "measurement": {"records": 300}, **model}
        with pytest.raises(InvalidArgument, match=words):
            begun(tmp_path / str(number), model=config, round=paper(tmp_path, mode=mode, judge=None))


def spoiled(content: bytes, how: str) -> bytes:
    """Return what a client sends that is broken or means harm."""
    update = read_update(content)
    weights = dict(update.weights)
    if how == "numbers":
        weights["head.bias"] = torch.full_like(weights["head.bias"], torch.nan)
    if how == "shape":
        weights["head.weight"] = weights["head.weight"][:, :-1].clone()
    if how == "classes":
        weights = state_of(build("mlp", ModelSpec(inputs=(4,), classes=5, width=4), 0))
    client = "north" if how == "another" else update.client
    return b"Quillfeather" if how == "junk" else write_update(Update(client, "mlp", update.records, weights))


def write_images(folder: Path, architectures: dict[str, str]) -> Path:
    """Write a federation of images, which lie in one column as lists."""
    for place, name in enumerate([*NAMES, "public", "judge"]):
        own = make_examples(160, seed=place)
        table = pa.table({"pixels": own.inputs.reshape(160, -1).tolist(), "label": own.labels.numpy()})
        pq.write_table(table, folder / f"{name}.parquet")
    training = {"local": {"epochs": 6, "learning_rate": 0.01, "batch_size": 16}}
    extractor = {"architecture": "resnet8", "features": 8, "width": 4, "pretraining": {"steps": 8, "batch_size": 32}}
    content = {
        "name": "corners",
        "clients": {name: str(folder / f"{name}.parquet") for name in NAMES},
        "public": str(folder / "public.parquet"),
        "classes": ["0", "1", "2", "3"],
        "records": {"inputs": ["pixels"], "shape": [1, 8, 8]},
        "most_records": 1000,
        "out": str(folder / "out"),
        "privacy": {"target_epsilon": 3.0, "delta": 1e-5},
        "model": {**SCORES, "training": training, "extractor": extractor, "architectures": architectures},
        "round": paper(folder, rounds=2),
        "runtime": {"home": str(folder / "home"), "prefect": False},
    }
    (folder / "federation.yaml").write_text(yaml.safe_dump(content))
    return folder / "federation.yaml"


def test_clients_of_other_architectures_learn_from_each_other(tmp_path: Path) -> None:
    code, _, err = run_cli("federate", write_images(tmp_path, {"west": "shufflenet"}))
    assert code == 0, err
    assert dropped(tmp_path) == {} and not verify_hand_off(tmp_path / "out").faults
    run = Run.find(tmp_path / "home", only_run(tmp_path))
    servers = [read_server((rounds.round_folder(run, n) / "server.safetensors").read_bytes()) for n in (0, 2)]
    assert [list(server.models) for server in servers] == [["resnet8", "shufflenet"]] * 2
    for name in ("resnet8", "shufflenet"):
        before, after = (
            accuracy(loaded(name, MODEL, server.models[name]), make_examples(400, seed=9)) for server in servers
        )
        assert after > before + 0.2, (name, before, after)
    assert TrainedClassifier.load(tmp_path / "out" / "classifier.safetensors").architecture == "resnet8"


@pytest.mark.parametrize(
    ("architectures", "words"),
    [
        ({"east": "mobilenet"}, "for clients of the federation"),
        (dict.fromkeys(NAMES, "mobilenet"), "leave resnet8 to one of them"),
        ({"west": "mlp"}, "mlp for a table"),
    ],
)
def test_architectures_that_do_not_fit_are_refused(tmp_path: Path, architectures: dict[str, str], words: str) -> None:
    code, _, err = run_cli("federate", write_images(tmp_path, architectures))
    assert code == 1 and words in err and not (tmp_path / "home").exists()


WHY = {
    "numbers": "its weights are not all numbers",
    "shape": "its weights have other shapes than the server's",
    "classes": "it has another number of classes than the server",
    "junk": rounds.UNREADABLE,
    "another": rounds.ANOTHERS,
}


@pytest.mark.parametrize("how", WHY)
def test_a_client_that_sends_what_cannot_be_used_is_dropped_for_the_round(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = rounds.train_one

    def trains(run: Run, number: int) -> object:
        done = real(run, number)
        if run.name.endswith("south") and number == 1:
            done.path.write_bytes(spoiled(done.path.read_bytes(), how))
        return done

    monkeypatch.setattr(rounds, "train_one", trains)
    carry_out(begun_rounds(tmp_path, rounds=2), prefect=False)
    assert [one["dropped"] for one in facts_of(tmp_path)["rounds"]] == [{"south": WHY[how]}, {}]
    assert dropped(tmp_path) == {} and WHY[how] in (tmp_path / "out" / "report.html").read_text().replace("&#39;", "'")


def test_clients_are_drawn_for_each_round(tmp_path: Path) -> None:
    carry_out(begun_rounds(tmp_path, rounds=4, participation=0.4), prefect=False)
    drawn = [one["drawn"] for one in facts_of(tmp_path)["rounds"]]
    assert {len(one) for one in drawn} == {1} and len({one[0] for one in drawn}) > 1


MOMENTS = {
    "a client trains": ("tasks.stages.rounds", "train_client"),
    "a client sends": ("tasks.stages.rounds", "transform_kept"),
    "the server adds up": ("tasks.stages.rounds", "aggregate"),
    "a round ends": ("tasks.stages.rounds", "write_text"),
    "the server reports": ("tasks.stages.classify", "render"),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("before", [True, False])
def test_killed_and_resumed_the_rounds_are_the_same_and_nothing_is_charged_again(
    ended: Path, tmp_path: Path, moment: str, before: bool
) -> None:
    config = write_rounds(tmp_path)
    assert ends_at(*MOMENTS[moment], before, "federate", config) == -signal.SIGKILL
    code, _, err = run_cli("resume", only_run(tmp_path), "--home", tmp_path / "home", "--no-prefect")
    assert code == 0, err
    assert each_charged_once(tmp_path) and not verify_hand_off(tmp_path / "out").faults
    assert len(facts_of(tmp_path)["rounds"]) == 3


def test_a_round_that_was_cut_off_is_taken_again_and_ends_alike(tmp_path: Path) -> None:
    run = begun_rounds(tmp_path, algorithm="feddf")  # it uses no certainties, so the seed decides everything
    carry_out(run, prefect=False)
    last = (rounds.round_folder(run, 3) / "server.safetensors").read_bytes()
    shutil.rmtree(rounds.round_folder(run, 3))
    (rounds.round_folder(run, 2) / "round.json").unlink()
    rounds.train_in_rounds(run, run.finished("round"))
    assert (rounds.round_folder(run, 3) / "server.safetensors").read_bytes() == last


# what follows starts a process for each client


@pytest.mark.slow
@pytest.mark.nightly
def test_a_client_that_is_killed_in_a_round_is_dropped_for_it_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "train_one", train_or_die)
    carry_out(begun_rounds(tmp_path, rounds=2, workers="dask"), prefect=False)
    assert [one["dropped"] for one in facts_of(tmp_path)["rounds"]] == [{"south": clients.LOST}, {}]
    assert dropped(tmp_path) == {} and each_charged_once(tmp_path) and not verify_hand_off(tmp_path / "out").faults
