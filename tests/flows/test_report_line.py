"""The report's own line: refused up front, charged once whatever happens, given back where nothing was drawn."""

import json
import shutil
from pathlib import Path

import pytest

from dpmodels.errors import BudgetExhausted
from dpmodels.ledger.approval import ApprovalRequest, Officer
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Charge
from dpmodels.privacy import PrivacyBudget
from flows.config import SynthesizeConfig
from flows.partitions import nights_that_fit
from flows.synthesize import carry_out, start
from flows.with_prefect.approval import plan_text
from tasks.run.accounts import accounts_to_open, charge_of, charges_of
from tasks.run.receive import sample_again
from tasks.run.store import Run
from tasks.stages.ingest import ingest
from tasks.stages.sanitize import sanitize
from tests.kit.deaths import killed_anew
from tests.kit.kills import only_run
from tests.kit.support import charges, make_schema, run_cli, synthesize_words, write_clinic

pytestmark = pytest.mark.processes

LIFE = ["reserve", "draw", "seal", "commit"]


def config_of(folder: Path, **privacy: object) -> SynthesizeConfig:
    data, schema, config = write_clinic(folder, rows=200)
    privacy = {"target_epsilon": 1.0, "delta": 1e-5, "report_epsilon": 0.5, **privacy}
    options = {"data": data, "schema": schema, "out": folder / "out", "privacy": privacy}
    return SynthesizeConfig.build({**options, "runtime": {"home": folder / "home", "prefect": False}}, config)


def report_of(run: Run) -> dict:
    return json.loads((run.settings.out / "report.json").read_text())


def lives(run: Run) -> list[list[str]]:
    ledger = Ledger(run.ledger)
    return [[entry.kind for entry in ledger.entries(key=charge.key)] for charge in charges_of(run)]


