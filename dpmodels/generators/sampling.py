"""How every generator samples: in batches of a fixed size, each with a stream of random numbers of its own.

Batch number and seed name the stream, so any batch can be drawn alone, in any order, on any thread or machine, and is
the same rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.contract.documents import Documents
from dpmodels.contract.schema import Schema
from dpmodels.contract.tree import Tree
from dpmodels.embeddings.partition import Partition
from dpmodels.errors import InvalidArgument
from dpmodels.late import Tensor, torch


def batch_stream(seed: int, batch: int, spare: int = 0) -> np.random.Generator:
    """Return the stream of one batch; ``spare`` numbers further ones, for rows that stand in for others.

    The key is hashed to 128 bits, so that no two of any number of batches share a stream.
    """
    return np.random.default_rng([seed, batch, spare])


def batch_sizes(rows: int, batch_rows: int, first: int = 0) -> Iterator[tuple[int, int]]:
    """Cut ``rows`` rows from batch ``first`` on; yield each batch's number and size.

    Raises:
        InvalidArgument: there is not at least one row.
    """
    if rows < 1:
        raise InvalidArgument("rows", rows, "be at least 1")
    for batch, start in enumerate(range(0, rows, batch_rows), first):
        yield batch, min(batch_rows, rows - start)


def draw_cells(counts: Tensor, rows: int, randomness: "torch.Generator") -> tuple[Tensor, Tensor]:
    """Draw a network and a class for each row, by released counts, which may be negative.

    Neither a network whose counts add up to nothing nor a cell without a positive count is drawn, unless all are such.

    Shapes: [networks, classes] float64 -> [rows], [rows].
    """
    positive = counts.clamp_min(0)
    eligible = positive * (counts.sum(dim=1, keepdim=True) > 0)
    shares = (eligible if eligible.sum() > 0 else positive).flatten()
    shares = shares if shares.sum() > 0 else torch.ones_like(shares)
    # evenly spread uniforms: each network and class as often as its share says, up to one row
    uniform = (torch.arange(rows) + torch.rand(1, generator=randomness)) / rows
    cells = torch.searchsorted((shares / shares.sum()).cumsum(0), uniform.double())
    possible = shares.nonzero()
    cells = cells.clamp(min=int(possible[0]), max=int(possible[-1]))
    cells = cells[torch.randperm(rows, generator=randomness)]
    return cells // counts.shape[1], cells % counts.shape[1]


def spread_classes(counts: NDArray[np.float64], rows: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the class of every row: each class as often as its share of released counts says, up to one row."""
    shares = counts.clip(min=0)
    shares = shares / shares.sum() if shares.sum() > 0 else np.full_like(shares, 1 / len(shares))
    uniform = (np.arange(rows) + rng.random()) / rows  # evenly spread
    labels: NDArray[np.int64] = np.searchsorted(np.cumsum(shares), rng.permutation(uniform), side="right")
    return labels.clip(max=len(shares) - 1)


class Sampler(ABC):
    """A generator that draws its rows batch by batch."""

    schema: Schema | Documents | Tree
    class_counts: Any  # an array or a tensor, noisy as released
    batch_rows: ClassVar[int] = 65_536
    """Rows sampled at a time: part of what a seed means."""

    def default_rows(self) -> int:
        """Return the released (noisy) number of records, at least 1."""
        return max(1, round(float(self.class_counts.sum())))

    @property
    def merged_cells(self) -> Partition | None:
        """The cells that a release counted together, within which values were drawn alike; None where nothing says."""
        return None

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write the generator to one file."""

    @abstractmethod
    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Any:
        """Draw the rows of one batch from its stream: records of a table, or embedded documents."""

    def sample(self, rows: int, seed: int, device: str = "cpu", first: int = 0) -> Iterator[Any]:
        """Yield batches of synthetic records, from batch ``first`` on; the same (rows, seed) gives the same records."""
        for batch, count in batch_sizes(rows, self.batch_rows, first):
            yield self.draw(count, batch_stream(seed, batch), device)
