"""A generator that is a mixture of product distributions for each class, and how to sample records from it.

    p(x | class) = 1/K sum_k prod_columns p_k(x_column),      p_k = softmax(b + z_k U + e_k)

z_k are fixed points of a normal, b and U are shared by a class, and e_k is free: the components start as a smooth
family and leave it only where the release says so. The first two moments are closed form: training samples nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.codec.encode import Records
from dpmodels.contract.columns import Continuous
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.partition import Counts, Partition
from dpmodels.generators.model_file import write_model
from dpmodels.generators.randomness import cumulate, draw_block, spread
from dpmodels.generators.refinements.coupling import Coupling
from dpmodels.generators.refinements.labels import LabelModel
from dpmodels.generators.sampling import Sampler
from dpmodels.late import Tensor, torch

Floats = NDArray[np.float64]


@dataclass
class MixtureModel(Sampler):
    """Draws the class by its released share, a component, a fine cell a column, a value within that.

    All but the last are drawn systematically (one random offset, equal steps), so that a batch holds each class,
    component and cell of a component as often as its probability says, up to one row. With ``labels`` the class of a
    row is drawn anew once its cells are there; with ``coupling`` values change places within their cells.

    Shapes:
        probabilities [classes, K, D] float32; detail: for each column [classes, fine cells], of sum 1 within each cell;
        class_counts [classes] float64, noisy and possibly negative as released.
    """

    kind: ClassVar[str] = "mixture"
    batch_rows: ClassVar[int] = 131_072
    schema: Schema
    most_cells: int
    partition: Partition
    probabilities: Tensor
    detail: list[Floats]
    class_counts: Tensor
    release_entry: str
    labels: LabelModel | None = field(default=None, kw_only=True)
    coupling: Coupling | None = field(default=None, kw_only=True)

    @property
    def merged_cells(self) -> Partition | None:
        return self.partition

    def draw(self, rows: int, rng: np.random.Generator, device: str = "cpu") -> Records:
        sizes = spread(cumulate(self.class_counts.clamp_min(0).numpy()[None]), np.array([rows]), rng)[0]
        fine_cells = np.concatenate([self._draw_class(label, size, rng) for label, size in enumerate(sizes)], axis=1)
        columns = list(fine_cells)
        if self.partition.class_column is not None:
            label = np.repeat(np.arange(len(sizes)), sizes)
            if self.labels:
                label = self.labels.draw(fine_cells, rng)
            columns.insert(self.partition.class_column, label)
        cells, order = np.empty((rows, len(columns)), dtype=np.int32, order="F"), rng.permutation(rows)
        for index, column in enumerate(columns):
            cells[:, index] = column[order]
        records = self.partition.codec.from_cells(cells, rng)
        return self.coupling.applied(records, self.partition, rng) if self.coupling else records

    def _draw_class(self, label: int, rows: int, rng: np.random.Generator) -> Counts:
        """Draw fine cells of one class, component by component. Shapes: [F, rows]."""
        probabilities, offsets = self.probabilities[label].numpy(), self.partition.offsets
        each, more = divmod(rows, len(probabilities))
        components = np.roll(np.arange(len(probabilities)), rng.integers(len(probabilities)))
        blocks = [(components[:more], each + 1), (components[more:], each)]
        cells = np.empty((len(self.detail), rows), dtype=np.int64)
        for index, (merge, detail) in enumerate(zip(self.partition.merge, self.detail, strict=True)):
            coarse, begin = probabilities[:, offsets[index] : offsets[index + 1]], 0
            for members, count in (block for block in blocks if len(block[0]) and block[1]):
                fine = cumulate(coarse[members][:, merge] * detail[label])
                end = begin + len(members) * count
                cells[index, begin:end] = draw_block(fine, count, rng).ravel()
                begin = end
        return cells

    def save(self, path: Path) -> None:
        facts = {"most_cells": self.most_cells, "release_entry": self.release_entry}
        write_model(path, self.kind, self.schema, self.tensors(), **facts)

    def tensors(self) -> dict[str, Tensor]:
        """Return all that the file of a generator holds besides its facts."""
        tensors = {"probabilities": self.probabilities, "class_counts": self.class_counts}
        for index, (merge, detail) in enumerate(zip(self.partition.merge, self.detail, strict=True)):
            tensors |= {f"merge/{index}": torch.from_numpy(merge), f"detail/{index}": torch.from_numpy(detail)}
        tensors |= {
            f"edges/{index}": torch.from_numpy(column.edges)
            for index, column in enumerate(self.partition.columns)
            if isinstance(column, Continuous) and column.is_cut
        }
        tensors |= self.labels.tensors() if self.labels else {}
        return tensors | (self.coupling.tensors() if self.coupling else {})

    @classmethod
    def of(cls, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> "MixtureModel":
        """Rebuild what ``save`` wrote."""
        schema, probabilities = facts["schema"], tensors["probabilities"]
        fine = Partition.fine(schema.flat, facts["most_cells"], conditional=len(probabilities) > 1)
        merge = tuple(tensors[f"merge/{index}"].numpy() for index in range(len(fine.merge)))
        detail = [tensors[f"detail/{index}"].numpy() for index in range(len(fine.merge))]
        cut = {index: tensors.get(f"edges/{index}") for index in range(len(merge))}
        fine = fine.cut({index: edges.numpy() for index, edges in cut.items() if edges is not None})
        partition = Partition(fine.codec, merge, fine.classes, fine.class_column)
        counts, entry = tensors["class_counts"], facts["release_entry"]
        most, labels, coupling = facts["most_cells"], LabelModel.of(tensors, len(merge)), Coupling.of(tensors)
        return cls(schema, most, partition, probabilities, detail, counts, entry, labels=labels, coupling=coupling)
