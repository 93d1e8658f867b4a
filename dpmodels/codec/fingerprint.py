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
from dpmodels.contract.columns import computed
from dpmodels.contract.formula import names_in
from dpmodels.contract.schema import Schema

LANES = 2  # of 64 bits
Lanes = NDArray[np.uint64]


class Sum:
    """Adds up keyed hashes of 128 bits, and hashes the sum."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._total, self._rows = np.zeros(LANES, dtype=np.uint64), 0

    def _add(self, hashes: Lanes) -> None:
        """Count hashes in. Shapes: [LANES, B]."""
        self._total += hashes.sum(axis=1, dtype=np.uint64)
        self._rows += hashes.shape[1]

    def merge(self, other: "Sum") -> None:
        """Count in what another sum under the same secret has."""
        self._total += other._total
        self._rows += other._rows

    @property
    def digest(self) -> str:
        """Return the hash of all rows so far."""
        return self._keyed(self._total.tobytes() + self._rows.to_bytes(8, "little"), 32).hex()

    def _keyed(self, content: bytes, size: int) -> bytes:
        return hashlib.blake2b(content, key=self._secret, digest_size=size).digest()


class Fingerprint(Sum):
    """Add up a hash of 128 bits for every row, the partition's column left out, and hash the sum.

    A row's hash is a random linear function of its codes (Carter and Wegman 1979), then mixed, so that sums of rows
    tell tables apart; what is random about it follows from the secret by BLAKE2b. Two different rows have one hash with
    a probability of at most about 2**-64. This protects from accidents: whoever knows the secret can make such rows.

    Args:
        by_name: whether columns count in the order of their names, rather than in that of the schema.
        kinds: how many different rows are counted, at most.

    Privacy: as sensitive as the rows; it stays in the sensitive zone, as does the secret. Reads nothing but codes, so
        columns that are dropped do not count.
    """

    def __init__(self, schema: Schema | None, secret: bytes, by_name: bool = False, kinds: int = 0) -> None:
        super().__init__(secret)
        left_out = schema and schema.partition and schema.partition.column
        names = list(schema.modelled) if schema else []
        in_order = sorted(names) if by_name else names
        formulas = computed(schema.columns) if schema else {}
        follows = [name for name, formula in formulas.items() if {*names_in(formula)} <= {*names}]  # adds no data
        self._columns = [names.index(name) for name in in_order if name != left_out and name not in follows]
        self._most, self._different = kinds, np.zeros(0, dtype=np.uint64)

    @property
    def kinds(self) -> int:
        """Count the rows that differ, as far as they are counted."""
        return len(self._different)

    def add(self, records: Records) -> None:
        """Count more rows in; order does not matter."""
        words: list[NDArray[Any]] = [records.codes[column] for column in self._columns] if records.codes else []
        if records.pixels is not None:
            words += list(_words(records.pixels))
        self._add_words(words, len(records))

    def add_documents(self, batch: pa.RecordBatch) -> None:
        """Count encoded documents in: each vector is a row, with the class of its document; ids do not count."""
        labels, vectors = batch.columns[-2:]
        if pa.types.is_large_list(vectors.type):  # of sentences
            labels, vectors = labels.take(pc.list_parent_indices(vectors)), vectors.flatten()
        shape = len(vectors), vectors.type.list_size
        pixels = vectors.flatten().to_numpy().reshape(shape).view(np.uint8)
        self._add_words([labels.to_numpy(), *_words(pixels)], len(vectors))

    def add_raw(self, batch: pa.RecordBatch, names: Iterable[str]) -> None:
        """Count raw rows in by their values in some columns, in the order of the columns' names."""
        numbers = [number_values(batch.column(name)) for name in sorted(names)]
        low, high = np.uint64(2**32 - 1), np.uint64(32)
        self._add_words([word for each in numbers for word in (each & low, each >> high)], batch.num_rows)

    def _add_words(self, words: Sequence[NDArray[Any]], rows: int) -> None:
        lanes = np.empty((LANES, rows), dtype=np.uint64)
        lanes[:] = self._numbers(0)[:, None]
        for index, word in enumerate(words, 1):
            lanes += self._numbers(index)[:, None] * word.astype(np.uint64)
        self._add(hashes := mixed(lanes))
        self._count(hashes[0])

    def merge(self, other: Sum) -> None:
        """Count in the rows of another fingerprint under the same secret."""
        super().merge(other)
        if isinstance(other, Fingerprint):
            self._count(other._different)

    def _count(self, hashes: NDArray[np.uint64]) -> None:
        if self.kinds < self._most:
            self._different = np.unique(np.concatenate([self._different, hashes]))[: self._most]

    def _numbers(self, index: int) -> Lanes:
        """Return the secret multipliers of a row's word, or its secret start."""
        return multipliers(index.to_bytes(8, "little"), self._secret)


def digest_of_documents(folder: Path, secret: bytes) -> str:
    """Hash the encoded documents in the Arrow files of a folder; one batch is in memory."""
    fingerprint = Fingerprint(None, secret)
    for file in folder.glob("*.arrow"):
        with pa.OSFile(str(file)) as source, pa.ipc.open_file(source) as reader:
            for index in range(reader.num_record_batches):
                fingerprint.add_documents(reader.get_batch(index))
    return fingerprint.digest


def multipliers(of: bytes, secret: bytes) -> Lanes:
    """Return secret numbers that follow from a name; odd, so that no word is lost that they multiply."""
    content = hashlib.blake2b(of, key=secret, digest_size=8 * LANES).digest()
    return np.frombuffer(content, dtype=np.uint64) | np.uint64(1)


def _words(pixels: NDArray[np.uint8]) -> Any:
    """Cut the pixels of each row into words of 32 bits. Shapes: [words, B]."""
    padded = np.pad(pixels, ((0, 0), (0, -pixels.shape[1] % 4)))
    return np.ascontiguousarray(padded).view(np.uint32).T


def mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix every bit into every bit (splitmix64, Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
