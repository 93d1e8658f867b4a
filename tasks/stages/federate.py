"""The round of a federation: each client releases once, and the server takes what was released.

The public part is made before the run and lies in the control zone. A client's stage is the only one that opens data,
and opens that of its own run alone.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from dpmodels.artifact import exclusive, write_text
from dpmodels.contract.federation import Federation
from dpmodels.embeddings.frozen import transform_frozen
from dpmodels.errors import ArtifactError, NacreError, Unsuitable
from dpmodels.methods.federations.public_part import PublicPart, PublicRecords
from dpmodels.methods.federations.records import load_examples
from dpmodels.methods.registry import system_of
from dpmodels.privacy import Released, Sensitive
from dpmodels.releases.draw import check_line
from dpmodels.releases.plan import Line, Plan
from dpmodels.releases.release import Release, read_release
from dpmodels.releases.system import System
from tasks.kinds.clients import Work, run_clients
from tasks.run.accounts import desk_of
from tasks.run.contents import refuse_charged
from tasks.run.home import ledger_of, remember
from tasks.run.source import local
from tasks.run.store import Handle, Run
from tasks.stages.sanitize import reserve_run
from tasks.stages.stage import stage

PUBLIC, RECORDS = "public.safetensors", "public-records.safetensors"
UNPLANNED = "its release is not the one that was planned"


class Round(BaseModel):
    """What became of each client: the digest of its release, or why it was dropped."""

    taken: dict[str, str]
    dropped: dict[str, str]


def create(method: str, measurement: Mapping[str, Any], public: PublicPart | None = None) -> System[Any]:
    """Make a system, with the public vectors at hand where it measures.

    Raises:
        InvalidArgument: there is no such method, or it refuses a setting.
    """
    return system_of(method, measurement, public=public and public.negatives, kind="federation")


def about(plan: Line | Plan) -> Federation:
    """Return the contract of a line, or a plan, about a federation.

    Raises:
        ArtifactError: it is about something else, or takes the hash of a format that had no federations.
    """
    if not isinstance(plan.contract, Federation) or (isinstance(plan, Line) and plan.former is not None):
        raise ArtifactError(f"what {plan.method} was planned for is not a federation")
    return plan.contract


@stage("client", sensitive=True)
def take_part(run: Run) -> Handle:
    """Release what one client's line says, inside one charge of its own account; all else is checked before it."""
    with alone(run):
        if done := run.finished("sanitize"):
            return done
        if not run.plan.lines:
            return check_records(run)
        line = run.plan.release
        if is_central(line):
            name = run.settings.federation
            raise Unsuitable(f"the noise of this client's federation is drawn by its aggregator; resume {name}")
        system, records = client_side(run)
        desk = desk_of(run)
        reserve_run(run, desk)
        system.measure(records, line, desk)
        return sealed(run)


def check_records(run: Run) -> Handle:
    """See that a client's records are what the contract says of them, where nothing is released of them."""
    contract = about(run.plan)
    load_examples(local(run.settings.data), public_part(federation_of(run), contract).records, contract)
    return Handle(path=run.control)


def alone(run: Run) -> AbstractContextManager[None]:
    """Wait for a client's process that outlived its server: two of them would find the charge in each other's hands."""
    return exclusive(run.control / "client")


def client_side(run: Run) -> tuple[System[Any], Sensitive[Any]]:
    """Return the checked system of a client's line, and what the public extractor makes of the client's records."""
    line = run.plan.release
    public = public_part(federation_of(run), about(line))
    system = create(line.method, line.measurement, public)
    check_line(system, line)
    refuse_charged(run)
    return system, transform_frozen(
        public.features, load_examples(local(run.settings.data), public.records, about(line))
    )


def sealed(run: Run) -> Handle:
    """Record that a client's release is in place, and have the home remember what paid for it."""
    desk = desk_of(run)
    remember(run.home, run.ledger_url, desk.ledger)
    held = desk.held()
    return run.finish("sanitize", held.artifact_hash if held else "")


def is_central(line: Line) -> bool:
    """Tell whether a trusted aggregator draws one noise for all clients."""
    return line.measurement.get("trust") == "central"


def federation_of(run: Run) -> Run:
    """Return the run of the federation that a client's run belongs to."""
    return run.model_copy(update={"name": run.settings.federation})


def parties_of(run: Run) -> dict[str, Run]:
    """Return the clients' runs by client."""
    return dict(zip(run.settings.clients, run.parties, strict=True))


@stage("round", sensitive=True)
def gather(run: Run) -> Handle:
    """Have every client take part, and take what they released; whoever releases nothing usable is dropped.

    One process at a time does so: two that drop different clients would not agree on whose sums were added.

    Raises:
        NacreError: fewer clients are left than were asked for; resuming tries those that were dropped again.
    """
    with exclusive(run.place("round")):
        if done := run.finished("round"):
            return done
        if run.plan.lines and is_central(run.plan.release):
            from tasks.stages.aggregate import gather_sums

            ended = gather_sums(run)
        else:
            ended = ask_clients(run, take_part, _fault)
        taken = {client: _hash(party) for client, party in parties_of(run).items() if client in ended.taken}
        write_text(run.place("round"), ended.model_copy(update={"taken": taken}).model_dump_json(indent=1))
        return run.finish("round")


def ask_clients(run: Run, work: Work, fault: Callable[[Run], str]) -> Round:
    """Have every client do its work, say what is wrong with what it left, and give dropped clients' charges back.

    Raises:
        NacreError: fewer clients are left than were asked for.
    """
    terms, parties = run.settings.training, parties_of(run)
    reasons = run_clients(list(parties.values()), work, terms["workers"], terms["patience"])
    faults = {client: reasons[party.name] or fault(party) for client, party in parties.items()}
    dropped = {client: told for client, told in faults.items() if told}
    if len(parties) - len(dropped) < terms["least_clients"]:
        told = "; ".join(f"{client}: {reason}" for client, reason in dropped.items())
        raise NacreError(
            f"only {len(parties) - len(dropped)} of {len(parties)} clients took part ({told}); mend this and resume"
        )
    for client in dropped:
        give_back(parties[client], "the client was dropped before anything was drawn")
    return Round(taken={client: "" for client in parties if client not in dropped}, dropped=dropped)


def _fault(party: Run) -> str:
    """Say what is wrong with a client's release, if anything is: it must be the sealed one, and one of its line."""
    if not party.plan.lines:
        return ""
    try:
        release, held = release_of(party), desk_of(party).held()
        if release.value.line != party.plan.release or held is None or held.artifact_hash != _hash(party):
            return UNPLANNED
        create(release.value.line.method, release.value.line.measurement).answers(release.value)
    except NacreError:
        return UNPLANNED
    return ""


def give_back(party: Run, why: str) -> None:
    """Void the charge of a client, if it was charged and its draw has not begun."""
    held = desk_of(party).held() if party.plan.lines else None
    if held is not None and held.state == "reserved":
        ledger_of(party).void(held.key, why)


def _hash(party: Run) -> str:
    done = party.finished("sanitize")
    return done.sha256 if done else ""


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
    found = _read_public((run.control / PUBLIC).read_bytes())
    if any(getattr(contract, name) != said for name, said in found.terms.items()):
        raise ArtifactError(f"the public part of run {run.name} is not the one that its plan names; start a new run")
    return found


def records_of(run: Run) -> PublicRecords:
    """Read the public records that are kept with a federation's run."""
    return PublicRecords.of_bytes((run.control / RECORDS).read_bytes())


@lru_cache(maxsize=2)
def _read_public(content: bytes) -> PublicPart:
    return PublicPart.of_bytes(content)
