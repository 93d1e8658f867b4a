"""How far a release may be from the real table, and the synthetic table from the release: post-processing.

Privacy: reads released vectors, public noise scales and synthetic rows; no real row.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from dpmodels.embeddings.image_moments import ImageMoments
from dpmodels.embeddings.joint import ConditionalEmbedding
from dpmodels.embeddings.moments import Moments
from dpmodels.embeddings.partition import Partition
from dpmodels.generators.targets import column_estimates, with_fine_counts
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.schema.encode import Codec, Records
from dpmodels.schema.interval import Floats
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.base import Plan
from dpmodels.synthesizers.one_shot import Look

FIT_ROWS = 50_000
"""Synthetic rows that are held against a release, from the start of the table."""
HALF_NORMAL = math.sqrt(2 / math.pi)
"""Mean absolute value of a standard normal."""

LookVector = tuple[Look, NDArray[np.int64]]


@dataclass(frozen=True)
class Marginal:
    """What a release says about the counts of one column.

    Attributes:
        counts, stddev: of its fine cells, as released, and the noise of each. Shapes: [fine cells].
        place: from fine cell to cell.
        pooled, pooled_stddev: of its cells, averaged over all that was released about them. Shapes: [cells].
    """

    counts: Floats
    stddev: float
    place: NDArray[np.int64]
    pooled: Floats
    pooled_stddev: Floats

    @classmethod
    def plain(cls, counts: Floats, stddev: float) -> "Marginal":
        """Return a marginal that was measured once, in its fine cells."""
        return cls(counts, stddev, np.arange(len(counts)), counts, np.full(len(counts), stddev))


@dataclass(frozen=True)
class Marginals:
    """What a release says about one-way counts, without any smoothing.

    Attributes:
        codec: whose cells are counted.
        columns: by name; those that the release has nothing direct to say about are left out.
        pair_stddev: noise of the count of one pair of cells of two columns, if pairs were released.
        pair_cells: cells that a column has in these pairs, on average.
    """

    codec: Codec
    columns: dict[str, Marginal]
    pair_stddev: float | None = None
    pair_cells: float | None = None

    @property
    def records(self) -> float:
        """Return the number of records, by the column whose noisy counts add up with the least noise."""
        noise = {name: one.stddev**2 * len(one.counts) for name, one in self.columns.items()}
        best = self.columns[min(noise, key=lambda name: noise[name])]
        return max(float(best.counts.sum()), 1.0)


def read_marginals(plan: Plan, looks: Sequence[LookVector]) -> Marginals | None:
    """Read the one-way counts that the looks of a release contain, or None if they contain none."""
    found, first = None, None
    for look, vector in looks:
        embedding, steps = look.embedding, _steps(plan, look)
        if isinstance(embedding, Moments) and found is None:
            found, first = _of_moments(embedding, vector, steps), (embedding, vector)
        elif isinstance(embedding, Moments) and found is not None and first is not None:
            found = _with_pairs(found, *first, embedding, vector, steps)
        elif isinstance(embedding, ConditionalEmbedding) and plan.table.classes > 1:
            found = _of_target(plan, embedding.unpack(vector)[1], steps / embedding.count_step)
        elif isinstance(embedding, ImageMoments) and embedding.classes == plan.table.classes > 1:
            found = _of_target(plan, embedding.unpack(vector)[0], steps / embedding.count_step)
    return found


def fine_codec(schema: Schema) -> Codec:
    """Return an encoder with cells fine enough to draw from."""
    return Partition.fine(schema, 256, conditional=False).codec


def _of_moments(embedding: Moments, vector: NDArray[np.int64], steps: float) -> Marginals:
    """Add the classes up for every column, and all cells up for the class itself, by inverse variances."""
    partition, noise = embedding.partition, steps / embedding.one_way
    counts = embedding.unpack(vector)[0]
    parts = [counts[:, a:b] for a, b in zip(partition.offsets[:-1], partition.offsets[1:], strict=True)]
    together = math.sqrt(partition.classes) * noise
    columns = [Marginal.plain(part.sum(axis=0), together) for part in parts]
    if partition.class_column is not None:
        weights = np.array([1 / part.shape[1] for part in parts])
        label = np.average([part.sum(axis=1) for part in parts], axis=0, weights=weights)
        columns.insert(partition.class_column, Marginal.plain(label, noise / math.sqrt(weights.sum())))
    return Marginals(partition.codec, dict(zip(partition.codec.columns, columns, strict=True)))


def _with_pairs(
    found: Marginals,
    first: Moments,
    fine: NDArray[np.int64],
    moments: Moments,
    vector: NDArray[np.int64],
    steps: float,
) -> Marginals:
    """Average a column's merged cells over both looks: their fine cells, themselves, and every table they are in."""
    partition = moments.partition
    parts = first.unpack(fine)[0], *moments.unpack(vector)
    names = [name for index, name in enumerate(found.codec.columns) if index != partition.class_column]
    columns = dict(found.columns)
    for index, name in enumerate(names):
        pooled, variance = np.zeros(partition.sizes[index]), np.zeros(partition.sizes[index])
        for fine_counts, one_way, pairs in zip(*parts, strict=True):
            once_more = column_estimates(moments, one_way, pairs, index)
            estimates, variances = with_fine_counts(once_more, first, moments, fine_counts, index)
            weights = 1 / np.stack(variances)
            pooled += np.average(np.stack(estimates), axis=0, weights=weights)
            variance += 1 / weights.sum(axis=0)
        once = found.columns[name]
        stddev = steps * np.sqrt(variance)
        columns[name] = Marginal(once.counts, once.stddev, partition.merge[index], pooled, stddev)
    pair_stddev = steps * math.sqrt(partition.classes) / moments.two_way
    return Marginals(found.codec, columns, pair_stddev, float(np.mean(partition.sizes)))


