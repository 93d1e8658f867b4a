"""One flipped bit anywhere in a SQLite ledger never gives back what was spent: it is refused, or it is harmless."""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmodels.errors import BudgetExhausted, LedgerDamaged, LedgerError
from dpmodels.ledger.ledger import Charge, Ledger
from tests.kit.charges import CAP, make_charge

HASH = "ab" * 32
PAGE = 4096


def spend_all(path: Path) -> list[Charge]:
    """Spend the cap of an account by committed charges, and that of the account above by them too."""
    ledger = Ledger(path)
    ledger.open_account("hospital", dataset="hospital", budget_cap=CAP)
    ledger.open_account("clinic", dataset="visits", budget_cap=CAP, parent="hospital", run_cap=0.3)
    charges = []
    for number in range(100):
        charge = make_charge(f"run-{number}", 0.3)
        try:
            key = ledger.reserve(charge).key
        except BudgetExhausted:
            return charges
        ledger.begin_draw(key)
        ledger.seal(key, HASH)
        ledger.commit(key)
        charges.append(charge)
    raise AssertionError("the cap was never reached")


def index_pages(path: Path) -> list[int]:
    """Return the pages of the indices of a small ledger: each is a single leaf, its root."""
    with sqlite3.connect(path) as connection:
        roots = [row[0] for row in connection.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'")]
    content = path.read_bytes()
    assert all(content[(root - 1) * PAGE] == 0x0A for root in roots), "an index is deeper than one page"
    return roots


def flips(path: Path, rng: random.Random, each: int, anywhere: int) -> Iterator[int]:
    """Yield bits of the file: of each index the used part of its page, then any."""
    content = path.read_bytes()
    for page in index_pages(path):
        start = (page - 1) * PAGE
        cells = int.from_bytes(content[start + 3 : start + 5], "big")
        body = int.from_bytes(content[start + 5 : start + 7], "big")
        used = [*range(start, start + 8 + 2 * cells), *range(start + body, start + PAGE)]
        yield from (8 * rng.choice(used) + rng.randrange(8) for _ in range(each))
    yield from (rng.randrange(8 * len(content)) for _ in range(anywhere))


def gains(path: Path, charges: list[Charge], spent: object) -> list[str]:
    """Try everything by which a ledger that misreads itself would give budget away, and name what succeeds."""
    found = []

    def refused(what: str, work: object) -> None:
        try:
            answer = work()  # type: ignore[operator]
        except (LedgerError, BudgetExhausted):
            return
        found.append(f"{what}: {answer}")

    try:
        ledger = Ledger(path)
        if (balance := ledger.balance("clinic").spent_epsilon) != spent:
            found.append(f"balance says {balance}")
    except LedgerError:
        pass  # a page that a writer does not read may still be sound, so the rest is tried
    for what, charge in {
        "a new run": make_charge("another", 0.3),
        "a new plan of a run": make_charge("run-0", 0.3, plan_hash="other"),
        "the account above": make_charge("another", 0.3, account="hospital", dataset="hospital"),
    }.items():
        refused(what, lambda charge=charge: Ledger(path).reserve(charge))
    for charge in random.Random(len(charges)).sample(charges, 2):
        try:
            if Ledger(path).reserve(charge).state != "committed":
                found.append("a committed charge was reserved again")
        except (LedgerError, BudgetExhausted):
            pass
        refused("a second draw", lambda charge=charge: Ledger(path).begin_draw(charge.key))
        refused("a void", lambda charge=charge: Ledger(path).void(charge.key, "never drawn"))
    return found


def try_flips(tmp_path: Path, each: int, anywhere: int) -> None:
    path, copy, rng = tmp_path / "ledger.db", tmp_path / "copy" / "ledger.db", random.Random(15)
    charges = spend_all(path)
    spent = Ledger(path).balance("clinic").spent_epsilon
    assert Ledger(path).verify() == [] and gains(path, charges, spent) == []
    whole, harmful = path.read_bytes(), list[object]()
    copy.parent.mkdir()
    for bit in flips(path, rng, each, anywhere):
        for beside in copy.parent.iterdir():
            beside.unlink()
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(changed)
        if found := gains(copy, charges, spent):
            harmful.append((bit // 8 // PAGE + 1, bit, found))
    assert not harmful, f"{len(harmful)} flips, such as {harmful[0]}"


def test_no_flipped_bit_is_spent_twice(tmp_path: Path) -> None:
    try_flips(tmp_path, each=8, anywhere=40)


@pytest.mark.nightly
def test_no_flipped_bit_of_many_is_spent_twice(tmp_path: Path) -> None:
    try_flips(tmp_path, each=200, anywhere=1500)


def test_a_text_that_became_bytes_is_named_and_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    (charge, *_) = spend_all(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET payload = CAST(payload AS BLOB)")
    connection.close()
    assert "was edited" in Ledger(path).verify()[0]
    with pytest.raises(LedgerError):
        Ledger(path).reserve(charge)


def flipped(path: Path, charges: list[Charge]) -> None:
    """Flip a bit of an index, so that looking a charge's draw up finds nothing."""
    content = bytearray(path.read_bytes())
    with sqlite3.connect(path) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'ix_entries_account_kind_seq'"
        ).fetchone()
    connection.close()
    start = (root - 1) * PAGE
    last = content.rindex(b"clinicreserve", start, start + PAGE)
    content[last] ^= 1
    path.write_bytes(content)


def test_a_damaged_index_is_named_refused_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    charges = spend_all(path)
    flipped(path, charges)
    assert any("ix_entries_account_kind_seq" in fault for fault in Ledger(path).verify())
    for work in (Ledger(path).accounts, lambda: Ledger(path).reserve(make_charge("another", 0.3))):
        with pytest.raises(LedgerDamaged) as refusal:
            work()
        assert "ix_entries_account_kind_seq" in refusal.value.fault
    Ledger(path).mend()
    assert Ledger(path).verify() == []
    with pytest.raises(BudgetExhausted):
        Ledger(path).reserve(make_charge("another", 0.3))


def test_a_damaged_table_is_not_mended(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    spend_all(path)
    content = bytearray(path.read_bytes())
    content[content.index(b'draw{"by"')] ^= 1  # the kind of an entry, before its payload
    path.write_bytes(content)
    faults = Ledger(path).verify()
    assert any("damaged" in fault for fault in faults) and any("was edited" in fault for fault in faults)
    with pytest.raises(LedgerError):
        Ledger(path).mend()
    assert Ledger(path).verify() == faults


def test_damage_that_comes_while_a_ledger_is_open_is_noticed_by_the_next_charge(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    charges = spend_all(path)
    ledger = Ledger(path)
    assert ledger.balance("clinic").charges == len(charges)
    flipped(path, charges)
    with pytest.raises((LedgerDamaged, BudgetExhausted)):  # it may have the page in memory, from before
        ledger.reserve(make_charge("another", 0.3))
