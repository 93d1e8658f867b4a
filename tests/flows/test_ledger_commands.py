"""The ledger's commands, a hand-off that is verified by whoever receives it, and what Prefect is told."""

import base64
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key as read_key

from dpmodels import amounts
from dpmodels.errors import InvalidArgument
from dpmodels.hand_off.verify import verify_hand_off
from dpmodels.ledger.ledger import Balance, Charge, Ledger
from flows.with_prefect.budget import passed, used
from tasks.run.accounts import officer_of, sign_run
from tasks.run.store import Run
from tests.kit.api import Api, wait_until
from tests.kit.errors import refused
from tests.kit.support import make_schema, make_table, run_cli, synthesize_words, write_clinic, write_key

pytestmark = pytest.mark.processes

if TYPE_CHECKING:
    from flows.config import SynthesizeConfig

CAP = ("--epsilon", 2, "--delta", 1e-5)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one signed hand-off under an account of epsilon 2."""
    folder = tmp_path_factory.mktemp("done")
    write_clinic(folder)
    private, _ = write_key(folder / "officer.pem")
    opened = ("ledger", "open", "clinic", "--schema", folder / "clinic.yaml", *CAP, "--home", folder / "home")
    assert run_cli(*opened, "--owner", "A. Officer")[0] == 0
    code, _, err = run_cli(*synthesize_words(folder, method="pearl", signing_key=private))
    assert code == 0, err
    return folder


def test_an_account_that_is_called_otherwise_than_its_data_set_is_said_to_be(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    opened = ("--schema", tmp_path / "clinic.yaml", *CAP, "--home", tmp_path / "home")
    _, _, err = run_cli("ledger", "open", "clinics", *opened)
    assert "account clinics, which pays for data set clinic" in err
    cap = ("ledger", "cap", "clinic", "--epsilon", 3, "--reason", "more", "--home", tmp_path / "home")
    code, _, err = run_cli(*cap)
    assert code == 1 and "account clinics pays for data set clinic" in err


@pytest.fixture
def own(done: Path, tmp_path: Path) -> Path:
    """Return a copy that a test may change."""
    shutil.copytree(done, tmp_path / "copy")
    assert ask(tmp_path / "copy", "moved", "--reason", "a copy for a test")[0] == 0
    return tmp_path / "copy"


@pytest.mark.parametrize(
    "words", [("--cap-epsilon", 2, "--cap-delta", 1e-5), ("--cap-epsilon=2", "--cap-delta=1e-5"), CAP]
)
def test_a_cap_has_one_spelling_in_both_commands_and_the_one_before(tmp_path: Path, words: tuple[object, ...]) -> None:
    write_clinic(tmp_path, rows=20)
    opened = ("ledger", "open", "clinic", "--schema", tmp_path / "clinic.yaml", "--home", tmp_path / "home")
    assert run_cli(*opened, *words)[0] == 0
    assert ask(tmp_path, "cap", "clinic", "--epsilon", 3, "--reason", "a second study")[0] == 0
    code, _, err = run_cli(*opened, *words)
    assert code == 1 and "it has epsilon=3, and epsilon=2 was asked for; `nacre ledger cap clinic`" in err
    assert "--cap-epsilon" not in run_cli("ledger", "open", "--help")[1]


def ask(folder: Path, *words: object) -> tuple[int, str, str]:
    return run_cli("ledger", *words, "--home", folder / "home")


def test_show_entries_and_verify_speak_json(done: Path, tmp_path: Path) -> None:
    (account,) = json.loads(ask(done, "show", "--json")[1])
    assert account["name"] == "clinic" and account["owner"] == "A. Officer" and account["charges"] == 1
    assert 0.99 < float(account["spent_epsilon"]) <= 1 and 0.49 < account["used"] <= 0.5
    one = json.loads(ask(done, "show", "clinic", "--json")[1])
    assert [charge["state"] for charge in one["charged"]] == ["committed"]
    entries = json.loads(ask(done, "entries", "--json")[1])
    assert [entry["kind"] for entry in entries] == ["open", "reserve", "draw", "seal", "commit"]
    assert entries[0]["content"]["dataset"] == "clinic"
    verified = json.loads(ask(done, "verify", "--json")[1])
    assert verified == {"faults": [], "remarks": [], "newest_hash": entries[-1]["hash"]}
    target = tmp_path / "chain.parquet"
    said = json.loads(ask(done, "export", target, "--json")[1])
    assert said == {"file": str(target), "entries": len(entries), "newest_hash": entries[-1]["hash"]}
    for words in (("show",), ("show", "clinic"), ("entries",), ("entries", "clinic"), ("recover",)):
        code, out, _ = ask(done, *words)
        assert code == 0 and out
    for verb in ("show", "entries"):
        code, out, err = ask(done, verb, "clinics")
        assert (code, out) == (1, "") and "account clinics is not open" in err


def test_plan_says_what_fits_and_writes_nothing(done: Path) -> None:
    before = (done / "home" / "ledger.sqlite").read_bytes()
    code, out, _ = ask(done, "plan", "clinic", "--epsilon", 0.5, "--delta", 1e-5, "--times", 3, "--json")
    facts = json.loads(out)
    assert code == 0 and facts["fits"] and 1 < float(facts["spent_after"]) < 2
    code, out, _ = ask(done, "plan", "clinic", "--epsilon", 0.5, "--delta", 1e-5, "--times", 30, "--json")
    assert code == 1 and not json.loads(out)["fits"]
    assert (done / "home" / "ledger.sqlite").read_bytes() == before


def test_a_cap_is_changed_for_a_reason(own: Path) -> None:
    code, out, _ = ask(own, "cap", "clinic", "--epsilon", 3, "--reason", "the board agreed", "--json")
    assert code == 0 and json.loads(out)[0]["cap"] == "3.0"
    code, _, err = ask(own, "cap", "clinic", "--epsilon", 0.5, "--reason", "saving")
    assert code == 1 and "cannot be below" in err
    assert ask(own, "cap", "clinic", "--reason", "nothing")[0] == 1
    assert ask(own, "cap", "clinic", "--reason", "a slip", "--expires", "soon")[0] == 1
    assert ask(own, "verify")[0] == 0


def test_the_maximum_of_one_run_and_the_last_day_can_be_set_and_removed(own: Path) -> None:
    def terms(*words: object) -> tuple[object, object]:
        code, out, err = ask(own, "cap", "clinic", "--reason", "the board agreed", "--json", *words)
        assert code == 0, err
        (account,) = json.loads(out)
        return account["run_cap"], account["expires"]

    assert terms("--run-cap", 0.5, "--expires", "2000-01-01") == (0.5, "2000-01-01")
    again = synthesize_words(own, method="pearl", out=own / "second", target_epsilon=0.4)
    code, _, err = run_cli(*again)
    assert code == 1 and "2000-01-01" in err
    assert terms("--no-expires") == (0.5, None)
    code, _, err = run_cli(*synthesize_words(own, method="pearl", out=own / "second", target_epsilon=0.6))
    assert code == 1 and "remaining epsilon=0.5" in err
    assert terms("--no-run-cap") == (None, None)
    code, _, err = run_cli(*again)
    assert code == 0, err
    assert ask(own, "cap", "clinic", "--reason", "both", "--run-cap", 1, "--no-run-cap")[0] == 1
    assert [entry["kind"] for entry in json.loads(ask(own, "entries", "--json")[1])].count("cap") == 3
    assert ask(own, "verify")[0] == 0


def test_export_keeps_every_row_and_hash(own: Path) -> None:
    entries = Ledger(own / "home" / "ledger.sqlite").entries()
    assert ask(own, "export", own / "chain.parquet")[0] == ask(own, "export", own / "chain.json")[0] == 0
    rows = [entry.model_dump() for entry in entries]
    assert pq.read_table(own / "chain.parquet").to_pylist() == rows
    assert json.loads((own / "chain.json").read_text())["entries"] == rows
    assert ask(own, "export", own / "chain.json")[0] == 1  # not overwritten
    assert ask(own, "export", own / "chain.csv")[0] == 1


def test_the_burn_down_is_a_staircase_under_the_cap_and_says_what_still_fits(own: Path) -> None:
    assert ask(own, "show", "clinic", "--picture", own / "burn.svg")[0] == 0
    svg = "{http://www.w3.org/2000/svg}"
    picture = ET.parse(own / "burn.svg").getroot()
    lines = [
        [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        for line in picture.findall(f"{svg}polyline")
    ]
    cap, left = lines
    assert len(left) == 4 and left[0][1] == left[1][1] == cap[0][1] < left[2][1] == left[3][1]  # SVG counts downward
    assert left[1][0] == left[2][0]  # what a charge took is gone at once: no slope
    remaining = amounts.remaining(Ledger(own / "home" / "ledger.sqlite").balance("clinic").remaining_epsilon)
    assert f"epsilon={remaining} would fit" in picture.findall(f"{svg}text")[1].text


def test_void_and_recover_clear_what_a_crash_left(own: Path) -> None:
    ledger = Ledger(own / "home" / "ledger.sqlite")
    first = ledger.find(next(entry.charge for entry in ledger.entries() if entry.kind == "commit")).charge
    reserved, sealed = (Charge(**{**dict(first), "run": run, "account": "clinic"}) for run in ("lost", "cut"))
    ledger.change_cap("clinic", reason="room for this test", epsilon=9.0)
    ledger.reserve(reserved)
    ledger.begin_draw(ledger.reserve(sealed).key)
    staged = own / "home" / "sensitive" / "cut" / "release.parquet"
    staged.parent.mkdir(mode=0o700)
    drawn = next((own / "home" / "released").glob("*/release.parquet")).read_bytes()
    staged.write_bytes(drawn)
    found = {row["run"]: row for row in json.loads(ask(own, "recover", "--json")[1])}
    assert (found["cut"]["was"], found["cut"]["is"]) == ("drawing", "committed")
    assert (own / "home" / "released" / "cut" / "release.parquet").read_bytes() == drawn
    assert found["lost"]["is"] == "reserved" and "void" in found["lost"]["next"]
    assert ask(own, "void", sealed.key, "--reason", "not wanted")[0] == 1
    assert ask(own, "void", reserved.key[:12], "--reason", "not wanted")[0] == 0
    assert json.loads(ask(own, "recover", "--json")[1]) == [] and ask(own, "verify")[0] == 0


def test_a_hand_off_is_verified_without_the_ledger(own: Path) -> None:
    shutil.rmtree(own / "home")
    code, out, _ = run_cli("verify", own / "out", "--public-key", own / "officer.pub")
    assert code == 0 and "by the key you named" in out
    assert "compare it" in verify_hand_off(own / "out").signature
    _, other = write_key(own / "other.pem")
    code, said, _ = run_cli("verify", own / "out", "--public-key", other)
    assert code == 1 and "WRONG KEY: the key you named with --public-key is not the one that signed" in said
    (own / "out" / "manifest.sig").unlink()
    assert verify_hand_off(own / "out").faults == [] and "nobody" in verify_hand_off(own / "out").signature
    assert verify_hand_off(own / "out", own / "officer.pub").faults == ["the manifest is not signed"]


def test_any_flipped_byte_of_a_hand_off_is_named(own: Path) -> None:
    out = own / "out"
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        content = path.read_bytes()
        step = max(1, len(content) // 12)
        for at in [*range(0, len(content), step), len(content) - 1]:
            path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
            code, _, err = run_cli("verify", out)
            name = "manifest" if path.name.startswith("manifest") else str(path.relative_to(out))
            assert code == 1 and name in err, (path, at)
        path.write_bytes(content)
    assert run_cli("verify", out)[0] == 3
    (out / "extra.csv").write_text("1")
    assert verify_hand_off(out).faults == ["extra.csv is not in the manifest"]
    (out / ".DS_Store").write_bytes(b"\0")
    advice = "systems write such files where folders are shown: delete it"
    assert f".DS_Store is not in the manifest; {advice}" in verify_hand_off(out).faults
    (out / ".DS_Store").unlink()
    (out / "extra.csv").unlink()
    (out / "extra").mkdir()
    assert verify_hand_off(out).faults == ["extra is not in the manifest"]
    (out / "extra").rmdir()
    (out / "report.html").unlink()
    assert verify_hand_off(out).faults == ["report.html is missing"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"spent": {"epsilon": "0.1", "delta": 1e-5}}, "the manifest says 0.1"),
        ({"asked": {"epsilon": 0.1, "delta": 1e-5}}, "more than was asked"),
        ({"run": "another"}, "not that of this plan and run"),
        ({"events": []}, "not as nacre writes it|the manifest says"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_named(own: Path, change: dict[str, object], fault: str) -> None:
    manifest = own / "out" / "manifest.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **change}))
    faults = " ".join(verify_hand_off(own / "out").faults)
    assert re.search(fault, faults) and "not a signature of this manifest" in faults


def test_a_key_that_cannot_sign_is_found_before_anything_is_charged(tmp_path: Path) -> None:
    write_clinic(tmp_path)
    (tmp_path / "no.pem").write_text("not a key")
    code, _, err = run_cli(*synthesize_words(tmp_path, method="pearl", signing_key=tmp_path / "no.pem"))
    assert code == 1 and "--signing-key" in err and not (tmp_path / "home").exists()
    with refused(InvalidArgument, name="public_key"):
        (tmp_path / "manifest.json").write_text('{"artifacts": {}}')
        verify_hand_off(tmp_path, tmp_path / "no.pem")


def test_openssl_writes_a_key_that_signs(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    from dpmodels.keys import private_key

    key = tmp_path / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True, capture_output=True)
    assert private_key(key).sign(b"x")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@localhost/l",
        "postgresql://me@localhost/l?password=secret",
        "postgresql://me@localhost/l?sslpassword=secret",
        "postgresql://me:se/cret@localhost/l",
    ],
)
def test_a_ledger_url_with_a_password_is_refused_and_kept_nowhere(own: Path, url: str) -> None:
    before = {path for path in (own / "home").rglob("*")}
    for words in (
        synthesize_words(own, method="pearl", out=own / "second", ledger=url),
        ["ledger", "show", "--home", own / "home", "--ledger", url],
        ["ledger", "verify", "--home", own / "home", "--ledger", url],
    ):
        code, out, err = run_cli(*words)
        assert code == 1 and "ledger=(hidden)" in err and "cret" not in out + err
    assert {path for path in (own / "home").rglob("*")} == before


def test_what_a_home_knows_of_its_ledger_is_for_its_owner_alone(own: Path) -> None:
    assert (own / "home" / "control" / "ledger.json").stat().st_mode & 0o777 == 0o600


def test_an_account_with_an_officer_is_charged_only_with_the_officers_signature(own: Path) -> None:
    key, public = write_key(own / "dana.pem")
    other, _ = write_key(own / "other.pem")
    named = ("officer", "clinic", "--name", "Dana", "--key", public, "--reason", "the board asked for it")
    ask(own, *named)
    code, _, err = run_cli(*synthesize_words(own, method="pearl", out=own / "second"))
    assert code == 5 and "waiting: Dana is to approve run" in err and "nacre approve" in err
    run = re.search(r"nacre approve (\S+)", err)[1]
    assert run_cli("resume", run, "--home", own / "home", "--no-prefect")[0] == 5
    code, out, err = run_cli("approve", run, "--yes", "--key", other, "--home", own / "home")
    assert code == 1 and "another key than that of Dana" in err and "nothing was signed" in err
    assert "epsilon" not in out + err  # the plan is shown to whoever may sign for it
    code, out, _ = run_cli("approve", run, "--yes", "--details", "--key", key, "--home", own / "home")
    assert code == 0 and '"account":"clinic"' in out and "approval 2" in out and "--legal-basis with its article" in out
    assert json.loads(ask(own, "show", "--json")[1])[0]["charges"] == 1
    assert run_cli("resume", run, "--home", own / "home", "--no-prefect")[0] == 0
    manifest = json.loads((own / "second" / "manifest.json").read_text())
    assert manifest["approved"]["officer"] == "Dana" and verify_hand_off(own / "second").faults == []
    assert ask(own, "verify")[0] == 0
    manifest["approved"]["plans"][0] = "0" * 64
    (own / "second" / "manifest.json").write_text(json.dumps(manifest))
    assert any("approval" in fault for fault in verify_hand_off(own / "second").faults)
    gone = ("officer", "clinic", "--nobody", "--reason", "Dana left")
    assert ask(own, *gone)[0] == 1 and ask(own, *gone, "--signing-key", key)[0] == ask(own, "verify")[0] == 0
    assert run_cli(*synthesize_words(own, method="pearl", out=own / "third", target_epsilon=0.1))[0] == 0


def test_a_balance_with_no_room_counts_as_used_up(own: Path) -> None:
    ledger = Ledger(own / "home" / "ledger.sqlite")
    balance = ledger.balance("clinic")
    assert 0.49 < used(balance) <= 0.5
    ledger.change_cap("clinic", reason="enough", epsilon=float(balance.spent_epsilon) + 1e-9)
    assert used(ledger.balance("clinic")) == 1.0


@pytest.mark.slow
def test_a_server_is_told_of_the_budget_and_asks_the_officer(own: Path, prefect_api: Api, monkeypatch) -> None:
    from flows.synthesize import carry_out, start

    monkeypatch.setenv("PREFECT_API_URL", prefect_api.url)
    # An account of its own, so that no other test's events are counted.
    (own / "clinic.yaml").write_text(make_schema(name="asked").to_yaml())
    pq.write_table(make_table(200, seed=7), own / "clinic.parquet")  # and data of its own
    opened = ("open", "asked", "--schema", own / "clinic.yaml", *CAP)
    assert ask(own, *opened)[0] == 0

    key, public = write_key(own / "dana.pem")

    def go(out: str, epsilon: float, sign: Callable[[Run], str] | None = None) -> None:
        run = start(paid_by_prefect(own, out, epsilon))
        with ThreadPoolExecutor(1) as office:
            signature = sign(run) if sign else ""
            resumed = office.submit(prefect_api.resume_when_paused, run.name, signature) if signature else None
            carry_out(run, prefect=True)
            assert resumed is None or resumed.result() is None

    def by_hand(run: Run) -> str:
        private = read_key(key.read_bytes(), password=None)
        return base64.b64encode(private.sign(officer_of(run)[1].text.encode())).decode()

    go("first", 1.0)
    named = ("officer", "asked", "--name", "Dana", "--key", public, "--reason", "the board asked for it")
    assert ask(own, *named)[0] == 0
    with pytest.raises(Exception, match="not signed by the key of Dana"):
        go("denied", 1.2, lambda run: "Dana")  # a typed name is no signature
    go("allowed", 1.2, by_hand)
    wait_until(lambda: prefect_api.budget_events("asked") == ["nacre.budget.80"])
    last = float(Ledger(own / "home" / "ledger.sqlite").balance("asked").remaining_epsilon)

    def at_the_home(run: Run) -> str:
        sign_run(run, key)
        return ""  # nobody is asked: the signature lies beside the run

    go("last", last, at_the_home)
    wait_until(lambda: prefect_api.budget_events("asked") == ["nacre.budget.80", "nacre.budget.100"])
    manifest = json.loads((own / "allowed" / "manifest.json").read_text())
    assert manifest["approved"]["officer"] == "Dana" and not (own / "denied").exists()
    tables = [json.loads(artifact["data"])[0] for artifact in prefect_api.artifacts("budget-asked")]
    assert [table["charges"] for table in tables] == ["1", "1", "2", "3"] and tables[-1]["remaining_epsilon"] == "0"


def paid_by_prefect(folder: Path, out: str, epsilon: float) -> "SynthesizeConfig":
    from flows.config import SynthesizeConfig

    settings = {
        "data": folder / "clinic.parquet",
        "schema": folder / "clinic.yaml",
        "out": folder / out,
        "model": {"method": "pearl"},
        "privacy": {"target_epsilon": epsilon, "delta": 1e-5},
        "runtime": {"home": folder / "home", "approval_hours": 0.1},
    }
    return SynthesizeConfig.build(settings, folder / "config.yaml")


def test_every_mark_of_a_cap_is_passed_once(done: Path) -> None:
    after = Ledger(done / "home" / "ledger.sqlite").balance("clinic")

    def at(part: float, remaining: float = 1) -> Balance:
        return after.model_copy(
            update={"spent_epsilon": after.cap * Decimal(str(part)), "remaining_epsilon": Decimal(remaining)}
        )

    assert passed(at(0.1), at(0.5)) == passed(at(0.82), at(0.85)) == passed(at(0.8), at(0.81)) == []
    assert passed(at(0.1), at(0.8)) == [0.8]
    assert passed(at(0.82), at(0.9, remaining=0)) == [1.0]
    assert passed(at(0.1), at(0.9, remaining=0)) == [0.8, 1.0]
