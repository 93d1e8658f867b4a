"""The account: opened once, charged exactly, refused before anything happens, and honest about what was touched."""

import os
import platform
import pwd
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy import event as statements

from dpmodels import amounts
from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import GaussianEvent
from dpmodels.errors import BudgetExhausted, ChainBroken, ChargeState, InvalidArgument, LedgerError
from dpmodels.ledger.declared import Declaration
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import TRANSITIONS
from dpmodels.privacy import PrivacyBudget, PrivacyUnit
from tests.kit.errors import refused

pytestmark = pytest.mark.processes

CAP = PrivacyBudget(epsilon=1.0, delta=1e-5)
HASH = "ab" * 32


def test_the_file_is_for_its_owner_alone(ledger, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_it_writes_while_a_profiler_holds_on_to_every_statement(path: Path, charge) -> None:
    """Dask's profiler does so now and then; SQLite refuses to commit a statement whose rows were not read."""
    held: list[object] = []

    def hold(connection: object, cursor: object, *_: object) -> None:
        held.append(cursor)

    statements.listen(Engine, "after_cursor_execute", hold)
    try:
        ledger = Ledger(path)
        ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
        ledger.reserve(wanted := charge())
        ledger.void(wanted.key, "nothing was drawn")
    finally:
        statements.remove(Engine, "after_cursor_execute", hold)
    assert len(held) > 5 and ledger.verify() == []


def test_every_entry_says_who_wrote_it_and_the_hash_holds_it(ledger, path: Path, charge, monkeypatch) -> None:
    monkeypatch.setenv("USER", "somebody else")
    ledger.reserve(charge())
    who = f"{pwd.getpwuid(os.getuid()).pw_name}@{platform.node()}"
    assert [entry.content["by"] for entry in ledger.entries()] == [who, who]
    with sqlite3.connect(path) as database:
        database.execute("UPDATE entries SET payload = replace(payload, ?, 'x@y') WHERE seq = 2", (who,))
    assert any("entry 2" in fault for fault in ledger.verify())


def test_opening_again_needs_equal_terms(ledger) -> None:
    first = ledger.account("clinic")
    assert ledger.open_account("clinic", dataset="visits", budget_cap=CAP) == first
    cases: list[tuple[dict[str, object], str]] = [
        ({"budget_cap": CAP.model_copy(update={"epsilon": 2.0})}, "epsilon=2 was asked for; `nacre ledger cap clinic`"),
        ({"dataset": "other"}, "it has dataset=visits, and dataset=other was asked for$"),
        ({"note": "new", "owner": "Ann"}, "it has no owner and no note, and owner=Ann and note=new was asked for$"),
        ({"expires": date(2030, 1, 31)}, "it has no expires, and expires=2030-01-31 was asked for; `nacre ledger cap"),
    ]
    for changed, says in cases:
        with pytest.raises(LedgerError, match=f"other terms: .*{says}"):
            ledger.open_account("clinic", **{"dataset": "visits", "budget_cap": CAP, **changed})
    assert ledger.accounts() == [first]


def test_a_second_name_is_not_a_second_budget(ledger) -> None:
    with pytest.raises(LedgerError, match="second budget"):
        ledger.open_account("again", dataset="visits", budget_cap=CAP)
    by_user = CAP.model_copy(update={"unit": PrivacyUnit(user="patient", max_rows=3)})
    ledger.open_account("by-user", dataset="visits", budget_cap=by_user)
    assert [account.name for account in ledger.accounts()] == ["clinic", "by-user"]


def test_a_charge_of_exactly_the_cap_fits_and_nothing_after_it(ledger, charge) -> None:
    ledger.reserve(charge(epsilon=1.0))
    balance = ledger.balance("clinic")
    assert Decimal("0.99999") < balance.spent_epsilon <= balance.cap == 1
    assert balance.renyi_epsilon > balance.spent_epsilon
    assert balance.remaining_epsilon == 0
    with pytest.raises(BudgetExhausted):
        ledger.reserve(charge("run-2", epsilon=0.001))


@pytest.mark.parametrize(("over", "accepted"), [(Decimal(0), True), (Decimal("1e-12"), False)])
def test_the_cap_is_compared_to_the_last_digit(tmp_path: Path, charge, over: Decimal, accepted: bool) -> None:
    event = GaussianEvent(noise_multiplier=3.7)
    cost = spent_epsilon([event], Decimal("1e-5"))
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP.model_copy(update={"epsilon": float(cost - over)}))
    assert ledger.account("clinic").epsilon_cap == cost - over
    wanted = charge(event=event, epsilon=float(cost))
    assert ledger.quote(wanted).accepted is accepted
    if accepted:
        assert ledger.reserve(wanted).state == "reserved"
    else:
        with pytest.raises(BudgetExhausted):
            ledger.reserve(wanted)
        assert ledger.entries(key=wanted.key) == []


