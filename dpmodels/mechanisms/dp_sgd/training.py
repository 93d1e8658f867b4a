"""The steps of DP-SGD: a batch, its lattice sum, noise, Adam; and a state from which they go on after a crash."""

import math
import warnings
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dpmodels.errors import ArtifactError, Unsuitable
from dpmodels.mechanisms.dp_sgd.adaptive import STEP_BITS, FollowingGroups
from dpmodels.mechanisms.dp_sgd.clipping import FACTOR_BITS
from dpmodels.mechanisms.dp_sgd.formed import FormedGradients
from dpmodels.mechanisms.dp_sgd.gradients import RecordGradients, made_of_linear_layers
from dpmodels.mechanisms.dp_sgd.groups import ClipGroups
from dpmodels.mechanisms.dp_sgd.hooked import HookedGradients
from dpmodels.mechanisms.dp_sgd.noise import rounded_gaussian
from dpmodels.mechanisms.dp_sgd.objective import Follower, Gradients, Objective
from dpmodels.mechanisms.dp_sgd.places import alike_everywhere
from dpmodels.mechanisms.dp_sgd.randomness import KEY_BYTES, KeyStream, record_normals
from dpmodels.mechanisms.dp_sgd.spec import Noise, Rows, SgdSpec
from dpmodels.privacy import Sensitive

FOLLOWER, GROUPS = "follower/", "groups/"
STATE_FORMAT = 2
"""Of ``DpSgd.tensors``; the first, whose noise and sums were floats, had no such mark."""


