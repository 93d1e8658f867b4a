"""Fit a mixture of product distributions to the moments of every class, by the closed form of its own moments.

    min over the mixture   sum_class  1/2 | M - w P'P / K |^2 (pairs of different columns)  +  | m - w mean_k p_k |^2

M and m are the released (denoised) second and first moments as shares of all records, w the class's share and P the
[K, D] component probabilities. Full batch and deterministic: a resumed run continues exactly where the killed one was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from dpmodels.generators.checkpoint import Part
from dpmodels.generators.loop import LoopSpec, Progress, TrainingLoop
from dpmodels.generators.mixture import Mixture

LEAST_COMPONENTS = 64
"""Components a class is left with, however many classes there are."""


class MixtureSpec(LoopSpec):
    """Training hyper-parameters; none of them can change what was charged.

    Attributes:
        components: of all classes together, though at least ``LEAST_COMPONENTS`` each.
        directions: dimension of the smooth family that the components start in.
    """

    components: Annotated[int, Field(ge=1)] = 1000
    directions: Annotated[int, Field(ge=1)] = 20
    steps: Annotated[int, Field(ge=1)] = 300
    learning_rate: Annotated[float, Field(gt=0)] = 0.03
    checkpoint_every: Annotated[int, Field(ge=1)] = 100


@dataclass(frozen=True)
class MomentTarget:
    """Moments as shares of all records, float32.

    Shapes: share [classes]; one_way [classes, D], each column summing to the class's share; two_way [classes, D, D],
    symmetric, zero between two cells of one column; sizes: cells of each column.
    """

    share: Tensor
    one_way: Tensor
    two_way: Tensor
    sizes: list[int]

    def pairs(self) -> Tensor:
        """Mark the pairs of cells of different columns. Shapes: [D, D] of 0 and 1."""
        column = torch.arange(len(self.sizes)).repeat_interleave(torch.tensor(self.sizes))
        return (column[:, None] != column[None, :]).to(torch.float32)


class MomentMatching(TrainingLoop):
    """The mixture and its optimiser."""

    def __init__(self, target: MomentTarget, spec: MixtureSpec, *, seed: int, device: str) -> None:
        super().__init__(spec)
        self.spec = spec
        classes = len(target.share)
        self.components = max(LEAST_COMPONENTS, spec.components // classes)
        log_shares = (target.one_way / target.share[:, None].clamp_min(1e-9)).clamp_min(1e-5).log()
        self.mixture = Mixture(log_shares, target.sizes, self.components, spec.directions, seed).to(device)
        self.optimizer = torch.optim.Adam(self.mixture.parameters(), lr=spec.learning_rate)
        self.share, self.one_way = target.share.to(device), target.one_way.to(device)
        self.two_way, self.mask = target.two_way.to(device), target.pairs().to(device)

    def run(self, checkpoint: Path, progress: Progress | None = None) -> Tensor:
        """Train to the end, from the checkpoint if there is one. Shapes: returns [classes, K, D] on the CPU."""
        self.train(checkpoint, progress)
        with torch.no_grad():
            probabilities: Tensor = self.mixture()
        return probabilities.cpu()

    def loss(self) -> Tensor:
        """Return the squared distance between released and modelled moments."""
        loss = torch.zeros((), device=self.share.device)
        for w, m, second, p in zip(self.share, self.one_way, self.two_way, self.mixture(), strict=True):
            gram = p.T @ p * (w / self.components)
            loss = loss + 0.5 * (self.mask * (gram - second)).square().sum() + (w * p.mean(dim=0) - m).square().sum()
        return loss

    def descend(self) -> Tensor:
        """Take one step of Adam on the closed-form loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.spec.learning_rate * self.decay
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()

    def parts(self) -> Mapping[str, Part]:
        """Name the mixture and its optimiser."""
        return {"mixture": self.mixture, "optimizer": self.optimizer}
