"""The one draw: a line's programme on the data, inside one charge; and the one way to read what it released.

What a step released is kept in the sensitive zone until the draw is sealed. So a draw that goes on after a failure is
the same draw, and a failure at a later step cannot be used to draw an earlier outcome again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dpmodels.arrays import Whole
from dpmodels.embeddings.summation import check_disjoint, check_repeatable
from dpmodels.errors import ArtifactError
from dpmodels.ledger.ledger import Charge, Ledger, Reservation
from dpmodels.mechanisms.choices import select_each
from dpmodels.mechanisms.dp_sgd.randomness import new_key
from dpmodels.mechanisms.dp_sgd.spec import Noise
from dpmodels.mechanisms.exponential import select_exponential
from dpmodels.mechanisms.gaussian import measure_gaussian
from dpmodels.mechanisms.k_norm import measure_k_norm
from dpmodels.mechanisms.threshold import measure_thresholded
from dpmodels.privacy import PrivacyBudget, Released, Sensitive
from dpmodels.releases.contract import Contract
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release, write_release
from dpmodels.releases.state import DrawState
from dpmodels.releases.steps import (
    Choose,
    ChooseEach,
    CountKeys,
    Data,
    Each,
    Keep,
    Parallel,
    Programme,
    Step,
    Sum,
    SumEach,
    Train,
)
from dpmodels.releases.walk import Taken, Walk, values_of

Ticks = Callable[[int, int], None]
"""Called with the number of steps taken, of DP-SGD or of parts chosen for, and of all steps, which are public."""
MOST_KEPT = 64
"""Times at which the values for parts drawn so far are kept; at least ``LEAST_KEPT`` parts come between."""
LEAST_KEPT = 1024


class Measurable(Protocol):
    """What a draw needs of a system."""

    def plan(self, contract: Contract, budget: PrivacyBudget) -> Line:
        """Decide what to charge."""

    def steps(self, line: Line) -> Programme:
        """Return the programme of a line."""


@dataclass(frozen=True)
class Desk:
    """What a measurement needs of the world: who pays, where the artifact lies, where to compute, and who watches."""

    ledger: Ledger
    charge: Charge
    staged: Path
    released: Path
    device: str = "cpu"
    progress: Ticks | None = None

    def held(self) -> Reservation | None:
        """Return the charge and its state, or None before it was reserved."""
        return self.ledger.find(self.charge.key)


def check_line(system: Measurable, line: Line) -> None:
    """Refuse a line that differs from what its own system plans for the same contract and budget.

    Raises:
        ArtifactError: the line was changed since it was planned, or another version planned it.
    """
    if system.plan(line.contract, line.budget) != line.model_copy(update={"former": None}):
        raise ArtifactError(
            f"the plan of {line.method} is not the one that this version makes of its schema and its budget: it was "
            "changed, or another version made it. Nothing was drawn; start a new run"
        )


def check_charge(line: Line, charge: Charge) -> None:
    """Refuse a charge that is not the line's own: the noise is the line's, and the price the charge's.

    Raises:
        ArtifactError: they differ.
    """
    paid = charge.event, charge.budget, charge.plan_hash, charge.mechanism, charge.dataset, charge.schema_hash
    own = line.event, line.budget, line.hash, line.method, line.contract.name, line.contract.hash
    if (*paid, charge.part) != (*own, line.family):
        raise ArtifactError(f"the line {line.name} of {line.method} is charged for another line; nothing was drawn")


def draw(system: Measurable, records: Sensitive[Any], line: Line, desk: Desk) -> Released[Path]:
    """Run a line's programme inside one ledger charge; called again after a failure, it goes on where it stopped.

    Privacy: every step takes the next of the charged events, and gets the noise of that event. Only the steps read
        data. What they release stays in the sensitive zone until all of it is sealed.

    Raises:
        ArtifactError: the line is not the one that its system makes or that the desk's charge pays for, or a step is
            not what its event charges.
        InvalidArgument: the data can be read only once.
    """
    check_line(system, line)
    check_charge(line, desk.charge)
    check_repeatable(records)
    owner = desk.staged.parent, desk.charge.key, line.hash

    def write(path: Path, entry: str) -> None:
        drawing = _Drawing(line, desk, DrawState(*owner))
        taken = drawing.take(system.steps(line), line.event, Data(records, desk.device))
        drawing.begin()
        write_release(path, line, entry, drawing.columns(taken), *_laid_out(taken))

    place = desk.ledger.release(desk.charge, staged=desk.staged, released=desk.released, draw=write, announced=True)
    DrawState(*owner).end()
    return Released(place)


def read(system: Measurable, release: Release) -> Taken:
    """Run a line's programme without data, answering each step with what it released (post-processing)."""
    reading = _Reading(release)
    taken = reading.take(system.steps(release.line), release.line.event, None)
    if len(reading.values) or len(reading.integers):
        raise ArtifactError("the release holds more values than this version reads from it")
    return taken


