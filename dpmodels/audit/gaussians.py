"""The noise of Gaussian steps, drawn by the sampler that measures: its law, and how much of mu it gives away.

The bounds are those of ``lower_bound``. Drawn are the coordinates that a neighbor moves, and others beside them up to
a number; noise is added to each coordinate in the same way, which the tests of independence hold it to.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.audit.findings import Finding, Recovery
from dpmodels.audit.lower_bound import (
    ALARM,
    ALPHA,
    NoiseTests,
    assumption_free,
    ceilings,
    deviation_is,
    is_fine,
    noise_tests,
    parametric,
)
from dpmodels.audit.replay import LEAST_REACH, Step, claimed_mu
from dpmodels.mechanisms import gaussian

MOST, MOST_FULL = 64, 12
"""Coordinates of a step that are drawn, where fewer move; the second in a full audit."""
QUICK_VALUES = 8_000
"""Noise values of a step in a quick audit; a full one takes ``FULL_DRAWS`` of each data set."""
FULL_DRAWS = 5_000


@dataclass(frozen=True)
class NoiseDraws:
    """Draws of one step under both data sets, less f(D) or f(D'). Shapes: [draws, coordinates] twice, [coordinates]."""

    step: Step
    noise: Floats
    other: Floats
    tests: NoiseTests
    direction: Floats

    def recovered(self, name: str, full: bool, short: str = "") -> Recovery:
        """Bound mu from below, side by side."""
        step, draws = self.step, len(self.noise) + len(self.other)
        both = parametric(np.concatenate([self.noise, self.other]), step.reach) if self.tests.hold else None
        return Recovery(
            step=name,
            mechanism="discrete Gaussian",
            claimed=claimed_mu(step.event),
            parametric=(both.low, both.high) if both else None,
            assumption_free=self.without_assumptions(ALPHA) if full else None,
            ceiling=ceilings(len(self.noise), len(self.other))[0] if full else None,
            draws=draws,
            reach=step.share,
            falls_short=short,
        )

    def without_assumptions(self, alpha: float) -> float:
        """Bound mu from below without assumptions."""
        scores = self.noise @ self.direction, self.other @ self.direction + self.step.reach
        return assumption_free(*scores, alpha)

    def finding(self, name: str, full: bool) -> Finding:
        """Hold the noise to its law and to its scale, and both bounds to the claim."""
        values = np.concatenate([self.noise, self.other])
        claimed, step = claimed_mu(self.step.event), self.step
        above = parametric(values, step.reach, ALARM).low > claimed
        above |= full and self.without_assumptions(ALARM) > claimed
        right = self.tests.hold and deviation_is(values, step.draw.scale) and is_fine(values) and not above
        says = (
            f"{name}: {values.size} noise values are Gaussian of the scale that is charged, independent of each other "
            "and of the data"
            if right
            else f"{name}: the noise is not Gaussian of the scale that is charged, or is not independent"
        )
        return Finding(check="noise", holds=right, says=says)


def drawn(step: Step, full: bool) -> NoiseDraws:
    """Draw a step's noise many times under its data set and under the neighbor that moves it most."""
    moved, sampler = _coordinates(step, MOST_FULL if full else MOST), gaussian._sampler
    values, scale = step.draw.values[moved], step.draw.scale
    other = values + step.difference[moved]
    times = FULL_DRAWS if full else -(-QUICK_VALUES // (2 * len(moved)))

    def noise_of(exact: NDArray[np.int64]) -> Floats:
        return np.stack([sampler(exact, scale) - exact for _ in range(times)]).astype(np.float64)

    noise, of_other = noise_of(values), noise_of(other)
    direction = step.difference[moved] / step.reach
    return NoiseDraws(step, noise, of_other, noise_tests(noise, of_other, values.astype(np.float64)), direction)


def reach_finding(name: str, step: Step, least: float = LEAST_REACH) -> Finding:
    """Hold what the neighbors did to what the noise hides at the price that is charged."""
    right = step.is_charged and step.share >= least
    far = f"{100 * step.share:.4g} % of what its noise hides at the price that is charged"
    says = f"{name}: the farthest neighbor moves it by {far}" + ("" if right else ", which is too much or too little")
    return Finding(check="sensitivity", holds=right, says=says)


def _coordinates(step: Step, most: int) -> NDArray[np.int64]:
    """Return the coordinates that are drawn: those that move, and others."""
    moved = np.flatnonzero(step.difference)
    rest = np.setdiff1d(np.arange(step.difference.size), moved)
    return np.concatenate([moved, rest[: max(0, most - len(moved))]])
