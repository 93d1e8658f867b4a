"""DP-SGD: Poisson batches, per-sample clipping by ghost norms (Opacus), Gaussian noise, the expected batch as divisor.

    B ~ each record with probability q        g = sum_{i in B} clip_C(grad loss_i) + N(0, (sigma C)^2 I)
    theta <- Adam(theta, g / (q n)),  n a released number of records

Privacy: unit one record, add or remove. It is in a batch with probability at most q and moves the sum of clipped
gradients by at most C in L2 norm: T steps are SampledGaussian(sigma, q) composed T times, which the caller's ledger
entry charges. Everything the step does with g, the mean over steps included, is post-processing. A loss with
randomness of its own is averaged over several draws of it inside the sample's gradient, so before the clip.

Randomness: AES-256 in counter mode under a key of 32 bytes from the system, one counter block range a step. It is as
good as the cipher, and a step that is repeated after a crash draws what it drew before.

What is not exact: gradients are float32 and noise is a rounded real number, unlike everywhere else in the library. The
low bits of g could in theory tell neighbours apart (Mironov 2012); nobody sees g itself, only weights after hundreds of
steps, rounded to 2**-24. Clipping leaves a relative 2**-10, far more than the float32 norms are off by.
"""

import secrets
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from dpmodels.errors import InvalidArgument
from dpmodels.privacy import Sensitive

KEY_BYTES = 32
_MARGIN = 1 - 2.0**-10

Rows = tuple[Tensor, ...]
"""Tensors with one row a record; they are handed to the objective batch by batch."""


class SgdSpec(BaseModel):
    """Public parameters of DP-SGD; part of the plan.

    Attributes:
        sampling_probability: of each record in each step.
        steps: in all; an epoch is ``1 / sampling_probability`` of them.
        clip_norm: L2 norm that the gradient of one record is clipped to.
        learning_rate: of Adam, falling to a tenth along a cosine.
        average: share of the older weights in the running mean that is released.
        micro_batch: rows differentiated at once; bounds memory and changes nothing else.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    sampling_probability: Annotated[float, Field(ge=1e-6, le=0.5)] = 0.02
    steps: Annotated[int, Field(ge=1, le=10**6)] = 600
    clip_norm: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 2e-3
    average: Annotated[float, Field(ge=0, lt=1)] = 0.98
    micro_batch: Annotated[int, Field(ge=1)] = 4096

    @property
    def epoch(self) -> int:
        """Count the steps after which each record was in one batch, as expected."""
        return max(1, round(1 / self.sampling_probability))


class KeyStream:
    """The random numbers of one step."""

    def __init__(self, key: bytes, step: int) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES256
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        self._encryptor = Cipher(AES256(key), CTR(step.to_bytes(8) + bytes(8))).encryptor()

    def words(self, count: int) -> NDArray[np.uint32]:
        """Return uniform 32-bit words."""
        return np.frombuffer(self._encryptor.update(bytes(4 * count)), dtype="<u4")

    def seed(self) -> int:
        """Return a seed for randomness that protects nothing, such as the latent draws of a loss."""
        return int(self.words(1)[0])

    def poisson_batch(self, rows: int, probability: float) -> NDArray[np.int64]:
        """Return who is in the batch: each record by itself, with ``probability`` rounded down to 2**-32."""
        return np.flatnonzero(self.words(rows) < np.uint32(int(probability * 2.0**32)))

    def normal(self, count: int) -> NDArray[np.float64]:
        """Return standard normal numbers by Box and Muller's method from 53-bit uniforms; none lies beyond 8.6."""
        pairs = (count + 1) // 2
        words = np.frombuffer(self._encryptor.update(bytes(16 * pairs)), dtype="<u8") >> np.uint64(11)
        uniform = np.ldexp(words.astype(np.float64), -53)
        radius, angle = np.sqrt(-2 * np.log(1 - uniform[:pairs])), 2 * np.pi * uniform[pairs:]
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]


def new_key() -> bytes:
    """Return a key from the system's randomness."""
    return secrets.token_bytes(KEY_BYTES)


@dataclass(frozen=True)
class Noise:
    """What is charged: sigma (noise stddev over clip norm), and a released number of records to divide by."""

    multiplier: float
    records: float


