"""Made data as a run reads them: from files, batch by batch, so that what reading leaves out is audited too."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpmodels.codec.encode import Codec
from dpmodels.codec.records import Records
from dpmodels.contract.documents import Documents
from dpmodels.contract.schema import Schema
from dpmodels.gate.expectations import Gate
from dpmodels.reading.ingest import transform_encode
from dpmodels.reading.join import transform_join
from dpmodels.reading.load import load_parts
from dpmodels.text.passages import PassageFile, Passages, transform_passages
from dpmodels.text.reading import load_documents

BATCH = 64
"""Rows of a table that are read at once."""
LETTERS = 4
"""Letters that are read at once."""


def read_rows(schema: Schema, rows: pa.Table, parents: pa.Table | None = None) -> Records:
    """Read, check, join and encode a table, or users and their rows: from two files, or from one that has both."""
    of_rows = schema if schema.users is None else schema.joined if parents is None else schema.children
    sides = [(of_rows, rows), *([] if parents is None else [(schema.parents, parents)])]
    gates, parts, batches = [Gate(side, raw=True) for side, _ in sides], list[Any](), list[Records]()
    with TemporaryDirectory() as directory:
        folder, encoded = Path(directory), Path(directory) / "encoded"
        encoded.mkdir()
        for number, (side, table) in enumerate(sides):
            pq.write_table(table, folder / f"{number}.parquet")
            parts.append(load_parts(folder / f"{number}.parquet", side, BATCH))
        if schema.users is None:
            transform_encode(parts[0], gates[0], encoded)
        else:
            transform_join(schema, parts[0], None if parents is None else parts[1], gates, encoded, BATCH)
        codec = Codec(schema.flat)
        for file in sorted(encoded.glob("*.arrow")):
            with pa.ipc.open_file(file) as reader:
                batches += [codec.from_arrow(reader.get_batch(index)) for index in range(reader.num_record_batches)]
    return Records.concat(batches)


def read_letters(contract: Documents, letters: pa.Table) -> Passages:
    """Read letters whose vectors came with them."""
    with TemporaryDirectory() as directory:
        folder = Path(directory)
        pq.write_table(letters, folder / "letters.parquet")
        documents = load_documents(folder / "letters.parquet", contract, LETTERS)
        transform_passages(documents, contract, None, folder / "passages.arrow")
        parts = list(PassageFile(folder / "passages.arrow"))
    counts = np.concatenate([part.counts for part in parts])
    return Passages(
        [name for part in parts for name in part.ids],
        np.concatenate([part.labels for part in parts]),
        np.concatenate([part.vectors for part in parts]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )
