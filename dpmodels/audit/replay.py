"""Neighbor replay: measure a data set and its neighbors through the one driver, with everything random held equal.

The first data set is measured without noise. Each neighbor is then measured while the tap hands out what the first one
released, and the same keys. What reaches the outside may depend on the data through the released values alone, so the
files must now be the same, byte for byte, and the charges in the ledger too. And since a step's sum is formed from the
same earlier outcomes, the difference of what noise was added to is what the unit itself does:

    reach of a step      = max over neighbors of ||f(D') - f(D)||
    what its noise hides = scale of the noise / noise multiplier that was charged

A step is charged rightly where its reach is at most what its noise hides. Where it is much less, either the bound is
loose or the neighbors are weak, and both are faults of an audit's subject: at least nine tenths are asked for.

Data sets that are far from the first, two parts of it where that can be, must leave the same files too. That shows what
one record more is too little to show, such as a number that was rounded to hundreds. And where a step is a sum over
records, those of the parts add up to that of the whole, exactly, or a record adds something else in other company.

Steps with one event are judged together, for nobody is in every batch of DP-SGD. There only the neighbors with a unit
more at the end are judged, for whoever is behind an inserted record is in other batches.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr, ndtri

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
from dpmodels.audit.desks import measured, released_file
from dpmodels.audit.left import held, left_below
from dpmodels.audit.subjects import Subject, World
from dpmodels.audit.tap import ALL_KINDS, Draw, Tap, Unequal, tapped
from dpmodels.mechanisms.gaussian import SMOOTHING

KEYS = [bytes([number] * 32) for number in range(9)]
"""Keys of DP-SGD that are handed out instead of random ones."""
LEAST_REACH = 0.9
"""Share of what its noise hides that a step must be seen to move by."""
ROUNDED = 1 + 1e-9


@dataclass
class Step:
    """One draw of a measurement, what it is charged as, and what the neighbors did to it.

    Attributes:
        difference: f(D') - f(D) of the neighbor that moved it most; farthest: that neighbor's name.
        reach: its size, of scores and of what is released for parts the largest coordinate, otherwise the L2 norm.
        hidden: the size that the noise hides at the price that is charged.
        farthest_alike: the largest reach of the steps that are charged as this one is.
    """

    draw: Draw
    event: Leaf
    difference: NDArray[np.int64]
    farthest: str
    reach: float
    hidden: float
    farthest_alike: float = 0.0

    @property
    def kind(self) -> str:
        """The mechanism."""
        return self.draw.kind

    @property
    def share(self) -> float:
        """Reach over what the noise hides: above 1 the charge is too small."""
        return self.farthest_alike / self.hidden

    @property
    def is_charged(self) -> bool:
        """Tell whether the noise hides what the neighbors do, and is not much more than that needs."""
        return is_charged_for(self.hidden, self.farthest_alike)


@dataclass(frozen=True)
class Replay:
    """What neighbors did: to whatever was left, and to each step, in the order in which they were drawn.

    Attributes:
        differing: data sets that left other bytes; of neighbors and of others.
        in_two_parts: neighbors that moved two trainings, which are charged as one.
        lost: the most epsilon that a neighbor costs by all letters that it moves.
        apart: what noise is added to in two parts of the data set, step by step; of no step where it has no such parts.
    """

    subject: Subject
    steps: list[Step]
    differing: list[str]
    neighbors: int
    in_two_parts: list[str]
    apart: list[tuple[NDArray[np.int64], ...]]
    lost: float

    @property
    def adds_up(self) -> bool:
        """Tell whether the steps that are sums have, over two parts, what they have over the whole."""
        pairs = zip(self.steps, self.apart, strict=False)
        return all(np.array_equal(step.draw.values, sum(parts)) for step, parts in pairs if step.kind == "gaussian")


def is_charged_for(hidden: float, reach: float) -> bool:
    """Tell whether noise that hides a size hides a reach, and is not more than half as large again."""
    return 2 / 3 * hidden * ROUNDED < reach <= hidden * ROUNDED


def replayed(subject: Subject, folder: Path) -> Replay:
    """Measure a subject's data set and its neighbors, with what the first one released copied.

    Raises:
        Unequal: a neighbor takes other steps, or its noise has another size or scale.
    """
    with tapped() as tap:
        return replayed_by(tap, subject, folder)


def replayed_by(tap: Tap, subject: Subject, folder: Path) -> Replay:
    """Do the same with a tap that is in place."""
    tap.silent, tap.keys_left = True, list(KEYS)
    whole, line = subject.whole, subject.line
    left = left_of(subject, folder / "d", whole)
    events, keys, draws = charged(line.event, tap), len(tap.keys), tap.restart()
    differing, in_two_parts, apart = list[str](), list[str](), list[list[NDArray[np.int64]]]()
    steps, lost = steps_of(draws, events), 0.0
    for number, world in enumerate([*subject.worlds[1:], *subject.others]):
        tap.copy(draws, *ALL_KINDS)
        tap.keys_left = list(KEYS)
        other = left_of(subject, folder / str(number), world)
        if any(tap.copies.values()):
            raise Unequal("a neighbor asks for noise less often; what it asks for follows from what was released alone")
        if unlike := [name for name in {**left, **other} if left.get(name) != other.get(name)]:
            differing.append(f"{world.name} ({', '.join(sorted(unlike))})")
        if number >= len(subject.worlds) - 1:
            apart.append([each.values for each in tap.restart()])
            continue
        pairs = list(zip(steps, tap.restart(), strict=True))
        moved, lost = [moved_by(*pair, world) for pair in pairs], max(lost, sum(lost_by(*pair) for pair in pairs))
        trained = [has for step, has in zip(steps, moved, strict=True) if step.kind == "sgd"]
        if keys and world.aligned and np.reshape(trained, (keys, -1)).any(axis=1).sum() > 1:
            in_two_parts.append(world.name)
    tap.copies, tap.silent = {}, False
    _judge_together(steps)
    parts = list(zip(*apart, strict=True)) if len(apart) > 1 else []
    return Replay(subject, steps, differing, len(subject.worlds) - 1, in_two_parts, parts, lost)


def steps_of(draws: list[Draw], events: list[Leaf]) -> list[Step]:
    """Put draws beside the events that they are charged as.

    Raises:
        Unequal: there are more draws than events, or fewer.
    """
    if len(draws) != len(events):
        raise Unequal(f"noise was drawn {len(draws)} times, and {len(events)} draws are charged")
    return [
        Step(draw, event, np.zeros_like(draw.values, dtype=np.int64), "", 0.0, hidden(draw, event))
        for draw, event in zip(draws, events, strict=True)
    ]


def left_of(subject: Subject, folder: Path, world: World) -> dict[str, bytes]:
    """Measure a data set, and return whatever that left: files by name, the ledger, and all that was said."""
    with held(folder) as output:
        measured(subject.system, folder, subject.line, *world.batches)
    return left_below(folder) | {"said": output.getvalue().replace(str(folder), "").encode()}


def released_bytes(folder: Path) -> bytes:
    """Return the bytes of the release that was measured in a folder."""
    return released_file(folder).read_bytes()


def hidden(draw: Draw, event: Leaf) -> float:
    """Return how far what noise was added to may move for the noise to be worth what was charged.

    Raises:
        Unequal: the draw is not of the mechanism that its event names.
    """
    match draw.kind, event:
        case "gaussian" | "sgd", GaussianEvent() | SampledGaussianEvent():
            squared = draw.scale**2 - (SMOOTHING if draw.kind == "gaussian" else 0)
            return math.sqrt(max(squared, 0)) / event.noise_multiplier
        case "exponential", GaussianEvent():  # mechanisms/exponential.py proves it
            return draw.scale * float(logit(ndtr(0.5 / event.noise_multiplier)))
        case "exponential" | "choices", PureEvent():
            return draw.scale * event.epsilon / 2
        case "k-norm", PureEvent():
            return draw.scale * event.epsilon
    raise Unequal(f"a draw of the mechanism {draw.kind} is charged as {event.kind}")


def claimed_mu(event: Leaf) -> float:
    """Return mu of the Gaussian that an event is priced as; of a pure one, of the Gaussian that reaches its epsilon."""
    if isinstance(event, ThresholdEvent):
        return 0.0
    if isinstance(event, PureEvent):
        return 2 * float(ndtri(expit(event.epsilon)))
    return 1 / float(event.noise_multiplier)


def charged(event: Event, tap: Tap) -> list[Leaf]:
    """Return the event that each draw is charged for; all steps of DP-SGD are those of the last event.

    Raises:
        Unequal: batches are sampled otherwise than charged, or steps are taken more or less often.
    """
    events = plain(event)
    if isinstance(last := events[-1], SampledGaussianEvent):
        trainings = {key: [step for stream_key, step in tap.streams if stream_key == key] for key, _ in tap.streams}
        if tap.probabilities != {last.sampling_probability}:
            raise Unequal("batches of DP-SGD are sampled with another probability than is charged")
        if any(steps != list(range(last.steps)) for steps in trainings.values()):
            raise Unequal("a training takes other steps than are charged")
        events += [last] * (len(trainings) * last.steps - 1)
    if isinstance(events[0], PureEvent) and len(tap.draws) > len(events):
        events *= len(tap.draws)  # a release for every part, one block of parts after the other
    return events[: len(tap.draws)] if isinstance(events[0], PureEvent) else events


def plain(event: Event) -> list[Leaf]:
    """Return the releases of an event; of parts side by side those that one event stands for, and of names none.

    A threshold draws nothing: the counts that are held to it have an event of their own.
    """
    leaf_events = list[Leaf]()
    for each in leaves([event]):
        leaf_events += plain(each.events[0]) if isinstance(each, ParallelEvent) else [each]
    return [each for each in leaf_events if not isinstance(each, ThresholdEvent)]


def size_of(kind: str, difference: NDArray[Any]) -> float:
    """Return how large a difference is, by the norm that the mechanism's price is about."""
    flat = difference.astype(np.float64).ravel()
    return float(np.linalg.norm(flat) if kind in ("gaussian", "sgd") else np.abs(flat).max(initial=0))


def moved_by(step: Step, other: Draw, world: World) -> bool:
    """Note how far a neighbor moved a step; tell whether it did."""
    one = step.draw
    if (one.kind, one.scale, one.values.shape) != (other.kind, other.scale, other.values.shape):
        raise Unequal("a neighbor is measured by another mechanism, with another scale of noise, or in another size")
    if step.kind == "sgd" and not world.aligned:
        return False
    difference = other.values.astype(np.int64) - one.values.astype(np.int64)
    if (reach := size_of(one.kind, difference)) > step.reach:
        step.difference, step.farthest, step.reach = difference, world.name, reach
    return reach > 0


def lost_by(step: Step, other: Draw) -> float:
    """Return the epsilon that a neighbor costs by the letters that it moves, each of which is released by itself."""
    if not isinstance(step.event, PureEvent):
        return 0.0
    difference = np.abs(other.values.astype(np.int64) - step.draw.values.astype(np.int64))
    return float(step.event.epsilon * difference.reshape(len(difference), -1).max(axis=1).sum() / step.hidden)


def _judge_together(steps: list[Step]) -> None:
    """Let steps that are charged alike be judged by the farthest: nobody is in every batch, or moves every score."""
    for step in steps:
        alike = [each.reach for each in steps if (each.kind, each.event) == (step.kind, step.event)]
        step.farthest_alike = max(alike)
