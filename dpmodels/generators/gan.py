"""A critic that DP-SGD trains, and the generator that follows it.

    critic      L(x, y) = D(G(z, y), y) - D(x, y) + lambda (|grad D(a x + (1 - a) G(z, y), y)| - 1)^2         wgan-gp
                L(x, y) = softplus(D(G(z, y), y)) + softplus(-D(x, y)) + the same                      non-saturating
    generator   -D(G(z, y), y)   or   softplus(-D(G(z, y), y)),   after every so many steps of the critic; a refiner of
                x_0 adds anchor |G(x_0, z, y) - x_0|^2

Privacy: the critic's loss is one loss a record. Its fake and its place between both are made of the record's own
    normals and of the generator, which was released; so the whole gradient, that of the penalty included, is the
    record's own and is clipped as a whole. The generator and the frequency of its steps see the critic's released
    weights and scores of fakes, never a record: post-processing.
Source: Gulrajani, Ahmed, Arjovsky, Dumoulin, Courville (2017); Xie, Lin, Wang, Wang, Zhou (2018); for the frequency of
    the generator's steps Bie, Kamath, Zhang (2023).
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from dpmodels.embeddings.vectors import Vectors
from dpmodels.generators.checkpoint import under
from dpmodels.generators.gan_networks import Critic, Generator
from dpmodels.generators.heads import Head, InkHead
from dpmodels.generators.randomness import stream
from dpmodels.generators.sizes import GanSpec
from dpmodels.mechanisms.dp_sgd.products import slope
from dpmodels.mechanisms.dp_sgd.spec import SgdSpec

LEAST_UNIFORM = 1e-6
STEADY = 0.9
"""Share of the older values in the running mean of how many fakes the critic tells."""


@dataclass(frozen=True)
class Pool:
    """Sampled records that a refiner starts from, as targets, class after class.

    Shapes: ``target`` [N, ...]; ``first``, ``number`` [classes]: where the records of a class begin, and how many.
    """

    target: Tensor
    first: Tensor
    number: Tensor

    @classmethod
    def of(cls, target: Tensor, label: Tensor, informed: Tensor, classes: int) -> "Pool":
        """Sort a cluster's records by class; a class that it lacks has those of all clusters, or else all records."""
        parts = []
        for y in range(classes):
            members = label == y
            chosen_rows = members & informed
            chosen_rows = chosen_rows if chosen_rows.any() else members
            parts.append(target[chosen_rows] if chosen_rows.any() else target)
        number = torch.tensor([len(part) for part in parts])
        return cls(torch.cat(parts), number.cumsum(0) - number, number)


