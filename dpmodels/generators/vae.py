"""The parts of a variational auto-encoder with a mixture of Gaussians as the prior of each class.

    L(x) = KL(q(z|x) || p(z|y)) - 1/L sum_l log p(x | z_l, y),    z_l = mean(x) + sigma(x) xi_l        (P3GM, Eq. 5)
    KL ~ -log sum_k pi_k exp(-KL(q || N_k))                          (Eq. 6, for a posterior of one component)

Latents are whitened: divided by a released spread. Nothing here draws noise; layers are linear, for DP-SGD clips them.
"""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpmodels.generators.heads import Head
from dpmodels.generators.networks import initialise, linear
from dpmodels.generators.operators.modules import OperatorModule
from dpmodels.generators.operators.network import OperatorPart
from dpmodels.generators.randomness import stream
from dpmodels.generators.sizes import VaeSpec
from dpmodels.statistics.component_moments import Mixture

LEAST_LOG_VARIANCE, MOST_LOG_VARIANCE = -8.0, 2.0


class Prior(nn.Module):
    """A mixture of Gaussians for each class. Shapes: [C, K], [C, K, d], [C, K, d, d] and the log determinant [C, K]."""

    log_shares: Tensor
    means: Tensor
    precisions: Tensor
    factors: Tensor

    def __init__(self, shares: Tensor, means: Tensor, covariances: Tensor) -> None:
        super().__init__()
        factors = torch.linalg.cholesky(covariances.double())
        self.register_buffer("log_shares", shares.log().float())
        self.register_buffer("means", means.float())
        self.register_buffer("precisions", torch.cholesky_inverse(factors).float())
        self.register_buffer("factors", factors.float())

    @classmethod
    def of(cls, mixture: Mixture, scale: Tensor) -> "Prior":
        """Whiten a released mixture."""
        shares, means, covariances = (torch.from_numpy(a) for a in (mixture.shares, mixture.means, mixture.covariances))
        return cls(shares, means / scale, covariances / (scale[:, None] * scale))

    @classmethod
    def standard(cls, classes: int, latent: int) -> "Prior":
        """Return the standard normal for every class."""
        covariances = torch.eye(latent).expand(classes, 1, latent, latent)
        return cls(torch.ones(classes, 1), torch.zeros(classes, 1, latent), covariances)

    @property
    def latent(self) -> int:
        """Count the coordinates of z."""
        return int(self.means.shape[-1])

    def divergence(self, mean: Tensor, log_variance: Tensor, y: Tensor) -> Tensor:
        """Return the divergence of each posterior from its class's mixture (Eq. 6). Shapes: [B, d], [B, d], [B]."""
        precisions = self.precisions[y]
        off = mean[:, None] - self.means[y]
        quadratic = ((precisions * off[:, :, None]).sum(dim=-1) * off).sum(dim=-1)
        trace = (precisions.diagonal(dim1=-2, dim2=-1) * log_variance.exp()[:, None]).sum(dim=-1)
        log_determinant = 2 * self.factors.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)[y]
        each = 0.5 * (trace + quadratic - self.latent + log_determinant - log_variance.sum(dim=1, keepdim=True))
        return -torch.logsumexp(self.log_shares[y] - each, dim=1)

    def sample(self, y: Tensor, randomness: torch.Generator) -> Tensor:
        """Draw z for each class. Shapes: [B] -> [B, d]."""
        k = torch.multinomial(self.log_shares.exp()[y], 1, generator=randomness)[:, 0]
        xi = torch.randn(len(y), self.latent, generator=randomness, device=y.device)
        return self.means[y, k] + torch.einsum("bij,bj->bi", self.factors[y, k], xi)


class Decoder(nn.Module):
    """z and the class to logits of cells, or to ink; ``base`` is a fixed linear start that the network adds to.

    Shapes: z [..., d], y [B] with B the first dimension of z -> [..., outputs].
    """

    base_weight: Tensor
    base_bias: Tensor

    def __init__(self, latent: int, classes: int, outputs: int, hidden: int) -> None:
        super().__init__()
        self.classes, self.outputs = classes, outputs
        self.net: nn.Module = nn.Sequential(
            linear(latent + classes, hidden), nn.ReLU(), linear(hidden, hidden), nn.ReLU(), linear(hidden, outputs)
        )
        self.register_buffer("base_weight", torch.zeros(latent, outputs))
        self.register_buffer("base_bias", torch.zeros(outputs))

    def start(self, seed: int, weight: Tensor | None = None, bias: Tensor | None = None) -> None:
        """Set first weights from a public seed; with a base, the network begins at nothing beside it."""
        initialise(self.net, stream(seed, 0))
        if weight is not None and bias is not None:
            with torch.no_grad():
                self.base_weight.copy_(weight)
                self.base_bias.copy_(bias)
                self._last.weight.zero_()
                self._last.bias.zero_()

    @property
    def _last(self) -> nn.Linear:
        return cast(nn.Linear, cast(nn.Sequential, self.net)[-1])

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """Decode."""
        out = self.decoded(z, y)
        return out + z @ self.base_weight + self.base_bias if self.base_weight.any() else out + self.base_bias

    def decoded(self, z: Tensor, y: Tensor) -> Tensor:
        """Return what the network says beside the base."""
        one_hot = functional.one_hot(y, self.classes).to(z.dtype)
        if z.dim() == 3:
            one_hot = one_hot[:, None].expand(-1, z.shape[1], -1)
        return cast(Tensor, self.net(torch.cat([z, one_hot], dim=-1)))


