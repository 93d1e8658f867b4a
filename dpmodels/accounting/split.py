"""One budget for several Gaussian releases, each of which gets a share of its squared mu."""

import math
from collections.abc import Mapping

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import ComposedEvent, GaussianEvent
from dpmodels.privacy import PrivacyBudget


def noise_multiplier_of(share: float, noise_multiplier: float) -> float:
    """Return the noise_multiplier of a release that has a share of what one of ``noise_multiplier`` would cost.

    Privacy: a Gaussian of multiplier z is mu-GDP with mu = 1/z, and releases of mu_1, mu_2, ..., each chosen by those
        before it, are together sqrt(mu_1^2 + mu_2^2 + ...)-GDP. With mu_i^2 = share_i mu^2, and shares that add up to
        1 at most, that is mu at most.

    Source: Dong, Roth and Su, "Gaussian differential privacy" (2019), corollary 3.3.
    """
    return noise_multiplier / math.sqrt(share)


def split(budget: PrivacyBudget, shares: Mapping[str, float]) -> ComposedEvent:
    """Return the Gaussians that spend a budget together, by name and share of its squared mu; shares add up to 1."""
    whole = gaussian_noise_multiplier(budget)
    return ComposedEvent(events=gaussians(whole, shares))


def gaussians(noise_multiplier: float, shares: Mapping[str, float]) -> tuple[GaussianEvent, ...]:
    """Return the Gaussians that cost together what one of ``noise_multiplier`` does, by name and share."""
    return tuple(
        GaussianEvent(noise_multiplier=noise_multiplier_of(share, noise_multiplier), mechanism=name)
        for name, share in shares.items()
    )
