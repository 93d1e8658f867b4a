"""Federations, prepared of the clients' names and of public records; no client's data is opened.

The public part is made of public records before anything is planned, so that every client's line names it by its hash.
Each client has a line, a charge and an account of its own; clients are declared disjoint, so the federation costs what
its heaviest client does.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dpmodels.contract.federation import ROUNDS, SCORES, STAYS_INSIDE, Federation
from dpmodels.errors import InvalidArgument, Unsuitable, refused
from dpmodels.methods.federations.public_part import ExtractorSpec, PublicPart, PublicRecords
from dpmodels.methods.federations.records import RecordsSpec, read_labeled, read_public
from dpmodels.privacy import PrivacyUnit
from dpmodels.reading.data_files import check_place, name_of, settled
from dpmodels.reading.links import share_rows
from flows.config import FederateConfig
from flows.kinds.prepared import Prepared
from flows.planning import check_delta, make_budget
from tasks.engine.progress import progress_bar
from tasks.kinds.federation import PUBLIC, RECORDS, create
from tasks.run.source import Source, files_of
from tasks.stages.rounds import BEGIN, first_server

M = TypeVar("M", bound=BaseModel)
IS_SLOW = True
EPSILON = "privacy.target_epsilon"


def check_paths(config: FederateConfig, has_data: bool) -> None:
    """Refuse clients whose files are not there, or are another's; those of Flower's clients lie on their machines."""
    check_delta(config.privacy.delta, config.privacy.allow_large_delta)
    make_budget(config.privacy.target_epsilon, config.privacy.delta, PrivacyUnit(), EPSILON)
    _method(config)
    if has_data:
        check_there(config)
        check_apart(config)


def prepare(config: FederateConfig, partition: str = "") -> Prepared:
    """Make the public part, and plan every client's line from it and other public inputs alone.

    Raises:
        NacreError: an input has faults, or the budget cannot be asked for.
    """
    if config.sizes and config.sizes.keys() != config.clients.keys():
        raise Unsuitable("give the public sizes of all clients, or of none, which keeps them private")
    privacy = config.privacy
    public, files = _public(config)
    content = {
        "name": config.name,
        "clients": [{"name": name, "size": config.sizes.get(name)} for name in config.clients],
        "classes": config.classes,
        "most_records": config.most_records,
        **public.terms,
    }
    contract = _valid(Federation, content, "federation")
    if contract.client:
        raise InvalidArgument("name", config.name, "be letters, digits, - and _, with no point")
    budget = make_budget(privacy.target_epsilon, privacy.delta, contract.unit, EPSILON, contract.adjacency)
    method = _method(config)
    measurement = _measurement(config, method)
    lines = []
    if method != ROUNDS:
        with _keys_named(method):
            system = create(method, measurement, public)
            lines = [system.plan(contract.of(client), budget) for client in config.clients]
    clients = {client: source.settled for client, source in config.sources.items()}
    settings = {"data": settled(config.public), "rows": None, "training": _training(config)}
    return Prepared(contract, lines, clients, files, settings)


def are_stated(config: FederateConfig, prepared: Prepared) -> bool:
    """Tell that nothing of the data is left to be looked at here."""
    return True


def check_data(config: FederateConfig, prepared: Prepared) -> None:
    """Check nothing more: each client's own run looks at its data."""


def check_there(config: FederateConfig) -> None:
    """See that there are files at every place: a client that is dropped for a mistyped one leaves the others charged.

    Raises:
        InvalidArgument: there are none, or a URI holds a secret.
    """
    sources = {f"clients.{client}": source for client, source in config.sources.items()}
    sources |= {name: Source(data or "") for name, data in _public_places(config).items()}
    for name, source in sources.items():
        if source.query:
            source.check(name)
            continue
        check_place(source.data, name)
        if source.data and not source.is_there:
            raise InvalidArgument(name, source.data, "be a path, a pattern or a URI that leads to files")


