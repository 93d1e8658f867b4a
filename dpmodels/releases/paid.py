"""What a draw may take of a charged plan: its events, one for each step, in order.

A step that would get less noise than its event is charged for is refused, whatever made it so: a changed plan, or an
error of a system. What a step released is kept in the sensitive zone until the draw is sealed, so a draw that goes on
after a failure is the same draw, and no outcome can be drawn again because a later step did not like it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmodels.accounting.events import GaussianEvent, Leaf, ParallelEvent, SampledGaussianEvent, leaves
from dpmodels.errors import ArtifactError, Unsuitable
from dpmodels.ledger.ledger import Ledger
from dpmodels.mechanisms.exponential import exponential_scale, select_exponential
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.privacy import PrivacyBudget, Sensitive
from dpmodels.releases.plan import Plan
from dpmodels.releases.state import DrawState
from dpmodels.schema.schema import Schema

Vector = NDArray[np.int64]
ROUNDING = 2.0**-50
"""What float operations may take off a noise multiplier; ``lattice_noise_stddev`` adds as much to the noise."""


class Planner(Protocol):
    """What decides a plan from public inputs."""

    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge."""


def check_plan(system: Planner, plan: Plan) -> None:
    """Refuse a plan that its own system would not make of the same schema and budget.

    Raises:
        ArtifactError: it was changed since it was made, or another version made it.
    """
    if system.plan(plan.table, plan.budget) != plan:
        raise ArtifactError(
            f"the plan of {plan.method} is not the one that this version makes of its schema and its budget: it was "
            "changed, or another version made it. Nothing was drawn; start a new run"
        )


class Paid:
    """The events of one charged plan, and what the steps that took them released.

    ``begin`` is recorded in the ledger right before the first noise: a charge without it can be given back.
    """

    def __init__(self, plan: Plan, ledger: Ledger, key: str, folder: Path) -> None:
        self.state = DrawState(folder, key, plan.hash)
        self._events, self._kept = leaves([plan.event]), self.state.vectors()
        self._begin: Callable[[], object] | None = lambda: ledger.begin_draw(key)

    def sum(
        self, total: Callable[[], Sensitive[Vector]], *, own: int, l2_sensitivity: int, noise_multiplier: float
    ) -> Vector:
        """Release a sum with discrete Gaussian noise of ``noise_multiplier`` times ``l2_sensitivity``.

        Units: ``own`` is the sensitivity of this very sum, in lattice steps.

        Raises:
            InvalidArgument: noise over ``own`` is less than the next event's noise multiplier.
        """
        _check(self._next(), noise_multiplier * l2_sensitivity / own)
        if self._kept:
            return self._kept.pop(0)
        exact = total()
        self.begin()
        noisy = measure_gaussian(exact, l2_sensitivity=l2_sensitivity, noise_multiplier=noise_multiplier).value
        self.state.keep_vector(noisy)
        return noisy

    def choose(self, scores: Callable[[], Sensitive[Vector]], *, sensitivity: int, noise_multiplier: float) -> int:
        """Release the index of a high score by the exponential mechanism.

        Raises:
            InvalidArgument: the noise multiplier is less than the next event's.
        """
        _check(self._next(), noise_multiplier)
        if self._kept:
            return int(self._kept.pop(0)[0])
        exact = scores()
        self.begin()
        index = select_exponential(exact, scale=exponential_scale(sensitivity, noise_multiplier)).value
        self.state.keep_vector(np.array([index], dtype=np.int64))
        return index

    def training(self, sampling_probability: float, steps: int) -> float:
        """Return the noise multiplier of the steps of DP-SGD that come next.

        Raises:
            InvalidArgument: the next event is not of this many steps at this probability.
        """
        event = self._next()
        paid = isinstance(event, SampledGaussianEvent) and (event.sampling_probability, event.steps)
        if not isinstance(event, SampledGaussianEvent) or paid != (sampling_probability, steps):
            raise Unsuitable(f"training would take other steps than are charged, {event!r}; start a new run")
        return event.noise_multiplier

    def begin(self) -> None:
        """Record that noise is about to be drawn, once."""
        if self._begin is not None:
            self._begin()
            self._begin = None

    def end(self) -> None:
        """Refuse to end with events that no step took: the release would be other than what is charged."""
        if (left := next(self._events, None)) is not None:
            raise ArtifactError(f"the measurement ended before it had taken all it is charged for: {left!r} is left")
        self.begin()

    def _next(self) -> Leaf | ParallelEvent:
        event = next(self._events, None)
        if event is None:
            raise Unsuitable("the method takes more steps than its plan charges for; start a new run")
        return event


def _check(event: Leaf | ParallelEvent, noise_multiplier: float) -> None:
    if not isinstance(event, GaussianEvent) or not noise_multiplier >= event.noise_multiplier * (1 - ROUNDING):
        # the ratio may tell of a noisy look, so it is not said
        raise Unsuitable(f"the step has less noise than it is charged for, {event!r}; start a new run")
