"""What systems share that release something for each document, where one of its sentences is protected.

Privacy: pure, epsilon for one sentence that is replaced in one document. With a column of users, a sentence that a
user repeats in each of at most ``most_documents`` documents is replaced in all of them, and their releases share the
epsilon.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpmodels.accounting.events import ComposedEvent, Event, PureEvent, leaves
from dpmodels.artifact import write_whole
from dpmodels.contract.documents import Documents
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.privacy import PrivacyBudget, Released
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.system import Craft, System, fingerprint_of
from dpmodels.text.candidates import Candidates
from dpmodels.text.encoders import Vectors
from dpmodels.text.passages import Numbers

ROWS = 8192
"""Documents that are embedded and written at once."""
LARGEST_EPSILON = 100
LEAST_EPSILON = 0.001
"""Of one document; with less, what is released says nothing of it."""
CAUTION = "epsilon is for ONE sentence of a document; k sentences are hidden with k times as much at worst"


@dataclass(frozen=True)
class EmbeddedDocuments:
    """The product: documents with an embedding each, in the space of the encoder.

    Attributes:
        columns: the ids, and whatever else was released beside the values.
        released: for each document a candidate's index, or a noisy sketch.
        chosen: the index of the candidate that was released, or that lies nearest to what the sketch says.

    Shapes: released [n] or [n, width], chosen [n].
    """

    columns: pa.Table
    released: NDArray[np.int64]
    chosen: NDArray[np.int64]
    candidates: Candidates
    line: Line

    @property
    def ids(self) -> pa.ChunkedArray:
        """The public ids."""
        return self.columns["id"]

    def take(self, rows: NDArray[np.int64]) -> "EmbeddedDocuments":
        """Return some of the documents, in an order."""
        columns = self.columns.take(pa.array(rows))
        return replace(self, columns=columns, released=self.released[rows], chosen=self.chosen[rows])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the documents with id, embedding, candidate, and the epsilon and the unit that protect them."""
        epsilon, unit = epsilon_of(self.line), str(self.line.budget.unit)
        for begin in range(0, len(self.chosen), ROWS):
            rows = slice(begin, begin + ROWS)
            columns = self.columns[rows]
            vectors = embeddings_of(self.candidates, self.released[rows], columns)
            arrays = [
                columns["id"].combine_chunks(),
                pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
                pa.array(self.chosen[rows]),
                pa.array(np.full(len(vectors), epsilon)),
                pa.array([unit] * len(vectors)).dictionary_encode(),
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the product, and what their epsilon means."""
        return pa.schema(
            {
                "id": pa.large_string(),
                "embedding": pa.list_(pa.float32(), self.candidates.embeddings.shape[1]),
                "candidate": pa.int64(),
                "epsilon": pa.float64(),
                "unit": pa.dictionary(pa.int32(), pa.string()),
            },
            metadata={"nacre.caution": CAUTION},
        )

    def save(self, path: Path) -> None:
        """Write the documents as one Parquet file, some rows at a time."""

        def write(part: Path) -> None:
            with pq.ParquetWriter(part, self.schema, compression="zstd") as writer:
                for batch in self.batches():
                    writer.write_batch(batch)

        write_whole(path, write)


def embeddings_of(candidates: Candidates, released: NDArray[np.int64], columns: pa.Table) -> Vectors:
    """Return the embeddings that released values stand for (post-processing)."""
    if released.ndim == 1 or candidates.sketch is None:
        return candidates.embeddings[released]
    return candidates.sketch.read(released, columns["sentences"].to_numpy())


def epsilon_of(line: Line) -> float:
    """Return the epsilon of one document."""
    return next(event.epsilon for event in leaves([line.event]) if isinstance(event, PureEvent))


@dataclass(frozen=True)
class Choice:
    """What is released for each document of a contract.

    Attributes:
        sensitivity: of each number that gets noise; facts: what a release cannot be read without.
        compute: the numbers of some documents, from their sentences and where those of each begin and end.
    """

    candidates: Candidates
    contract: Documents
    sensitivity: int
    facts: tuple[Any, ...]
    compute: Callable[[Vectors, NDArray[np.int64]], Numbers]

    @property
    def events(self) -> int:
        """The number of documents that are charged together."""
        return self.contract.most_documents if self.contract.user else 1


class EachDocument(System[Choice]):
    """A system with its public file at hand, whose hash is among the parameters of the plan."""

    about = "documents"

    def __init__(self, measurement: Any, candidates: Candidates) -> None:
        self.measurement = measurement.model_copy(update={"candidates": candidates.sha256})
        self.candidates = candidates

    @abstractmethod
    def chosen(self, released: NDArray[np.int64], columns: pa.Table) -> NDArray[np.int64]:
        """Return the index of a candidate for each document."""

    @abstractmethod
    def least_units(self, line: Line) -> float:
        """Say about how many sentences a document needs for what is released of it to stand out of its noise."""

    def check(self, spec: Any, contract: Documents) -> None:
        """Refuse a contract that the public file is not for.

        Raises:
            InvalidArgument, Unsuitable: the contract protects no sentences, or has another encoder than the candidates.
            ArtifactError: the line names other candidates.
        """
        if contract.protects != "sentence":
            rule = f"be sentence for {self.method}; to protect documents or users, take the collection-level release"
            raise InvalidArgument("protects", contract.protects, rule)
        if contract.encoder != self.candidates.encoder:
            raise Unsuitable("the candidates were embedded by another encoder than the contract's; make them with it")
        if spec.candidates != self.measurement.candidates:
            raise ArtifactError(f"the line is about the candidates of sha256 {spec.candidates}; give their file")

    def event(self, design: Choice, budget: PrivacyBudget) -> Event:
        """Charge each document epsilon, or each document of a user an equal part of it.

        Raises:
            InvalidArgument: delta is not 0, or epsilon is too large to protect anything or too small to say anything.
        """
        if budget.delta:
            raise InvalidArgument("delta", budget.delta, "be 0: what is released for each document needs none")
        if budget.epsilon > LARGEST_EPSILON:
            raise InvalidArgument("epsilon", budget.epsilon, f"be at most {LARGEST_EPSILON}")
        if budget.epsilon < LEAST_EPSILON * design.events:
            rule = f"leave each document of a user an epsilon of {LEAST_EPSILON} at least"
            raise InvalidArgument("most_documents", design.events, rule)
        down = Context(prec=12, rounding=ROUND_FLOOR)
        one = PureEvent(epsilon=float(down.divide(budget.epsilon_exact, down.create_decimal(design.events))))
        return one if design.events == 1 else ComposedEvent(events=(one,) * design.events)

    def fingerprint(self, design: Choice) -> str:
        return fingerprint_of(*design.facts, len(design.candidates), design.sensitivity)

    def fit(self, release: Released[Release], craft: Craft) -> EmbeddedDocuments:
        """Look the embeddings up (post-processing)."""
        ((released,), columns) = self.answers(release.value), release.value.columns
        return EmbeddedDocuments(columns, released, self.chosen(released, columns), self.candidates, release.value.line)
