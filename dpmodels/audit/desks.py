"""A measurement in a folder of its own, under a ledger of its own: what an audit and the tests measure with."""

from pathlib import Path
from typing import Any

from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.privacy import Released, Sensitive
from dpmodels.releases.draw import Desk
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release, read_release
from dpmodels.releases.system import System

ACCOUNT, RUN = "a", "r"


def desk_in(folder: Path, line: Line, run: str = RUN, ledger: Ledger | None = None) -> Desk:
    """Return a desk in ``folder``, whose ledger has an account with the line's budget as its cap."""
    folder.mkdir(mode=0o700, exist_ok=True)
    ledger = ledger or Ledger(folder / "ledger.sqlite")
    ledger.open_account(ACCOUNT, dataset=line.contract.name, budget_cap=line.budget)
    charge = Charge(
        account=ACCOUNT,
        dataset=line.contract.name,
        mechanism=line.method,
        event=line.event,
        budget=line.budget,
        plan_hash=line.hash,
        schema_hash=line.contract.hash,
        run=run,
        part=line.family,
    )
    return Desk(ledger, charge, folder / "private" / f"{run}.parquet", folder / "public" / f"{run}.parquet")


def measured(system: System[Any], folder: Path, line: Line, *batches: Any) -> tuple[Released[Release], Ledger]:
    """Measure batches under a ledger of their own in ``folder``."""
    desk = desk_in(folder, line)
    path = system.measure(Sensitive(list(batches)), line, desk)
    return read_release(path.value), desk.ledger


def released_file(folder: Path) -> Path:
    """Return the file of the release that was measured in ``folder``."""
    return folder / "public" / f"{RUN}.parquet"
