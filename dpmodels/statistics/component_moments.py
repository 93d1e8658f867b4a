"""DP-EM for a mixture of Gaussians in each class: one joint release of (N_k, S_k, Q_k) of all components an iteration.

    s = [ a rho_k ; b rho_k z ; rho_k z z' ]  summed over records, for every component k of the record's class

with z a vector of whole numbers, ||z|| <= R = 2**Z_BITS, and rho_k whole responsibilities, sum_k rho_k <= 2**RHO_BITS.

Privacy: unit one record, add or remove. It moves s by at most sqrt(sum_k rho_k^2 (a^2 + b^2 ||z||^2 + (D ||z||^2)^2))
<= 2**RHO_BITS sqrt(a^2 + b^2 R^2 + (D R^2)^2) in L2 norm (``symmetric`` has D and its part), because
sum_k rho_k^2 <= (sum_k rho_k)^2. With weights a and b of 1 that is sqrt(3), however many components there are.

With one component a class and no responsibilities to find, one iteration is the whole of it; with one component of all
records it is the second moment that DP-PCA needs. Source: Park, Foulds, Chaudhuri, Welling, "DP-EM" (2016).
"""

from dataclasses import dataclass

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.errors import Unsuitable
from dpmodels.mechanisms.lattice import integer_radius
from dpmodels.privacy import Sensitive
from dpmodels.statistics.symmetric import DIAGONAL, pack, shrink, symmetric_dim, unpack

Z_BITS, RHO_BITS, WHITEN_BITS = 12, 8, 22
BLOCK_ROWS = 4096
"""Rows multiplied at once: their sums stay below 2**53, so float64 products are exact."""
LEAST_VARIANCE = 1e-4
"""Floor of every variance, where the clip norm is 1."""


@dataclass(frozen=True)
class Mixture:
    """A mixture of Gaussians for each class, where the clip norm is 1.

    Shapes: ``shares`` [C, K], summing to 1 a class; ``means`` [C, K, d]; ``covariances`` [C, K, d, d].
    """

    shares: Floats
    means: Floats
    covariances: Floats


@dataclass(frozen=True)
class Points:
    """Records as whole vectors of norm at most 2**Z_BITS, with their class. Shapes: ``z`` [n, d]; ``label`` [n]."""

    z: Whole
    label: Whole


class ComponentMoments:
    """The statistics of one iteration: their size, sensitivity, sum and meaning.

    Shapes: the vector is [classes * K, 1 + d + d (d + 1) / 2] flattened.
    """

    def __init__(self, classes: int, components: int, size: int, count_weight: float, mean_weight: float) -> None:
        self.classes, self.components, self.size = classes, components, size
        one = DIAGONAL << (2 * Z_BITS)
        self.count_step = max(1, round(count_weight * one))
        self.mean_step = max(1, round(mean_weight * (DIAGONAL << Z_BITS)))
        self.width = 1 + size + symmetric_dim(size)
        self.dim = classes * components * self.width
        squared: int = self.count_step**2 + (self.mean_step << Z_BITS) ** 2 + one**2
        self.l2_sensitivity = integer_radius(squared) << RHO_BITS

    def total(self, z: Whole, rho: Whole, label: Whole) -> Whole:
        """Sum the statistics of all records, exactly.

        Shapes: z [n, d], rho [n, K], label [n] -> [dim].

        Raises:
            Unsuitable: a vector or its responsibilities exceed the bound that the sensitivity is proved for.
        """
        total = np.zeros((self.classes, self.components, self.width), dtype=np.int64)
        for start in range(0, len(z), BLOCK_ROWS):
            stop = start + BLOCK_ROWS
            block, weights, classes = z[start:stop].astype(np.float64), rho[start:stop], label[start:stop]
            bounded = (block * block).sum(axis=1).max(initial=0) <= 4.0**Z_BITS and weights.min(initial=0) >= 0
            if not (bounded and weights.sum(axis=1).max(initial=0) <= 1 << RHO_BITS):
                raise Unsuitable("a vector passes the norm that the sensitivity is proved for; bound it before summing")
            for c in np.unique(classes):
                members, member_weights = block[classes == c], weights[classes == c]
                for k in range(self.components):
                    weighted = members * member_weights[:, k, None]
                    total[c, k, 0] += int(member_weights[:, k].sum()) * self.count_step
                    total[c, k, 1 : 1 + self.size] += weighted.sum(axis=0).astype(np.int64) * self.mean_step
                    total[c, k, 1 + self.size :] += pack((weighted.T @ members).astype(np.int64))
        return total.ravel()

    def unpack(self, released: Whole) -> tuple[Floats, Floats, Floats]:
        """Split a released vector into N, S and Q, in records of clip norm 1 (post-processing).

        Shapes: [classes, K], [classes, K, d], [classes, K, d, d].
        """
        blocks = np.ldexp(released.astype(np.float64), -RHO_BITS).reshape(self.classes, self.components, self.width)
        sums = blocks[..., 1 : 1 + self.size] / (self.mean_step * 2.0**Z_BITS)
        moments = unpack(blocks[..., 1 + self.size :], self.size) / 4.0**Z_BITS
        return blocks[..., 0] / self.count_step, sums, moments

    def maximise(self, released: Whole, noise_stddev: float) -> Mixture:
        """Return the mixture of released statistics (M step; post-processing).

        Counts are kept above their own noise, so that an empty component cannot explode; covariances lose what noise
        puts into them and keep a public floor.

        Units: ``noise_stddev`` in lattice steps.
        """
        counts, sums, moments = self.unpack(released)
        scale = noise_stddev / 2.0**RHO_BITS
        clipped_counts = counts.clip(min=max(1.0, scale / self.count_step))
        means = sums / clipped_counts[..., None]
        means /= np.maximum(1.0, np.linalg.norm(means, axis=-1, keepdims=True))
        covariances = moments / clipped_counts[..., None, None] - means[..., :, None] * means[..., None, :]
        noise = scale / (DIAGONAL * 4.0**Z_BITS) / clipped_counts
        for component in np.ndindex(clipped_counts.shape):
            covariance = shrink(covariances[component], float(noise[component]))
            covariances[component] = covariance + LEAST_VARIANCE * np.eye(self.size)
        return Mixture(clipped_counts / clipped_counts.sum(axis=1, keepdims=True), means, covariances)


