"""What whoever may append wrote past the ledger, under true hashes: each is named, and no charge believes it."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from dpmodels.accounting.events import LaplaceEvent, ThresholdEvent
from dpmodels.accounting.renyi import filter_cost
from dpmodels.accounting.tally import Tally
from dpmodels.errors import ChainBroken, LedgerError, NacreError
from dpmodels.ledger import store
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.ledger import Account, Charge, Ledger
from dpmodels.privacy import PrivacyBudget, PrivacyUnit
from tests.kit.charges import CAP, make_charge
from tests.kit.errors import refused
from tests.kit.support import write_key

HUGE = PrivacyBudget(epsilon=100, delta=1e-5)


def put(ledger: Ledger, account: str, charge: str, kind: str, payload: str, **columns: Any) -> None:
    """Insert an entry whose payload is any text, and write the account's row where columns of it are given."""
    time, attempt = columns.pop("time", store.now()), columns.pop("attempt", 1)

    def work(connection: Any) -> None:
        end = store.head(connection)
        assert end is not None
        written = {
            "account": account,
            "charge": charge,
            "kind": kind,
            "attempt": attempt,
            "seq": end.seq + 1,
            "payload": payload,
            "time": time,
            "previous_hash": end.hash,
        }
        entry = store.Entry(**written, hash=store.digest(written))
        if "name" in columns:
            connection.execute(store.accounts.insert().values(columns))
        elif columns:
            connection.execute(update(store.accounts).where(store.accounts.c.name == account).values(columns))
        run = entry.run if kind == "reserve" else ""
        connection.execute(store.entries.insert().values({**entry.model_dump(), "run": run}))

    ledger._database.write(work)


def opening(account: Account) -> str:
    return store.canonical_json({**account.terms, "by": "eve", "nonce": "0" * 32})


def two_parents(account: Account) -> str:
    """Write one parent for whoever looks at the text, and none for whoever parses it."""
    return '{"parent":"x",' + opening(account)[1:].replace('"parent":""', '"parent": ""')


def nested_parent(account: Account) -> str:
    """Leave the parent out, which is none, and write one where it means nothing."""
    terms = {key: value for key, value in account.terms.items() if key not in ("parent", "officer")}
    return store.canonical_json({**terms, "approval": {"parent": "x"}, "by": "eve", "nonce": "0" * 32})


def reserve(ledger: Ledger, charge: Charge, key: str = "", account: str = "", **beside: object) -> None:
    """Append a charge with its true cost and sum, as the ledger would, and ask nothing."""
    account = account or charge.account
    tallies = [entry.content["tally"] for entry in ledger.entries(account=account) if "tally" in entry.content]
    cost = Tally.of([charge.priced])
    tally = (Tally.model_validate(tallies[-1]) if tallies else Tally()) + cost
    content = {**charge.model_dump(mode="json"), "cost": cost.brief, "tally": tally.brief, **beside}
    put(ledger, account, key or charge.key, "reserve", store.canonical_json(content))


@pytest.fixture
def officer(tmp_path: Path) -> tuple[Path, Officer]:
    private, public = write_key(tmp_path / "ada.pem")
    return private, Officer.read("Ada", public)


@pytest.mark.parametrize("text", [opening, two_parents])
def test_an_account_is_opened_once(place: str, officer: tuple[Path, Officer], text: Callable[[Account], str]) -> None:
    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP, officer=officer[1])
    asked = ledger.asked(make_charge())
    assert asked is not None
    ledger.reserve(make_charge(), approval=asked[1].approve("Ada", officer[0]))
    old = ledger.account("clinic")
    new = old.model_copy(update={"cap": HUGE, "officer": None})
    caps = {column: new.row[column] for column in store.CAP_COLUMNS}
    put(ledger, "clinic", "clinic", "open", text(new), attempt=2, time=old.created, **caps)
    assert any("entry 3 (open)" in fault for fault in ledger.verify())
    for ask in (ledger.reserve, ledger.quote):
        with pytest.raises(LedgerError):
            ask(make_charge("run-2", 50))


def test_a_second_opening_gives_nothing_back(ledger: Ledger) -> None:
    ledger.reserve(make_charge(epsilon=1.0))
    old = ledger.account("clinic")
    put(ledger, "clinic", "more", "open", opening(old), time=old.created)
    assert any("entry 3 (open)" in fault for fault in ledger.verify())
    with pytest.raises(LedgerError):
        ledger.reserve(make_charge("run-2", 1.0))


@pytest.mark.parametrize("text", [two_parents, nested_parent])
def test_what_an_opening_says_is_what_is_parsed(
    place: str, officer: tuple[Path, Officer], text: Callable[[Account], str]
) -> None:
    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP, officer=officer[1])
    more = Account(name="more", dataset="more", cap=HUGE, created=store.now())
    put(ledger, "more", "more", "open", text(more), time=more.created, **more.row)
    assert any("entry 2 (open)" in fault for fault in ledger.verify())
    with pytest.raises(LedgerError):
        ledger.reserve(make_charge("run-1", 50, account="more", dataset="more"))


