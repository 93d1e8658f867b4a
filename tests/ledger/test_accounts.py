"""Accounts as an owner shapes them: children, caps that change, the share of one run, a last day, a Renyi filter."""

import math
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from scipy.stats import norm

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import ComposedEvent, GaussianEvent, LaplaceEvent, PureEvent, ThresholdEvent
from dpmodels.accounting.meaning import guesses_of_budget
from dpmodels.errors import BudgetExhausted, ChargeState, InvalidArgument, LedgerError
from dpmodels.ledger import store
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.privacy import PrivacyBudget, PrivacyUnit
from tests.kit.charges import CAP, make_charge
from tests.kit.errors import refused

DELTA = Decimal("1e-5")


def child_charge(name: str, run: str, epsilon: float = 0.3) -> Charge:
    return make_charge(run, epsilon, account=name, dataset=name)


@pytest.fixture
def family(place: str) -> Ledger:
    """Open a study of epsilon 1 with two hospitals below it."""
    ledger = Ledger(place)
    ledger.open_account("study", dataset="study", budget_cap=CAP, owner="the privacy officer")
    for name in ("north", "south"):
        ledger.open_account(name, dataset=name, budget_cap=CAP, parent="study")
    return ledger


def spent(ledger: Ledger, name: str) -> Decimal:
    return ledger.balance(name).spent_epsilon


def events(*epsilons: float) -> list[GaussianEvent]:
    return [make_charge(epsilon=epsilon).event for epsilon in epsilons]


def test_disjoint_children_count_once_and_a_line_adds_up(family: Ledger) -> None:
    family.reserve(child_charge("north", "a", 0.3))
    family.reserve(child_charge("south", "b", 0.3))
    assert spent(family, "study") == spent(family, "north") == spent_epsilon(events(0.3), DELTA)
    family.reserve(child_charge("south", "c", 0.4))
    assert spent(family, "study") == spent(family, "south") == spent_epsilon(events(0.3, 0.4), DELTA)
    family.reserve(child_charge("study", "d", 0.5))
    assert spent(family, "study") == spent_epsilon(events(0.3, 0.4, 0.5), DELTA)
    assert spent(family, "north") == spent_epsilon(events(0.3), DELTA)
    assert family.balance("study").children == ("north", "south")
    assert family.verify() == []


def test_a_parent_refuses_for_its_child_and_names_itself(family: Ledger) -> None:
    family.reserve(child_charge("study", "a", 0.9))
    with refused(BudgetExhausted, account="study"):
        family.reserve(child_charge("north", "b", 0.5))
    family.reserve(child_charge("north", "c", 0.2))
    family.reserve(child_charge("south", "d", 0.2))
    with refused(BudgetExhausted, account="study"):
        family.reserve(child_charge("study", "e", 0.5))  # the heaviest line has no room for it


def test_grandchildren_count_along_their_own_line(family: Ledger) -> None:
    for name in ("ward-1", "ward-2"):
        family.open_account(name, dataset=name, budget_cap=CAP, parent="north")
    family.reserve(child_charge("ward-1", "a", 0.2))
    family.reserve(child_charge("ward-2", "b", 0.3))
    family.reserve(child_charge("north", "c", 0.3))
    family.reserve(child_charge("south", "d", 0.4))
    assert spent(family, "north") == spent_epsilon(events(0.3, 0.3), DELTA)
    assert spent(family, "study") == max(spent_epsilon(events(0.3, 0.3), DELTA), spent_epsilon(events(0.4), DELTA))


def test_a_child_is_like_its_parent(family: Ledger) -> None:
    other = CAP.model_copy(update={"unit": PrivacyUnit(user="patient", max_rows=2)})
    with pytest.raises(LedgerError, match="unit and adjacency of its parent"):
        family.open_account("west", dataset="west", budget_cap=other, parent="study")
    with pytest.raises(LedgerError, match="account nobody is not open"):
        family.open_account("west", dataset="west", budget_cap=CAP, parent="nobody")
    assert family.accounts()[0].owner == "the privacy officer"


