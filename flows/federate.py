"""The flow of a federation: prepare -> every client releases once -> report -> hand over; in paper mode -> rounds.

The public part is made of public records before anything is planned, so that every client's line names it by its hash.
Each client has a run, a line, a charge and an account of its own, under the account of the federation; clients are
declared disjoint, so the federation costs what its heaviest client does.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dpmodels.contract.federation import ROUNDS, SCORES, STAYS_INSIDE, Federation
from dpmodels.errors import InvalidArgument, Unsuitable, refused
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Quote
from dpmodels.methods.federations.public_part import ExtractorSpec, PublicPart, PublicRecords
from dpmodels.methods.federations.records import RecordsSpec, read_labeled, read_public
from dpmodels.reading.data_files import identities
from dpmodels.releases.plan import Line, Plan
from flows.config import FederateConfig
from flows.description import describe, describe_uncharged
from flows.planning import MayOpen, account_for, bind, check_delta, ledger_place, make_budget, open_home
from tasks.engine.progress import progress_bar
from tasks.kinds.federation import PUBLIC, RECORDS, create
from tasks.run.accounts import accounts_to_open, charge_of
from tasks.run.ready import check_ready
from tasks.run.runs import inside, is_handed_over
from tasks.run.store import Handle, Opening, Run, Settings, new_name, party_name
from tasks.run.unfinished import naming_paid, refuse_paid
from tasks.stages.federate import gather
from tasks.stages.federate import take_part as take_part
from tasks.stages.rounds import BEGIN, first_server, keep_inside, train_in_rounds

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Prepared:
    """What is planned, by client; the public part that the plan names; and the public files that the run keeps.

    Attributes:
        contract: of the whole federation; lines: none where nothing is drawn, so that nothing is charged.
    """

    contract: Federation
    lines: Mapping[str, Line]
    public: PublicPart
    files: Mapping[str, bytes]

    @property
    def plan(self) -> Plan:
        """What all clients are charged."""
        return Plan(lines=tuple(self.lines.values()), about=None if self.lines else self.contract)

    def plan_of(self, client: str) -> Plan:
        """What one client is charged."""
        if not self.lines:
            return Plan(lines=(), about=self.contract.of(client))
        return Plan(lines=(self.lines[client],))

    @property
    def whole(self) -> Line:
        """The first client's line, which differs from the others' in its name alone."""
        return next(iter(self.lines.values()))


def gathered(run: Run, call: Callable[..., Handle]) -> Handle:
    """Have every client release once, unless that was done."""
    return run.finished("round") or call(gather, run)


def train_inside(run: Run, call: Callable[..., Handle]) -> Handle:
    """Train in rounds without a guarantee; the models stay in the sensitive zone, which may be deleted by now."""
    if is_handed_over(run):
        return Handle(path=inside(run))
    return call(keep_inside, run, call(train_in_rounds, run, gathered(run, call)))


def start(config: FederateConfig, name: str = "", may_open: MayOpen = MayOpen.FIRST) -> Run:
    """Check everything public, ask the ledger, and create the runs; reads public records only and charges nothing.

    Raises:
        NacreError: the run would fail for a public reason, or a client's budget is exhausted.
    """
    home = config.runtime.home.absolute()
    run = Run(home=home, name=name or new_name(), ledger_url=config.runtime.ledger or "")
    if not config.out:  # in paper mode, whose models stay inside
        config = config.model_copy(update={"out": str(inside(run))})
    check_ready(config.runtime.device, config.out, config.runtime.signing_key)
    check_there(config)
    check_apart(config)
    prepared = prepare(config)
    ledger = open_home(config)
    by_client, (account, opens) = settings_of_all(config, prepared, ledger, may_open)
    charges = [charge_of("quote", line, by_client[client].account) for client, line in prepared.lines.items()]
    if charges:
        parties = [(by_client[client], (line,)) for client, line in prepared.lines.items()]
        refuse_paid(home, ledger, run.ledger_url, parties)
        with naming_paid(home, ledger, run.ledger_url):
            ledger.check(*charges, first_opens=_opened(by_client, prepared))
    else:
        check_no_officer(ledger, prepared.contract)
    for client, settings in by_client.items():
        party = run.model_copy(update={"name": party_name(run.name, client)})
        party.create(settings.model_copy(update={"federation": run.name}), prepared.plan_of(client))
    terms = {**_terms(config), "clients": tuple(by_client)}
    whole = bind(config, **terms, account=account, opens=opens, data=config.public.absolute())
    return run.create(whole, prepared.plan, files=prepared.files)


def check_no_officer(ledger: Ledger, contract: Federation) -> None:
    """Refuse what nobody could sign for: an officer signs charges, and a federation without scores has none.

    Raises:
        Unsuitable: an account of this federation, or of a client of it, has an officer.
    """
    for account in ledger.accounts():
        if account.dataset.partition(".")[0] == contract.name and ledger.officer(account.name):
            raise Unsuitable(
                f"account {account.name} has an officer, who signs for what is charged; here nothing is charged and "
                "nothing is protected, so nobody could refuse it: give `round: {algorithm: fedaux}`, whose scores are "
                "charged, or a method that protects what it hands over"
            )


def prepare(config: FederateConfig) -> Prepared:
    """Make the public part, and plan every client's line from it and other public inputs alone.

    Raises:
        NacreError: an input has faults, or the budget cannot be asked for.
    """
    if config.sizes and config.sizes.keys() != config.clients.keys():
        raise Unsuitable("give the public sizes of all clients, or of none, which keeps them private")
    privacy = config.privacy
    check_delta(privacy.delta, privacy.allow_large_delta)
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
    key = "privacy.target_epsilon"
    budget = make_budget(privacy.target_epsilon, privacy.delta, contract.unit, key, contract.adjacency)
    method = _method(config)
    measurement = _measurement(config, method)
    if method == ROUNDS:
        return Prepared(contract, {}, public, files)
    with _keys_named(method):
        system = create(method, measurement, public)
        lines = {client: system.plan(contract.of(client), budget) for client in config.clients}
    return Prepared(contract, lines, public, files)


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


def check_there(config: FederateConfig) -> None:
    """See that every client's path exists: a client that is dropped for a mistyped one leaves the others charged.

    Raises:
        InvalidArgument: the path of a client does not.
    """
    for client, path in config.clients.items():
        if not path.exists():
            raise InvalidArgument(f"clients.{client}", path, "be a path that exists")


def check_apart(config: FederateConfig) -> None:
    """See that no client's files are another client's, or are read as public ones, by any link; no file is opened.

    Raises:
        Unsuitable: the place of some files is that of others, or lies in it, or they have a file in common.
    """
    inputs = {**config.clients, "public": config.public, "round.judge": config.round.judge}
    paths = {name: path.resolve() for name, path in inputs.items() if path is not None}
    files = {name: _identities(path) for name, path in paths.items()}
    for name in config.clients:
        for other, path in paths.items():
            within = paths[name] in (path, *path.parents) or path in paths[name].parents
            if other != name and (within or files[name] & files[other]):
                raise Unsuitable(
                    f"{name} and {other} have files in common; no client's record may be another's, or public"
                )


def _identities(root: Path) -> set[tuple[int, int]]:
    """Return by what the system knows the files at a place; none where there are none yet that can be read."""
    paths = [root, *(path for path in root.rglob("*") if path.is_file())]
    return identities([path for path in paths if path.is_file()], root)


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
        terms = _terms(config)["training"]
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


def describe_federation(config: FederateConfig) -> tuple[dict[str, str], Quote | None]:
    """Describe what each client would be charged, and return the quote of the federation; opens no client's data."""
    if any(path.exists() for path in config.clients.values()):  # over Flower the paths lie on the clients' machines
        check_there(config)
    prepared, url = prepare(config), ledger_place(config)
    if not prepared.lines:
        return describe_uncharged(prepared.contract), None
    quote = None
    if isinstance(url, str) or url.exists():
        ledger = Ledger(url)
        by_client, _ = settings_of_all(config, prepared, ledger)
        charges = [charge_of("quote", line, by_client[client].account) for client, line in prepared.lines.items()]
        quote = ledger.quote(*charges, first_opens=_opened(by_client, prepared))
    return describe(list(prepared.lines.values()), quote), quote


