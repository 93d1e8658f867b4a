"""An account whose delta is 0, by the commands, and what a hand-off of pure releases must add up to."""

import json
from pathlib import Path

import pytest

from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.ledger.store import digest
from tests.kit.support import run_cli, synthesize_words, write_clinic

PURE = {"kind": "pure", "epsilon": 0.5, "mechanism": ""}
GAUSSIAN = {"kind": "gaussian", "noise_multiplier": 50.0, "mechanism": ""}
DP_SGD = {"kind": "sampled_gaussian", "noise_multiplier": 50.0, "sampling_probability": 0.01, "steps": 1}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_clinic(tmp_path)
    words = ("clinic", "--schema", tmp_path / "clinic.yaml", "--epsilon", 1, "--delta", 0)
    code, out, err = run_cli("ledger", "open", *words, "--home", tmp_path / "home")
    assert code == 0 and "delta=0" in out, err
    return tmp_path


def ask(folder: Path, *words: object) -> tuple[int, str, str]:
    return run_cli("ledger", *words, "--home", folder / "home")


def charge(number: int) -> Charge:
    return Charge.model_validate(
        {"account": "clinic", "dataset": "clinic", "mechanism": "selection", "event": PURE, "run": f"run-{number}",
         "budget": {"epsilon": 0.5, "delta": 0}, "plan_hash": "plan", "schema_hash": "schema"}
    )  # fmt: skip


def test_an_account_of_delta_0_is_opened_forecast_shown_and_verified(home: Path) -> None:
    code, out, _ = ask(home, "plan", "clinic", "--epsilon", 0.25, "--delta", 0, "--times", 4, "--json")
    said = json.loads(out)
    assert (code, said["fits"], float(said["spent_after"]), said["noise_multiplier"]) == (0, True, 1.0, None)
    assert ask(home, "plan", "clinic", "--epsilon", 0.25, "--delta", 0, "--times", 5)[0] == 1
    Ledger(home / "home" / "ledger.sqlite").reserve(charge(1))
    _, out, _ = ask(home, "show", "clinic", "--picture", home / "burn.svg")
    assert "0.5" in out and (home / "burn.svg").exists()
    assert ask(home, "verify")[0] == 0
    code, _, err = ask(home, "plan", "clinic", "--epsilon", 0.25, "--delta", 1e-6)
    assert code == 1 and "a delta of 0, which only pure releases keep" in err


def test_an_account_of_a_contract_of_documents_is_for_sentences_that_are_replaced(tmp_path: Path) -> None:
    contract = tmp_path / "letters.yaml"
    contract.write_text("name: letters\nprotects: sentence\ntext: body\nencoder: {name: hashed, dim: 16}\n")
    words = ("letters", "--schema", contract, "--epsilon", 10, "--delta", 0, "--json")
    code, out, err = ask(tmp_path, "open", *words)
    (row,) = json.loads(out)
    assert (code, row["unit"], row["adjacency"]) == (0, "sentence of a document", "replace_one"), err
    assert ask(tmp_path, "plan", "letters", "--epsilon", 5, "--delta", 0, "--times", 2)[0] == 0
    assert ask(tmp_path, "plan", "letters", "--epsilon", 5, "--delta", 0, "--times", 3)[0] == 1
    code, _, err = ask(tmp_path, "open", "other", *words[1:4], 2000, *words[5:])
    assert code == 1 and "--epsilon=2000.0 must lie between 0.001 and 1000" in err


def test_a_method_with_gaussian_noise_refuses_a_delta_of_0_in_a_sentence(home: Path) -> None:
    code, _, err = run_cli(*synthesize_words(home, delta=0))
    assert code == 1 and "delta=0.0 must be above 0 for Gaussian noise" in err and not (home / "out").exists()
    code, _, err = run_cli(*synthesize_words(home, delta=-0.1))
    assert code == 1 and "delta=-0.1 must lie between 0 and 1" in err


@pytest.mark.parametrize(
    ("event", "spent", "fault"),
    [
        (PURE, "0.500000000000", None),
        ({"kind": "parallel", "by": "document", "events": [PURE]}, "0.5", None),
        (PURE, "0.4", "the events cost epsilon=0.5"),
        (GAUSSIAN, "0.5", "far more than was asked for"),
        (DP_SGD, "0.5", "add_or_remove_one for DP-SGD"),
        ({"kind": "composed", "events": [PURE, PURE]}, "1", "more than was asked for"),
    ],
)
def test_a_hand_off_of_delta_0_must_be_pure_and_add_up(tmp_path: Path, event, spent: str, fault: str | None) -> None:
    kinds = ("reserve", "draw", "seal", "commit")
    entries = [{"seq": seq, "kind": kind, "day": "2030-01-01", "hash": "ab" * 32} for seq, kind in enumerate(kinds, 2)]
    manifest = {
        "format": 1, "nacre_version": "0.1.0", "data_set": "letters", "method": "selection", "unit": "document",
        "adjacency": "replace_one", "schema_sha256": "ab" * 32, "run": "run",
        "release_sha256": "ab" * 32, "plan_sha256": "cd" * 32, "artifacts": {}, "events": [event],
        "asked": {"epsilon": 0.5, "delta": 0.0}, "spent": {"epsilon": spent, "delta": 0.0},
        "ledger": {"account": "clinic", "charge": digest(["clinic", "cd" * 32, "run"]), "entries": entries},
    }  # fmt: skip
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    faults = [
        each for each in verify_hand_off(tmp_path).faults if "schema.yaml" not in each and "report.json" not in each
    ]
    assert faults == [] if fault is None else any(fault in each for each in faults)
