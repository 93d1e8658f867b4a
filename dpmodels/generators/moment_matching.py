"""Fit a mixture of product distributions to the moments of every class, by the closed form of its own moments.

    min over the mixture   sum_class  | M - w P'P / K |^2 (measured pairs of columns)  +  | m - w mean_k p_k |^2

M and m are the released (denoised) second and first moments as shares of all records, w the class's share and P the
[K, D] component probabilities. Full batch and deterministic: a resumed run continues exactly where the killed one was.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dpmodels.generators.checkpoint import Part
from dpmodels.generators.loop import LoopSpec, Progress, TrainingLoop
from dpmodels.late import Tensor, torch

LEAST_COMPONENTS = 64
"""Components a class is left with, however many classes there are."""
STRIP_CELLS = 64
"""Cells whose moments with all later cells are computed at once: half the work where all columns are paired, and less
where a column is paired with a few only."""


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
    symmetric and denoised; noisy: the same with their noise, though the same one-way sums; noise: the standard
    deviation of the noise of an entry; sizes: cells of each column; reach: columns further apart were not measured
    together.
    """

    share: Tensor
    one_way: Tensor
    two_way: Tensor
    noisy: Tensor
    noise: float
    sizes: list[int]
    reach: int

    def strips(self) -> Iterator["Strip"]:
        """Cut the pairs of cells into strips, each pair once."""
        column = torch.arange(len(self.sizes)).repeat_interleave(torch.tensor(self.sizes))
        for rows in torch.split(torch.arange(len(column)), STRIP_CELLS):
            later = column[None, :] - column[rows, None]
            measured = (later > 0) & (later <= self.reach)
            if measured.any():
                columns = measured.any(dim=0).nonzero().flatten()
                start, stop = int(columns[0]), int(columns[-1]) + 1
                mask = measured[:, start:stop].to(torch.float32)
                yield Strip(slice(int(rows[0]), int(rows[-1]) + 1), slice(start, stop), mask)


@dataclass(frozen=True)
class Strip:
    """Some cells and all later cells that they were measured with. Shapes: mask [rows, columns] of 0 and 1."""

    rows: slice
    columns: slice
    mask: Tensor


class MomentMatching(TrainingLoop):
    """The mixture and its optimizer."""

    def __init__(self, target: MomentTarget, spec: MixtureSpec, *, seed: int, device: str) -> None:
        from dpmodels.generators.mixture_network import MixtureNetwork

        super().__init__(spec)
        self.spec = spec
        classes = len(target.share)
        self.components = max(LEAST_COMPONENTS, spec.components // classes)
        log_shares = (target.one_way / target.share[:, None].clamp_min(1e-9)).clamp_min(1e-5).log()
        self.mixture = MixtureNetwork(log_shares, target.sizes, self.components, spec.directions, seed).to(device)
        self.optimizer = torch.optim.Adam(self.mixture.parameters(), lr=spec.learning_rate)
        self.share, self.one_way = target.share.to(device), target.one_way.to(device)
        self.two_way = target.two_way.to(device)
        self.strips = [replace(strip, mask=strip.mask.to(device)) for strip in target.strips()]

    def run(self, checkpoint: Path | None, progress: Progress | None = None) -> Tensor:
        """Train to the end, from the checkpoint if there is one. Shapes: returns [classes, K, D] on the CPU."""
        self.train(checkpoint, progress)
        with torch.no_grad():
            probabilities: Tensor = self.mixture()
        return probabilities.cpu()

    def loss(self) -> Tensor:
        """Return the squared distance between released and modeled moments."""
        loss = torch.zeros((), device=self.share.device)
        for w, m, second, p in zip(self.share, self.one_way, self.two_way, self.mixture(), strict=True):
            loss = loss + (w * p.mean(dim=0) - m).square().sum()
            for strip in self.strips:
                gram = p[:, strip.rows].T @ p[:, strip.columns] * (w / self.components)
                loss = loss + (strip.mask * (gram - second[strip.rows, strip.columns])).square().sum()
        return loss

    def descend(self) -> Tensor:
        """Take one step of Adam on the closed-form loss."""
        loss = self.loss()
        self.improve(self.optimizer, self.spec.learning_rate, loss)
        return loss.detach()

    def parts(self) -> Mapping[str, Part]:
        """Name the mixture and its optimizer."""
        return {"mixture": self.mixture, "optimizer": self.optimizer}