class DpSgd:
    """Trains an objective (objective.py), a module that returns one loss a row.

    One that trains linear layers alone is differentiated by what goes through them. Any other, and one that takes
    gradients by ``torch.func.grad``, which its attribute ``slopes`` says, is differentiated by a vector a record. So is
    one with a module that is ``hooked``, by the hooks of Opacus. ``gradients`` overrides this. Coordinates are grouped
    as ``spec`` says, unless ``groups`` are given, which stay.
    The batch is private, and so is everything about a step but the weights after it: nothing of it is logged.
    """

    def __init__(
        self,
        objective: nn.Module,
        spec: SgdSpec,
        noise: Noise,
        key: bytes,
        *,
        groups: ClipGroups | None = None,
        gradients: type[Gradients] | None = None,
    ) -> None:
        if not (0 < noise.multiplier < 2.0**30 and 0 < noise.records < math.inf and len(key) == KEY_BYTES):
            raise Unsuitable(f"DP-SGD cannot use {noise}; give positive, finite noise and a key of 32 bytes")
        self.spec, self.noise, self.key, self.step = spec, noise, key, 0
        self.gradients: Gradients = (gradients or way_of(objective))(objective)
        self.normals = cast(Objective, objective).normals
        self.parameters = self.gradients.parameters
        size = sum(p.numel() for p in self.parameters)
        self.bound, self.block = _bound(size), _block(spec, noise, self.gradients.most_rows)
        self.following = FollowingGroups(objective, spec, noise, self.bound, self.gradients.whole_tensors)
        if groups and groups.size != size:
            raise Unsuitable(f"the groups hold {groups.size} coordinates of {size}; put each into one group")
        if groups and (spec.groups, spec.bounds) != ("one", "fixed"):
            raise Unsuitable("groups were given and the plan forms groups or moves bounds; leave one of the two out")
        self.following.current = groups or self.following.current
        self.device = self.parameters[0].device
        self.follower = objective if isinstance(objective, Follower) else None
        self.mean = [p.detach().clone() for p in self.parameters]
        betas = spec.momentum, spec.steadiness
        self.adam = torch.optim.Adam(self.parameters, lr=spec.learning_rate, betas=betas, fused=True)

    @property
    def groups(self) -> ClipGroups:
        """Return the clip groups of the next step."""
        return self.following.current

    def train(self, rows: Sensitive[Rows]) -> Iterator[int]:
        """Take the steps that are left; yield the number of steps taken after each.

        Privacy: charges nothing itself; ``steps`` of SampledGaussian are the caller's.
        """
        data = rows.reveal()
        if len(data[0]) >= 2 ** (63 - 2 * FACTOR_BITS):
            raise Unsuitable("the rows are too many for their sum to fit into 64 bits; train on fewer than 2**25")
        if not alike_everywhere(self.gradients, data, self.block):
            warnings.warn("DP-SGD treats each record by itself here, for blocks are not the same bits", stacklevel=2)
            self.block = 1
        while self.step < self.spec.steps:
            stream = KeyStream(self.key, self.step)
            batch = stream.poisson_batch(len(data[0]), self.spec.sampling_probability)
            total = self._clipped_sum(data, batch)
            noisy = total + self._noise(stream, len(total))
            self._descend(noisy[: self.groups.size])
            self.step += 1
            self.following.follow(self.step, noisy)
            if self.follower:
                self.follower.follow(self.step)
            yield self.step

    def load_mean(self) -> None:
        """Set the objective's weights to their running mean: what is released."""
        with torch.no_grad():
            for parameter, mean in zip(self.parameters, self.mean, strict=True):
                parameter.copy_(mean)

    def tensors(self) -> dict[str, Tensor]:
        """Return everything a resumed training needs."""
        state = {"format": torch.tensor(STATE_FORMAT), "step": torch.tensor(self.step)}
        state |= {"key": torch.frombuffer(bytearray(self.key), dtype=torch.uint8)}
        for i, (parameter, mean) in enumerate(zip(self.parameters, self.mean, strict=True)):
            state |= {f"weight/{i}": parameter.detach(), f"mean/{i}": mean}
            state |= {f"adam/{i}/{name}": value for name, value in self.adam.state.get(parameter, {}).items()}
        state |= {GROUPS + name: value for name, value in self.following.tensors().items()}
        follower_tensors = self.follower.tensors() if self.follower else {}
        return state | {FOLLOWER + name: value for name, value in follower_tensors.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go back to where ``tensors`` was taken.

        Raises:
            ArtifactError: another version took them, whose steps are not this one's.
        """
        if int(tensors.get("format", torch.tensor(1))) != STATE_FORMAT:
            raise ArtifactError(
                "the unfinished draw was begun by another version, whose steps differ; resume it with that version,"
                " or start a new run"
            )
        self.step, self.key = int(tensors["step"]), bytes(tensors["key"].tolist())
        self.following.restore(_under(tensors, GROUPS))
        if self.follower:
            self.follower.restore(_under(tensors, FOLLOWER))
        for i, parameter in enumerate(self.parameters):
            with torch.no_grad():
                parameter.copy_(tensors[f"weight/{i}"])
            self.mean[i] = tensors[f"mean/{i}"].to(self.device)
            if moments := _under(tensors, f"adam/{i}/"):
                self.adam.state[parameter] = {
                    name: value if name == "step" else value.to(self.device) for name, value in moments.items()
                }

    def _clipped_sum(self, data: Rows, batch: NDArray[np.int64]) -> NDArray[np.int64]:
        """Add up the clipped gradients of a batch, flat, in whole steps, and behind them the counts of their groups.

        Privacy: whole units are added up and then rounded to steps, once: in each coordinate a record moves the sum by
            less than one step more or less than its own gradient. Counts are whole steps as they are.
        """
        size, half = self.groups.size, self.following.half
        total = torch.zeros(size + (len(self.groups.members) if half else 0), dtype=torch.int64, device=self.device)
        for start in range(0, len(batch), self.block):
            total += self._block_sum(data, batch[start : start + self.block])
        dropped = 2 * FACTOR_BITS - STEP_BITS
        steps: NDArray[np.int64] = total.cpu().numpy()
        steps[:size] = (steps[:size] + 2 ** (dropped - 1)) >> dropped
        steps[size:] *= half
        return steps

    def _block_sum(self, data: Rows, part: NDArray[np.int64]) -> Tensor:
        """Add up the gradients of a block in units; it is filled up with one of its rows, which adds nothing again."""
        rows = np.pad(part, (0, self.block - len(part)), mode="edge")
        normals = torch.from_numpy(record_normals(self.key, self.step, rows, math.prod(self.normals)))
        inputs = [tensor[torch.from_numpy(rows)] for tensor in data] + [normals.view(self.block, *self.normals)]
        losses, gradients = self.gradients([tensor.to(self.device) for tensor in inputs])
        usable = losses.isfinite() & (torch.arange(self.block, device=self.device) < len(part))
        return self.gradients.clipped_sum(gradients, usable, self.groups, self.bound)

    def _noise(self, stream: KeyStream, count: int) -> NDArray[np.int64]:
        """Draw the noise of a step, in whole steps: a sensitivity is 2**20 of them."""
        return rounded_gaussian(stream, count, math.ldexp(self.noise.multiplier, STEP_BITS))

    def _descend(self, noisy: NDArray[np.int64]) -> None:
        """Take one step along a noisy sum of gradients, over the released number's batch (post-processing)."""
        expected = self.spec.sampling_probability * self.noise.records
        gradient = torch.from_numpy(noisy * 2.0**-STEP_BITS) * (self.groups.units() / expected)
        parts = torch.split(gradient.float().to(self.device), [p.numel() for p in self.parameters])
        for parameter, part in zip(self.parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)
        for group in self.adam.param_groups:
            group["lr"] = self.spec.rate(self.step)
        self.adam.step()
        self.adam.zero_grad()
        with torch.no_grad():
            torch._foreach_lerp_(self.mean, list[Tensor](self.parameters), 1 - self.spec.average)


def way_of(objective: nn.Module) -> type[Gradients]:
    """Return how an objective is differentiated: by hooks, by exact products of linear layers alone, or as vectors."""
    if any(getattr(part, "hooked", False) for part in objective.modules()):
        return HookedGradients
    of_products = made_of_linear_layers(objective) and not getattr(objective, "slopes", False)
    return RecordGradients if of_products else FormedGradients


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _bound(parameters: int) -> float:
    """Return the clip norms that one record's lattice gradient may have: 1, less what rounding to steps can add.

    Raises:
        Unsuitable: rounding would take more than an eighth.
    """
    rounding = math.ldexp(math.isqrt(parameters) + 1, -STEP_BITS)
    if rounding > 1 / 8:
        raise Unsuitable(f"the objective has {parameters} weights, too many to be rounded; train fewer than 2**34")
    return 1 - rounding


def _block(spec: SgdSpec, noise: Noise, most_rows: int) -> int:
    """Return the rows of a block, public: the batch that is expected, and room to spare, in even parts.

    They are a multiple of 64, so that no library's loop over a block ends with fewer numbers than it takes at once.
    """
    expected, most = spec.sampling_probability * noise.records, min(spec.micro_batch, most_rows)
    room = expected + 2 * math.sqrt(expected)
    return 64 * max(1, min(most // 64, math.ceil(room / math.ceil(room / most) / 64)))
