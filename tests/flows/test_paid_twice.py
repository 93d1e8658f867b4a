"""What was paid for and cut off is named, and not paid for a second time without a word."""

import fcntl
import json
import os
import shutil
import signal
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import nacre
from dpmodels.errors import BudgetExhausted, PaidBefore, PaidUnfinished, PathTaken
from dpmodels.ledger.ledger import Ledger
from flows import synthesize as flow
from flows.config import SynthesizeConfig
from flows.synthesize import carry_out, start
from flows.table import take_to_hand_off
from tasks.run.accounts import charges_of
from tasks.run.runs import is_in_place
from tasks.run.unfinished import _known_by
from tests.hand_off.make_golden import GOLDEN
from tests.kit.children import ends_at
from tests.kit.errors import refused
from tests.kit.kills import MOMENTS, only_run
from tests.kit.support import charges, make_table, run_cli, synthesize_words, write_clinic
from tests.kit.wards import begun as of_wards

pytestmark = pytest.mark.processes


def opened(folder: Path, cap: float = 3) -> Path:
    """Write a table, and open an account with room for several runs; return the home."""
    write_clinic(folder, rows=60)
    home = folder / "home"
    words = ("--schema", folder / "clinic.yaml", "--epsilon", cap, "--delta", 1e-5)
    assert run_cli("ledger", "open", "clinic", *words, "--home", home)[0] == 0
    return home


def asked(folder: Path, out: str = "out", epsilon: float = 1.0, **said: str) -> SynthesizeConfig:
    settings = {
        "data": folder / "clinic.parquet", "schema": folder / "clinic.yaml", "out": folder / out, "rows": 20,
        "privacy": {"target_epsilon": epsilon, "delta": 1e-5}, "statement": said,
        "runtime": {"home": folder / "home", "device": "cpu", "prefect": False, "internal_report": False},
    }  # fmt: skip
    return SynthesizeConfig.build(settings, folder / "config.yaml")


