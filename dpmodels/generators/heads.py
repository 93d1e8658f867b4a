"""What a decoder's outputs mean: the likelihood of a target given them, and how records are drawn from them."""

import numpy as np

from dpmodels.codec.encode import Records
from dpmodels.embeddings.base import Layout
from dpmodels.embeddings.vectors import Vectors
from dpmodels.errors import Unsuitable
from dpmodels.generators.randomness import categorical
from dpmodels.late import Tensor, torch

INK_STDDEV, VALUE_STDDEV = 0.15, 0.1
"""Standard deviation of a pixel or value about what is decoded, on the unit interval, unless one was released."""


class CellHead:
    """Columns as independent categories given z."""

    def __init__(self, vectors: Vectors) -> None:
        if vectors.partition is None:
            raise Unsuitable(f"schema {vectors.schema.name} has images; this decoder is for tables")
        self.partition, self.sizes = vectors.partition, vectors.partition.sizes
        self.outputs = sum(self.sizes)

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """Return -log p(target). Shapes: [B, L, outputs], [B, columns] -> [B, L]."""
        indices = target[:, None, :, None].expand(-1, out.shape[1], -1, -1)
        parts = [
            -torch.log_softmax(logits, dim=-1).gather(2, indices[:, :, column])[..., 0]
            for column, logits in enumerate(torch.split(out, self.sizes, dim=-1))
        ]
        return torch.stack(parts).sum(dim=0)

    def shown(self, target: Tensor) -> Tensor:
        """Return what a critic sees of records: one-hots of their cells. Shapes: [B, columns] -> [B, outputs]."""
        columns = zip(target.unbind(dim=1), self.sizes, strict=True)
        return torch.cat([_one_hot(cells, size) for cells, size in columns], dim=1)

    def faked(self, out: Tensor, uniform: Tensor, temperature: float) -> Tensor:
        """Return what a critic sees of records drawn from outputs, with a gradient. Shapes: [B, outputs] each."""
        pairs = zip(torch.split(out, self.sizes, dim=1), torch.split(uniform, self.sizes, dim=1), strict=True)
        return torch.cat([_drawn(*pair, temperature) for pair in pairs], dim=1)

    def draw(self, out: Tensor, y: Tensor, randomness: "torch.Generator") -> Records:
        """Draw a cell a column, then a value within it."""
        columns = torch.split(out.T.contiguous(), self.sizes)
        uniform = torch.rand(len(columns), len(out), generator=randomness)
        cells = torch.stack([categorical(*pair) for pair in zip(columns, uniform, strict=True)], dim=1).numpy()
        if self.partition.class_column is not None:
            cells = np.insert(cells, self.partition.class_column, y.numpy(), axis=1)
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=randomness)))
        return self.partition.codec.from_cells(cells.astype(np.int32), rng)


