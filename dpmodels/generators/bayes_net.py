"""A generator that is a Bayesian network: every column is drawn given a few columns drawn before it.

p(x) = prod over columns, in the order of the network, of p(x_column | cells of its parents)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpmodels.embeddings.contingency import Family, Views
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import InvalidArgument
from dpmodels.generators.denoise import denoise_table, pool, project
from dpmodels.generators.model_file import write_model
from dpmodels.generators.randomness import invert, refine, systematic
from dpmodels.schema.encode import Records
from dpmodels.schema.schema import Schema

SAMPLE_ROWS = 16_384
"""Rows sampled at a time."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """Noisy counts and the standard deviation of the noise of each of them, in records."""

    counts: Floats
    noise_stddev: float


def conditional(table: Estimate, one_way: Estimate, parts: Floats) -> Floats:
    """Estimate a column's distribution given its parents from their noisy table (post-processing).

    The column's one-way counts are averaged over the two that were measured. The table is the product of its margins
    plus a residual whose singular values are shrunk by what the noise adds to them: where the parents say nothing that
    stands out of the noise, the column is independent of them, and so it is where they hold less than the noise.

    Shapes: table [m, n]; one_way [n], each of whose counts is a sum over ``parts`` [n] noisy ones. Returns [m, n], of
    which every row is non-negative and sums to 1.
    """
    counts, noise = table.counts, table.noise_stddev
    variances = [parts * one_way.noise_stddev**2, np.full(counts.shape[1], len(counts) * noise**2)]
    child = pool([one_way.counts, counts.sum(axis=0)], variances)
    child = child / child.sum() if child.sum() > 0 else np.full(len(child), 1 / len(child))
    expected = np.outer(project(counts.sum(axis=1)), child)
    clean = np.maximum(denoise_table(counts, expected, noise), 0) if len(counts) > 1 else expected
    held = clean.sum(axis=1, keepdims=True)
    result: Floats = np.where(held > noise, clean / np.maximum(held, noise), child)
    return result


@dataclass
class BayesNetModel:
    """Draws a cell a column given its parents' cells, a fine cell within it, a value within that.

    All but the last two are drawn systematically among rows of the same parents' cells, so that a batch holds each cell
    as often as its probability says, up to one row.

    Shapes:
        conditionals: for each family [combinations of its parents' cells, cells of the child], rows of sum 1;
        detail: for each column [fine cells], of sum 1 within each cell.
    """

    schema: Schema
    most_cells: int
    views: Views
    families: list[Family]
    conditionals: list[Floats]
    detail: list[Floats]
    records: float
    release_entry: str

    def default_rows(self) -> int:
        """Return the released (noisy) number of records, at least 1."""
        return max(1, round(self.records))

    def sample(self, rows: int, seed: int, device: str = "cpu") -> Iterator[Records]:
        """Yield batches of synthetic records; the same (rows, seed) gives the same records, whatever the device."""
        if rows < 1:
            raise InvalidArgument("rows", rows, "be at least 1")
        for batch, start in enumerate(range(0, rows, SAMPLE_ROWS)):
            yield self._sample_batch(min(SAMPLE_ROWS, rows - start), np.random.default_rng([seed, batch]))

    def _sample_batch(self, rows: int, rng: np.random.Generator) -> Records:
        partition = self.views.partition
        cells = [np.zeros(rows, dtype=np.int64) for _ in partition.merge]
        for family, shares in zip(self.families, self.conditionals, strict=True):
            given = self.views.rows_of(family, cells)
            cells[family.child] = invert(shares[given], systematic(given, rng))
        drawn = zip(partition.merge, self.detail, cells, strict=True)
        fine = np.stack([refine(merge, detail, cell, rng) for merge, detail, cell in drawn], axis=1)
        return partition.codec.from_cells(fine.astype(np.int32), rng)

    def save(self, path: Path) -> None:
        """Write network, distributions and cells to one file."""
        parts = {
            "merge": self.views.partition.merge,
            "coarse": self.views.coarse,
            "conditional": self.conditionals,
            "detail": self.detail,
        }
        tensors = {
            f"{part}/{i}": torch.from_numpy(array) for part, each in parts.items() for i, array in enumerate(each)
        }
        facts = {
            "most_cells": self.most_cells,
            "families": [[family.child, *family.parents] for family in self.families],
            "records": self.records,
            "release_entry": self.release_entry,
        }
        write_model(path, "bayes-net", self.schema, tensors, **facts)

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "BayesNetModel":
        """Rebuild what ``save`` wrote."""
        fine = Partition.fine(facts["schema"], facts["most_cells"], conditional=False)

        def each(part: str) -> list[Any]:
            return [tensors[f"{part}/{index}"].numpy() for index in range(len(fine.merge))]

        views = Views(Partition(fine.codec, tuple(each("merge")), 1, None), tuple(each("coarse")))
        families = [Family(child, tuple(parents)) for child, *parents in facts["families"]]
        return cls(
            facts["schema"],
            facts["most_cells"],
            views,
            families,
            each("conditional"),
            each("detail"),
            facts["records"],
            facts["release_entry"],
        )
