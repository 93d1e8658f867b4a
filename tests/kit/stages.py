"""Stages of a run that does nothing but fail, in the ways in which stages do."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from dpmodels.errors import DataError
from tasks.stages.stage import stage

CANARY = "Zebulon-Quillfeather-1874"


@dataclass(frozen=True)
class Run:
    sensitive: Path


@stage("ingest", sensitive=True)
def cast(run: Run, value: str = CANARY) -> int:
    """Choke on a private value, which pyarrow quotes in its message."""
    return pa.array([value]).cast(pa.int64())[0].as_py()


@stage("sanitize", sensitive=True)
def refuse(run: Run) -> None:
    try:
        cast.__wrapped__(run)
    except pa.ArrowInvalid as error:
        raise DataError("age", "must be an integer") from error


@stage("train", sensitive=False)
def train(run: Run, tries: list[int]) -> str:
    tries.append(1)
    if len(tries) < 3:
        raise ConnectionError("try again")
    return "weights"
