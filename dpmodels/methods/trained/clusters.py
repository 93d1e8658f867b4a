"""Cluster first: DP k-means, then one training for each cluster, side by side, and records by the clusters' counts.

    measure   sums and counts of the clusters + noise, each iteration; counts of cluster and class + noise
              one objective a cluster, by DP-SGD on the cluster's records

Privacy: given the released centroids a record lies in one cluster, so it takes part in one training only. Under
add-or-remove-one the trainings together cost what one of them does (parallel composition), and one is charged. The
rate of DP-SGD is public and the same in every cluster.
"""

from abc import abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

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
from dpmodels.mechanisms.dp_sgd.spec import Rows
from dpmodels.methods.trained.private_training import Look, Reader, Training
from dpmodels.privacy import Sensitive
from dpmodels.releases.steps import Data, NoisySum, Parallel, Programme, Step
from dpmodels.statistics.cluster_sums import (
    ClusterSums,
    start_centroids,
    transform_class_counts,
    transform_cluster_sums,
)
from dpmodels.statistics.component_moments import Points


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


@dataclass(frozen=True)
class Counts:
    """What the looks of a system say that counts records.

    Attributes:
        counts: the released number of records of each network and class. Shapes: [networks, classes].
        noise_stddev: of one count, in records.
        centroids: what records are nearest to, each of one network; None where there is one network.
        warm: what the looks of a warm start released.
    """

    counts: Floats
    noise_stddev: float
    centroids: Floats | None = None
    warm: tuple[NoisySum, ...] = ()

    @classmethod
    def of(cls, look: NoisySum, centroids: Floats | None = None, warm: Sequence[NoisySum] = ()) -> "Counts":
        """Read the counts off a look."""
        networks = 1 if centroids is None else len(centroids)
        return cls(look.vector.astype(np.float64).reshape(networks, -1), look.noise_stddev, centroids, tuple(warm))

    def of_classes(self) -> tuple[Floats, float]:
        """Return the number of records of each class, added up over the networks, and its noise_stddev."""
        return self.counts.sum(axis=0), self.noise_stddev * len(self.counts) ** 0.5


def count_classes(vectors: Vectors, rows: Reader, data: Data) -> Sensitive[Whole]:
    """Count the records of each class."""
    return transform_class_counts(_points(vectors, rows, data), vectors.classes)


class Clusters(Training[Counts]):
    """The looks that find clusters, and trainings side by side."""

    least_clusters: ClassVar[int] = 1
    """Fewer clusters than this need no looks to find them."""

    def lay_out(self, spec: ClusterMeasurement, vectors: Vectors, seed: int, share: float = 1.0) -> None:
        """Set the looks; those of k-means and the counts take the given part of their shares."""
        self.clusters, self.vectors, self.seed, self.start_radius = spec.clusters, vectors, seed, spec.start_radius
        self.sums = ClusterSums(spec.clusters, vectors.size, spec.count_weight)
        self.iterations = spec.iterations if spec.clusters >= self.least_clusters else 0
        each = spec.cluster_share * share / spec.iterations
        self.looks = (
            *(self.warm.looks if self.warm else ()),
            *(
                Look(f"DP k-means {i + 1}", self.sums.dim, self.sums.l2_sensitivity, each)
                for i in range(self.iterations)
            ),
            Look("records in a cluster and class", spec.clusters * vectors.classes, 1, spec.count_share * share),
        )

    def programme(self, rows: Reader) -> Generator[Step, Any, Counts]:
        """Find the clusters, count their records by class, and train a network on the records of each."""
        warm = (yield from self.warm.programme()) if self.warm else []
        normal = np.random.default_rng(self.seed).standard_normal((self.clusters, self.vectors.size))
        centroids = start_centroids(normal, self.start_radius)
        for i in range(self.iterations):
            look = yield self.look(f"DP k-means {i + 1}", partial(self._cluster_sums, rows, centroids))
            centroids = self.sums.centroids(look.vector, centroids, look.noise_stddev)[0]
        count = partial(self._count, rows, centroids)
        counts = Counts.of((yield self.look("records in a cluster and class", count)), centroids, warm)
        trainings = [self._one(counts, index) for index in range(self.clusters)]
        yield Parallel(trainings, partial(self._cut, rows, centroids))
        return counts

    @abstractmethod
    def training_rows(self, rows: Sensitive[VectorRows]) -> Sensitive[Rows]:
        """Return the rows that a training reads."""

    def charged(self, steps: SampledGaussianEvent) -> ParallelEvent:
        """Charge one training for all, since a record takes part in one of them only."""
        return ParallelEvent(by="cluster", events=(steps,))

    def class_counts(self, counts: Counts) -> tuple[Floats, float]:
        """Return the released counts of cluster and class, added up over the clusters, and their noise_stddev."""
        return counts.of_classes()

    def _cluster_sums(self, rows: Reader, centroids: Floats, data: Data) -> Sensitive[Whole]:
        return transform_cluster_sums(self.sums, _points(self.vectors, rows, data), centroids)

    def _count(self, rows: Reader, centroids: Floats, data: Data) -> Sensitive[Whole]:
        return transform_class_counts(_points(self.vectors, rows, data), self.vectors.classes, centroids)

    def _one(self, counts: Counts, index: int) -> Programme:
        yield self.train(counts, lambda data: self.training_rows(data.records), index)

    def _cut(self, rows: Reader, centroids: Floats, data: Data) -> list[Data]:
        parts = [transform_cluster(rows(data), self.vectors, centroids, index) for index in range(self.clusters)]
        return [Data(part, data.device, transform_numbers(part)) for part in parts]


def _points(vectors: Vectors, rows: Reader, data: Data) -> Sensitive[Points]:
    return transform_bounded(rows(data), vectors, np.ones(vectors.dim))
