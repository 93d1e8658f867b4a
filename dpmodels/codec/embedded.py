"""Embedded documents: whole vectors of norm at most 1 with the number of their class, and how they are written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.codec.encode import Codec, Records
from dpmodels.codec.flat import FlatCodec
from dpmodels.codec.tree import TreeCodec
from dpmodels.contract.documents import Documents
from dpmodels.contract.schema import Schema
from dpmodels.errors import DataError

BITS = 14
"""A vector of norm 1 has norm 2**BITS in steps."""

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Embedded:
    """Documents as vectors in steps of ``2**-BITS``, with the number of their class. Shapes: [B, dim] int16, [B]."""

    vectors: NDArray[np.int16]
    labels: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: Any) -> "Embedded":
        """Select documents by anything numpy indexes rows with."""
        return Embedded(self.vectors[index], self.labels[index])

    def as_records(self) -> Records:
        """Return the labels as records of their own schema, in which they are counted."""
        states = self.labels[:, None]
        return Records(states, np.zeros(states.shape))

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> "Embedded":
        """Join at least one part, in order."""
        return Embedded(np.concatenate([p.vectors for p in parts]), np.concatenate([p.labels for p in parts]))


def on_sphere(vectors: Floats) -> NDArray[np.int16]:
    """Bring vectors to norm 1 and to whole steps; a vector of norm 0 stays 0.

    Privacy: the norm of every result is at most ``2**BITS``: the division loses a relative 2**-40, more than its
        roundings can add, and truncating toward zero shortens every coordinate. A vector is a function of its own.

    Shapes: [B, dim] finite -> [B, dim].
    """
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True).astype(np.float64)
    near = vectors / np.where(largest > 0, largest, 1)  # so that no square overflows or vanishes
    norm = np.sqrt((near * near).sum(axis=1, keepdims=True))
    whole: NDArray[np.int16] = np.trunc(near * (np.ldexp(1 - 2.0**-40, BITS) / np.where(norm > 0, norm, 1))).astype(
        np.int16
    )
    return whole


class EmbeddedCodec:
    """Writes embedded documents into the sensitive zone and into a hand-off, and reads them back."""

    def __init__(self, contract: Documents) -> None:
        self.contract, self.dim = contract, contract.encoder.dim
        self.arrow_schema = pa.schema({"class": pa.int32(), "vector": pa.list_(pa.int16(), self.dim)})
        label = {contract.label: pa.string()} if contract.label else {}
        self.output_schema = pa.schema(label | {"embedding": pa.list_(pa.float32(), self.dim)})

    def to_arrow(self, documents: Embedded) -> pa.RecordBatch:
        """Lay documents out in the form in which they are stored."""
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(documents.vectors.ravel()), self.dim)
        return pa.RecordBatch.from_arrays([pa.array(documents.labels), vectors], schema=self.arrow_schema)

    def from_arrow(self, batch: pa.RecordBatch) -> Embedded:
        """Read documents back from their stored form.

        Raises:
            DataError: they are not of this contract.
        """
        if not batch.schema.equals(self.arrow_schema):
            raise DataError("", "the encoded data does not belong to this contract")
        vectors = batch.column("vector").flatten().to_numpy().reshape(-1, self.dim)
        return Embedded(vectors, batch.column("class").to_numpy())

    def decode(self, documents: Embedded, first_row: int = 0) -> pa.Table:
        """Write documents as a hand-off has them: the class by its name, the embedding as a list of 32-bit numbers."""
        numbers = pa.array(np.ldexp(documents.vectors.astype(np.float32), -BITS).ravel())
        columns = [pa.FixedSizeListArray.from_arrays(numbers, self.dim)]
        if self.contract.label:
            columns.insert(0, pa.array(np.array(self.contract.classes, dtype=object)[documents.labels], pa.string()))
        return pa.Table.from_arrays(columns, schema=self.output_schema)

    def encode(self, table: pa.Table | pa.RecordBatch) -> Embedded:
        """Read documents from the form of a hand-off, which passed its gate (gate/embedded_gate.py)."""
        batch = pa.table(table) if isinstance(table, pa.RecordBatch) else table
        numbers = batch.column("embedding").combine_chunks().flatten().to_numpy().reshape(-1, self.dim)
        class_numbers = {name: number for number, name in enumerate(self.contract.classes)}
        labels = batch.column(self.contract.label).to_pylist() if self.contract.label else []
        numbered = np.array([class_numbers[label] for label in labels] or [0] * len(batch), dtype=np.int32)
        return Embedded(np.rint(np.ldexp(numbers, BITS)).astype(np.int16), numbered)


def codec_of(contract: Any) -> Any:
    """Return what writes and reads the rows of a contract."""
    if contract.kind == "tree":
        return TreeCodec(contract)
    if not contract.is_table:
        return EmbeddedCodec(contract)
    return FlatCodec(contract) if contract.users else Codec(contract)


def labels_of(contract: Documents) -> Schema:
    """Return the schema of the documents' labels, by which they are counted; of one value where they have none."""
    name, values = contract.label or "embedding", contract.classes or ("a document",)
    columns = {name: {"type": "categorical", "values": list(values)}}
    return Schema.model_validate({"name": contract.name, "target": name, "columns": columns})