class OperatorDecoder(Decoder):
    """The same with an operator's network, which is given z and the class."""

    def __init__(self, latent: int, part: OperatorPart) -> None:
        super().__init__(latent, part.shape.classes, part.shape.outputs, 1)
        self.part, self.net = part, OperatorModule(*part)

    def start(self, seed: int, weight: Tensor | None = None, bias: Tensor | None = None) -> None:
        """Set the base; the class has set its own first weights."""
        if weight is not None and bias is not None:
            self.base_weight, self.base_bias = weight.clone(), bias.clone()

    def decoded(self, z: Tensor, y: Tensor) -> Tensor:
        return cast(Tensor, self.net(z, y))


def decoder_of(latent: int, classes: int, outputs: int, hidden: int, part: OperatorPart | None) -> Decoder:
    """Return a decoder whose weights are unset, or an operator's."""
    return OperatorDecoder(latent, part) if part else Decoder(latent, classes, outputs, hidden)


class FixedMean(nn.Module):
    """P3GM's encoder: the mean is the projected record itself, the variance is learned."""

    def __init__(self, latent: int, hidden: int, seed: int) -> None:
        super().__init__()
        self.net = nn.Sequential(linear(latent, hidden), nn.ReLU(), linear(hidden, latent))
        initialise(self.net, stream(seed, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log variance."""
        return x, (self.net(x) - 3).clamp(LEAST_LOG_VARIANCE, MOST_LOG_VARIANCE)


class FixedPoint(nn.Module):
    """The AE variant's encoder: the projected record itself."""

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        """Return the mean."""
        return x, None


class FreeEncoder(nn.Module):
    """The encoder of a plain VAE: mean and variance are learned."""

    def __init__(self, inputs: int, latent: int, hidden: int, seed: int) -> None:
        super().__init__()
        self.net = nn.Sequential(linear(inputs, hidden), nn.ReLU(), linear(hidden, 2 * latent))
        initialise(self.net, stream(seed, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log variance."""
        mean, log_variance = self.net(x).chunk(2, dim=1)
        return mean, log_variance.clamp(LEAST_LOG_VARIANCE, MOST_LOG_VARIANCE)


class Objective(nn.Module):
    """One loss a record: what DP-SGD clips. Shapes: x [B, d], y [B], target [B, ...], xi [B, draws, latent] -> [B].

    Attributes:
        normals: shape of xi for one record; without draws where the encoder has no variance.
    """

    def __init__(self, encoder: nn.Module, decoder: Decoder, prior: Prior, head: Head, spec: VaeSpec) -> None:
        super().__init__()
        self.encoder, self.decoder, self.prior, self.head, self.spec = encoder, decoder, prior, head, spec
        self.normals = (0 if isinstance(encoder, FixedPoint) else spec.draws, prior.latent)

    @property
    def released(self) -> Decoder:
        """Return what is released of it."""
        return self.decoder

    def forward(self, x: Tensor, y: Tensor, target: Tensor, xi: Tensor) -> Tensor:
        """Return the negative bound of each record, averaged over the draws of its latent."""
        mean, log_variance = self.encoder(x)
        z, divergence = mean[:, None], torch.zeros(len(x), device=x.device)
        if log_variance is not None:
            z = z + xi * (log_variance / 2).exp()[:, None]
            divergence = self.prior.divergence(mean, log_variance, y)
        return self.head.loss(self.decoder(z, y), target).mean(dim=1) + self.spec.kl_weight * divergence


def imitate(
    decoder: Decoder, prior: Prior, sizes: list[int], log_shares: Callable[[Tensor], Tensor], spec: VaeSpec
) -> None:
    """Fit a decoder of cells to given log probabilities on sampled latents, before it sees data.

    Privacy: post-processing of the prior and of whatever ``log_shares`` was released with.
    """
    adam = torch.optim.Adam(decoder.net.parameters(), lr=1e-2)
    for step in range(spec.imitation_steps):
        randomness = stream(spec.seed, 2 + step)
        y = torch.randint(decoder.classes, (256,), generator=randomness)
        z = prior.sample(y, randomness)
        targets = torch.split(log_shares(z).exp(), sizes, dim=1)
        got = torch.split(decoder(z, y), sizes, dim=1)
        loss = torch.stack([-(w * torch.log_softmax(g, dim=1)).sum(dim=1) for w, g in zip(targets, got, strict=True)])
        adam.zero_grad()
        torch.autograd.backward(loss.sum(dim=0).mean())
        for group in adam.param_groups:
            group["lr"] = 1e-2 * (1 - step / spec.imitation_steps)
        adam.step()


def pretrain(objective: Objective, rows: tuple[Tensor, ...], spec: VaeSpec) -> None:
    """Train an objective on synthetic records, without noise.

    Privacy: post-processing of whatever the records were sampled from.
    """
    adam = torch.optim.Adam(objective.parameters(), lr=3e-3)
    for step in range(spec.pretraining_steps):
        randomness = stream(spec.seed, 2 + spec.imitation_steps + step)
        batch = torch.randint(len(rows[0]), (512,), generator=randomness)
        xi = torch.randn((len(batch), *objective.normals), generator=randomness)
        adam.zero_grad()
        torch.autograd.backward(objective(*(tensor[batch] for tensor in rows), xi).mean())
        for group in adam.param_groups:
            group["lr"] = 3e-3 * (1 - step / spec.pretraining_steps)
        adam.step()
