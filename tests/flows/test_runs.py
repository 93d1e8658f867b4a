"""What is left of runs that did not end: why, whether they can go on, and what is taken away of them."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.errors import DataError
from flows.config import SynthesizeConfig
from flows.settings import placed
from flows.synthesize import carry_out, start
from tasks.run.accounts import reserve
from tasks.run.at_work import at_work
from tasks.run.store import Run
from tasks.stages.ingest import ingest
from tests.kit.support import charges, make_table, run_cli, synthesize_words, write_clinic

pytestmark = pytest.mark.processes


def begun(folder: Path, name: str) -> Run:
    write_clinic(folder)
    given = {"data": folder / "clinic.parquet", "schema": folder / "clinic.yaml", "out": folder / name}
    given |= {"target_epsilon": 1, "delta": 1e-5, "home": folder / "home"}
    return start(SynthesizeConfig.build(placed(given), folder / "config.yaml"), name)


def listed(home: Path) -> dict[str, Any]:
    return {one["run"]: one for one in json.loads(run_cli("runs", "--home", home, "--json")[1])}


@pytest.mark.parametrize("fault", ["names", "values"])
def test_a_refused_input_leaves_no_run(tmp_path: Path, fault: str) -> None:
    data, _, _ = write_clinic(tmp_path)
    table = make_table(200)
    broken = table.rename_columns({"ward": "Ward"}) if fault == "names" else table.slice(0, 0)
    pq.write_table(broken, data)
    code, _, err = run_cli(*synthesize_words(tmp_path))
    assert code == 1 and ("in other letters" if fault == "names" else "no rows") in err
    assert "if it is interrupted" not in err  # nothing is left that could go on
    home = tmp_path / "home"
    assert not [path for zone in ("control", "released", "sensitive") for path in home.glob(f"{zone}/[!.]*/*")]
    pq.write_table(table, data)
    assert run_cli(*synthesize_words(tmp_path))[0] == 0
    assert [one["state"] for one in listed(home).values()] == ["handed over"]


def test_the_page_of_a_refused_input_is_where_the_sentence_says(tmp_path: Path) -> None:
    data, _, _ = write_clinic(tmp_path)
    table = make_table(200)
    pq.write_table(table.slice(0, 0), data)
    err = run_cli(*synthesize_words(tmp_path))[2]
    assert "nothing was charged" in err and "shows every rule" not in err  # no rule was broken
    place = table.column_names.index("ward")
    pq.write_table(table.set_column(place, "ward", pa.array(["nowhere"] * len(table))), data)
    err = run_cli(*synthesize_words(tmp_path))[2]
    page = Path(err.split("nothing was charged; ")[1].split(" shows every rule")[0])
    assert page.is_file() and page.is_relative_to(tmp_path / "home" / "sensitive")
    assert page.stat().st_mode & 0o777 == 0o600 and page.parent.stat().st_mode & 0o077 == 0


def test_a_paid_or_approved_run_whose_input_is_refused_stays(tmp_path: Path) -> None:
    paid, approved = begun(tmp_path, "paid"), begun(tmp_path, "approved")
    ingest(paid)
    reserve(paid)
    (approved.control / "approval.json").write_text("{}")
    for run in (paid, approved):
        with pytest.raises(DataError), at_work(run):
            raise DataError("ward", "must hold text")
    said = listed(tmp_path / "home")
    assert said["paid"]["why"] == said["approved"]["why"] == "column ward: must hold text"


def test_a_run_that_ends_says_why_and_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_clinic(tmp_path)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    stop.policy = None  # type: ignore[attr-defined]
    with monkeypatch.context() as patched:
        patched.setattr("flows.synthesize.train", stop)
        assert run_cli(*synthesize_words(tmp_path))[0] == 130
    (one,) = listed(tmp_path / "home").values()
    assert (one["state"], one["why"]) == ("paid for, unfinished", "interrupted")
    assert one["next"] == f"nacre resume {one['name']} --home {tmp_path / 'home'}"
    out = run_cli("runs", "--home", tmp_path / "home")[1]
    assert f"{one['name']}: interrupted; it is paid for: {one['next']} goes on, for nothing" in out.splitlines()
    assert run_cli(*one["next"].split()[1:], "--no-prefect")[0] == 0
    (one,) = listed(tmp_path / "home").values()
    assert (one["state"], one["why"], one["next"]) == ("handed over", "", "")


def test_a_run_whose_charge_is_open_is_paid_for_though_no_stage_ended(tmp_path: Path) -> None:
    run = begun(tmp_path, "reserved")
    ingest(run)
    reserve(run)
    one = listed(run.home)["reserved"]
    assert (one["state"], one["stage"]) == ("paid for, unfinished", "")
    assert "ended without a word" in one["why"]


def test_a_run_that_lost_its_data_cannot_go_on(tmp_path: Path) -> None:
    run = begun(tmp_path, "lost")
    (tmp_path / "clinic.parquet").unlink()
    one = listed(run.home)["lost"]
    assert one["next"] == f"nacre remove lost --home {run.home}" and "clinic.parquet is gone" in one["why"]


def test_a_run_whose_place_another_run_took_cannot_go_on(tmp_path: Path) -> None:
    stopped, other = begun(tmp_path, "stopped"), begun(tmp_path, "other")
    other.settle(other.settings.model_copy(update={"out": stopped.settings.out}))
    carry_out(other, prefect=False)
    one = listed(stopped.home)["stopped"]
    assert one["next"] == f"nacre remove stopped --home {stopped.home}"
    assert f"{stopped.settings.out} holds the hand-off of run other" in one["why"]


WORK = """
import sys
from pathlib import Path
from tasks.run.at_work import at_work
from tasks.run.store import Run
with at_work(Run(home=Path(sys.argv[1]), name=sys.argv[2])):
    print("works", flush=True)
    sys.stdin.read()