def test_plan_show_entries_manifest_and_report_have_both_lines(tmp_path):
    write_clinic(tmp_path)
    words = synthesize_words(tmp_path, report_epsilon=0.5)
    code, out, _ = run_cli("plan", *[word for word in words if word not in ("synthesize", "--no-prefect")])
    assert code == 0 and "report: target" in out and "epsilon=0.5" in out and "release and report" in out
    assert run_cli(*words)[0] == 0
    home = tmp_path / "home"
    _, shown, _ = run_cli("ledger", "show", "clinic", "--home", home)
    assert "pearl" in shown and "report" in shown and shown.count("committed") == 2
    _, entries, _ = run_cli("ledger", "entries", "--home", home, "--json")
    reserved = [entry["content"] for entry in json.loads(entries) if entry["kind"] == "reserve"]
    assert [(one["mechanism"], one["budget"]["epsilon"]) for one in reserved] == [("pearl", 1.0), ("report", 0.5)]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    total = float(manifest["total_spent"]["epsilon"])
    assert (manifest["asked"]["epsilon"], manifest["report"]["asked"]["epsilon"]) == (1.0, 0.5)
    facts = json.loads((tmp_path / "out" / "report.json").read_text())
    assert facts["privacy"]["total_epsilon"] == pytest.approx(total, abs=1e-9) and 1 < total < 1.5
    assert facts["charged"]["scores_sha256"] == manifest["report"]["scores_sha256"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Scores on the real rows" in page and "not on held-out" in page and f"{total:.4g}" in page
    assert (run_cli("verify", tmp_path / "out")[0], run_cli("ledger", "verify", "--home", home)[0]) == (3, 0)
    balance = Ledger(home / "ledger.sqlite").balance("clinic")
    assert balance.remaining_epsilon == 0 and float(balance.spent_epsilon) == pytest.approx(total, abs=1e-9)


def test_a_tampered_report_line_is_found(tmp_path):
    run = carry_out(start(config_of(tmp_path)), prefect=False)
    path = run.settings.out / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["total_spent"]["epsilon"] = "0.7"
    path.write_text(json.dumps(manifest))
    code, out, err = run_cli("verify", run.settings.out)
    assert code == 1 and "together" in out + err


def test_without_the_option_nothing_is_charged_and_nothing_said(tmp_path):
    run = carry_out(start(config_of(tmp_path, report_epsilon=None)), prefect=False)
    assert report_of(run)["charged"] is None and charges(run.home) == LIFE
    assert 'id="charged"' not in (run.settings.out / "report.html").read_text()


def test_a_sum_that_does_not_fit_is_refused_before_anything_is_made(tmp_path):
    config = config_of(tmp_path)
    release = config.model_copy(update={"privacy": config.privacy.model_copy(update={"report_epsilon": None})})
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    ledger.open_account("clinic", dataset="clinic", budget_cap=PrivacyBudget(epsilon=1.05, delta=1e-5))
    with pytest.raises(BudgetExhausted, match=r"1\.5"):
        start(config)
    assert charges(tmp_path / "home") == [] and not (tmp_path / "home" / "released").exists()
    assert lives(carry_out(start(release), prefect=False)) == [LIFE]  # the release alone fits


def test_a_rival_that_comes_in_between_leaves_neither_line_charged(tmp_path):
    run = start(config_of(tmp_path))
    small = PrivacyBudget(epsilon=0.5, delta=1e-5)
    rival: Charge = charge_of("rival", run.plan.report, "clinic").model_copy(update={"budget": small})
    Ledger(run.ledger).reserve(rival, first_opens=accounts_to_open(run.settings, "clinic"))
    with pytest.raises(BudgetExhausted):
        carry_out(run, prefect=False)
    assert lives(run) == [[], []] and not (run.released / "release.parquet").exists()


def test_a_finished_run_is_replayed_without_drawing_or_charging(tmp_path):
    run = carry_out(start(config_of(tmp_path)), prefect=False)
    before = (run.released / "scores.parquet").read_bytes()
    shutil.rmtree(run.settings.out)
    carry_out(run, prefect=False)
    assert lives(run) == [LIFE, LIFE] and (run.released / "scores.parquet").read_bytes() == before


SCORING = {
    "models": ("dpmodels.report.charged", "fit_scorer"),
    "scores": ("tasks.stages.validate", "charged_section"),
}


def test_killed_while_scoring_a_run_resumes_to_one_charge_a_line(tmp_path):
    write_clinic(tmp_path, rows=60)
    words, deaths = synthesize_words(tmp_path, report_epsilon=0.5), list[str]()
    while point := killed_anew(words, tmp_path / "deaths", SCORING):
        deaths.append(point)
        words = ["resume", only_run(tmp_path), "--home", tmp_path / "home", "--no-prefect"]
    assert deaths == ["models", "after: models", "scores", "after: scores"]
    run = Run.find(tmp_path / "home", only_run(tmp_path))
    assert lives(run) == [LIFE, LIFE]  # models are trained before a draw begins
    assert report_of(run)["charged"]["status"] == "measured"


def sanitized(folder: Path) -> Run:
    run = start(config_of(folder))
    sanitize(run, ingest(run))
    return run


def test_a_sensitive_zone_that_is_gone_gives_the_line_back_and_the_report_says_so(tmp_path):
    run = sanitized(tmp_path)
    assert lives(run) == [LIFE, ["reserve"]]  # both were reserved before the first was drawn
    shutil.rmtree(run.sensitive)
    for _ in range(2):
        carry_out(run, prefect=False)
        assert lives(run) == [LIFE, ["reserve", "void"]]
    facts = report_of(run)
    assert (facts["charged"]["status"], facts["charged"]["charged"]) == ("lost", False)
    assert facts["privacy"]["total_epsilon"] == facts["privacy"]["spent_epsilon"]
    page = (run.settings.out / "report.html").read_text()
    assert "Nothing was charged for it" in page and "no exact statistic of the real rows is on this page" in page
    assert "report" not in json.loads((run.settings.out / "manifest.json").read_text())
    assert run_cli("verify", run.settings.out)[0] == 3


def test_a_draw_that_was_cut_short_is_drawn_again_under_the_same_charge(tmp_path):
    run = sanitized(tmp_path)
    Ledger(run.ledger).begin_draw(charges_of(run)[1].key)
    carry_out(run, prefect=False)
    assert lives(run) == [LIFE, ["reserve", "draw", "draw", "seal", "commit"]]  # nobody saw the first
    assert report_of(run)["charged"]["status"] == "measured"


def test_a_line_whose_draw_began_and_was_lost_stays_charged(tmp_path):
    run = sanitized(tmp_path)
    ledger, key = Ledger(run.ledger), charges_of(run)[1].key
    ledger.begin_draw(key)
    shutil.rmtree(run.sensitive)
    carry_out(run, prefect=False)
    facts = report_of(run)
    assert (facts["charged"]["status"], facts["charged"]["charged"]) == ("lost", True)
    assert facts["privacy"]["total_epsilon"] > facts["privacy"]["spent_epsilon"]
    assert "the charge stands" in (run.settings.out / "report.html").read_text()
    assert run_cli("verify", run.settings.out)[0] == 3


def test_a_line_that_the_operator_voided_is_left_alone(tmp_path):
    run = sanitized(tmp_path)
    Ledger(run.ledger).void(charges_of(run)[1].key, "not wanted after all")
    carry_out(run, prefect=False)
    assert report_of(run)["charged"]["status"] == "lost" and not (run.released / "scores.parquet").exists()
    again = sample_again(run, "again", tmp_path / "more", None, 7)
    assert again.plan.report is None


def test_the_officer_and_the_forecast_are_told_of_both_lines(tmp_path):
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    ledger.open_account("clinic", dataset="clinic", budget_cap=PrivacyBudget(epsilon=3, delta=1e-5))
    run = start(config_of(tmp_path, account="clinic"))
    text = plan_text(run, Officer(name="A. Officer", public_key="A" * 43 + "="), ApprovalRequest("", "", "", ()))
    assert "**target**: epsilon=1.0" in text and "**report: target**: epsilon=0.5" in text
    assert "**account**: clinic, cap epsilon=3 at" in text and "**spent**: epsilon=0 before" in text
    alone = start(config_of(tmp_path / "alone", account="clinic", report_epsilon=None).model_copy(
        update={"runtime": config_of(tmp_path).runtime}
    ))  # fmt: skip
    assert nights_that_fit(ledger, run) < nights_that_fit(ledger, alone)


def test_a_partition_pays_for_both_lines_from_an_account_of_its_own(tmp_path):
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    ledger.open_account("nights", dataset="nights", budget_cap=PrivacyBudget(epsilon=3, delta=1e-5))
    config = config_of(tmp_path, account="nights")
    (tmp_path / "clinic.yaml").write_text(make_schema(partition="ward").to_yaml())
    run = carry_out(start(config, "first", "west"), prefect=False)
    assert lives(run) == [LIFE, LIFE]
    own, parent = ledger.balance("nights/ward=west"), ledger.balance("nights")
    assert own.remaining_epsilon == 0 and 1 < own.spent_epsilon == parent.spent_epsilon <= own.cap
