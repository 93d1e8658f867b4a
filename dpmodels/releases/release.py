"""A release: what a measured line left, as one Parquet file that can be read with nothing but itself."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dpmodels.errors import ArtifactError, FileDamaged
from dpmodels.limits import UNPACKED_FACTOR, UNPACKED_RELEASE
from dpmodels.privacy import Released
from dpmodels.releases.formats import FORMAT, read_plan, values_of
from dpmodels.releases.plan import Line, Plan
from dpmodels.releases.unpack import read_within

PLAN_KEY, ENTRY_KEY, HASH_KEY, CHOSEN_KEY, EVENT_KEY, ADJACENCY_KEY = (
    b"nacre.plan",
    b"nacre.ledger_entry",
    b"nacre.values_sha256",
    b"nacre.chosen",
    b"nacre.event",
    b"nacre.adjacency",
)
FORMAT_KEY = b"nacre.format"
"""Footer key of the format's number; files that have none were written before there were numbers, in format 1."""


class Release(BaseModel):
    """A measured line: the noisy values, the ledger entry that paid, and what was chosen or kept on the way.

    Attributes:
        columns: what stands beside the values, such as the ids of the documents that they are of.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)
    line: Line
    vector: NDArray[np.int64]
    entry: str
    chosen: NDArray[np.int64] = Field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    columns: pa.Table = Field(default_factory=lambda: pa.table({}))


def write_release(
    path: Path,
    line: Line,
    entry: str,
    coordinates: Mapping[str, Any],
    values: NDArray[np.int64],
    chosen: NDArray[np.int64],
) -> None:
    """Write a release as Parquet, one row for each value, with everything needed to read it in the footer.

    Where the columns have fewer rows than there are values, a row has several of them.
    """
    vector = np.ascontiguousarray(values, dtype="<i8")
    metadata = {
        FORMAT_KEY: str(FORMAT),
        PLAN_KEY: Plan(lines=(line,)).model_dump_json(),
        ENTRY_KEY: entry,
        HASH_KEY: _hash(vector, chosen),
        CHOSEN_KEY: json.dumps(chosen.tolist()),
        EVENT_KEY: json.dumps(line.event.model_dump(mode="json")),
        ADJACENCY_KEY: line.budget.adjacency.value,
    }
    rows = len(next(iter(coordinates.values()), vector))
    several = 0 < rows < len(vector)
    value = pa.FixedSizeListArray.from_arrays(pa.array(vector), len(vector) // rows) if several else vector
    table = pa.table({**coordinates, "value": value})
    pq.write_table(table.replace_schema_metadata(metadata), path, compression="zstd")


def read_release(source: Path | bytes) -> Released[Release]:
    """Read a release back, from a file or from its bytes, and check its vector against the hash in the footer.

    Raises:
        ArtifactError: the file is missing, is damaged, is of a later format, or had its values changed.
    """
    name = source.name if isinstance(source, Path) else "artifact"
    try:
        with pa.BufferReader(source) if isinstance(source, bytes) else pa.OSFile(str(source)) as file:
            table = read_within(file, UNPACKED_RELEASE + UNPACKED_FACTOR * file.size())
    except (OSError, pa.ArrowException, ValueError) as fault:
        raise FileDamaged(f"release {name}", "put a copy of it back") from fault
    metadata = table.schema.metadata or {}
    number = metadata.get(FORMAT_KEY, b"1")[:9]
    if number.isdigit() and int(number) > FORMAT:
        raise ArtifactError(f"release {name} is of format {int(number)}, later than {FORMAT}: use a newer nacre")
    if not number.isdigit() or not {PLAN_KEY, ENTRY_KEY, HASH_KEY} <= set(metadata):
        raise ArtifactError(f"{name} is not a nacre release")
    try:
        value = table["value"]
        value = pc.list_flatten(value) if pa.types.is_fixed_size_list(value.type) else value
        vector = np.ascontiguousarray(value.to_numpy(), dtype="<i8")
        chosen = np.array(json.loads(metadata.get(CHOSEN_KEY, b"[]")), dtype="<i8").ravel()
        line, entry = read_plan(metadata[PLAN_KEY]).release, metadata[ENTRY_KEY].decode()
        changed = _hash(vector, chosen) != metadata[HASH_KEY].decode()
        vector, chosen = values_of(line, table, vector, chosen)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RecursionError):  # they quote the file
        raise ArtifactError(f"{name} is not as nacre writes a release: its footer or its values were changed") from None
    if changed:
        raise ArtifactError(f"the values of release {name} were changed after it was written")
    vector, chosen, columns = vector.astype(np.int64), chosen.astype(np.int64), table.drop_columns("value")
    return Released(Release(line=line, vector=vector, entry=entry, chosen=chosen, columns=columns))


def _hash(vector: NDArray[np.int64], chosen: NDArray[np.int64]) -> str:
    """Return the SHA-256 of a release's values, then of the integers chosen on the way."""
    return hashlib.sha256(vector.tobytes() + np.array(chosen, dtype="<i8").tobytes()).hexdigest()
