"""The recoder H: a small network, trained on public documents, that moves sentences of one cluster together.

Source: Meehan, Mrini and Chaudhuri, "Sentence-level privacy for document embeddings" (2022), section 4.3. Theirs is
trained through the mean of a document's recoded sentences; ours learns to tell the cluster of a document's mean, and is
then applied to sentences, which needs no more than scikit-learn.

A sentence must be recoded to the same bits whatever comes in the same batch, and on every machine. So weights and
activations are whole multiples of STEP, so small that a product of matrices is exact in float64 in any order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats
from dpmodels.errors import ArtifactError

STEP = 2.0**-16
LARGEST = 2.0**10
"""Bound of a number on the lattice, so that a sum of products with ``WIDEST`` stays below 2**53 steps squared."""
WIDEST = 2.0**10
"""Bound of the sum of the magnitudes of the weights that lead to one number."""


@dataclass(frozen=True)
class Recoder:
    """Layers that end in the recoded sentence: x -> max(x W + b, 0) for each; without layers it is the identity.

    Shapes: weights[i] [width of i, width of i + 1], biases[i] [width of i + 1].
    """

    weights: list[Floats] = field(default_factory=list)
    biases: list[Floats] = field(default_factory=list)

    def __call__(self, vectors: NDArray[np.floating]) -> Floats:
        """Recode sentences, row by row, exactly."""
        points = on_lattice(vectors)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            points = on_lattice(np.maximum(points @ weight + bias, 0.0))
        return points


def on_lattice(numbers: NDArray[np.floating]) -> Floats:
    """Round numbers to multiples of STEP within the bounds of the lattice."""
    with np.errstate(over="ignore"):  # what is beyond a float is beyond the bounds
        rounded: Floats = np.clip(np.rint(np.asarray(numbers, dtype=np.float64) / STEP) * STEP, -LARGEST, LARGEST)
    return rounded


def check_exact(*weights: Floats) -> None:
    """Refuse weights with which a product might be rounded.

    Raises:
        ArtifactError: they are not on the lattice, or too large.
    """
    for weight in weights:
        if not (np.array_equal(weight, on_lattice(weight)) and np.abs(weight).sum(axis=0).max(initial=0.0) <= WIDEST):
            raise ArtifactError("the public file holds weights with which sentences would not be recoded exactly")


def train_recoder(means: Floats, clusters: int, hidden: Sequence[int], seed: int) -> Recoder:
    """Train the layers on the means of public documents, to tell which of the clusters a mean lies in.

    Without hidden layers, or where all documents are alike, there is nothing to learn.

    Shapes: means [documents, dim].

    Privacy: reads public documents alone.
    """
    clusters = min(clusters, len(np.unique(means, axis=0)))
    if not hidden or clusters < 2:
        return Recoder()
    from sklearn.cluster import KMeans
    from sklearn.neural_network import MLPClassifier

    cluster_labels = KMeans(clusters, n_init=2, random_state=seed).fit(means).labels_
    network = MLPClassifier(tuple(hidden), max_iter=60, random_state=seed, early_stopping=False, tol=0.0)
    for _ in range(network.max_iter):
        network.partial_fit(means, cluster_labels, classes=np.arange(cluster_labels.max() + 1))
    layers = list(zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True))
    recoder = Recoder([on_lattice(weight) for weight, _ in layers], [on_lattice(bias) for _, bias in layers])
    check_exact(*recoder.weights)
    return recoder
