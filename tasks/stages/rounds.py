"""Rounds of training without a guarantee (paper mode): models travel between clients and server as they were trained.

Only the certainty scores, which every client of FedAUX released before the first round, are private; no other algorithm
asks for them, and then nothing is released and nothing charged. Models, updates and whatever
is computed from them are as sensitive as the records. They lie in the sensitive folder of the federation's run:

    sensitive/RUN/rounds/0003/server.safetensors      the server's models after round 3; round 0 is before the first
                              soft-labels.parquet     what they say of public records
                              round.json              who took part and who was dropped; written last: the checkpoint
                              update-CLIENT...        what a client sent, until the round has ended
                         rounds.html                  why they stay here, and how accurate they are
                         rounds.json                  its facts
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from scipy.special import softmax

from dpmodels.arrays import Floats
from dpmodels.artifact import write_text, write_whole
from dpmodels.embeddings.frozen import Examples, transform_kept
from dpmodels.errors import ArtifactError, InvalidArgument, rule_of
from dpmodels.late import Tensor
from dpmodels.methods.federations.messages import read_server, read_update, write_server, write_update
from dpmodels.methods.federations.models import ModelSpec, build, loaded, state_of
from dpmodels.methods.federations.pretraining import pretrain
from dpmodels.methods.federations.public_part import ExtractorSpec, PublicPart
from dpmodels.methods.federations.records import load_examples
from dpmodels.methods.federations.rounds import (
    RoundSpec,
    Update,
    accuracy,
    aggregate,
    predict,
    select,
    start,
    train_client,
)
from dpmodels.methods.federations.scores import FederatedScores
from dpmodels.methods.federations.soft_labels import write_soft_labels
from dpmodels.pages.rounds import render_rounds
from dpmodels.report.federated import Party, summarise_rounds
from tasks.kinds.clients import run_clients
from tasks.kinds.federation import (
    about,
    create,
    federation_of,
    parties_of,
    public_part,
    records_of,
    release_of,
    round_of,
)
from tasks.run.folders import make_private
from tasks.run.runs import inside, mark_finished
from tasks.run.store import Handle, Run
from tasks.stages.stage import stage

BEGIN = "begin.safetensors"
SERVER, SOFT_LABELS, ENDED = "server.safetensors", "soft-labels.parquet", "round.json"
PAGE, FACTS = "rounds.html", "rounds.json"
UNREADABLE = "its update cannot be read"
ANOTHERS = "it sent an update in the name of another"


class Ended(BaseModel):
    """What became of a round: who was drawn, who was dropped and why, and the accuracy on public labeled records."""

    number: int
    drawn: list[str]
    dropped: dict[str, str]
    accuracy: float | None = None


def check_rounds(terms: Mapping[str, Any], model: ModelSpec) -> RoundSpec:
    """Return what all rounds have in common.

    Raises:
        InvalidArgument: a setting is unknown or impossible.
    """
    sharpness = {} if terms["sharpness"] is None else {"sharpness": terms["sharpness"]}
    try:
        return RoundSpec(algorithm=terms["algorithm"], model=model, **{**sharpness, **terms["training"]})
    except (ValidationError, TypeError) as fault:
        first: Any = fault.errors(include_url=False)[0] if isinstance(fault, ValidationError) else None
        name = ".".join(map(str, first["loc"])) if first else "model or algorithm"
        rule = rule_of(first) if first else "be left out of the training: they are settled elsewhere"
        raise InvalidArgument(f"model.training.{name}", first and first["input"], rule) from None


def first_server(
    public: PublicPart,
    auxiliary: Tensor,
    extractor: ExtractorSpec,
    terms: Mapping[str, Any],
    clients: Sequence[str],
    seed: int,
) -> bytes:
    """Write the models that rounds begin with, made of public records: the public extractor, and others made alike.

    Raises:
        InvalidArgument: a setting is impossible, or the architectures are not for these clients or records.
    """
    spec, architectures, main = check_rounds(terms, public.model), terms["architectures"], public.architecture
    names = list(dict.fromkeys([main, *architectures.values()]))
    if not set(architectures) <= set(clients) or main not in [architectures.get(client, main) for client in clients]:
        rule = f"be given for clients of the federation, and leave {main} to one of them at least"
        raise InvalidArgument("model.architectures", architectures, rule)
    if "mlp" in names and len(names) > 1:
        raise InvalidArgument("model.architectures", architectures, "be mlp for a table, and other ones for images")
    head = build(main, public.model, seed)
    head.extractor.load_state_dict(public.features.network.state_dict())
    states = {main: state_of(head)}
    if extractor.pretraining is not None:
        for name in names[1:]:
            states[name] = pretrain(name, public.model, auxiliary, extractor.pretraining, extractor.seed)
    return write_server(start(names, spec, seed, states))


@stage("train client", sensitive=True)
def train_one(run: Run, number: int) -> Handle:
    """Train the server's model on one client's records, and leave it with the server. Privacy: none."""
    whole, contract = federation_of(run), about(run.plan)
    client = contract.client
    path = round_folder(whole, number) / _update(client)
    if path.exists():
        return Handle(path=path)
    public = public_part(whole, contract)
    server = read_server((round_folder(whole, number - 1) / SERVER).read_bytes())
    spec, seed = check_rounds(whole.settings.training, public.model), whole.settings.seed
    architecture = whole.settings.training["architectures"].get(client, public.architecture)

    def train(records: Examples) -> bytes:
        return write_update(train_client(server, records, client, architecture, spec, seed))

    transform_kept(load_examples(run.settings.source.rows, public.records, contract), train, path)
    return Handle(path=path)


@stage("rounds", sensitive=True)
def train_in_rounds(run: Run, gathered: Handle) -> Handle:
    """Train round by round, and go on after the last round that ended."""
    public = public_part(run, about(run.plan))
    begin = round_folder(run, 0)
    make_private(begin)
    write_whole(begin / SERVER, lambda part: part.write_bytes((run.control / BEGIN).read_bytes()))
    sure = certainties_of(run, public)
    for number in range(1, run.settings.training["rounds"] + 1):
        if not (round_folder(run, number) / ENDED).exists():
            _take_round(run, public, number, sure)
    return Handle(path=round_folder(run, run.settings.training["rounds"]))


@stage("keep inside", sensitive=True)
def keep_inside(run: Run, trained: Handle) -> Handle:
    """Write the page on models that stay inside, and end the run. Privacy: as sensitive as the models."""
    ended, certainties = round_of(run), certainties_of(run, public_part(run, about(run.plan)))
    parties = [
        Party(client, party.settings.account, party.plan, ended.dropped.get(client, ""), certainties.get(client))
        for client, party in parties_of(run).items()
    ]
    numbers = range(1, run.settings.training["rounds"] + 1)
    facts = summarise_rounds(parties, [json.loads((round_folder(run, n) / ENDED).read_text()) for n in numbers])
    write_text(inside(run) / FACTS, json.dumps(facts, indent=1), 0o600)
    write_text(inside(run) / PAGE, render_rounds(facts), 0o600)
    mark_finished(run)
    return Handle(path=inside(run))


def certainties_of(run: Run, public: PublicPart) -> dict[str, Floats]:
    """Return how certain each client is of the records that are distilled on, where it said so (post-processing)."""
    if not run.plan.lines:
        return {}
    line, parties = run.plan.release, parties_of(run)
    system = create(line.method, line.measurement)
    if not isinstance(system, FederatedScores):
        raise ArtifactError(f"{line.method} releases no scores by themselves")
    z = public.features.whole(records_of(run).distilled)
    return {client: system.certainty(release_of(parties[client]), z) for client in round_of(run).taken}


def round_folder(run: Run, number: int) -> Path:
    """Return the folder of a round, in the sensitive zone."""
    return inside(run) / f"{number:04d}"


def _take_round(run: Run, public: PublicPart, number: int, sure: Mapping[str, Floats]) -> None:
    """Take one round: clients that were drawn train, and the server takes what can be used of what they sent."""
    terms, folder = run.settings.training, round_folder(run, number)
    make_private(folder)
    before = read_server((round_folder(run, number - 1) / SERVER).read_bytes())
    clients = select(list(round_of(run).taken), terms["participation"], number, run.settings.seed)
    updates, dropped = _updates(run, number, clients)
    spec, records = check_rounds(terms, public.model), records_of(run)
    after, faults = aggregate(before, updates, spec, run.settings.seed, records.distilled, sure)
    model = loaded(public.architecture, public.model, after.models[public.architecture])
    labels, classes = softmax(predict(model, records.distilled), axis=1), about(run.plan).classes
    write_whole(folder / SERVER, lambda part: part.write_bytes(write_server(after)))
    first = len(public.negatives)
    write_whole(folder / SOFT_LABELS, lambda part: write_soft_labels(part, first, classes, labels, {}))
    rated = None if records.judge is None else round(accuracy(model, records.judge), 4)
    ended = Ended(number=number, drawn=clients, dropped=dropped | faults, accuracy=rated)
    write_text(folder / ENDED, json.dumps(ended.model_dump(mode="json"), indent=1))
    for client in clients:
        (folder / _update(client)).unlink(missing_ok=True)


def _updates(run: Run, number: int, clients: Sequence[str]) -> tuple[list[Update], dict[str, str]]:
    """Have clients train, and return what can be read of what they sent, and why each other was dropped."""
    terms, parties, updates = run.settings.training, parties_of(run), list[Update]()
    work = partial(train_one, number=number)
    reasons = run_clients([parties[client] for client in clients], work, terms["workers"], terms["patience"])
    dropped = {client: reason for client in clients if (reason := reasons[parties[client].name])}
    for client in clients:
        update = _received(round_folder(run, number) / _update(client), client)
        if isinstance(update, str):
            dropped.setdefault(client, update)
        elif client not in dropped:
            updates.append(update)
    return updates, dropped


def _received(file: Path, client: str) -> Update | str:
    """Read what a client sent, or say why it cannot be used."""
    try:
        update = read_update(file.read_bytes())
    except (OSError, ArtifactError):
        return UNREADABLE
    return update if update.client == client else ANOTHERS


def _update(client: str) -> str:
    return f"update-{client}.safetensors"
