"""Per-record gradients by two ways, for a convolutional network: mapped by torch.func, and collected by Opacus' hooks.

Also asks the machine whether blocks of either objective are the same bits wherever a record lies.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from opacus.grad_sample import GradSampleModule
from torch import Tensor, nn

from benchmarks.common import Table, parse, report
from dpmodels.mechanisms.dp_sgd.formed import FormedGradients
from dpmodels.mechanisms.dp_sgd.places import alike_everywhere


class Critic(nn.Module):
    """A convolutional critic of 28 by 28 images; with a penalty, as in WGAN-GP, on its slope at the record."""

    normals = (0,)

    def __init__(self, penalty: bool) -> None:
        super().__init__()
        layers = nn.Conv2d(1, 16, 5, stride=2), nn.SiLU(), nn.Conv2d(16, 32, 5, stride=2), nn.SiLU()
        self.net, self.penalty = nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 1)), penalty

    def forward(self, x: Tensor, xi: Tensor) -> Tensor:
        """Return one loss a record."""
        loss: Tensor = self.net(x)[:, 0]
        if self.penalty:
            slope = torch.func.grad(lambda images: self.net(images).sum())(x)
            loss = loss + 10 * ((slope.square().sum(dim=(1, 2, 3)) + 1e-12).sqrt() - 1) ** 2
        return loss


def gradients(repeats: int) -> Table:
    """Time blocks of 256 images by turns."""
    x, xi = torch.randn(256, 1, 28, 28), torch.zeros(256, 0)
    hooked = GradSampleModule(Critic(penalty=False).net, loss_reduction="sum")

    def by_hooks() -> None:
        hooked(x.requires_grad_()).sum().backward()
        hooked.zero_grad()

    ways: dict[str, Callable[[], object]] = {"Opacus' hooks": by_hooks}
    table = Table("per-record gradients of 256 images, ms, medians", ["way", "ms", "same bits in any place"], digits=1)
    alike = {"Opacus' hooks": "–"}
    for name, penalty in (("torch.func", False), ("torch.func, with a gradient penalty", True)):
        way = FormedGradients(Critic(penalty))
        alike[name] = str(alike_everywhere(way, (x,), len(x)))
        ways[name] = lambda way=way: way([x.detach(), xi])  # type: ignore[misc]
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            times[name].append(1000 * (time.perf_counter() - began))
    for name, own in times.items():
        table.add(name, float(np.median(own[2:])), alike[name])
    return table


def main() -> None:
    args = parse(__doc__)
    report("dp_sgd", [gradients(8 if args.quick else 40)], (), args)


if __name__ == "__main__":
    main()