@pytest.mark.parametrize("other", ['{"a":1,"a":1}', '{"b": 1}', '{"a":NaN}', '{"a":1e999}', "[]", "", "[" * 100000])
def test_a_payload_that_is_written_in_another_way_is_named(ledger: Ledger, other: str) -> None:
    key = ledger.reserve(make_charge()).key
    put(ledger, "clinic", key, "draw", other)
    assert any("entry 3 (draw)" in fault for fault in ledger.verify())


def test_a_charge_beyond_a_cap_is_named(ledger: Ledger) -> None:
    """Of the account above, and of one run."""
    ledger.open_account("night", dataset="night", budget_cap=HUGE, parent="clinic", run_cap=0.4)
    night = {"account": "night", "dataset": "night"}
    ledger.reserve(make_charge("run-1", 0.3, **night))
    assert ledger.verify() == []
    reserve(ledger, make_charge("run-1", 0.3, plan_hash="another", **night))  # beyond the cap of a run
    reserve(ledger, make_charge("run-2", 0.3, event=LaplaceEvent(noise_multiplier=0.5), **night))  # and of the clinic
    assert [fault.split(": ")[0] for fault in ledger.verify()] == [
        "entry 5 (reserve) is a charge that a ledger refuses",  # its event costs more than its own budget
        "entry 5 (reserve) passes the cap of account clinic",
        "entry 4 (reserve) passes the cap of account night (one run)",
        "entry 5 (reserve) passes the cap of account night (one run)",
    ]


@pytest.mark.parametrize("after", ["raised", "voided", "nothing"])
def test_a_charge_beyond_a_cap_stays_named(ledger: Ledger, after: str) -> None:
    beyond = make_charge("run-9", 50)
    reserve(ledger, beyond)
    if after == "raised":
        ledger.change_cap("clinic", epsilon=100, reason="so that it fits")
    elif after == "voided":
        ledger.void(beyond.key, "a second thought")
    (fault,) = ledger.verify()
    assert "entry 2 (reserve) passes the cap of account clinic" in fault


def test_caps_that_held_when_they_were_asked_are_content(ledger: Ledger) -> None:
    """Children are weighed in parallel, what is voided makes room, and a cap is lowered to what was spent."""
    for name in ("mon", "tue"):
        ledger.open_account(name, dataset=name, budget_cap=CAP, parent="clinic")
        ledger.reserve(make_charge("run-1", 0.9, account=name, dataset=name))
    ledger.void(make_charge("run-1", 0.9, account="tue", dataset="tue").key, "a wrong plan")
    ledger.reserve(make_charge("run-2", 0.9, account="tue", dataset="tue"))
    ledger.change_cap("clinic", epsilon=3, reason="more")
    first = ledger.reserve(make_charge("run-3", 1.5))
    ledger.void(first.key, "a wrong plan")
    ledger.change_cap("clinic", epsilon=1, reason="less")
    parts = make_charge("run-4", 0.1, part="document", account="mon", dataset="mon")
    ledger.reserve(parts, make_charge("run-4", 0.1, account="tue", dataset="tue"))
    assert ledger.verify() == []


def test_an_approval_pays_for_what_it_names_and_once(ledger: Ledger, officer: tuple[Path, Officer]) -> None:
    ledger.change_cap("clinic", officer=officer[1], reason="an officer from now on", epsilon=1000)
    signed = make_charge("run-1", 0.1)
    asked = ledger.asked(signed)
    assert asked is not None
    ledger.reserve(signed, approval=asked[1].approve("Ada", officer[0]))
    assert ledger.verify() == []
    approval = ledger.approval(signed.key)
    reserve(ledger, make_charge("run-1", 50, part="document"), approval=approval)
    reserve(ledger, make_charge("run-1", 50), key="f" * 64, approval=approval)
    faults = ledger.verify()
    assert any("entry 4 (reserve) is not signed by Ada" in fault for fault in faults)
    assert any("entry 5 (reserve)" in fault for fault in faults)
    with pytest.raises(LedgerError, match="entry 5"):
        ledger.begin_draw("f" * 64)


def test_what_is_given_back_is_given_to_the_account_that_paid(ledger: Ledger) -> None:
    ledger.open_account("other", dataset="other", budget_cap=CAP)
    ledger.reserve(make_charge(epsilon=1.0))
    paid = ledger.reserve(make_charge(epsilon=1.0, account="other", dataset="other"))
    put(ledger, "clinic", paid.key, "void", store.canonical_json({"tally": Tally().brief}))
    assert any("entry 5 (void)" in fault for fault in ledger.verify())
    with pytest.raises(LedgerError):
        ledger.find(paid.key)


