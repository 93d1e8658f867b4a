"""What every embedding shares: the coordinates of a record, rows a generator proposes, and the interface itself."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpmodels.codec.encode import Records
from dpmodels.contract.schema import Schema
from dpmodels.late import Tensor, torch

VALUE_BITS = 16
"""A continuous value in [0, 1] enters an embedding as an integer number of 2**-16 steps."""


@dataclass(frozen=True, slots=True)
class Block:
    """Where one column sits in the design vector: a one-hot part (if it has states to tell apart) and a value."""

    column: int
    start: int
    states: int
    continuous: bool

    @property
    def one_hot(self) -> int:
        """Width of the one-hot part; a column with a single state needs none."""
        return self.states if self.states > 1 else 0

    @property
    def value(self) -> int:
        """Coordinate of the continuous value, if there is one."""
        return self.start + self.one_hot

    @property
    def stop(self) -> int:
        """One past the last coordinate."""
        return self.start + self.one_hot + int(self.continuous)


@dataclass(frozen=True, slots=True)
class Layout:
    """The design vector of a record: public, fixed by the schema; the conditioning column is left out."""

    blocks: tuple[Block, ...]
    classes: int
    class_column: int | None

    @classmethod
    def of(cls, schema: Schema) -> "Layout":
        """Lay out the modeled columns in schema order."""
        class_column = schema.class_index
        blocks: list[Block] = []
        start = 0
        for index, column in enumerate(schema.modelled.values()):
            if index == class_column:
                continue
            blocks.append(Block(index, start, column.states, column.continuous))
            start = blocks[-1].stop
        return cls(tuple(blocks), schema.classes, class_column)

    @property
    def dim(self) -> int:
        """Number of design coordinates."""
        return self.blocks[-1].stop if self.blocks else 0

    def design(self, records: Records, device: "str | torch.device" = "cpu") -> Tensor:
        """Return integer design vectors: ``2**VALUE_BITS`` at a one-hot's place, the value in steps at a number's.

        Shapes: [B, dim] float64 holding integers, so that matrix products of them stay exact below 2**53.
        """
        states = torch.from_numpy(records.states).to(device=device, dtype=torch.int64)
        values = torch.from_numpy(records.values).to(device=device)
        x = torch.zeros(len(records), self.dim, dtype=torch.float64, device=device)
        for block in self.blocks:
            if block.one_hot:
                x.scatter_(1, block.start + states[:, block.column, None], 2.0**VALUE_BITS)
            if block.continuous:
                x[:, block.value] = torch.round(values[:, block.column] * 2.0**VALUE_BITS)
        return x


@dataclass(frozen=True, slots=True)
class ProductRows:
    """Rows as a generator proposes them: given the latent, the columns are independent.

    Shapes: one entry a block; ``probabilities[i]`` is [B, states] or None, ``values[i]`` is [B] in [0, 1] or None.
    """

    probabilities: Sequence[Tensor | None]
    values: Sequence[Tensor | None]


class Embedding(ABC):
    """A bounded map of a record, summed over the records: public parameters only.

    Attributes:
        dim: length of the released vector.
        l2_sensitivity: bound, in lattice steps, on the L2 norm of one record's contribution; so the sum moves by at
            most this much when one record is added or removed.
    """

    dim: int
    l2_sensitivity: int

    @abstractmethod
    def lattice_sum(self, records: Any, device: "str | torch.device" = "cpu") -> Tensor:
        """Sum the truncated features of a batch of what the embedding is for.

        Shapes: [dim] int64 on the CPU. Exact: no rounding depends on B.
        """

    @abstractmethod
    def coordinates(self) -> dict[str, Any]:
        """Name every coordinate of the vector; one array of length ``dim`` a name."""