class DpSgd:
    """Trains an objective: a module whose ``forward(*rows, randomness)`` returns one loss a row, made of linear layers.

    The batch is private, and so is everything about a step but the weights after it: nothing of it is logged.
    """

    def __init__(self, objective: nn.Module, spec: SgdSpec, noise: Noise, key: bytes) -> None:
        from opacus.grad_sample import GradSampleModuleFastGradientClipping

        if any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in objective.modules()):
            raise InvalidArgument("objective", "with batch normalisation", "treat every record by itself")
        if not (noise.multiplier > 0 and noise.records > 0 and len(key) == KEY_BYTES):
            raise InvalidArgument("noise", noise, "be positive, with a key of 32 bytes")
        self.spec, self.noise, self.key, self.step = spec, noise, key, 0
        self.wrapped = GradSampleModuleFastGradientClipping(
            objective, loss_reduction="sum", max_grad_norm=spec.clip_norm * _MARGIN
        )
        self.wrapped.NORM_SAMPLERS = {nn.Linear: _linear_norms}
        self.parameters = [p for p in objective.parameters() if p.requires_grad]
        self.device = self.parameters[0].device
        self.mean = [p.detach().clone() for p in self.parameters]
        self.adam = torch.optim.Adam(self.parameters, lr=spec.learning_rate)

    def train(self, rows: Sensitive[Rows]) -> Iterator[int]:
        """Take the steps that are left; yield the number of steps taken after each.

        Privacy: charges nothing itself; ``steps`` of SampledGaussian are the caller's.
        """
        data = rows.reveal()
        while self.step < self.spec.steps:
            stream = KeyStream(self.key, self.step)
            batch = stream.poisson_batch(len(data[0]), self.spec.sampling_probability)
            total = self._clipped_sum(data, batch, stream.seed())
            self._descend(total + self._noise(stream, len(total)))
            self.step += 1
            yield self.step

    def load_mean(self) -> None:
        """Set the objective's weights to their running mean: what is released."""
        with torch.no_grad():
            for parameter, mean in zip(self.parameters, self.mean, strict=True):
                parameter.copy_(mean)

    def tensors(self) -> dict[str, Tensor]:
        """Return everything a resumed training needs."""
        state = {"step": torch.tensor(self.step), "key": torch.frombuffer(bytearray(self.key), dtype=torch.uint8)}
        for i, (parameter, mean) in enumerate(zip(self.parameters, self.mean, strict=True)):
            state |= {f"weight/{i}": parameter.detach(), f"mean/{i}": mean}
            state |= {f"adam/{i}/{name}": value for name, value in self.adam.state.get(parameter, {}).items()}
        return state

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go back to where ``tensors`` was taken."""
        self.step, self.key = int(tensors["step"]), bytes(tensors["key"].tolist())
        for i, parameter in enumerate(self.parameters):
            prefix = f"adam/{i}/"
            with torch.no_grad():
                parameter.copy_(tensors[f"weight/{i}"])
            self.mean[i] = tensors[f"mean/{i}"].to(self.device)
            own = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
            if own:
                self.adam.state[parameter] = {
                    name: value if name == "step" else value.to(self.device) for name, value in own.items()
                }

    def _clipped_sum(self, data: Rows, batch: NDArray[np.int64], seed: int) -> Tensor:
        """Add up the clipped gradients of a batch, flat; zero for an empty one."""
        randomness = torch.Generator(self.device).manual_seed(seed)
        total = [torch.zeros_like(p) for p in self.parameters]
        for part in torch.split(torch.from_numpy(batch), self.spec.micro_batch):
            with warnings.catch_warnings():  # rows need no gradient, and the hooks of the first layer say so
                warnings.filterwarnings("ignore", "Full backward hook is firing")
                self._backward_twice(data, part, randomness)
            for each, parameter in zip(total, self.parameters, strict=True):
                each += 0.0 if parameter.grad is None else parameter.grad
            self.adam.zero_grad()
        return torch.cat([each.flatten() for each in total]).double()

    def _backward_twice(self, data: Rows, part: Tensor, randomness: torch.Generator) -> None:
        """Leave the sum of clipped gradients in the parameters: once for the norms, once with the losses scaled."""
        if not len(part):
            return
        losses = self.wrapped(*(tensor[part].to(self.device) for tensor in data), randomness)
        torch.autograd.backward(losses.sum(), retain_graph=True)
        self.adam.zero_grad()
        finite = self.wrapped.get_norm_sample().isfinite() & losses.isfinite()
        if not finite.all():
            return self._backward_twice(data, part[finite.cpu()], randomness)
        coefficients = self.wrapped.get_clipping_coef().to(losses.dtype)
        self.wrapped.disable_hooks()
        torch.autograd.backward((coefficients * losses).sum())
        self.wrapped.enable_hooks()

    def _noise(self, stream: KeyStream, count: int) -> Tensor:
        stddev = self.noise.multiplier * self.spec.clip_norm
        return torch.from_numpy(stddev * stream.normal(count)).to(self.device)

    def _descend(self, noisy: Tensor) -> None:
        """Take one step along a noisy sum of gradients (post-processing)."""
        gradient = (noisy / (self.spec.sampling_probability * self.noise.records)).float()
        for parameter, part in zip(
            self.parameters, torch.split(gradient, [p.numel() for p in self.parameters]), strict=True
        ):
            parameter.grad = part.view_as(parameter)
        for group in self.adam.param_groups:
            group["lr"] = self.spec.learning_rate * (0.55 + 0.45 * np.cos(np.pi * self.step / self.spec.steps))
        self.adam.step()
        self.adam.zero_grad()
        with torch.no_grad():
            for mean, parameter in zip(self.mean, self.parameters, strict=True):
                mean.lerp_(parameter, 1 - self.spec.average)


def _linear_norms(layer: nn.Linear, activations: list[Tensor], backprops: Tensor) -> dict[Tensor, Tensor]:
    """Return the gradient norm of each record, whose rows a_l lead to g_l; none of the gradients is ever formed.

        || sum_l g_l a_l' ||^2 = sum_{k,l} (g_k . g_l) (a_k . a_l)

    Shapes: a [B, ..., in], g [B, ..., out] -> [B] for weight and for bias.
    """
    a, g = (rows.double().reshape(len(rows), -1, rows.shape[-1]) for rows in (activations[0], backprops))
    norms = {layer.weight: ((g @ g.mT) * (a @ a.mT)).sum(dim=(1, 2)).clamp(min=0).sqrt()}
    return norms if layer.bias is None else {**norms, layer.bias: g.sum(dim=1).norm(dim=1)}