def test_an_account_is_below_another_of_its_kind(ledger: Ledger) -> None:
    """A cap for users is not spent by charges for records, and two accounts are not below each other."""
    user = PrivacyBudget(epsilon=1, delta=1e-5, unit=PrivacyUnit(user="id", max_rows=3))
    terms: dict[str, dict[str, object]] = {
        "other": {"cap": user, "parent": "clinic"},
        "one": {"parent": "two"},
        "two": {"parent": "one"},
    }
    for name, own in terms.items():
        account = Account.model_validate({"name": name, "dataset": name, "cap": CAP, "created": store.now()} | own)
        put(ledger, name, name, "open", opening(account), time=account.created, **account.row)
    reserve(ledger, make_charge(account="one", dataset="one"))
    faults = ledger.verify()
    assert [fault.split(" opens")[0] for fault in faults[:2]] == ["entry 2 (open)", "entry 3 (open)"]


LATE = {"expires": date(2020, 1, 1)}
USER = PrivacyBudget(epsilon=10, delta=1e-5, unit=PrivacyUnit(user="id", max_rows=3))


@pytest.mark.parametrize(
    ("terms", "changes"),
    [
        (LATE, {}),
        ({"budget_cap": USER}, {}),
        ({}, {"dataset": "other people"}),
        ({}, {"budget": PrivacyBudget(epsilon=0.01, delta=1e-5)}),
        ({}, {"budget": PrivacyBudget(epsilon=0.5, delta=1e-5, adjacency="replace_one")}),
        ({"budget_cap": PrivacyBudget(epsilon=10, delta=0)}, {}),
    ],
    ids=["expired", "unit", "data set", "budget", "adjacency", "pure"],
)
@pytest.mark.parametrize("below", [False, True])
def test_what_the_ledger_refuses_is_named_where_somebody_appended_it(
    ledger: Ledger, terms: dict[str, Any], changes: dict[str, Any], below: bool
) -> None:
    """Whatever is asked of a charge is asked again by whoever verifies, of the account and of those above."""
    ledger.open_account("lab", **{"dataset": "lab", "budget_cap": HUGE, **terms})
    name, dataset = "lab", "lab"
    if below:
        cap = terms.get("budget_cap", HUGE)
        ledger.open_account("bed", dataset="bed", budget_cap=cap, parent="lab")
        name = dataset = "bed"
    charge = make_charge(**{"account": name, "dataset": dataset, **changes})
    with pytest.raises(NacreError) as caught:
        ledger.reserve(charge)
    reserve(ledger, charge)
    assert f"entry {4 if below else 3} (reserve) is a charge that a ledger refuses: {caught.value}" in ledger.verify()


def test_a_threshold_after_a_look_in_a_renyi_filter_is_named(ledger: Ledger) -> None:
    ledger.open_account("lab", dataset="lab", budget_cap=HUGE, composition="renyi_filter")
    lab = {"account": "lab", "dataset": "lab"}
    budget = PrivacyBudget(epsilon=0.1, delta=5e-6)
    early, late = (
        make_charge(run, event=ThresholdEvent(delta=1e-6), budget=budget, **lab) for run in ("run-1", "run-3")
    )
    ledger.reserve(early)
    ledger.reserve(make_charge("run-2", **lab))
    assert ledger.verify() == []
    with pytest.raises(LedgerError, match="before anything else"):
        ledger.reserve(late)
    cost = filter_cost([late.priced], ledger.account("lab").order)
    tally = Tally.model_validate(ledger.entries(account="lab")[-1].content["tally"]) + cost
    content = {**late.model_dump(mode="json"), "cost": cost.brief, "tally": tally.brief}
    put(ledger, "lab", late.key, "reserve", store.canonical_json(content))
    (fault,) = ledger.verify()
    assert "is a charge that a ledger refuses" in fault and "before anything else" in fault


@pytest.mark.parametrize("circle", [("loop",), ("one", "two"), ("one", "two", "three")])
def test_an_account_below_itself_is_one_sentence_that_names_its_entry(ledger: Ledger, circle: tuple[str, ...]) -> None:
    for name, parent in zip(circle, (*circle[1:], circle[0]), strict=True):
        account = Account(name=name, dataset=name, cap=CAP, parent=parent, created=store.now())
        put(ledger, name, name, "open", opening(account), time=account.created, **account.row)
    for ask in (ledger.balance, lambda name: ledger.reserve(make_charge(account=name, dataset=name))):
        with refused(ChainBroken, r"entry [234] \(open\) opens account (loop|one|two|three) below itself"):
            ask(circle[0])
    assert any("entry 2 (open) opens an account below" in fault for fault in ledger.verify())
    assert ledger.balance("clinic").spent_epsilon == 0
