"""A generator that is a Bayesian network: every column is drawn given a few columns drawn before it.

p(x) = prod over columns, in the order of the network, of p(x_column | cells of its parents)
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from dpmodels.embeddings.contingency import Family, Views
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import ArtifactError, InvalidArgument
from dpmodels.generators.denoise import denoise_table, pool, project
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
        """Write the network and the schema to one safetensors file."""
        facts = {
            "kind": "bayes-net",
            "schema": self.schema.model_dump(mode="json"),
            "most_cells": self.most_cells,
            "families": [[family.child, *family.parents] for family in self.families],
            "records": self.records,
            "release_entry": self.release_entry,
        }
        parts = {
            "merge": self.views.partition.merge,
            "coarse": self.views.coarse,
            "conditional": self.conditionals,
            "detail": self.detail,
        }
        tensors = {
            f"{part}/{i}": torch.from_numpy(np.ascontiguousarray(a))
            for part, each in parts.items()
            for i, a in enumerate(each)
        }
        save_file(tensors, path, metadata={"nacre": json.dumps(facts)})

    @classmethod
    def load(cls, path: Path) -> "BayesNetModel":
        """Read a generator back.

        Raises:
            ArtifactError: the file is missing or damaged.
        """
        try:
            with safe_open(path, framework="pt") as file:
                facts = json.loads(file.metadata()["nacre"])
                arrays = {key: file.get_tensor(key).numpy() for key in file.keys()}  # noqa: SIM118 - not a mapping
        except (OSError, SafetensorError, KeyError, TypeError) as fault:
            raise ArtifactError(f"generator {path.name} is missing or damaged; train it again") from fault
        schema, most_cells = Schema.model_validate_json(json.dumps(facts["schema"])), int(facts["most_cells"])
        fine = Partition.fine(schema, most_cells, conditional=False)

        def each(part: str) -> list[NDArray[np.int64]]:
            return [arrays[f"{part}/{index}"] for index in range(len(fine.merge))]

        views = Views(Partition(fine.codec, tuple(each("merge")), 1, None), tuple(each("coarse")))
        families = [Family(child, tuple(parents)) for child, *parents in facts["families"]]
        conditionals, detail = ([a.astype(np.float64) for a in each(part)] for part in ("conditional", "detail"))
        return cls(schema, most_cells, views, families, conditionals, detail, facts["records"], facts["release_entry"])
