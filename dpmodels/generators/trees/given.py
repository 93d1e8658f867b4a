"""Some columns of a mixture drawn given the others, exactly, by the weights of its components.

    p(drawn | given) = sum_k w_k(given) prod_columns p_k(column),      w_k proportional to  prod_given p_k(cell)

A probability below ``LEAST`` counts as ``LEAST``: where no component has mass for all that is given, those decide that
lack it for the fewest columns.

Privacy: post-processing.
"""

from collections.abc import Collection, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Indices, Mask, Whole
from dpmodels.codec.encode import Records
from dpmodels.generators.mixture import MixtureModel
from dpmodels.generators.randomness import cumulate, draw_grouped
from dpmodels.generators.refinements.coupling import Coupling

LEAST = 1e-30
Weights = NDArray[np.float32]
BLOCK = 2**23
"""Weights of components that are held at once."""


class GivenColumns:
    """Draws columns of a mixture without classes, given its other columns.

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
        coarse, offsets = model.probabilities[0].numpy(), self.partition.offsets
        self.logs = np.ascontiguousarray(np.log(np.maximum(coarse, LEAST)).T.astype(np.float32))
        self.drawn = [index for index, name in enumerate(names) if name in drawn]
        self.given = [index for index, name in enumerate(names) if name not in drawn and name not in ignored]
        self.fine, start = dict[int, Floats](), np.zeros(len(coarse), dtype=np.float32)
        for index in self.drawn:
            shares = coarse[:, offsets[index] : offsets[index + 1]][:, self.partition.merge[index]]
            self.fine[index] = shares * model.detail[index][0]
            if names[index] in present:
                self.fine[index][:, -1] = 0
                start += np.log(np.maximum(self.fine[index].sum(axis=1), LEAST)).astype(np.float32)
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
        given, cells = self.partition.cells(records), np.zeros(records.states.shape, dtype=np.int32)
        component = np.empty(len(records), dtype=np.int64)
        for block, weights in self._weights(given):
            if self.by_allowed:
                weights = self._by_allowed(weights, block, allowed or {})
            running = cumulate(weights)
            component[block] = (running < rng.random(len(running))[:, None]).sum(axis=1)
        for index in self.drawn:
            if allowed and index in allowed:
                cells[:, index] = _draw_each(self.fine[index][component] * allowed[index], allowed[index], rng)
            else:
                cells[:, index] = draw_grouped(cumulate(self.fine[index]), component, rng)
        fresh = self.partition.codec.from_cells(cells, rng)
        if self.coupling is None:
            return fresh
        states, values = records.states.copy(), records.values.copy()
        states[:, self.drawn], values[:, self.drawn] = fresh.states[:, self.drawn], fresh.values[:, self.drawn]
        return self.coupling.applied(Records(states, values), self.partition, rng)

    def _by_allowed(self, weights: Weights, block: slice, allowed: Mapping[int, Mask]) -> Weights:
        """Weigh components by their shares of the allowed cells, where any has some. Shapes: [block, K]."""
        for index, mask in allowed.items():
            shares = mask[block] @ self.fine[index].T
            weights = np.where((shares > 0).any(axis=1, keepdims=True), weights * shares, weights).astype(np.float32)
        return weights

    def complete(self, records: Records, rng: np.random.Generator, allowed: dict[int, Mask] | None = None) -> Records:
        """Return rows with all that was known of them, and with the drawn columns; arguments as of ``draw``."""
        states, values, fresh = records.states.copy(), records.values.copy(), self.draw(records, rng, allowed)
        states[:, self.drawn], values[:, self.drawn] = fresh.states[:, self.drawn], fresh.values[:, self.drawn]
        return Records(states, values)

    def _weights(self, cells: Whole) -> Iterator[tuple[slice, Weights]]:
        """Yield blocks of rows with the weights of components, up to a factor. Shapes: [block, K]."""
        offsets, size = self.partition.offsets, max(1, BLOCK // len(self.start))
        for begin in range(0, len(cells), size):
            block = slice(begin, begin + size)
            weights = np.tile(self.start, (len(cells[block]), 1))
            for column in self.given:
                weights += self.logs[offsets[column] + cells[block, column]]
            yield block, np.exp(weights - weights.max(axis=1, keepdims=True))


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
