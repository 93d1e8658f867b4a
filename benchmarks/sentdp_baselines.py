"""What SentDP is compared with: truncation with Laplace noise, noise on words, no noise at all, and guessing.

Source: Meehan, Mrini and Chaudhuri (2022), section 5 and appendix A.3; Li and Clifton, "Differentially private
imputation of embeddings" (2021), for truncation; Feyisetan, Balle, Drake and Diethe, "Privacy- and utility-preserving
textual analysis via calibrated multivariate perturbations" (2020), for noise on words.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.text.encoders import Encode, Vectors
from dpmodels.text.passages import Passages

Floats = NDArray[np.float64]
STEPS = 1024
"""Steps into which the interval of a coordinate is cut."""
BLOCK = 2048


@dataclass(frozen=True)
class Box:
    """The interval of each coordinate that the middle three quarters of public documents lie in. Shapes: [dim]."""

    low: Floats
    width: Floats

    @classmethod
    def of(cls, public: Floats) -> "Box":
        """Take the intervals from the embeddings of public documents."""
        low, high = np.quantile(public, (0.125, 0.875), axis=0)
        return cls(low, np.maximum(high - low, 1e-9))

    def cut(self, vectors: NDArray[np.floating]) -> NDArray[np.int64]:
        """Move each coordinate into its interval, as whole steps from its low end."""
        return np.rint(np.clip((vectors - self.low) / self.width, 0, 1) * STEPS).astype(np.int64)


def truncated(documents: Passages, box: Box, epsilon: float | None) -> Floats:
    """Return the means of truncated sentences with exact discrete Laplace noise, or without it, for training.

    Privacy: replacing a sentence moves each of the dim sums by at most STEPS, so their L1 norm by dim STEPS; noise of
        the scale dim STEPS / epsilon makes the sums epsilon-DP, and each document is a part of its own.
    """
    cut = box.cut(documents.vectors)
    before = np.vstack([np.zeros((1, cut.shape[1]), dtype=np.int64), np.cumsum(cut, axis=0)])
    sums = before[documents.ends[1:]] - before[documents.ends[:-1]]
    if epsilon is not None:
        sums = _laplace(sums, cut.shape[1] * STEPS / epsilon)
    return box.low + box.width * sums / (STEPS * np.maximum(documents.counts, 1)[:, np.newaxis])


def _laplace(sums: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)
    noisy = dp.m.make_laplace(*space, scale=scale)(sums.ravel())
    return np.array(noisy, dtype=np.int64).reshape(sums.shape)


@dataclass(frozen=True)
class Words:
    """A public vocabulary, each word embedded as a sentence of its own. Shapes: vectors [words, dim]."""

    words: Sequence[str]
    vectors: Vectors

    @classmethod
    def of(cls, public: Sequence[str], encode: Encode, most: int = 20_000) -> "Words":
        """Take the most frequent words of public texts."""
        words, counts = np.unique([word for text in public for word in words_of(text)], return_counts=True)
        kept = words[np.argsort(-counts, kind="stable")[:most]].tolist()
        return cls(kept, encode(kept))

    def replaced(self, texts: Sequence[str], encode: Encode, epsilon: float, seed: int) -> list[str]:
        """Replace each word by the one that is nearest to it once noise is added.

        Privacy: words at a distance of r are told apart by a factor of at most exp(epsilon r) (metric privacy), where
            no two words are further apart than 2. That is weaker than sentence-level privacy, in which a sentence may
            become any other. The noise is floating-point and seeded: it is a baseline, and protects nobody.
        """
        random = np.random.default_rng(seed)
        lines = [words_of(text) for text in texts]
        own = {word: index for index, word in enumerate(sorted({word for line in lines for word in line}))}
        vectors = encode(list(own))
        flat = [own[word] for line in lines for word in line]
        new = np.concatenate(
            [np.zeros(0, dtype=np.int64)]
            + [self._nearest(vectors[flat[at : at + BLOCK]], epsilon, random) for at in range(0, len(flat), BLOCK)]
        )
        ends = np.cumsum([0, *map(len, lines)])
        return [" ".join(self.words[place] for place in new[a:b]) for a, b in itertools.pairwise(ends)]

    def _nearest(self, vectors: Vectors, epsilon: float, random: np.random.Generator) -> NDArray[np.int64]:
        """Add noise of density proportional to exp(-epsilon |z|), and return the nearest words."""
        dim = vectors.shape[1]
        noise = random.normal(size=vectors.shape)
        noise *= random.gamma(dim, 1 / epsilon, size=(len(vectors), 1)) / np.linalg.norm(noise, axis=1, keepdims=True)
        noisy = (vectors + noise).astype(np.float32)
        return np.argmax(noisy @ self.vectors.T - 0.5 * np.square(self.vectors).sum(axis=1), axis=1)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return re.findall(r"\w+", text.lower())


def random_guess(labels: NDArray[np.integer]) -> float:
    """Return how often one is right who guesses each class as often as it is there, which is the paper's floor."""
    shares = np.bincount(labels) / len(labels)
    return float(np.square(shares).sum())