def _of_target(plan: Plan, counts: Floats, stddev: float) -> Marginals:
    return Marginals(
        fine_codec(plan.table), {str(plan.table.target): Marginal.plain(counts.astype(np.float64), stddev)}
    )


def expected_distance(stddev: Floats, records: float) -> float:
    """Return the total variation that noise alone puts between released and real shares, on average.

    Half the sum over cells of E|noise|, which for a normal is its standard deviation times the square root of 2/pi.
    """
    return float(min(1.0, HALF_NORMAL * stddev.sum() / (2 * records)))


def compare_with_release(
    plan: Plan, looks: Sequence[LookVector], batches: Iterable[Records]
) -> list[dict[str, float | int]]:
    """Hold the sums of the synthetic rows against the released ones, look by look, in units of the noise.

    The synthetic sum is scaled to the release by one factor, since the number of rows is free. ``left`` is the root
    mean square of what then remains over the noise: 1 is what noise alone leaves, more is what the generator missed.
    ``explained`` is what noise and the drawing of a finite number of rows explain together; ``signal`` the same of
    the release before anything is taken off.
    """
    totals = [torch.zeros(look.embedding.dim, dtype=torch.int64) for look, _ in looks]
    rows = 0
    for records in batches:
        kept = records.take(slice(0, FIT_ROWS - rows))
        for total, (look, _) in zip(totals, looks, strict=True):
            total += look.embedding.lattice_sum(kept)
        rows += len(kept)
        if rows >= FIT_ROWS:
            break
    result: list[dict[str, float | int]] = []
    for total, (look, vector) in zip(totals, looks, strict=True):
        made, steps = total.numpy().astype(np.float64), _steps(plan, look)
        power = float(made @ made)
        factor = float(made @ vector) / power if power else 0.0
        norm = look.embedding.l2_sensitivity / plan.table.unit.max_rows
        drawing = factor**2 * max(rows * norm**2 - power / max(rows, 1), 0.0) / len(vector)
        rest = vector - factor * made
        result.append(
            {
                "coordinates": len(vector),
                "signal": float(np.sqrt((vector.astype(np.float64) ** 2).mean()) / steps),
                "left": float(np.sqrt((rest**2).mean()) / steps),
                "explained": math.sqrt(1 + drawing / steps**2),
            }
        )
    return result


def _steps(plan: Plan, look: Look) -> float:
    return lattice_noise_stddev(plan.l2_sensitivity, look.noise_multiplier)
