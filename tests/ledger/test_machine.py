"""Thousands of random steps of several accounts, against a model of three dictionaries."""

import shutil
import tempfile
import uuid
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from benchmarks import postgres
from dpmodels.accounting.composition import spent_epsilon
from dpmodels.errors import ArtifactError, BudgetExhausted, LedgerError
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.ledger.records import TRANSITIONS
from tests.kit.charges import CAP, make_charge

DELTA = Decimal("1e-5")
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # nothing here pulls the plug: let no step wait for a disk
NAMES = ["study", "north", "south"]  # the second and third lie under the first
VERBS = {
    "draw": lambda ledger, key: ledger.begin_draw(key),
    "seal": lambda ledger, key: ledger.seal(key, "ab" * 32),
    "commit": lambda ledger, key: ledger.commit(key),
    "void": lambda ledger, key: ledger.void(key, "a wrong plan"),
}


class Power(Exception):
    """The power went."""


class LedgerMachine(RuleBasedStateMachine):
    """What the ledger says must be what the model says, after any steps in any order, crashes among them."""

    charges = Bundle("charges")
    server = ""

    @initialize()
    def begin(self) -> None:
        self.home = Path(tempfile.mkdtemp(dir=MEMORY))
        name = f"m{uuid.uuid4().hex}"
        self.place = postgres.new_database(self.server, name) if self.server else str(self.home / "ledger.db")
        self.ledger = Ledger(self.place)
        self.caps = dict.fromkeys(NAMES, Decimal(1))
        self.states: dict[str, str] = {}
        self.costs: dict[str, Charge] = {}
        for name in NAMES:
            parent = "" if name == "study" else "study"
            self.ledger.open_account(name, dataset=name, budget_cap=CAP, parent=parent)

    def spent(self, name: str, further: Charge | None = None) -> Decimal:
        """Add up the model: an account's own events, and for the study those of the heavier hospital."""

        def own(account: str) -> list[object]:
            held = [c.event for key, c in self.costs.items() if c.account == account and self.states[key] != "voided"]
            return held + ([further.event] if further and further.account == account else [])

        lines = [own(name)] if name != "study" else [own("study") + own(child) for child in NAMES[1:]]
        return max(spent_epsilon(line, DELTA) for line in lines)

    @rule(
        target=charges,
        name=st.sampled_from(NAMES),
        run=st.integers(0, 5),
        epsilon=st.sampled_from([0.05, 0.2, 0.4, 0.9]),
    )
    def reserve(self, name: str, run: int, epsilon: float) -> Charge:
        charge = make_charge(f"run-{run}", epsilon, account=name, dataset=name, plan_hash=f"plan-{epsilon}")
        above = [name] if name == "study" else [name, "study"]
        fits = all(self.spent(each, charge) <= self.caps[each] for each in above)
        before = self.states.get(charge.key)
        try:
            held = self.ledger.reserve(charge)
            assert before != "voided" and (before or fits)
            self.states.setdefault(charge.key, "reserved")
            self.costs[charge.key] = charge
            assert held.state == self.states[charge.key]
        except BudgetExhausted as refusal:
            assert not fits and before is None
            assert refusal.remaining <= refusal.cap
        except LedgerError:
            assert before == "voided"
        return charge

    @rule(charge=charges, kind=st.sampled_from(sorted(VERBS)))
    def advance(self, charge: Charge, kind: str) -> None:
        state = self.states.get(charge.key, "new")
        after = TRANSITIONS.get((state, kind)) if state != "new" else None
        try:
            assert VERBS[kind](self.ledger, charge.key).state == after
            self.states[charge.key] = after
        except LedgerError:
            assert after is None

    @rule(charge=charges, step=st.sampled_from(["draw", "publish", "nothing"]))
    def release(self, charge: Charge, step: str) -> None:
        """Take a charge to its end; or lose power while drawing, or between seal and commit."""
        state = self.states.get(charge.key)
        staged, released = (self.home / zone / charge.key for zone in ("sensitive", "released"))
        if state is None or (state in ("sealed", "committed") and not (staged.exists() or released.exists())):
            return  # sealed by hand above: there is no artifact

        def draw(part: Path, key: str) -> None:
            part.write_bytes(key.encode())
            if step == "draw":
                raise Power

        try:
            with pytest.MonkeyPatch.context() as patch:
                if step == "publish":
                    patch.setattr("dpmodels.artifact.publish", lose_power)
                self.ledger.release(charge, staged=staged, released=released, draw=draw)
            self.states[charge.key] = "committed"
            assert state != "voided"
        except Power:
            self.states[charge.key] = "drawing" if step == "draw" else "sealed"
            if step == "publish":
                held = self.ledger.recover(charge.key, staged=staged, released=released)
                self.states[charge.key] = "committed"
                assert held.state == "committed" and released.exists()
        except LedgerError:
            assert state == "voided"
        except ArtifactError:
            assert state in ("sealed", "committed")  # sealed by hand with a hash that no file has

    @rule(name=st.sampled_from(NAMES), epsilon=st.sampled_from([0.3, 0.7, 1.0, 1.5]))
    def cap(self, name: str, epsilon: float) -> None:
        cap = Decimal(str(epsilon))
        try:
            self.ledger.change_cap(name, reason="because", epsilon=epsilon)
            assert self.spent(name) <= cap
            self.caps[name] = cap
        except LedgerError:
            assert self.spent(name) > cap

    @rule()
    def start_again(self) -> None:
        self.ledger = Ledger(self.place)
        self.compare()

    @invariant()
    def no_cap_is_passed(self) -> None:
        if hasattr(self, "ledger"):
            assert all(self.spent(name) <= self.caps[name] for name in NAMES)

    def compare(self) -> None:
        for name in NAMES:
            balance = self.ledger.balance(name)
            assert balance.spent_epsilon == self.spent(name) <= balance.cap == self.caps[name]
        for key, state in self.states.items():
            assert self.ledger.find(key).state == state

    def teardown(self) -> None:
        if hasattr(self, "ledger"):
            self.compare()
            assert self.ledger.verify() == []
            shutil.rmtree(self.home)


def lose_power(*_: object) -> None:
    raise Power


@pytest.mark.slow
@pytest.mark.parametrize(("database", "examples"), [("sqlite", 20), ("sqlite", 70), ("postgresql", 5)])
@pytest.mark.nightly_if("sqlite-70", "postgresql-5")
def test_any_life_of_any_charges_keeps_the_invariants(
    request: pytest.FixtureRequest, database: str, examples: int
) -> None:
    class Machine(LedgerMachine):
        server = request.getfixturevalue("postgres_server") if database == "postgresql" else ""

    bounds = settings(
        max_examples=examples, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(Machine, settings=bounds)
