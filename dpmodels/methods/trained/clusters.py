"""Cluster first: DP k-means, then one training for each cluster, side by side, and records by the clusters' counts.

    measure   sums and counts of the clusters + noise, each iteration; counts of cluster and class + noise
              one objective a cluster, by DP-SGD on the cluster's records

Privacy: given the released centroids a record lies in one cluster, so it takes part in one training only. Under
add-or-remove-one the trainings together cost what one of them does (parallel composition), and one is charged. The
rate of DP-SGD is public and the same in every cluster.
"""

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from dpmodels.accounting.events import ParallelEvent, SampledGaussianEvent
from dpmodels.arrays import Floats, Whole
from dpmodels.embeddings.vectors import (
    VectorRows,
    Vectors,
    transform_bounded,
    transform_cluster,
    transform_numbers,
)
from dpmodels.frozen import Frozen
from dpmodels.methods.trained.private_training import Looks, Phase, Phases, Reader
from dpmodels.privacy import Sensitive
from dpmodels.releases.steps import Data, Parallel, Programme
from dpmodels.statistics.cluster_sums import (
    ClusterSums,
    start_centroids,
    transform_class_counts,
    transform_cluster_sums,
)


class ClusterMeasurement(Frozen):
    """What the clusters are made of: public parameters that decide the release and so are part of the plan.

    Attributes:
        clusters, iterations: numbers of both in DP k-means; its centroids start on a sphere of ``start_radius``.
        cluster_share, count_share: shares of the budget's squared mu that k-means and the counts of cluster and class
            take; DP-SGD has the rest.
        count_weight: weight of a cluster's count, where its sum of vectors of norm 1 has 1.
        image_radius: norm that images are clipped to, in root mean square ink a pixel.
    """

    clusters: Annotated[int, Field(ge=1, le=64)] = 5
    iterations: Annotated[int, Field(ge=1, le=20)] = 3
    start_radius: Annotated[float, Field(gt=0, le=1)] = 0.5
    cluster_share: Annotated[float, Field(ge=0.001, le=0.9)] = 0.1
    count_share: Annotated[float, Field(ge=0.001, le=0.9)] = 0.02
    count_weight: Annotated[float, Field(gt=0, le=10)] = 0.3
    image_radius: Annotated[float, Field(gt=0, le=1)] = 0.39


class Clusters(Phases):
    """The looks that find clusters, and trainings side by side."""

    least_clusters: ClassVar[int] = 1
    """Fewer clusters than this need no looks to find them."""

    def lay_out(self, spec: ClusterMeasurement, vectors: Vectors, seed: int, share: float = 1.0) -> None:
        """Set the looks; those of k-means and the counts take the given part of their shares."""
        self.clusters, self.vectors, self.seed, self.start_radius = spec, vectors, seed, spec.start_radius
        self.sums = ClusterSums(spec.clusters, vectors.size, spec.count_weight)
        self.iterations = spec.iterations if spec.clusters >= self.least_clusters else 0
        before = self.warm.phases if self.warm else ()
        each = spec.cluster_share * share / spec.iterations
        self.looks = (
            *before,
            *(
                Phase(f"DP k-means {i + 1}", self.sums.dim, self.sums.l2_sensitivity, each)
                for i in range(self.iterations)
            ),
            Phase("records in a cluster and class", spec.clusters * vectors.classes, 1, spec.count_share * share),
        )
        self.first = len(before)

    def statistic(self, rows: Sensitive[VectorRows], released: Looks) -> Sensitive[Whole]:
        """Return sums and counts of the clusters in each iteration, and after the last the counts by class."""
        points = transform_bounded(rows, self.vectors, np.ones(self.vectors.dim))
        centroids = self.centroids(released)
        if len(released) < self.first + self.iterations:
            return transform_cluster_sums(self.sums, points, centroids)
        return transform_class_counts(points, self.vectors.classes, centroids)

    def class_counts(self, released: Looks) -> tuple[Floats, float]:
        """Return the released counts of cluster and class, added up over the clusters, and their noise_stddev."""
        return self.counts(released).sum(axis=0), released[-1].noise_stddev * self.clusters.clusters**0.5

    def sampled(self, steps: SampledGaussianEvent) -> ParallelEvent:
        """Charge one training for all, since a record takes part in one of them only."""
        return ParallelEvent(by="cluster", events=(steps,))

    def trainings(self, rows: Reader, released: Looks) -> Programme:
        """Train each cluster's objective on the cluster's records."""

        def one(index: int) -> Programme:
            yield self.training(released, index, lambda data: self.training_rows(data.records, released))

        def cut(data: Data) -> list[Data]:
            centroids, number = self.centroids(released), self.clusters.clusters
            parts = [transform_cluster(rows(data), self.vectors, centroids, index) for index in range(number)]
            return [Data(part, data.device, transform_numbers(part)) for part in parts]

        yield Parallel([one(index) for index in range(self.clusters.clusters)], cut)

    def counts(self, released: Looks) -> Floats:
        """Read the number of records of each cluster and class."""
        return released[-1].vector.astype(np.float64).reshape(self.clusters.clusters, self.vectors.classes)

    def centroids(self, released: Looks) -> Floats:
        """Return the centroids after the released iterations, which begin at a public start."""
        normal = np.random.default_rng(self.seed).standard_normal((self.clusters.clusters, self.vectors.size))
        centroids = start_centroids(normal, self.start_radius)
        for look in released[self.first : self.first + self.iterations]:
            centroids = self.sums.centroids(look.vector, centroids, look.noise_stddev)[0]
        return centroids