def test_a_refusal_names_what_was_asked_and_what_remains(ledger, charge) -> None:
    ledger.reserve(charge(epsilon=0.8))
    with pytest.raises(BudgetExhausted) as refusal:
        ledger.reserve(charge("run-2", epsilon=0.9))
    remaining = ledger.balance("clinic").remaining_epsilon
    assert Decimal("0.2") < remaining < Decimal("0.9")
    assert (refusal.value.requested, refusal.value.remaining) == (Decimal("0.9"), remaining)
    assert "requested epsilon=0.9" in str(refusal.value)
    assert f"remaining epsilon={remaining:.9f}"[:-5] in str(refusal.value)  # four places, rounded down
    assert "delta=1e-5; nothing was drawn" in str(refusal.value)
    ledger.reserve(charge("run-3", epsilon=float(remaining)))


def test_a_refusal_names_delta_where_delta_is_the_cause(ledger, charge) -> None:
    """Epsilon 0.9 at delta 1e-3 is below the cap of 1, and costs more than 1 at the account's delta of 1e-5."""
    wide = PrivacyBudget(epsilon=0.9, delta=1e-3)
    event = GaussianEvent(noise_multiplier=gaussian_noise_multiplier(wide))
    with pytest.raises(BudgetExhausted) as refusal:
        ledger.reserve(charge(budget=wide, event=event))
    costs = amounts.spent(spent_epsilon([event], CAP.delta_exact))
    assert "refuses the charge because of the delta: requested epsilon=0.9, remaining epsilon=1 of" in str(
        refusal.value
    )
    assert f"(at that delta the request, which is for delta=0.001, costs epsilon={costs})" in str(refusal.value)


def test_what_is_declared_stands_in_the_chain_and_changes_no_charge(ledger, charge, path) -> None:
    said = Declaration(purpose="To plan beds.", recipient="The ward")
    held = ledger.reserve(charge(), declared=said)
    (reserve,) = [entry for entry in ledger.entries() if entry.kind == "reserve"]
    assert reserve.content["declared"] == {"purpose": "To plan beds.", "recipient": "The ward"}
    assert held.key == charge().key and ledger.reserve(charge(), declared=Declaration(purpose="Another.")) == held
    assert ledger.verify() == [] and len(ledger.entries()) == 2
    edited = reserve.payload.replace("The ward", "Everybody")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET payload = ? WHERE seq = ?", (edited, reserve.seq))
    assert "was edited" in ledger.verify()[0]
    with refused(ChainBroken, "entry 2 .* edited"):
        ledger.reserve(charge("run-2", epsilon=0.1))


def test_a_quote_writes_nothing_and_keeps_its_word(ledger, charge) -> None:
    before = ledger.entries()
    quote = ledger.quote(charge())
    assert ledger.entries() == before
    assert (quote.accepted, quote.state, quote.spent_before) == (True, "new", 0)
    ledger.reserve(charge())
    assert ledger.balance("clinic").spent_epsilon == quote.spent_after
    assert ledger.quote(charge()).state == "reserved"


def test_a_replayed_charge_is_charged_once(ledger, charge) -> None:
    first = ledger.reserve(charge())
    assert ledger.reserve(charge()) == first
    ledger.begin_draw(first.key)
    assert ledger.reserve(charge()).state == "drawing"
    assert ledger.balance("clinic").charges == 1
    with pytest.raises(LedgerError, match="other terms"):
        ledger.reserve(charge(mechanism="another"))


@pytest.mark.parametrize(
    "changed",
    [
        {"dataset": "other"},
        {"budget": PrivacyBudget(epsilon=0.5, delta=1e-5, unit=PrivacyUnit(user="patient", max_rows=2))},
        {"account": "nobody"},
        {"event": GaussianEvent(noise_multiplier=0.1)},
    ],
)
def test_a_charge_must_be_about_the_account_and_cost_what_it_says(ledger, charge, changed: dict[str, object]) -> None:
    with pytest.raises(LedgerError):
        ledger.reserve(charge(**changed))
    assert ledger.balance("clinic").charges == 0


