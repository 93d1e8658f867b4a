"""DeepCandidate (Meehan, Mrini and Chaudhuri, 2022): each document's embedding is that of a public one, chosen for it.

    public    candidates f_1..f_m, the recoder H and directions v_1..v_p, of public documents       text/candidates.py
    measure   for each document x with the sentences s_1..s_k:
                  u(f) = - max_j |2 #{i: H(G(s_i)) v_j >= f v_j} - k|                               text/depth.py
                  z ~ exp(epsilon u(f) / 4)                         released     the exponential mechanism
    fit       the embedding of document x is that of candidate z

What differs from the paper, and why. Its listing prints the largest depth of all directions where the least is meant.
Scores are whole numbers, of sensitivity 2 where its own is 1, and draws are exact. A neighbor is a document in which
one sentence is replaced, so k is public; but a document of no sentence or of one is no special case: its scores are all
alike, and any candidate is chosen for it with the same probability.

Privacy: pure, epsilon for one sentence that is replaced in one document. With a column of users, a sentence that a user
repeats in each of at most ``most_documents`` documents is replaced in all of them, and their choices share the epsilon.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from dpmodels.accounting.events import ComposedEvent, Event, PureEvent, leaves
from dpmodels.artifact import write_whole
from dpmodels.errors import ArtifactError, InvalidArgument, Unsuitable
from dpmodels.mechanisms.exponential import pure_scale
from dpmodels.privacy import Adjacency, PrivacyBudget, Released, Sensitive
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release
from dpmodels.releases.steps import ChooseEach, Data, Programme
from dpmodels.releases.system import Craft, System, fingerprint_of
from dpmodels.schema.documents import Documents
from dpmodels.text.candidates import Candidates
from dpmodels.text.depth import TukeyDepth, Utility, transform_scores
from dpmodels.text.passages import public_columns

ROWS = 8192
"""Documents of which the embeddings are written at once."""
LARGEST_EPSILON = 100


class DeepCandidateMeasurement(BaseModel):
    """The public parameters.

    Attributes:
        candidates: SHA-256 of the file of candidates.
        utility: ``worst``: the depth along the worst direction, as in the paper; ``sum``: along all of them together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    candidates: str = ""
    utility: Literal["worst", "sum"] = "worst"


@dataclass(frozen=True)
class Choice:
    """What is chosen for each document of a contract, and by which scores."""

    candidates: Candidates
    utility: Utility
    contract: Documents
    facts: tuple[str, str]

    @property
    def events(self) -> int:
        """The number of choices that one protected part pays for."""
        return self.contract.most_documents if self.contract.user else 1


