"""The encoded rows of a tree's tables on disk, from which those of some units are taken at a time (reading/tree.py)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmodels.arrays import Mask
from dpmodels.codec.codes import Codes, code_type
from dpmodels.codec.stacked import joined
from dpmodels.contract.tree import Tree

CHUNK_ROWS = 2**20
"""About how many rows of a table are in memory while some are chosen."""
ODD = np.array([[0x9E3779B97F4A7C15], [0xC2B2AE3D27D4EB4F]], dtype=np.uint64)
"""Two odd numbers: by which hashes of several columns are added up to two numbers."""
HASH_KEYS = ("0123456789123456", "nacre, of a tree")
"""What text is hashed with: one hash for each number, so that neither tells the other."""


@dataclass(frozen=True)
class Raw:
    """Encoded rows of one table as they were read, with its keys.

    Attributes:
        codes: of the modeled columns. Shapes: arrays of [rows].
        keys: values of the columns in ``key`` and of those that name the parent, by column.
    """

    codes: list[Codes]
    keys: Mapping[str, pa.ChunkedArray]

    def __len__(self) -> int:
        return len(self.codes[0])


@dataclass
class RowsOnDisk:
    """The encoded rows of one table in files of a folder, in the order in which they were read; as sensitive as these.

    Attributes:
        rows: how many there are.
    """

    tree: Tree
    table: str
    folder: Path
    rows: int = 0
    _files: list[Path] = field(default_factory=list)
    _writer: Any = None
    _types: pa.Schema | None = None

    def add(self, codes: Sequence[Codes], keys: Mapping[str, pa.Array]) -> None:
        """Write more rows; each file holds keys of one type."""
        arrays = {_place(number): pa.array(values) for number, values in enumerate(codes)}
        batch = pa.RecordBatch.from_pydict(arrays | {_place(name): values for name, values in keys.items()})
        if self._types is None or not batch.schema.equals(self._types):
            self.close()
            self._types = batch.schema
            self._files.append(self.folder / f"{self.table}-{len(self._files)}.rows")
            self._writer = pa.ipc.new_file(str(self._files[-1]), batch.schema)
        self._writer.write_batch(batch)
        self.rows += batch.num_rows

    def close(self) -> None:
        """Finish the file that is written."""
        if self._writer is not None:
            self._writer.close()

    def choose(self, choice: Callable[[slice, dict[str, pa.ChunkedArray]], Mask]) -> Raw:
        """Return rows that are chosen, some of the table at a time, by their numbers and their keys."""
        names, parts = self.tree.key_columns(self.table), list[pa.Table]()
        for at, chunk in self._chunks():
            keys = {name: chunk.column(_place(name)) for name in names}
            parts.append(chunk.filter(pa.array(choice(at, keys))))
        columns = self.tree.tables[self.table].modelled.values()
        codes = [
            np.concatenate(
                [np.zeros(0, code_type(column)), *(part.column(_place(number)).to_numpy() for part in parts)]
            )
            for number, column in enumerate(columns)
        ]
        empty = [pa.array([], pa.int64())]
        return Raw(codes, {name: joined([part.column(_place(name)) for part in parts] or empty) for name in names})

    def _chunks(self) -> Iterator[tuple[slice, pa.Table]]:
        """Yield the rows in tables of about ``CHUNK_ROWS``, with their numbers."""
        first = 0
        for file in self._files:
            with pa.OSFile(str(file)) as source, pa.ipc.open_file(source) as opened:
                batches = list[pa.RecordBatch]()
                for index in range(opened.num_record_batches):
                    batches.append(opened.get_batch(index))
                    rows = sum(map(len, batches))
                    if rows >= CHUNK_ROWS or index + 1 == opened.num_record_batches:
                        yield slice(first, first + rows), pa.Table.from_batches(batches)
                        first, batches = first + rows, []


def _place(column: int | str) -> str:
    """Return the name of a column on disk: a number of one that is modeled, and of a key its own."""
    return f"code {column}" if isinstance(column, int) else f"key {column}"


class KeysOnDisk:
    """Hashes of all keys of a table, in files by what they begin with, so that a key that is there twice is found.

    A hash has 128 bits, of text by two keys of SipHash, so that two of 10^9 keys have the same one with a probability
    of 10^-20. One whole number has 64 bits, and its hash is its own.
    """

    def __init__(self, folder: Path, table: str, files: int) -> None:
        self._files = [folder / f"{table}-{number}.keys" for number in range(files)]

    def add(self, columns: Sequence[pa.ChunkedArray]) -> None:
        """Write the hashes of more keys."""
        hashes = _hashes(columns)
        bucket = hashes[0] >> np.uint64(32)
        for number, file in enumerate(self._files):
            with file.open("ab") as stream:
                stream.write(
                    np.ascontiguousarray(hashes[:, bucket % np.uint64(len(self._files)) == number].T).tobytes()
                )

    def has_repeated(self) -> bool:
        """Tell whether a key is there twice."""
        for file in self._files:
            hashes = np.fromfile(file, dtype=[("one", np.uint64), ("other", np.uint64)])
            if len(np.unique(hashes)) < len(hashes):
                return True
        return False


def _hashes(columns: Sequence[pa.ChunkedArray]) -> NDArray[np.uint64]:
    """Return two numbers for each row. Shapes: [2, rows]."""
    import pandas as pd

    total = np.zeros((2, len(columns[0])), dtype=np.uint64)
    for values in columns:
        numbers = (
            values.to_numpy() if pa.types.is_integer(values.type) else np.array(values.cast(pa.string()), dtype=object)
        )
        hashes = [pd.util.hash_array(numbers, hash_key=key, categorize=False) for key in HASH_KEYS]
        total = (total + np.array(hashes)) * ODD
        total ^= total >> np.uint64(29)
    return total
