"""Processes that race for a budget or are killed while they charge it.

Run as a program, it imports once and forks, so that hundreds of processes cost seconds. It prints one JSON object.
"""

import hashlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

from sqlalchemy import Connection

from dpmodels import artifact
from dpmodels.accounting.composition import spent_epsilon
from dpmodels.errors import BudgetExhausted
from dpmodels.ledger import store
from dpmodels.ledger.ledger import Account, Charge, Ledger
from tests.kit.charges import CAP, make_charge

WON, REFUSED, FAILED = 0, 3, 4
STEPS = ["reserve", "begin_draw", "write_whole", "seal", "publish", "commit"]


def fork(work: Callable[[], int]) -> int:
    """Run work in a child that ends with the code it returns."""
    child = os.fork()
    if child:
        return child
    code = FAILED
    try:
        code = work()
    except BudgetExhausted as refusal:
        code = REFUSED if "requested epsilon=" in str(refusal) and "remaining epsilon=" in str(refusal) else FAILED
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(code)


def race(place: str, racers: int, epsilon: float) -> dict[str, object]:
    """Let many processes ask for the same budget at one moment; the ledger may not exist yet."""
    fits = affordable(epsilon)  # also imports what every racer needs
    ready, go = os.pipe()

    def reserve(number: int) -> int:
        os.close(go)
        os.read(ready, 1)  # until the parent closes its end
        ledger = Ledger(place)
        ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
        return WON if ledger.reserve(make_charge(f"run-{number}", epsilon)).state == "reserved" else FAILED

    children = [fork(lambda number=number: reserve(number)) for number in range(racers)]  # type: ignore[misc]
    os.close(go)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    ledger = Ledger(place)
    return {
        "won": codes.count(WON),
        "refused": codes.count(REFUSED),
        "failed": [code for code in codes if code not in (WON, REFUSED)],
        "charges": ledger.balance("clinic").charges,
        "affordable": fits,
        "faults": ledger.verify(),
    }


def client(number: int) -> Account:
    return Account(name=f"client-{number}", dataset=f"client {number}", cap=CAP, parent="federation")


def asked_of(run: str, numbers: list[int]) -> tuple[list[Charge], list[Account]]:
    charges = [make_charge(run, 0.3, account=f"client-{n}", dataset=f"client {n}") for n in numbers]
    return charges, [client(number) for number in numbers]


def families(place: str, racers: int) -> dict[str, object]:
    """Let processes charge families of four of six clients at one moment, each naming them in an order of its own."""
    Ledger(place).open_account("federation", dataset="federation", budget_cap=CAP)
    ready, go = os.pipe()

    def reserve(number: int) -> int:
        os.close(go)
        os.read(ready, 1)
        charges, accounts = asked_of(f"round-{number}", random.Random(number).sample(range(6), 4))
        return WON if Ledger(place).reserve(*charges, first_opens=accounts).state == "reserved" else FAILED

    children = [fork(lambda number=number: reserve(number)) for number in range(racers)]  # type: ignore[misc]
    os.close(go)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    ledger, faults = Ledger(place), Ledger(place).verify()
    balances = [ledger.balance(account.name) for account in ledger.accounts()]
    faults += [f"{balance.account} passed its cap" for balance in balances if balance.spent_epsilon > balance.cap]
    return {
        "won": codes.count(WON),
        "refused": codes.count(REFUSED),
        "failed": [code for code in codes if code not in (WON, REFUSED)],
        "charges": sum(balance.charges for balance in balances),
        "faults": faults,
    }


def kill_family(place: str, moment: str) -> dict[str, object]:
    """Kill a process after its family's accounts, or after its charges, are written and before they are kept."""
    ledger = Ledger(place)
    ledger.open_account("federation", dataset="federation", budget_cap=CAP)
    write = store.append

    def deadly(connection: Connection, drafts: Iterable[store.Draft]) -> list[store.Entry]:
        written = write(connection, drafts)
        if written[0].kind == ("open" if moment == "opened" else "reserve"):
            os.kill(os.getpid(), signal.SIGKILL)
        return written

    def reserve() -> int:
        store.append = deadly
        charges, accounts = asked_of("round", list(range(50)))
        Ledger(place).reserve(*charges, first_opens=accounts)
        return WON

    code = os.waitstatus_to_exitcode(os.waitpid(fork(reserve), 0)[1])
    ledger = Ledger(place)
    names = [account.name for account in ledger.accounts()]
    found = {"killed": code == -signal.SIGKILL, "accounts": names, "entries": len(ledger.entries())}
    return {**found, "faults": ledger.verify()}


def affordable(epsilon: float) -> int:
    """Count the charges of this size that fit under the cap."""
    event, count = make_charge(epsilon=epsilon).event, 0
    while spent_epsilon([event] * (count + 1), Decimal("1e-5")) <= 1:
        count += 1
    return count


