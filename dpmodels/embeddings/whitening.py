"""A public linear map of embeddings, under which the words of the encoder vary alike in every direction, or nearly so.

    S = mean of w w', w a word of the encoder brought to norm 1        y = x S^(-a/2), brought to norm 1 again

Documents vary most where the words they are made of do. Noise is the same in every direction, so after this map it
drowns fewer of the directions in which documents vary little.

Privacy: the map is made of the encoder alone, which is public. y has norm at most 2**BITS (``on_sphere``) and is a
function of its own document: entries are below 2**18 and coordinates at most 2**14, so every product and every sum of
up to 2**12 of them is a whole number below 2**53, exact in any order and in a batch of any size.
"""

from dataclasses import dataclass

import numpy as np

from dpmodels.arrays import Floats, Whole
from dpmodels.codec.embedded import Embedded, on_sphere
from dpmodels.contract.documents import Encoder
from dpmodels.statistics.symmetric import symmetric_dim
from dpmodels.text.encoders import words_of

MATRIX_BITS = 14
FURTHEST = 64.0
"""No direction is taken to vary more or less than this many times the average, so that entries are at most 2**17."""
BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Whitening:
    """The map. Shapes: ``matrix`` [dim, dim], symmetric. Units: of the matrix, steps of ``2**-MATRIX_BITS``."""

    matrix: Whole

    @classmethod
    def of(cls, encoder: Encoder, exponent: float) -> "Whitening":
        """Make the map of an encoder's words; an exponent of 1 whitens them wholly, and of 0 not at all.

        Raises:
            Unsuitable: the encoder has no table of words.
            ArtifactError: the encoder's files are not those that the contract names.
        """
        words = words_of(encoder)
        norms = np.linalg.norm(words, axis=1, keepdims=True)
        words = words[norms[:, 0] > 0] / norms[norms[:, 0] > 0]
        values, vectors = np.linalg.eigh(words.T @ words)
        scales = (values / values.mean()).clip(1 / FURTHEST, FURTHEST) ** (-exponent / 2)
        return cls(np.rint(np.ldexp((vectors * scales) @ vectors.T, MATRIX_BITS)).astype(np.int64))

    @staticmethod
    def width(dim: int) -> int:
        """Count the integers that ``packed`` returns."""
        return symmetric_dim(dim)

    def packed(self) -> Whole:
        """Return the upper triangle, row by row."""
        return self.matrix[np.triu_indices(len(self.matrix))]

    @classmethod
    def unpacked(cls, integers: Whole, dim: int) -> "Whitening":
        """Make the map of what ``packed`` returned."""
        matrix, triangle = np.zeros((dim, dim), dtype=np.int64), np.triu_indices(dim)
        matrix[triangle] = integers
        matrix.T[triangle] = integers
        return cls(matrix)

    def __call__(self, documents: Embedded) -> Embedded:
        """Map documents, each by itself."""
        matrix = self.matrix.astype(np.float64)
        starts = range(0, max(1, len(documents)), BLOCK_ROWS)
        blocks = [documents.vectors[start : start + BLOCK_ROWS].astype(np.float64) for start in starts]
        return Embedded(np.concatenate([on_sphere(block @ matrix) for block in blocks]), documents.labels)

    def inverse(self) -> Floats:
        """Return the matrix that leads back, up to the norm of each document. Shapes: [dim, dim]."""
        result: Floats = np.linalg.inv(np.ldexp(self.matrix.astype(np.float64), -MATRIX_BITS))
        return result
