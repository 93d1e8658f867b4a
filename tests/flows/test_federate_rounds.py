"""Rounds without a guarantee: no epsilon is stated, nothing leaves, and every round can be resumed."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import yaml

import nacre
from dpmodels.contract.federation import STAYS_INSIDE
from dpmodels.errors import InvalidArgument, Unsuitable
from dpmodels.methods.federations.messages import read_server, read_update, write_update
from dpmodels.methods.federations.models import ModelSpec, build, loaded, state_of
from dpmodels.methods.federations.rounds import Server, Update, accuracy, predict
from flows.building import NOTHING_LEAVES
from flows.description import describe_run
from flows.partitions import explain
from flows.synthesize import carry_out, record
from flows.with_prefect.artifacts import publish_results
from flows.with_prefect.budget import balances
from tasks.kinds import clients
from tasks.run.accounts import officer_of
from tasks.run.remove import charged_for
from tasks.run.runs import inside, listed
from tasks.run.store import Run
from tasks.stages import rounds
from tests.kit.deaths import killed_anew
from tests.kit.parties import SPEC as MODEL
from tests.kit.parties import make_examples
from tests.kit.support import charges, run_cli, write_key
from tests.kit.wards import (
    CLASSES,
    INPUTS,
    NAMES,
    begun,
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
    return {"workers": "here", **terms, **changes}


def write_rounds(folder: Path, model: dict[str, object] | None = None, **changes: object) -> Path:
    terms = {**SCORES, "extractor": EXTRACTOR, **(model or {})}
    return write_wards(folder, out="", model=terms, round=paper(folder, **changes))


def begun_rounds(folder: Path, **changes: object) -> Run:
    return begun(folder, out="", model={**SCORES, "extractor": EXTRACTOR}, round=paper(folder, **changes))


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a federation that was trained in rounds."""
    folder = tmp_path_factory.mktemp("rounds")
    code, _, err = run_cli("federate", write_rounds(folder))
    assert code == 0, err
    return folder


def run_of(folder: Path) -> Run:
    return Run.find(folder / "home", only_run(folder))


def facts_of(folder: Path) -> dict:
    return json.loads((inside(run_of(folder)) / rounds.FACTS).read_text())


def page_of(folder: Path) -> str:
    return (inside(run_of(folder)) / rounds.PAGE).read_text().replace("&#39;", "'")


def left_out(folder: Path) -> dict[str, str]:
    """Return the clients that the page names as dropped."""
    return {one["name"]: one["dropped"] for one in facts_of(folder)["clients"] if one["dropped"]}


def leaves_nothing(folder: Path) -> bool:
    """Tell whether there is no hand-off, and nothing of a model outside the sensitive zone."""
    made = ("server.safetensors", "soft-labels.parquet", "classifier.safetensors", "manifest.json", "report.json")
    found = [path for path in folder.rglob("*") if path.name in (*made, rounds.PAGE, rounds.FACTS)]
    sensitive = folder / "home" / "sensitive"
    return bool(found) and all(sensitive in path.parents for path in found)


def test_no_epsilon_is_stated_and_nothing_is_handed_over(ended: Path) -> None:
    facts, page, run = facts_of(ended), page_of(ended), run_of(ended)
    assert leaves_nothing(ended) and not (ended / "out").exists() and each_charged_once(ended)
    assert facts["why"] == STAYS_INSIDE["federated-scores"] and facts["why"].replace("'", "") in page.replace("'", "")
    assert 2.99 < facts["scores"]["spent_epsilon"] <= 3 and "guesses right" not in page
    assert page.count("<svg") >= 2 and "Accuracy" in page and "Participation" in page
    for name in (rounds.PAGE, rounds.FACTS):
        assert (inside(run) / name).stat().st_mode & 0o777 == 0o600
    assert all(party.finished("sanitize") for party in run.parties)  # the scores, which are paid for, are released


