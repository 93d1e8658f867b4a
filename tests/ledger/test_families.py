"""Families of parts: sibling accounts charged in one transaction, and one entry for parts of a private number."""

import json
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import GaussianEvent, PureEvent
from dpmodels.errors import BudgetExhausted, LedgerError, NotSigned
from dpmodels.ledger import store
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.ledger import Account, Charge, Ledger
from dpmodels.privacy import Adjacency, PrivacyBudget
from tests.kit.charges import CAP, make_charge
from tests.kit.errors import refused
from tests.kit.support import write_key

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
DELTA = Decimal("1e-5")


def client(number: int) -> Account:
    return Account(name=f"client-{number}", dataset=f"client {number}", cap=CAP, parent="federation")


def charge_of(number: int, run: str = "round-1", epsilon: float = 0.3, **other: object) -> Charge:
    return make_charge(run, epsilon, account=f"client-{number}", dataset=f"client {number}", **other)


def asked_of(numbers: range, run: str = "round-1", epsilon: float = 0.3) -> tuple[list[Charge], list[Account]]:
    return [charge_of(number, run, epsilon) for number in numbers], [client(number) for number in numbers]


@pytest.fixture
def federation(place: str) -> Ledger:
    ledger = Ledger(place)
    ledger.open_account("federation", dataset="federation", budget_cap=CAP)
    return ledger


def spent(ledger: Ledger, name: str) -> Decimal:
    return ledger.balance(name).spent_epsilon


def cost(*epsilons: float) -> Decimal:
    return spent_epsilon([make_charge(epsilon=epsilon).event for epsilon in epsilons], DELTA)


def test_a_family_is_opened_and_charged_at_once_and_costs_its_parent_the_heaviest_child(federation: Ledger) -> None:
    charges, accounts = asked_of(range(5))
    charges[3] = charge_of(3, epsilon=0.5)
    said = federation.quote(*charges, first_opens=accounts)
    assert (said.account, said.state, said.accepted) == ("federation", "new", True)
    assert (said.requested_epsilon, said.spent_before, said.spent_after) == (Decimal("0.5"), 0, cost(0.5))
    assert [account.name for account in federation.accounts()] == ["federation"]  # a quote opens nothing
    held = federation.reserve(*charges, first_opens=accounts)
    assert (held.charge, held.state) == (charges[0], "reserved")
    assert [spent(federation, f"client-{n}") for n in range(5)] == [cost(e) for e in (0.3, 0.3, 0.3, 0.5, 0.3)]
    assert spent(federation, "federation") == cost(0.5)
    assert federation.balance("federation").children == tuple(f"client-{n}" for n in range(5))
    before = federation.head()
    assert federation.reserve(*charges, first_opens=accounts) == held and federation.head() == before
    assert federation.quote(*charges).state == "reserved"
    assert federation.verify() == []


def test_a_second_round_opens_who_is_new_and_the_caps_above_see_every_line(federation: Ledger) -> None:
    charges, accounts = asked_of(range(3))
    federation.reserve(*charges, first_opens=accounts)
    charges, accounts = asked_of(range(1, 6), "round-2", 0.4)
    federation.reserve(*charges, first_opens=accounts)
    assert spent(federation, "federation") == spent(federation, "client-2") == cost(0.3, 0.4)
    assert spent(federation, "client-0") == cost(0.3) and spent(federation, "client-5") == cost(0.4)
    federation.reserve(make_charge("whole", 0.7, account="federation", dataset="federation"))
    with refused(BudgetExhausted, account="federation"):  # of its lines only one is full
        federation.reserve(charge_of(0, "round-3", 0.1), charge_of(1, "round-3", 0.6))
    federation.reserve(charge_of(0, "round-3", 0.1), charge_of(5, "round-3", 0.1))
    assert federation.verify() == []


@pytest.mark.parametrize("full", [0, 2, 4])
def test_one_child_without_room_refuses_the_whole_family_and_nothing_is_opened(federation: Ledger, full: int) -> None:
    federation.reserve(charge_of(full, "before", 1.0), first_opens=client(full))
    before = federation.head()
    charges, accounts = asked_of(range(5))
    with pytest.raises(BudgetExhausted):
        federation.reserve(*charges, first_opens=accounts)
    with pytest.raises(BudgetExhausted):
        federation.check(*charges, first_opens=accounts)
    assert federation.head() == before and len(federation.accounts()) == 2