PATHS = {"reserved": [], "drawing": ["draw"], "sealed": ["draw", "seal"], "committed": ["draw", "seal", "commit"]}
PATHS["voided"] = ["void"]
ALLOWED = {"reserved": {"draw", "void"}, "drawing": {"draw", "seal"}, "sealed": {"commit"}}


def step(ledger: Ledger, key: str, kind: str) -> str:
    verbs = {
        "draw": lambda: ledger.begin_draw(key),
        "seal": lambda: ledger.seal(key, HASH),
        "commit": lambda: ledger.commit(key),
        "void": lambda: ledger.void(key, "a wrong plan"),
    }
    return verbs[kind]().state


@pytest.mark.parametrize("kind", ["draw", "seal", "commit", "void"])
@pytest.mark.parametrize("state", PATHS)
def test_every_transition_is_allowed_or_refused(ledger, charge, state: str, kind: str) -> None:
    key = ledger.reserve(charge()).key
    for earlier in PATHS[state]:
        step(ledger, key, earlier)
    if kind in ALLOWED.get(state, ()):
        assert step(ledger, key, kind) != "reserved"
    else:
        count = len(ledger.entries())
        with refused(ChargeState, f"{kind} is not allowed", charge=key, state=state):
            step(ledger, key, kind)
        assert len(ledger.entries()) == count
    assert ledger.verify() == []


def test_a_charge_nobody_reserved_cannot_move(ledger, charge) -> None:
    with refused(ChargeState, charge=charge().key, state="not reserved"):
        ledger.begin_draw(charge().key)


def test_a_void_gives_the_budget_back_and_stays(ledger, charge) -> None:
    key = ledger.reserve(charge(epsilon=1.0)).key
    ledger.void(key, "a wrong plan")
    assert ledger.balance("clinic").spent_epsilon == 0
    reserve, void = ledger.entries(key=key)
    assert void.content["reason"] == "a wrong plan"
    assert void.content["proof"] == {"reserve": reserve.hash, "draws": 0}
    with refused(ChargeState, charge=key, state="voided"):
        ledger.reserve(charge(epsilon=1.0))
    ledger.reserve(charge("run-2", epsilon=1.0))


def test_a_seal_is_a_sha256(ledger, charge) -> None:
    key = ledger.reserve(charge()).key
    ledger.begin_draw(key)
    with refused(InvalidArgument, name="artifact_hash", value="AB" * 32):
        ledger.seal(key, "AB" * 32)


def full_life(ledger: Ledger, key: str) -> None:
    for kind in PATHS["committed"]:
        step(ledger, key, kind)


