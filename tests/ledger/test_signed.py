"""Where a ledger has an officer, whoever can append to it can neither open a budget nor raise one."""

import re
import shlex
from datetime import date
from pathlib import Path

import pytest
from sqlalchemy import update

from dpmodels.accounting.tally import Tally
from dpmodels.errors import AccountMissing, NotSigned
from dpmodels.ledger import store
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.ledger import Account, Ledger
from dpmodels.ledger.records import CAP_TERMS
from dpmodels.privacy import PrivacyBudget
from tests.kit.charges import CAP, make_charge
from tests.kit.errors import refused
from tests.kit.support import make_schema, run_cli, write_key

EXPIRES = date(2100, 1, 1)


@pytest.fixture
def ledger(place: str, tmp_path: Path) -> Ledger:
    """Return a ledger whose account ``clinic`` has an officer, who opened ``lab``, which has none of its own."""
    private, public = write_key(tmp_path / "ada.pem")
    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
    ledger.change_cap("clinic", officer=Officer.read("Ada", public), reason="an officer from now on")
    terms = {"budget_cap": CAP, "run_cap": 0.5, "expires": EXPIRES}
    ledger.open_account("lab", dataset="lab", key=private, **terms)
    return ledger


def append(ledger: Ledger, account: Account, kind: str = "cap", **beside: object) -> None:
    """Write an entry as whoever may insert can, past everything that asks, and the account's row with it."""
    terms = account.terms if kind == "open" else {term: account.terms[term] for term in CAP_TERMS}
    spent = [entry.content["tally"] for entry in ledger.entries(account=account.name) if "tally" in entry.content]
    times = len([entry for entry in ledger.entries(account=account.name) if entry.kind == kind]) + 1

    def work(connection: object) -> None:
        time = account.created if kind == "open" else ""
        drafts = [store.Draft(account.name, account.name, kind, times, {**terms, **beside}, time)]
        if kind == "open":
            connection.execute(store.accounts.insert().values(account.row))
        else:
            caps = {column: account.row[column] for column in store.CAP_COLUMNS}
            connection.execute(update(store.accounts).where(store.accounts.c.name == account.name).values(caps))
            drafts = [
                draft._replace(
                    payload={**draft.payload, "reason": "none", "tally": spent[-1] if spent else Tally().brief}
                )
                for draft in drafts
            ]
        store.append(connection, drafts)

    ledger._database.write(work)


def charge(ledger: Ledger, account: str = "lab", run: str = "run-1", epsilon: float = 0.1) -> None:
    ledger.reserve(make_charge(run, epsilon, account=account, dataset=account))


@pytest.mark.parametrize(
    "change",
    [
        {"cap": PrivacyBudget(epsilon=100, delta=1e-5)},
        {"cap": PrivacyBudget(epsilon=1, delta=1e-3)},
        {"run_cap": None},
        {"expires": None},
        {"officer": "eve"},
    ],
    ids=["epsilon", "delta", "run_cap", "expires", "officer"],
)
def test_what_lets_more_be_spent_and_nobody_signed_is_refused_and_named(
    ledger: Ledger, tmp_path: Path, change: dict[str, object]
) -> None:
    charge(ledger)
    own = tmp_path / "eve.pem"
    if "officer" in change:
        change = {"officer": Officer.read("Eve", write_key(own)[1])}
    append(ledger, ledger.account("lab").model_copy(update=change))
    for ask in (ledger.reserve, ledger.quote):
        with refused(NotSigned, account="lab", officer=""):
            ask(make_charge("run-2", 0.1, account="lab", dataset="lab"))
    (fault,) = ledger.verify()
    assert "is not signed by an officer" in fault and "lab" in fault
    if own.exists():  # whom nobody named signs for nobody
        with pytest.raises(AccountMissing):
            ledger.open_account("more", dataset="more", budget_cap=CAP, key=own)
    ledger.change_cap("lab", reason="so it shall be", key=tmp_path / "ada.pem")
    assert ledger.verify() == [] and len(ledger.remarks()) == 1
    if not own.exists():
        charge(ledger, run="run-2")