def test_a_cap_changes_for_a_reason_and_never_below_what_is_spent(place: str, charge) -> None:
    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
    ledger.reserve(charge(epsilon=0.8))
    with pytest.raises(BudgetExhausted):
        ledger.reserve(charge("run-2", epsilon=0.8))
    with pytest.raises(LedgerError, match="for a reason"):
        ledger.change_cap("clinic", reason=" ", epsilon=2.0)
    with pytest.raises(LedgerError, match=r"has spent epsilon=0\.\d+; its cap cannot be below"):
        ledger.change_cap("clinic", reason="saving", epsilon=0.7)
    with pytest.raises(LedgerError, match="cannot be below"):
        ledger.change_cap("clinic", reason="saving", delta=1e-9)
    with refused(InvalidArgument, name="cap.epsilon", value=-1):
        ledger.change_cap("clinic", reason="a slip", epsilon=-1.0)
    raised = ledger.change_cap("clinic", reason="the board agreed", epsilon=2.0)
    assert raised == ledger.account("clinic") and raised.cap.epsilon == 2
    ledger.reserve(charge("run-2", epsilon=0.8))
    ledger.change_cap("clinic", reason="enough", epsilon=float(spent(ledger, "clinic")) + 1e-9)
    changes = [entry.content for entry in ledger.entries(account="clinic") if entry.kind == "cap"]
    assert [change["reason"] for change in changes] == ["the board agreed", "enough"]
    assert ledger.balance("clinic").remaining_epsilon == 0
    with pytest.raises(LedgerError, match="nacre ledger cap"):
        ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
    assert ledger.verify() == []


def test_a_parents_cap_is_not_lowered_below_its_heaviest_line(family: Ledger) -> None:
    family.reserve(child_charge("north", "a", 0.6))
    with pytest.raises(LedgerError, match="cannot be below"):
        family.change_cap("study", reason="saving", epsilon=0.5)
    family.change_cap("study", reason="saving", epsilon=0.61)
    with refused(BudgetExhausted, account="study"):
        family.reserve(child_charge("north", "b", 0.2))


def test_one_run_has_its_share(place: str, charge) -> None:
    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP, run_cap=0.5)
    first = ledger.reserve(charge(epsilon=0.4))
    with refused(BudgetExhausted, account="clinic (one run)", cap=0.5):
        ledger.reserve(charge(epsilon=0.3, plan_hash="another plan"))
    ledger.reserve(charge("run-2", epsilon=0.3))
    ledger.void(first.key, "a wrong plan")
    ledger.reserve(charge(epsilon=0.3, plan_hash="another plan"))
    with refused(InvalidArgument, name="run_cap", value=1.5):
        ledger.change_cap("clinic", reason="a slip", run_cap=1.5)


def test_an_account_ends_and_never_refreshes(place: str, charge, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP, expires=date(2030, 1, 1))
    ledger.reserve(charge(epsilon=0.8))
    with monkeypatch.context() as later:
        later.setattr(store, "now", lambda: "2030-01-01T23:59:59.000000+00:00")
        ledger.reserve(charge("run-2", epsilon=0.1))
    with monkeypatch.context() as later:
        later.setattr(store, "now", lambda: "2030-01-02T00:00:00.000000+00:00")
        ledger.open_account("other", dataset="other", budget_cap=CAP)  # an entry of that day
        for asked in (ledger.quote, ledger.reserve):
            with pytest.raises(LedgerError, match="expired on 2030-01-01"):
                asked(charge("run-3", epsilon=0.1))
        assert ledger.reserve(charge("run-2", epsilon=0.1)).state == "reserved"  # made in time
    with pytest.raises(LedgerError, match="expired"):  # the clock is set back: the newest entry still says later
        ledger.reserve(charge("run-3", epsilon=0.1))
    before = spent(ledger, "clinic")
    ledger.change_cap("clinic", reason="a second year, same people", expires=date(2031, 1, 1))
    assert spent(ledger, "clinic") == before
    with pytest.raises(BudgetExhausted):
        ledger.reserve(charge("run-3", epsilon=0.8))


