"""Opacus' accountant of privacy random variables: a figure to hold a price against, and never what is charged.

Source: Gopi, Lee and Wutschitz (NeurIPS 2021), as Opacus has it.
"""

import warnings
from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from dpmodels.accounting.composition import renyi_epsilon
from dpmodels.accounting.events import Event, GaussianEvent, ParallelEvent, SampledGaussianEvent, leaves
from dpmodels.errors import Unsuitable
from dpmodels.late import check_installed

PRV_ERROR = 0.01
"""By how much the accountant's bound may exceed what it bounds; its own default."""
LEAST_MULTIPLIER = 0.3
MOST_EPSILON = 30
"""Noise multiplier below which, and epsilon above which, the accountant's grid takes minutes and gigabytes."""


def prv_epsilon(events: Sequence[Event], delta: float) -> float:
    """Return an upper bound on the epsilon of Gaussian releases and of steps of DP-SGD, within ``PRV_ERROR``.

    A Gaussian release is a step whose sample is everybody. What is released of disjoint parts costs the heaviest part.

    Raises:
        Unsuitable: there are other releases, which the accountant does not know, or hardly any noise.
        NacreError: Opacus is not installed.
    """
    released = list(leaves(events))
    if len(released) == 1 and isinstance(released[0], ParallelEvent):
        return max(prv_epsilon([part], delta) for part in released[0].events)
    steps = [one for one in released if isinstance(one, GaussianEvent | SampledGaussianEvent)]
    if len(steps) < len(released):
        raise Unsuitable("it knows Gaussian releases and Poisson samples alone")
    if min(one.noise_multiplier for one in steps) < LEAST_MULTIPLIER:
        raise Unsuitable(f"a noise multiplier is below {LEAST_MULTIPLIER}, for which it is not made")
    if renyi_epsilon(events, Decimal(repr(delta))) > MOST_EPSILON:
        raise Unsuitable(f"it is not made for an epsilon above {MOST_EPSILON}")
    check_installed(["opacus"])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of torch, which Opacus imports, and of the logarithm of 1 - 1
        from opacus.accountants import PRVAccountant

        accountant = PRVAccountant()
        accountant.history = [
            (one.noise_multiplier, one.sampling_probability, one.steps)
            if isinstance(one, SampledGaussianEvent)
            else (one.noise_multiplier, 1.0, 1)
            for one in steps
        ]
        try:
            return float(accountant.get_epsilon(delta, eps_error=PRV_ERROR))
        except (ArithmeticError, MemoryError, RuntimeError, ValueError):
            raise Unsuitable("its grid does not hold these releases at this delta") from None
