"""Documents as the embeddings of their sentences, in memory and in one Arrow file of the sensitive zone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.contract.documents import Documents
from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.text.encoders import Encode, Vectors
from dpmodels.text.reading import sentence_vectors
from dpmodels.text.sentences import split_sentences

Numbers = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Passages:
    """Some documents in reading order.

    Attributes:
        ids: of the documents, which are public.
        labels: the place of each document's class among the contract's, or -1 where it names none.
        vectors: of all sentences, one document after the other, each of norm at most 1 up to rounding.
        ends: sentence ``ends[i]`` is the first of document i, and the last entry the number of all sentences.

    Shapes: labels [n], vectors [sentences, dim], ends [n + 1].
    """

    ids: list[str]
    labels: NDArray[np.int32]
    vectors: Vectors
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> Vectors:
        """Return the sentences of one document."""
        return self.vectors[self.ends[index] : self.ends[index + 1]]

    def subset(self, rows: NDArray[np.int64]) -> "Passages":
        """Return some of the documents, in the order asked for."""
        counts = self.counts[rows]
        ends = np.append(0, counts.cumsum())
        sentences = np.arange(ends[-1]) + np.repeat(self.ends[rows] - ends[:-1], counts)
        return Passages([self.ids[row] for row in rows], self.labels[rows], self.vectors[sentences], ends)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of sentences of each document."""
        return np.diff(self.ends)

    def means(self) -> NDArray[np.float64]:
        """Average the sentences of each document, which has norm at most 1; a document without any is 0."""
        padded = np.vstack([self.vectors, np.zeros((1, self.vectors.shape[1]), dtype=np.float32)]).astype(np.float64)
        totals = np.add.reduceat(padded, self.ends[:-1], axis=0) if len(self) else padded[:0]
        totals[self.counts == 0] = 0.0
        return totals / np.maximum(self.counts, 1)[:, np.newaxis]

    def to_arrow(self) -> pa.RecordBatch:
        """Write the documents as one batch, a document a row."""
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(self.vectors.ravel()), self.vectors.shape[1])
        sentences = pa.LargeListArray.from_arrays(pa.array(self.ends), vectors)
        arrays = [pa.array(self.ids, pa.large_string()), pa.array(self.labels), sentences]
        return pa.RecordBatch.from_arrays(arrays, ["id", "label", "sentences"])

    @classmethod
    def from_arrow(cls, batch: pa.RecordBatch) -> "Passages":
        """Read a batch that ``to_arrow`` wrote."""
        sentences = batch["sentences"]
        ends = sentences.offsets.to_numpy()
        vectors = sentences.flatten()
        shape = len(vectors), vectors.type.list_size
        numbers = vectors.flatten().to_numpy().reshape(shape)
        return cls(batch["id"].to_pylist(), batch["label"].to_numpy(), numbers, ends - ends[0])


@dataclass(frozen=True)
class PassageFile:
    """The documents of a file that ``transform_passages`` wrote; it can be read any number of times."""

    path: Path

    def __iter__(self) -> Iterator[Passages]:
        with pa.OSFile(str(self.path)) as source, pa.ipc.open_file(source) as reader:
            for index in range(reader.num_record_batches):
                yield Passages.from_arrow(reader.get_batch(index))


def public_columns(documents: Sensitive[PassageFile]) -> pa.Table:
    """Read the ids of the documents, in reading order, and how many sentences each has.

    Privacy: all of it is public by the contract where a sentence is protected, which hides it by replacing it.
    """
    schema = pa.schema({"id": pa.large_string(), "sentences": pa.int64()})
    batches = [pa.record_batch([batch.ids, batch.counts], schema=schema) for batch in documents.reveal()]
    return pa.Table.from_batches(batches, schema)


def transform_each(
    compute: Callable[[Vectors, NDArray[np.int64]], Numbers], documents: Sensitive[PassageFile], first: int
) -> Iterator[Sensitive[Numbers]]:
    """Compute numbers for each document from number ``first`` on, block by block.

    Args:
        compute: its arguments are the sentences of some documents, and where those of each begin and end.
        documents: see above.
        first: the number of documents that are passed over.

    Shapes: a block is [documents, numbers].

    Privacy: Sensitive -> Sensitive. A document's numbers are computed from its sentences alone; how far one sentence
        moves them is proved where ``compute`` is made.
    """
    for batch in documents.reveal():
        skipped = min(first, len(batch))
        first -= skipped
        if skipped < len(batch):
            begin = batch.ends[skipped]
            yield Sensitive(compute(batch.vectors[begin:], batch.ends[skipped:] - begin))


def transform_passages(
    documents: Sensitive[Any], contract: Documents, encode: Encode | None, target: Path
) -> Sensitive[PassageFile]:
    """Cut documents into sentences, embed these, and keep the embeddings in a file of the sensitive zone.

    Memory: a batch of documents at a time.

    Privacy: Sensitive -> Sensitive. One sentence that is replaced changes one vector, and the others keep every bit;
        one document that is added or removed leaves the others as they are.

    Raises:
        DataError: there are no documents, or they break the contract.
    """
    with pa.OSFile(str(target), "wb") as sink:
        writer = None
        for batch in documents.reveal():
            written = embed(batch, contract, encode).to_arrow()
            writer = writer or pa.ipc.new_file(sink, written.schema)
            writer.write_batch(written)
        if writer is None:
            raise DataError("", "the data holds no documents")
        writer.close()
    return Sensitive(PassageFile(target))


def embed(batch: pa.RecordBatch, contract: Documents, encode: Encode | None) -> Passages:
    """Return the sentences of one batch of documents as vectors; those that come with the documents need no encoder."""
    if encode is None:
        vectors, ends = sentence_vectors(batch["content"], contract)
    else:
        texts = batch["content"].to_pylist()
        cut = [split_sentences(text, contract.language, contract.most_sentences) for text in texts]
        vectors = encode([sentence for sentences in cut for sentence in sentences])
        ends = np.cumsum([0, *map(len, cut)], dtype=np.int64)
    return Passages(batch["id"].to_pylist(), batch["label"].to_numpy(), vectors, ends)