def test_a_run_in_rounds_is_finished_and_stays_so(ended: Path, tmp_path: Path) -> None:
    shutil.copytree(ended / "home", tmp_path / "home")
    run, home = Run.find(tmp_path / "home", only_run(ended)), ("--home", tmp_path / "home")
    assert listed(run).state == "finished" and f"{run.name}" in run_cli("runs", *home)[1]
    page = inside(run) / rounds.PAGE
    written = page.stat().st_mtime_ns
    code, out, err = run_cli("resume", run.name, *home, "--no-prefect")
    assert code == 0 and str(page) in out.replace("\n", "") and page.stat().st_mtime_ns == written, err
    code, _, err = run_cli("resume", run.name, *home, "--out", tmp_path / "out")
    assert code == 1 and NOTHING_LEAVES in err and not (tmp_path / "out").exists()
    code, _, err = run_cli("report", run.name, *home)
    assert code == 1 and "hands nothing over" in err
    shutil.rmtree(run.sensitive)
    assert run_cli("resume", run.name, *home, "--no-prefect")[0] == 0 and not inside(run).exists()


@pytest.mark.parametrize("how", ["consent", "out"])
def test_a_configuration_that_would_hand_models_over_gets_a_sentence(tmp_path: Path, how: str) -> None:
    changes = {"allow_unprotected_models": True} if how == "consent" else {}
    config = write_rounds(tmp_path, **changes)
    out = ("--out", tmp_path / "out") if how == "out" else ()
    code, _, err = run_cli("federate", config, *out)
    assert code == 1 and NOTHING_LEAVES in err and not (tmp_path / "home").exists()


def test_one_release_a_client_is_handed_over_somewhere(tmp_path: Path) -> None:
    code, _, err = run_cli("federate", write_wards(tmp_path, out=""))
    assert code == 1 and "--out is missing" in err and not (tmp_path / "home").exists()


def test_the_plan_states_the_price_of_the_scores_alone(tmp_path: Path) -> None:
    code, out, _ = run_cli("plan-federation", write_rounds(tmp_path))
    own = [line for line in out.splitlines() if not line.startswith("account: wards, opens with this run, cap")]
    priced = [line for line in own if "epsilon=" in line or "bets" in line]
    assert code == 0 and len(priced) == 2 and all(line.startswith("scores alone: ") for line in priced)
    assert STAYS_INSIDE["federated-scores"] in out


def test_the_model_learns_from_all_and_every_round_is_kept_inside(ended: Path) -> None:
    facts = facts_of(ended)
    assert [one["number"] for one in facts["rounds"]] == [1, 2, 3] and facts["rounds"][-1]["accuracy"] > 0.6
    server, judge = last_server(ended), make_ward(200, 10)
    inputs = torch.from_numpy(np.stack([judge[name].to_numpy() for name in INPUTS], axis=1).astype(np.float32))
    model = loaded("mlp", ModelSpec(inputs=(4,), classes=3, width=4), server.models["mlp"])
    said = np.array(CLASSES)[predict(model, inputs).argmax(axis=1)]
    right = (said == np.array(judge["label"])).mean()
    assert right == pytest.approx(facts["rounds"][-1]["accuracy"], abs=1e-4)
    run = Run.find(ended / "home", only_run(ended))
    for number in (1, 2, 3):
        folder = rounds.round_folder(run, number)
        assert {path.name for path in folder.iterdir()} == {"server.safetensors", "soft-labels.parquet", "round.json"}
        assert folder.stat().st_mode & 0o777 == 0o700
    labels = pq.read_table(rounds.round_folder(run, 3) / "soft-labels.parquet")
    assert labels["row"].to_pylist() == list(range(40, 200))  # a fifth of the public records tells clients from others


def last_server(folder: Path) -> Server:
    return read_server((rounds.round_folder(run_of(folder), 3) / "server.safetensors").read_bytes())


@pytest.mark.parametrize("algorithm", ["fedavg", "fedprox", "feddf", "fedbe"])
def test_every_algorithm_takes_the_same_flow_and_charges_nothing_that_it_does_not_use(
    tmp_path: Path, algorithm: str
) -> None:
    carry_out(begun_rounds(tmp_path, algorithm=algorithm, rounds=2), prefect=False)
    assert charges(tmp_path / "home") == [] and not ledger_of(tmp_path).accounts()
    assert facts_of(tmp_path)["rounds"][-1]["accuracy"] > 0.45 and leaves_nothing(tmp_path)


