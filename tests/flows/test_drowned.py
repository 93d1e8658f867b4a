"""A release that does not stand out of its noise: said before the charge, and first in all that comes after it."""

import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from dpmodels.codec.embedded import BITS
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.mechanisms import gaussian
from dpmodels.methods.registry import create
from dpmodels.privacy import PrivacyBudget
from dpmodels.report.fidelity import DROWNED
from tests.kit.drafts import open_account, write_draft
from tests.kit.letters import embed_words, write_letters
from tests.kit.mails import mails, make_contract, write
from tests.kit.noise import repeated_noise
from tests.kit.support import make_schema, make_table, run_cli, synthesize_words
from tests.kit.wards import write_wards

SKETCH = {"epsilon": 0.5, "numbers": 4, "hidden": 8, "steps": 50}


def documents(folder: Path) -> list[object]:
    return write(folder, mails(60))


def table(folder: Path) -> list[object]:
    pq.write_table(make_table(40), folder / "rows.parquet")
    (folder / "rows.yaml").write_text(make_schema().to_yaml())
    (folder / "config.yaml").write_text("model: {method: nacre, training: {steps: 5}}\n")
    return synthesize_words(folder, data=folder / "rows.parquet", schema=folder / "rows.yaml")


@pytest.mark.parametrize("made", [documents, table])
def test_it_is_said_before_the_charge_and_first_of_all_afterwards(tmp_path: Path, made) -> None:
    words = [*made(tmp_path), "--target-epsilon", 0.05]
    code, text, err = run_cli("plan", *(word for word in words[1:] if word != "--no-prefect"))
    assert code == 0, err
    said = " ".join(text.split())
    assert "stands out" in said and "what is released of fewer is mostly noise" in said
    assert not (tmp_path / "home").exists()
    code, text, err = run_cli("-q", *words, "--json")
    assert code == 0 and json.loads(text), err
    assert "WARNING: what was released hardly stands out of its noise" in err.partition("warning: column")[0]
    out = tmp_path / "out"
    facts, card = (json.loads((out / name).read_text()) for name in ("report.json", "model-card.json"))
    assert facts["fit"][-1]["signal"] < 1.42 and card["quality"]["drowned"] == facts["drowned"]
    for name in ("report.html", "model-card.html", "data-sheet.html"):
        page = (out / name).read_text()
        assert facts["drowned"][1:60] in page, name
        if name != "data-sheet.html":
            assert page.index("hardly stands out") < page.index("<h1")


@pytest.mark.parametrize(("most", "said"), [(40, "fewer than the"), (300, "hardly more than the"), (4000, "")])
def test_a_public_number_of_rows_is_held_against_what_noise_amounts_to(tmp_path: Path, most: int, said: str) -> None:
    """About 200 records of the clinic are as much as its noise at this budget."""
    words = [*table(tmp_path), "--target-epsilon", 0.4]
    (tmp_path / "rows.yaml").write_text(make_schema(rows={"max": most}).to_yaml())
    asked = ["plan", *(word for word in words[1:] if word != "--no-prefect")]
    code, out, err = run_cli(*asked)
    figures = json.loads(run_cli(*asked, "--json")[1])
    assert code == 0 and figures["rows_at_most"] == most, err
    sentence = f"by the schema (rows: max) there are at most {most:,} rows, {said} {figures['units_at_least']:,}"
    assert (sentence[:-1] in out) == (sentence[:-1] in " ".join(figures["cautions"])) == bool(said), out
    if said:
        assert f"warning: {sentence[:-1]}" in run_cli(*words)[2]


@pytest.mark.parametrize(("dim", "epsilon"), [(16, 1), (64, 0.5)])
def test_the_plan_says_of_how_many_documents_the_report_would_not_warn(dim: int, epsilon: float) -> None:
    """Documents of public random words, at the number that the plan names: their sum is as long as its noise."""
    contract = make_contract(encoder={"name": "hashed", "dim": dim})
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5, adjacency=contract.adjacency, unit=contract.unit)
    system = create("document-moments", {}, {})
    line = system.plan(contract, budget)
    looks, rng = system.of(line), np.random.default_rng(0)
    points = rng.normal(size=(round(system.least_units(line)), dim))
    points = np.rint(points / np.linalg.norm(points, axis=1)[:, None] * 2**BITS * 0.999).astype(np.int64)
    moments = looks.second(np.array([0] * dim + [2**BITS]))
    size = np.linalg.norm(moments.total(points, np.arange(len(points)) % 2).astype(float))
    signal = math.hypot(size / line.noise_stddev(1, looks.l2_sensitivity) / math.sqrt(moments.dim), 1)
    assert signal == pytest.approx(DROWNED, rel=0.05)