def transform_component_moments(
    moments: ComponentMoments, points: Sensitive[Points], mixture: Mixture | None
) -> Sensitive[Whole]:
    """Sum the statistics of one iteration from the mixture released before; None where each class is one component.

    Privacy: Sensitive -> Sensitive; one record moves the result by at most ``moments.l2_sensitivity`` in L2 norm.
    """
    rows = points.reveal()
    if mixture is None:
        rho = np.full((len(rows.z), 1), 1 << RHO_BITS, dtype=np.int64)
    else:
        rho = responsibilities(rows.z, rows.label, mixture)
    return Sensitive(moments.total(rows.z, rho, rows.label))


def responsibilities(z: Whole, label: Whole, mixture: Mixture) -> Whole:
    """Return each component's responsibility for each record of its class (E step), rounded down to 2**-RHO_BITS.

    Privacy: a function of the record and of the released mixture alone; each row sums to at most 2**RHO_BITS.

    Shapes: z [n, d], label [n] -> [n, K].
    """
    rho = np.zeros((len(z), mixture.shares.shape[1]), dtype=np.int64)
    for c in np.unique(label):
        members = label == c
        log = np.stack([_log_density(z[members], mixture, c, k) for k in range(rho.shape[1])], axis=1)
        share = np.exp(log - log.max(axis=1, keepdims=True))
        # a relative 2**-40 off, so that no rounding can lift a sum above one
        rho[members] = np.floor(share / share.sum(axis=1, keepdims=True) * (2.0**RHO_BITS * (1 - 2.0**-40)))
    if rho.shape[1] == 1:
        rho[:] = 1 << RHO_BITS
    return rho


def start_mixture(variances: Floats, normal: Floats) -> Mixture:
    """Return where the first iteration starts: means at public draws scaled by released variances; reads no data.

    Components start narrow, so that they separate in few iterations: each costs budget. Shapes: [d], [classes, K, d].
    """
    components = normal.shape[1]
    wide = np.diag(variances / components**2 + LEAST_VARIANCE)
    covariances = np.broadcast_to(wide, (*normal.shape, len(variances))).copy()
    return Mixture(np.full(normal.shape[:2], 1 / components), normal * np.sqrt(variances), covariances)


def _log_density(z: Whole, mixture: Mixture, c: int, k: int) -> Floats:
    """Return log(share * density) but for a constant.

    Mean and whitening are rounded, so that their product with whole vectors is exact (below 2**53, up to 400 of them):
    no record's density depends on those beside it.
    """
    factor = np.linalg.cholesky(mixture.covariances[c, k])
    whiten = np.rint(np.ldexp(np.linalg.inv(factor), WHITEN_BITS))  # at most 1 / sqrt(LEAST_VARIANCE) before
    centred = z - np.rint(np.ldexp(mixture.means[c, k], Z_BITS))
    whitened = np.ldexp(centred @ whiten.T, -WHITEN_BITS - Z_BITS)
    log: Floats = -0.5 * (whitened**2).sum(axis=1) - np.log(np.diag(factor)).sum() + np.log(mixture.shares[c, k])
    return log
