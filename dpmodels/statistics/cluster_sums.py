"""DP k-means: public start, a fixed number of iterations, noise on sums and counts in one release each.

    s = [ a e_k(z) ; z (x) e_k(z) ]  summed over records, k(z) the nearest of the centroids released before

Privacy: unit one record, add or remove. Given the centroids, z lies in one cluster: it moves s by at most
sqrt(a^2 + R^2), ||z|| <= R = 2**Z_BITS, however many clusters there are. T iterations are T Gaussian releases.
Source: Su, Cao, Li, Bertino, Jin, "Differentially private k-means clustering" (2016), with Gaussian noise.
"""

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.errors import Unsuitable
from dpmodels.mechanisms.lattice import integer_radius
from dpmodels.privacy import Sensitive
from dpmodels.statistics.component_moments import Z_BITS, Points


class ClusterSums:
    """The statistics of one iteration. Shapes: the vector is [K, 1 + d] flattened."""

    def __init__(self, clusters: int, size: int, count_weight: float) -> None:
        self.clusters, self.size, self.dim = clusters, size, clusters * (1 + size)
        self.count_step = max(1, round(count_weight * (1 << Z_BITS)))
        self.l2_sensitivity = integer_radius(self.count_step**2 + (1 << 2 * Z_BITS))

    def total(self, z: Whole, cluster: Whole) -> Whole:
        """Sum the statistics of all records, exactly.

        Shapes: z [n, d], cluster [n] -> [dim].

        Raises:
            Unsuitable: a vector exceeds the norm that the sensitivity is proved for.
        """
        if ((z.astype(np.float64) ** 2).sum(axis=1) > 4.0**Z_BITS).any():
            raise Unsuitable("a vector passes the norm that the sensitivity is proved for; bound it before summing")
        total = np.zeros((self.clusters, 1 + self.size), dtype=np.int64)
        for k in range(self.clusters):
            members = z[cluster == k]
            total[k, 0] = len(members) * self.count_step
            total[k, 1:] = members.sum(axis=0)
        return total.ravel()

    def centroids(self, released: Whole, before: Floats, noise_stddev: float) -> tuple[Floats, Floats]:
        """Return the new centroids and the counts (post-processing); a cluster that is all noise stays where it was.

        Shapes: [K, d], where the clip norm is 1, and [K] in records. Units: ``noise_stddev`` in lattice steps.
        """
        blocks = released.astype(np.float64).reshape(self.clusters, 1 + self.size)
        counts = blocks[:, 0] / self.count_step
        populated = counts > 2 * noise_stddev / self.count_step
        means = np.ldexp(blocks[:, 1:], -Z_BITS) / np.where(populated, counts, 1.0)[:, None]
        means /= np.maximum(1.0, np.linalg.norm(means, axis=1, keepdims=True))
        return np.where(populated[:, None], means, before), counts


def transform_cluster_sums(sums: ClusterSums, points: Sensitive[Points], centroids: Floats) -> Sensitive[Whole]:
    """Sum the statistics of one iteration about the centroids released before.

    Privacy: Sensitive -> Sensitive; one record moves the result by at most ``sums.l2_sensitivity`` in L2 norm.
    """
    z = points.reveal().z
    return Sensitive(sums.total(z, nearest(z, centroids)))


def transform_class_counts(
    points: Sensitive[Points], classes: int, centroids: Floats | None = None
) -> Sensitive[Whole]:
    """Count the records of each class, in each cluster if there are centroids.

    Privacy: Sensitive -> Sensitive; one record moves one count by 1.
    """
    rows = points.reveal()
    if centroids is None:
        return Sensitive(np.bincount(rows.label, minlength=classes))
    cell = rows.label + classes * nearest(rows.z, centroids)
    return Sensitive(np.bincount(cell, minlength=classes * len(centroids)))


def nearest(z: Whole, centroids: Floats) -> Whole:
    """Return the nearest centroid of each record, a function of that record and of what was released.

    Centroids are rounded to 2**-24 here, so that products and sums are exact and no record's answer depends on those
    beside it.

    Shapes: z [n, d], centroids [K, d] -> [n].
    """
    points, centroids = np.ldexp(z.astype(np.float64), -Z_BITS), np.ldexp(np.rint(np.ldexp(centroids, 24)), -24)
    distances = (centroids**2).sum(axis=1) - 2 * points @ centroids.T
    index: Whole = distances.argmin(axis=1)
    return index


def start_centroids(normal: Floats, radius: float) -> Floats:
    """Return public draws scaled onto a sphere; reads no data. Shapes: [K, d] -> [K, d], where the clip norm is 1."""
    result: Floats = radius * normal / np.linalg.norm(normal, axis=1, keepdims=True)
    return result
