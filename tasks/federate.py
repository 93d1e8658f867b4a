"""The stages of a federation: each client releases once, the server takes what was released, reports and hands over.

The public part is made before the run and lies in the control zone. A client's stage is the only one that opens data,
and opens that of its own run alone.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from dpmodels.embeddings.frozen import digest_of, transform_frozen
from dpmodels.errors import ArtifactError, InvalidArgument, NacreError, Unsuitable, rule_of
from dpmodels.evaluation.pages.report import render
from dpmodels.evaluation.published.federated import Party, summarise_federation
from dpmodels.federated.classifier import SHARPNESS, Ensemble, FederatedClassifier
from dpmodels.federated.heads import FederatedHeads, HeadsMeasurement
from dpmodels.federated.moments_head import MomentsHead, MomentsMeasurement
from dpmodels.federated.public import PublicPart
from dpmodels.federated.records import load_examples
from dpmodels.privacy import Released
from dpmodels.releases.draw import check_line
from dpmodels.releases.plan import Line
from dpmodels.releases.release import Release, read_release
from dpmodels.releases.system import System
from dpmodels.schema.federation import Federation
from tasks.accounts import charges_of, desk_of
from tasks.clients import run_clients
from tasks.home import ledger_of
from tasks.publish import assemble, charged_once
from tasks.sanitize import reserve_run
from tasks.stage import stage
from tasks.store import Handle, Run, write_text

METHODS: dict[str, tuple[type[System[Any]], type[BaseModel]]] = {
    "federated-heads": (FederatedHeads, HeadsMeasurement),
    "federated-moments": (MomentsHead, MomentsMeasurement),
}
PUBLIC = "public.safetensors"
CLASSIFIER = "classifier.safetensors"
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
    if method not in METHODS:
        raise InvalidArgument("method", method, f"be one of {', '.join(METHODS)}")
    system, settings = METHODS[method]
    try:
        spec = settings.model_validate(dict(measurement))
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"])) or "measurement"
        raise InvalidArgument(name, first["input"], rule_of(first)) from None
    if system is FederatedHeads and public is not None:
        return FederatedHeads(spec, public.negatives)  # type: ignore[arg-type]
    return system(spec)  # type: ignore[call-arg]


def about(line: Line) -> Federation:
    """Return the contract of a line about a federation.

    Raises:
        ArtifactError: the line is about something else.
    """
    if not isinstance(line.contract, Federation):
        raise ArtifactError(f"the line {line.name} of {line.method} is not about a federation")
    return line.contract


@stage("client", sensitive=True)
def take_part(run: Run) -> Handle:
    """Release what one client's line says, inside one charge of its own account; all else is checked before it."""
    if done := run.finished("sanitize"):
        return done
    line = run.plan.release
    public = public_part(run.model_copy(update={"name": run.settings.federation}), about(line))
    system = create(line.method, line.measurement, public)
    check_line(system, line)
    records = transform_frozen(public.features, load_examples(run.settings.data, public.records, about(line)))
    desk = desk_of(run)
    reserve_run(run, desk)
    system.measure(records, line, desk)
    held = desk.held()
    return run.finish("sanitize", held.artifact_hash if held else "")


@stage("round", sensitive=True)
def gather(run: Run) -> Handle:
    """Have every client take part, and take what they released; whoever releases nothing usable is dropped.

    Raises:
        NacreError: fewer clients are left than were asked for; resuming tries those that were dropped again.
    """
    if done := run.finished("round"):
        return done
    terms, parties = run.settings.training, dict(zip(run.settings.clients, run.parties, strict=True))
    reasons = run_clients(list(parties.values()), take_part, terms["workers"], terms["patience"])
    faults = {client: reasons[party.name] or _fault(party) for client, party in parties.items()}
    dropped = {client: fault for client, fault in faults.items() if fault}
    taken = {client: _hash(party) for client, party in parties.items() if not faults[client]}
    if len(taken) < terms["least_clients"]:
        told = "; ".join(f"{client}: {fault}" for client, fault in dropped.items())
        raise NacreError(f"only {len(taken)} of {len(parties)} clients took part ({told}); mend this and resume")
    for client in dropped:
        _give_back(parties[client])
    write_text(run.place("round"), Round(taken=taken, dropped=dropped).model_dump_json(indent=1))
    return run.finish("round")


