"""A keyed hash of rows, the same in whatever order and files they come: encoded ones, or raw ones of a discovery."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpmodels.codec.encode import Records
from dpmodels.codec.raw_values import number_values
from dpmodels.contract.schema import Schema

LANES = 2  # of 64 bits
Lanes = NDArray[np.uint64]


class Fingerprint:
    """Add up a hash of 128 bits for every row, the partition's column left out, and hash the sum.

    A row's hash is a random linear function of its codes (Carter and Wegman 1979), then mixed, so that sums of rows
    tell tables apart; what is random about it follows from the secret by BLAKE2b. Two different rows have one hash with
    a probability of at most about 2**-64. This protects from accidents: whoever knows the secret can make such rows.

    Args:
        by_name: whether columns count in the order of their names, rather than in that of the schema.

    Privacy: as sensitive as the rows; it stays in the sensitive zone, as does the secret. Reads nothing but codes, so
        columns that are dropped do not count.
    """

    def __init__(self, schema: Schema | None, secret: bytes, by_name: bool = False) -> None:
        self._secret = secret
        left_out = schema and schema.partition and schema.partition.column
        names = list(schema.modelled) if schema else []
        in_order = sorted(names) if by_name else names
        self._columns = [names.index(name) for name in in_order if name != left_out]
        self._total, self._rows = np.zeros(LANES, dtype=np.uint64), 0

    def add(self, records: Records) -> None:
        """Count more rows in; order does not matter."""
        words: list[NDArray[Any]] = [records.codes[column] for column in self._columns] if records.codes else []
        if records.pixels is not None:
            words += list(_words(records.pixels))
        self._add(words, len(records))

    def add_documents(self, batch: pa.RecordBatch) -> None:
        """Count encoded documents in: each vector is a row, with the class of its document; ids do not count."""
        labels, vectors = batch.columns[-2:]
        if pa.types.is_large_list(vectors.type):  # of sentences
            labels, vectors = labels.take(pc.list_parent_indices(vectors)), vectors.flatten()
        shape = len(vectors), vectors.type.list_size
        pixels = vectors.flatten().to_numpy().reshape(shape).view(np.uint8)
        self._add([labels.to_numpy(), *_words(pixels)], len(vectors))

    def add_raw(self, batch: pa.RecordBatch, names: Iterable[str]) -> None:
        """Count raw rows in by their values in some columns, in the order of the columns' names."""
        numbers = [number_values(batch.column(name)) for name in sorted(names)]
        low, high = np.uint64(2**32 - 1), np.uint64(32)
        self._add([word for each in numbers for word in (each & low, each >> high)], batch.num_rows)

    def _add(self, words: Sequence[NDArray[Any]], rows: int) -> None:
        lanes = np.empty((LANES, rows), dtype=np.uint64)
        lanes[:] = self._numbers(0)[:, None]
        for index, word in enumerate(words, 1):
            lanes += self._numbers(index)[:, None] * word.astype(np.uint64)
        self._total += _mixed(lanes).sum(axis=1, dtype=np.uint64)
        self._rows += rows

    def merge(self, other: "Fingerprint") -> None:
        """Count in the rows of another fingerprint under the same secret."""
        self._total += other._total
        self._rows += other._rows

    @property
    def digest(self) -> str:
        """Return the hash of all rows so far."""
        content = self._total.tobytes() + self._rows.to_bytes(8, "little")
        return hashlib.blake2b(content, key=self._secret, digest_size=32).hexdigest()

    def _numbers(self, index: int) -> Lanes:
        """Return the secret multipliers of a row's word, or its secret start; odd, so that none is lost."""
        content = hashlib.blake2b(index.to_bytes(8, "little"), key=self._secret, digest_size=8 * LANES).digest()
        return np.frombuffer(content, dtype=np.uint64) | np.uint64(1)


def digest_of_documents(folder: Path, secret: bytes) -> str:
    """Hash the encoded documents in the Arrow files of a folder; one batch is in memory."""
    fingerprint = Fingerprint(None, secret)
    for file in folder.glob("*.arrow"):
        with pa.OSFile(str(file)) as source, pa.ipc.open_file(source) as reader:
            for index in range(reader.num_record_batches):
                fingerprint.add_documents(reader.get_batch(index))
    return fingerprint.digest


def _words(pixels: NDArray[np.uint8]) -> Any:
    """Cut the pixels of each row into words of 32 bits. Shapes: [words, B]."""
    padded = np.pad(pixels, ((0, 0), (0, -pixels.shape[1] % 4)))
    return np.ascontiguousarray(padded).view(np.uint32).T


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix every bit into every bit (splitmix64, Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
