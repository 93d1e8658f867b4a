"""The one draw: a programme's steps against the events that are charged, and the same programme read from a release."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dpmodels.embeddings.summation import check_repeatable
from dpmodels.ledger.ledger import Charge, Ledger
from dpmodels.mechanisms.dp_sgd import DpSgd, Noise, new_key
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.paid import Paid, check_plan
from dpmodels.releases.plan import Plan
from dpmodels.releases.release import Release, write_release
from dpmodels.releases.state import DrawState
from dpmodels.releases.steps import Choose, Data, Keep, Programme, Step, Sum, Train, Vector
from dpmodels.schema.schema import Schema

Ticks = Callable[[int, int], None]
"""Called with (steps of DP-SGD taken, steps in all): both numbers are public."""


class Measurable(Protocol):
    """What a draw needs of a system."""

    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge."""

    def programme(self, plan: Plan) -> Programme:
        """Yield the steps of a plan."""


@dataclass(frozen=True)
class Desk:
    """What a draw needs of the world: who pays, where the artifact is staged and released, and who watches."""

    ledger: Ledger
    charge: Charge
    staged: Path
    released: Path
    progress: Ticks | None = None


def draw(system: Measurable, data: Data, plan: Plan, desk: Desk) -> Released[Path]:
    """Run a plan's programme inside one ledger charge; called again after a failure, the draw goes on where it was.

    Privacy: every step takes the next event of what is charged and is refused if it would get less noise. Data is read
        by the steps alone. What they release stays in the sensitive zone until all of it is sealed.

    Raises:
        ArtifactError: the plan is not the one that its system makes.
        InvalidArgument: a step is not covered by its event, or the data can be read only once.
    """
    check_plan(system, plan)
    check_repeatable(data.records)

    def write(path: Path, entry: str) -> None:
        paid, taken = Paid(plan, desk.ledger, entry, desk.staged.parent), list[tuple[Step, Any]]()
        for step, answer in walk(system.programme(plan), lambda step: _measure(step, data, paid, desk.progress)):
            taken.append((step, answer))
        paid.end()
        columns, vector, chosen = _laid_out(taken)
        write_release(path, Released(vector), plan, entry, columns, chosen)

    place = desk.ledger.release(desk.charge, staged=desk.staged, released=desk.released, draw=write, announced=True)
    DrawState(desk.staged.parent, desk.charge.key, plan.hash).end()
    return Released(place)


def read(programme: Programme, release: Release) -> list[tuple[Step, Any]]:
    """Run a programme without data: each step is answered with what it released (post-processing).

    A programme that chooses cannot be read this way, for a release holds what its choices led to.
    """
    values, kept = release.vector, release.chosen

    def stored(step: Step) -> Any:
        nonlocal values, kept
        if isinstance(step, Keep) and not step.columns:
            answer, kept = np.split(kept, [len(step.integers)])
        elif isinstance(step, Sum):
            answer, values = np.split(values, [step.dim])
        else:
            answer, values = values, values[:0]
        return answer

    return list(walk(programme, stored))


def walk(programme: Programme, answer: Callable[[Step], Any]) -> Iterator[tuple[Step, Any]]:
    """Walk a programme: answer each step, and hand the answer back to it."""
    step = next(programme, None)
    while step is not None:
        value = answer(step)
        yield step, value
        try:
            step = programme.send(value)
        except StopIteration:
            return


def _measure(step: Step, data: Data, paid: Paid, progress: Ticks | None) -> Any:
    """Take one step on the data."""
    match step:
        case Sum():
            return paid.sum(
                lambda: step.total(data),
                own=step.own,
                l2_sensitivity=step.l2_sensitivity,
                noise_multiplier=step.noise_multiplier,
            )
        case Choose():
            return paid.choose(
                lambda: step.scores(data), sensitivity=step.sensitivity, noise_multiplier=step.noise_multiplier
            )
        case Keep():
            return step.integers
    return _train(step, data, paid, progress)


def _train(step: Train, data: Data, paid: Paid, progress: Ticks | None) -> Vector:
    """Take the steps of DP-SGD that the state does not hold yet, one training after the other."""
    sgd, state = step.sgd, paid.state
    multiplier = paid.training(sgd.sampling_probability, sgd.steps)
    trainings = step.trainings(data, not state.training(0))
    paid.begin()
    for index, training in enumerate(trainings):
        noise = Noise(multiplier, max(1.0, training.records))
        steps = DpSgd(training.objective.to(data.device), sgd, noise, new_key())
        if saved := state.training(index):
            steps.restore(saved)
        else:
            state.keep_training(index, steps.tensors())  # the key is kept before its first use
        for taken in steps.train(training.rows):
            if taken % sgd.epoch == 0 or taken == sgd.steps:
                state.keep_training(index, steps.tensors())
            if progress:
                progress(index * sgd.steps + taken, len(trainings) * sgd.steps)
        steps.load_mean()
    return step.weights([training.objective for training in trainings])


def _laid_out(taken: list[tuple[Step, Any]]) -> tuple[dict[str, Any], Vector, Vector]:
    """Lay what the steps released out as columns, values, and the integers of the footer."""
    named: list[tuple[dict[str, Any], Vector]] = []
    footer: list[Vector] = [np.zeros(0, dtype=np.int64)]
    for step, value in taken:
        if isinstance(step, Train):
            named.append(({"part": np.repeat(step.column, len(value))}, value))
        elif isinstance(step, Sum) or (isinstance(step, Keep) and step.columns):
            named.append((dict(step.columns), value))
        elif isinstance(step, Keep):
            footer.append(value)
    columns = {key: np.concatenate([own[key] for own, _ in named]) for key in named[0][0]}
    return columns, np.concatenate([value for _, value in named]), np.concatenate(footer)
