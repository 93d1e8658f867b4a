"""Check a raw table against its schema, encode it, and keep the result inside the sensitive zone."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import pyarrow as pa

from dpmodels.codec.encode import Codec
from dpmodels.codec.records import Records
from dpmodels.contract.schema import Schema
from dpmodels.contract.text_forms.written import with_form
from dpmodels.errors import DataError
from dpmodels.gate.causes import first_causes
from dpmodels.gate.expectations import Gate, Verdicts
from dpmodels.privacy import Sensitive
from dpmodels.reading.database import Query
from dpmodels.reading.load import load_parts
from dpmodels.reading.pictures import Batches

Job = tuple[Batches, Path]
Found = tuple[Gate, bool, tuple[str, str, tuple[str, ...]] | None]
"""The gate of a part, whether the part has rows, and the fault, as its column and words, that ended its reading."""
Map = Callable[[Callable[[Job], Found], Iterable[Job]], Iterable[Found]]


def transform_encode(parts: Sequence[Sensitive[Batches]], gate: Gate, folder: Path, run: Map = map) -> None:
    """Write the encoded table to a folder, a file a part, if all of it passes a gate for raw tables.

    The files are the same bytes whatever ``run``, a map, does where, and in which order.

    Memory: what a batch needs, for as many parts as ``run`` has under way.

    Privacy: Sensitive -> Sensitive; each row is encoded by itself (stability 1). ``folder`` must be in the sensitive
        zone, as must anything made of the gate's counts, and every machine on which ``run`` has parts encoded. That the
        gate passed is seen by whoever sees the run at all (docs/privacy.md).

    Raises:
        DataError: the table has no rows, or breaks the schema; every broken expectation is named.
    """
    jobs: Iterator[Job] = ((part.reveal(), folder / f"part-{index:05d}.arrow") for index, part in enumerate(parts))
    rows = False
    for verdicts, some, fault in run(Encode(gate.beside()), jobs):
        if fault is not None:
            raise DataError(*fault)
        gate.add(verdicts)
        rows |= some
    for left in folder.glob("*.arrow.*"):  # by a worker that died
        left.unlink()
    gate.settle()
    check_passed(rows, gate)


def transform_check(parts: Sequence[Sensitive[Batches]], schema: Schema, run: Callable[..., Any]) -> Gate:
    """Return a settled gate for raw tables that saw all rows; nothing is written.

    Privacy: Sensitive -> exact counts of rows, as sensitive as they are, for whoever has the rows at hand.

    Raises:
        DataError: a part cannot be read, or the table holds no row that the schema admits.
    """
    gate, some = Gate(schema, raw=True, tells=True), False

    def check(part: Sensitive[Batches]) -> tuple[Gate, bool]:
        found = gate.beside()
        return found, sum(1 for _ in encode_checked(part.reveal(), found)) > 0

    for found, rows in run(check, parts):
        gate.add(found)
        some |= rows
    gate.settle()
    if not gate.broken:
        check_passed(some, gate)
    return gate


def faults_in(
    source: str | Path | Query, schema: Schema, batch_rows: int, keys: Sequence[str] = (), of_users: bool = False
) -> Iterator[str]:
    """Yield all that is wrong with a table: a column of another type is named, and the others are read without it.

    Privacy: which rules the rows break, as every refusal says it; no rule is about several rows but how many there are.
    """
    aside = set[str]()
    while not schema.image:  # images are no column that others can be read without
        try:
            gate = transform_check(
                load_parts(source, rest := with_form(schema.without(aside), schema.text), batch_rows, keys), rest, map
            )
        except DataError as fault:
            if fault.column in aside:  # it is not there at all, or no user's id
                return
            yield fault.faults[0] if fault.faults else str(fault)
            if not fault.column:
                return
            aside.update((fault.column, *fault.also))
        else:
            yield from _faults_of([gate], of_users)
            return


def with_others(fault: DataError, faults: Iterable[str]) -> DataError:
    """Return the fault of one column, which may have ended the reading, with all that are wrong with its table."""
    if not fault.column or len(every := list(faults)) < 2:
        return fault
    return DataError("", "; ".join(every), every)


def check_passed(rows: bool, *gates: Verdicts, of_users: bool = False) -> None:
    """Refuse tables that did not pass their settled gates, or hold no rows; those of users may leave no row out.

    Raises:
        DataError: see above; every broken expectation is named.
    """
    if faults := _faults_of(gates, of_users):
        raise DataError("", "; ".join(faults), faults)
    if not rows:
        raise DataError("", "the data holds no rows that the schema admits")


def _faults_of(gates: Sequence[Verdicts], of_users: bool) -> list[str]:
    causes = (cause for gate in gates for cause in first_causes(gate.broken))
    return [f"{rule}{following}; {rule.fix(of_users)}" for rule, following in causes]


def encode_checked(batches: Batches, gate: Gate) -> Iterator[tuple[pa.RecordBatch, Records]]:
    """Yield the batches that fit with their records; one that does not fit is left to the gate to judge."""
    codec = Codec(gate.schema)
    for batch in batches:
        try:
            records = codec.encode(batch)
        except DataError:
            if gate.check(batch):
                raise
            gate.see_outside(batch)
            continue  # keep checking, so that one run names every fault
        gate.see_outside(batch)
        if gate.check_encoded(batch) and (len(records) if codec.columns else batch.num_rows):
            yield batch, records


@dataclass(frozen=True)
class Encode:
    """Encodes a part of a table, on this machine or on another one that sees the folder; ``gate`` has seen no row."""

    gate: Gate

    def __call__(self, job: Job) -> Found:
        """Encode one part; its file appears whole, so a part that is encoded twice at once does no harm."""
        gate, (batches, target) = self.gate.beside(), job
        part = target.with_name(f"{target.name}.{token_hex(4)}")
        try:
            rows = _encode_part(batches, gate, part)
        except DataError as fault:
            return gate, False, (fault.column, fault.rule, fault.faults)
        os.replace(part, target)
        return gate, rows, None


def _encode_part(batches: Batches, gate: Gate, target: Path) -> bool:
    """Encode one part, and tell whether it has rows."""
    codec, rows = Codec(gate.schema), False
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with pa.OSFile(str(target), "wb") as sink, pa.ipc.new_file(sink, codec.arrow_schema, options=options) as writer:
        for _, records in encode_checked(batches, gate):
            rows = True
            writer.write_batch(codec.to_arrow(records))
    return rows
