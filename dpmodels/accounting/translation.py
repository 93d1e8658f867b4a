"""Our events in the words of dp-accounting, so that its accountants can check ours."""

import math
from typing import TYPE_CHECKING

from dpmodels.accounting.events import (
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    SampledGaussianEvent,
    ThresholdEvent,
    check_adjacency,
)
from dpmodels.accounting.tally import heaviest_parts
from dpmodels.privacy import Adjacency

if TYPE_CHECKING:
    from dp_accounting import DpEvent


def to_dp_accounting(event: Event, adjacency: Adjacency = Adjacency.ADD_OR_REMOVE_ONE) -> "DpEvent":
    """Translate one event into dp-accounting's vocabulary, for its accountants of the same adjacency.

    Our multipliers are ratios to the sensitivity under the adjacency at hand. Those of dp-accounting are ratios to the
    norm of one unit's contribution, which under replace-one is half of that sensitivity. An event that dp-accounting
    lacks becomes an upper bound. A pure event becomes the worst of its kind, two answers whose odds differ by the
    factor e^epsilon: the discrete Laplace mechanism at sensitivity 1 (add-or-remove-one), or randomized response
    (replace-one, where a Laplace event is taken for a pure one). Parallel parts of which none is surely the heaviest
    are all composed. Thresholds have no word there and are left out: their deltas must be taken off the delta first.

    Raises:
        InvalidArgument: sampled Gaussians under replace-one, where our price of them is not proved.
    """
    import dp_accounting
    from dp_accounting import dp_event

    replaced = adjacency == Adjacency.REPLACE_ONE
    match event:
        case ComposedEvent():
            return dp_accounting.ComposedDpEvent([to_dp_accounting(part, adjacency) for part in event.events])
        case ParallelEvent():
            parts = [to_dp_accounting(part, adjacency) for part in heaviest_parts(event.events)]
            return parts[0] if len(parts) == 1 else dp_accounting.ComposedDpEvent(parts)
        case GaussianEvent():
            return dp_accounting.GaussianDpEvent((1 + replaced) * event.noise_multiplier)
        case SampledGaussianEvent():
            check_adjacency([event], adjacency)
            step = dp_accounting.GaussianDpEvent(event.noise_multiplier)
            sampled = dp_accounting.PoissonSampledDpEvent(event.sampling_probability, step)
            return dp_accounting.SelfComposedDpEvent(sampled, event.steps)
        case LaplaceEvent() if not replaced:
            return dp_accounting.LaplaceDpEvent(event.noise_multiplier)
        case ThresholdEvent():
            return dp_accounting.NoOpDpEvent()
    epsilon = 1 / event.noise_multiplier if isinstance(event, LaplaceEvent) else event.epsilon
    if not replaced:
        return dp_event.DiscreteLaplaceDpEvent(epsilon, 1)
    return dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2)
