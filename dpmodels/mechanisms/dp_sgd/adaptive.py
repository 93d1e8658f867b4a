"""Groups and bounds that follow a training: a quantile that is counted with noise, or what was released anyway.

    quantile    C_g <- C_g exp(-r (b_g - t)),  b_g = 1/2 + (noisy count) / (q n),   clipped to [0, 1]
    noised      C_g^2 = C^2 in shares of |released gradient of g|^2, less the noise that is known to be in it
    density     DBSCAN on log2 of the same sizes, of each output unit's weights or of each weight tensor

Privacy: post-processing. What is read here is what earlier steps released, noise included, and public parameters; the
    first groups and bounds are public. Given the releases of all steps before it, a step is the mechanism of groups.py
    with fixed groups and bounds, which is what adaptive composition of SampledGaussian(sigma, q) asks for.
Source: for quantiles, Andrew, Thakkar, McMahan and Ramaswamy, Differentially Private Learning with Adaptive Clipping,
    2021. There counts have noise of their own; here they are coordinates of the one vector, and so the charge stays.

A bound stays within 2**20 of the one it began with, both ways, whatever the noise does.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dpmodels.errors import Unsuitable
from dpmodels.mechanisms.dp_sgd.density import clusters, weight_units
from dpmodels.mechanisms.dp_sgd.groups import ClipGroups, layer_groups
from dpmodels.mechanisms.dp_sgd.spec import Noise, SgdSpec

STEP_BITS = 20
"""The sum is released in whole numbers of 2**-20 of what its noise is measured in, by default the clip norm."""
_FARTHEST = 2.0**20


class FollowingGroups:
    """The clip groups of each step, which follow from the steps before it.

    Attributes:
        current: the groups of the next step; half: lattice steps that a record adds to a count, or takes from it.
    """

    def __init__(self, objective: nn.Module, spec: SgdSpec, noise: Noise, bound: float, whole_tensors: bool) -> None:
        self.spec, self.noise, self.bound = spec, noise, bound
        self._share = spec.quantile_share if spec.bounds == "quantile" else 0.0
        self._units, self._biases = weight_units(objective, whole_tensors) if spec.groups == "density" else ([], [])
        if spec.groups == "density" and not self._units:
            raise Unsuitable("the objective trains no weights whose groups could be found; name another kind of groups")
        self._gathers = spec.bounds == "noised" or spec.groups == "density"
        self._begin(self._first_members(objective))
        size = self.current.size if self._gathers else 0
        self._excess = torch.zeros(size, dtype=torch.float64)
        self._variance = torch.zeros(size, dtype=torch.float64)

    @property
    def half(self) -> int:
        """Return what one record adds to the count of each group, or takes, in lattice steps; 0 without counts."""
        return self.current.count_steps(self.bound, STEP_BITS)

    def follow(self, step: int, noisy: NDArray[np.int64]) -> None:
        """Move groups and bounds by what step number ``step`` released: the gradient, and behind it the counts."""
        if self._gathers:
            self._gather(noisy[: self.current.size])
        if self.spec.bounds == "quantile":
            self._move_to_quantile(noisy[self.current.size :])
        if self._gathers and step % self.spec.form_every == 0:
            self._form()

    def tensors(self) -> dict[str, Tensor]:
        """Return what a resumed training needs: nothing where groups and bounds stay as they are."""
        if not self._gathers and self.spec.bounds == "fixed":
            return {}
        labels = torch.empty(self.current.size, dtype=torch.int32)
        for label, members in enumerate(self.current.members):
            labels[members] = label
        norms = torch.tensor(self.current.clip_norms, dtype=torch.float64)
        return {"labels": labels, "clip_norms": norms, "excess": self._excess, "variance": self._variance}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go back to where ``tensors`` was taken."""
        if tensors:
            norms = tensors["clip_norms"].tolist()
            members = [torch.nonzero(tensors["labels"] == label)[:, 0] for label in range(len(norms))]
            self.current = ClipGroups.of(members, norms, scaled=True, share=self._share)
            self._excess, self._variance = tensors["excess"].clone(), tensors["variance"].clone()

    def _first_members(self, objective: nn.Module) -> list[Tensor]:
        """Return the groups of public structure that a training begins with."""
        if self.spec.groups.startswith("layers"):
            return layer_groups(objective, biases_apart=self.spec.groups == "layers-biases")
        if self.spec.groups == "density":
            return [torch.cat(self._units), *self._biases]
        return [torch.arange(sum(p.numel() for p in objective.parameters() if p.requires_grad))]

    def _begin(self, members: Sequence[Tensor]) -> None:
        each = self.spec.clip_norm / math.sqrt(len(members))
        scaled = len(members) > 1
        self.current = ClipGroups.of(members, [each] * len(members), scaled=scaled, share=self._share)

    def _bounded(self, norms: Sequence[float]) -> ClipGroups:
        least, most = self.spec.clip_norm / _FARTHEST, self.spec.clip_norm * _FARTHEST
        return self.current.bounded([min(most, max(least, norm)) for norm in norms])

    def _move_to_quantile(self, counts: NDArray[np.int64]) -> None:
        expected = self.spec.sampling_probability * self.noise.records
        within = np.clip(0.5 + counts / (2 * self.half * expected), 0, 1)
        moved = np.exp(-self.spec.bound_rate * (within - self.spec.quantile))
        self.current = self._bounded(
            [norm * float(by) for norm, by in zip(self.current.clip_norms, moved, strict=True)]
        )

    def _gather(self, gradient: NDArray[np.int64]) -> None:
        """Add a released gradient's squares, less the squares that its noise has on average."""
        units, sigma = self.current.units(), self.noise.multiplier
        squares = torch.from_numpy(np.ldexp(gradient.astype(np.float64), -STEP_BITS)).square()
        self._excess += (squares - sigma**2) * units.square()
        self._variance += sigma**2 * units.square()

    def _form(self) -> None:
        """Form groups and bounds from what was gathered, and begin to gather anew."""
        spec = self.spec
        if spec.groups == "density":
            shares = self._shares_of_coordinates()
            unit_clusters = clusters(self._units, self._sizes(), spec.density_radius, spec.density_points)
            self._begin([*unit_clusters, *self._biases])
            if spec.bounds == "quantile":
                self.current = self._bounded(
                    [math.sqrt(float(shares[members].sum())) for members in self.current.members]
                )
        if spec.bounds == "noised":
            energy = [self._energy(members) for members in self.current.members]
            self.current = self._bounded(
                [spec.clip_norm * math.sqrt(group_energy / sum(energy)) for group_energy in energy]
            )
        self._excess.zero_(), self._variance.zero_()

    def _shares_of_coordinates(self) -> Tensor:
        """Return C_g^2 in equal parts for the coordinates of each group."""
        shares = torch.empty(self.current.size, dtype=torch.float64)
        for members, norm in zip(self.current.members, self.current.clip_norms, strict=True):
            shares[members] = norm**2 / len(members)
        return shares

    def _energy(self, members: Tensor) -> float:
        """Return the squared size of a group's gradients, and at least twice the error that noise leaves in it."""
        return max(float(self._excess[members].sum()), self._error(members))

    def _error(self, members: Tensor) -> float:
        return 2 * math.sqrt(2 / self.spec.form_every) * float(self._variance[members].norm())

    def _sizes(self) -> NDArray[np.float64]:
        """Return log2 of the root mean square of each unit's gradients; what noise hides in any unit counts as none."""
        floor = max(self._error(unit) / len(unit) for unit in self._units)
        return np.array([math.log2(max(float(self._excess[unit].mean()), floor)) / 2 for unit in self._units])
