"""PEARL: private embeddings and adversarial reconstruction learning (Liew, Takahashi, Ueno; ICLR 2022).

    measure   s = [ sum_x phi(x) (x) e_y ; w sum_x e_y ] + discrete Gaussian noise           once, on the lattice
    fit       min over theta, max over sigma of  sum_j omega_sigma(t_j) |s_j - Phi_theta(t_j)|^2   (Eq. 11, Alg. 1)

What differs from the paper, and why, is in docs/privacy.md: one joint release under add/remove (sensitivity
sqrt(1 + w^2), not 2/n twice), no bandwidth from data, exact noise, an unbiased loss, and a critic that knows the noise.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent
from dpmodels.embeddings.base import Layout
from dpmodels.embeddings.characteristic import CharacteristicFunction, FrequencySpec
from dpmodels.embeddings.fourier import FourierFeatures, FourierSpec
from dpmodels.embeddings.joint import ConditionalEmbedding
from dpmodels.errors import InvalidArgument
from dpmodels.generators.loop import Progress
from dpmodels.generators.reconstruction import Reconstruction, Target, TrainingSpec
from dpmodels.generators.tabular import TabularModel
from dpmodels.late import torch
from dpmodels.mechanisms.gaussian import lattice_noise_stddev
from dpmodels.mechanisms.lattice import GRAIN_BITS
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Plan, check_unit
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Programme, Sum
from dpmodels.releases.system import Synthesizer
from dpmodels.schema.schema import Schema
from dpmodels.synthesizers.marginals import Marginals, of_classes


class PearlMeasurement(BaseModel):
    """What is measured: public parameters that decide the release and so are part of the plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    frequencies: FrequencySpec | FourierSpec = FrequencySpec()
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.05


@dataclass(frozen=True)
class Pearl(Synthesizer):
    """The three verbs of PEARL; under another name, of whatever its settings make of it (DP-MERF has no critic)."""

    measurement: PearlMeasurement = field(default_factory=PearlMeasurement)
    training: TrainingSpec = field(default_factory=TrainingSpec)
    name: str = "pearl"

    def plan(self, schema: Schema, budget: PrivacyBudget) -> Plan:
        """Decide what to charge: one Gaussian event, whatever the data; touches no data.

        Raises:
            InvalidArgument: the budget's unit is not the schema's, or there is no column to synthesise.
        """
        check_unit(schema, budget)
        if schema.image:
            raise InvalidArgument("method", self.name, "be nacre-images for a schema with a column of type image")
        embedding = _embedding(self.measurement, schema)
        noise_multiplier = gaussian_noise_multiplier(budget)
        return Plan(
            method=self.name,
            table=schema,
            budget=budget,
            event=GaussianEvent(noise_multiplier=noise_multiplier),
            noise_multiplier=noise_multiplier,
            l2_sensitivity=embedding.l2_sensitivity,
            measurement=self.measurement.model_dump(mode="json"),
            fingerprint=embedding.parts.fingerprint(),
        )

    def programme(self, plan: Plan) -> Programme:
        """Sum the features once."""
        yield Sum.of(_embedding_of(plan), 1, plan.l2_sensitivity, plan.noise_multiplier)

    def fit(
        self,
        release: Released[Release],
        *,
        seed: int,
        device: str,
        checkpoint: Path,
        progress: Progress | None = None,
    ) -> TabularModel:
        """Train generator and critic against the release, resuming from the checkpoint if there is one.

        Privacy: post-processing.
        """
        embedding = _embedding_of(release.value.plan)
        target, counts = reconstruction_target(embedding, release.value)
        training = Reconstruction(embedding.parts, target, self.training, seed=seed, device=device)
        network = training.run(checkpoint, progress)
        return TabularModel(release.value.plan.table, network.to("cpu"), counts, release.value.entry)

    def marginals(self, release: Release) -> Marginals | None:
        """Return the counts of the classes: no other is in the release (post-processing)."""
        plan, embedding = release.plan, _embedding_of(release.plan)
        steps = lattice_noise_stddev(plan.l2_sensitivity, plan.noise_multiplier)
        return of_classes(plan.table, embedding.unpack(release.vector)[1], steps / embedding.count_step)

    def noise(self, plan: Plan) -> dict[str, float]:
        """Name what a release holds and the standard deviation of its noise."""
        embedding = _embedding_of(plan)
        steps = plan.noise_multiplier * plan.l2_sensitivity
        return {
            "sum of a cosine or sine over a class, in units of one record": math.ldexp(steps, -GRAIN_BITS)
            * math.sqrt(embedding.parts.spec.count),
            "number of records in a class": steps / embedding.count_step,
        }


def reconstruction_target(embedding: ConditionalEmbedding, release: Release) -> "tuple[Target, torch.Tensor]":
    """Turn a release into the mean embedding of each class, its noise variance, and the class counts.

    The private sum is divided by the *released* count, kept above its own noise so that an empty class cannot explode.
    """
    plan, k = release.plan, embedding.parts.spec.count
    sums, counts = embedding.unpack(release.vector)
    noise_steps = plan.noise_multiplier * plan.l2_sensitivity  # of one coordinate, in lattice steps
    noise_stddev = math.ldexp(noise_steps, -GRAIN_BITS)
    floor = noise_steps / embedding.count_step
    scale = torch.from_numpy(k**0.5 / counts.clip(min=max(floor, 1.0)))
    sums_t = torch.from_numpy(sums)
    mean = torch.complex(sums_t[:, :k], sums_t[:, k:]) * scale[:, None]
    variance = 2 * (noise_stddev * scale) ** 2
    return Target(mean.to(torch.complex64), variance.to(torch.float32)), torch.from_numpy(counts)


def _embedding(measurement: PearlMeasurement, schema: Schema) -> ConditionalEmbedding:
    layout = Layout.of(schema)
    if not layout.blocks:
        raise InvalidArgument("schema", schema.name, "have at least one column besides the target")
    spec = measurement.frequencies
    features = FourierFeatures(spec, layout) if isinstance(spec, FourierSpec) else CharacteristicFunction(spec, layout)
    return ConditionalEmbedding(features, layout, measurement.count_weight, schema.unit.max_rows)


def _embedding_of(plan: Plan) -> ConditionalEmbedding:
    embedding = _embedding(PearlMeasurement.model_validate(plan.measurement), plan.table)
    embedding.parts.check(plan.fingerprint)
    return embedding
