"""The steps that a measurement is made of. A programme yields them, and is sent what each released.

    first = yield Sum(...)              noisy sums of records
    index = yield Choose(...)           the exponential mechanism
    kept = yield Keep(...)              integers computed from what was released before, kept with the release
    weights = yield Train(...)          DP-SGD

A step says how to measure and how much noise it plans; what it is charged, and whether that is enough, is for the draw
to say. So a programme is written once, beside its paper's algorithm, and runs with the data (``draw``) or without it,
from a release (``read``).
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.summation import transform_sum
from dpmodels.mechanisms.dp_sgd import SgdSpec
from dpmodels.privacy import Sensitive
from dpmodels.schema.encode import Records

Vector = NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """What a draw reads: records that can be read again and again, and where to compute."""

    records: Sensitive[Iterable[Records]]
    device: str = "cpu"


@dataclass(frozen=True)
class Sum:
    """Release a sum over records with discrete Gaussian noise. Shapes: [dim].

    Units: ``own`` is the sensitivity of this very sum in lattice steps; the noise is ``noise_multiplier`` times
        ``l2_sensitivity``, which several sums of one charge may share.

    Attributes:
        total: measures it; one unit moves the result by at most ``own`` in L2 norm.
        embedding: what is summed, where it is a function of one record that others can be held against.
        columns: names of the coordinates in the file.
    """

    total: Callable[[Data], Sensitive[Vector]]
    dim: int
    own: int
    l2_sensitivity: int
    noise_multiplier: float
    embedding: Embedding | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, embedding: Embedding, number: int, l2_sensitivity: int, noise_multiplier: float) -> "Sum":
        """Sum an embedding, as the look of this number."""
        columns = {"look": np.full(embedding.dim, number), **embedding.coordinates()}
        own, dim = embedding.l2_sensitivity, embedding.dim
        return cls(_Embedded(embedding), dim, own, l2_sensitivity, noise_multiplier, embedding, columns)


@dataclass(frozen=True)
class _Embedded:
    embedding: Embedding

    def __call__(self, data: Data) -> Sensitive[Vector]:
        return transform_sum(self.embedding, data.records, data.device)


@dataclass(frozen=True)
class Choose:
    """Release the index of a high score by the exponential mechanism, charged as a Gaussian of ``noise_multiplier``."""

    scores: Callable[[Data], Sensitive[Vector]]
    sensitivity: int
    noise_multiplier: float


@dataclass(frozen=True)
class Keep:
    """Keep integers that were computed from what was released before (post-processing).

    They are read back and not computed again, because the arithmetic of another machine may round otherwise. With
    ``columns`` they lie among the values of the release, otherwise in its footer.
    """

    integers: Vector
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Train:
    """Release weights that DP-SGD trained; what each training reads is disjoint, so one is charged for all.

    Attributes:
        trainings: builds them from the data; True for the first time, when there is no state to go on from.
        weights: reads what is released off the trained objectives. Shapes: [weights].
    """

    trainings: Callable[[Data, bool], list["Training"]]
    weights: Callable[[list[Any]], Vector]
    sgd: SgdSpec
    column: str = "weights"


@dataclass(frozen=True)
class Training:
    """One training: its objective, the released number of records that it reads, and the rows."""

    objective: Any
    records: float
    rows: Sensitive[Any]


Step = Sum | Choose | Keep | Train
Programme = Generator[Step, Any, None]