def _fault(party: Run) -> str:
    """Say what is wrong with a client's release, if anything is: it must be the sealed one, and one of its line."""
    try:
        release, held = _release(party), desk_of(party).held()
        if release.value.line != party.plan.release or held is None or held.artifact_hash != _hash(party):
            return UNPLANNED
        create(release.value.line.method, release.value.line.measurement).answers(release.value)
    except NacreError:
        return UNPLANNED
    return ""


def _give_back(party: Run) -> None:
    """Void the charge of a client that was dropped before its draw began."""
    held = desk_of(party).held()
    if held is not None and held.state == "reserved":
        ledger_of(party).void(held.key, "the client was dropped before anything was drawn")


def _hash(party: Run) -> str:
    done = party.finished("sanitize")
    return done.sha256 if done else ""


def _release(party: Run) -> Released[Release]:
    return read_release(party.read("sanitize"))


@stage("validate", sensitive=False)
def report(run: Run, gathered: Handle) -> Handle:
    """Write the publishable report: who took part, what it cost, and what the classifier says of public records."""
    if done := run.finished("validate"):
        return done
    made, ended = classifier(run), round_of(run)
    public = public_part(run, made.contract)
    lines = dict(zip(run.settings.clients, run.plan.lines, strict=True))
    accounts = {client: party.settings.account for client, party in zip(lines, run.parties, strict=True)}
    said = made.head.certainties(public.negatives) if isinstance(made.head, Ensemble) else []
    sure = dict(zip(ended.taken, said, strict=True)) if said else {}
    parties = [
        Party(client, accounts[client], line, ended.dropped.get(client, ""), sure.get(client))
        for client, line in lines.items()
    ]
    hashes = charged_once(run, ended.taken)
    facts = summarise_federation(parties, hashes, made.head.probabilities(public.negatives))
    folder = run.place("validate")
    folder.mkdir(exist_ok=True)
    write_text(folder / "report.json", json.dumps(facts, indent=1))
    write_text(folder / "report.html", render(facts))
    return run.finish("validate")


@stage("publish", sensitive=False)
def hand_over(run: Run, gathered: Handle, report: Handle) -> Handle:
    """Write the classifier with report and manifest."""
    return assemble(run, gathered, report, CLASSIFIER, classifier(run).save)


def classifier(run: Run) -> FederatedClassifier:
    """Make the classifier of what the clients released (post-processing)."""
    parties = dict(zip(run.settings.clients, run.parties, strict=True))
    taken = [parties[client] for client in round_of(run).taken]
    releases, line = [_release(party) for party in taken], run.plan.release
    contract = about(line).whole
    public, system = public_part(run, about(line)), create(line.method, line.measurement)
    if isinstance(system, FederatedHeads):
        sharpness = run.settings.training.get("sharpness") or SHARPNESS
        head: Any = Ensemble.of([system.heads(release) for release in releases], sharpness)
    elif isinstance(system, MomentsHead):
        head = system.fit(releases)
    else:
        raise Unsuitable(f"no classifier is made of {line.method}")
    entries = tuple(charges_of(party)[0].key for party in taken)
    return FederatedClassifier(contract, public.architecture, public.model, public.features, head, entries)


def round_of(run: Run) -> Round:
    """Return what became of each client."""
    return Round.model_validate_json(run.read("round"))


def public_part(run: Run, contract: Federation) -> PublicPart:
    """Read the public part of a federation's run.

    Raises:
        ArtifactError: it is not the one that the contract names.
    """
    found = _read_public((run.control / PUBLIC).read_bytes())
    if (found.features.sha256, digest_of(found.negatives)) != (contract.extractor, contract.auxiliary):
        raise ArtifactError(f"the public part of run {run.name} is not the one that its plan names; start a new run")
    return found


@lru_cache(maxsize=2)
def _read_public(content: bytes) -> PublicPart:
    return PublicPart.of_bytes(content)