def test_a_run_cap_of_a_child_holds_in_a_family(federation: Ledger) -> None:
    accounts = [client(0), client(1).model_copy(update={"run_cap": 0.25})]
    with refused(BudgetExhausted, account="client-1 (one run)"):
        federation.reserve(charge_of(0), charge_of(1), first_opens=accounts)
    federation.reserve(charge_of(0), charge_of(1, epsilon=0.2), first_opens=accounts)
    with refused(BudgetExhausted, account="client-1 (one run)"):
        federation.reserve(charge_of(0, epsilon=0.1, plan_hash="b"), charge_of(1, epsilon=0.2, plan_hash="b"))


def test_a_month_of_nights_with_a_run_each_is_one_transaction(federation: Ledger) -> None:
    nights = [client(n).model_copy(update={"partition": "day"}) for n in range(30)]
    charges = [charge_of(n, f"night-{n}") for n in range(30)]
    reports = [charge_of(n, f"night-{n}", 0.1, plan_hash="report") for n in range(30)]
    federation.reserve(*charges, *reports, first_opens=nights)
    assert spent(federation, "federation") == spent(federation, "client-29") == cost(0.3, 0.1)
    with pytest.raises(LedgerError, match="told apart otherwise"):
        federation.open_account("other", dataset="other", budget_cap=CAP, parent="federation", partition="ward")
    assert federation.verify() == []


def test_accounts_that_are_no_siblings_are_not_charged_together(federation: Ledger) -> None:
    federation.open_account("alone", dataset="alone", budget_cap=CAP)
    federation.open_account("client-0", dataset="client 0", budget_cap=CAP, parent="federation")
    alone, top = (make_charge(account=name, dataset=name) for name in ("alone", "federation"))
    for others in ((charge_of(0), alone), (alone, top), (charge_of(0), top)):
        with pytest.raises(LedgerError, match="children of one account"):
            federation.reserve(*others)
    stranger = Account(name="stranger", dataset="stranger", cap=CAP)
    with pytest.raises(LedgerError, match="children of one account"):
        federation.reserve(charge_of(1), charge_of(2), first_opens=[client(1), stranger])
    with pytest.raises(LedgerError, match="second budget"):
        twin = client(1).model_copy(update={"name": "twin"})
        federation.reserve(charge_of(1), charge_of(2), first_opens=[client(1), twin, client(2)])
    assert len(federation.accounts()) == 3


def test_an_account_opens_together_with_those_below_it(place: str) -> None:
    ledger, above = Ledger(place), Account(name="group", dataset="group", cap=CAP)
    below = [Account(name=name, dataset=name, cap=CAP, parent="group") for name in ("group.a", "group.b")]
    charge = make_charge(account="group.a", dataset="group.a")
    ledger.reserve(charge, first_opens=[below[0], above, below[1]])
    assert [account.name for account in ledger.accounts()] == ["group", "group.a", "group.b"]
    assert ledger.balance("group").spent_epsilon == ledger.balance("group.a").spent_epsilon > 0
    assert ledger.verify() == []


def test_partitions_are_refused_under_replace_one_where_a_record_may_move(place: str) -> None:
    ledger, cap = Ledger(place), CAP.model_copy(update={"adjacency": Adjacency.REPLACE_ONE})
    ledger.open_account("table", dataset="table", budget_cap=cap)
    ledger.open_account("client", dataset="client", budget_cap=cap, parent="table")  # told apart by who holds it
    ledger.open_account("wards", dataset="wards", budget_cap=cap)
    with pytest.raises(LedgerError, match="move from one partition to another"):
        ledger.open_account("ward", dataset="ward", budget_cap=cap, parent="wards", partition="ward")