def check_apart(config: FederateConfig) -> None:
    """See that no client's files are another client's, or are read as public ones, by any link; no file is opened.

    Raises:
        Unsuitable: the place of some files is that of others, or lies in it, or they have a file in common; or one
            database is asked the same by two clients.
    """
    asked: dict[Source, str] = {}
    for name, source in config.sources.items():
        if source.query and (other := asked.setdefault(source.settled, name)) != name:
            raise Unsuitable(f"{other} and {name} ask one database the same; no client's record may be another's")
    inputs = {name: source.data for name, source in config.sources.items() if not source.query}
    inputs |= {name: data for name, data in _public_places(config).items() if data}
    places = {name: name_of(data) for name, data in inputs.items()}
    files = {name: {one for file in files_of(data) for one in file.identities} for name, data in inputs.items()}
    for name in (name for name in config.sources if name in inputs):  # in order: the same refusal every time
        for other, place in places.items():
            within = places[name].startswith(place) or place.startswith(places[name])
            if other != name and (within or share_rows(files[name], files[other])):
                raise Unsuitable(
                    f"{name} and {other} have files in common; no client's record may be another's, or public"
                )


def _public_places(config: FederateConfig) -> dict[str, str | None]:
    return {"public": config.public, "round.judge": config.round.judge}


def _public(config: FederateConfig) -> tuple[PublicPart, dict[str, bytes]]:
    """Make the public part, and all public files that are kept with the run; in paper mode also what rounds need."""
    records = _valid(RecordsSpec, config.records, "records")
    spec = _valid(ExtractorSpec, config.model.extractor, "model.extractor")
    auxiliary, paper = read_public(config.public, records), config.round.mode == "paper"
    judge = read_labeled(config.round.judge, records, config.classes) if config.round.judge else None
    if paper:  # a fifth of the public records tells clients' own from others; the rest teaches
        spec = spec.model_copy(update={"negatives": max(1, min(spec.negatives, len(auxiliary) // 5))})
    with progress_bar("public part"):
        public = PublicPart.make(auxiliary, records, len(config.classes), spec)
        terms = _training(config)
        begin = (
            first_server(public, auxiliary, spec, terms, list(config.clients), config.runtime.seed) if paper else b""
        )
    public_records = PublicRecords(auxiliary[spec.negatives :] if paper else auxiliary[:0], judge)
    files = {PUBLIC: public.to_bytes(), RECORDS: public_records.to_bytes()}
    return public, files | ({BEGIN: begin} if paper else {})


def _method(config: FederateConfig) -> str:
    """Return what is released: in paper mode the certainty scores where they are used, and there alone.

    Raises:
        InvalidArgument: the method is for another mode, or another algorithm.
    """
    paper = config.round.mode == "paper"
    usual = "federated-heads" if not paper else SCORES if config.round.algorithm == "fedaux" else ROUNDS
    method = config.model.method or usual
    if method != usual and (paper or method in STAYS_INSIDE):
        raise InvalidArgument("model.method", method, f"be left out, or be for the {config.round.mode} mode")
    return method


def _measurement(config: FederateConfig, method: str) -> dict[str, Any]:
    """Return the settings of the measurement, with who is trusted to draw the noise."""
    model = config.model
    if model.trust == "local":
        return model.measurement
    if method != "federated-moments":
        rule = "be local, or the method federated-moments: what else clients release cannot be added up"
        raise InvalidArgument("model.trust", model.trust, rule)
    return {**model.measurement, "trust": model.trust}


@contextmanager
def _keys_named(method: str) -> Iterator[None]:
    """Name a setting that a system refuses by its key in the configuration, where ``records`` alone is another one."""
    try:
        yield
    except InvalidArgument as error:
        within = (
            "model.measurement.heads" if (method, error.name) == ("federated-both", "records") else "model.measurement"
        )
        keys = {"method": "model.method", "most_records": "most_records"}
        raise InvalidArgument(keys.get(error.name, f"{within}.{error.name}"), error.value, error.rule) from None


def _training(config: FederateConfig) -> dict[str, Any]:
    """Return the settings that cost nothing and that all runs of a federation have in common."""
    settings = {**config.round.model_dump(exclude={"judge"}), "sharpness": config.model.sharpness}
    return settings | {"training": config.model.training, "architectures": config.model.architectures}


def _valid(model: type[M], content: Mapping[str, Any], section: str) -> M:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise refused(error, section) from None