class Adversary(nn.Module):
    """The objective of one GAN: DP-SGD trains the critic, and after its steps the generator takes one of its own.

    Attributes:
        normals: of a record: the latent, its place between record and fake, its place in the pool, and what draws its
            categories.
        mean: the running mean of the generators; released: what it was at the steps ``kept``.
    """

    pool: Tensor
    first: Tensor
    number: Tensor

    def __init__(
        self, vectors: Vectors, head: Head, shares: Tensor, spec: GanSpec, refines: bool, sgd: SgdSpec
    ) -> None:
        super().__init__()
        self.spec, self.sgd, self.head, self.refines = spec, sgd, head, refines
        self.shares = shares.clamp_min(0)
        if not self.shares.sum() > 0:
            self.shares = torch.ones_like(shares)
        self.critic = Critic(vectors, head, spec)
        self.generator = Generator(vectors, head, spec, refines).requires_grad_(False)
        self.mean = copy.deepcopy(self.generator)
        self.released = nn.ModuleList(copy.deepcopy(self.generator) for _ in range(spec.snapshots))
        self.snapshot_steps = [sgd.steps - later * sgd.steps // (2 * spec.snapshots) for later in range(spec.snapshots)]
        self.normals = (spec.latent + 2 + (0 if isinstance(head, InkHead) else head.outputs),)
        weights, betas = list(self.generator.parameters()), (spec.momentum, spec.steadiness)
        self.adam = torch.optim.Adam(weights, lr=spec.generator_rate, betas=betas)
        self.every, self.due, self.generator_steps, self.fooled_share = spec.critic_steps, spec.critic_steps, 0, 1.0

    def start_from(self, pool: Pool) -> None:
        """Give a refiner the records that it starts from."""
        self.register_buffer("pool", pool.target)
        self.register_buffer("first", pool.first)
        self.register_buffer("number", pool.number)

    def forward(self, y: Tensor, target: Tensor, xi: Tensor) -> Tensor:
        """Return the critic's loss of each record. Shapes: [B], [B, ...], [B, normals] -> [B]."""
        real, fake = self.head.shown(target), self.fake(y, xi).detach()
        real_scores, fake_scores = self.critic(torch.stack([real, fake], dim=1), y).unbind(dim=1)
        loss: Tensor = (
            fake_scores - real_scores if self.spec.loss == "wgan-gp" else softplus(fake_scores) + softplus(-real_scores)
        )
        if not self.spec.penalty:
            return loss
        weight = _uniform(xi[:, self.spec.latent, None])
        between = weight * real + (1 - weight) * fake
        steepness = slope(lambda inputs: self.critic(inputs, y), between).square().sum(dim=1)
        return loss + self.spec.penalty * ((steepness + 1e-12).sqrt() - 1) ** 2

    def fake(self, y: Tensor, xi: Tensor) -> Tensor:
        """Return what a critic sees of one fake for each class and its normals."""
        out = self.generator(xi[:, : self.spec.latent], y, self.base(y, xi))
        return self.head.faked(out, _uniform(xi[:, self.spec.latent + 2 :]), self.spec.temperature)

    def base(self, y: Tensor, xi: Tensor) -> Tensor | None:
        """Return what a critic sees of the sampled record that each fake refines, if there is one."""
        if not self.refines:
            return None
        within = (_uniform(xi[:, self.spec.latent + 1]) * self.number[y]).long().minimum(self.number[y] - 1)
        return self.head.shown(self.pool[self.first[y] + within])

    def follow(self, step: int) -> None:
        """Take a step of the generator if it is due, and keep the mean where it is to be released.

        Privacy: post-processing of the critic's released weights.
        """
        if step >= self.due:
            self._step(step)
        for snapshot_step, network in zip(self.snapshot_steps, self.released, strict=True):
            if snapshot_step == step:
                network.load_state_dict(self.mean.state_dict())

    def _step(self, step: int) -> None:
        scores = self._descend(step)
        self.fooled_share = STEADY * self.fooled_share + (1 - STEADY) * float((scores < 0).float().mean())
        if self.fooled_share < self.spec.told:
            self.every, self.fooled_share = min(2 * self.every, max(self.every, self.spec.most_critic_steps)), 1.0
        self.due = step + self.every

    def _descend(self, step: int) -> Tensor:
        """Take one step of the generator; return the critic's scores of its fakes."""
        weights = list(self.generator.parameters())
        randomness, batch = stream(self.spec.seed, 2 + self.spec.pretraining_steps + step), self.spec.generator_batch
        y = torch.multinomial(self.shares, batch, replacement=True, generator=randomness).to(weights[0].device)
        xi = torch.randn(batch, *self.normals, generator=randomness).to(weights[0].device)
        self.generator.requires_grad_(True)
        fake, base = self.fake(y, xi), self.base(y, xi)
        scores: Tensor = self.critic(fake, y)
        loss = -scores if self.spec.loss == "wgan-gp" else softplus(-scores)
        if base is not None:
            loss = loss + self.spec.anchor * (fake - base).square().sum(dim=1)
        for weight, gradient in zip(weights, torch.autograd.grad(loss.mean(), weights), strict=True):
            weight.grad = gradient
        for group in self.adam.param_groups:
            group["lr"] = self.spec.generator_rate * self.sgd.rate(step) / self.sgd.learning_rate
        self.adam.step()
        self.adam.zero_grad()
        self.generator.requires_grad_(False)
        self.generator_steps += 1
        share = max(1 - self.spec.average, 1 / (1 + self.generator_steps))
        torch._foreach_lerp_(list[Tensor](self.mean.parameters()), list[Tensor](weights), share)
        return scores.detach()

    def tensors(self) -> dict[str, Tensor]:
        """Return all that a resumed training needs of the generator."""
        state = {
            "pace": torch.tensor([self.every, self.due, self.generator_steps, self.fooled_share], dtype=torch.float64)
        }
        for index, weight in enumerate(self.generator.parameters()):
            state |= {f"adam/{index}/{name}": value for name, value in self.adam.state.get(weight, {}).items()}
        for name, network in self._networks().items():
            state |= {name + key: value for key, value in network.state_dict().items()}
        return state

    def _networks(self) -> dict[str, nn.Module]:
        return {"generator/": self.generator, "mean/": self.mean, "released/": self.released}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Go back to where ``tensors`` was taken."""
        every, due, generator_steps, self.fooled_share = tensors["pace"].tolist()
        self.every, self.due, self.generator_steps = int(every), int(due), int(generator_steps)
        for name, network in self._networks().items():
            network.load_state_dict(under(name, tensors))
        for index, weight in enumerate(self.generator.parameters()):
            if state := under(f"adam/{index}/", tensors):
                self.adam.state[weight] = {
                    name: value if name == "step" else value.to(weight.device) for name, value in state.items()
                }


def pretrain_critic(adversary: Adversary) -> None:
    """Teach a critic on the pool, without noise, which records go with their class.

    Privacy: post-processing of whatever the pool was sampled from.
    """
    spec, pool = adversary.spec, adversary.pool
    adam = torch.optim.Adam(adversary.critic.parameters(), lr=1e-3)
    label = torch.repeat_interleave(torch.arange(len(adversary.number)), adversary.number)
    for step in range(spec.pretraining_steps if len(adversary.number) > 1 else 0):
        batch = torch.randint(len(pool), (256,), generator=stream(spec.seed, 2 + step))
        inputs, y = adversary.head.shown(pool[batch]), label[batch]
        loss = softplus(adversary.critic(inputs, y.roll(1))) * (y != y.roll(1)) + softplus(-adversary.critic(inputs, y))
        adam.zero_grad()
        torch.autograd.backward(loss.mean())
        adam.step()


def _uniform(normal: Tensor) -> Tensor:
    """Turn standard normals to uniforms of the open unit interval."""
    uniform: Tensor = torch.special.ndtr(normal).clamp(LEAST_UNIFORM, 1 - LEAST_UNIFORM)
    return uniform