def alter(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


COLUMNS = ("seq", "account", "charge", "kind", "attempt", "payload", "time", "previous_hash", "hash")


@pytest.mark.parametrize("column", COLUMNS)
def test_any_edit_of_any_entry_is_named(ledger, charge, path: Path, column: str) -> None:
    full_life(ledger, ledger.reserve(charge()).key)
    assert ledger.verify() == []
    for entry in ledger.entries():
        value = getattr(entry, column)
        edited = value + 100 if isinstance(value, int) else value.replace(value[-1], "~", 1)
        alter(path, f"UPDATE entries SET {column} = ? WHERE seq = ?", edited, entry.seq)
        seq = edited if column == "seq" else entry.seq
        assert any(f"entry {seq} " in fault and "edited" in fault for fault in ledger.verify())
        if entry.kind in ("open", "reserve", "commit"):  # a charge reckons with these: the account, its tally, the end
            with refused(ChainBroken, "chain is broken"):
                ledger.reserve(charge("run-2", epsilon=0.1))
        alter(path, f"UPDATE entries SET {column} = ? WHERE seq = ?", value, seq)
    assert ledger.verify() == []


@pytest.mark.parametrize("seq", [1, 2, 3, 4])
def test_a_deleted_entry_is_named(ledger, charge, path: Path, seq: int) -> None:
    full_life(ledger, ledger.reserve(charge()).key)
    alter(path, "DELETE FROM entries WHERE seq = ?", seq)
    assert any(f"entry {seq + 1} " in fault and "deleted" in fault for fault in ledger.verify())


def test_swapped_entries_are_named(ledger, charge, path: Path) -> None:
    full_life(ledger, ledger.reserve(charge()).key)
    for old, new in ((3, 99), (4, 3), (99, 4)):
        alter(path, "UPDATE entries SET seq = ? WHERE seq = ?", new, old)
    faults = " ".join(ledger.verify())
    assert "entry 3 " in faults and "entry 4 " in faults


@pytest.mark.parametrize("column", ["dataset", "unit", "adjacency", "epsilon_cap", "delta_cap", "note", "created"])
def test_a_raised_cap_or_any_other_edit_of_an_account_is_named(ledger, charge, path: Path, column: str) -> None:
    alter(path, f"UPDATE accounts SET {column} = '100'")
    assert ledger.verify() == ["account clinic differs from its opening entry"]
    with refused(ChainBroken, fault="account clinic differs from its opening entry"):
        ledger.reserve(charge())


def test_an_illegal_life_with_true_hashes_is_named(ledger, charge, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmodels.ledger import ledger as module

    key = ledger.reserve(charge()).key
    monkeypatch.setitem(module.TRANSITIONS, ("reserved", "seal"), "sealed")
    ledger.seal(key, HASH)
    monkeypatch.delitem(module.TRANSITIONS, ("reserved", "seal"))
    assert ledger.verify() == ["entry 3 (seal) meets a charge that is reserved, which is not allowed"]


def test_a_file_that_is_no_ledger_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("not a database, only some words, long enough to be read as a header " * 20)
    with pytest.raises(LedgerError, match="not a database"):
        Ledger(tmp_path / "notes.db")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE patients (name)").connection.close()
    with pytest.raises(LedgerError, match="holds other tables"):
        Ledger(tmp_path / "other.db")
    with pytest.raises(LedgerError, match="needs a file"):
        Ledger(":memory:")


def test_threads_never_overspend(ledger, charge) -> None:
    def reserve(number: int) -> bool:
        try:
            ledger.reserve(charge(f"run-{number}"))
        except BudgetExhausted:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = sum(pool.map(reserve, range(8)))
    assert won == ledger.balance("clinic").charges == affordable(charge)
    assert ledger.verify() == []


def affordable(charge) -> int:
    """Count the charges of epsilon 0.5 that fit under the cap of 1."""
    event, count = charge().event, 0
    while spent_epsilon([event] * (count + 1), Decimal("1e-5")) <= 1:
        count += 1
    assert 0 < count < 5
    return count


RACER = """
import sys
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.errors import BudgetExhausted
from dpmodels.privacy import PrivacyBudget
path, charge = sys.argv[1], Charge.model_validate_json(sys.argv[2])
sys.stdin.readline()
ledger = Ledger(path)
ledger.open_account("clinic", dataset="visits", budget_cap=PrivacyBudget(epsilon=1.0, delta=1e-5))
try:
    print(ledger.reserve(charge).state)
except BudgetExhausted:
    print("refused")
"""


def test_processes_racing_for_the_last_of_the_budget_never_overspend(path: Path, charge) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path), charge(f"run-{number}").model_dump_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.getcwd()},
        )
        for number in range(5)
    ]
    for racer in racers:  # all have been started; now all open one ledger that does not exist yet
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [racer.communicate(timeout=120) for racer in racers]
    assert [error for _, error in answers] == [""] * 5
    assert [answer.strip() for answer, _ in answers].count("reserved") == affordable(charge)
    ledger = Ledger(path)
    assert ledger.balance("clinic").charges == affordable(charge)
    assert ledger.verify() == []


def test_listing_accounts_stays_light(ledger, path: Path) -> None:
    script = (
        "import sys; from dpmodels.ledger.ledger import Ledger; print(len(Ledger(sys.argv[1]).accounts()), "
        "[m for m in ('torch', 'scipy', 'numpy', 'dp_accounting', 'opendp', 'pandas') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "1 []", done.stderr


def test_the_documented_transitions_are_the_ones_in_force() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()
    cells = [[cell.strip() for cell in line.split("|")[1:4]] for line in page.splitlines() if line.startswith("| ")]
    states = {"new", *TRANSITIONS.values()}
    assert {(state, kind): after for state, kind, after in cells if state in states} == TRANSITIONS
