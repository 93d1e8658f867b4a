"""Documents in the stages: they are read and embedded in the sensitive zone; embeddings are held to their contract."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmodels.codec.embedded import Embedded, EmbeddedCodec, labels_of
from dpmodels.codec.encode import Codec
from dpmodels.contract.documents import Documents
from dpmodels.errors import ArtifactError, DataError
from dpmodels.gate.embedded_gate import EmbeddedGate
from dpmodels.gate.made_files import read_batches
from dpmodels.methods.documents.document_moments import DocumentMeasurement, DocumentMomentsSystem
from dpmodels.releases.plan import Line
from dpmodels.report.bins import CellTally
from dpmodels.report.fidelity import Measured
from dpmodels.report.points import map_of
from dpmodels.text.encoders import load_encoder
from dpmodels.text.points import transform_points
from dpmodels.text.reading import load_documents
from tasks.kinds.synthesized import caution_of_rules as caution_of_rules
from tasks.kinds.synthesized import records as records
from tasks.kinds.synthesized import system as system
from tasks.run.store import Run

SYNTHESIZED, COMPARED = True, False


def check_columns(contract: Documents, data: str, parents: str) -> None:
    """Hold the columns of every file of documents to the contract."""
    load_documents(data, contract)


def encode(run: Run, folder: Path) -> None:
    """Embed the documents; the encoder runs where the data is."""
    contract, settings = documents_of(run.plan.release), run.settings
    encoder = load_encoder(contract.encoder) if contract.text else None
    try:
        documents = load_documents(settings.source.rows, contract)
        transform_points(documents, contract, encoder, folder / "part-00000.arrow")
    except DataError as fault:
        raise DataError(fault.column, f"{fault.rule}; nothing was charged") from None


def documents_of(line: Line) -> Documents:
    """Return the contract of a line that is about documents.

    Raises:
        ArtifactError: the line is about something else.
    """
    if line.contract.about != "documents":
        raise ArtifactError(f"the line {line.name} of {line.method} is not about documents")
    return line.contract


@dataclass(frozen=True)
class EmbeddedCheck:
    """Checks one Parquet file of embedded documents, and counts its labels if asked to."""

    contract: Documents
    rows: int | None
    batch_rows: int
    counted: bool

    def gate(self) -> EmbeddedGate:
        """Return the rules of the contract."""
        return EmbeddedGate(self.contract, self.rows)

    def tally(self) -> CellTally | None:
        """Return a count of no documents, if documents are counted."""
        return CellTally(Codec(labels_of(self.contract))) if self.counted else None

    def __call__(self, file: Path) -> tuple[EmbeddedGate, CellTally | None]:
        """Check a file from its first document to its last."""
        gate, tally, codec = self.gate(), self.tally(), EmbeddedCodec(self.contract)
        for batch in read_batches(file, self.batch_rows, self.contract, self.rows):
            if gate.check(batch) and tally is not None:
                tally.add(codec.encode(batch).as_records())
        return gate, tally


def file_check(contract: Documents, rows: int | None, batch_rows: int, measured: Measured | None) -> EmbeddedCheck:
    """Return the check of a file of embedded documents."""
    return EmbeddedCheck(contract, rows, batch_rows, measured is not None)


def further_facts(measured: Measured, first: Sequence[Any], tally: Any) -> dict[str, Any]:
    """Return the map of the synthetic embeddings."""
    line = measured.release.line
    system = DocumentMomentsSystem(DocumentMeasurement.model_validate(line.measurement))
    return {"map": map_of(system.estimate(measured.release), Embedded.concat(first), documents_of(line).classes)}