class ValueHead:
    """States as independent categories and values as independent normals given z."""

    def __init__(self, vectors: Vectors, stddev: Tensor | None = None) -> None:
        self.layout: Layout = Layout.of(vectors.schema)
        self.schema, self.outputs = vectors.schema, vectors.dim
        self.stddev = torch.full((vectors.dim,), VALUE_STDDEV) if stddev is None else stddev.float()
        numbers = [block for block in self.layout.blocks if block.continuous]
        self.value_columns = torch.tensor([block.value for block in numbers])
        # a value counts where its state says there is one; a column of one state always has it
        self.states = torch.tensor([block.start if block.one_hot else vectors.dim for block in numbers])

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """Return -log p(target) up to a constant. Shapes: [B, L, dim], [B, dim] -> [B, L]."""
        targets = torch.nn.functional.pad(target, (0, 1), value=1.0)[:, None]
        off = (out[..., self.value_columns] - targets[..., self.value_columns]) / self.stddev[self.value_columns].to(
            out.device
        )
        total = (targets[..., self.states] * off**2).sum(dim=-1) / 2
        for block in self.layout.blocks:
            if block.one_hot:
                shares = torch.log_softmax(out[..., block.start : block.value], dim=-1)
                total = total - (targets[..., block.start : block.value] * shares).sum(dim=-1)
        return total

    def shown(self, target: Tensor) -> Tensor:
        """Return what a critic sees of records: their states and values. Shapes: [B, dim] -> [B, dim]."""
        return target

    def faked(self, out: Tensor, uniform: Tensor, temperature: float) -> Tensor:
        """Return what a critic sees of records drawn from outputs, with a gradient. Shapes: [B, dim] each."""
        parts = []
        for block in self.layout.blocks:
            if block.one_hot:
                columns = slice(block.start, block.value)
                parts.append(_drawn(out[:, columns], uniform[:, columns], temperature))
            if block.continuous:
                value = out[:, block.value : block.value + 1].clamp(0, 1)
                parts.append(value * parts[-1][:, :1] if block.one_hot else value)
        return torch.cat(parts, dim=1)

    def draw(self, out: Tensor, y: Tensor, randomness: "torch.Generator") -> Records:
        """Draw a state a column, and a value where the state is to have one."""
        states = torch.zeros(len(out), len(self.schema.modelled), dtype=torch.int32)
        values = torch.zeros(states.shape, dtype=torch.float64)
        if self.layout.class_column is not None:
            states[:, self.layout.class_column] = y.to(torch.int32)
        noise = self.stddev * torch.randn(out.shape, generator=randomness)
        for block in self.layout.blocks:
            if block.one_hot:
                logits = out[:, block.start : block.value].T.contiguous()
                states[:, block.column] = categorical(logits, torch.rand(len(out), generator=randomness))
            if block.continuous:
                value = (out[:, block.value] + noise[:, block.value]).clamp(0, 1).double()
                values[:, block.column] = torch.where(states[:, block.column] == 0, value, 0.0)
        return Records(states.numpy(), values.numpy())


class InkHead:
    """Pixels as independent normals about what is decoded; drawn without that noise."""

    def __init__(self, vectors: Vectors) -> None:
        self.outputs = vectors.dim

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """Return -log p(target) up to a constant. Shapes: [B, L, pixels], [B, pixels] uint8 -> [B, L]."""
        return ((out - target[:, None].to(out.dtype) / 255) ** 2).sum(dim=-1) / (2 * INK_STDDEV**2)

    def shown(self, target: Tensor) -> Tensor:
        """Return what a critic sees of images. Shapes: [B, pixels] uint8 -> [B, pixels]."""
        return target.to(torch.float32) / 255

    def faked(self, out: Tensor, uniform: Tensor, temperature: float) -> Tensor:
        """Return what a critic sees of drawn images. Shapes: [B, pixels] -> [B, pixels]."""
        return out.clamp(0, 1)

    def draw(self, out: Tensor, y: Tensor, randomness: "torch.Generator") -> Records:
        """Draw the ink."""
        pixels = (255 * out.clamp(0, 1)).round().to(torch.uint8).numpy()
        states = y.to(torch.int32).numpy()[:, None]
        return Records(states, np.zeros(states.shape), pixels)


def _one_hot(index: Tensor, size: int) -> Tensor:
    return (index[:, None] == torch.arange(size, device=index.device)).to(torch.float32)


def _drawn(logits: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """Draw from the softmax by Gumbel's rule; the gradient is that of a smoothed draw. Shapes: [B, n] each."""
    perturbed = logits - torch.log(-torch.log(uniform))
    smooth = torch.softmax(perturbed / temperature, dim=1)
    return _one_hot(perturbed.argmax(dim=1), logits.shape[1]) - smooth.detach() + smooth


Head = CellHead | ValueHead | InkHead


def head_of(vectors: Vectors, stddev: Tensor | None = None) -> Head:
    """Return the head for what the vectors are decoded to."""
    if vectors.kind == "values":
        return ValueHead(vectors, stddev)
    return CellHead(vectors) if vectors.kind == "cells" else InkHead(vectors)
