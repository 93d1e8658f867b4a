"""A ledger that was lost, restored or copied, and what a hand-off tells of the time that a run took."""

import json
import re
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dpmodels.errors import BudgetExhausted, LedgerError
from dpmodels.ledger.ledger import Ledger
from flows.synthesize import start, synthesize
from tasks.run.home import home_faults, remember
from tasks.run.store import new_name
from tests.kit.children import ends_at
from tests.kit.configurations import config
from tests.kit.kills import MOMENTS
from tests.kit.support import run_cli, synthesize_words, write_clinic

pytestmark = pytest.mark.processes

RELEASE_ONLY = {"target_epsilon": 1.0, "delta": 1e-5}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_clinic(tmp_path)
    synthesize(config(tmp_path, privacy=RELEASE_ONLY))
    return tmp_path / "home"


def another(folder: Path) -> tuple[int, str, str]:
    return run_cli(*synthesize_words(folder, out=folder / "more", target_epsilon=0.5))


@pytest.mark.parametrize("mark", ["kept", "lost"])
def test_a_lost_ledger_is_noticed_by_the_releases_that_it_lacks(tmp_path, home, mark):
    for file in home.glob("ledger.sqlite*"):
        file.unlink()
    if mark == "lost":
        (home / "control" / "ledger.json").unlink()
    code, _, err = another(tmp_path)
    assert code == 1 and ("was lost" if mark == "kept" else "lost, replaced, or restored from a backup") in err
    assert Ledger(home / "ledger.sqlite").entries() == []
    assert run_cli("ledger", "verify", "--home", home)[0] == 1


def test_a_ledger_restored_from_a_backup_is_noticed(tmp_path):
    write_clinic(tmp_path)
    home = tmp_path / "home"
    opened = ("--schema", tmp_path / "clinic.yaml", "--epsilon", 5, "--delta", 1e-5, "--home", home)
    assert run_cli("ledger", "open", "clinic", *opened)[0] == 0
    backup = [shutil.copy(file, tmp_path) for file in home.glob("ledger.sqlite*")]
    run = synthesize(config(tmp_path, privacy=RELEASE_ONLY))
    shutil.rmtree(run.released)  # even where the release itself is gone
    for file in home.glob("ledger.sqlite*"):
        file.unlink()
    for file in backup:
        shutil.copy(file, home)
    code, _, err = another(tmp_path)
    assert code == 1 and "lacks entry" in err and "Put the newest copy back" in err
    assert run_cli("ledger", "moved", "--reason", "trust me", "--home", home)[0] == 1


def test_a_copied_home_is_noticed_until_somebody_answers_for_it(tmp_path, home):
    shutil.copytree(home, tmp_path / "twin")
    (tmp_path / "twin").rename(tmp_path / "second")
    words = synthesize_words(tmp_path, out=tmp_path / "more", home=tmp_path / "second", target_epsilon=0.5)
    code, _, err = run_cli(*words)
    assert code == 1 and "two copies would each spend the whole cap" in err
    assert run_cli("ledger", "moved", "--reason", " ", "--home", tmp_path / "second")[0] == 1
    assert run_cli("ledger", "moved", "--reason", "new disk", "--home", tmp_path / "second")[0] == 0
    code, _, err = run_cli(*words)
    assert code == 1 and "refuses the charge" in err  # the account is full: as it should be
    assert json.loads((tmp_path / "second" / "control" / "ledger.json").read_text())["moved"] == ["new disk"]


def test_a_home_that_was_renamed_is_the_same_home(tmp_path, home):
    home.rename(tmp_path / "elsewhere")
    assert run_cli("ledger", "verify", "--home", tmp_path / "elsewhere")[0] == 0