def settings_of_all(
    config: FederateConfig, prepared: Prepared, ledger: Ledger, may_open: MayOpen = MayOpen.YES
) -> tuple[dict[str, Settings], tuple[str, Opening | None]]:
    """Return every client's settings, and the name of the account above with its terms where it is to be opened.

    Where nothing is charged there are no accounts.
    """
    if not prepared.lines:
        paths = {client: path.absolute() for client, path in config.clients.items()}
        return {name: bind(config, **_terms(config), account="", data=path) for name, path in paths.items()}, (
            "",
            None,
        )
    whole = prepared.whole.model_copy(update={"contract": prepared.whole.contract.whole})
    above, opens = account_for(ledger, config.privacy, [whole], "", may_open)
    by_client = {}
    for client, line in prepared.lines.items():
        note = "a client of a federation, opened with its first run's budget as the cap"
        opening = Opening(cap=line.budget, note=note, parent=above)
        placed = {"account": f"{above}.{client}", "data": config.clients[client].absolute(), "opens": opening}
        by_client[client] = bind(config, **_terms(config), above=opens, **placed)
    return by_client, (above, opens)


def _terms(config: FederateConfig) -> dict[str, Any]:
    """Return the settings that cost nothing and that all runs of a federation have in common."""
    settings = {**config.round.model_dump(exclude={"judge"}), "sharpness": config.model.sharpness}
    settings |= {"training": config.model.training, "architectures": config.model.architectures}
    return {"rows": None, "training": settings, "clients": ()}


def _opened(by_client: Mapping[str, Settings], prepared: Prepared) -> list[Any]:
    accounts = [accounts_to_open(by_client[client], line.contract.name) for client, line in prepared.lines.items()]
    return list({account.name: account for one in accounts for account in one}.values())


def _valid(model: type[M], content: Mapping[str, Any], section: str) -> M:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise refused(error, section) from None