def test_an_account_that_nobody_signed_for_is_refused_and_named(ledger: Ledger, tmp_path: Path) -> None:
    eve = Officer.read("Eve", write_key(tmp_path / "eve.pem")[1])
    append(ledger, Account(name="more", dataset="more", cap=CAP, created=store.now()), "open")
    append(
        ledger, Account(name="ward", dataset="ward", cap=CAP, parent="lab", officer=eve, created=store.now()), "open"
    )
    for name in ("more", "ward"):
        with refused(NotSigned, account=name, officer=""):
            charge(ledger, name)
    assert len(ledger.verify()) == 2
    append(ledger, Account(name="bed", dataset="bed", cap=CAP, parent="lab", created=store.now()), "open")
    charge(ledger, "bed")  # it spends what the account above it may


def test_an_officer_signs_a_change_once(ledger: Ledger, tmp_path: Path) -> None:
    key = tmp_path / "ada.pem"
    for wrong in (None, write_key(tmp_path / "eve.pem")[0]):
        with refused(NotSigned, account="lab", officer="Ada"):
            ledger.change_cap("lab", reason="more", epsilon=3, key=wrong)
    raised = ledger.change_cap("lab", reason="more", epsilon=3, key=key)
    approval = ledger.entries(account="lab")[-1].content["approval"]
    assert ledger.change_cap("lab", reason="less", epsilon=2, run_cap=0.2).cap.epsilon == 2  # nobody need sign
    assert ledger.verify() == [] and ledger.remarks() == []
    append(ledger, raised, approval=approval)  # the same words again
    with pytest.raises(NotSigned):
        charge(ledger)
    ledger.change_cap("lab", reason="back", epsilon=2, run_cap=0.2)
    charge(ledger)
    assert ledger.verify() == []


def test_an_officer_is_followed_by_whom_the_officer_names(ledger: Ledger, tmp_path: Path) -> None:
    key, (bob, public) = tmp_path / "ada.pem", write_key(tmp_path / "bob.pem")
    with refused(NotSigned, account="clinic", officer="Ada"):
        ledger.change_cap("clinic", reason="gone", officer=None)
    ledger.change_cap("clinic", reason="Bob follows", officer=Officer.read("Bob", public), key=key)
    with refused(NotSigned, account="lab", officer="Bob"):
        ledger.change_cap("lab", reason="more", epsilon=3, key=key)
    ledger.change_cap("lab", reason="more", epsilon=3, key=bob)
    ledger.change_cap("clinic", reason="the office is dissolved", officer=None, key=bob)
    ledger.change_cap("lab", reason="nobody is asked", epsilon=4)
    assert ledger.verify() == [] and ledger.remarks() == []


def test_a_refused_opening_names_a_command_that_can_be_given_as_it_stands(tmp_path: Path) -> None:
    key, public = write_key(tmp_path / "ada.pem")
    Ledger(tmp_path / "ledger.sqlite").open_account(
        "clinic", dataset="visits", budget_cap=CAP, officer=Officer.read("Ada", public)
    )
    (tmp_path / "clinic.yaml").write_text(make_schema().to_yaml())
    words = ("--schema", tmp_path / "clinic.yaml", "--epsilon", 2, "--delta", "1e-5", "--note", "two words")
    code, _, err = run_cli("ledger", "open", "more", *words, "--home", tmp_path)
    assert code == 1
    command = re.search("`(nacre ledger open .*)`", " ".join(err.split()))
    assert command is not None
    assert run_cli(*shlex.split(command[1].replace("KEY.pem", str(key)))[1:])[0] == 0


def test_the_commands_take_the_officers_key(tmp_path: Path) -> None:
    key, public = write_key(tmp_path / "ada.pem")
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP, officer=Officer.read("Ada", public))
    words = ("--home", tmp_path, "--reason", "the board agreed")
    code, _, err = run_cli("ledger", "cap", "clinic", "--epsilon", 2, *words)
    assert code == 1 and "Ada" in err and "--key" in err and "nothing was changed" in err
    assert run_cli("ledger", "cap", "clinic", "--epsilon", 2, "--key", key, *words)[0] == 0
    assert run_cli("ledger", "officer", "clinic", "--nobody", *words)[0] == 1
    assert run_cli("ledger", "officer", "clinic", "--nobody", "--signing-key", key, *words)[0] == 0
    assert run_cli("ledger", "verify", "--home", tmp_path)[0] == 0
