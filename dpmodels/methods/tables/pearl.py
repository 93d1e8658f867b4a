"""PEARL: private embeddings and adversarial reconstruction learning (Liew, Takahashi, Ueno; ICLR 2022).

    measure   s = [ sum_x phi(x) (x) e_y ; w sum_x e_y ] + discrete Gaussian noise           once, on the lattice
    fit       min over theta, max over sigma of  sum_j omega_sigma(t_j) |s_j - Phi_theta(t_j)|^2   (Eq. 11, Alg. 1)

What differs from the paper, and why, is in docs/privacy.md: one joint release under add/remove (sensitivity
sqrt(1 + w^2), not 2/n twice), no bandwidth from data, exact noise, an unbiased loss, and a critic that knows the noise.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent, leaves
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import Layout
from dpmodels.embeddings.characteristic import CharacteristicFunction, FrequencySpec
from dpmodels.embeddings.fourier import FourierFeatures, FourierSpec
from dpmodels.embeddings.joint import ConditionalEmbedding
from dpmodels.errors import Unsuitable
from dpmodels.frozen import Frozen
from dpmodels.generators.reconstruction import Reconstruction, Target, TrainingSpec
from dpmodels.generators.tabular import TabularModel
from dpmodels.late import torch
from dpmodels.mechanisms.lattice import GRAIN_BITS
from dpmodels.methods.parts.marginals import Marginals, of_classes
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Programme, Sum
from dpmodels.releases.system import Craft, Synthesizer, without_image


class PearlMeasurement(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan."""

    frequencies: FrequencySpec | FourierSpec = FrequencySpec()
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.05


@dataclass(frozen=True)
class Pearl(Synthesizer[ConditionalEmbedding]):
    """PEARL, or what its settings make of it (DP-MERF has no critic); its design is the embedding."""

    measurement: PearlMeasurement = field(default_factory=PearlMeasurement)
    training: TrainingSpec = field(default_factory=TrainingSpec)
    method: str = "pearl"

    def design(self, spec: PearlMeasurement, contract: Schema) -> ConditionalEmbedding:
        """Draw the public frequencies.

        Raises:
            Unsuitable: there is an image, or no column to synthesize.
        """
        layout = Layout.of(without_image(contract, self.method))
        if not layout.blocks:
            raise Unsuitable(f"schema {contract.name} has no column besides the target; add one, or name no target")
        frequencies = spec.frequencies
        features = (
            FourierFeatures(frequencies, layout)
            if isinstance(frequencies, FourierSpec)
            else CharacteristicFunction(frequencies, layout)
        )
        return ConditionalEmbedding(features, layout, spec.count_weight, contract.unit.max_rows)

    def event(self, design: ConditionalEmbedding, budget: PrivacyBudget) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget))

    def programme(self, design: ConditionalEmbedding) -> Programme:
        """Sum the features once."""
        yield Sum.of(design)

    def fit(self, release: Released[Release], craft: Craft) -> TabularModel:
        """Train generator and critic against the release, resuming from the checkpoint if there is one.

        Privacy: post-processing.
        """
        embedding = self.of(release.value.line)
        target, counts = reconstruction_target(embedding, release.value)
        training = Reconstruction(embedding.parts, target, self.training, seed=craft.seed, device=craft.device)
        network = training.run(craft.checkpoint, craft.progress)
        return TabularModel(release.value.line.table, network.to("cpu"), counts, release.value.entry)

    def marginals(self, release: Release) -> Marginals | None:
        """Return the counts of the classes, the only counts in the release (post-processing)."""
        (once,) = self.answers(release)
        counts = once.embedding.unpack(once.vector)[1]
        return of_classes(release.line.table, counts, once.noise_stddev / once.embedding.count_step)

    def noise(self, line: Line) -> dict[str, float]:
        embedding = self.of(line)
        steps = _steps(embedding, line)
        return {
            "sum of a cosine or sine over a class, in units of one record": math.ldexp(steps, -GRAIN_BITS)
            * math.sqrt(embedding.parts.spec.count),
            "number of records in a class": steps / embedding.count_step,
        }

    def fingerprint(self, design: ConditionalEmbedding) -> str:
        return design.parts.fingerprint()


def reconstruction_target(embedding: ConditionalEmbedding, release: Release) -> "tuple[Target, torch.Tensor]":
    """Turn a release into the mean embedding of each class, its noise variance, and the class counts.

    The private sum is divided by the *released* count, kept above its own noise so that an empty class cannot explode.
    """
    k, noise_steps = embedding.parts.spec.count, _steps(embedding, release.line)
    sums, counts = embedding.unpack(release.vector)
    noise_stddev = math.ldexp(noise_steps, -GRAIN_BITS)
    floor = noise_steps / embedding.count_step
    scale = torch.from_numpy(k**0.5 / counts.clip(min=max(floor, 1.0)))
    sums_t = torch.from_numpy(sums)
    mean = torch.complex(sums_t[:, :k], sums_t[:, k:]) * scale[:, None]
    variance = 2 * (noise_stddev * scale) ** 2
    return Target(mean.to(torch.complex64), variance.to(torch.float32)), torch.from_numpy(counts)


def _steps(embedding: ConditionalEmbedding, line: Line) -> float:
    """Return the noise_stddev of one coordinate as charged, in lattice steps; the drawn noise is slightly larger."""
    (event,) = leaves([line.event])
    return event.noise_multiplier * embedding.l2_sensitivity if isinstance(event, GaussianEvent) else math.nan