def test_whoever_writes_the_released_zone_stops_no_account(tmp_path, home):
    """What was released is in the control zone; a file or a link beside it is a remark of `nacre ledger verify`."""
    own = next(home.glob("released/*/release.parquet"))
    for name in ("planted", "another file\x1b[31m", *map(str, range(1000))):
        (home / "released" / name).mkdir()
        (home / "released" / name / "scores.parquet").touch()
    (home / "released" / "planted" / "release.parquet").symlink_to(tmp_path / "clinic.parquet")
    code, out, err = run_cli("ledger", "verify", "--home", home)
    assert code == 0 and (out + err).count("of no run of this home") == 21 and "983 more" in out + err
    assert "\x1b[31m" not in out + err
    for content in (None, b"PAR1" + bytes(40) + b"PAR1", b"PAR1\xff\xff\xff\x7fPAR1", b""):
        own.unlink()
        own.symlink_to(tmp_path / "clinic.parquet") if content is None else own.write_bytes(content)
        with pytest.raises(BudgetExhausted):  # the ledger was asked
            start(config(tmp_path, out=tmp_path / "more"))
    assert run_cli("ledger", "moved", "--reason", "new disk", "--home", home)[0] == 0
    assert run_cli("ledger", "verify", "--home", home)[0] == 1


def test_a_release_whose_file_is_gone_is_still_missed_in_a_ledger_that_lacks_it(tmp_path, home):
    """The ledger and the home's mark are lost, and somebody deleted the released file: the run's record says enough."""
    for file in [*home.glob("ledger.sqlite*"), home / "control" / "ledger.json", *home.glob("released/*/*.parquet")]:
        file.unlink()
    code, _, err = another(tmp_path)
    assert code == 1 and "lost, replaced, or restored from a backup" in err
    assert Ledger(home / "ledger.sqlite").entries() == []


def test_a_ledger_that_is_lost_while_a_run_draws_is_missed(tmp_path):
    write_clinic(tmp_path)
    words = synthesize_words(tmp_path)
    assert ends_at(*MOMENTS["sanitize: drawing"], True, *words) == -signal.SIGKILL
    for file in (tmp_path / "home").glob("ledger.sqlite*"):
        file.unlink()
    code, _, err = another(tmp_path)
    assert code == 1 and "was lost: this home has seen its entries" in err


def test_nothing_in_a_hand_off_tells_the_time_of_day(tmp_path, home):
    today = datetime.now(UTC).date().isoformat()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {entry["day"] for entry in manifest["ledger"]["entries"]} <= {today}
    everything = "".join(p.read_text() for p in (tmp_path / "out").iterdir() if p.is_file())
    assert not re.search(r"\d\d:\d\d:\d\d", everything)
    midnight = time.time() // 86_400 * 86_400
    assert {path.stat().st_mtime for path in (tmp_path / "out").rglob("*")} == {midnight}
    assert re.fullmatch(r"\d{8}-[0-9a-f]{10}", manifest["run"]) and new_name() != new_name()


def test_a_hash_of_the_ledger_hides_the_microsecond_of_its_entry(home):
    """Without a nonce the hash in a manifest could be tried against every microsecond of a day."""
    entries = Ledger(home / "ledger.sqlite").entries()
    nonces = [entry.content["nonce"] for entry in entries]
    assert len(set(nonces)) == len(entries) and all(re.fullmatch("[0-9a-f]{32}", nonce) for nonce in nonces)


def test_a_run_that_was_started_before_is_not_charged_to_a_ledger_made_anew(tmp_path):
    """It carries the terms of the account, so it could open it once more; the home remembers better."""
    write_clinic(tmp_path)
    pending = start(config(tmp_path, privacy=RELEASE_ONLY, out=tmp_path / "pending"))
    synthesize(config(tmp_path, privacy=RELEASE_ONLY))
    mark = (tmp_path / "home" / "control" / "ledger.json").read_text()
    for file in (tmp_path / "home").glob("ledger.sqlite*"):
        file.unlink()
    code, _, err = run_cli("resume", pending.name, "--home", pending.home, "--no-prefect")
    assert code == 1 and "was lost: this home has seen its entries" in err
    assert not (tmp_path / "home" / "ledger.sqlite").exists()
    Ledger(tmp_path / "home" / "ledger.sqlite")  # even where an empty one lies there
    code, _, err = run_cli("resume", pending.name, "--home", pending.home, "--no-prefect")
    assert code == 1 and "lacks entry" in err
    assert Ledger(tmp_path / "home" / "ledger.sqlite").entries() == []
    assert (tmp_path / "home" / "control" / "ledger.json").read_text() == mark
    with pytest.raises(LedgerError):
        remember(tmp_path / "home", "", Ledger(tmp_path / "home" / "ledger.sqlite"))


