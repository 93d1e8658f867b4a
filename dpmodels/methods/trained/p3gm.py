"""P3GM: privacy-preserving phased generative model (Takagi, Takahashi, Cao, Yoshikawa; ICDE 2021).

    phase 1   histograms of each column's scale  + noise, in tables of values only
              C = sum_x [ e_y ; x e_y' ; x x' ]  + noise   -> mean, directions V: f(x) = clip((x - mean) V)  DP-PCA
              [ N ; S ; Q ] of every component and class  + noise, each iteration -> p(z|y)                DP-EM
    phase 2   q(z|x) = N(f(x), sigma(x)), p(x|z,y) by DP-SGD on the bound (Eq. 5, KL by Eq. 6)             DP-SGD
    sample    y by its released share, z ~ p(z|y), decode

The AE variant keeps sigma at 0 (Eq. 9). What differs from the paper, and why, is in docs/privacy.md.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmodels.arrays import Floats, Whole
from dpmodels.contract.schema import Schema
from dpmodels.embeddings.base import Layout
from dpmodels.embeddings.vectors import (
    DIRECTION_BITS,
    Projection,
    Vectors,
    training_tensors,
    transform_bounded,
    transform_points,
    transform_scales,
    transform_training,
)
from dpmodels.frozen import Frozen
from dpmodels.generators.heads import CellHead, Head, head_of
from dpmodels.generators.operators.network import OperatorNetwork
from dpmodels.generators.sizes import VaeSpec
from dpmodels.generators.vae_start import inverse_log_shares
from dpmodels.late import Tensor, torch
from dpmodels.mechanisms.dp_sgd.spec import SgdSpec
from dpmodels.methods.tables.looks import NacreMeasurement
from dpmodels.methods.trained.dp_vae import decoder_part
from dpmodels.methods.trained.private_training import Look, Networks, PrivateTraining, Reader, Training, Untrained
from dpmodels.methods.trained.warm_start import WarmStart
from dpmodels.privacy import Sensitive
from dpmodels.releases.steps import Data, NoisySum, Step
from dpmodels.statistics.class_moments import ClassMoments, leading_directions, transform_class_moments
from dpmodels.statistics.component_moments import (
    RHO_BITS,
    Z_BITS,
    ComponentMoments,
    Mixture,
    Points,
    start_mixture,
    transform_component_moments,
)
from dpmodels.statistics.symmetric import DIAGONAL

if TYPE_CHECKING:
    from dpmodels.generators.vae import Decoder, Prior

SUITED: dict[str, dict[str, Any]] = {
    "table": {"directions": 25, "least_variance": 1.0, "pca_share": 0.2, "em_share": 0.4, "sgd": SgdSpec()},
    "ink": {"directions": 40, "least_variance": 0.5, "pca_share": 0.3, "em_share": 0.6}
    | {"sgd": SgdSpec(steps=150, learning_rate=5e-4)},
}
"""Parameters that suit tables or images, used where none are given.

The decoder of an image learns little beyond the inverse projection.
"""


class P3gmMeasurement(Frozen):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        directions: largest number of directions that DP-PCA keeps. By default this, ``least_variance``, ``pca_share``,
            ``em_share`` and ``sgd`` are what suits tables or images (``SUITED``); a plan holds the values used.
        least_variance: variance that a principal direction must have to be kept, as a multiple of the noise's edge.
        components, iterations: numbers of both that DP-EM has in each class.
        warm_share: share of the budget's squared mu that goes to a release of nacre, whose samples the decoder learns
            first; 0 for no such release.
        warm: what that release of nacre measures.
        scale_share, pca_share, em_share: shares of the budget's squared mu; DP-SGD has the rest. Only tables of values
            are scaled.
        radius: norm that f(x) is clipped to, where x has norm at most 1.
        image_radius: norm that images are clipped to, in root mean square ink a pixel.
        decoder: an operator's network instead of ours.
        count_weight, mean_weight: weights of a count and of a first moment, where a second moment has 1.
    """

    directions: Annotated[int, Field(ge=1, le=400)] | None = None
    least_variance: Annotated[float, Field(ge=0, le=100)] | None = None
    components: Annotated[int, Field(ge=1, le=64)] = 1
    iterations: Annotated[int, Field(ge=1, le=100)] = 1
    warm_share: Annotated[float, Field(ge=0, le=0.9)] = 0.0
    warm: NacreMeasurement | None = None
    scale_share: Annotated[float, Field(ge=0.001, le=0.9)] = 0.05
    pca_share: Annotated[float, Field(ge=0.01, le=0.9)] | None = None
    em_share: Annotated[float, Field(ge=0.01, le=0.9)] | None = None
    radius: Annotated[float, Field(gt=0, le=1)] = 0.7
    image_radius: Annotated[float, Field(gt=0, le=1)] = 0.39
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.15
    mean_weight: Annotated[float, Field(gt=0, le=10)] = 0.6
    sgd: SgdSpec | None = None
    vae: VaeSpec = VaeSpec()
    decoder: OperatorNetwork | None = Field(default=None, exclude_if=lambda network: network is None)

    def settled(self, schema: Schema) -> "P3gmMeasurement":
        """Set every parameter that was not given to what suits the schema."""
        suited = SUITED["ink" if schema.image else "table"] | {"warm": NacreMeasurement() if self.warm_share else None}
        return self.model_copy(update={key: value for key, value in suited.items() if getattr(self, key) is None})


