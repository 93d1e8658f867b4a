"""Principal directions of a noisy second moment: symmetric Gaussian noise, never the (retracted) Wishart one.

A record x of integers adds [ D x_i^2 ; O x_i x_j for i < j ] with D = 29 and O = 41, just below 29 sqrt(2). Since
O^2 <= 2 D^2 its squared norm is at most D^2 (sum_i x_i^4 + 2 sum_{i<j} x_i^2 x_j^2) = (D ||x||^2)^2: what it moves the
release by is D times the Frobenius norm of x x', with every off-diagonal entry released once and counted twice.

Source: Dwork, Talwar, Thakurta, Zhang, "Analyze Gauss" (2014), algorithm 1, on the integer lattice.
"""

import numpy as np
from numpy.typing import NDArray

DIAGONAL, OFF_DIAGONAL = 29, 41


def symmetric_dim(size: int) -> int:
    """Count the coordinates of a symmetric matrix."""
    return size * (size + 1) // 2


def pack(gram: NDArray[np.int64]) -> NDArray[np.int64]:
    """Write symmetric integer matrices as weighted coordinates of their upper triangles.

    Shapes: [..., d, d] -> [..., d (d + 1) / 2].

    Privacy: for ``gram = x x'`` the norm of the result is at most ``DIAGONAL * ||x||^2``.
    """
    rows, columns = np.triu_indices(gram.shape[-1])
    weight: NDArray[np.int64] = np.where(rows == columns, DIAGONAL, OFF_DIAGONAL)
    return gram[..., rows, columns] * weight


def unpack(packed: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Return the symmetric matrices of (noisy) coordinates: noise of standard deviation s becomes s / D and s / O."""
    rows, columns = np.triu_indices(size)
    matrix = np.zeros((*packed.shape[:-1], size, size))
    matrix[..., rows, columns] = packed / np.where(rows == columns, DIAGONAL, OFF_DIAGONAL)
    matrix[..., columns, rows] = matrix[..., rows, columns]
    return matrix


def principal_directions(matrix: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the leading eigenvectors of a released symmetric matrix, largest eigenvalue first (post-processing).

    The sign of each is fixed, so that the same release gives the same directions everywhere. Shapes: [d, count].
    """
    vectors: NDArray[np.float64] = np.linalg.eigh(matrix)[1][:, ::-1][:, :count]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    result: NDArray[np.float64] = vectors * signs
    return result


def edge_of(noise_stddev: float, size: int) -> float:
    """Return the largest eigenvalue that symmetric noise alone has: s sqrt(2 d)."""
    edge: float = noise_stddev * (2 * size) ** 0.5
    return edge


def shrink(
    covariance: NDArray[np.float64],
    noise_stddev: float,
    toward: NDArray[np.float64] | float = 0.0,
    least: float | None = None,
) -> NDArray[np.float64]:
    """Remove from a covariance what symmetric noise puts into it, and bring it to what is positive semidefinite.

    Noise of standard deviation s on the diagonal (off it: s / sqrt 2) has eigenvalues up to e = s sqrt(2 d). In the
    difference from ``toward`` an eigenvalue v below e is taken for noise. One above e is taken for a true eigenvalue
    that noise has enlarged, and sqrt(v^2 - e^2) is the best estimate of it. No eigenvalue of the result is below
    ``least``, or below e / 20 where it is None.

    Source: the optimal shrinker of a spiked Wigner matrix under Frobenius loss (Benaych-Georges, Nadakuditi 2011).
    """
    edge = edge_of(noise_stddev, len(covariance))
    least = edge / 20 if least is None else least
    values, vectors = np.linalg.eigh(covariance - toward)
    shrunk = np.sign(values) * np.sqrt(np.maximum(values**2 - edge**2, 0))
    values, vectors = np.linalg.eigh((vectors * shrunk) @ vectors.T + toward)
    result: NDArray[np.float64] = (vectors * np.maximum(values, least)) @ vectors.T
    return result


def shrink_classes(
    covariances: NDArray[np.float64],
    noise_stddevs: NDArray[np.float64],
    counts: NDArray[np.float64],
    floor: float | None = None,
) -> NDArray[np.float64]:
    """Shrink each class's covariance toward the pooled one, whose noise is less.

    W = sum_c n_c C_c / n, shrunk toward 0;      C_c <- W + shrink(C_c - W)

    No eigenvalue is below ``floor`` times the edge of the noise of W: one bound for all classes, since a class with a
    larger one would seem wider, and where noise is large that alone would decide. Without ``floor`` each is bounded as
    by ``shrink``.

    Shapes: [classes, d, d], [classes], [classes] -> [classes, d, d].
    """
    shares = counts / counts.sum()
    noise = float(np.linalg.norm(shares * noise_stddevs))
    least = None if floor is None else floor * edge_of(noise, covariances.shape[-1])
    pooled = shrink(np.einsum("c,cij->ij", shares, covariances), noise, least=least)
    return np.stack([shrink(c, s, pooled, least) for c, s in zip(covariances, noise_stddevs, strict=True)])


def factor_of(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return F with F F' = covariance, negative eigenvalues taken for 0. Shapes: [d, d] -> [d, d]."""
    values, vectors = np.linalg.eigh(covariance)
    result: NDArray[np.float64] = vectors * np.sqrt(np.maximum(values, 0))
    return result
