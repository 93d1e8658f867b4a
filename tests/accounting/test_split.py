"""A budget that is split among Gaussians costs what it did whole, and not less."""

import pytest

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.events import GaussianEvent
from dpmodels.accounting.split import split
from dpmodels.privacy import PrivacyBudget


@pytest.mark.parametrize("shares", [[1.0], [0.5, 0.5], [0.1, 0.2, 0.7], [0.001, 0.999], [0.125] * 8])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_parts_together_cost_the_budget(shares: list[float], epsilon: float) -> None:
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-5)
    whole = GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget))
    parts = split(budget, {str(number): share for number, share in enumerate(shares)})
    spent = [float(spent_epsilon(events, budget.delta)) for events in ([whole], [parts], list(parts.events))]
    assert spent == pytest.approx([epsilon] * 3, rel=1e-6) and max(spent) <= epsilon
    less = [event.model_copy(update={"noise_multiplier": event.noise_multiplier * 2 / 3}) for event in parts.events]
    assert float(spent_epsilon(less, budget.delta)) > 1.2 * epsilon
