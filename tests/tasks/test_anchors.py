"""An anchor kept elsewhere shows that home and ledger were put back together, or that the chain was written anew."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.postgres import new_database
from dpmodels.errors import ArtifactError, LedgerError
from dpmodels.ledger.ledger import Ledger
from tasks.run.anchors import KEY, PLACE, anchor_faults, check_anchored, write_anchor
from tasks.run.home import check_home, home_faults
from tests.kit.charges import CAP, make_charge, rewrite
from tests.kit.support import run_cli, write_key


@pytest.fixture(params=["folder", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return str(tmp_path / "anchors")
    return str(request.getfixturevalue("store")[0].format("anchors"))


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return write_key(tmp_path / "operator.pem")


def spent(home: Path, runs: int = 1) -> Ledger:
    ledger = Ledger(home / "ledger.sqlite")
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
    for run in range(runs):
        ledger.reserve(make_charge(f"run-{run}", 0.1))
    return ledger


def test_a_home_and_a_ledger_that_were_put_back_together_are_noticed(
    tmp_path: Path, place: str, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, before = tmp_path / "home", tmp_path / "before"
    check_home(home, "", spent(home, 0))
    shutil.copytree(home, before)
    ledger = spent(home, 3)
    check_home(home, "", ledger)
    write_anchor(ledger, place, keys[0])
    assert anchor_faults(ledger, place, keys[1])[1] == []
    del ledger
    for name in ("ledger.sqlite", "control/ledger.json"):  # in place, so that the file keeps its number
        (home / name).write_bytes((before / name).read_bytes())
    for beside in home.glob("ledger.sqlite-*"):
        beside.unlink()
    ledger = Ledger(home / "ledger.sqlite")
    assert ledger.verify() == [] and list(home_faults(home, "", ledger)) == []  # nothing inside tells
    (fault,) = anchor_faults(ledger, place, keys[1])[1]
    assert "lacks entry 4" in fault
    ledger.change_cap("clinic", epsilon=2, reason="entries beyond the anchor's place do not mend it")
    with pytest.raises(LedgerError, match=r"lacks entry 4|was written anew"):
        write_anchor(ledger, place, keys[0])
    code, _, err = run_cli("ledger", "verify", "--home", home, "--anchor", place, "--public-key", keys[1])
    assert code == 1 and "lacks entry 4" in err
    monkeypatch.setenv(PLACE, place)
    monkeypatch.setenv(KEY, str(keys[1]))
    with pytest.raises(LedgerError, match="lacks entry 4"):
        check_home(home, "", ledger)


def test_a_chain_that_was_written_anew_is_noticed(tmp_path: Path, place: str, keys: tuple[Path, Path]) -> None:
    ledger = spent(tmp_path / "home", 2)
    write_anchor(ledger, place, keys[0])
    ledger.reserve(make_charge("later", 0.1))
    payload = ledger.entries()[1].payload.replace('"epsilon":0.1', '"epsilon":0.2')
    rewrite(tmp_path / "home" / "ledger.sqlite", 2, payload=payload)
    assert any("was written anew" in fault for fault in anchor_faults(ledger, place, keys[1])[1])


def test_another_ledger_another_key_and_no_anchor_are_faults(
    tmp_path: Path, place: str, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = spent(tmp_path / "home", 1)
    monkeypatch.setenv(PLACE, place)
    monkeypatch.setenv(KEY, str(keys[1]))
    with pytest.raises(LedgerError, match="there is no anchor"):
        check_anchored(ledger)
    assert any("no anchor" in fault for fault in anchor_faults(ledger, place, keys[1])[1])
    write_anchor(ledger, place, keys[0])
    check_anchored(ledger)
    assert any("another ledger" in fault for fault in anchor_faults(spent(tmp_path / "other", 1), place, keys[1])[1])
    other = write_key(tmp_path / "eve.pem")[1]
    assert any("is not an anchor that is signed" in fault for fault in anchor_faults(ledger, place, other)[1])
    check_anchored(Ledger(tmp_path / "home" / "ledger.sqlite"))


def test_nothing_is_overwritten_and_an_anchor_tells_no_more_than_a_manifest(
    tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    place, ledger = tmp_path / "anchors", spent(tmp_path / "home", 1)
    anchor, name = write_anchor(ledger, str(place), keys[0])
    content = (place / name).read_bytes()
    assert write_anchor(ledger, str(place), keys[0]) == (anchor, name) and (place / name).read_bytes() == content
    ledger.reserve(make_charge("later", 0.1))
    write_anchor(ledger, str(place), keys[0])
    assert len(list(place.iterdir())) == 2 and (place / name).read_bytes() == content
    assert set(json.loads(content)["anchor"]) == {"ledger", "position", "hash", "day"} and len(anchor.day) == 10
    assert (place / name).stat().st_mtime % 86_400 == 0
    with pytest.raises(ArtifactError):
        write_anchor(spent(tmp_path / "third", 1), str(place / name / "below"), keys[0])


def test_the_commands_anchor_a_ledger_on_postgresql(
    tmp_path: Path, postgres_server: str, keys: tuple[Path, Path]
) -> None:
    url, place = new_database(postgres_server, "anchored"), tmp_path / "anchors"
    Ledger(url).open_account("clinic", dataset="visits", budget_cap=CAP)
    own = ("--home", tmp_path, "--ledger", url)
    code, out, err = run_cli("ledger", "anchor", place, "--signing-key", keys[0], *own, "--json")
    assert code == 0 and json.loads(out)["position"] == 1, err
    code, out, _ = run_cli("ledger", "verify", "--anchor", place, "--public-key", keys[1], *own)
    assert code == 0 and f"1 anchor(s) at {place} were looked at" in out
    code, out, _ = run_cli("ledger", "verify", "--anchor", place, "--public-key", keys[1], "--json", *own)
    assert code == 0 and json.loads(out)["anchors"] == 1
    assert run_cli("ledger", "verify", "--anchor", place, *own)[0] == 1