class Places:
    """Where the runs of one home keep their artifacts; ``drawn`` lists every draw that ever began."""

    def __init__(self, home: Path) -> None:
        self.home, self.drawn = home, home / "drawn"
        self.drawn.touch()

    def staged(self, charge: Charge) -> Path:
        return self.home / "sensitive" / charge.run / "release"

    def released(self, charge: Charge) -> Path:
        return self.home / "released" / charge.run / "release"

    def draw(self, part: Path, key: str) -> None:
        with self.drawn.open("a") as file:
            file.write(key + "\n")
        part.write_bytes(key.encode() + os.urandom(1 << 16))

    def release(self, ledger: Ledger, charge: Charge) -> None:
        ledger.release(charge, staged=self.staged(charge), released=self.released(charge), draw=self.draw)


def crash(place: str, home: Path, kills: int, seed: int) -> dict[str, object]:
    """Kill a child in every charge: first at every step's beginning and end, then at random instants."""
    rng, places, ledger = random.Random(seed), Places(home), Ledger(place)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP)
    moments: list[tuple[str, str] | None] = [(when, step) for step in STEPS for when in ("before", "after")]
    moments += [None] * (3 * kills)  # some children are done before they are killed
    usual, states, killed, faults = 0.05, dict[str, int](), 0, list[str]()
    for number, moment in enumerate(moments):
        if killed == kills:
            break
        charge = make_charge(f"run-{number}", epsilon=0.05)
        opened, opening = os.pipe()
        child = fork(lambda c=charge, m=moment, o=opening: _charge(place, places, c, m, o))  # type: ignore[misc]
        os.close(opening)
        os.read(opened, 1)  # until the child's ledger is open: the instants are spread over the charge itself
        os.close(opened)
        if moment is None:
            time.sleep(rng.uniform(0, usual))
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        killed += code == -signal.SIGKILL
        held = ledger.find(charge.key)
        state = held.state if held else "new"
        states[state] = states.get(state, 0) + 1
        faults += _faults_after_kill(ledger, places, charge, state)
        if held is not None:
            ledger.recover(charge.key, staged=places.staged(charge), released=places.released(charge))
        began = time.perf_counter()
        try:
            places.release(ledger, charge)
        except BudgetExhausted:
            faults += [f"{charge.run} was charged and refused"] if held else []
            continue
        usual = 0.8 * usual + 0.2 * (time.perf_counter() - began) if state == "new" else usual
        faults += _faults_after_replay(ledger, places, charge)
    balance = ledger.balance("clinic")
    faults += ledger.verify(_released(ledger, places))
    faults += ["the cap is passed"] if balance.spent_epsilon > balance.cap else []
    return {"killed": killed, "states": states, "charges": balance.charges, "faults": faults}


def _charge(place: str, places: Places, charge: Charge, moment: tuple[str, str] | None, opened: int) -> int:
    """Make one release, and die at the moment that is named, if one is."""
    ledger = Ledger(place)
    ledger.account(charge.account)
    os.write(opened, b"!")
    if moment:
        when, step = moment
        owner = artifact if step in ("write_whole", "publish") else Ledger
        setattr(owner, step, _deadly(getattr(owner, step), before=when == "before"))
    places.release(ledger, charge)
    return WON


def _deadly(step: Callable[..., object], before: bool) -> Callable[..., object]:
    def deadly(*args: object, **kwargs: object) -> NoReturn:
        if not before:
            step(*args, **kwargs)
        os.kill(os.getpid(), signal.SIGKILL)
        raise SystemExit(FAILED)

    return deadly


def _faults_after_kill(ledger: Ledger, places: Places, charge: Charge, state: str) -> list[str]:
    """A draw needs its charge, and what stands in the released zone needs its seal."""
    drawn = charge.key in places.drawn.read_text().split()
    faults = [f"{charge.run} drew while {state}"] if drawn and state in ("new", "reserved", "voided") else []
    released = places.released(charge)
    if released.exists():
        held = ledger.find(charge.key)
        if held is None or artifact.sha256_of(released) != held.artifact_hash:
            faults.append(f"{charge.run} is released without its seal")
    return faults


def _faults_after_replay(ledger: Ledger, places: Places, charge: Charge) -> list[str]:
    """One reservation, one seal, one commit, one file."""
    kinds = [entry.kind for entry in ledger.entries(key=charge.key)]
    content = places.released(charge).read_bytes()
    held = ledger.find(charge.key)
    whole = held is not None and hashlib.sha256(content).hexdigest() == held.artifact_hash
    once = all(kinds.count(kind) == 1 for kind in ("reserve", "seal", "commit"))
    alone = not places.staged(charge).exists() and content.startswith(charge.key.encode())
    return [] if whole and once and alone else [f"{charge.run} ended as {kinds}"]


def _released(ledger: Ledger, places: Places) -> dict[str, Path]:
    found = {}
    for entry in ledger.entries():
        if entry.kind == "commit":
            held = ledger.find(entry.charge)
            found[entry.charge] = places.released(held.charge)  # type: ignore[union-attr]
    return found


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    if what == "race":
        answer = race(where, int(rest[0]), float(rest[1]))
    elif what == "families":
        answer = families(where, int(rest[0]))
    elif what == "kill_family":
        answer = kill_family(where, rest[0])
    else:
        answer = crash(where, Path(rest[0]), int(rest[1]), int(rest[2]))
    print(json.dumps(answer))