def test_what_nothing_was_charged_for_is_called_neither_free_nor_private(tmp_path: Path) -> None:
    config = write_rounds(tmp_path, algorithm="fedavg", rounds=1)
    replace(tmp_path, "south", make_ward(30, 1).drop_columns("pulse"))
    code, out, err = run_cli("federate", config)
    assert code == 0 and rounds.PAGE in out.replace("\n", "") and "nothing was charged" in out, err
    facts, page = facts_of(tmp_path), page_of(tmp_path)
    assert facts["scores"] is None and left_out(tmp_path) == {"south": clients.UNFIT}
    assert "NO EPSILON HOLDS" in page and "does not make it private" in page and "north" in page
    assert not re.search(r"(ε|epsilon)[ =]*\d|[cC]ertainty|Noise was|noise was", page)


def test_the_plan_of_what_draws_nothing_states_no_price(tmp_path: Path) -> None:
    code, out, _ = run_cli("plan-federation", write_rounds(tmp_path, algorithm="fedprox"))
    assert code == 0 and STAYS_INSIDE["federated-rounds"] in out and "charge: nothing" in out
    assert "epsilon=" not in out and "account:" not in out


def test_a_flow_run_that_charges_nothing_is_described_and_recorded(tmp_path: Path) -> None:
    run = begun_rounds(tmp_path, algorithm="fedavg", rounds=1)
    assert describe_run(run)["caution"] == STAYS_INSIDE["federated-rounds"]
    assert "nothing is charged" in explain(ledger_of(tmp_path), run, "")
    assert officer_of(run) is None and balances(run) == {}
    record(run, False, lambda stage, *handles: stage(*handles))
    assert leaves_nothing(tmp_path) and charged_for(run) == []
    publish_results(run)  # of what stays inside nothing is sent to Prefect, so no server is asked for


def test_an_officer_cannot_be_passed_by_because_nothing_is_charged(tmp_path: Path) -> None:
    """An officer signs charges, and could have refused those of the scores."""
    carry_out(begun_rounds(tmp_path, rounds=1), prefect=False)
    _, public = write_key(tmp_path / "dana.pem")
    named = ("--name", "Dana", "--key", public, "--reason", "the board asked for it", "--home", tmp_path / "home")
    assert run_cli("ledger", "officer", "wards", *named)[0] == 0
    config = yaml.safe_load((tmp_path / "federation.yaml").read_text())
    config["round"]["algorithm"] = "fedavg"
    (tmp_path / "federation.yaml").write_text(yaml.safe_dump(config))
    code, _, err = run_cli("federate", tmp_path / "federation.yaml")
    assert code == 1 and "account wards has an officer" in err


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
        with pytest.raises((InvalidArgument, Unsuitable), match=words):
            out = "" if mode == "paper" else str(tmp_path / "out")
            begun(tmp_path / str(number), out=out, model=config, round=paper(tmp_path, mode=mode, judge=None))


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
    assert left_out(tmp_path) == {} and leaves_nothing(tmp_path)
    run = Run.find(tmp_path / "home", only_run(tmp_path))
    servers = [read_server((rounds.round_folder(run, n) / "server.safetensors").read_bytes()) for n in (0, 2)]
    assert [list(server.models) for server in servers] == [["resnet8", "shufflenet"]] * 2
    for name in ("resnet8", "shufflenet"):
        before, after = (
            accuracy(loaded(name, MODEL, server.models[name]), make_examples(400, seed=9)) for server in servers
        )
        assert after > before + 0.2, (name, before, after)


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
    assert left_out(tmp_path) == {} and WHY[how] in page_of(tmp_path)


