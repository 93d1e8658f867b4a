"""How fast the ledger charges, on both databases, beside what the disk allows; and how long a balance takes."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import postgres
from benchmarks.common import ROOT, Table, parse, report
from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent, LaplaceEvent, SampledGaussianEvent
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.privacy import PrivacyBudget

CAP = PrivacyBudget(epsilon=50.0, delta=1e-5)
BUDGET = PrivacyBudget(epsilon=0.05, delta=1e-5)
GAUSSIAN = GaussianEvent(noise_multiplier=gaussian_noise_multiplier(BUDGET))
OTHERS = [LaplaceEvent(noise_multiplier=25.0), LaplaceEvent(noise_multiplier=40.0)]
OTHERS += [SampledGaussianEvent(noise_multiplier=8.0, sampling_probability=0.01, steps=10)]
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
COLD = """
import sys, time
from dpmodels.ledger.ledger import Ledger
ledger = Ledger(sys.argv[1])
began = time.perf_counter()
ledger.balance("bench")
print(time.perf_counter() - began)
"""


def charge(number: int, event: object = GAUSSIAN) -> Charge:
    return Charge(
        account="bench", dataset="bench", mechanism="bench", event=event, budget=BUDGET,
        plan_hash="plan", schema_hash="schema", run=f"run-{number}",
    )  # fmt: skip


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def syncs_per_second(folder: Path, count: int) -> float:
    """Append a page and sync it, as a durable transaction must at least."""
    descriptor = os.open(folder / "syncs", os.O_CREAT | os.O_WRONLY)
    try:
        took = seconds(lambda: [(os.write(descriptor, b"x" * 4096), os.fsync(descriptor)) for _ in range(count)])
    finally:
        os.close(descriptor)
    return count / took


def opened(place: str) -> Ledger:
    ledger = Ledger(place)
    ledger.open_account("bench", dataset="bench", budget_cap=CAP)
    return ledger


def rate(work: Callable[[Ledger, int], object], ledger: Ledger, numbers: range) -> float:
    return len(numbers) / seconds(lambda: [work(ledger, number) for number in numbers])


def reserve(ledger: Ledger, number: int) -> None:
    ledger.reserve(charge(number))


def live(ledger: Ledger, number: int) -> None:
    """Take one charge through its whole life."""
    key = ledger.reserve(charge(number)).key
    ledger.begin_draw(key)
    ledger.seal(key, "ab" * 32)
    ledger.commit(key)


@contextmanager
def places(folder: Path) -> Iterator[dict[str, str]]:
    """Yield a place for a ledger on each database that is installed; PostgreSQL syncs too."""
    found = {"SQLite": str(folder / "ledger.sqlite")}
    if postgres.programs() is None:
        yield found
        return
    with postgres.server(fsync=True) as url:
        yield found | {"PostgreSQL": postgres.new_database(url, "bench")}


def charging(folder: Path, repeats: range, count: int) -> Table:
    """Measure reservations and whole lives a second, and the disk just before."""
    columns = ["database", "syncs/s of the disk", "reservations/s", "whole charges/s (4 transactions)"]
    table = Table("charges one after another, one process, synced", columns, digits=0)
    with places(folder) as found:
        for name, place in found.items():
            ledger = opened(place)
            reserve(ledger, -1)  # imports and first connection
            disk, reserved, lived = [], [], []
            for n in repeats:
                disk.append(syncs_per_second(folder, count))
                reserved.append(rate(reserve, ledger, range(2 * n * count, (2 * n + 1) * count)))
                lived.append(rate(live, ledger, range((2 * n + 1) * count, (2 * n + 2) * count)))
            table.add(name, disk, reserved, lived)
    return table


def balances(folder: Path, repeats: range, sizes: list[int]) -> Table:
    """Measure the balance and the next charge of accounts with more and more entries, and their verification."""
    columns = ["entries", "releases", "balance cold (ms)", "warm (ms)", "next charge (ms)", "verify (ms)"]
    title = "one account on SQLite in memory, so without the disk; cold is a new process, imports of libraries included"
    table = Table(title, columns, digits=1)
    for mixed in (False, True):
        place = str(folder / f"balance-{mixed}.sqlite")
        ledger, count = opened(place), 1
        for size in sizes:
            for number in range(count, size):
                event = OTHERS[number % 3] if mixed and number % 10 == 0 else GAUSSIAN
                ledger.reserve(charge(number, event))
            count = size
            command = [sys.executable, "-c", COLD, place]
            cold = [
                1e3 * float(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
                for _ in repeats
            ]
            ledger.balance("bench")
            warm = [1e3 * seconds(lambda ledger=ledger: ledger.balance("bench")) for _ in repeats]
            further = [1e3 * seconds(lambda n=size + i, ledger=ledger: ledger.reserve(charge(n))) for i in repeats]
            count += len(further)
            verify = [1e3 * seconds(ledger.verify) for _ in repeats]
            table.add(size, "a tenth not Gaussian" if mixed else "Gaussian", cold, warm, further, verify)
    return table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, help="where the ledgers are made: the disk that is measured")


def main() -> None:
    args = parse(__doc__, configure)
    repeats = range(1 if args.quick else 3)
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        tables = [charging(Path(name), repeats, 50 if args.quick else 200)]
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        tables.append(balances(Path(name), repeats, [100, 300] if args.quick else [100, 1_000, 10_000]))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    report("ledger", tables, list(repeats), args)
    print(f"load of the machine when it ended: {load}")


if __name__ == "__main__":
    main()
