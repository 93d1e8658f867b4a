"""Accounts whose delta is 0: epsilons add up exactly, and nothing that is not pure is ever charged to them."""

from decimal import Decimal

import pytest

from dpmodels.accounting.events import (
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
    SampledGaussianEvent,
)
from dpmodels.errors import BudgetExhausted, InvalidArgument, LedgerError
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.privacy import Adjacency, PrivacyBudget, PrivacyUnit
from tests.kit.charges import CAP, make_charge
from tests.kit.errors import refused

PURE = PrivacyBudget(epsilon=1.0, delta=0)
GAUSSIAN = GaussianEvent(noise_multiplier=50.0)
DP_SGD = SampledGaussianEvent(noise_multiplier=50.0, sampling_probability=0.01)


def pure(run: str, epsilon: float, event: Event | None = None, **other: object) -> Charge:
    budget = PrivacyBudget(epsilon=epsilon, delta=0)
    return make_charge(run, event=event or PureEvent(epsilon=epsilon), **{"budget": budget, **other})


@pytest.fixture
def account(place: str) -> Ledger:
    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=PURE)
    return ledger


def test_ten_tenths_are_exactly_the_cap_and_the_least_further_release_is_refused(account: Ledger) -> None:
    for number in range(10):
        said = account.quote(pure(f"run-{number}", 0.1))
        assert (said.spent_after, said.delta) == (Decimal(number + 1) / 10, 0) and said.accepted
        account.reserve(pure(f"run-{number}", 0.1))
        balance = account.balance("clinic")
        assert balance.spent_epsilon == balance.renyi_epsilon == 1 - balance.remaining_epsilon == said.spent_after
    with refused(BudgetExhausted, account="clinic", remaining=0):
        account.reserve(pure("more", 0.001, PureEvent(epsilon=1e-6)))
    account.void(pure("run-3", 0.1).key, "a wrong plan")
    assert account.balance("clinic").remaining_epsilon == Decimal("0.1")
    account.reserve(pure("more", 0.1))
    assert [spent for _, spent, _ in account.history("clinic", 20)][-3:] == [1, Decimal("0.9"), 1]
    assert account.account("clinic").delta_cap == 0 and account.verify() == []


def test_laplace_releases_compositions_and_parts_count_their_exact_epsilons(account: Ledger) -> None:
    thirds = ComposedEvent(events=(LaplaceEvent(noise_multiplier=12.0), PureEvent(epsilon=0.25)))
    account.reserve(pure("a", 0.34, thirds))
    assert account.balance("clinic").spent_epsilon == Decimal("0.333333333334")  # 1/12 + 1/4, rounded up
    account.reserve(pure("b", 0.34, thirds))
    account.reserve(
        pure("c", 0.3, ParallelEvent(by="document", events=(PureEvent(epsilon=0.1), PureEvent(epsilon=0.3))))
    )
    assert account.balance("clinic").spent_epsilon == Decimal("0.966666666667")
    account.reserve(pure("d", 0.03, PureEvent(epsilon=0.03), part="document"))
    assert account.balance("clinic").spent_epsilon == Decimal("0.996666666667")
    assert account.verify() == []


@pytest.mark.parametrize("event", [GAUSSIAN, DP_SGD, ComposedEvent(events=(PureEvent(epsilon=0.1), GAUSSIAN))])
@pytest.mark.parametrize("delta", [0, 1e-5])
def test_what_is_not_pure_is_refused_in_one_sentence_whatever_its_own_delta(account: Ledger, event, delta) -> None:
    for each in (event, ParallelEvent(by="document", events=(PureEvent(epsilon=0.1), event))):
        charge = pure("run", 0.5, each, budget=PrivacyBudget(epsilon=0.5, delta=delta))
        for asked in (account.quote, account.check, account.reserve):
            with pytest.raises(LedgerError, match="a delta of 0, which only pure releases keep") as refusal:
                asked(charge)
            assert ". " not in str(refusal.value)
    assert account.balance("clinic").charges == 0


def test_a_charge_that_promises_a_delta_of_0_is_refused_for_a_gaussian_in_any_account(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="the charge's budget has a delta of 0"):
        ledger.reserve(pure("run", 0.5, GAUSSIAN))
    ledger.reserve(pure("run", 0.5))
    assert ledger.balance("clinic").spent_epsilon <= Decimal("0.5")
    with pytest.raises(LedgerError, match="costs more than its budget"):
        ledger.reserve(pure("dear", 0.3, PureEvent(epsilon=0.3000000000001)))


