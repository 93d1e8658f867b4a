"""Rows that meet conditions: from a mixture by conditioning its weights, from any other generator by rejection.

Given conditions on single columns, a mixture of product distributions is one again: a component weighs as much as the
probability of the conditions under it, and each cell as much as the part of it that meets them. So rows are drawn that
a plain sample would hold, in the same shares among each other, however rare they are. Every other generator, and every
schema whose rows are repaired after they are drawn, is sampled as ever and the rows that meet the conditions are kept.

Privacy: post-processing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dpmodels.arrays import Whole
from dpmodels.codec.encode import Records
from dpmodels.codec.rules import Conditions
from dpmodels.contract.columns import Continuous
from dpmodels.contract.conditions import bounds, cell_shares, hold
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError, Unsuitable
from dpmodels.generators.constraints import sample_valid
from dpmodels.generators.mixture import Floats, MixtureModel
from dpmodels.generators.randomness import cumulate, draw_grouped, spread
from dpmodels.generators.sampling import Sampler
from dpmodels.late import torch

TRIES, LEAST_TRIES = 1000, 2**20
"""Rows that are drawn for each one asked for, and at least, before the conditions are called too rare to reject by."""
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
        for place, own in conditions.by_column():
            met = cell_shares(own, columns[place])
            if place == model.partition.class_column:
                weights *= met[:, None]
                continue
            index = place - (model.partition.class_column is not None and place > model.partition.class_column)
            coarse = model.probabilities[:, :, offsets[index] : offsets[index + 1]].numpy()
            merge = model.partition.merge[index]
            for label in range(len(weights)):
                fine = coarse[label][:, merge] * detail[index][label]
                weights[label] *= fine @ met / fine.sum(axis=1)
            detail[index] = detail[index] * met
        share = float(classes @ weights.mean(axis=1))
        if not share > 0:
            raise Unsuitable(f"no row that this generator draws meets {conditions}; nothing was drawn")
        given = replace(model, detail=detail, class_counts=torch.from_numpy(classes * weights.mean(axis=1)))
        return cls(**vars(given), conditions=conditions, weights=weights, share=share)

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        """Draw one batch; values within cells that the conditions cut are drawn from the part that meets them."""
        drawn = super().draw(rows, rng, device)
        values = drawn.values
        for place, own in self.conditions.by_column():
            column, states = list(self.partition.codec.columns.values())[place], drawn.states[:, place]
            if not isinstance(column, Continuous):
                continue
            low, high = bounds(own)
            todo = np.flatnonzero(states == 0)
            grid = column.grid
            cells = grid.of(values[:, place])
            for _ in range(REDRAWS):
                values[todo, place] = grid.draw(cells[todo], rng, low, high)
                todo = todo[~hold(own, states[todo], values[todo, place])]
                if not len(todo):
                    break
            else:
                raise DataError("", f"hardly any value that is drawn meets {self.conditions}; nothing was written")
        return drawn

    def _draw_class(self, label: int, rows: int, rng: np.random.Generator) -> Whole:
        """Draw fine cells of one class: each component as often as its weight says. Shapes: [F, rows]."""
        counts = spread(cumulate(self.weights[label][None]), np.array([rows]), rng)[0]
        component = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        drawn = np.empty((len(self.detail), rows), dtype=np.int64)
        for index, (merge, detail) in enumerate(zip(self.partition.merge, self.detail, strict=True)):
            begin, end = self.partition.offsets[index : index + 2]
            fine = self.probabilities[label].numpy()[:, begin:end][:, merge] * detail[label]
            drawn[index] = draw_grouped(cumulate(fine), component, rng)
        return drawn


def sample_where(
    model: Sampler, conditions: Conditions, rows: int, seed: int, device: str = "cpu"
) -> Iterator[tuple[Records, float]]:
    """Yield batches of synthetic records that meet conditions, and their share in a plain sample as far as is known.

    Raises:
        Unsuitable: no row that the generator draws meets the conditions.
        DataError: too few of them do for rejection, within ``TRIES`` rows drawn for each one asked for.
    """
    schema, share = model.schema, None
    if not isinstance(schema, Schema):
        raise Unsuitable("embedded documents have no columns, so no conditions can be set on them; leave --where out")
    if isinstance(model, MixtureModel) and not schema.constraints and not schema.null_limits:
        model = GivenMixture.of_mixture(model, conditions)
        share = model.share
    found, drawn, most = 0, 0, max(TRIES * rows, LEAST_TRIES)
    while found < rows and drawn < most:
        size = model.batch_rows if share is None else min(model.batch_rows, rows - found)
        (records,) = sample_valid(model, size, seed, device, first=drawn // model.batch_rows)
        met = np.flatnonzero(conditions.hold(records))
        drawn += len(records)
        if len(met):
            yield records.take(met[: rows - found]), share or (found + len(met)) / drawn
        found += len(met)
    if found < rows:
        facts = f"{found} of {drawn} rows that were drawn meet {conditions}"
        raise DataError("", f"{facts}, too few to find {rows}; ask for fewer rows, or set wider conditions")