@pytest.fixture
def cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a run fail once it was charged; return its folder."""
    opened(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(flow, "train", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            carry_out(start(asked(tmp_path), "first"), prefect=False)
    return tmp_path


def test_what_was_released_before_is_named_before_it_is_charged_again(tmp_path: Path) -> None:
    home, words = opened(tmp_path, cap=9), synthesize_words(tmp_path)
    assert "the same plan" not in run_cli(*words)[2]
    run, spent = only_run(tmp_path), charges(home)
    said = (
        f"run {run} of account clinic has released the same plan; a second charge tells more of everybody in the data"
    )
    code, _, err = run_cli(*words, "--out", tmp_path / "second")
    assert code == 1 and f"{said}, and adds up: epsilon=1 is spent, with it epsilon=1.4" in err, err
    free = f"`nacre sample {run} --rows ROWS --out FILE --home {home}`"
    assert (
        f"of the cap of 9; to draw more rows from it, for nothing: {free}; nothing was charged now. --again REASON"
        in err
    )
    assert charges(home) == spent and only_run(tmp_path) == run and not (tmp_path / "second").exists()
    for other in ("--target-epsilon", 2), ("--data-set-again", ""), ("--again", "for another team"):
        if other[0].startswith("--data"):
            shutil.copy(tmp_path / "clinic.parquet", tmp_path / "other.parquet")
            other_words = synthesize_words(tmp_path, data=tmp_path / "other.parquet")
        else:
            other_words = [*words, *other]
        code, _, err = run_cli(*other_words, "--out", tmp_path / f"out{other[0]}")
        assert code == 0 and "the same plan" not in err, err
    before, runs, wards = charges(home), os.listdir(home / "released"), pa.array(["nowhere"] * 60)
    broken = (table := make_table(60)).set_column(table.schema.get_field_index("ward"), "ward", wards)
    pq.write_table(broken, tmp_path / "clinic.parquet")
    code, _, err = run_cli(*words, "--out", tmp_path / "refused")
    assert code != 0 and "ward must be one of" in err and "the same plan" not in err, err
    assert charges(home) == before and os.listdir(home / "released") == runs


@pytest.mark.parametrize("agreed", [True, False])
@pytest.mark.nightly_if("True")
def test_whoever_sees_the_warning_is_asked_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agreed: bool
) -> None:
    asked_of, (home, words) = list[str](), (opened(tmp_path, cap=9), synthesize_words(tmp_path))
    monkeypatch.setattr("flows.command_line.console.typer.confirm", lambda text, **_: asked_of.append(text) or agreed)
    monkeypatch.setattr("flows.command_line.console._is_terminal", lambda _: True)
    assert run_cli(*words)[0] == 0 and asked_of == []
    before, run = charges(home), only_run(tmp_path)
    code, _, err = run_cli(*words, "--out", tmp_path / "second")
    assert asked_of == ["Charge again?"] and f"run {run} of account clinic has released the same plan" in err
    assert (code == 0) == agreed and charges(home) == before * (1 + agreed)
    assert run_cli(*words, "--out", tmp_path / "third", "--again", "for another team")[0] == 0 and len(asked_of) == 1
    monkeypatch.setattr("flows.command_line.console._is_terminal", lambda stream: stream is sys.stdout)
    assert run_cli(*words, "--out", tmp_path / "fourth")[0] == 1 and len(asked_of) == 1  # nobody types there


def test_other_rows_in_the_same_file_are_charged_with_a_warning(tmp_path: Path) -> None:
    home, words = opened(tmp_path, cap=9), synthesize_words(tmp_path)
    assert run_cli(*words)[0] == 0
    before, run = charges(home), only_run(tmp_path)
    pq.write_table(make_table(61), tmp_path / "clinic.parquet")  # as a night does that writes its rows over the last
    code, _, err = run_cli(*words, "--out", tmp_path / "second")
    assert code == 0 and f"warning: run {run} of account clinic has released the same plan" in err, err
    assert charges(home) == [*before, *before]


def test_rows_that_nobody_remembers_are_warned_of_and_not_refused(tmp_path: Path) -> None:
    home, words = opened(tmp_path, cap=9), synthesize_words(tmp_path)
    assert run_cli(*words)[0] == 0
    shutil.rmtree(home / "sensitive" / only_run(tmp_path))
    code, _, err = run_cli(*words, "--out", tmp_path / "second")
    assert code == 0 and "has released the same plan" in err, err


def again(warned: list[warnings.WarningMessage]) -> list[warnings.WarningMessage]:
    """Return the warnings of a plan that was released before."""
    return [one for one in warned if "has released the same plan" in str(one.message)]


@pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")
@pytest.mark.parametrize("data", ["frame", "file", "frame, then file", "file, then frame"])
def test_python_refuses_the_same_rows_and_plan_unless_it_is_told_why(tmp_path: Path, capfd, data: str) -> None:
    home, model = opened(tmp_path, cap=9), yaml.safe_load((tmp_path / "config.yaml").read_text())["model"]
    given = {"frame": make_table(60), "file": tmp_path / "clinic.parquet"}
    first, _, second = data.partition(", then ")

    def synthesize(what: str, **again: str) -> str:
        terms = dict(epsilon=1, delta=1e-5, home=home, **model, **again)
        return nacre.synthesize(given[what], tmp_path / "clinic.yaml", **terms).run

    run, before = synthesize(first), charges(home)
    with refused(
        PaidBefore, "nothing was charged now. `again=REASON` charges again", run=run, account="clinic"
    ) as refusal:
        synthesize(second or first)
    assert f"`nacre.sample({run!r}, ROWS, home='" in str(refusal.value)
    assert charges(home) == before and only_run(tmp_path) == run  # it leaves nothing behind
    synthesize(second or first, again="for another team")
    assert charges(home) == [*before, *before] and "has released the same plan" not in capfd.readouterr().err


@pytest.mark.filterwarnings("ignore::nacre.ReleaseWarning")
def test_python_warns_before_it_charges_the_same_plan_of_other_rows(tmp_path: Path) -> None:
    home, model = opened(tmp_path), yaml.safe_load((tmp_path / "config.yaml").read_text())["model"]
    terms = dict(epsilon=1, delta=1e-5, home=home, **model)
    run, before = nacre.synthesize(make_table(60), tmp_path / "clinic.yaml", **terms).run, charges(home)
    with warnings.catch_warnings():
        warnings.simplefilter("error", nacre.ReleaseWarning)
        with pytest.raises(nacre.ReleaseWarning, match=f"run {run} of account clinic has released the same plan; a"):
            nacre.synthesize(make_table(61), tmp_path / "clinic.yaml", **terms)
    assert charges(home) == before and only_run(tmp_path) == run  # a filter stops it, and leaves nothing behind
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        nacre.synthesize(make_table(61), tmp_path / "clinic.yaml", **terms)
    (warning,) = again(warned)
    assert issubclass(nacre.ReleaseWarning, UserWarning) and warning.category is nacre.ReleaseWarning
    assert nacre.ReleaseWarning.__module__ == "nacre"  # as a filter and a script name it
    assert warning.filename == __file__ and charges(home) == [*before, *before]


@pytest.mark.parametrize("moment", ["sanitize: drawing", "train", "publish"])
@pytest.mark.nightly_if("train", "publish")
def test_the_same_command_after_a_kill_names_the_run_that_is_paid_for(tmp_path: Path, moment: str) -> None:
    home = opened(tmp_path)
    assert ends_at(*MOMENTS[moment], True, *synthesize_words(tmp_path)) == -signal.SIGKILL
    run, before = only_run(tmp_path), charges(home)
    code, _, err = run_cli(*synthesize_words(tmp_path, out=tmp_path / "second"))
    assert (
        code == 1 and f"`nacre resume {run} --home {home}`" in err and "--again" in err and "nothing was charged" in err
    )
    assert charges(home) == before and only_run(tmp_path) == run
    assert run_cli("resume", run, "--home", home, "--no-prefect")[0] == 0
    shutil.move(tmp_path / "out", tmp_path / "delivered")  # what was handed over is finished, wherever it lies now
    assert run_cli(*synthesize_words(tmp_path), "--again", "for another team")[0] == 0


def test_whoever_wants_to_be_charged_again_says_why_for_good(cut_off: Path) -> None:
    with refused(PaidUnfinished, run="first", account="clinic"):
        start(asked(cut_off, "second"))
    run = carry_out(start(asked(cut_off, "second", again="The first one is not wanted.")), prefect=False)
    entries = Ledger(run.ledger).entries(key=charges_of(run)[0].key)
    assert entries[0].content["declared"] == {"again": "The first one is not wanted."}
    assert "was charged before</strong>" in (run.settings.out / "statement.html").read_text()


def test_a_run_that_waited_while_the_same_one_was_charged_and_cut_off_is_not_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = opened(tmp_path)
    first, second = start(asked(tmp_path), "first"), start(asked(tmp_path, "other"), "second")
    with monkeypatch.context() as broken:
        broken.setattr(flow, "train", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            carry_out(first, prefect=False)
    before = charges(home)
    with pytest.raises(PaidUnfinished) as refusal:
        carry_out(second, prefect=False)
    assert refusal.value.run == "first" and charges(home) == before
    carry_out(first, prefect=False)  # it is handed over, so another charge is meant
    assert carry_out(second, prefect=False).settings.out.is_dir() and charges(home) == [*before, *before]


def test_another_plan_and_other_data_are_not_refused(cut_off: Path) -> None:
    other = cut_off / "other.parquet"
    shutil.copy(cut_off / "clinic.parquet", other)
    start(asked(cut_off, "second", epsilon=0.5))
    start(asked(cut_off, "third").model_copy(update={"data": str(other)}))


def test_the_same_data_by_another_name_are_the_same(cut_off: Path) -> None:
    (cut_off / "link.parquet").symlink_to(cut_off / "clinic.parquet")
    (cut_off / "beside").mkdir()
    os.link(cut_off / "clinic.parquet", cut_off / "beside" / "part-0.parquet")
    for place in ("link.parquet", "beside/../clinic.parquet", "clin*.parquet", "beside", "beside/"):
        for spelled in (f"{cut_off}/{place}", f"file://{cut_off}/{place}"):
            with pytest.raises(PaidUnfinished):
                start(asked(cut_off, "second").model_copy(update={"data": spelled}))


def test_a_manifest_that_somebody_put_at_its_place_is_not_its_hand_off(cut_off: Path) -> None:
    forged = json.loads((GOLDEN / "FORMAT-1" / "sampled-again" / "manifest.json").read_text())
    (cut_off / "out").mkdir()
    (cut_off / "out" / "manifest.json").write_text(json.dumps(forged | {"sampled_again_as": "first"}))
    with pytest.raises(PaidUnfinished):
        start(asked(cut_off, "second"))
    first = flow.find(cut_off / "home", "first", None, None)
    with refused(PathTaken, path=cut_off / "out"):
        carry_out(first, prefect=False)
    shutil.rmtree(cut_off / "out")
    assert is_in_place(carry_out(first, prefect=False))


@pytest.mark.parametrize("how", [fcntl.LOCK_SH, fcntl.LOCK_EX])
def test_who_can_only_read_the_control_zone_hides_no_run_and_holds_none_up(cut_off: Path, how: int) -> None:
    descriptor = os.open(cut_off / "home" / "control" / "first", os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        with pytest.raises(PaidUnfinished):
            start(asked(cut_off, "second"))
        carry_out(flow.find(cut_off / "home", "first", None, None), prefect=False)
    finally:
        os.close(descriptor)


def test_a_charge_that_was_given_back_is_not_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(tmp_path)
    run = start(asked(tmp_path), "first")
    monkeypatch.setattr("dpmodels.releases.steps.transform_sum", lambda *_: 1 / 0)
    with pytest.raises(nacre.NacreError):
        carry_out(run, prefect=False)
    with pytest.raises(PaidUnfinished):
        start(asked(tmp_path, "second"))
    Ledger(run.ledger).void(charges_of(run)[0].key, "not wanted")
    start(asked(tmp_path, "second"))


def test_a_run_that_is_under_way_is_not_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(tmp_path)
    train, beside = flow.train, list[str]()

    def while_it_trains(*handles: object) -> object:
        beside.append(start(asked(tmp_path, "second")).name)
        return train(*handles)

    while_it_trains.policy = train.policy  # type: ignore[attr-defined]
    monkeypatch.setattr(flow, "train", while_it_trains)
    carry_out(start(asked(tmp_path)), prefect=False)
    assert len(beside) == 1


def test_a_cap_that_refuses_names_what_is_paid_for_already(cut_off: Path) -> None:
    with pytest.raises(BudgetExhausted) as refusal:
        start(asked(cut_off, "second", epsilon=3))
    assert refusal.value.unfinished == ("first",) and "`nacre resume first`" in str(refusal.value)
    carry_out(flow.find(cut_off / "home", "first", None, None), prefect=False)
    with pytest.raises(BudgetExhausted) as refusal:
        start(asked(cut_off, "second", epsilon=3))
    assert refusal.value.unfinished == ()


def test_a_deployed_run_says_the_same(cut_off: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NACRE_HOME", str(cut_off / "home"))
    config = asked(cut_off, "second")
    with pytest.raises(PaidUnfinished) as refusal:
        take_to_hand_off("tonight", config, "here")
    assert refusal.value.run == "first"


def test_rows_given_in_memory_are_not_paid_for_twice_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, frame = opened(tmp_path), make_table(60).to_pandas()
    quick = {"measurement": {"frequencies": {"count": 32}}, "training": {"steps": 6, "batch_size": 32}}
    own = dict(epsilon=1, delta=1e-5, home=home, method="pearl", rows=20, **quick)
    with monkeypatch.context() as broken:
        broken.setattr(flow, "train", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            nacre.synthesize(frame, tmp_path / "clinic.yaml", **own)
    with pytest.raises(PaidUnfinished) as refusal:
        nacre.synthesize(frame, tmp_path / "clinic.yaml", **own)
    assert refusal.value.run == only_run(tmp_path)
    with pytest.warns(nacre.ReleaseWarning):
        assert nacre.resume(refusal.value.run, home=home).table.shape[0] == 20


def test_a_federation_is_named_by_its_own_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = of_wards(tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr("flows.synthesize.publish", lambda *_: 1 / 0)
        with pytest.raises((ZeroDivisionError, nacre.NacreError)):
            carry_out(run, prefect=False)
    code, _, err = run_cli("federate", tmp_path / "federation.yaml", "--out", tmp_path / "second")
    assert code == 1 and f"`nacre resume {run.name} --home " in err


def test_a_region_and_a_last_stroke_make_no_other_data_of_what_lies_elsewhere() -> None:
    assert _known_by("s3://visits/a/?region=eu-west-1") == _known_by("s3://visits/a") != _known_by("s3://visits/b")
    clinic = "postgresql://reader@host/clinic?options=1"
    assert _known_by(clinic, "visits") == clinic
