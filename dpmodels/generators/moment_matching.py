"""Fit a mixture of product distributions to the moments of every class, by the closed form of its own moments.

    min over the mixture   sum_class  | M - w P'P / K |^2 (measured pairs of columns)  +  | m - w mean_k p_k |^2
                           each pair of columns times its weight, which evens out the noise
                           and of joint tables the squared distance of their interactions, likewise
    until noise explains how far it is off, and then, of pairs, what it lacks of relations that stand out of the noise

M and m are the released (denoised) second and first moments as shares of all records, w the class's share and P the
[K, D] component probabilities. Full batch and deterministic: a resumed run continues exactly where the killed one was.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmodels.generators.checkpoint import Part
from dpmodels.generators.denoise import doubly_centered, unmet
from dpmodels.generators.loop import LoopSpec, Progress, TrainingLoop
from dpmodels.late import Tensor, torch

LEAST_COMPONENTS = 64
"""Components a class is left with, however many classes there are."""
MORE = 4
"""How many times as many components there may be where noise is small."""
LOOK_EVERY = 10
"""Steps between two looks at how close the fit is."""
BETAS = (0.9, 0.9)
"""How long Adam remembers. Gradients shrink a hundredfold within the first steps, and a longer memory of their squares
(.999) would hold the later steps up."""
STRONG_STEPS = 60
"""Steps for strong relations, unless set."""
STRIP_CELLS = 64
"""Cells whose moments with all later cells are computed at once: half the work where all columns are paired, and less
where a column is paired with a few only."""


class MixtureSpec(LoopSpec):
    """Training hyper-parameters; none of them can change what was charged.

    Attributes:
        components: of all classes together, though at least ``LEAST_COMPONENTS`` each; up to ``MORE`` times as many
            where noise is so small that the moments show what each of them does, or a workload asks for some of them.
        directions: dimension of the smooth family that the components start in.
        steps: at most, if the fit does not come as close as noise explains before.
        cooling: the last steps, in which the learning rate falls to nothing.
        label_rows: rows of the fitted mixture that a model of their labels is fitted to, at most; 0 for none.
        strong_steps: further ones, for relations that stand out of the noise and that the fit has not met; 0 for none.
            Dumped only if set otherwise, as it is new.
        coupling: correlation of two numbers from which on values within their cells rise together; 1 for never.
        each_has_rows: whether no user is drawn without a row, as of one flat file; dumped only then, as it is new.
    """

    components: Annotated[int, Field(ge=1)] = 1000
    directions: Annotated[int, Field(ge=1)] = 20
    steps: Annotated[int, Field(ge=1)] = 1000
    learning_rate: Annotated[float, Field(gt=0)] = 0.05
    cooling: Annotated[int, Field(ge=1)] = 40
    strong_steps: Annotated[int, Field(ge=0, exclude_if=lambda steps: steps == STRONG_STEPS)] = STRONG_STEPS
    checkpoint_every: Annotated[int, Field(ge=1)] = 100
    label_rows: Annotated[int, Field(ge=0, le=2**24)] = 2**17
    coupling: Annotated[float, Field(ge=0.1, le=1)] = 0.5
    each_has_rows: Annotated[bool, Field(exclude_if=lambda each: not each)] = False


@dataclass(frozen=True)
class JointTarget:
    """The interactions in a joint table as shares of all records, float32.

    Attributes:
        cells: the cells of each column among all cells; sides: for each column the coefficients of its cells in the
            basis of the table. Shapes: [cells, m] a column.
        mask: 1 for what is an interaction; clean: denoised; noisy: as released. Shapes: [m_1, m_2, ...].
        noise: the standard deviation of the noise of each coefficient.
    """

    cells: tuple[slice, ...]
    sides: tuple[Tensor, ...]
    mask: Tensor
    clean: Tensor
    noisy: Tensor
    noise: float

    def to(self, device: str) -> "JointTarget":
        """Return the same on a device."""
        tensors = {name: getattr(self, name).to(device) for name in ("mask", "clean", "noisy")}
        return replace(self, sides=tuple(side.to(device) for side in self.sides), **tensors)

    def modeled(self, shares: Tensor, probabilities: Tensor) -> Tensor:
        """Return the coefficients of a mixture. Shapes: [classes], [classes, K, D] -> as ``clean``."""
        *first, last = (probabilities[..., cells] @ side for cells, side in zip(self.cells, self.sides, strict=True))
        product = first[0]
        for each in first[1:]:
            product = (product[..., :, None] * each[..., None, :]).flatten(2)
        table = torch.einsum("c,ckm,ckn->mn", shares / probabilities.shape[1], product, last)
        return self.mask * table.reshape(self.mask.shape)

    def misfit(self, shares: Tensor, probabilities: Tensor) -> float:
        """Return how far a mixture is from what was released, where 1 is what noise alone explains."""
        apart = float((self.modeled(shares, probabilities) - self.noisy).norm())
        return apart / (self.noise * math.sqrt(max(float(self.mask.sum()), 1.0))) if self.noise else math.inf


@dataclass(frozen=True)
class MomentTarget:
    """Moments as shares of all records, float32.

    Shapes: share [classes]; one_way [classes, D], each column summing to the class's share; two_way [classes, D, D],
    symmetric and denoised; noisy: the same with their noise, though the same one-way sums; noise: the standard
    deviation of the noise of an entry of weight 1; sizes: cells of each column; paired [F, F]: which columns were
    measured together; weights [F, F]: how many times less noise the entries of two columns have, 1 without them;
    tolerance: part of the noise's norm that a fit may be off; joint: what was released of joint tables; together: how
    many times as much noise as a class's the tables of all classes together have.
    """

    share: Tensor
    one_way: Tensor
    two_way: Tensor
    noisy: Tensor
    noise: float
    sizes: list[int]
    paired: NDArray[np.bool_]
    weights: Tensor | None = None
    tolerance: float = 1.0
    joint: tuple[JointTarget, ...] = ()
    together: float = 1.0

    @property
    def noise_norm(self) -> float:
        """Return the expected norm of the noise in the noisy second moments times their weights, or what is tolerated.

        The rows and columns of a table have known sums.
        """
        free = np.array(self.sizes) - 1
        pairs = int((np.outer(free, free) * np.triu(self.paired)).sum())
        return self.tolerance * self.noise * math.sqrt(len(self.share) * max(pairs, 1))

    def with_relations(self, probabilities: Tensor) -> "MomentTarget | None":
        """Return what a mixture has already, plus what it lacks of relations that stand out of the noise.

        They are those of all classes together, and each class gets its share: where one class alone came closer, how
        columns go together would tell classes apart. Nothing where the mixture lacks none, or where tables were not
        measured entry by entry. Shapes: [classes, K, D], on the CPU.
        """
        if self.tolerance != 1 or not self.noise:
            return None
        second = self.share[:, None, None] * (probabilities.transpose(1, 2) @ probabilities) / probabilities.shape[1]
        parts = self.share / self.share.sum().clamp_min(1e-9)
        alone = self.one_way.T @ (self.one_way / self.share[:, None].clamp_min(1e-9))
        tables = [(each.sum(dim=0) - alone).double().numpy() for each in (self.noisy, self.two_way, second)]
        blocks, lacks = [slice(*each) for each in pairwise(np.cumsum([0, *self.sizes]).tolist())], False
        for i, j in np.argwhere(np.triu(self.paired)):
            noise = self.together * self.noise / (1.0 if self.weights is None else float(self.weights[i, j]))
            rows, columns = blocks[i], blocks[j]
            released, clean, modeled = (doubly_centered(each[rows, columns]) for each in tables)
            more = unmet(released, clean, modeled, noise)
            if more.any():
                lacks = True
                added = parts[:, None, None] * torch.from_numpy(more).float()
                second[:, rows, columns] += added
                second[:, columns, rows] += added.transpose(1, 2)
        joint = tuple(replace(each, clean=each.modeled(self.share, probabilities)) for each in self.joint)
        return replace(self, two_way=second, joint=joint) if lacks else None

    def strips(self) -> Iterator["Strip"]:
        """Cut the pairs of cells into strips, each pair once."""
        later = torch.from_numpy(np.triu(self.paired))
        column = torch.arange(len(self.sizes)).repeat_interleave(torch.tensor(self.sizes))
        for rows in torch.split(torch.arange(len(column)), STRIP_CELLS):
            measured = later[column[rows]][:, column]
            if measured.any():
                columns = measured.any(dim=0).nonzero().flatten()
                start, stop = int(columns[0]), int(columns[-1]) + 1
                mask = measured[:, start:stop].to(torch.float32)
                if self.weights is not None:
                    mask = mask * self.weights[column[rows]][:, column[start:stop]]
                yield Strip(slice(int(rows[0]), int(rows[-1]) + 1), slice(start, stop), mask)


@dataclass(frozen=True)
class Strip:
    """Some cells and all later cells that they were measured with. Shapes: mask [rows, columns], 0 or the weight."""

    rows: slice
    columns: slice
    mask: Tensor


def components(noise: float, spec: MixtureSpec, weight: float = 1.0) -> int:
    """Return how many components a mixture has: the weight of each is at least two standard deviations of the noise.

    ``noise`` is the standard deviation of a second moment's noise, as a share of all records; ``weight`` is how many
    times less the noise of those is that a workload asks for, and so many times more components are the fewest.
    """
    number = spec.components if noise == 0 else round(min(1 / (2 * noise), MORE * spec.components))
    return max(round(min(weight, MORE) * spec.components), number)


class MomentMatching(TrainingLoop):
    """The mixture and its optimizer.

    What was released is the moments plus noise of a known size, and a mixture that is closer to them than the noise is
    imitates noise. So the training cools down and ends once the distance is what noise explains, whichever number of
    steps that takes: many where there are many records for each cell. (Morozov's discrepancy principle, 1966.)

    What all pairs are off by together may hide that a few strong relations are still too flat. So a training that ended
    before its last step goes on for ``strong_steps`` towards what those lack, and is held where it is in all else.
    """

    def __init__(self, target: MomentTarget, spec: MixtureSpec, *, seed: int, device: str) -> None:
        from dpmodels.generators.mixture_network import MixtureNetwork

        super().__init__(spec)
        self.spec = spec
        weight = 1.0 if target.weights is None else float(target.weights.max())
        noise = target.noise if target.tolerance == 1 else math.inf  # what is tolerated asks for no more components
        self.components = max(LEAST_COMPONENTS, components(noise, spec, weight) // len(target.share))
        log_shares = (target.one_way / target.share[:, None].clamp_min(1e-9)).clamp_min(1e-5).log()
        self.mixture = MixtureNetwork(log_shares, target.sizes, self.components, spec.directions, seed).to(device)
        self.optimizer = torch.optim.Adam(self.mixture.parameters(), lr=spec.learning_rate, betas=BETAS)
        self.target, self.device, self.cooling, self.goes_on_for_relations = target, device, spec.cooling, False
        self.share, self.one_way = target.share.to(device), target.one_way.to(device)
        self.noisy = target.noisy.to(device)
        self.strips = [replace(strip, mask=strip.mask.to(device)) for strip in target.strips()]
        self.noise = target.noise_norm
        self.aim(target)

    def aim(self, target: MomentTarget) -> None:
        """Fit to these pairs and joint tables from now on."""
        self.two_way = target.two_way.to(self.device)
        self.joint = [(each.to(self.device), target.noise / each.noise if each.noise else 1.0) for each in target.joint]

    def run(self, checkpoint: Path | None, progress: Progress | None = None) -> Tensor:
        """Train to the end, from the checkpoint if there is one. Shapes: returns [classes, K, D] on the CPU."""
        self.train(checkpoint, progress)
        steps = min(self.spec.strong_steps, self.spec.steps - self.end)
        relations = self.target.with_relations(self.probabilities()) if steps else None
        if relations:
            self.aim(relations)
            self.end, self.cooling, self.goes_on_for_relations = self.end + steps, steps, True
            self.train(None, progress)  # so few that a training that dies among them takes them all again
        return self.probabilities()

    def probabilities(self) -> Tensor:
        """Return those of all components. Shapes: [classes, K, D] on the CPU."""
        with torch.no_grad():
            probabilities: Tensor = self.mixture()
        return probabilities.cpu()

    @property
    def decay(self) -> float:
        """Return the part of the learning rate that is left: all of it until the training cools down."""
        return min(1.0, (self.end - self.step) / self.cooling)

    def loss(self) -> Tensor:
        """Return the squared distance between denoised and modeled moments."""
        p = self.mixture()
        first: Tensor = (self.share[:, None] * p.mean(dim=1) - self.one_way).square().sum()
        return first + self.distance(p, self.two_way) + self.joint_distance(p)

    def misfit(self) -> float:
        """Return how far the modeled second moments are from the noisy ones, where 1 is what noise alone explains.

        Of second moments and joint tables it is the worst: a joint table is few numbers beside those of all pairs.
        """
        with torch.no_grad():
            p = self.mixture()
            apart = float(self.distance(p, self.noisy).sqrt()) / self.noise if self.noise else math.inf
            return max([apart, *(each.misfit(self.share, p) for each, _ in self.joint)])

    def joint_distance(self, p: Tensor) -> Tensor:
        """Return the squared distance of the modeled interactions from the denoised ones, on the scale of pairs."""
        apart = [factor * (each.modeled(self.share, p) - each.clean) for each, factor in self.joint]
        return sum((each.square().sum() for each in apart), torch.zeros((), device=p.device))

    def distance(self, p: Tensor, two_way: Tensor) -> Tensor:
        """Return the squared distance of the modeled second moments of measured pairs from some others."""
        total = torch.zeros((), device=p.device)
        for share, second, probabilities in zip(self.share, two_way, p, strict=True):
            for strip in self.strips:
                gram = probabilities[:, strip.rows].T @ probabilities[:, strip.columns] * (share / self.components)
                total = total + (strip.mask * (gram - second[strip.rows, strip.columns])).square().sum()
        return total

    def descend(self) -> Tensor:
        """Take one step of Adam on the closed-form loss."""
        loss = self.loss()
        self.improve(self.optimizer, self.spec.learning_rate, loss)
        goes_on = self.end == self.spec.steps and not self.goes_on_for_relations
        if goes_on and self.step % LOOK_EVERY == 0 and self.misfit() <= 1:
            self.end = min(self.step + 1 + self.spec.cooling, self.end)
        return loss.detach()

    def parts(self) -> Mapping[str, Part]:
        """Name the mixture and its optimizer."""
        return {"mixture": self.mixture, "optimizer": self.optimizer}
