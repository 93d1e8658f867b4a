"""Rows that meet conditions: from a mixture by conditioning its weights, from any other generator by rejection.

Given conditions on single columns, a mixture of product distributions is one again: a component weighs as much as the
probability of the conditions under it, and each cell as much as the part of it that meets them. So rows are drawn that
a plain sample would hold, in the same shares among each other, however rare they are. Every other generator, and every
schema whose rows are repaired after they are drawn, is sampled as ever and the rows that meet the conditions are kept.
So are rows by their class where that is drawn after the other columns. Their batches are as large as the rows that are
still missing ask for, by the share of those so far that meet the conditions.

Privacy: post-processing.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpmodels.arrays import Whole
from dpmodels.codec.encode import Records
from dpmodels.codec.rules import Conditions, RowRules
from dpmodels.contract.columns import Continuous
from dpmodels.contract.conditions import bounds, cell_shares, hold
from dpmodels.errors import DataError, Unsuitable
from dpmodels.generators.constraints import sample_valid
from dpmodels.generators.mixture import Floats, MixtureModel
from dpmodels.generators.randomness import cumulate, draw_grouped, spread
from dpmodels.generators.sampling import Sampler
from dpmodels.late import torch

TRIES, LEAST_TRIES = 1000, 2**20
"""Rows that are drawn for each one asked for, and at least, before the conditions are called too rare to reject by."""
EARLY = 100_000
"""Rows that are drawn, none of which meets the conditions, before the draw is given up."""
LEAST_BATCH, MORE, LARGER = 4096, 1.2, 4
"""Rows of the first batch that is rejected from, what is drawn beyond the rows that are needed, and how batches grow
while no row meets the conditions."""
REDRAWS = 1000


@dataclass
class GivenMixture(MixtureModel):
    """A mixture given conditions. Shapes: ``weights`` [classes, K], of each component given its class."""

    conditions: Conditions
    weights: Floats
    share: float

    @classmethod
    def of_mixture(cls, model: MixtureModel, conditions: Conditions) -> "GivenMixture":
        """Condition a mixture.

        Raises:
            Unsuitable: no row that it draws meets the conditions.
        """
        counts, detail = model.class_counts.clamp_min(0).numpy().copy(), list(model.detail)
        counts = counts if counts.sum() > 0 else np.ones_like(counts)
        classes, offsets = counts / counts.sum(), model.partition.offsets
        weights = np.full(model.probabilities.shape[:2], 1.0)
        columns = list(model.partition.codec.columns.values())
        for column, conditions_of_one in conditions.by_column():
            cell_share = cell_shares(conditions_of_one, columns[column])
            if column == model.partition.class_column:
                weights *= _class_weights(model, cell_share)[:, None]
                continue
            index = column - (model.partition.class_column is not None and column > model.partition.class_column)
            coarse = model.probabilities[:, :, offsets[index] : offsets[index + 1]].numpy()
            merge = model.partition.merge[index]
            for label in range(len(weights)):
                fine = coarse[label][:, merge] * detail[index][label]
                weights[label] *= fine @ cell_share / fine.sum(axis=1)
            detail[index] = detail[index] * cell_share
        share = float(classes @ weights.mean(axis=1))
        if not share > 0:
            raise Unsuitable(f"no row that this generator draws meets {conditions}; nothing was drawn")
        conditioned = replace(model, detail=detail, class_counts=torch.from_numpy(classes * weights.mean(axis=1)))
        return cls(**vars(conditioned), conditions=conditions, weights=weights, share=share)

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        """Draw one batch; values within cells that the conditions cut are drawn from the part that meets them."""
        records = super().draw(rows, rng, device)
        values = records.values
        for position, conditions in self.conditions.by_column():
            column, states = list(self.partition.codec.columns.values())[position], records.states[:, position]
            if not isinstance(column, Continuous):
                continue
            low, high = bounds(conditions)
            todo = np.flatnonzero(states == 0)
            grid = column.grid
            cells = grid.of(values[:, position])
            for _ in range(REDRAWS):
                values[todo, position] = grid.draw(cells[todo], rng, low, high)
                todo = todo[~hold(conditions, states[todo], values[todo, position])]
                if not len(todo):
                    break
            else:
                raise DataError("", f"hardly any value that is drawn meets {self.conditions}; nothing was written")
        return records

    def _draw_class(self, label: int, rows: int, rng: np.random.Generator) -> Whole:
        """Draw fine cells of one class: each component as often as its weight says. Shapes: [F, rows]."""
        counts = spread(cumulate(self.weights[label][None]), np.array([rows]), rng)[0]
        component = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        cells = np.empty((len(self.detail), rows), dtype=np.int64)
        for index, (merge, detail) in enumerate(zip(self.partition.merge, self.detail, strict=True)):
            begin, end = self.partition.offsets[index : index + 2]
            fine = self.probabilities[label].numpy()[:, begin:end][:, merge] * detail[label]
            cells[index] = draw_grouped(cumulate(fine), component, rng)
        return cells


def _class_weights(model: MixtureModel, shares: Floats) -> Floats:
    """Weigh the classes by the share of each that meets conditions on the class.

    Where the class is drawn once the other columns are there, all weigh the same: rows are then kept by their class.
    """
    if model.labels is None:
        return shares
    return np.full(len(shares), float((shares[np.isfinite(model.labels.bias)] > 0).any()))


def sample_where(
    model: Sampler,
    conditions: Conditions,
    rows: int,
    seed: int,
    device: str = "cpu",
    tick: Callable[[int, int], object] = lambda meeting, drawn: None,
) -> Iterator[tuple[Records, float]]:
    """Yield batches of synthetic records that meet conditions, and their share in a plain sample as far as is known.

    ``tick`` hears after each batch how many rows so far meet them, of how many that were drawn; and within a batch that
    takes long how many were drawn by then, with as many that meet them as before it.

    Raises:
        Unsuitable: no row of the schema meets the conditions, or none that the generator draws.
        DataError: too few of them do for rejection, within ``TRIES`` rows drawn for each one asked for, or none of the
            first ``EARLY``.
    """
    conditions.check()
    share, exact = 1.0, False
    if isinstance(model, MixtureModel) and not RowRules(model.schema).all and not model.schema.null_limits:
        model = GivenMixture.of_mixture(model, conditions)
        share = model.share
        exact = model.labels is None or model.partition.class_column not in dict(conditions.by_column())
    row_count, tries, batch, most = 0, 0, 0, max(TRIES * rows, LEAST_TRIES)
    while row_count < rows and tries < most:
        wanted = rows - row_count if exact else _wanted(rows, row_count, tries)
        heard = partial(_tick_part, tick, row_count, tries)
        (records,) = sample_valid(model, min(model.batch_rows, wanted), seed, device, batch, heard)
        meeting = np.flatnonzero(conditions.hold(records))
        tries, batch = tries + len(records), batch + 1
        if len(meeting):
            met = 1.0 if exact else (row_count + len(meeting)) / tries
            yield records.take(meeting[: rows - row_count]), share * met
        row_count += len(meeting)
        tick(min(row_count, rows), tries)
        if not row_count and tries >= EARLY:
            raise DataError("", f"none of {tries:,} rows that were drawn meets {conditions}; set wider conditions")
    if row_count < rows:
        facts = f"{row_count} of {tries} rows that were drawn meet {conditions}"
        raise DataError("", f"{facts}, too few to find {rows}; ask for fewer rows, or set wider conditions")


def _tick_part(tick: Callable[[int, int], object], meeting: int, before: int, drawn: float) -> None:
    """Say how many rows were drawn within a batch."""
    tick(meeting, before + round(drawn))


def _wanted(rows: int, meeting: int, drawn: int) -> int:
    """Say how many rows to draw next, of which some are rejected, when so many of those drawn met the conditions."""
    if not meeting:
        return min(LARGER * drawn, EARLY - drawn) if drawn else max(rows, LEAST_BATCH)
    return max(LEAST_BATCH, math.ceil(MORE * (rows - meeting) * drawn / meeting))