@dataclass(frozen=True)
class EmbeddedDocuments:
    """The product: for each document the index of a candidate, and so its embedding.

    Shapes: chosen [documents].
    """

    ids: pa.ChunkedArray
    chosen: NDArray[np.int64]
    candidates: Candidates
    line: Line

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the documents with id, embedding, candidate, and the epsilon and the unit that protect them."""
        (epsilon, *_) = [event.epsilon for event in leaves([self.line.event]) if isinstance(event, PureEvent)]
        vectors = self.candidates.embeddings
        for begin in range(0, len(self.chosen), ROWS):
            rows = self.chosen[begin : begin + ROWS]
            arrays = [
                pa.array(self.ids[begin : begin + ROWS].to_pylist(), pa.large_string()),
                pa.FixedSizeListArray.from_arrays(pa.array(vectors[rows].ravel()), vectors.shape[1]),
                pa.array(rows),
                pa.array(np.full(len(rows), epsilon)),
                pa.array([str(self.line.budget.unit)] * len(rows)).dictionary_encode(),
            ]
            yield pa.RecordBatch.from_arrays(arrays, ["id", "embedding", "candidate", "epsilon", "unit"])

    def save(self, path: Path) -> None:
        """Write the documents as one Parquet file, some rows at a time."""
        dim = self.candidates.embeddings.shape[1]
        schema = pa.schema(
            {
                "id": pa.large_string(),
                "embedding": pa.list_(pa.float32(), dim),
                "candidate": pa.int64(),
                "epsilon": pa.float64(),
                "unit": pa.dictionary(pa.int32(), pa.string()),
            }
        )

        def write(part: Path) -> None:
            with pq.ParquetWriter(part, schema, compression="zstd") as writer:
                for batch in self.batches():
                    writer.write_batch(batch)

        write_whole(path, write)


class DeepCandidate(System[Choice]):
    """DeepCandidate with the public candidates at hand; without them it plans and reads nothing."""

    method = "deep-candidate"
    about = Documents

    def __init__(self, measurement: DeepCandidateMeasurement, candidates: Candidates) -> None:
        self.measurement = measurement.model_copy(update={"candidates": candidates.sha256})
        self.candidates = candidates

    def design(self, spec: DeepCandidateMeasurement, contract: Documents) -> Choice:
        """Sort the candidates along every direction.

        Raises:
            InvalidArgument: the contract protects no sentences, or has another encoder than the candidates.
            ArtifactError: the line names other candidates.
        """
        if contract.protects != "sentence":
            rule = "be sentence for deep-candidate; to protect documents or users, take the collection-level release"
            raise InvalidArgument("protects", contract.protects, rule)
        if contract.encoder != self.candidates.encoder:
            raise Unsuitable("the candidates were embedded by another encoder than the contract's; make them with it")
        if spec.candidates != self.measurement.candidates:
            raise ArtifactError(f"the line is about the candidates of sha256 {spec.candidates}; give their file")
        utility = TukeyDepth(self.candidates.points, self.candidates.directions, spec.utility)
        return Choice(self.candidates, utility, contract, (spec.candidates, spec.utility))

    def event(self, design: Choice, budget: PrivacyBudget) -> Event:
        """Charge each document epsilon, or each document of a user an equal part of it.

        Raises:
            InvalidArgument: delta is not 0, or epsilon is too large to protect anything.
        """
        if budget.delta:
            raise InvalidArgument("delta", budget.delta, "be 0: choices of candidates are pure, and need none")
        if budget.epsilon > LARGEST_EPSILON:
            raise InvalidArgument("epsilon", budget.epsilon, f"be at most {LARGEST_EPSILON}")
        down = Context(prec=12, rounding=ROUND_FLOOR)
        one = PureEvent(epsilon=float(down.divide(budget.epsilon_exact, down.create_decimal(design.events))))
        return one if design.events == 1 else ComposedEvent(events=(one,) * design.events)

    def programme(self, design: Choice) -> Programme:
        """Choose a candidate for each document.

        Privacy: replacing a sentence moves each score of its document by at most the sensitivity of the utility, and no
            score of another document.
        """

        def scores(data: Data, first: int) -> Iterator[Sensitive[NDArray[np.integer]]]:
            return transform_scores(design.utility, design.candidates.recoder, data.records, first)

        yield ChooseEach(lambda data: public_columns(data.records), scores, design.utility.sensitivity, design.events)

    def fingerprint(self, design: Choice) -> str:
        """Hash what the choices are made from."""
        return fingerprint_of(*design.facts, len(design.candidates), design.utility.sensitivity)

    def noise(self, line: Line) -> dict[str, float]:
        """Name the scale of the choices: a candidate whose score is larger by it is e times as probable."""
        design = self.of(line)
        (event, *_) = [leaf for leaf in leaves([line.event]) if isinstance(leaf, PureEvent)]
        scale = pure_scale(design.utility.sensitivity, event.epsilon, adjacency=Adjacency.REPLACE_ONE)
        return {"score of a candidate, twice its depth in sentences (scale)": scale}

    def fit(self, release: Released[Release], craft: Craft) -> EmbeddedDocuments:
        """Look the chosen candidates up (post-processing)."""
        ((chosen,), ids) = self.answers(release.value), release.value.ids
        if (
            ids is None
            or len(ids) != len(chosen)
            or (len(chosen) and not 0 <= chosen.min() <= chosen.max() < self.size)
        ):
            raise ArtifactError("the release does not name a candidate for each of its documents")
        return EmbeddedDocuments(ids, chosen, self.candidates, release.value.line)

    @property
    def size(self) -> int:
        """The number of candidates."""
        return len(self.candidates)
