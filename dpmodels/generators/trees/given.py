"""Some columns of a mixture drawn given the others, exactly, by the weights of its components.

    p(drawn | given) = sum_k w_k(given) prod_columns p_k(column),      w_k proportional to  prod_given p_k(cell)

The components of all classes stand side by side, those of a class with the class's share and with one value of the
class. Where a mixture has a model of its labels, a class that is drawn is drawn anew by it, given all other columns.
A probability below ``LEAST`` counts as ``LEAST``: where no component has mass for all that is given, those decide that
lack it for the fewest columns.

Privacy: post-processing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Indices, Mask, Whole
from dpmodels.codec.encode import Records
from dpmodels.embeddings.partition import Partition
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.randomness import cumulate, draw_grouped
from dpmodels.generators.refinements.coupling import Coupling
from dpmodels.generators.refinements.labels import LabelModel

LEAST = 1e-30
Weights = NDArray[np.float32]
BLOCK = 2**23
"""Weights of components that are held at once."""


class GivenColumns:
    """Draws columns of a mixture, given its other columns.

    Args:
        model: the mixture.
        drawn: names of the columns that are drawn.
        ignored: names of columns that are neither drawn nor known.
        present: names of drawn columns that are not null here, whatever the mixture says.
        by_allowed: whether a component also weighs by its share of the cells that a row may have.
    """

    def __init__(
        self,
        model: MixtureModel,
        drawn: Collection[str],
        ignored: Collection[str] = (),
        present: Collection[str] = (),
        by_allowed: bool = False,
    ) -> None:
        self.by_allowed = by_allowed
        self.partition, names = model.partition, model.partition.names
        coarse, offsets = model.probabilities.numpy().reshape(-1, model.probabilities.shape[2]), self.partition.offsets
        self.logs = np.ascontiguousarray(np.log(np.maximum(coarse, LEAST)).T.astype(np.float32))
        self.drawn = [index for index, name in enumerate(names) if name in drawn]
        self.given = [index for index, name in enumerate(names) if name not in drawn and name not in ignored]
        self.present = [index for index in self.drawn if names[index] in present]
        self.fine, start = dict[int, Floats](), np.zeros(len(coarse), dtype=np.float32)
        per_class = model.probabilities.shape[1]
        for index in self.drawn:
            shares = coarse[:, offsets[index] : offsets[index + 1]][:, self.partition.merge[index]]
            self.fine[index] = shares * np.repeat(model.detail[index], per_class, axis=0)
            if index in self.present:
                self.fine[index][:, -1] = 0
                mass = self.fine[index].sum(axis=1)
                start += np.log(np.maximum(mass, LEAST)).astype(np.float32)
                self.fine[index][mass <= 0, :-1] = 1  # of a component that knows null alone, if one must be taken
        self.classes = Classes.of(model, drawn, ignored, present)
        start += 0 if self.classes is None else self.classes.start
        self.start, self.coupling = start, _of_drawn(model.coupling, self.drawn)

    def draw(self, records: Records, rng: np.random.Generator, allowed: dict[int, Mask] | None = None) -> Records:
        """Draw the columns of rows whose given columns are known; the other columns of ``records`` are not read.

        Args:
            records: rows of the flat table.
            rng: source of the draws.
            allowed: for some drawn columns, by their places, the fine cells that each row may have. Shapes: [B, cells].

        Returns:
            Rows in which only the drawn columns mean anything.
        """
        given, cells = (
            self.partition.cells(records),
            np.zeros((len(records), len(self.partition.names)), dtype=np.int32),
        )
        component = np.empty(len(records), dtype=np.int64)
        for block, weights in self._weights(given, records):
            if self.by_allowed:
                weights = self._by_allowed(weights, block, allowed or {})
            running = cumulate(weights)
            component[block] = (running < rng.random(len(running))[:, None]).sum(axis=1)
        for index in self.drawn:
            if allowed and index in allowed:
                cells[:, index] = _draw_each(self.fine[index][component] * allowed[index], allowed[index], rng)
            else:
                cells[:, index] = draw_grouped(cumulate(self.fine[index]), component, rng)
        if self.classes is not None:
            cells = self.classes.with_labels(cells, component, records, self.drawn, rng)
        fresh = self.partition.codec.from_cells(cells, rng)
        if self.coupling is None:
            return fresh
        return self.coupling.applied(self._filled(records, fresh), self.partition, rng)

    def _filled(self, records: Records, fresh: Records) -> Records:
        """Return rows with the columns that are drawn, and all others as they were."""
        states, values = records.states.copy(), records.values.copy()
        columns = self.drawn if self.classes is None else self.classes.places(self.drawn)
        states[:, columns], values[:, columns] = fresh.states[:, columns], fresh.values[:, columns]
        return Records(states, values)

    def _by_allowed(self, weights: Weights, block: slice, allowed: Mapping[int, Mask]) -> Weights:
        """Weigh components by their shares of the allowed cells, where any has some. Shapes: [block, K]."""
        for index, mask in allowed.items():
            shares = mask[block] @ self.fine[index].T
            weights = np.where((shares > 0).any(axis=1, keepdims=True), weights * shares, weights).astype(np.float32)
        return weights

    def complete(self, records: Records, rng: np.random.Generator, allowed: dict[int, Mask] | None = None) -> Records:
        """Return rows with all that was known of them, and with the drawn columns; arguments as of ``draw``."""
        return self._filled(records, self.draw(records, rng, allowed))

    def _weights(self, cells: Whole, records: Records) -> Iterator[tuple[slice, Weights]]:
        """Yield blocks of rows with the weights of components, up to a factor. Shapes: [block, K]."""
        offsets, size = self.partition.offsets, max(1, BLOCK // len(self.start))
        for begin in range(0, len(cells), size):
            block = slice(begin, begin + size)
            weights = np.tile(self.start, (len(cells[block]), 1))
            for column in self.given:
                weights += self.logs[offsets[column] + cells[block, column]]
            if self.classes is not None and self.classes.is_given:
                weights += self.classes.logs[records.states[block, self.classes.column]]
            yield block, np.exp(weights - weights.max(axis=1, keepdims=True))


@dataclass(frozen=True)
class Classes:
    """The class column of a mixture with classes, whose components stand side by side.

    Attributes:
        partition: of the mixture; labels: its model of the labels, if it has one.
        column: the place of the class among all columns.
        is_given, is_drawn: whether the class is known, or drawn; it may be neither.
        start: logarithms of what each component weighs. Shapes: [classes K].
        logs: the same given each class. Shapes: [classes, classes K].
    """

    partition: Partition
    labels: LabelModel | None
    column: int
    is_given: bool
    is_drawn: bool
    start: NDArray[np.float32]
    logs: NDArray[np.float32]

    @classmethod
    def of(
        cls, model: MixtureModel, drawn: Collection[str], ignored: Collection[str], present: Collection[str]
    ) -> "Classes | None":
        """Return the classes of a mixture, or None of one without."""
        column = model.partition.class_column
        if column is None:
            return None
        name, count = list(model.partition.codec.columns)[column], model.partition.classes
        shares, per_class = model.class_counts.clamp_min(0).numpy().copy(), model.probabilities.shape[1]
        shares[-1] *= name not in present
        start = np.repeat(np.log(np.maximum(shares / max(shares.sum(), LEAST), LEAST)), per_class).astype(np.float32)
        logs = np.repeat(np.where(np.eye(count) > 0, 0, np.log(LEAST)), per_class, axis=1).astype(np.float32)
        labels = None if ignored else model.labels
        if labels and name in present:
            labels = replace(labels, bias=np.append(labels.bias[:-1], -np.inf))
        return cls(model.partition, labels, column, name not in {*drawn, *ignored}, name in drawn, start, logs)

    def places(self, columns: Sequence[int]) -> list[int]:
        """Return the places among all columns of some that have cells, and of the class if it is drawn."""
        return [column + (column >= self.column) for column in columns] + [self.column] * self.is_drawn

    def with_labels(
        self, cells: Indices, component: Whole, records: Records, drawn: Sequence[int], rng: np.random.Generator
    ) -> Indices:
        """Insert the class among the fine cells of the other columns, of which some are drawn. Shapes: [B, F]."""
        label = component // (len(self.start) // self.partition.classes)
        if self.labels and self.is_drawn:
            fine = replace(self.partition, merge=tuple(np.arange(len(merge)) for merge in self.partition.merge))
            every = fine.cells(records)
            every[:, drawn] = cells[:, drawn]
            label = self.labels.draw(every.T, rng)
        return np.insert(cells, self.column, label, axis=1)


def _of_drawn(coupling: Coupling | None, drawn: Collection[int]) -> Coupling | None:
    """Return the lines of columns that are drawn."""
    lines = tuple(line for line in coupling.lines if line.following in drawn) if coupling else ()
    return Coupling(lines) if lines else None


def _draw_each(weights: Floats, allowed: Mask, rng: np.random.Generator) -> Indices:
    """Draw a cell for each row by its own weights, or evenly among those allowed where all are 0. Shapes: [B]."""
    empty = weights.sum(axis=1) <= 0
    weights[empty] = allowed[empty]
    running = cumulate(weights)
    chosen = (running < rng.random(len(running))[:, None]).sum(axis=1)
    cells: Indices = np.minimum(chosen, weights.shape[1] - 1).astype(np.int32)
    return cells