class _Drawing(Walk):
    """Answers the steps from the data, and from what was drawn before a failure.

    ``begin`` makes a ledger entry right before the first noise: a charge without that entry can be voided.
    """

    def __init__(self, line: Line, desk: Desk, state: DrawState) -> None:
        super().__init__(line)
        self.desk, self.state, self.kept = desk, state, state.vectors()
        self.begun, self.trained, self.trainings = False, 0, 1
        self.named = pa.table({})

    def begin(self) -> None:
        """Record that noise is about to be drawn, once."""
        if not self.begun:
            self.desk.ledger.begin_draw(self.desk.charge.key)
        self.begun = True

    def sum(self, step: Sum, scale: tuple[int, float], data: Data | None) -> Whole:
        """Measure the sum with noise, unless it was released before."""
        l2_sensitivity, noise_multiplier = scale

        def noisy(exact: Sensitive[Whole]) -> Whole:
            return measure_gaussian(exact, l2_sensitivity=l2_sensitivity, noise_multiplier=noise_multiplier).value

        return self._once(step.total, noisy, step.dim, data)

    def choose(self, step: Choose, scale: float, data: Data | None) -> Whole:
        """Choose an option, unless it was chosen before."""

        def chosen(scores: Sensitive[Whole]) -> Whole:
            index = select_exponential(scores, scale=scale).value
            return step.option(index)

        return self._once(step.scores, chosen, step.width, data)

    def _once(
        self,
        measure: Callable[[Data], Sensitive[Whole]],
        release: Callable[[Sensitive[Whole]], Whole],
        dim: int,
        data: Any,
    ) -> Whole:
        if self.kept:
            return self.kept.pop(0)
        exact = measure(data)
        self.begin()
        released = release(exact).copy()  # an option may be part of a larger array
        if released.shape != (dim,) or released.dtype != np.int64:  # the release would be read back wrongly
            raise ArtifactError("a step releases whole numbers of another size than it says; its system is at fault")
        self.state.keep_vector(released)
        return released

    def choose_each(self, step: ChooseEach, scale: float, data: Any) -> Whole:
        """Choose for every part."""
        return self._each_once(step, lambda scores: select_each(scores, scale=scale).value, (), data)

    def sum_each(self, step: SumEach, scale: float, data: Any) -> Whole:
        """Measure the sum of every part."""
        return self._each_once(step, lambda sums: measure_k_norm(sums, scale=scale).value, (step.width,), data)

    def _each_once(
        self, step: Each, release: Callable[[Sensitive[Any]], Whole], shape: tuple[int, ...], data: Any
    ) -> Whole:
        """Release for every part that nothing was released for before, and keep that often enough to go on from."""
        self.named = step.names(data)
        number, done, fresh = self.named.num_rows, [np.zeros((0, *shape), dtype=np.int64)], list[Whole]()
        while self.kept and sum(map(len, done)) < number:
            done.append(self.kept.pop(0))
        found = sum(map(len, done))
        for block in step.blocks(data, found):
            self.begin()
            fresh.append(release(block))
            found += len(fresh[-1])
            if sum(map(len, fresh)) >= max(LEAST_KEPT, number // MOST_KEPT) or found >= number:
                done.append(np.concatenate(fresh))
                self.state.keep_vector(done[-1])
                fresh = []
            if self.desk.progress:
                self.desk.progress(found, number)
        released = np.concatenate(done)
        if released.shape != (number, *shape):
            raise ArtifactError("a step releases for another number of parts than it names; its system is at fault")
        return released

    def count_keys(self, step: CountKeys, noise_multiplier: float, data: Any) -> tuple[pa.Table, Whole]:
        """Count the keys with noise, unless they were counted before; keys and counts are kept in one piece."""
        if self.kept:
            packed = self.kept.pop(0)
        else:
            exact = step.counts(data)
            self.begin()
            released = measure_thresholded(
                exact,
                l2_sensitivity=step.l2_sensitivity,
                noise_multiplier=noise_multiplier,
                threshold=step.threshold,
            )
            packed = step.pack(released.value)
            self.state.keep_vector(packed)
        self.named, vector = step.unpack(packed)
        return self.named, vector

    def columns(self, taken: Taken) -> dict[str, Any]:
        """Name what stands beside each value: its step, its coordinate, or the public columns of its part."""
        steps = _valued(taken)
        if any(isinstance(step, Each | CountKeys) for step, _ in steps):
            if len(steps) > 1:
                raise ArtifactError("what is released by name is released alone; its system is at fault")
            return {name: self.named[name] for name in self.named.column_names}
        named = [
            {"look": np.full(len(vector), number)}
            | (step.embedding.coordinates() if isinstance(step, Sum) and step.embedding else {})
            for number, (step, vector) in enumerate(steps, start=1)
        ]
        common = [key for key in (named or [{}])[0] if all(key in own for own in named)]
        return {key: np.concatenate([own[key] for own in named]) for key in common}

    def keep(self, step: Keep) -> Whole:
        """Return what the programme computed."""
        return step.integers()

    def train(self, step: Train, noise_multiplier: float, data: Any) -> Whole:
        """Take the steps of DP-SGD that the state does not hold yet."""
        from dpmodels.mechanisms.dp_sgd.training import DpSgd

        sgd, index = step.sgd, self.trained
        self.trained += 1
        saved = self.state.training(index)
        objective, rows = step.objective(not saved).to(data.device), step.rows(data)
        self.begin()
        steps = DpSgd(objective, sgd, Noise(noise_multiplier, max(1.0, step.records)), new_key())
        if saved:
            steps.restore(saved)
        else:
            self.state.keep_training(index, steps.tensors())  # keeps the key of the randomness before its first use
        for taken in steps.train(rows):
            if taken % sgd.epoch == 0 or taken == sgd.steps:
                self.state.keep_training(index, steps.tensors())
            if self.desk.progress:
                self.desk.progress(index * sgd.steps + taken, self.trainings * sgd.steps)
        steps.load_mean()
        return step.weights(objective)

    def parts(self, step: Parallel, data: Any) -> Sequence[Data | None]:
        """Cut the data into as many parts as there are programmes, however many parts the data has.

        Raises:
            InvalidArgument: rows are cut by what they hold, and the parts share one or do not say which they have.
        """
        self.trainings = number = len(step.programmes)
        found = list(step.by(data))[:number]
        if not step.whole_units:
            check_disjoint([part.numbers for part in found])
        return [*found, *[Data(Sensitive(()), data.device)] * (number - len(found))]


class _Reading(Walk):
    """Answers the steps from a release."""

    def __init__(self, release: Release) -> None:
        super().__init__(release.line)
        self.values, self.integers, self.named = release.vector, release.chosen, release.columns

    def sum(self, step: Sum, scale: tuple[int, float], data: Data | None) -> Whole:
        """Return the next values."""
        return self._next(step.dim)

    def train(self, step: Train, noise_multiplier: float, data: Data | None) -> Whole:
        """Return the next values."""
        return self._next(step.dim)

    def choose(self, step: Choose, scale: float, data: Data | None) -> Whole:
        """Return the next integers."""
        return self._next_kept(step.width)

    def choose_each(self, step: ChooseEach, scale: float, data: Data | None) -> Whole:
        """Return as many of the next values as the next integer says."""
        return self._next(int(self._next_kept(1)[0]))

    def sum_each(self, step: SumEach, scale: float, data: Data | None) -> Whole:
        """Return the next values, a row for each part, of which the next integer says how many there are."""
        return self._next(int(self._next_kept(1)[0]) * step.width).reshape(-1, step.width)

    def count_keys(self, step: CountKeys, noise_multiplier: float, data: Data | None) -> tuple[pa.Table, Whole]:
        """Return as many of the next values as the next integer says, with their names."""
        vector = self._next(int(self._next_kept(1)[0]))
        if self.named.column_names != ["column", "key"] or not len(step.public) <= len(vector) == len(self.named):
            raise ArtifactError("the release names other counts than this version reads from it")
        return self.named, vector

    def keep(self, step: Keep) -> Whole:
        """Return the next integers."""
        return self._next_kept(step.width)

    def _next(self, dim: int) -> Whole:
        answer, self.values = np.split(self.values, [dim])
        return _whole(answer, dim)

    def _next_kept(self, dim: int) -> Whole:
        answer, self.integers = np.split(self.integers, [dim])
        return _whole(answer, dim)


def _whole(answer: Whole, dim: int) -> Whole:
    if len(answer) < dim:
        raise ArtifactError("the release holds fewer values than this version reads from it")
    return answer


def _valued(taken: Taken) -> list[tuple[Step, Whole]]:
    """Return the steps whose values are rows of the file."""
    return [(step, vector) for step, vector in values_of(taken) if isinstance(step, Sum | Train | Each | CountKeys)]


def _laid_out(taken: Taken) -> tuple[Whole, Whole]:
    """Split what the steps released into the values of the file and the integers of its footer.

    Of what is released for each part, or for each key, the footer has the number of parts or keys.
    """
    integers = [
        np.array([len(vector)]) if isinstance(step, Each | CountKeys) else vector
        for step, vector in values_of(taken)
        if not isinstance(step, Sum | Train)
    ]
    empty = np.zeros(0, dtype=np.int64)
    values = [vector.ravel() for _, vector in _valued(taken)]
    return np.concatenate([empty, *values]), np.concatenate([empty, *integers])