def test_a_parent_of_delta_0_holds_for_its_children(place: str) -> None:
    ledger = Ledger(place)
    ledger.open_account("study", dataset="study", budget_cap=PURE)
    ledger.open_account("north", dataset="north", budget_cap=CAP, parent="study")
    with pytest.raises(LedgerError, match="account study has a delta of 0"):
        ledger.reserve(make_charge(account="north", dataset="north"))
    ledger.reserve(pure("run", 0.5, account="north", dataset="north"))
    assert ledger.balance("study").spent_epsilon == Decimal("0.5")


def test_a_delta_is_lowered_to_0_only_where_everything_spent_is_pure(ledger: Ledger, charge) -> None:
    ledger.reserve(pure("run", 0.4))
    assert ledger.change_cap("clinic", reason="the board asked", delta=0).cap.delta == 0
    ledger.change_cap("clinic", reason="and took it back", delta=1e-5)
    ledger.reserve(charge(epsilon=0.1))
    with pytest.raises(LedgerError, match="has releases that are not pure"):
        ledger.change_cap("clinic", reason="again", delta=0)
    assert ledger.verify() == []


def test_a_renyi_filter_has_a_delta(place: str) -> None:
    ledger = Ledger(place)
    with refused(InvalidArgument, "in a Renyi filter", name="delta"):
        ledger.open_account("clinic", dataset="visits", budget_cap=PURE, composition="renyi_filter")
    ledger.open_account("study", dataset="study", budget_cap=CAP, composition="renyi_filter")
    with refused(InvalidArgument, "in a Renyi filter", name="delta"):
        ledger.open_account("north", dataset="north", budget_cap=PURE, parent="study")
    with refused(InvalidArgument, "in a Renyi filter", name="delta"):
        ledger.change_cap("study", reason="a slip", delta=0)


def test_a_run_cap_of_a_pure_account_is_exact(place: str) -> None:
    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=PURE, run_cap=0.3)
    for plan in "abc":
        ledger.reserve(pure("run", 0.1, plan_hash=plan))
    with refused(BudgetExhausted, account="clinic (one run)"):
        ledger.reserve(pure("run", 0.001, plan_hash="d"))


# ---- adjacency and unit are part of what an account is for


def test_a_charge_under_another_adjacency_than_its_accounts_is_refused_and_nothing_is_converted(place: str) -> None:
    ledger, replaced = Ledger(place), CAP.model_copy(update={"adjacency": Adjacency.REPLACE_ONE})
    ledger.open_account("added", dataset="visits", budget_cap=CAP)
    ledger.open_account("replaced", dataset="visits", budget_cap=replaced)  # another promise about the same data
    one = make_charge().budget
    other = one.model_copy(update={"adjacency": Adjacency.REPLACE_ONE})
    for account, budget in (("added", other), ("replaced", one)):
        with pytest.raises(LedgerError, match="replace_one"):
            ledger.reserve(make_charge(account=account, budget=budget))
    ledger.reserve(make_charge(account="added"))
    ledger.reserve(make_charge(account="replaced", budget=other))
    assert ledger.balance("added").spent_epsilon == ledger.balance("replaced").spent_epsilon  # a ratio, one price
    assert ledger.account("replaced").row["adjacency"] == "replace_one" and ledger.verify() == []


@pytest.mark.parametrize("event", [DP_SGD, ParallelEvent(by="cluster", events=(GAUSSIAN, DP_SGD))])
def test_poisson_samples_are_not_charged_under_replace_one(place: str, event: Event) -> None:
    ledger, replaced = Ledger(place), CAP.model_copy(update={"adjacency": Adjacency.REPLACE_ONE})
    ledger.open_account("clinic", dataset="visits", budget_cap=replaced)
    ledger.open_account("added", dataset="visits", budget_cap=CAP)
    with refused(InvalidArgument, "for DP-SGD", name="adjacency"):
        ledger.reserve(make_charge(event=event, budget=replaced))
    ledger.reserve(make_charge(event=event, budget=CAP, account="added"))


def test_accounts_of_every_unit_keep_it(place: str) -> None:
    ledger = Ledger(place)
    units = [PrivacyUnit(), PrivacyUnit(user="patient", max_rows=4), *(PrivacyUnit(kind=k) for k in UNITS)]
    for number, unit in enumerate(units):
        cap = CAP.model_copy(update={"unit": unit})
        opened = ledger.open_account(f"a{number}", dataset="letters", budget_cap=cap)
        assert ledger.account(f"a{number}") == opened and opened.cap.unit == unit
        with pytest.raises(LedgerError, match="second budget"):
            ledger.open_account(f"b{number}", dataset="letters", budget_cap=cap)
    rows = [account.row["unit"] for account in ledger.accounts()]
    assert rows == ["record", "user:patient:4", "sentence", "document"]
    with pytest.raises(LedgerError, match=r"unit sentence of a document, .*; the charge is for letters, record"):
        ledger.reserve(make_charge(account="a2", dataset="letters"))
    assert ledger.verify() == []


UNITS = ("sentence", "document")
