"""Who may write what a stage that reads data believes: each test does what somebody without the data could do."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from dpmodels.accounting.events import leaves
from dpmodels.audit.data import data_of
from dpmodels.errors import ArtifactError, InvalidArgument, NacreError, PathTaken, Unsuitable
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.approval import ApprovalRequest
from dpmodels.ledger.ledger import Account, Ledger
from dpmodels.mechanisms import exponential, gaussian
from dpmodels.methods.registry import create, of_kind
from dpmodels.privacy import PrivacyBudget
from dpmodels.releases.plan import Former
from dpmodels.report.charged import Scores
from flows.synthesize import carry_out, start
from tasks.run.store import Run
from tasks.stages.ingest import ingest
from tasks.stages.sanitize import sanitize
from tests.kit import support
from tests.kit.configurations import config
from tests.kit.errors import refused
from tests.kit.support import charges, make_records, make_schema, run_cli, synthesize_words, write_clinic

BUDGET = PrivacyBudget(epsilon=1, delta=1e-5)


@pytest.fixture
def untouched(monkeypatch) -> None:
    """Fail as soon as any noise is drawn."""

    def never(*_: object) -> None:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(gaussian, "_sampler", never)
    monkeypatch.setattr(exponential, "_selector", never)
    monkeypatch.setattr("dpmodels.mechanisms.dp_sgd.training.DpSgd.train", never)


def finish(run: Run) -> Run:
    return carry_out(run, prefect=False)


@pytest.mark.parametrize("method", of_kind("table"))
def test_a_line_that_names_less_noise_than_its_event_is_drawn_by_no_method(tmp_path, method, untouched):
    """Noise is read off the event; only a line of format 1 names a scale of its own, and a smaller one is refused."""
    made = data_of(method)
    schema, records = made.make_schema(), made.make_records(50)
    system = create(method, {}, {})
    line = system.plan(schema, BUDGET.model_copy(update={"unit": schema.unit}))
    own, event = next(system.steps(line)).l2_sensitivity, next(leaves([line.event]))
    for factor in (1e-6, 2 / 3, 0.999):
        folder = tmp_path / f"{factor:.3f}"
        less = Former(hash="0" * 64, scale=(own, event.noise_multiplier * factor))
        with pytest.raises(ArtifactError, match="less than a step is charged for"):
            support.measured(system, folder, line.model_copy(update={"former": less}), records)
        assert charges(folder) == ["reserve"]  # which can be given back: no draw began


def test_scores_with_less_noise_than_their_event_are_not_drawn(tmp_path, untouched):
    scores = Scores(synthetic=[make_records(300)])
    plan = scores.plan(make_schema(), BUDGET)
    plan = plan.model_copy(update={"event": plan.event.model_copy(update={"noise_multiplier": 1e-3})})
    with pytest.raises(ArtifactError, match="was changed"):
        support.measured(scores, tmp_path, plan, make_records(50))


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    "change",
    [
        lambda line: {"budget": line["budget"] | {"epsilon": 1000.0}},
        lambda line: {"event": {"kind": "gaussian", "noise_multiplier": 1e-3}},
        lambda line: {"part": "night"},
        lambda line: {"fingerprint": "0" * 64},
    ],
)
def test_a_plan_changed_in_the_zone_of_control_is_refused_too(tmp_path, change, number, untouched):
    """Defence in depth: only trusted stages can write there, and still a draw makes the plan again."""
    write_clinic(tmp_path)
    run = start(config(tmp_path))
    path = run.control / "plan.json"
    plan = json.loads(path.read_text())
    plan["lines"][number] |= change(plan["lines"][number])
    path.write_text(json.dumps(plan))
    with pytest.raises(NacreError):
        finish(run)
    assert charges(run.home) == []


def test_whatever_is_put_into_the_released_zone_changes_nothing_that_is_believed(tmp_path):
    """A forged plan, settings and approval lie where they used to be read; the run does not see them."""
    write_clinic(tmp_path)
    run = start(config(tmp_path))
    planted = tmp_path / "planted.sqlite"
    Ledger(planted).open_account("clinic", dataset="clinic", budget_cap=PrivacyBudget(epsilon=1000, delta=0.5))
    plan = json.loads((run.control / "plan.json").read_text())
    plan["lines"][0]["event"] = {"kind": "gaussian", "noise_multiplier": 1e-3}
    settings = json.loads((run.control / "settings.json").read_text())
    settings |= {"ledger": f"sqlite:///{planted}", "dask": "tcp://127.0.0.1:9", "out": str(tmp_path / "stolen")}
    (run.released / "plan.json").write_text(json.dumps(plan))
    (run.released / "settings.json").write_text(json.dumps(settings))
    (run.released / "approval.json").write_text(json.dumps({"officer": "A. Officer", "time": "2026-01-01"}))
    for stage in ("sanitize", "score", "validate"):
        (run.released / "stages" / f"{stage}.json").write_text('{"path": "sensitive", "sha256": ""}')
    finish(run)
    assert charges(run.home) == ["reserve", "reserve"] + ["draw", "seal", "commit"] * 2
    assert not [entry for entry in Ledger(planted).entries() if entry.kind != "open"]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert "approved" not in manifest and manifest["plan_sha256"] == run.plan.release.hash
    assert verify_hand_off(tmp_path / "out").faults == []


def test_the_ledger_is_the_one_that_the_process_was_given(tmp_path):
    write_clinic(tmp_path)
    run = start(config(tmp_path))
    settings = run.settings.model_copy(update={"ledger": f"sqlite:///{tmp_path / 'planted.sqlite'}"})
    (run.control / "settings.json").write_text(settings.model_dump_json())
    with pytest.raises(Unsuitable, match=r"run .* was started with another ledger"):
        finish(run)
    assert not (tmp_path / "planted.sqlite").exists()


def test_a_flow_run_may_not_name_a_ledger_a_cluster_or_a_key(tmp_path, monkeypatch):
    from flows.with_prefect import worker

    monkeypatch.setenv("NACRE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NACRE_DASK", "tcp://trusted:8786")
    write_clinic(tmp_path)
    monkeypatch.setenv("NACRE_SIGNING_KEY", "/etc/nacre/sign.pem")
    chosen = {
        "ledger": "postgresql://elsewhere/ledger",
        "dask": "tcp://127.0.0.1:9",
        "signing_key": tmp_path / "own.pem",
    }
    for name, value in chosen.items():
        asked = config(tmp_path, runtime={"home": tmp_path / "home", name: value})
        with refused(InvalidArgument, f"set NACRE_{name.upper()} for", name=f"runtime.{name}", value=value):
            worker.placed_here(asked)
    placed = worker.placed_here(config(tmp_path)).runtime
    assert (placed.dask, placed.signing_key) == ("tcp://trusted:8786", Path("/etc/nacre/sign.pem"))


def test_a_step_that_was_drawn_is_kept_until_the_seal(tmp_path, monkeypatch):
    """A draw that fails after its first look goes on with that look: no outcome is drawn again for being disliked."""
    write_clinic(tmp_path)
    (tmp_path / "config.yaml").write_text("{}")
    run = start(config(tmp_path, model={"method": "nacre"}))
    ingested, drawn = ingest(run), []

    def failing(values: np.ndarray, scale: float) -> np.ndarray:
        if len(drawn) == 1:
            drawn.append(None)
            raise RuntimeError("the second look fails, once")
        drawn.append(gaussian.discrete_gaussian(values, scale))
        return drawn[-1]

    monkeypatch.setattr(gaussian, "_sampler", failing)
    with pytest.raises(NacreError, match="RuntimeError"):
        sanitize(run, ingested)
    sanitize(run, ingested)
    first, _, *later = drawn
    from dpmodels.releases.release import read_release

    vector = read_release(run.read("sanitize")).value.vector
    assert np.array_equal(vector, np.concatenate([first, *later]))
    assert not list(run.sensitive.glob("draw-*"))


@pytest.mark.parametrize("device", ["gpu", "CPU", "mps", "cuda:7"])
def test_a_typo_spends_nothing(tmp_path, device):
    write_clinic(tmp_path)
    code, _, err = run_cli(*synthesize_words(tmp_path, device=device))
    assert code == 1 and "be auto or one that this machine has: cpu" in err
    assert not (tmp_path / "home" / "ledger.sqlite").exists() or charges(tmp_path / "home") == []


def test_a_device_that_fails_later_leaves_a_charge_that_can_be_given_back(tmp_path, monkeypatch):
    write_clinic(tmp_path)
    run = start(config(tmp_path))
    settings = run.settings.model_copy(update={"device": "meta"})  # which torch knows, and no sum can be read from
    (run.control / "settings.json").write_text(settings.model_dump_json())
    monkeypatch.setattr("tasks.stages.sanitize.check_ready", lambda *_: None)
    monkeypatch.setattr("tasks.stages.sanitize.pick_device", lambda device: device)
    with pytest.raises(NacreError):
        finish(run)
    assert charges(run.home) == ["reserve", "reserve"]
    key = next(entry.charge for entry in Ledger(run.ledger).entries() if entry.kind == "reserve")
    monkeypatch.undo()
    code, _, err = run_cli("resume", run.name, "--home", run.home, "--no-prefect", "--device", "cpu")
    assert code == 0, err
    assert Ledger(run.ledger).find(key).state == "committed"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_cannot_be_written_spends_nothing_as_a_user(tmp_path):
    write_clinic(tmp_path)
    (tmp_path / "closed").mkdir(mode=0o500)
    assert run_cli(*synthesize_words(tmp_path, out=tmp_path / "closed" / "out"))[0] == 1


def test_a_place_that_cannot_be_written_spends_nothing(tmp_path):
    write_clinic(tmp_path)
    (tmp_path / "file").write_text("not a folder")
    code, _, err = run_cli(*synthesize_words(tmp_path, out=tmp_path / "file" / "out"))
    assert code == 1 and "cannot be written" in err
    assert not (tmp_path / "home" / "ledger.sqlite").exists()


def test_a_first_run_that_fails_at_ingest_opens_no_account(tmp_path):
    write_clinic(tmp_path)
    columns = make_schema().model_dump()["columns"]
    columns["ward"] |= {"values": ["north"]}
    (tmp_path / "clinic.yaml").write_text(make_schema(columns=columns).to_yaml())
    assert run_cli(*synthesize_words(tmp_path))[0] == 1
    ledger = Ledger(tmp_path / "home" / "ledger.sqlite")
    assert ledger.accounts() == [] and ledger.entries() == []
    write_clinic(tmp_path)
    code, _, err = run_cli(*synthesize_words(tmp_path, delta=1e-6))
    assert code == 0, err
    code, _, err = run_cli(*synthesize_words(tmp_path, delta=1e-7, out=tmp_path / "more"))
    assert code == 1 and "at that delta the request, which is for delta=1e-7, costs" in err


def test_scores_that_lie_where_ours_should_are_not_published(tmp_path):
    """The sensitive zone is gone before scoring, and somebody has put a file of scores of their own there."""
    write_clinic(tmp_path / "other")
    other = finish(start(config(tmp_path / "other")))
    write_clinic(tmp_path)
    run = start(config(tmp_path))
    sanitize(run, ingest(run))
    shutil.rmtree(run.sensitive)
    shutil.copy(other.released / "scores.parquet", run.released / "scores.parquet")
    finish(run)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["charged"]["status"] == "lost" and not report["charged"]["charged"]
    assert "report" not in json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert verify_hand_off(tmp_path / "out").faults == []


def test_a_release_swapped_right_after_its_commit_is_not_handed_over(tmp_path, monkeypatch):
    """The record of a stage holds the digest that the ledger sealed, not that of whatever lies there a moment later."""
    write_clinic(tmp_path)
    run = start(config(tmp_path))
    real = Ledger.commit

    def swap(ledger: Ledger, key: str) -> object:
        done = real(ledger, key)
        (run.released / "release.parquet").write_bytes(b"another release")
        return done

    monkeypatch.setattr(Ledger, "commit", swap)
    with pytest.raises(NacreError):
        finish(run)
    monkeypatch.undo()
    with pytest.raises(NacreError):
        finish(run)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../released/evil", "a/b", "..", "", "a\nb", "x" * 300])
def test_a_run_is_one_folder_in_each_zone(tmp_path, name):
    with pytest.raises(ArtifactError, match="no name of a run"):
        Run.find(tmp_path, name)
    with pytest.raises(ValueError, match="should match pattern"):
        Run(home=tmp_path, name=name)


def test_a_run_is_not_started_where_somebody_has_put_a_link_or_files(tmp_path):
    write_clinic(tmp_path)
    released = tmp_path / "home" / "released"
    released.mkdir(parents=True)
    victim = tmp_path / "victim"
    victim.mkdir()
    (released / "night").symlink_to(victim)
    (released / "day" / "stages").mkdir(parents=True)
    (released / "day" / "stages" / "train.json").write_text("{}")
    for name in ("night", "day"):
        with refused(PathTaken, path=released / name):
            start(config(tmp_path), name)
    assert not list(victim.iterdir())


def test_an_approval_is_worth_nothing_in_another_ledger_or_for_other_names():
    one = ApprovalRequest("a" * 64, "clinic", "run", ("p", "q"))
    others = [
        ApprovalRequest("b" * 64, "clinic", "run", ("p", "q")),
        ApprovalRequest("a" * 64, "clinic", "run\nplan p", ("q",)),
        ApprovalRequest("a" * 64, "clinic", "run", ("q", "p")),
        ApprovalRequest("a" * 64, "clinic", "run", ("p",)),
    ]
    assert len({one.text, *(other.text for other in others)}) == 5
    with pytest.raises(ValueError, match="should match pattern"):
        Account(name="a\nb", dataset="d", cap=BUDGET)
