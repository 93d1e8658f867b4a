"""Check a raw table against its schema, encode it, and keep the result inside the sensitive zone."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from dpmodels.errors import DataError
from dpmodels.privacy import Sensitive
from dpmodels.schema.encode import Codec
from dpmodels.schema.expectations import Gate
from dpmodels.schema.pictures import Batches
from dpmodels.schema.records import Records

Job = tuple[Sensitive[Batches], Path]
Found = tuple[Gate, bool]
Map = Callable[[Callable[[Job], Found], Iterable[Job]], Iterable[Found]]


def transform_encode(parts: Sequence[Sensitive[Batches]], gate: Gate, folder: Path, run: Map = map) -> None:
    """Write the encoded table to a folder, a file a part, if all of it passes a gate for raw tables.

    Memory: what a batch needs, for as many parts as ``run``, a map, has under way.

    Privacy: Sensitive -> Sensitive; each row is encoded by itself (stability 1). ``folder`` must be in the sensitive
        zone, as must anything made of the gate's counts. That the gate passed is seen by whoever sees the run at all
        (docs/privacy.md).

    Raises:
        DataError: the table has no rows, or breaks the schema; every broken expectation is named.
    """

    def encode(job: Job) -> Found:
        own = Gate(gate.schema, raw=True)
        return own, _encode_part(job[0], own, job[1])

    jobs: Iterator[Job] = ((part, folder / f"part-{index:05d}.arrow") for index, part in enumerate(parts))
    rows = False
    for own, some in run(encode, jobs):
        gate.add(own)
        rows |= some
    gate.settle()
    check_passed(rows, gate)


def check_passed(rows: bool, *gates: Gate) -> None:
    """Refuse tables that did not pass their settled gates, or hold no rows.

    Raises:
        DataError: see above; every broken expectation is named.
    """
    if broken := [rule for gate in gates for rule in gate.broken]:
        raise DataError("", "; ".join(map(str, broken)), [f"{rule}; {rule.fix}" for rule in broken])
    if not rows:
        raise DataError("", "the data holds no rows that the schema admits")


def encode_checked(batches: Batches, gate: Gate) -> Iterator[tuple[pa.RecordBatch, Records]]:
    """Yield the batches that fit with their records; one that does not fit is left to the gate to judge."""
    codec = Codec(gate.schema)
    for batch in batches:
        try:
            records = codec.encode(batch)
        except DataError:
            if not gate.check(batch):
                continue  # keep checking, so that one run names every fault
            raise
        if gate.check_encoded(batch) and len(records):
            yield batch, records


def _encode_part(raw: Sensitive[Batches], gate: Gate, target: Path) -> bool:
    """Encode one part, and tell whether it has rows."""
    codec, rows = Codec(gate.schema), False
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, codec.arrow_schema, options=options) as writer:
        for _, records in encode_checked(raw.reveal(), gate):
            rows = True
            writer.write_batch(codec.to_arrow(records))
    return rows