def test_clients_are_drawn_for_each_round(tmp_path: Path) -> None:
    carry_out(begun_rounds(tmp_path, rounds=4, participation=0.4), prefect=False)
    drawn = [one["drawn"] for one in facts_of(tmp_path)["rounds"]]
    assert {len(one) for one in drawn} == {1} and len({one[0] for one in drawn}) > 1


MOMENTS = {
    "a client trains": ("tasks.stages.rounds", "train_client"),
    "a client sends": ("tasks.stages.rounds", "transform_kept"),
    "the server adds up": ("tasks.stages.rounds", "aggregate"),
    "a round ends": ("tasks.stages.rounds", "write_text"),
    "the page is written": ("tasks.stages.rounds", "render_rounds"),
}


@pytest.mark.nightly
def test_killed_at_each_moment_the_rounds_end_and_nothing_is_charged_again(tmp_path: Path) -> None:
    words, deaths = ["federate", write_rounds(tmp_path)], list[str]()
    while point := killed_anew(words, tmp_path / "deaths", MOMENTS):
        deaths.append(point)
        words = ["resume", only_run(tmp_path), "--home", tmp_path / "home", "--no-prefect"]
    assert {name for name in MOMENTS} == {point.removeprefix("after: ") for point in deaths}
    assert each_charged_once(tmp_path) and leaves_nothing(tmp_path)
    assert len(facts_of(tmp_path)["rounds"]) == 3


def test_a_round_that_was_cut_off_is_taken_again_and_ends_alike(tmp_path: Path) -> None:
    run = begun_rounds(tmp_path, algorithm="feddf")  # it uses no certainties, so the seed decides everything
    carry_out(run, prefect=False)
    last = (rounds.round_folder(run, 3) / "server.safetensors").read_bytes()
    shutil.rmtree(rounds.round_folder(run, 3))
    (rounds.round_folder(run, 2) / "round.json").unlink()
    rounds.train_in_rounds(run, run.finished("round"))
    assert (rounds.round_folder(run, 3) / "server.safetensors").read_bytes() == last


@pytest.mark.parametrize("algorithm", ["feddf", "fedaux"])
def test_models_that_stay_inside_have_no_hand_off_and_their_json_says_so(tmp_path: Path, algorithm: str) -> None:
    config = write_rounds(tmp_path, rounds=1, algorithm=algorithm)
    code, out, err = run_cli("plan-federation", config, "--json")
    assert code == 0, err
    figures, is_charged = json.loads(out), algorithm == "fedaux"
    assert all(name.isidentifier() for name in figures) and figures["cautions"] and figures["clients"] == list(NAMES)
    assert [one["name"] for one in figures["charges"]] == (list(NAMES) if is_charged else [])
    assert (figures["epsilon"] is not None) == is_charged
    code, out, err = run_cli("federate", config, "--json")
    facts = json.loads(out)
    assert code == 0 and (facts["state"], facts["hand_off"], facts["stays_inside"]) == ("finished", None, True), err
    assert Path(facts["page"]).parent == Path(facts["models"]) and Path(facts["page"]).is_file()
    assert (facts["account"] is not None) == is_charged and json.loads(
        run_cli("resume", facts["run"], "--home", tmp_path / "home", "--no-prefect", "--json")[1]
    ) == facts


# what follows starts a process for each client


@pytest.mark.slow
@pytest.mark.nightly
def test_a_client_that_is_killed_in_a_round_is_dropped_for_it_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "train_one", train_or_die)
    carry_out(begun_rounds(tmp_path, rounds=2, workers="dask"), prefect=False)
    assert [one["dropped"] for one in facts_of(tmp_path)["rounds"]] == [{"south": clients.LOST}, {}]
    assert left_out(tmp_path) == {} and each_charged_once(tmp_path) and leaves_nothing(tmp_path)


def test_in_python_rounds_end_in_the_page_on_their_models(tmp_path: Path) -> None:
    content = yaml.safe_load(write_rounds(tmp_path, rounds=1).read_text())
    made = nacre.federate({key: value for key, value in content.items() if key != "out"}, home=tmp_path / "home")
    assert (made / "rounds.html").exists() and made.parents[1] == tmp_path / "home" / "sensitive"
