"""Charges for a ledger, and entries changed behind its back."""

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import create_engine

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent
from dpmodels.ledger import store
from dpmodels.ledger.ledger import Charge
from dpmodels.privacy import PrivacyBudget

MakeCharge = Callable[..., Charge]


ReadOnly = Callable[[Path], None]


CAP = PrivacyBudget(epsilon=1.0, delta=1e-5)


def make_charge(run: str = "run-1", epsilon: float = 0.5, **other: object) -> Charge:
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5)
    fields = {
        "account": "clinic",
        "dataset": "visits",
        "mechanism": "embedding",
        "event": GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget)),
        "budget": budget,
        "plan_hash": "plan",
        "schema_hash": "schema",
        "run": run,
    }
    return Charge(**{**fields, **other})


def rewrite(path: Path, seq: int, **changes: object) -> None:
    """Change an entry and give it, and all that follow, true hashes: what someone with the code could do."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        previous = None
        for entry in store.read(connection):
            fields = {**entry.model_dump(), **(changes if entry.seq == seq else {})}
            fields["previous_hash"] = previous or fields["previous_hash"]
            made = store.Entry(**fields)
            previous = made.true_hash
            values = {**made.model_dump(), "hash": previous}
            connection.execute(store.entries.update().where(store.entries.c.seq == entry.seq).values(values))
    engine.dispose()
