"""Per-record gradients by two ways, for a convolutional network: mapped by torch.func, and collected by Opacus' hooks.

And what a private step of a critic with a gradient penalty costs beside the same step without privacy: images by
vectors, table rows by vectors and by what goes through linear layers. The hooks of Opacus are tried on a penalty too.

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
from dpmodels.mechanisms.dp_sgd.gradients import RecordGradients
from dpmodels.mechanisms.dp_sgd.groups import ClipGroups
from dpmodels.mechanisms.dp_sgd.noise import rounded_gaussian
from dpmodels.mechanisms.dp_sgd.objective import Gradients
from dpmodels.mechanisms.dp_sgd.places import alike_everywhere
from dpmodels.mechanisms.dp_sgd.products import slope
from dpmodels.mechanisms.dp_sgd.randomness import KeyStream


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
            steep = slope(self.net, x)
            loss = loss + 10 * ((steep.square().sum(dim=(1, 2, 3)) + 1e-12).sqrt() - 1) ** 2
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
    table.add("Opacus' hooks, with a gradient penalty", _hooked_penalty(x.detach()), "–")
    return table


def _hooked_penalty(x: Tensor) -> str:
    """Return what becomes of a penalty under hooks, which expect to be passed backward once for each time forward."""
    net, images = GradSampleModule(Critic(penalty=False).net, loss_reduction="sum"), x.clone().requires_grad_()
    try:
        (steep,) = torch.autograd.grad(net(images).sum(), images, create_graph=True)
        (steep.flatten(1).norm(dim=1) - 1).square().sum().backward()
    except (IndexError, RuntimeError, ValueError) as error:
        return f"fails: {error}"
    return "not compared"


class Judge(nn.Module):
    """A critic of table rows, of linear layers, with the penalty of WGAN-GP."""

    normals = (0,)

    def __init__(self, width: int = 110, hidden: int = 256) -> None:
        super().__init__()
        sizes = nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1)
        self.net = nn.Sequential(*sizes)

    def forward(self, x: Tensor, xi: Tensor) -> Tensor:
        """Return one loss a record."""
        steepness = slope(self.net, x).square().sum(dim=1)
        return self.net(x)[:, 0] + 10 * ((steepness + 1e-12).sqrt() - 1) ** 2


def steps(repeats: int) -> Table:
    """Time the parts of a private step of 256 records, and the same step without privacy, by turns."""
    table = Table(
        "a step of 256 records with a gradient penalty, ms, medians",
        ["critic", "way", "plain", "gradients", "clip and round", "noise", "private / plain", "records / s, private"],
        digits=1,
    )
    images, rows = torch.randn(256, 1, 28, 28), torch.randn(256, 110)
    cases: list[tuple[str, nn.Module, Tensor, type[Gradients]]] = [
        ("convolutions, 28 x 28", Critic(penalty=True), images, FormedGradients),
        ("110-256-256-1", Judge(), rows, FormedGradients),
        ("110-256-256-1", Judge(), rows, RecordGradients),
    ]
    for name, objective, x, way in cases:
        times = np.median([_parts(objective, x, way, step) for step in range(repeats)][1:], axis=0)
        private = float(times[1:].sum())
        table.add(name, way.__name__, *map(float, times), private / float(times[0]), 256e3 / private)
    return table


def _parts(objective: nn.Module, x: Tensor, way: type[Gradients], step: int) -> list[float]:
    """Return the milliseconds of a plain gradient and of the parts of a private one."""
    xi, weights, gradients = torch.zeros(256, 0), list(objective.parameters()), way(objective)
    groups, usable = ClipGroups.one(sum(p.numel() for p in weights), 1.0), torch.ones(256, dtype=torch.bool)
    marks = [time.perf_counter()]
    torch.autograd.grad(objective(x, xi).sum(), weights)
    marks.append(time.perf_counter())
    _, held = gradients([x, xi])
    marks.append(time.perf_counter())
    gradients.clipped_sum(held, usable, groups, 0.99)
    marks.append(time.perf_counter())
    rounded_gaussian(KeyStream(bytes(32), step), groups.size, 2.0**20)
    marks.append(time.perf_counter())
    return [1000 * own for own in np.diff(marks)]


def main() -> None:
    args = parse(__doc__)
    repeats = 8 if args.quick else 40
    report("dp_sgd", [gradients(repeats), steps(repeats)], (), args)


if __name__ == "__main__":
    main()
