"""Sketches: a few whole numbers for each sentence, which add up to those of a document and survive the noise.

A sketch of a sentence is a vector h of d whole numbers between -BOUND and BOUND, and that of a document is the sum S of
its sentences' sketches. Replacing one sentence moves each coordinate of S by at most 2 BOUND, so the mechanism of
mechanisms/k_norm.py releases S, with noise, for epsilon. A reader then estimates the mean of the document's embeddings
from the noisy sketch and the number of sentences, which is public: an embedding in the encoder's own space.

Both networks are trained together on public documents, through the noise that a sketch will get. So they learn to say
in d numbers what matters most for the mean at this epsilon. There is no label, and no candidate that ties with others.

A sentence must get the same whole numbers whatever comes in the same batch. The products are exact (text/recoder.py),
and what remains, x / sqrt(1 + x^2), takes operations that every machine rounds alike.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.arrays import Floats, Whole
from dpmodels.text.encoders import Vectors
from dpmodels.text.passages import Passages
from dpmodels.text.recoder import Recoder, check_exact, on_lattice

BOUND = 2**12
SENSITIVITY = 2 * BOUND
"""How far replacing one sentence moves a coordinate of a document's sketch."""
AXES = 64
GAIN = 16.0
"""Brings the coordinates of an embedding of norm 1 to the size that networks are used to."""
BATCH, RATE = 64, 2e-3


@dataclass(frozen=True)
class Sketch:
    """The two networks.

    Attributes:
        recoder, weights, biases: of a sentence; reader: the weights and biases of the layers that read a noisy sketch.

    Shapes: weights [hidden, d], biases [d]; reader [d + 1, hidden], [hidden], [hidden, dim], [dim].
    """

    recoder: Recoder
    weights: Floats
    biases: Floats
    reader: tuple[Vectors, Vectors, Vectors, Vectors]

    @property
    def dim(self) -> int:
        """The size of a sketch."""
        return len(self.biases)

    def sums(self, vectors: Vectors, ends: NDArray[np.int64]) -> Whole:
        """Return the sketch of each document; that of a document without sentences is 0.

        Shapes: vectors [sentences, dim], of which document i has ``ends[i]`` to ``ends[i + 1]``; sketches [n, d].
        """
        reach = self.recoder(vectors) @ self.weights + self.biases
        sketches = np.rint(BOUND * reach / np.sqrt(1.0 + reach * reach)).astype(np.int64)
        before = np.vstack([np.zeros((1, self.dim), dtype=np.int64), np.cumsum(sketches, axis=0)])
        totals: Whole = before[ends[1:]] - before[ends[:-1]]
        return totals

    def read(self, noisy: Whole, counts: NDArray[np.int64]) -> Vectors:
        """Estimate the mean embedding of documents from their noisy sketches (post-processing).

        Shapes: noisy [n, d], counts [n]; the embeddings are [n, dim].
        """
        many = np.maximum(counts, 1)[:, np.newaxis]
        inputs = np.hstack([noisy / (many * float(BOUND)), np.log(many) / 3]).astype(np.float32)
        first, bias, second, center = self.reader
        estimates: Vectors = np.maximum(inputs @ first + bias, 0) @ second + center
        return estimates


def best_dim(epsilon: float) -> int:
    """Return the size of a sketch that public documents of ten to twenty sentences are told apart by best."""
    return max(2, round(8 * math.sqrt(epsilon)))


def train_sketch(documents: Passages, epsilon: float, dim: int, hidden: int, steps: int, seed: int) -> Sketch:
    """Train the networks on public documents, none of which is without sentences.

    Privacy: reads public documents alone. The noise here is part of training, and protects nobody.
    """
    import torch

    random = np.random.default_rng(seed)
    means = documents.means()
    center = means.mean(axis=0)
    sizes, axes = np.linalg.svd(means - center, full_matrices=False)[1:]
    axes = axes[:AXES] * (scale := np.sqrt(np.square(sizes).sum() / len(means)) or 1.0)
    targets = torch.tensor((means - center) @ axes.T / scale**2, dtype=torch.float32)
    vectors = torch.tensor((documents.vectors - center) * GAIN, dtype=torch.float32)
    shapes = (len(center), hidden), (hidden, dim), (dim + 1, hidden), (hidden, len(axes))
    weights = [torch.tensor(random.uniform(-1, 1, size) / math.sqrt(size[0]), dtype=torch.float32) for size in shapes]
    biases = [torch.zeros(size[1]) for size in shapes]
    optimizer = torch.optim.Adam([part.requires_grad_() for part in (*weights, *biases)], RATE)
    slope = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2 * RATE, total_steps=steps)
    counts, ends = documents.counts, documents.ends
    for _ in range(steps):
        picks = random.integers(len(documents), size=BATCH)
        rows = np.concatenate([np.arange(ends[one], ends[one + 1]) for one in picks])
        owner = torch.tensor(np.repeat(np.arange(BATCH), counts[picks]))
        reach = torch.relu(vectors[rows] @ weights[0] + biases[0]) @ weights[1] + biases[1]
        sketches = torch.zeros(BATCH, dim).index_add(0, owner, reach / torch.sqrt(1 + reach * reach))
        radii = random.gamma(dim + 1, 2 / epsilon, size=(BATCH, 1))
        noise = torch.tensor(radii * random.uniform(-1, 1, size=(BATCH, dim)), dtype=torch.float32)
        many = torch.tensor(counts[picks, np.newaxis], dtype=torch.float32)
        inputs = torch.hstack([(sketches + noise) / many, torch.log(many) / 3])
        outputs = torch.relu(inputs @ weights[2] + biases[2]) @ weights[3] + biases[3]
        loss = torch.square(outputs - targets[picks]).sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        slope.step()
    learned = [part.detach().numpy().astype(np.float64) for part in (*weights, *biases)]
    return _exact(learned, center, axes)


def _exact(learned: list[Floats], center: Floats, axes: Floats) -> Sketch:
    """Round the network of sentences to the lattice, and let both take and give embeddings as they are."""
    first, second, third, fourth, *biases = learned
    inner = on_lattice(GAIN * first)
    recoder = Recoder([inner], [on_lattice(biases[0] - center @ inner)])
    weights, output_biases = on_lattice(second), on_lattice(biases[1])
    check_exact(inner, weights)
    reader = third, biases[2], fourth @ axes, biases[3] @ axes + center
    one, two, three, four = (part.astype(np.float32) for part in reader)
    return Sketch(recoder, weights, output_biases, (one, two, three, four))
