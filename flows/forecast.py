"""What releases to come would cost an account, and whether they fit under its cap."""

from typing import Any

from dpmodels.errors import InvalidArgument
from dpmodels.ledger.ledger import Charge
from dpmodels.ledger.reader import LedgerReader
from flows.planning import make_budget

MOST = 1000
"""Releases that are looked ahead at."""


def forecast(ledger: LedgerReader, name: str, epsilon: float, delta: float, times: int = 1) -> dict[str, Any]:
    """Say what ``times`` releases (Gaussian, or pure at delta 0) would cost an account together; writes nothing.

    Raises:
        LedgerError: no such account is open.
        InvalidArgument: an amount, or the number of releases, is impossible.
    """
    from dpmodels.accounting.calibration import gaussian_noise_multiplier
    from dpmodels.accounting.events import ComposedEvent, GaussianEvent, PureEvent

    if not 1 <= times <= MOST:
        raise InvalidArgument("times", times, f"lie between 1 and {MOST}")
    account, before = ledger.account(name), ledger.balance(name)
    single = make_budget(epsilon, delta, account.cap.unit, adjacency=account.cap.adjacency)
    z = gaussian_noise_multiplier(single) if delta else None
    each = GaussianEvent(noise_multiplier=z) if z else PureEvent(epsilon=epsilon)
    event = ComposedEvent(events=(each,) * times)
    whole = single.model_copy(update={"epsilon": min(1000.0, epsilon * times), "delta": min(0.5, delta * times)})
    charge = Charge(
        account=name, dataset=account.dataset, mechanism="plan", event=event, budget=whole,
        plan_hash="plan", schema_hash="plan", run="plan",
    )  # fmt: skip
    quote = ledger.quote(charge)
    return {
        "account": quote.account,
        "releases": times,
        "noise_multiplier": z,
        "spent_before": before.spent_epsilon,
        "spent_after": quote.spent_after,
        "cap": quote.cap,
        "remaining_before": before.remaining_epsilon,
        "fits": quote.accepted,
    }
