"""PEARL: private embeddings and adversarial reconstruction learning (Liew, Takahashi, Ueno; ICLR 2022).

    measure   s = [ sum_x phi(x) (x) e_y ; w sum_x e_y ] + discrete Gaussian noise           once, on the lattice
    fit       min over theta, max over sigma of  sum_j omega_sigma(t_j) |s_j - Phi_theta(t_j)|^2   (Eq. 11, Alg. 1)

Records are rows of a table, or images with their class: then phi is of pixels (embeddings/pixels.py), and the generator
is the paper's up-convolution (generators/picture_network.py).

What differs from the paper, and why, is in docs/privacy/random-features.md: one joint release under add/remove (of
sensitivity sqrt(1 + w^2), not 2/n twice), no bandwidth from data, exact noise, an unbiased loss, and a critic that
knows the noise.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field, ValidationError

from dpmodels.accounting.calibration import gaussian_noise_multiplier
from dpmodels.accounting.events import GaussianEvent, leaves
from dpmodels.contract.image import Image
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import Layout
from dpmodels.embeddings.characteristic import CharacteristicFunction, Frequencies, FrequencySpec
from dpmodels.embeddings.fourier import FourierFeatures, FourierSpec
from dpmodels.embeddings.joint import ConditionalEmbedding
from dpmodels.embeddings.pixels import ImageLayout, PixelFunction, PixelSpec, distance
from dpmodels.errors import InvalidArgument, Unsuitable, refused
from dpmodels.frozen import Frozen
from dpmodels.generators.pictures import PictureModel, picture_network
from dpmodels.generators.reconstruction import Reconstruction, Target, TrainingSpec
from dpmodels.generators.tabular import TabularModel
from dpmodels.late import torch
from dpmodels.mechanisms.lattice import GRAIN_BITS
from dpmodels.methods.parts.marginals import Marginals, of_classes
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import Programme, Sum
from dpmodels.releases.system import Craft, Synthesizer


class PearlMeasurement(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan."""

    frequencies: FrequencySpec | FourierSpec | PixelSpec = FrequencySpec()
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.05


@dataclass(frozen=True)
class Pearl(Synthesizer[ConditionalEmbedding]):
    """PEARL, or what its settings make of it (DP-MERF has no critic); its design is the embedding."""

    measurement: PearlMeasurement = field(default_factory=PearlMeasurement)
    training: TrainingSpec = field(default_factory=TrainingSpec)
    method: str = "pearl"

    def settled(self, contract: Schema) -> PearlMeasurement:
        """Set the law of the frequencies that suits images, where the contract has them."""
        if not contract.image:
            return self.measurement
        law = pixel_law(self.measurement.frequencies, contract.image[1])
        return self.measurement.model_copy(update={"frequencies": law})

    def design(self, spec: PearlMeasurement, contract: Schema) -> ConditionalEmbedding:
        """Draw the public frequencies.

        Raises:
            InvalidArgument: the frequencies are of images, and the schema has none.
            Unsuitable: there is no column to synthesize.
        """
        features = of_pixels(spec.frequencies, contract) if contract.image else of_columns(spec.frequencies, contract)
        return ConditionalEmbedding(features, features.layout, spec.count_weight, contract.unit.max_rows)

    def event(self, design: ConditionalEmbedding, budget: PrivacyBudget) -> GaussianEvent:
        return GaussianEvent(noise_multiplier=gaussian_noise_multiplier(budget))

    def programme(self, design: ConditionalEmbedding) -> Programme:
        """Sum the features once."""
        yield Sum.of(design)

    def fit(self, release: Released[Release], craft: Craft) -> TabularModel | PictureModel:
        """Train generator and critic against the release, resuming from the checkpoint if there is one.

        Privacy: post-processing.
        """
        from dpmodels.generators.networks import TabularGenerator

        embedding, schema, entry = self.of(release.value.line), release.value.line.table, release.value.entry
        target, counts = reconstruction_target(embedding, release.value)
        spec, features = self.training.suited(of_images=bool(schema.image)), embedding.parts

        def build() -> Any:
            pictures = schema.image is not None
            return (
                picture_network(spec.network, schema) if pictures else TabularGenerator(spec.network, features.layout)
            )

        training = Reconstruction(features, target, spec, build, seed=craft.seed, device=craft.device)
        network: Any = training.run(craft.checkpoint, craft.progress).to("cpu")
        return (PictureModel if schema.image else TabularModel)(schema, network, counts, entry)

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


def of_columns(spec: Frequencies, schema: Schema) -> CharacteristicFunction:
    """Return the features of a table's columns.

    Raises:
        InvalidArgument: the frequencies are of images.
        Unsuitable: there is no column to synthesize.
    """
    layout = Layout.of(schema)
    if not layout.blocks:
        raise Unsuitable(f"schema {schema.name} has no column besides the target; add one, or name no target")
    if isinstance(spec, FourierSpec):
        return FourierFeatures(spec, layout)
    if not isinstance(spec, FrequencySpec):
        raise InvalidArgument(
            "frequencies", spec.kind, "be of another kind, for the schema has no column of type image"
        )
    return CharacteristicFunction(spec, layout)


def of_pixels(spec: Frequencies, schema: Schema) -> PixelFunction:
    """Return the features of images; those of one bandwidth are white."""
    layout = ImageLayout.of(schema)
    if isinstance(spec, FourierSpec):
        scale = distance(layout.column) / spec.bandwidth
        law = {"scale_low": scale, "scale_high": scale, "smoothness": 0.0}
        spec = PixelSpec.model_validate({"count": spec.count, "seed": spec.seed, **law})
    return PixelFunction(spec, layout)


def pixel_law(spec: Frequencies, column: Image) -> Frequencies:
    """Return the law of images that a law of tables stands for: what was given, and the rest as it suits images.

    Raises:
        InvalidArgument: a setting was given that is of tables alone.
    """
    if isinstance(spec, FourierSpec):
        given = "bandwidth" in spec.model_fields_set
        return spec if given else spec.model_copy(update={"bandwidth": distance(column)})
    try:
        return PixelSpec.model_validate(spec.model_dump(exclude_unset=True, exclude={"kind"}))
    except ValidationError as fault:
        raise refused(fault, whole="frequencies") from None


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
