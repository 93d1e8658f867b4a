"""A walk through a programme, step by step, along the charged event: one event for each step, in order, none left over.

Steps are answered from the data (``draw``) or from a release (``read``); both walk this way, so what can be drawn can
be read. A step cannot ask for an amount of noise: it gets that of its event.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from dpmodels.accounting.events import (
    Event,
    GaussianEvent,
    Leaf,
    ParallelEvent,
    PureEvent,
    SampledGaussianEvent,
    ThresholdEvent,
    leaves,
)
from dpmodels.arrays import Whole
from dpmodels.errors import ArtifactError
from dpmodels.mechanisms.exponential import exponential_scale, pure_scale
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.mechanisms.k_norm import k_norm_scale
from dpmodels.privacy import Adjacency
from dpmodels.releases.contract import check_kept_whole
from dpmodels.releases.plan import Line
from dpmodels.releases.steps import (
    Choose,
    ChooseEach,
    CountKeys,
    Data,
    Each,
    Keep,
    NoisyCounts,
    NoisySum,
    Parallel,
    Programme,
    Step,
    Sum,
    SumEach,
    Train,
)

ROUNDING = 2.0**-50
"""Relative rounding error by which a noise scale may be too small; ``lattice_noise_stddev`` adds as much noise."""

Taken = list[tuple[Step, Any]]
"""The steps of a programme with what each released; a parallel step has one such list for each part."""


class Walk(ABC):
    """Takes the steps of a line's programme, each with the next event."""

    def __init__(self, line: Line) -> None:
        self.line = line

    def take(self, programme: Programme, event: Event, data: Data | None) -> Taken:
        """Take every step of a programme, and send it the answer.

        Raises:
            ArtifactError: a step is not what its event charges, or there are more or fewer steps than events.
        """
        events, taken = leaves([event]), Taken()
        step = next(programme, None)
        while step is not None:
            answer = self._answer(step, events, data)
            taken.append((step, answer))
            try:
                step = programme.send(answer)
            except StopIteration:
                break
        if (left := next(events, None)) is not None:
            raise ArtifactError(f"the measurement ended before it had taken all it is charged for: {left!r} is left")
        return taken

    def _answer(self, step: Step, events: Iterator[Leaf | ParallelEvent], data: Data | None) -> Any:
        if isinstance(step, Keep):
            return self.keep(step)
        event = next(events, None)
        match step, event:
            case Sum(), GaussianEvent():
                scale = self.line.noise(event, step.l2_sensitivity)
                if not scale[0] * scale[1] / step.l2_sensitivity >= event.noise_multiplier * (1 - ROUNDING):
                    raise ArtifactError("the noise that a former plan names is less than a step is charged for")
                return NoisySum(self.sum(step, scale, data), lattice_noise_stddev(*scale), step.embedding)
            case Choose(), GaussianEvent() | PureEvent():
                return self.choose(step, self._scale(step, event), data)
            case ChooseEach(), PureEvent():
                return self.choose_each(step, pure_scale(step.sensitivity, self._each(step, event, events)), data)
            case SumEach(), PureEvent():
                return self.sum_each(step, k_norm_scale(step.sensitivity, self._each(step, event, events)), data)
            case CountKeys(), GaussianEvent():
                stddev = lattice_noise_stddev(step.l2_sensitivity, event.noise_multiplier)
                self._check_threshold(step, stddev, events)
                return NoisyCounts(*self.count_keys(step, event.noise_multiplier, data), stddev)
            case Train(), SampledGaussianEvent() if _asked(step) == (event.sampling_probability, event.steps):
                return self.train(step, event.noise_multiplier, data)
            case Parallel(), _ if event is not None:
                return self._parallel(step, event, data)
        raise ArtifactError(f"a step of the measurement is a {type(step).__name__}, which is charged as {event!r}")

    def _scale(self, step: Choose, event: GaussianEvent | PureEvent) -> float:
        """Return the scale of the scores at which a choice costs as much as its event."""
        adjacency = self.line.budget.adjacency
        if step.monotonic and adjacency != Adjacency.ADD_OR_REMOVE_ONE:
            raise ArtifactError(f"scores are not monotonic under {adjacency}, where one may rise and another fall")
        if isinstance(event, PureEvent):
            return pure_scale(step.sensitivity, event.epsilon, monotonic=step.monotonic, adjacency=adjacency)
        return exponential_scale(step.sensitivity, event.noise_multiplier, monotonic=step.monotonic)

    def _check_threshold(self, step: CountKeys, stddev: float, events: Iterator[Leaf | ParallelEvent]) -> None:
        """Refuse a threshold that a unit's own keys reach more often than the next event pays for."""
        if not step.open:
            return
        event = next(events, None)
        if not isinstance(event, ThresholdEvent) or step.most.shown(step.threshold, stddev) > event.delta:
            raise ArtifactError("the threshold of a count of keys is lower than what is charged for; nothing was drawn")

    def _each(self, step: Each, event: PureEvent, others: Iterator[Leaf | ParallelEvent]) -> float:
        """Return the epsilon of one part; the events of the parts that are charged together follow, all alike.

        Privacy: the line is charged for each part. A unit that is replaced stays in its part, and in no other part does
            any number move. The parts that are charged together are at most as many as their events.
        """
        adjacency = self.line.budget.adjacency
        if not self.line.family or adjacency != Adjacency.REPLACE_ONE:
            raise ArtifactError(f"values for all parts would show how many there are, which {adjacency} hides")
        if any(next(others, None) != event for _ in range(step.events - 1)):
            raise ArtifactError("the parts that are charged together are not charged one like the other")
        return event.epsilon

    def _parallel(self, step: Parallel, event: Leaf | ParallelEvent, data: Data | None) -> list[Taken]:
        """Take the programmes of all parts, each with its own event or all with one; older lines hold that one bare.

        Privacy: a unit lies in one part, so together the parts cost the heaviest of them (accounting/events.py).
        """
        if not step.whole_units:
            check_kept_whole(self.line.contract.unit, self.line.budget.adjacency)
        number = len(step.programmes)
        events = event.events if isinstance(event, ParallelEvent) else (event,)
        if len(events) not in (1, number):
            raise ArtifactError(f"{number} parts are measured, which are charged as {len(events)}")
        parts = self.parts(step, data)
        return [
            self.take(programme, events[index % len(events)], part)
            for index, (programme, part) in enumerate(zip(step.programmes, parts, strict=True))
        ]

    def parts(self, step: Parallel, data: Data | None) -> Sequence[Data | None]:
        """Cut the data into parts, where there is data."""
        return [None] * len(step.programmes)

    @abstractmethod
    def sum(self, step: Sum, scale: tuple[int, float], data: Data | None) -> Whole:
        """Return the noisy sum; ``scale`` holds the sensitivity and the noise multiplier of its noise."""

    @abstractmethod
    def choose(self, step: Choose, scale: float, data: Data | None) -> Whole:
        """Return the chosen option; ``scale`` is that of the exponential mechanism."""

    @abstractmethod
    def choose_each(self, step: ChooseEach, scale: float, data: Data | None) -> Whole:
        """Return the chosen index for each part."""

    @abstractmethod
    def sum_each(self, step: SumEach, scale: float, data: Data | None) -> Whole:
        """Return the noisy sum for each part."""

    @abstractmethod
    def count_keys(self, step: CountKeys, noise_multiplier: float, data: Data | None) -> tuple[pa.Table, Whole]:
        """Return column and key of every released count, and the noisy counts."""

    @abstractmethod
    def keep(self, step: Keep) -> Whole:
        """Return the integers that are kept."""

    @abstractmethod
    def train(self, step: Train, noise_multiplier: float, data: Data | None) -> Whole:
        """Return the trained weights."""


def values_of(taken: Taken) -> Iterator[tuple[Step, Whole]]:
    """Yield every step that released values, in the order in which they are written, with its values."""
    for step, answer in taken:
        if isinstance(step, Parallel):
            for part in answer:
                yield from values_of(part)
        else:
            yield step, answer.vector if isinstance(step, Sum | CountKeys) else answer


def _asked(step: Train) -> tuple[float, int]:
    return step.sgd.sampling_probability, step.sgd.steps