def few_letters(folder: Path) -> tuple[list[object], list[object]]:
    write_letters(folder, 12)
    words = embed_words(folder, target_epsilon=0.5)
    return ["plan-documents", *(word for word in words[1:] if word != "--no-prefect")], words


def few_sketches(folder: Path) -> tuple[list[object], list[object]]:
    write_letters(folder, 12)
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config["model"] |= {"method": "document-sketch", "recipe": {**config["model"]["recipe"], "sketch": SKETCH}}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    words = embed_words(folder, target_epsilon=0.5)
    return ["plan-documents", *(word for word in words[1:] if word != "--no-prefect")], words


def small_wards(method: str, folder: Path) -> tuple[list[object], list[object]]:
    privacy = {"target_epsilon": 0.02, "delta": 1e-5}
    measurement = {} if method == "federated-moments" else {"records": 30}
    extractor = {"features": 8, "width": 4, "pretraining": {"steps": 5, "batch_size": 32}}
    model = {"method": method, "measurement": measurement, "extractor": extractor}
    config = write_wards(folder, 30, privacy=privacy, model=model)
    return ["plan-federation", config], ["federate", config]


OTHERS = {
    "choices for each document": few_letters,
    "sketches of each document": few_sketches,
    "heads of clients": partial(small_wards, "federated-heads"),
    "moments of clients": partial(small_wards, "federated-moments"),
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.nightly_if("choices for each document", "moments of clients")  # beside one of documents and one of clients
def test_what_is_no_sum_of_all_data_says_it_too(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """30 records move a head by 0.2 times its noise at most; one noise in fifty would seem to be more than noise."""
    monkeypatch.setattr(gaussian, "_sampler", repeated_noise())
    plan, words = OTHERS[kind](tmp_path)
    code, text, err = run_cli(*plan)
    assert code == 0 and "stands out: only with more than about" in " ".join(text.split()), err
    assert not (tmp_path / "home").exists()
    code, text, err = run_cli(*words)
    assert code == 0, err
    facts, card = (json.loads((tmp_path / "out" / name).read_text()) for name in ("report.json", "model-card.json"))
    assert "WARNING: what was released hardly stands out of its noise" in err
    assert card["quality"]["drowned"] == facts["drowned"]
    for name in ("report.html", "model-card.html", "data-sheet.html"):
        page = (tmp_path / "out" / name).read_text()
        assert facts["drowned"][1:60] in page, name
        if name != "data-sheet.html":
            assert page.index("hardly stands out") < page.index("<h1")
    assert not verify_hand_off(tmp_path / "out").faults


@pytest.mark.parametrize(
    "words", [lambda at: embed_words(at, target_epsilon=10), lambda at: ["federate", write_wards(at)]]
)
def test_of_documents_and_clients_that_stand_out_nothing_is_said(tmp_path: Path, words) -> None:
    write_letters(tmp_path, 12)
    code, text, err = run_cli(*words(tmp_path))
    assert code == 0 and "WARNING" not in text + err, err
    assert "drowned" not in json.loads((tmp_path / "out" / "report.json").read_text())


def test_a_discovery_of_few_rows_says_it_before_and_after_its_charge(tmp_path: Path) -> None:
    asked = write_draft(tmp_path, rows=5)
    open_account(tmp_path, epsilon=9, delta=1e-4)
    code, _, err = run_cli(*asked)
    assert code == 0
    said = "stands out: only with more than about", "WARNING: what was released hardly stands out", "charged once"
    assert list(said) == sorted(said, key=err.index)
    (tmp_path / "more").mkdir()
    enough = write_draft(tmp_path / "more")
    open_account(tmp_path / "more", epsilon=9, delta=1e-4)
    assert "WARNING" not in run_cli(*enough)[2]


def test_what_stands_out_is_not_warned_of(tmp_path: Path) -> None:
    words = [*write(tmp_path, mails(400)), "--target-epsilon", 20]
    code, text, err = run_cli(*words)
    assert code == 0 and "WARNING" not in text + err, err
    assert "drowned" not in json.loads((tmp_path / "out" / "report.json").read_text())
