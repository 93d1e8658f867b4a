"""What commands say to a program: keys that are identifiers, numbers that are numbers, and how a run stands."""

import json
from pathlib import Path
from typing import Any

import pytest

import nacre
from dpmodels.errors import Unsuitable
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.ledger import Ledger
from dpmodels.privacy import PrivacyBudget
from tests.kit.letters import embed_words, write_letters
from tests.kit.support import charges, make_schema, run_cli, synthesize_words, write_clinic, write_key


def plan(folder: Path, *more: object) -> tuple[int, dict[str, Any], list[str]]:
    """Return the exit code of a plan, its figures, and the lines that a person reads."""
    words = [word for word in synthesize_words(folder)[1:] if word != "--no-prefect"]
    code, out, err = run_cli("plan", *words, "--json", *more)
    figures = json.loads(out)
    assert all(key.isidentifier() for key in keys(figures)), err
    text = run_cli("plan", *words, "--details", *more)[1].splitlines()
    assert figures["description"] == text
    return code, figures, text


def keys(content: object) -> list[str]:
    if isinstance(content, dict):
        return [*content, *(key for value in content.values() for key in keys(value))]
    return [key for value in content for key in keys(value)] if isinstance(content, list) else []


def test_a_plan_says_numbers_by_the_names_of_identifiers(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    (tmp_path / "clinic.yaml").write_text(make_schema(rows={"min": 10, "max": 5000}).to_yaml())
    code, figures, text = plan(tmp_path, "--report-epsilon", 0.5, "--purpose", "Teaching", "--explain")
    assert code == 0 and (figures["data_set"], figures["method"], figures["unit"]) == ("clinic", "pearl", "record")
    release, report = figures["charges"]
    assert (release["name"], release["epsilon"], release["delta"]) == ("release", 1.0, 1e-5)
    assert (report["name"], report["epsilon"]) == ("report", 0.5) and 1 < figures["epsilon"] < 1.5
    assert 0.5 < report["right_guesses"] < release["right_guesses"] < 0.75
    noise = release["noise_stddev"][0]
    assert any(line.startswith(f"noise_stddev of the {noise['of']}: {noise['value']:.4g}") for line in text)
    least = figures["units_at_least"]
    assert any(f"more than about {least:,} records" in line or f"{least - 1:,} records" in line for line in text)
    assert (figures["units"], figures["rows_at_least"], figures["rows_at_most"]) == ("records", 10, 5000)
    assert (figures["account"], figures["account_opens"], figures["accepted"]) == ("clinic", True, None)
    assert figures["cap_epsilon"] == pytest.approx(figures["epsilon"], abs=1e-3) and figures["officer"] is None
    assert figures["declared"] == {"purpose": "Teaching"} and figures["clients"] == figures["discoveries"] == []
    accountants = {one["accountant"]: one["epsilon"] for one in figures["other_accountants"]}
    assert accountants["charged"] < accountants["by Renyi divergences"]


def test_a_plan_says_what_the_account_answers_and_who_signs(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    _, public = write_key(tmp_path / "dana.pem")
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    ledger.open_account("clinic", dataset="clinic", budget_cap=PrivacyBudget(epsilon=1.5, delta=1e-5))
    ledger.change_cap("clinic", reason="the board asked for it", officer=Officer.read("Dana", public))
    code, figures, _ = plan(tmp_path)
    assert (code, figures["accepted"], figures["account_opens"], figures["officer"]) == (0, True, False, "Dana")
    assert (figures["cap_epsilon"], figures["cap_delta"], figures["spent_before"]) == (1.5, 1e-5, 0.0)
    assert figures["epsilon"] == 1.0 and 0.99 < figures["spent_after"] <= 1
    code, figures, _ = plan(tmp_path, "--target-epsilon", 2)
    assert (code, figures["accepted"], figures["epsilon"]) == (1, False, 2.0)
    code, out, err = run_cli(*synthesize_words(tmp_path), "--json")
    waiting = json.loads(out)
    assert code == 5 and (waiting["state"], waiting["hand_off"], waiting["charged"]) == ("waiting", None, False), err


def test_a_plan_is_refused_as_the_run_would_be(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    ledger, words = Ledger(tmp_path / "home" / "ledger.sqlite"), synthesize_words(tmp_path)
    ledger.open_account("other", dataset="other", budget_cap=PrivacyBudget(epsilon=1.5, delta=1e-5))

    def refusals(*more: object) -> tuple[str, str]:
        said = [run_cli(command, *(word for word in words[1:] if word != skipped), *more)
                for command, skipped in (("plan", "--no-prefect"), ("synthesize", ""))]  # fmt: skip
        assert [code for code, _, _ in said] == [1, 1] and "opens with this run" not in said[0][1]
        assert "answer: would be REFUSED" in said[0][1]
        return tuple(err.strip().splitlines()[-1] for _, _, err in said)

    plan_says, run_says = refusals()
    assert plan_says == run_says and "no account is open for data set clinic" in run_says
    code, figures, _ = plan(tmp_path)
    assert (code, figures["accepted"], figures["account_opens"]) == (1, False, False)
    assert f"error: {figures['refusal']}" == run_says
    home = tmp_path / "home"
    planned = nacre.plan(tmp_path / "clinic.yaml", 1, 1e-5, home=home)
    assert planned.accepted is False and "no account is open" in planned.facts["answer"]
    assert nacre.plan(tmp_path / "clinic.yaml", 1, 1e-5, home=home, open=True).facts["account"].startswith("clinic, o")
    code, figures, _ = plan(tmp_path, "--open")
    assert (code, figures["accepted"], figures["account_opens"]) == (0, None, True)
    ledger.open_account("clinic", dataset="clinic", budget_cap=PrivacyBudget(epsilon=1, delta=1e-6))
    plan_says, run_says = refusals()
    assert plan_says == run_says and "because of the delta" in run_says
    plan_says, run_says = refusals("--target-epsilon", 2)
    assert plan_says == run_says and "requested epsilon=2" in run_says
    assert not charges(home) and "1.1437" in nacre.plan(tmp_path / "clinic.yaml", 1, 1e-5, home=home).facts["answer"]


def test_the_plan_of_documents_has_figures_too(tmp_path: Path) -> None:
    write_letters(tmp_path, 12)
    words = [word for word in embed_words(tmp_path, target_epsilon=2)[1:] if word != "--no-prefect"]
    code, out, err = run_cli("plan-documents", *words, "--json")
    figures = json.loads(out)
    assert code == 0 and all(key.isidentifier() for key in keys(figures)), err
    assert (figures["epsilon"], figures["delta"], figures["units"]) == (2.0, 0.0, "sentences in a document")
    assert figures["units_at_least"] > 0 and figures["rows_at_most"] is None and figures["cautions"]


def test_a_run_that_fails_says_how_it_stands_and_one_that_ends_where_its_hand_off_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_clinic(tmp_path)

    def fail(*_: object) -> None:
        raise Unsuitable("the generator is not at hand; bring it")

    with monkeypatch.context() as patch:
        patch.setattr("flows.synthesize.train", fail)
        code, out, err = run_cli(*synthesize_words(tmp_path), "--json")
    failed = json.loads(out)
    assert code == 1 and "error: the generator is not at hand; bring it" in err
    assert (failed["state"], failed["hand_off"], failed["charged"]) == ("failed", None, True)
    assert failed["error"] == "the generator is not at hand; bring it" and failed["next"] in err
    before = charges(tmp_path / "home")
    code, out, _ = run_cli(*failed["next"].split()[1:], "--no-prefect", "--json")
    finished = json.loads(out)
    assert code == 0 and (finished["run"], finished["state"]) == (failed["run"], "finished")
    assert finished["hand_off"] == finished["folder"] == str(tmp_path / "out") and charges(tmp_path / "home") == before
    code, out, _ = run_cli(*synthesize_words(tmp_path, schema="absent.yaml"), "--json")
    assert (code, out) == (1, "")  # there is no run
