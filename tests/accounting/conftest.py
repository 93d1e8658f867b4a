"""One open account and one charge, small enough to read in every test of the ledger."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent
from dpmodels.accounting.ledger import Charge, Ledger
from dpmodels.privacy import PrivacyBudget

settings.register_profile("shared-cores", deadline=None)
settings.load_profile("shared-cores")

MakeCharge = Callable[..., Charge]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    ledger = Ledger(path)
    ledger.open_account("clinic", dataset="visits", budget_cap=PrivacyBudget(epsilon=1.0, delta=1e-5))
    return ledger


@pytest.fixture
def charge() -> MakeCharge:
    def make(run: str = "run-1", epsilon: float = 0.5, **other: object) -> Charge:
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

    return make
