"""The count and the sum of each class, with the second moment of all records or of each class.

    s = [ a e_y ; b x (x) e_y ; x x', or x x' (x) e_y ]  summed over records, x whole numbers with ||x|| <= R = 2**bits

Privacy: unit one record, add or remove. It enters one count, one sum and one matrix, so it moves s by at most
sqrt(a^2 + (b R)^2 + (D R^2)^2) in L2 norm, however many classes there are (``symmetric`` has D and the symmetric part):
the class means come at the price of one mean. P3GM's directions and the Gaussians of images are read off it.

A record that is replaced moves it by less than twice that. With p = x.x', a pair of one class moves the means by
b^2 (||x||^2 + ||x'||^2 - 2p) and the matrix by at most D^2 (||x||^4 + ||x'||^4 - 2p^2) + R^4, in squared norm. Whatever
p is, the two are at most 2B + 2S + B^2 / (2S) + R^4 together, with B = (b R)^2 and S = (D R^2)^2. A pair of two classes
moves the counts by 2a^2 and the means by at most 2B: together at most 2a^2 + 2B + 2S + R^4. The R^4 is there because
the weight of what is off the diagonal is rounded.
"""

import math
from collections.abc import Iterable

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.errors import Unsuitable
from dpmodels.mechanisms.lattice import integer_radius
from dpmodels.privacy import Sensitive
from dpmodels.statistics.component_moments import BLOCK_ROWS, Z_BITS, Points
from dpmodels.statistics.symmetric import DIAGONAL, pack, principal_directions, symmetric_dim, unpack


class ClassMoments:
    """The statistic: its size, sensitivity, sum and meaning; ``pooled`` has one second moment for all classes.

    Shapes: [classes, 1 + d] flattened, then [1 or classes, d (d + 1) / 2] flattened.
    """

    def __init__(
        self,
        classes: int,
        size: int,
        count_weight: float,
        mean_weight: float,
        *,
        bits: int = Z_BITS,
        pooled: bool = True,
    ) -> None:
        self.classes, self.size, self.bits, self.pooled = classes, size, bits, pooled
        self.matrices = 1 if pooled else classes
        one = DIAGONAL << (2 * bits)
        self.count_step = max(1, round(count_weight * one))
        self.mean_step = max(1, round(mean_weight * (DIAGONAL << bits)))
        self.dim = classes * (1 + size) + self.matrices * symmetric_dim(size)
        counts, means, squares = self.count_step**2, (self.mean_step << bits) ** 2, one**2
        self.l2_sensitivity = integer_radius(counts + means + squares)
        apart = max(2 * counts, -(-(means**2) // (2 * squares)))
        self.replaced_sensitivity = integer_radius(apart + 2 * means + 2 * squares + (1 << 4 * bits))

    @property
    def spread_norm(self) -> float:
        """The length that each record adds to the sum on average where all classes and directions are as frequent.

        Vectors that point everywhere cancel out; what adds up are the counts, and the diagonal of the second moments.
        """
        return math.hypot(self.count_step / math.sqrt(self.classes), (DIAGONAL << 2 * self.bits) / math.sqrt(self.size))

    def total(self, z: Whole, label: Whole) -> Whole:
        """Sum over all records, exactly.

        Shapes: z [n, d], label [n] -> [dim].

        Raises:
            Unsuitable: vectors have another size, or one exceeds the norm, than the sensitivity is proved for.
        """
        if z.shape[1:] != (self.size,):
            raise Unsuitable("the vectors are of another size than the sensitivity is proved for; plan again")
        means = np.zeros((self.classes, 1 + self.size), dtype=np.int64)
        seconds = np.zeros((self.matrices, symmetric_dim(self.size)), dtype=np.int64)
        for start in range(0, len(z), BLOCK_ROWS):
            block, classes = z[start : start + BLOCK_ROWS].astype(np.float64), label[start : start + BLOCK_ROWS]
            if (block * block).sum(axis=1).max(initial=0) > 4.0**self.bits:
                raise Unsuitable("a vector passes the norm that the sensitivity is proved for; bound it before summing")
            for c in np.unique(classes):
                members = block[classes == c]
                means[c, 0] += len(members) * self.count_step
                means[c, 1:] += members.sum(axis=0).astype(np.int64) * self.mean_step
                seconds[0 if self.pooled else c] += pack((members.T @ members).astype(np.int64))
        return np.concatenate([means.ravel(), seconds.ravel()])

    def unpack(self, released: Whole) -> tuple[Floats, Floats, Floats]:
        """Split a released vector into N, S and Q, in records of clip norm 1 (post-processing).

        Shapes: [classes], [classes, d], [1 or classes, d, d].
        """
        means, seconds = np.split(released, [self.classes * (1 + self.size)])
        means = means.reshape(self.classes, 1 + self.size)
        moments = unpack(seconds.reshape(self.matrices, -1), self.size) / 4.0**self.bits
        return means[:, 0] / self.count_step, means[:, 1:] / (self.mean_step * 2.0**self.bits), moments


def transform_class_moments(moments: ClassMoments, points: Sensitive[Points]) -> Sensitive[Whole]:
    """Sum the statistic over all records.

    Privacy: Sensitive -> Sensitive; one record moves the result by at most ``moments.l2_sensitivity`` in L2 norm.
    """
    rows = points.reveal()
    return Sensitive(moments.total(rows.z, rows.label))


def transform_all_moments(moments: ClassMoments, points: Sensitive[Iterable[Points]]) -> Sensitive[Whole]:
    """Sum the statistic over all records of several parties, or of one; as ``transform_class_moments``."""
    total = np.zeros(moments.dim, dtype=np.int64)
    for part in points.reveal():
        total += moments.total(part.z, part.label.clip(0, moments.classes - 1))
    return Sensitive(total)


def leading_directions(covariance: Floats, offsets: Floats, size: int, least: float) -> Floats:
    """Return orthonormal directions: those that part the classes, then the principal ones of what these leave.

    Principal ones stop where the eigenvalue is below ``least``, such as the edge of the noise (post-processing).

    Shapes: covariance [d, d]; offsets [classes, d], each class's sum about the common mean -> [d, at most size].
    """
    parting = min(len(offsets) - 1, size // 2)
    first = np.linalg.svd(offsets, full_matrices=False)[2][:parting].T
    left = np.eye(len(covariance)) - first @ first.T
    rest = left @ covariance @ left
    others = principal_directions(rest, size - parting)
    above_least = np.einsum("ij,ik,kj->j", others, rest, others) > least
    above_least[: max(0, 1 - parting)] = True
    directions: Floats = np.concatenate([first, others[:, above_least]], axis=1)
    return directions
