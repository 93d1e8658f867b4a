"""The trainable parameters of a mixture of product distributions; what they mean is said in mixture.py."""

import torch
from torch import Tensor, nn


class MixtureNetwork(nn.Module):
    """Component probabilities as a function of trainable logits.

    Shapes: forward returns [classes, K, D]; within a component every column's cells sum to 1.
    """

    points: Tensor

    def __init__(self, log_shares: Tensor, sizes: list[int], components: int, directions: int, seed: int) -> None:
        super().__init__()
        randomness = torch.Generator().manual_seed(seed)
        classes, cells = log_shares.shape
        spread = 0.3 / directions**0.5
        self.sizes = sizes
        self.register_buffer("points", torch.randn(components, directions, generator=randomness))
        self.bias = nn.Parameter(log_shares[:, None, :].clone())
        self.directions = nn.Parameter(spread * torch.randn(classes, directions, cells, generator=randomness))
        self.offsets = nn.Parameter(torch.zeros(classes, components, cells))

    def forward(self) -> Tensor:
        """Return the probabilities of every component."""
        logits = self.bias + self.points @ self.directions + self.offsets
        return torch.cat([torch.softmax(part, dim=2) for part in torch.split(logits, self.sizes, dim=2)], dim=2)
