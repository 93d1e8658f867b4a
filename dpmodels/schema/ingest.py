"""Check a raw table against its schema, encode it, and keep the result inside the sensitive zone."""

from pathlib import Path

import pyarrow.parquet as pq

from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.schema.encode import Codec
from dpmodels.schema.expectations import Gate
from dpmodels.schema.pictures import Batches


def transform_encode(raw: Sensitive[Batches], gate: Gate, target: Path) -> None:
    """Write the encoded table to a Parquet file, if every batch passes the expectations of a gate for raw tables.

    Privacy: Sensitive -> Sensitive; each row is encoded by itself (stability 1). ``target`` must be in the sensitive
        zone, as must anything made of the gate's counts. That the gate passed is seen by whoever sees the run at all
        (docs/privacy.md).

    Raises:
        DataError: the table has no rows, or breaks the schema; every broken expectation is named.
    """
    codec = Codec(gate.schema)
    rows = 0
    with pq.ParquetWriter(target, codec.arrow_schema, compression="zstd") as writer:
        for batch in raw.reveal():
            if not gate.check(batch):
                continue  # keep checking, so that one run names every fault
            records = codec.encode(batch)
            rows += len(records)
            writer.write_batch(codec.to_arrow(records))
    if gate.broken:
        raise DataError("", "; ".join(map(str, gate.broken)))
    if not rows:
        raise DataError("", "the data holds no rows that the schema admits")