def test_an_officers_signature_covers_every_charge_of_a_family(federation: Ledger, tmp_path: Path) -> None:
    private, public = write_key(tmp_path / "key.pem")
    officer = Officer.read("Ada", public)
    federation.change_cap("federation", reason="named", officer=officer)
    charges, accounts = asked_of(range(4))
    named, asked = federation.asked(*charges, first_opens=accounts)
    assert named == officer and asked.account == "federation"
    assert asked.plans == tuple(charge.key for charge in charges)
    with refused(NotSigned, "lacks", account="federation", officer="Ada"):
        federation.reserve(*charges, first_opens=accounts)
    approval = asked.approve("Ada", private)
    more = [*charges, charge_of(4)], [*accounts, client(4)]
    for other in (charges[:3], [*charges[:3], charge_of(3, epsilon=0.29, plan_hash="dearer")], more[0]):
        with refused(NotSigned, "not signed", account="federation", officer="Ada"):
            federation.reserve(*other, approval=approval, first_opens=more[1])
    federation.reserve(*charges, approval=approval, first_opens=accounts)
    entries = [entry.content for entry in federation.entries() if entry.kind == "reserve"]
    assert "signature" in entries[0]["approval"]
    assert [entry["approval"] for entry in entries[1:]] == [{"with": charges[0].key}] * 3
    assert federation.verify() == []


