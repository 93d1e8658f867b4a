"""The encoded rows or documents in the sensitive zone: a folder of Arrow files, read in batches, part by part."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpmodels.codec.embedded import codec_of
from dpmodels.embeddings.summation import SumOf, Vector
from dpmodels.errors import ArtifactError
from tasks.engine.engines import Engine, Threads

PART_BATCHES = 16
"""Batches in a part: about a second of work, which is repeated when a machine is lost."""


@dataclass(frozen=True)
class EncodedPart:
    """The place of some batches of one file: small and public, so that it can be sent to a machine that reads them."""

    file: Path
    start: int
    stop: int
    schema: Any

    def __iter__(self) -> Iterator[Any]:
        codec = codec_of(self.schema)
        try:
            with pa.OSFile(str(self.file)) as source, pa.ipc.open_file(source) as reader:
                for index in range(self.start, self.stop):
                    yield codec.from_arrow(reader.get_batch(index))
        except FileNotFoundError:
            raise ArtifactError(
                f"encoded data {self.file} must be readable by whoever sums it; it is not there"
            ) from None


@dataclass(frozen=True)
class EncodedTable:
    """All rows of an encoded table, read from the start at each iteration; at most one batch is in memory."""

    folder: Path
    schema: Any
    engine: Engine = field(default_factory=lambda: Threads(1))

    def __iter__(self) -> Iterator[Any]:
        for part in self.parts():
            yield from part

    def parts(self) -> Iterator[EncodedPart]:
        """Cut the files into parts."""
        for file in sorted(self.folder.glob("*.arrow")):
            with pa.OSFile(str(file)) as source:
                batches = pa.ipc.open_file(source).num_record_batches
            for start in range(0, batches, PART_BATCHES):
                yield EncodedPart(file, start, min(start + PART_BATCHES, batches), self.schema)

    def sums(self, sum_of: SumOf) -> Iterator[Vector]:
        """Yield the sum of every part; each sum is as sensitive as the rows."""
        return self.engine.map(sum_of, self.parts())
