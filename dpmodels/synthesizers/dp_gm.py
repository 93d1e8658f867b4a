"""DP-GM, the second baseline of P3GM: DP k-means, then one DP-VAE for each cluster (Acs, Melis, Castelluccia, 2018).

    measure   sums and counts of the clusters + noise, each iteration; counts of cluster and class + noise
              one VAE a cluster by DP-SGD on the cluster's records
    sample    cluster and class by their released share, z ~ N(0, I), decode

Privacy: given the released centroids a record lies in one cluster, so it takes part in one training only. Under
add-or-remove-one the trainings together cost what one of them does (parallel composition), and one is charged. The
paper clusters kernel features and lets DP-SGD's rate depend on a cluster's private size; here both are public.
"""

from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from dpmodels.accounting.events import ParallelEvent, SampledGaussianEvent
from dpmodels.embeddings.vectors import VectorRows, Vectors, transform_bounded, transform_cluster, transform_designs
from dpmodels.generators.heads import VALUE_STDDEV
from dpmodels.generators.sizes import VaeSpec
from dpmodels.late import torch
from dpmodels.mechanisms.dp_sgd.spec import Rows, SgdSpec
from dpmodels.privacy import Sensitive
from dpmodels.releases.steps import Data, Parallel, Programme
from dpmodels.schema.schema import Schema
from dpmodels.statistics.cluster_sums import (
    ClusterSums,
    start_centroids,
    transform_class_counts,
    transform_cluster_sums,
)
from dpmodels.statistics.component_moments import Floats, Whole
from dpmodels.synthesizers.dp_vae import plain_vae
from dpmodels.synthesizers.private_training import Built, Looks, Phase, Phases, PrivateTraining, Reader, Untrained


class DpGmMeasurement(BaseModel):
    """What is measured: public parameters that decide the release and so are part of the plan.

    Attributes:
        clusters, iterations: numbers of both in DP k-means; its centroids start on a sphere of ``start_radius``.
        cluster_share, count_share: shares of the budget's squared mu that k-means and the counts of cluster and class
            take; DP-SGD has the rest.
        count_weight: weight of a cluster's count, where its sum of vectors of norm 1 has 1.
        latent: number of coordinates of z; image_radius: norm that images are clipped to, in root mean square ink a
            pixel.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    clusters: Annotated[int, Field(ge=1, le=64)] = 5
    iterations: Annotated[int, Field(ge=1, le=20)] = 3
    start_radius: Annotated[float, Field(gt=0, le=1)] = 0.5
    cluster_share: Annotated[float, Field(ge=0.001, le=0.9)] = 0.1
    count_share: Annotated[float, Field(ge=0.001, le=0.9)] = 0.02
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.3
    latent: Annotated[int, Field(ge=1, le=400)] = 15
    image_radius: Annotated[float, Field(gt=0, le=1)] = 0.39
    sgd: SgdSpec = SgdSpec()
    vae: VaeSpec = VaeSpec()


class DpGmSystem(Phases):
    """The iterations of k-means, the counts, then one training for each cluster."""

    def __init__(self, spec: DpGmMeasurement, schema: Schema) -> None:
        self.spec, self.sgd, self.vae = spec, spec.sgd, spec.vae
        self.vectors = Vectors(schema, spec.vae.most_cells, spec.image_radius, spec.vae.numbers)
        self.sums = ClusterSums(spec.clusters, self.vectors.size, spec.count_weight)
        share, l2 = spec.cluster_share / spec.iterations, self.sums.l2_sensitivity
        self.looks = (
            *(Phase(f"DP k-means {i + 1}", self.sums.dim, l2, share) for i in range(spec.iterations)),
            Phase("records in a cluster and class", spec.clusters * self.vectors.classes, 1, spec.count_share),
        )

    def statistic(self, rows: Sensitive[VectorRows], released: Looks) -> Sensitive[Whole]:
        """Return sums and counts of the clusters in each iteration, and after the last the counts by class."""
        points = transform_bounded(rows, self.vectors, np.ones(self.vectors.dim))
        centroids = self._centroids(released)
        if len(released) < self.spec.iterations:
            return transform_cluster_sums(self.sums, points, centroids)
        return transform_class_counts(points, self.vectors.classes, centroids)

    def build(self, released: Looks, start: bool) -> Built:
        """Return one objective for each cluster."""
        counts = self._counts(released)
        objectives = [plain_vae(self.vectors, self.spec.latent, self.vae, self.vae.seed) for _ in counts]
        return Built(objectives, torch.from_numpy(counts), torch.full((self.vectors.dim,), VALUE_STDDEV))

    def class_counts(self, released: Looks) -> tuple[Floats, float]:
        """Return the released counts of cluster and class, added up over the clusters, and their noise_stddev."""
        return self._counts(released).sum(axis=0), released[-1].noise_stddev * self.spec.clusters**0.5

    def training_rows(self, rows: Sensitive[VectorRows], released: Looks) -> Sensitive[Rows]:
        """Return the vectors of a cluster's rows."""
        return transform_designs(rows)

    def sampled(self, steps: SampledGaussianEvent) -> ParallelEvent:
        """Charge one training for all, since a record takes part in one of them only."""
        return ParallelEvent(by="cluster", events=(steps,))

    def trainings(self, rows: Reader, released: Looks) -> Programme:
        """Train each cluster's objective on the cluster's records."""

        def one(index: int) -> Programme:
            yield self.training(released, index, lambda data: self.training_rows(data.records, released))

        def clusters(data: Data) -> list[Data]:
            centroids, number = self._centroids(released[:-1]), self.spec.clusters
            cut = [transform_cluster(rows(data), self.vectors, centroids, index) for index in range(number)]
            return [Data(own, data.device) for own in cut]

        yield Parallel([one(index) for index in range(self.spec.clusters)], clusters)

    def _counts(self, released: Looks) -> Floats:
        """Read the number of records of each cluster and class."""
        return released[-1].vector.astype(np.float64).reshape(self.spec.clusters, self.vectors.classes)

    def _centroids(self, released: Looks) -> Floats:
        """Return the centroids after the released iterations, which begin at a public start."""
        normal = np.random.default_rng(self.vae.seed).standard_normal((self.spec.clusters, self.vectors.size))
        centroids = start_centroids(normal, self.spec.start_radius)
        for look in released[: self.spec.iterations]:
            centroids = self.sums.centroids(look.vector, centroids, look.noise_stddev)[0]
        return centroids


def dp_gm(measurement: DpGmMeasurement, training: Untrained) -> PrivateTraining:
    """Return DP-GM."""
    return PrivateTraining("dp-gm", measurement, DpGmSystem)
