"""Who may open an account: where the ledger has an officer, a new budget needs an officer's signature."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpmodels.errors import AccountMissing
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.ledger import Account, Ledger
from dpmodels.ledger.store import canonical_json
from tests.kit.charges import CAP, make_charge, rewrite
from tests.kit.errors import refused
from tests.kit.support import run_cli, write_key


@pytest.fixture
def officer(place: str, tmp_path: Path) -> tuple[Ledger, Path]:
    """Return a ledger, one of whose accounts has an officer, and the officer's private key."""
    private, public = write_key(tmp_path / "ada.pem")
    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
    ledger.change_cap("clinic", officer=Officer.read("Ada", public), reason="an officer from now on")
    return ledger, private


def test_a_new_budget_needs_an_officers_signature_of_all_its_terms(
    officer: tuple[Ledger, Path], tmp_path: Path
) -> None:
    ledger, key = officer
    for other in (None, write_key(tmp_path / "eve.pem")[0]):
        with refused(AccountMissing, account="visits2"):
            ledger.open_account("visits2", dataset="visits2", budget_cap=CAP, key=other)
    with pytest.raises(AccountMissing):  # nor does a run open one
        ledger.reserve(
            make_charge(account="visits2", dataset="visits2"),
            first_opens=Account(name="visits2", dataset="visits2", cap=CAP),
        )
    assert [account.name for account in ledger.accounts()] == ["clinic"]
    assert ledger.open_account("visits2", dataset="visits2", budget_cap=CAP, key=key).name == "visits2"
    assert ledger.account("visits2").officer is None and ledger.verify() == []


def test_of_first_runs_that_begin_at_once_one_opens_an_account(place: str) -> None:
    def begin(number: int) -> bool:
        name = f"visits{number}"
        own = Account(name=name, dataset=name, cap=CAP)
        try:
            ledger.reserve(make_charge(account=name, dataset=name), first_opens=own, alone=True)
        except AccountMissing as error:
            assert error.account == name
            return False
        return True

    ledger = Ledger(place)
    with ThreadPoolExecutor(8) as runs:
        assert sum(runs.map(begin, range(8))) == 1
    (opened,) = ledger.accounts()
    assert [entry.account for entry in ledger.entries()] == [opened.name] * 2 and ledger.verify() == []
    assert ledger.reserve(  # what it opens below its own account is no other budget
        make_charge(account="ward", dataset="ward"),
        first_opens=[opened, Account(name="ward", dataset="ward", cap=CAP, parent=opened.name)],
        alone=True,
    )


def test_an_account_below_another_is_no_new_budget(officer: tuple[Ledger, Path]) -> None:
    ledger, _ = officer
    assert ledger.open_account("ward", dataset="ward", budget_cap=CAP, parent="clinic").parent == "clinic"


def test_nobody_signs_where_no_officer_is_left(officer: tuple[Ledger, Path]) -> None:
    ledger, key = officer
    ledger.change_cap("clinic", officer=None, reason="the board dissolved the office", key=key)
    assert ledger.open_account("visits2", dataset="visits2", budget_cap=CAP).name == "visits2"


def test_a_signature_for_other_terms_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    private, public = write_key(tmp_path / "ada.pem")
    ledger = Ledger(path)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP, officer=Officer.read("Ada", public))
    ledger.open_account("visits2", dataset="visits2", budget_cap=CAP, key=private)
    assert ledger.verify() == []
    opening = ledger.entries()[-1]
    rewrite(path, opening.seq, payload=opening.payload.replace('"owner":""', '"owner":"Eve"'))
    assert any("is not signed by an officer" in fault for fault in ledger.verify())


def test_an_account_beside_an_officers_that_an_earlier_version_opened_is_signed_for_later(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    private, public = write_key(tmp_path / "ada.pem")
    ledger = Ledger(path)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
    ledger.change_cap("clinic", officer=Officer.read("Ada", public), reason="an officer from now on")
    ledger.open_account("visits2", dataset="visits2", budget_cap=CAP, key=private)
    assert ledger.remarks() == []
    opening = ledger.entries()[-1]
    content = {key: value for key, value in opening.content.items() if key != "approval"}
    rewrite(path, opening.seq, payload=canonical_json(content))
    assert any("visits2" in fault for fault in ledger.verify())
    ledger.change_cap("visits2", reason="it was agreed to at the time", key=private)
    assert ledger.verify() == [] and any("visits2 was without" in one for one in ledger.remarks())


def test_a_clock_that_ran_backwards_is_remarked_and_is_no_fault(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpmodels.ledger import store

    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
    ledger.reserve(make_charge("run-1", 0.1))
    assert ledger.remarks() == []
    with monkeypatch.context() as clock:
        clock.setattr(store, "now", lambda: "2001-01-01T00:00:00.000000+00:00")
        ledger.reserve(make_charge("run-2", 0.1))
    ledger.reserve(make_charge("run-3", 0.1))
    assert ledger.verify() == []
    (remark,) = ledger.remarks()
    assert remark.startswith("entry 3 (reserve) by") and "before entry 2" in remark
    code, out, err = run_cli("ledger", "verify", "--home", tmp_path, "--ledger", place)
    assert code == 0 and "before entry 2" in err and "whole" in out