def test_a_renyi_filter_holds_its_cap_for_any_mix(place: str, charge) -> None:
    ledger = Ledger(place)
    opened = ledger.open_account("clinic", dataset="visits", budget_cap=CAP, composition="renyi_filter")
    assert opened.order > 1 and ledger.account("clinic") == opened
    assert ledger.open_account("clinic", dataset="visits", budget_cap=CAP, composition="renyi_filter") == opened
    assert spent(ledger, "clinic") == 0
    count = 0
    with pytest.raises(BudgetExhausted):
        while True:
            made = [events(0.2)[0], LaplaceEvent(noise_multiplier=6.0 + count), PureEvent(epsilon=0.1)][count % 3]
            ledger.reserve(charge(f"run-{count}", epsilon=0.21, event=made))
            count += 1
    balance = ledger.balance("clinic")
    assert count > 5 and balance.spent_epsilon <= 1 and balance.renyi_epsilon == balance.spent_epsilon
    before = balance.spent_epsilon
    key = make_charge("run-0", 0.21, event=events(0.2)[0]).key
    ledger.void(key, "a wrong plan")
    assert spent(ledger, "clinic") < before
    assert ledger.verify() == []


def test_a_renyi_filter_takes_thresholds_before_anything_else(place: str, charge) -> None:
    ledger = Ledger(place)
    for name, composition in (("clinic", "renyi_filter"), ("other", "exact")):
        dataset = "visits" if name == "clinic" else name
        ledger.open_account(name, dataset=dataset, budget_cap=CAP, composition=composition)
    names = ComposedEvent(events=(*events(0.1), ThresholdEvent(delta=float(CAP.delta) / 4)))
    first = charge("first", epsilon=0.3, event=names)
    ledger.reserve(first)
    later = charge("later", epsilon=0.3, event=names)
    for asked in (ledger.quote, ledger.reserve):
        with pytest.raises(LedgerError, match="thresholds are charged before anything else"):
            asked(later)
    ledger.reserve(charge("noise", epsilon=0.2))
    for run in ("first", "later"):
        ledger.reserve(charge(run, epsilon=0.3, event=names, account="other", dataset="other"))
    ledger.void(first.key, "a wrong draft")
    with pytest.raises(LedgerError, match="discover values first"):
        ledger.reserve(later)
    assert ledger.verify() == []


def test_a_filters_order_is_public_and_its_children_share_it(place: str) -> None:
    ledger = Ledger(place)
    study = ledger.open_account("study", dataset="study", budget_cap=CAP, composition="renyi_filter")
    north = ledger.open_account("north", dataset="north", budget_cap=CAP, parent="study")
    assert (north.composition, north.order) == ("renyi_filter", study.order)
    ledger.reserve(child_charge("north", "a", 0.3))
    assert spent(ledger, "study") == spent(ledger, "north") > spent_epsilon(events(0.3), DELTA)


def test_an_exact_account_takes_a_bounded_number_of_kinds(place: str, charge) -> None:
    ledger = Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=PrivacyBudget(epsilon=900, delta=1e-5))
    from dpmodels.ledger import books

    kinds = [LaplaceEvent(noise_multiplier=500.0 + number) for number in range(65)]
    tally = sum((books.Tally.of([kind]) for kind in kinds[:64]), books.Tally())
    book = books.Book(ledger.account("clinic"), tally)
    assert len((tally + book.cost(kinds[0])).others) == 64
    with pytest.raises(LedgerError, match="at most 64 different kinds"):
        book.cost(kinds[64])