@dataclass(frozen=True)
class PhaseOne:
    """What phase 1 released.

    Attributes:
        projection: f(x), read off the released moments; mixture: the last look of DP-EM, which p(z|y) is read off.
        warm: what the looks of a warm start released.
    """

    projection: Projection
    mixture: NoisySum
    warm: list[NoisySum]


class P3gm(Training[PhaseOne]):
    """P3GM at one schema."""

    def __init__(self, learned_variance: bool, spec: P3gmMeasurement, schema: Schema) -> None:
        spec = spec.settled(schema)
        self.learned_variance, self.spec, self.sgd, self.vae = learned_variance, spec, spec.sgd or SgdSpec(), spec.vae
        self.vectors = Vectors(schema, spec.vae.most_cells, spec.image_radius, spec.vae.numbers)
        self.size = min(spec.directions or 1, self.vectors.size)
        self.operator = decoder_part(spec.decoder, self.vectors, self.size, spec.vae.seed)
        weights = spec.count_weight, spec.mean_weight
        pca_share, em_share = spec.pca_share or 0.0, spec.em_share or 0.0
        if self.spec.warm_share:  # DP-PCA and DP-EM each give up this part of their own share
            pca_share, em_share = (share * (1 - spec.warm_share) for share in (pca_share, em_share))
        self.gram = ClassMoments(self.vectors.classes, self.vectors.size, *weights)
        scaled, l2 = self.vectors.scale_dim, self._moments(self.size).l2_sensitivity
        self.warm = WarmStart(schema, spec.warm, spec.warm_share) if spec.warm else None
        self.looks = (
            *(self.warm.looks if self.warm else ()),
            *([Look("scales", scaled, self.vectors.scale_sensitivity, spec.scale_share)] if scaled else []),
            Look("DP-PCA", self.gram.dim, self.gram.l2_sensitivity, pca_share),
            # the size is not known yet: it depends on how many directions DP-PCA keeps
            *(Look(f"DP-EM {i + 1}", 0, l2, em_share / spec.iterations) for i in range(spec.iterations)),
        )

    def programme(self, rows: Reader) -> Generator[Step, Any, PhaseOne]:
        """Take phase 1 of the paper, DP-PCA and DP-EM, then phase 2, DP-SGD."""
        vectors = self.vectors
        warm = (yield from self.warm.programme()) if self.warm else []
        histograms = None
        if vectors.scale_dim:
            histograms = (yield self.look("scales", lambda data: transform_scales(rows(data), vectors))).vector
        scales = vectors.scales(histograms)

        def bounded(data: Data) -> Sensitive[Points]:
            return transform_bounded(rows(data), vectors, scales)

        gram = yield self.look("DP-PCA", lambda data: transform_class_moments(self.gram, bounded(data)))
        projection = self._projection(gram, scales)

        def points(data: Data) -> Sensitive[Points]:
            return transform_points(bounded(data), projection)

        moments = self._moments(projection.size)
        look: Any = None
        for i in range(self.spec.iterations):
            total = partial(_component_moments, moments, points, self._mixture(look, projection))
            look = yield self.look(f"DP-EM {i + 1}", total, moments.dim)
        phase_one = PhaseOne(projection, look, warm)
        yield self.train(phase_one, lambda data: transform_training(rows(data), points(data), projection.spread))
        return phase_one

    def networks(self, phase_one: PhaseOne, start: bool) -> Networks:
        """Return the one objective of P3GM, its decoder set to the inverse of the projection."""
        from dpmodels.generators.vae import FixedMean, FixedPoint, Objective, Prior, pretrain

        projection, look = phase_one.projection, phase_one.mixture
        moments, size = self._moments(projection.size), projection.size
        mixture = moments.maximise(look.vector, look.noise_stddev)
        counts = moments.unpack(look.vector)[0].sum(axis=1)
        stddev = _tensor(self.vectors.stddev(projection))
        head, prior = head_of(self.vectors, stddev), Prior.of(mixture, torch.from_numpy(projection.spread))
        decoder = self._decoder(projection, prior, head, start)
        encoder = FixedMean(size, self.vae.hidden, self.vae.seed) if self.learned_variance else FixedPoint()
        objective = Objective(encoder, decoder, prior, head, self.vae)
        if start and self.warm:
            rows = self.vectors.rows([self.warm.sample(phase_one.warm, self.vae.seed)])
            points = projection.points(self.vectors.bounded(rows.design, projection.scales))
            pretrain(objective, training_tensors(rows, points, projection.spread), self.vae)
        return Networks([objective], torch.from_numpy(counts)[None], stddev)

    def class_counts(self, phase_one: PhaseOne) -> tuple[Floats, float] | None:
        """Return the counts of the classes if each has one component; counts of several are also off by rounding."""
        if self.spec.components > 1:
            return None
        moments, look = self._moments(phase_one.projection.size), phase_one.mixture
        noise = math.ldexp(look.noise_stddev, -RHO_BITS) / moments.count_step
        return moments.unpack(look.vector)[0][:, 0], noise

    def _moments(self, size: int) -> ComponentMoments:
        spec = self.spec
        return ComponentMoments(self.vectors.classes, spec.components, size, spec.count_weight, spec.mean_weight)

    def _projection(self, look: NoisySum, scales: Floats) -> Projection:
        """Read mean, directions and radius off the released moments."""
        counts, sums, second = self.gram.unpack(look.vector)
        count = max(float(counts.sum()), 1.0)
        mean = sums.sum(axis=0) / count
        mean /= max(1.0, float(np.linalg.norm(mean)))
        covariance = second[0] / count - np.outer(mean, mean)
        noise = look.noise_stddev / (DIAGONAL * 4.0**Z_BITS * count)  # of one variance; `shrink` explains the edge
        offsets = sums - counts[:, None] * mean
        edge = noise * math.sqrt(2 * len(mean))
        directions = leading_directions(covariance, offsets, self.size, (self.spec.least_variance or 0.0) * edge)
        usual = max(float(np.trace(covariance)) / len(mean), 1e-6)  # of one coordinate: known better than each
        variances = np.einsum("ij,ik,kj->j", directions, covariance, directions)
        variances = np.maximum(variances, max(1e-4, min(usual, noise)))
        left = np.diag(covariance) - (directions**2 * variances).sum(axis=1)
        usual_left = max(float(left.mean()), 1e-6)
        reach = math.sqrt(float(variances.sum())) + 2 * math.sqrt(float(variances.max()))
        radius = min(self.spec.radius, reach)
        return Projection(
            directions=np.rint(np.ldexp(directions, DIRECTION_BITS)).astype(np.int64),
            mean=np.rint(np.ldexp(mean, Z_BITS)).astype(np.int64),
            radius=radius,
            scales=scales,
            spread=np.sqrt(variances) / radius,
            residual=left.clip(usual_left / 4, usual_left * 4),
        )

    def _mixture(self, look: NoisySum | None, projection: Projection) -> Mixture | None:
        """Return the mixture that an iteration starts from; none is needed for one component a class."""
        if self.spec.components == 1:
            return None
        if look is None:
            shape = self.vectors.classes, self.spec.components, projection.size
            return start_mixture(projection.spread**2, np.random.default_rng(self.vae.seed).standard_normal(shape))
        return self._moments(projection.size).maximise(look.vector, look.noise_stddev)

    def _decoder(self, projection: Projection, prior: "Prior", head: Head, start: bool) -> "Decoder":
        """Return the decoder: the inverse projection plus a network, or for cells a network that imitates it."""
        from dpmodels.generators.vae import decoder_of, imitate

        vectors, size = self.vectors, projection.size
        decoder = decoder_of(size, vectors.classes, head.outputs, self.vae.hidden, self.operator)

        def inverse(z: Floats) -> Floats:
            return vectors.inverse(projection.inverse(z * projection.spread), projection.scales)

        if not isinstance(head, CellHead):
            origin = inverse(np.zeros((1, size)))
            decoder.start(self.vae.seed, _tensor(inverse(np.eye(size)) - origin), _tensor(origin[0]))
            return decoder
        decoder.start(self.vae.seed)
        if start:
            layout, partition = Layout.of(vectors.schema), head.partition

            def log_shares(z: Tensor) -> Tensor:
                return inverse_log_shares(inverse(z.numpy()), layout, partition)

            imitate(decoder, prior, partition.sizes, log_shares, self.vae)
        return decoder


def _component_moments(
    moments: ComponentMoments, points: Callable[[Data], Sensitive[Points]], mixture: Mixture | None, data: Data
) -> Sensitive[Whole]:
    return transform_component_moments(moments, points(data), mixture)


def _tensor(array: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(array).float()


def p3gm(measurement: P3gmMeasurement, training: Untrained) -> PrivateTraining:
    """Return P3GM."""
    return PrivateTraining("p3gm", measurement, partial(P3gm, True), P3gmMeasurement.settled)


def p3gm_ae(measurement: P3gmMeasurement, training: Untrained) -> PrivateTraining:
    """Return the AE variant of P3GM."""
    return PrivateTraining("p3gm-ae", measurement, partial(P3gm, False), P3gmMeasurement.settled)
