"""The steps that a measurement is made of. A programme yields steps, and is sent what each of them released.

    first = yield Sum(...)              a noisy sum over records, with the standard deviation of its noise
    option = yield Choose(...)          one of several public options, by the exponential mechanism
    chosen = yield ChooseEach(...)      one of several public options for each part, such as a document
    sums = yield SumEach(...)           a noisy sum for each part
    counts = yield CountKeys(...)       noisy counts of public keys, and of those that the data names, by a threshold
    kept = yield Keep(...)              integers computed from what was released before, kept with the release
    weights = yield Train(...)          DP-SGD
    answers = yield Parallel(...)       programmes over disjoint parts of the data

A step says what is measured and how far one unit moves it. It does not say how much noise is added: the draw takes that
from the event that the step is charged as. So a programme is written once, beside its paper's algorithm, and runs with
the data (``draw``) or without it, from a release (``read``).
"""

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.arrays import Whole
from dpmodels.embeddings.base import Embedding
from dpmodels.embeddings.summation import transform_sum
from dpmodels.mechanisms.dp_sgd.spec import SgdSpec
from dpmodels.mechanisms.threshold import Bringing, KeyCounts
from dpmodels.privacy import Sensitive


@dataclass(frozen=True)
class Data:
    """What a draw reads: records that can be read any number of times, and the device to compute on.

    Attributes:
        numbers: of a part, which records of the whole it has; None where whole units are cut apart.
    """

    records: Sensitive[Any]
    device: str = "cpu"
    numbers: Sensitive[Whole] | None = None


@dataclass(frozen=True)
class Sum:
    """Release a sum over records with discrete Gaussian noise.

    Attributes:
        total: computes the exact sum; one unit moves it by at most ``l2_sensitivity`` lattice steps in L2 norm.
        dim: the size of the sum.
        embedding: the function of one record that is summed, where it can also be evaluated on other records; or None.
    """

    total: Callable[[Data], Sensitive[Whole]]
    dim: int
    l2_sensitivity: int
    embedding: Embedding | None = None

    @classmethod
    def of(cls, embedding: Embedding, l2_sensitivity: int = 0) -> "Sum":
        """Sum an embedding; a given sensitivity was planned before the embedding was known, and is at least its own."""

        def total(data: Data) -> Sensitive[Whole]:
            return transform_sum(embedding, data.records, data.device)

        return cls(total, embedding.dim, max(l2_sensitivity, embedding.l2_sensitivity), embedding)


@dataclass(frozen=True)
class NoisySum:
    """What a sum released. Units: lattice steps. Shapes: ``vector`` [dim].

    Attributes:
        embedding: the embedding that was summed; None where something else was summed.
    """

    vector: Whole
    noise_stddev: float
    embedding: Any = None


@dataclass(frozen=True)
class Choose:
    """Release one of several options, more probably one of a high score, by the exponential mechanism.

    Attributes:
        scores: computes one score for each option; one unit moves each score by at most ``sensitivity``.
        option: writes the option of an index as whole numbers, which are released. Shapes: [width].
        monotonic: whether adding a unit lowers no score; allowed under add-or-remove-one alone.
    """

    scores: Callable[[Data], Sensitive[Whole]]
    option: Callable[[int], Whole]
    width: int
    sensitivity: int
    monotonic: bool = False


@dataclass(frozen=True)
class Each:
    """Release something for each part of the data, such as a document.

    The line is charged for each part on its own, and a unit is replaced within its part. So the parts, their order and
    their number are public.

    Attributes:
        names: reads the public columns of the parts, one row a part, which are released beside the values.
        blocks: computes what is released with noise, in blocks, for the parts from one number on; one unit moves each
            number of one part by at most ``sensitivity``, and no number of another.
        events: events of the line that pay for one part each, where what is charged on its own holds several parts,
            such as the documents of a user.

    Shapes: a block is [parts, numbers].
    """

    names: Callable[[Data], pa.Table]
    blocks: Callable[[Data, int], Iterator[Sensitive[NDArray[np.integer[Any]]]]]
    sensitivity: int
    events: int = 1


