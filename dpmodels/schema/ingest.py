"""Check a raw table against its schema, encode it, and keep the result inside the sensitive zone."""

from pathlib import Path

import pyarrow.parquet as pq

from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.schema.encode import Codec
from dpmodels.schema.expectations import Gate
from dpmodels.schema.pictures import Batches
from dpmodels.schema.schema import Schema


def transform_encode(raw: Sensitive[Batches], schema: Schema, target: Path) -> Gate:
    """Write the encoded table to a Parquet file, after every batch has passed the schema's expectations.

    Returns the gate that was passed: its results name expectations, never values or counts.

    Privacy: Sensitive -> Sensitive; each row is encoded by itself (stability 1). ``target`` must be in the sensitive
        zone. That the gate passed is seen by whoever sees the run at all (docs/privacy.md).

    Raises:
        DataError: the table has no rows, or breaks the schema; every broken column is named.
    """
    gate, codec = Gate(schema, raw=True), Codec(schema)
    rows = 0
    with pq.ParquetWriter(target, codec.arrow_schema, compression="zstd") as writer:
        for batch in raw.reveal():
            gate.check(batch)
            if gate.failures:
                continue  # keep checking, so that one run names every fault
            records = codec.encode(batch)
            rows += len(records)
            writer.write_batch(codec.to_arrow(records))
    if gate.failures:
        raise DataError("", "; ".join(f"column {column} {rule}" if column else rule for column, rule in gate.failures))
    if not rows:
        raise DataError("", "the data holds no rows that the schema admits")
    return gate
