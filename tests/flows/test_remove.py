"""A run's files can be taken away; its charges cannot, and nothing that is removed can be drawn a second time."""

import io
from pathlib import Path

import pytest

from dpmodels.errors import ArtifactError
from dpmodels.ledger.ledger import Ledger
from flows.config import SynthesizeConfig
from flows.settings import placed
from flows.synthesize import carry_out, start
from tasks.run.accounts import charges_of, reserve
from tasks.run.store import Run
from tasks.stages.ingest import ingest
from tests.kit.support import charges, run_cli, write_clinic
from tests.kit.wards import begun as of_wards

pytestmark = pytest.mark.processes


def begun(folder: Path, out: str = "out", name: str = "the-run") -> Run:
    write_clinic(folder)
    given = {"data": folder / "clinic.parquet", "schema": folder / "clinic.yaml", "out": folder / out}
    given |= {"target_epsilon": 1, "delta": 1e-5, "home": folder / "home"}
    return start(SynthesizeConfig.build(placed(given), folder / "config.yaml"), name)


def remove(run: Run, *words: str) -> tuple[int, str, str]:
    return run_cli("remove", run.name, "--home", run.home, *words)


def folders(run: Run) -> list[bool]:
    return [zone.exists() for zone in (run.sensitive, run.control, run.released)]


def test_a_finished_run_is_removed_and_stays_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = carry_out(begun(tmp_path), prefect=False)
    before = Ledger(run.ledger).balance("clinic")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert remove(run)[0] == 1 and folders(run) == [True] * 3  # asked, and answered with no
    code, out, _ = remove(run, "--yes")
    assert code == 0 and folders(run) == [False] * 3 and (run.home / "sensitive").exists()
    assert "epsilon=1.0, delta=1e-05 on account clinic, committed: stays charged" in out and str(run.sensitive) in out
    assert Ledger(run.home / "ledger.sqlite").balance("clinic") == before
    assert charges(run.home) == ["reserve", "draw", "seal", "commit"]
    assert (tmp_path / "out" / "manifest.json").exists()  # what was handed over is whoever's has it
    assert (run_cli("verify", tmp_path / "out")[0], run_cli("ledger", "verify", "--home", run.home)[0]) == (3, 0)
    assert "no run the-run" in remove(run, "--yes")[2]


def test_a_removed_run_is_not_drawn_again_under_its_charge(tmp_path: Path) -> None:
    run = carry_out(begun(tmp_path), prefect=False)
    ledger = Ledger(run.ledger)
    ledger.change_cap("clinic", reason="room", epsilon=5)
    assert remove(run, "--yes")[0] == 0
    again = begun(tmp_path, "again")  # the same plan under the same name is the same charge
    with pytest.raises(ArtifactError, match="missing"):
        carry_out(again, prefect=False)
    assert charges(run.home).count("draw") == 1


@pytest.mark.parametrize("state", ["reserved", "drawing"])
def test_a_run_with_an_open_charge_stays_until_it_is_voided(tmp_path: Path, state: str) -> None:
    run = begun(tmp_path)
    ingest(run)
    reserve(run)
    key, ledger = charges_of(run)[0].key, Ledger(run.ledger)
    if state == "drawing":
        ledger.begin_draw(key)
    code, _, err = remove(run, "--yes")
    assert code == 1 and f"is {state}, so its files stay; nacre resume the-run" in err and folders(run) == [True] * 3
    if state == "reserved":
        assert run_cli("ledger", "void", key, "--reason", "not wanted", "--home", run.home)[0] == 0
        code, out, _ = remove(run, "--yes")
        assert code == 0 and "voided: was given back" in out and folders(run) == [False] * 3
    else:
        assert run_cli("resume", run.name, "--home", run.home, "--no-prefect")[0] == 0
        assert remove(run, "--yes")[0] == 0 and folders(run) == [False] * 3


