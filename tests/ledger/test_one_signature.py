"""What one signature, one key and one opening are good for: one charge, one price, one kind of account."""

from pathlib import Path

import pytest

from dpmodels.accounting.events import GaussianEvent
from dpmodels.errors import InvalidArgument, LedgerError, NotSigned
from dpmodels.ledger.approval import Officer
from dpmodels.ledger.ledger import Account, Ledger
from dpmodels.privacy import PrivacyBudget
from tests.kit.charges import CAP, MakeCharge
from tests.kit.errors import refused
from tests.kit.support import write_key


def test_an_approval_is_good_for_one_charge_and_not_for_one_of_each_part(
    ledger: Ledger, charge: MakeCharge, tmp_path: Path
) -> None:
    """Charges of one plan and run that differ in their part alone have keys of their own; each must be signed for."""
    private, public = write_key(tmp_path / "key.pem")
    ledger.change_cap("clinic", officer=Officer.read("Ada", public), reason="an officer from now on")
    asked = ledger.asked(charge(epsilon=0.2))
    assert asked is not None
    approval = asked[1].approve("Ada", private)
    ledger.reserve(charge(epsilon=0.2), approval=approval)
    for part in ("document", "client", "night"):
        with refused(NotSigned, r"not signed|lacks", account="clinic", officer="Ada"):
            ledger.reserve(charge(epsilon=0.2, part=part), approval=approval)
    again = ledger.asked(charge(epsilon=0.2, part="document"))
    assert again is not None
    ledger.reserve(charge(epsilon=0.2, part="document"), approval=again[1].approve("Ada", private))
    assert ledger.verify() == []


def test_two_charges_of_one_key_and_different_prices_are_refused(ledger: Ledger, charge: MakeCharge) -> None:
    """Of the two the last would be charged, and the first said to be reserved."""
    dear, cheap = charge(epsilon=0.9), charge(epsilon=0.9, event=GaussianEvent(noise_multiplier=1000.0))
    assert dear.key == cheap.key
    with pytest.raises(LedgerError, match="other terms"):
        ledger.reserve(dear, cheap)
    assert ledger.find(dear.key) is None and ledger.balance("clinic").charges == 0
    assert ledger.reserve(dear, dear).charge == dear


def test_an_account_that_is_opened_with_its_first_charge_has_the_terms_of_any_other(
    ledger: Ledger, charge: MakeCharge
) -> None:
    """A filter without an order would be reckoned as none, and its cap is then no filter's."""
    first = charge(account="night", dataset="nights", epsilon=0.2)
    filtered = Account(name="night", dataset="nights", cap=CAP, composition="renyi_filter")
    ledger.reserve(first, first_opens=filtered)
    assert ledger.account("night").order > 0 and ledger.find(first.key).cost.renyi > 0  # type: ignore[union-attr]
    for wrong in (
        {"composition": "renyi_filter", "cap": PrivacyBudget(epsilon=1, delta=0)},
        {"run_cap": 2.0},
    ):
        with pytest.raises(InvalidArgument):
            ledger.reserve(
                charge(account="other", dataset="others"),
                first_opens=Account(**{"name": "other", "dataset": "others", "cap": CAP, **wrong}),
            )
    assert ledger.verify() == []
