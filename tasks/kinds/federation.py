"""A client of a federation in the stages: its own records are measured against the federation's public part.

The public part is made before the run and lies in the control zone. A client's run opens its own data, and no other's.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dpmodels.contract.federation import Federation
from dpmodels.embeddings.frozen import Examples, transform_frozen
from dpmodels.errors import ArtifactError
from dpmodels.methods.federations.public_part import PublicPart, PublicRecords
from dpmodels.methods.federations.records import load_examples
from dpmodels.methods.registry import of_kind, system_of
from dpmodels.privacy import Released, Sensitive
from dpmodels.releases.plan import Line, Plan
from dpmodels.releases.release import Release, read_release
from dpmodels.releases.system import System
from tasks.engine.engines import Engine
from tasks.run.store import Run

PUBLIC, RECORDS = "public.safetensors", "public-records.safetensors"


class Round(BaseModel):
    """What became of each client: the digest of its release, or why it was dropped."""

    taken: dict[str, str]
    dropped: dict[str, str]


def create(method: str, measurement: Mapping[str, Any], public: PublicPart | None = None) -> System[Any]:
    """Make a system, with the public vectors at hand where it measures.

    Raises:
        InvalidArgument: there is no such method, or it refuses a setting.
    """
    return system_of(method, measurement, public=public and public.negatives, among=of_kind("federation"))


def about(plan: Line | Plan) -> Federation:
    """Return the contract of a line, or a plan, about a federation.

    Raises:
        ArtifactError: it is about something else, or takes the hash of a format that had no federations.
    """
    if plan.contract.kind != "federation" or (isinstance(plan, Line) and plan.former is not None):
        raise ArtifactError(f"what {plan.method} was planned for is not a federation")
    return plan.contract


def system(run: Run) -> System[Any]:
    """Return the system of a client's line, with the public vectors that it measures against."""
    line = run.plan.release
    return create(line.method, line.measurement, public_part(federation_of(run), about(line)))


def records(run: Run, encoded: Path | None, engine: Engine) -> Sensitive[Any]:
    """Return what the public extractor makes of the client's records."""
    return transform_frozen(public_part(federation_of(run), about(run.plan)).features, examples(run))


def examples(run: Run) -> Sensitive[Examples]:
    """Read a client's records, which are what the contract says of them."""
    contract = about(run.plan)
    return load_examples(run.settings.source.rows, public_part(federation_of(run), contract).records, contract)


def is_central(line: Line) -> bool:
    """Tell whether a trusted aggregator draws one noise for all clients."""
    return line.measurement.get("trust") == "central"


def federation_of(run: Run) -> Run:
    """Return the run of the federation that a client's run belongs to."""
    return run.model_copy(update={"name": run.settings.federation})


def parties_of(run: Run) -> dict[str, Run]:
    """Return the clients' runs by client."""
    return dict(zip(run.settings.clients, run.parties, strict=True))


def release_of(party: Run) -> Released[Release]:
    """Read the release of a client that took part; under central trust all clients have the same one."""
    return read_release(party.read("sanitize"))


def round_of(run: Run) -> Round:
    """Return what became of each client."""
    return Round.model_validate_json(run.read("round"))


def public_part(run: Run, contract: Federation) -> PublicPart:
    """Read the public part of a federation's run.

    Raises:
        ArtifactError: it is not the one that the contract names, in every number that the sensitivity rests on.
    """
    public = _read_public((run.control / PUBLIC).read_bytes())
    if any(getattr(contract, name) != term for name, term in public.terms.items()):
        raise ArtifactError(f"the public part of run {run.name} is not the one that its plan names; start a new run")
    return public


def records_of(run: Run) -> PublicRecords:
    """Read the public records that are kept with a federation's run."""
    return PublicRecords.of_bytes((run.control / RECORDS).read_bytes())


@lru_cache(maxsize=2)
def _read_public(content: bytes) -> PublicPart:
    return PublicPart.of_bytes(content)
