"""PEARL's training loop (Alg. 1): fit a generator to a released embedding. Reads released objects only.

    repeat   sigma <- sigma + eta_C grad_sigma  sum_j omega_j(sigma) r_j        every `generator_steps` steps
             theta <- theta - eta_G grad_theta  sum_j omega_j(sigma) r_j

with r_j = |Phi_released(t_j) - Phi_theta(t_j)|^2, estimated without bias from two independent half batches. The
randomness of a step is a function of (seed, step) alone, so that a resumed run goes on exactly where it stopped.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field

from dpmodels.embeddings.characteristic import CharacteristicFunction
from dpmodels.generators.checkpoint import Part
from dpmodels.generators.loop import LoopSpec, Progress, TrainingLoop
from dpmodels.generators.randomness import stream
from dpmodels.generators.sizes import NetworkSpec
from dpmodels.late import Tensor, nn, torch


class TrainingSpec(LoopSpec):
    """Training hyper-parameters of PEARL; none of them can change what was charged."""

    network: NetworkSpec = NetworkSpec()
    steps: Annotated[int, Field(ge=1)] = 1500
    batch_size: Annotated[int, Field(ge=4)] = 1024
    frequencies_per_step: Annotated[int, Field(ge=1)] = 250
    generator_learning_rate: Annotated[float, Field(gt=0)] = 3e-3
    critic_learning_rate: Annotated[float, Field(gt=0)] = 1e-2
    critic: bool = True
    generator_steps: Annotated[int, Field(ge=1)] = 5
    max_divergence: Annotated[float, Field(gt=0)] = 0.5
    ema_decay: Annotated[float, Field(ge=0, lt=1)] = 0.99
    checkpoint_every: Annotated[int, Field(ge=1)] = 200

    def suited(self, *, of_images: bool) -> Self:
        """Return the settings with those that were not given as they suit tables or images."""
        if not of_images:
            return self
        return self.model_copy(update={key: of for key, of in IMAGE.items() if key not in self.model_fields_set})


IMAGE: dict[str, Any] = {"steps": 800, "batch_size": 400, "generator_learning_rate": 1e-2}
"""What suits images where tables are suited by something else."""


@dataclass(frozen=True)
class Target:
    """The released mean embedding of each class and how noisy it is.

    Shapes: ``mean`` [classes, k] complex64, of modulus near or below 1; ``noise_variance`` [classes], the known mean
    of |noise|^2 at a frequency (real and imaginary part together).
    """

    mean: Tensor
    noise_variance: Tensor

    def class_weights(self) -> Tensor:
        """Weigh a class by signal over signal plus noise: 1 for a big class, near 0 for one lost in the noise."""
        return 1 / (1 + self.noise_variance)


class Reconstruction(TrainingLoop):
    """Generator, critic, their optimizers and the averaged generator that is kept; ``build`` makes an unset one."""

    def __init__(
        self,
        features: CharacteristicFunction,
        target: Target,
        spec: TrainingSpec,
        build: "Callable[[], nn.Module]",
        *,
        seed: int,
        device: str,
    ) -> None:
        from dpmodels.generators.critic import FrequencyCritic
        from dpmodels.generators.networks import initialise

        super().__init__(spec)
        self.features, self.spec, self.seed, self.device = features, spec, seed, torch.device(device)
        self.target = Target(target.mean.to(device), target.noise_variance.to(device))
        self.classes = features.layout.classes
        self.half = max(1, math.ceil(spec.batch_size / (2 * self.classes)))
        self.generator = build()
        initialise(self.generator, stream(seed, 0))
        self.average = build()
        self.average.load_state_dict(self.generator.state_dict())
        self.critic = FrequencyCritic(torch.as_tensor(features.relative, dtype=torch.float32), spec.max_divergence)
        for module in (self.generator, self.average, self.critic):
            module.to(self.device)
        self.generator_optimizer = torch.optim.Adam(self.generator.parameters(), lr=spec.generator_learning_rate)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=spec.critic_learning_rate, maximize=True)

    def run(self, checkpoint: Path | None, progress: Progress | None = None) -> "nn.Module":
        """Train to the end, from the checkpoint if there is one, and return the averaged generator."""
        self.train(checkpoint, progress)
        return self.average.eval()

    def descend(self) -> Tensor:
        """Let the critic choose, then move the generator; return the weighed residual."""
        randomness = stream(self.seed, self.step + 1)
        if self.spec.critic and self.step % self.spec.generator_steps == 0:
            index = self._choose_frequencies(randomness)
            with torch.no_grad():
                residual = self._residuals(index, randomness)
            self.improve(self.critic_optimizer, self.spec.critic_learning_rate, self.critic(index) @ residual)
        index = self._choose_frequencies(randomness)
        weights = self.critic(index).detach()
        loss = weights @ self._residuals(index, randomness) / len(index)
        self.improve(self.generator_optimizer, self.spec.generator_learning_rate, loss)
        self._average()
        detached: Tensor = loss.detach()
        return detached

    def _residuals(self, index: Tensor, randomness: "torch.Generator") -> Tensor:
        """Return unbiased |Phi_released - Phi_theta|^2 less the known noise, weighed over classes. Shapes: [J]."""
        labels = torch.arange(self.classes).repeat_interleave(self.half).repeat(2)
        z = torch.randn(len(labels), self.spec.network.latent_dim, generator=randomness)
        rows = self.generator(z.to(self.device), labels.to(self.device))
        means = self.features.expectation(rows, index).view(2, self.classes, self.half, -1).mean(dim=2)
        first, second = self.target.mean[:, index] - means  # [classes, J] each, independent of each other
        squared = first.real * second.real + first.imag * second.imag - self.target.noise_variance[:, None]
        weights = self.target.class_weights()
        weighed: Tensor = (weights / weights.sum()) @ squared
        return weighed

    def _choose_frequencies(self, randomness: "torch.Generator") -> Tensor:
        count = min(self.spec.frequencies_per_step, self.features.spec.count)
        return torch.randperm(self.features.spec.count, generator=randomness)[:count].to(self.device)

    def _average(self) -> None:
        decay = min(self.spec.ema_decay, (1 + self.step) / (10 + self.step))
        current = self.generator.state_dict()
        for name, value in self.average.state_dict().items():
            if value.dtype.is_floating_point:
                value.lerp_(current[name], 1 - decay)

    def parts(self) -> Mapping[str, Part]:
        """Name both players, the average, and the optimizers."""
        return {
            "generator": self.generator,
            "average": self.average,
            "critic": self.critic,
            "generator_optimizer": self.generator_optimizer,
            "critic_optimizer": self.critic_optimizer,
        }