"""


def test_a_run_at_which_a_process_works_is_not_removed(tmp_path: Path) -> None:
    run = begun(tmp_path, "busy")
    with subprocess.Popen(
        [sys.executable, "-c", WORK, run.home, run.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"works\n"
        assert listed(run.home)["busy"]["state"] == "at work"
        code, _, err = run_cli("remove", "busy", "--home", run.home, "--yes")
        assert code == 1 and "a process works on run busy" in err and run.exists
        assert run_cli("remove", "--unfinished", "--home", run.home, "--yes")[0] == 0 and run.exists
        process.kill()
    assert listed(run.home)["busy"]["state"] == "unfinished"
    assert run_cli("remove", "busy", "--home", run.home, "--yes")[0] == 0 and not run.exists


def test_what_took_no_charge_is_removed_after_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, paid, approved = (begun(tmp_path, name) for name in ("dead", "paid", "approved"))
    handed_over = carry_out(begun(tmp_path, "whole"), prefect=False)
    ingest(paid)
    paid.settle(paid.settings.model_copy(update={"account": "clinic", "opens": None}))
    words = ("ledger", "cap", "clinic", "--epsilon", 2, "--reason", "room", "--home", paid.home)
    assert run_cli(*words)[0] == 0
    reserve(paid)
    (approved.control / "approval.json").write_text("{}")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, _, err = run_cli("remove", "--unfinished", "--home", dead.home)
    assert code == 1 and dead.exists and "add --yes" in err and "Aborted" not in err
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert run_cli("remove", "--unfinished", "--home", dead.home)[0] == 1 and dead.exists
    code, out, _ = run_cli("remove", "--unfinished", "--home", dead.home, "--yes")
    assert code == 0 and not dead.exists and not dead.sensitive.exists()
    assert paid.exists and approved.exists and handed_over.exists
    assert "paid: stays, it is paid for: nacre resume paid" in out and "approved: stays" in out
    assert charges(paid.home).count("reserve") == 2
    code, out, _ = run_cli("remove", "--unfinished", "--home", dead.home)
    assert code == 0 and "nothing to remove" in out
    assert run_cli("remove", "--home", dead.home)[0] == 2 == run_cli("remove", "x", "--unfinished")[0]
