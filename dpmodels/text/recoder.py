"""The recoder H: a small network, trained on public documents, that moves sentences of one cluster together.

Source: Meehan, Mrini and Chaudhuri, "Sentence-level privacy for document embeddings" (2022), section 4.3 and
appendix B. A document's sentences pass through H and are averaged, and a linear model tells the document's cluster by
the average.

A sentence must be recoded to the same bits whatever comes in the same batch, and on every machine. So weights and
activations are whole multiples of STEP, so small that a product of matrices is exact in float64 in any order.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Whole
from dpmodels.errors import ArtifactError
from dpmodels.late import Tensor, torch

if TYPE_CHECKING:
    from dpmodels.text.passages import Passages

STEP = 2.0**-16
LARGEST = 2.0**10
"""Bound of a number on the lattice, so that a sum of products with ``WIDEST`` stays below 2**53 steps squared."""
WIDEST = 2.0**10
"""Bound of the sum of the magnitudes of the weights that lead to one number."""
EPOCHS, STEPS, BATCH, RATE, JUDGED = 4, 300, 64, 3e-3, 0.1
"""Of training, which takes as many epochs and steps at least; a share of the documents tells which was the best."""


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


def train_recoder(documents: "Passages", clusters: int, hidden: Sequence[int], seed: int) -> Recoder:
    """Train the layers on public documents, to tell the cluster of a document from the mean of its recoded sentences.

    Without hidden layers, or where all documents are alike, there is nothing to learn.

    Privacy: reads public documents alone.
    """
    means = documents.means()
    clusters = min(clusters, len(np.unique(means, axis=0)))
    if not hidden or clusters < 2:
        return Recoder()
    from sklearn.cluster import KMeans
    from torch.nn import Linear, ReLU, Sequential

    labels = torch.from_numpy(KMeans(clusters, n_init=2, random_state=seed).fit(means).labels_).long()
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        layers = [Linear(*sizes) for sizes in pairwise((means.shape[1], *hidden))]
        teller = Linear(hidden[-1], clusters)
    network = Sequential(*(part for layer in layers for part in (layer, ReLU())))
    gain = 1.0 / max(float(documents.vectors.std()), 1e-6)

    def loss(rows: Whole) -> Tensor:
        part = documents.subset(rows)
        owner = torch.from_numpy(np.repeat(np.arange(len(part)), part.counts))
        recoded = network(torch.from_numpy(part.vectors) * gain)
        totals = torch.zeros(len(part), hidden[-1]).index_add(0, owner, recoded)
        logits = teller(totals / torch.from_numpy(part.counts).float()[:, None])
        return torch.nn.functional.cross_entropy(logits, labels[rows])

    _descend([*network.parameters(), *teller.parameters()], loss, len(documents), seed)
    weights, biases = ([getattr(layer, name).detach().numpy() for layer in layers] for name in ("weight", "bias"))
    weights[0] = gain * weights[0]
    # the layers know no scale: with the first of them and every bias so much smaller, so is the recoded sentence
    scale = max(1.0, 2 * float(np.abs(weights[0]).sum(axis=1).max()) / WIDEST)
    weights[0], biases = weights[0] / scale, [bias / scale for bias in biases]
    recoder = Recoder([on_lattice(weight.T) for weight in weights], [on_lattice(bias) for bias in biases])
    check_exact(*recoder.weights)
    return recoder


def _descend(parameters: Sequence[Tensor], loss: Callable[[Whole], Tensor], documents: int, seed: int) -> None:
    """Take steps of Adam, and keep the parameters of the epoch after which the loss is least on documents set aside."""
    random = np.random.default_rng(seed)
    judges, learners = np.split(random.permutation(documents), [math.ceil(JUDGED * documents)])
    optimizer = torch.optim.Adam(parameters)
    steps = math.ceil(len(learners) / BATCH)
    epochs = max(EPOCHS, math.ceil(STEPS / steps))
    slope = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=epochs * steps)
    least, best = math.inf, list[Tensor]()
    for _ in range(epochs):
        for rows in np.array_split(random.permutation(learners), steps):
            optimizer.zero_grad()
            torch.autograd.backward(loss(rows))
            optimizer.step()
            slope.step()
        with torch.no_grad():
            reached = fmean(float(loss(rows)) for rows in np.array_split(judges, math.ceil(len(judges) / BATCH)))
            if reached < least:
                least, best = reached, [part.clone() for part in parameters]
    with torch.no_grad():
        for part, kept in zip(parameters, best, strict=True):
            part.copy_(kept)
