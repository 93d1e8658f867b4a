"""A generator that is a Bayesian network: every column is drawn given a few columns drawn before it.

p(x) = prod over columns, in the order of the network, of p(x_column | cells of its parents)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmodels.arrays import Floats
from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.contingency import Family, Views
from dpmodels.embeddings.partition import Partition
from dpmodels.generators.denoise import denoise_table, pool, project
from dpmodels.generators.model_file import write_model
from dpmodels.generators.randomness import cumulate, draw_grouped
from dpmodels.generators.sampling import Sampler
from dpmodels.late import Tensor, torch


@dataclass(frozen=True)
class Estimate:
    """Noisy counts and the standard deviation of the noise of each of them, in records."""

    counts: Floats
    noise_stddev: float


def conditional(table: Estimate, one_way: Estimate, parts: Floats) -> Floats:
    """Estimate a column's distribution given its parents from their noisy table (post-processing).

    The column's one-way counts were measured twice, and are averaged. The table is the product of its marginals plus a
    residual whose singular values are shrunk by what the noise adds to them. So the column is independent of its
    parents where these tell no more of it than noise would, and where they hold fewer records than the noise.

    Shapes: table [m, n]; one_way [n], each of whose counts is a sum over ``parts`` [n] noisy ones. Returns [m, n], of
    which every row is non-negative and sums to 1.
    """
    counts, noise = table.counts, table.noise_stddev
    variances = [parts * one_way.noise_stddev**2, np.full(counts.shape[1], len(counts) * noise**2)]
    child = pool([one_way.counts, counts.sum(axis=0)], variances)
    child = child / child.sum() if child.sum() > 0 else np.full(len(child), 1 / len(child))
    expected = np.outer(project(counts.sum(axis=1)), child)
    clean = np.maximum(denoise_table(counts, expected, noise), 0) if len(counts) > 1 else expected
    totals = clean.sum(axis=1, keepdims=True)
    result: Floats = np.where(totals > noise, clean / np.maximum(totals, noise), child)
    return result


@dataclass
class BayesNetModel(Sampler):
    """Draws a fine cell a column given its parents' cells, a value within that.

    All but the last are drawn systematically among rows of the same parents' cells, so that a batch holds each cell
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
        return max(1, round(self.records))

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        partition = self.views.partition
        cells = [np.zeros(rows, dtype=np.int64) for _ in partition.merge]
        fine = np.empty((rows, len(cells)), dtype=np.int32, order="F")
        for family, shares in zip(self.families, self.conditionals, strict=True):
            child, merge = family.child, partition.merge[family.child]
            within = cumulate(shares[:, merge] * self.detail[child])
            fine[:, child] = draw_grouped(within, self.views.rows_of(family, cells), rng)
            cells[child] = merge[fine[:, child]]
        return partition.codec.from_cells(fine, rng)

    def save(self, path: Path) -> None:
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