@dataclass(frozen=True)
class ChooseEach(Each):
    """Release the index of one of several public options, by the exponential mechanism; the numbers are their scores.

    Shapes: the indices are [parts].
    """


@dataclass(frozen=True)
class SumEach(Each):
    """Release whole numbers with noise that is a function of its largest coordinate; no other step releases values.

    Shapes: the sums are [parts, width].
    """

    width: int = 1


@dataclass(frozen=True)
class CountKeys:
    """Release counts of public keys, and of keys that the data names those that reach a threshold with their noise.

    Attributes:
        counts: computes the counts; one unit moves them together by at most ``l2_sensitivity`` in L2 norm.
        public: column and key of each public count; open: the columns whose keys the data names.
        threshold: in lattice steps; most: the most that one unit brings of keys that only it has.
    """

    counts: Callable[[Data], Sensitive[KeyCounts]]
    public: Sequence[tuple[str, str]]
    open: tuple[str, ...]
    l2_sensitivity: int
    threshold: int
    most: Bringing

    def pack(self, released: KeyCounts) -> Whole:
        """Write what was released as whole numbers, in which a draw is kept until it is sealed."""
        text = np.frombuffer(json.dumps(released.keys.to_pylist()).encode(), dtype=np.uint8)
        parts = [released.public, released.found, released.columns, text]
        return np.concatenate([np.array([len(released.found)]), *parts]).astype(np.int64)

    def unpack(self, packed: Whole) -> tuple[pa.Table, Whole]:
        """Return column and key of every count, and the counts."""
        number, size = int(packed[0]), len(self.public)
        vector, places, text = np.split(packed[1:], [size + number, size + 2 * number])
        keys = json.loads(text.astype(np.uint8).tobytes())
        columns = [*(column for column, _ in self.public), *(self.open[place] for place in places)]
        named = {"column": columns, "key": [*(key for _, key in self.public), *keys]}
        return pa.table({name: pa.array(texts, pa.string()) for name, texts in named.items()}), vector


@dataclass(frozen=True)
class NoisyCounts:
    """What a count of keys released. Units: lattice steps.

    Attributes:
        names: column and key of each count; the public ones come first. Shapes: ``vector`` [counts].
    """

    names: pa.Table
    vector: Whole
    noise_stddev: float


@dataclass(frozen=True)
class Keep:
    """Keep integers that were computed from what was released before, or of what is public (post-processing).

    The integers are read back and not computed again, because the arithmetic of another machine may round otherwise.

    Attributes:
        integers: computes them, which a reading does without. Shapes: the result is [width].
    """

    integers: Callable[[], Whole]
    width: int

    @classmethod
    def of(cls, integers: Whole) -> "Keep":
        """Keep integers that are there already."""
        return cls(lambda: integers, len(integers))


@dataclass(frozen=True)
class Train:
    """Release weights that DP-SGD trained. Shapes: [dim].

    Attributes:
        objective: builds the objective; its argument is True when there is no state to go on from.
        rows: transforms the data into the rows that training reads; records: their released number.
        weights: reads the released weights off the trained objective.
    """

    objective: Callable[[bool], Any]
    rows: Callable[[Data], Sensitive[Any]]
    records: float
    weights: Callable[[Any], Whole]
    dim: int
    sgd: SgdSpec


@dataclass(frozen=True)
class Parallel:
    """Release what programmes measure, each on its own part of the data; together they cost as much as the heaviest.

    The number of programmes is public or was released. A part of the data without a programme is not read, and a
    programme without a part reads no records, so the number of parts that the data has does not show.

    Attributes:
        by: cuts the data into parts; which part a unit lies in does not depend on other units. A cut by what rows hold
            says which rows each part has (``Data.numbers``), and is refused if one is in two parts.
        whole_units: whether a unit lies in one part whatever its rows hold, as a document or a client does. A cut by
            what a row holds may spread the rows of a user over parts, and moves a record that is replaced.
    """

    programmes: Sequence["Programme"]
    by: Callable[[Data], Sequence[Data]]
    whole_units: bool = False


Step = Sum | Choose | ChooseEach | SumEach | CountKeys | Keep | Train | Parallel
Programme = Generator[Step, Any, None]
