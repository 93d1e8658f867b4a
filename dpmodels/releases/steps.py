"""The steps that a measurement is made of. A programme yields them, and is sent what each released.

    first = yield Sum(...)              a noisy sum over records, with the deviation of its noise
    option = yield Choose(...)          one of several public options, by the exponential mechanism
    kept = yield Keep(...)              integers computed from what was released before, kept with the release
    weights = yield Train(...)          DP-SGD
    answers = yield Parallel(...)       programmes over disjoint parts of the data

A step says what is measured and how far one unit moves it. How much noise that gets is no business of the step: the
draw reads it off the event that the step is charged as. So a programme is written once, beside its paper's algorithm,
and runs with the data (``draw``) or without it, from a release (``read``).
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.summation import transform_sum
from dpmodels.mechanisms.dp_sgd.spec import SgdSpec
from dpmodels.privacy import Sensitive

Vector = NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """What a draw reads: records that can be read again and again, and where to compute."""

    records: Sensitive[Any]
    device: str = "cpu"


@dataclass(frozen=True)
class Sum:
    """Release a sum over records with discrete Gaussian noise.

    Attributes:
        total: measures it; one unit moves the result by at most ``l2_sensitivity`` lattice steps in L2 norm.
        dim: the size of the sum.
        embedding: what is summed, where it is a function of one record that others can be held against.
    """

    total: Callable[[Data], Sensitive[Vector]]
    dim: int
    l2_sensitivity: int
    embedding: Embedding | None = None

    @classmethod
    def of(cls, embedding: Embedding, l2_sensitivity: int = 0) -> "Sum":
        """Sum an embedding; a sensitivity above its own is one that was planned for it, before it was known."""

        def total(data: Data) -> Sensitive[Vector]:
            return transform_sum(embedding, data.records, data.device)

        return cls(total, embedding.dim, max(l2_sensitivity, embedding.l2_sensitivity), embedding)


@dataclass(frozen=True)
class NoisySum:
    """What a sum released. Units: lattice steps. Shapes: ``vector`` [dim].

    Attributes:
        embedding: what was summed over records; None where that is no embedding.
    """

    vector: Vector
    noise_stddev: float
    embedding: Any = None


@dataclass(frozen=True)
class Choose:
    """Release one of several options, more probably one of a high score, by the exponential mechanism.

    Attributes:
        scores: measures them, one an option; one unit moves each by at most ``sensitivity``.
        option: writes the option of an index as whole numbers, which are what is released. Shapes: [width].
        monotonic: whether a unit that is added lowers no score; only where neighbours add or remove one.
    """

    scores: Callable[[Data], Sensitive[Vector]]
    option: Callable[[int], Vector]
    width: int
    sensitivity: int
    monotonic: bool = False


@dataclass(frozen=True)
class Keep:
    """Keep integers that were computed from what was released before (post-processing).

    They are read back and not computed again, because the arithmetic of another machine may round otherwise.
    """

    integers: Vector


@dataclass(frozen=True)
class Train:
    """Release weights that DP-SGD trained. Shapes: [dim].

    Attributes:
        objective: builds what is trained; True for the first time, when there is no state to go on from.
        rows: what it reads; records: their released number.
        weights: reads what is released off the trained objective.
    """

    objective: Callable[[bool], Any]
    rows: Callable[[Data], Sensitive[Any]]
    records: float
    weights: Callable[[Any], Vector]
    dim: int
    sgd: SgdSpec


@dataclass(frozen=True)
class Parallel:
    """Release what programmes measure, each on a part of the data of its own; what they cost is their heaviest.

    There are as many parts as programmes, which is a number made of public and released ones. A part of the data
    without a programme is not read, and a programme without a part reads no records, so the number of parts that the
    data has does not show.

    Attributes:
        by: cuts the data; one unit lies in one part, whatever the others hold.
    """

    programmes: Sequence["Programme"]
    by: Callable[[Data], Sequence[Data]]


Step = Sum | Choose | Keep | Train | Parallel
Programme = Generator[Step, Any, None]