def test_a_run_that_was_charged_nothing_says_so(tmp_path: Path) -> None:
    code, out, _ = remove(begun(tmp_path), "--yes")
    assert code == 0 and "is gone; it was charged nothing" in out


def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    run = begun(tmp_path)
    mine = tmp_path / "mine"
    run.released.rename(mine)
    (mine / "kept.txt").write_text("kept")
    run.released.symlink_to(mine)
    assert remove(run, "--yes")[0] == 0
    assert not run.released.is_symlink() and (mine / "kept.txt").exists()


def test_a_federation_is_removed_with_the_runs_of_its_clients(tmp_path: Path) -> None:
    run = carry_out(of_wards(tmp_path), prefect=False)
    names = [own.name for own in run.parties]
    code, out, _ = remove(run, "--yes")
    assert code == 0 and all(f"/{name}" in out for name in names) and out.count("committed: stays charged") == 3
    assert not list((run.home).glob(f"*/{run.name}*")) and (tmp_path / "out" / "manifest.json").exists()
    assert charges(run.home).count("commit") == 3 and run_cli("ledger", "verify", "--home", run.home)[0] == 0
    assert list((tmp_path / "home" / ".locks").iterdir()) == []


def test_a_federation_with_an_open_charge_of_one_client_stays_whole(tmp_path: Path) -> None:
    run = of_wards(tmp_path)
    reserve(run.parties[1])
    code, _, err = remove(run, "--yes")
    assert code == 1 and f"of run {run.parties[1].name} is reserved" in err
    assert all(all(folders(own)) for own in [run, *run.parties])


def kept_until(run: Run, words: str) -> Run:
    run.settle(run.settings.model_copy(update={"retention": words}))
    return run


def test_what_is_expired_loses_its_private_files_and_nothing_else(tmp_path: Path) -> None:
    done = kept_until(carry_out(begun(tmp_path), prefect=False), "Until 2026-01-31, by the board's decision.")
    words = ("remove", "--expired", "--yes", "--home", done.home)
    for name, text in [("soon", "Until 2999-12-31."), ("never", "A month."), ("two", "2026-01-01 or 2026-02-01")]:
        ledger = Ledger(done.ledger)
        ledger.change_cap("clinic", reason="room", epsilon=float(ledger.account("clinic").cap.epsilon) + 2)
        config = SynthesizeConfig.build(
            placed({"data": tmp_path / "clinic.parquet", "schema": tmp_path / "clinic.yaml", "out": tmp_path / name}
                   | {"target_epsilon": 1, "delta": 1e-5, "home": done.home, "again": "another study"}),
            tmp_path / "config.yaml",
        )  # fmt: skip
        kept_until(start(config, name), text)
    code, out, _ = run_cli(*words)
    assert code == 0 and "gone: the private files of the-run" in out
    assert "two: stays, its retention names more than one day" in out and "soon" not in out and "never" not in out
    assert folders(done) == [False, True, True]
    assert all((done.home / "sensitive" / name).exists() for name in ("soon", "never", "two"))
    assert (run_cli("verify", tmp_path / "out")[0], run_cli("ledger", "verify", "--home", done.home)[0]) == (3, 0)
    assert run_cli("sample", "the-run", "--rows", 5, "--out", tmp_path / "m.csv", "--home", done.home)[0] == 0
    assert "nothing to remove" in run_cli(*words)[1]


def test_what_is_expired_and_still_drawn_stays(tmp_path: Path) -> None:
    run = kept_until(begun(tmp_path), "2026-01-31")
    ingest(run)
    reserve(run)
    code, out, _ = run_cli("remove", "--expired", "--yes", "--home", run.home)
    assert code == 0 and "the-run: stays, charge" in out and "is reserved" in out and folders(run) == [True] * 3


def test_only_one_of_the_ways_to_remove_is_named(tmp_path: Path) -> None:
    for words in [(), ("--expired", "--unfinished"), ("RUN", "--expired")]:
        assert run_cli("remove", *words, "--home", tmp_path)[0] == 2