@pytest.mark.parametrize("change", ["another charge", "nobody", "plans"])
def test_a_charge_that_the_family_approval_does_not_name_is_found(
    federation: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Written with true hashes, by whoever goes round the library."""
    private, public = write_key(tmp_path / "key.pem")
    federation.change_cap("federation", reason="named", officer=Officer.read("Ada", public))
    charges, accounts = asked_of(range(3))
    approval = federation.asked(*charges, first_opens=accounts)[1].approve("Ada", private)
    append, signed = store.append, approval.model_dump(mode="json")

    def forge(connection: object, drafts: list[store.Draft]) -> list[store.Entry]:
        drafts = list(drafts)
        if drafts[-1].kind == "reserve":
            if change == "another charge":
                drafts[2] = drafts[2]._replace(charge="ab" * 32)
            elif change == "nobody":
                drafts[2].payload["approval"] = {"with": "ab" * 32}  # type: ignore[index]
            else:
                signed["plans"] = [*signed["plans"], "ab" * 32]
                drafts[0].payload["approval"] = signed  # type: ignore[index]
        return append(connection, drafts)

    monkeypatch.setattr(store, "append", forge)
    federation.reserve(*charges, approval=approval, first_opens=accounts)
    assert any("is not signed by Ada" in fault for fault in federation.verify())


def test_a_signature_of_a_run_is_none_of_a_family_though_a_plan_is_called_like_a_charge(
    federation: Ledger, tmp_path: Path
) -> None:
    private, public = write_key(tmp_path / "key.pem")
    federation.change_cap("federation", reason="named", officer=Officer.read("Ada", public))
    charges, accounts = asked_of(range(2))
    parts = [
        make_charge("round-1", 0.1, account="federation", dataset="federation", plan_hash=each.key) for each in charges
    ]
    approval = federation.asked(*parts)[1].approve("Ada", private)
    assert approval.plans == federation.asked(*charges, first_opens=accounts)[1].plans
    with refused(NotSigned, "not signed", account="federation", officer="Ada"):
        federation.reserve(*charges, approval=approval, first_opens=accounts)
    federation.reserve(*parts, approval=approval)
    assert federation.verify() == []


def test_several_runs_of_one_account_are_signed_as_a_family(federation: Ledger, tmp_path: Path) -> None:
    private, public = write_key(tmp_path / "key.pem")
    federation.change_cap("federation", reason="named", officer=Officer.read("Ada", public))
    nights = [make_charge(f"night-{n}", 0.1, account="federation", dataset="federation") for n in range(3)]
    approval = federation.asked(*nights)[1].approve("Ada", private)
    federation.reserve(*nights, approval=approval)
    assert spent(federation, "federation") == cost(0.1, 0.1, 0.1) and federation.verify() == []


def test_children_with_different_officers_are_charged_in_runs_of_their_own(federation: Ledger, tmp_path: Path) -> None:
    _, public = write_key(tmp_path / "key.pem")
    accounts = [client(0), client(1).model_copy(update={"officer": Officer.read("Ada", public)})]
    with pytest.raises(LedgerError, match="different officers"):
        federation.reserve(charge_of(0), charge_of(1), first_opens=accounts)


# ---- one entry for a family whose number is private


def test_parts_of_a_private_number_are_one_entry_that_costs_one_part(ledger: Ledger, charge) -> None:
    part = charge(part="document")
    assert charge(part="") == charge() and part.key != charge().key != charge(part="client").key
    assert "part" not in charge().model_dump() and part.model_dump()["part"] == "document"
    ledger.reserve(part)
    assert spent(ledger, "clinic") == cost(0.5)
    ledger.reserve(charge("run-2", 0.3, part="document"))  # a document meets both
    assert spent(ledger, "clinic") == cost(0.5, 0.3)
    with pytest.raises(LedgerError, match="costs more than its budget"):
        ledger.reserve(charge("run-3", part="document", event=GaussianEvent(noise_multiplier=0.1)))
    (entry,) = ledger.entries(key=part.key)
    assert entry.content["part"] == "document" and ledger.find(part.key).charge == part
    assert ledger.verify() == []


def test_a_charge_without_a_part_has_the_key_that_it_had_before_there_were_parts(charge) -> None:
    assert charge().key == store.digest(["clinic", "plan", "run-1"])
    assert set(charge().model_dump()) == {
        "account", "dataset", "mechanism", "event", "budget", "plan_hash", "schema_hash", "run"
    }  # fmt: skip


def test_a_filter_takes_parts_as_one(place: str, charge) -> None:
    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP, composition="renyi_filter")
    ledger.reserve(charge(epsilon=0.3, part="document"))
    whole = Ledger(place).open_account("other", dataset="other", budget_cap=CAP, composition="renyi_filter")
    ledger.reserve(charge(epsilon=0.3, account=whole.name, dataset="other"))
    assert spent(ledger, "clinic") == spent(ledger, "other") and ledger.verify() == []


# ---- many, at once, and killed


def run(*words: object) -> dict[str, object]:
    command = [sys.executable, "-m", "tests.ledger.processes", *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stderr) == (0, "")
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.mark.nightly_if("postgresql")
def test_processes_that_charge_overlapping_families_never_overspend_and_leave_no_half(place: str) -> None:
    answer = run("families", place, 16)
    assert answer["failed"] == answer["faults"] == []
    assert answer["won"] + answer["refused"] == 16 and answer["refused"] > 0 and answer["won"] >= 2
    assert answer["charges"] == 4 * answer["won"]  # all four of a family or none


@pytest.mark.parametrize("moment", ["opened", "charged"])
@pytest.mark.nightly_if("*postgresql*opened*", "*opened*postgresql*")
def test_a_family_that_is_killed_in_the_middle_leaves_nothing(place: str, moment: str) -> None:
    assert run("kill_family", place, moment) == {"killed": True, "accounts": ["federation"], "entries": 1, "faults": []}


@pytest.mark.slow
@pytest.mark.nightly_if("*postgresql*", "*10000*")
@pytest.mark.parametrize("number", [1_000, 10_000])
def test_siblings_by_the_thousand_are_opened_and_charged_in_seconds(federation: Ledger, capsys, number: int) -> None:
    charges, accounts = asked_of(range(number))
    again = [charge_of(sibling, "round-2", 0.2) for sibling in range(number)]
    for what, asked, opens in (("opened and charged", charges, accounts), ("charged", again, [])):
        began = time.perf_counter()
        federation.reserve(*asked, first_opens=opens)
        took = time.perf_counter() - began
        with capsys.disabled():
            print(f"\n{number} siblings {what} in one transaction: {took:.1f} s")
        assert took < 120
    began = time.perf_counter()
    assert spent(federation, "federation") == cost(0.3, 0.2)
    federation.reserve(charge_of(7, "alone", 0.1))
    assert time.perf_counter() - began < 30


# ---- pure accounts in a family


def test_clients_with_pure_accounts_below_a_parent_with_a_delta(federation: Ledger) -> None:
    pure = PrivacyBudget(epsilon=0.5, delta=0)
    accounts = [client(n).model_copy(update={"cap": pure}) for n in range(3)]
    event, budget = PureEvent(epsilon=0.25), PrivacyBudget(epsilon=0.25, delta=0)
    for round in ("a", "b"):
        federation.reserve(*(charge_of(n, round, event=event, budget=budget) for n in range(3)), first_opens=accounts)
    assert spent(federation, "client-1") == Decimal("0.5") >= spent(federation, "federation")
    with pytest.raises(BudgetExhausted):
        federation.reserve(charge_of(0, "c", event=event, budget=budget), charge_of(1, "c", event=event, budget=budget))