def test_another_ledger_than_the_homes_is_named_as_such(tmp_path, home):
    other = tmp_path / "other.sqlite"
    Ledger(other)
    code, _, err = run_cli(*synthesize_words(tmp_path, out=tmp_path / "more", ledger=f"sqlite:///{other}"))
    assert code == 1 and "this home charges" in err and "NACRE_LEDGER" in err
    absent = tmp_path / "absent.sqlite"
    code, _, err = run_cli(*synthesize_words(tmp_path, out=tmp_path / "more", ledger=f"sqlite:///{absent}"))
    assert code == 1 and "this home charges" in err and not absent.exists()


def test_a_look_at_a_ledger_that_is_not_there_makes_none(tmp_path):
    code, _, err = run_cli("ledger", "show", "--home", tmp_path, "--ledger", tmp_path / "nosuch.sqlite")
    assert code == 1 and "there is no ledger" in err and not (tmp_path / "nosuch.sqlite").exists()


def test_two_runs_that_end_at_once_both_remember(home):
    ledger = Ledger(home / "ledger.sqlite")
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(remember, home, "", ledger) for _ in range(60)]:
            done.result()
    assert list(home_faults(home, "", ledger)) == []


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b'{"seq": "many"}', b'{"ledger": "", "seq": 1'])
def test_a_home_that_lost_what_it_knew_of_its_ledger_says_so_and_takes_the_operators_word(tmp_path, content):
    from tests.kit.charges import CAP

    home, own = tmp_path / "home", ("--home", tmp_path / "home")
    ledger = Ledger(home / "ledger.sqlite")
    ledger.open_account("clinic", dataset="clinic", budget_cap=CAP)
    remember(home, "", ledger)
    (home / "control" / "ledger.json").write_bytes(content)
    (fault,) = home_faults(home, "", ledger)
    assert fault.movable and "empty or damaged" in str(fault)
    with pytest.raises(LedgerError, match="empty or damaged"):
        remember(home, "", ledger)
    code, _, err = run_cli("ledger", "verify", *own)
    assert code == 1 and "empty or damaged" in err and "Traceback" not in err
    assert run_cli("ledger", "moved", "--reason", "it is the newest", *own)[0] == 0
    assert run_cli("ledger", "verify", *own)[0] == 0


@pytest.mark.parametrize("name", ["x" * 5000, "a\udcffb"])
def test_a_name_that_no_account_can_have_is_refused_in_a_sentence(tmp_path, name):
    from tests.kit.charges import CAP

    Ledger(tmp_path / "ledger.sqlite").open_account("clinic", dataset="clinic", budget_cap=CAP)
    schema = write_clinic(tmp_path)[1]
    for words in (("show", name), ("plan", name, "--epsilon", 1, "--delta", 1e-6), ("show", "--home", tmp_path / name),
                  ("open", name, "--schema", schema, "--epsilon", 1, "--delta", 1e-5),
                  ("show", "--ledger", f"postgresql://{name}/l")):  # fmt: skip
        code, _, err = run_cli("ledger", *words, *(() if "--home" in words else ("--home", tmp_path)))
        assert code == 1 and err.startswith("error: ") and err.count("\n") == 1, words


@pytest.mark.parametrize("content", [b"", b"\xff"])
def test_a_file_that_lost_its_content_is_no_new_ledger(tmp_path, content):
    (tmp_path / "ledger.sqlite").write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger(tmp_path / "ledger.sqlite")
    assert (tmp_path / "ledger.sqlite").read_bytes() == content
