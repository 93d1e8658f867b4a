"""PEARL's critic: it reweights the fixed frequencies towards those at which real and synthetic still differ (Eq. 11).

omega is the normal density of the frequencies with trainable standard deviations sigma, omega_0 the one they were drawn
from; frequency j weighs omega(t_j) / omega_0(t_j). Two corrections to the paper: the residuals it maximizes have the
known noise variance subtracted, and the spread of the log-weights is capped, so that it does not fit the noise.
"""

import torch
from torch import Tensor, nn


class FrequencyCritic(nn.Module):
    """Trainable importance weights over k frequencies.

    Args:
        relative: frequencies in units of their own base standard deviation, 0 where a frequency does not look.
            Shapes: [d, k].
        max_divergence: bound on the variance of the log-weights, about twice the KL divergence of omega from omega_0.
    """

    relative: Tensor

    def __init__(self, relative: Tensor, max_divergence: float) -> None:
        super().__init__()
        self.register_buffer("relative", relative, persistent=False)
        self.log_sigma = nn.Parameter(torch.zeros(relative.shape[0], dtype=relative.dtype))
        self.max_divergence = max_divergence

    def forward(self, index: Tensor) -> Tensor:
        """Return weights of the chosen frequencies, of mean 1. Shapes: index [J] -> [J]."""
        t = self.relative[:, index]
        looks = (t != 0).to(t.dtype)
        # log N(t; 0, sigma^2) - log N(t; 0, 1), summed over the coordinates the frequency looks at
        ratio = -0.5 * t.square().T @ torch.expm1(-2 * self.log_sigma) - looks.T @ self.log_sigma
        spread = ratio.var(correction=0).clamp_min(self.max_divergence) / self.max_divergence
        return torch.softmax(ratio / spread.sqrt(), dim=0) * len(index)