def test_where_an_account_stood_is_told_of_every_charge_whatever_came_after_it(ledger, charge) -> None:
    runs = [charge(f"run-{number}", epsilon=0.25) for number in range(4)]
    for one in runs[:2]:
        ledger.reserve(one)
    ledger.void(runs[1].key, "it was not wanted")
    ledger.reserve(runs[2])
    balance = ledger.balance("clinic")
    ledger.reserve(runs[3])
    first, third = ledger.standing(runs[0].key), ledger.standing(runs[2].key)
    assert first.before == 0 and 0.2499 < first.after <= 0.25 and first.after < first.remaining < 1
    assert (third.before, third.after) == (first.after, balance.spent_epsilon)
    assert third.remaining == balance.remaining_epsilon
    assert first.right_guesses < third.right_guesses < guesses_of_budget(float(third.after), float(third.delta))
    mu = math.sqrt(sum(one.event.noise_multiplier**-2 for one in (runs[0], runs[2])))
    assert third.right_guesses == pytest.approx(norm.cdf(mu / 2), rel=1e-5)
    assert third.beyond == pytest.approx(norm.sf(float(third.after) / mu - mu / 2), rel=1e-4)
    last = ledger.standing(runs[3].key)
    assert [one.spent for one in last.earlier] == [first.after, third.after] and third.after < 2 * first.after
    ledger.void(runs[2].key, "it was not wanted either")  # its entries say nothing of sums without it
    assert [one.spent for one in ledger.standing(runs[3].key).earlier] == [first.after]
    late = charge("late", epsilon=0.25)
    ledger.reserve(late)
    assert [one.spent for one in ledger.standing(late.key).earlier] == [first.after, None]
    both = ledger.standing(runs[0].key, runs[1].key)
    assert (both.before, both.after, both.cap) == (0, first.after, 1)
    with refused(ChargeState, charge="0" * 64, state="not reserved"):
        ledger.standing("0" * 64)


def test_of_an_account_with_others_below_no_sum_is_told_of_earlier_charges(ledger, charge) -> None:
    ledger.open_account("above", dataset="above-visits", budget_cap=CAP)
    ledger.open_account("part", dataset="part-visits", budget_cap=CAP, parent="above")
    of = {"account": "above", "dataset": "above-visits", "epsilon": 0.1}
    charges = [charge(name, **of) for name in "ab"]
    for one in charges:
        ledger.reserve(one)
    (earlier,) = ledger.standing(charges[1].key).earlier
    assert earlier.spent is None


def test_owner_and_last_day_of_an_account_are_in_where_it_stood(ledger, charge) -> None:
    terms = {"owner": "Ward 7", "expires": "2099-12-31", "note": "stays in the ledger"}
    ledger.open_account("owned", dataset="owned-visits", budget_cap=CAP, **terms)
    ledger.reserve(charge("a", account="owned", dataset="owned-visits", epsilon=0.25))
    stood = ledger.standing(charge("a", account="owned", dataset="owned-visits", epsilon=0.25).key)
    assert (stood.owner, str(stood.expires)) == ("Ward 7", "2099-12-31")
    assert "note" not in stood.model_dump_json()


def test_what_an_account_below_spent_is_in_where_the_account_above_stood(ledger, charge) -> None:
    ledger.open_account("ward", dataset="ward-visits", budget_cap=CAP, parent="clinic")
    ledger.reserve(charge("below", account="ward", dataset="ward-visits", epsilon=0.5))
    ledger.reserve(charge("above", epsilon=0.25))
    assert 0.499 < ledger.standing(charge("above", epsilon=0.25).key).before <= 0.5


def test_the_name_of_a_data_set_is_answered_with_the_account_that_pays_for_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_account("dispute", dataset="card_disputes", budget_cap=CAP)
    for ask in (ledger.account, ledger.balance, lambda name: ledger.change_cap(name, reason="more", epsilon=9.0)):
        with pytest.raises(LedgerError, match="account dispute pays for data set card_disputes: give that name"):
            ask("card_disputes")
    opens = "`nacre ledger open {} --schema SCHEMA --epsilon EPSILON --delta DELTA` opens it$"
    for name, meant in (("disputes", r"did you mean `dispute`\? Otherwise "), ("visits", "")):
        with pytest.raises(LedgerError, match=f"account {name} is not open; {meant}{opens.format(name)}"):
            ledger.account(name)
