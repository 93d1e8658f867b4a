"""Start a run of any kind: everything public is checked, the ledger is asked, and only then is there a run.

What a run is to be is made by its kind (flows/kinds); all that follows is the same for tables, documents, clients and
discoveries. Nothing here reads a row, and nothing is charged.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from dpmodels.errors import AccountMissing, InvalidArgument, NacreError, Unsuitable, uncharged
from dpmodels.ledger.declared import Declaration
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Account, Charge, Quote
from dpmodels.privacy import Sensitive
from dpmodels.reading.data_files import FAILURES
from dpmodels.reading.frames import Rows, load_tables, transform_write, transform_write_tables, write_names
from dpmodels.releases.contract import Contract
from flows.config import Charged, EmbedConfig, FederateConfig, HandOverConfig, SynthesizeConfig
from flows.kinds.prepared import Preparation, Prepared
from flows.planning import (
    MayOpen,
    account_for,
    bind,
    check_discoveries,
    ledger_if_any,
    ledger_place,
    open_account,
    open_home,
    warn_of_discoveries,
)
from tasks.engine.progress import LOG
from tasks.run.accounts import accounts_to_open, charge_of
from tasks.run.in_memory import GIVEN, GIVEN_TABLES
from tasks.run.ready import check_out, check_ready, check_writable
from tasks.run.runs import inside
from tasks.run.settings import Opening, Settings
from tasks.run.store import Run, new_name, party_name
from tasks.run.unfinished import naming_paid, refuse_paid, released_before

CLIENTS_NOTE = "a client of a federation, opened with its first run's budget as the cap"
PREPARATIONS: dict[type[HandOverConfig], str] = {
    SynthesizeConfig: "tables",
    EmbedConfig: "each_document",
    FederateConfig: "federations",
}
"""The modules of flows/kinds; they are imported late, since they need what not every installation has."""


def preparation_of(config: Charged) -> Preparation:
    """Return the kind that prepares runs of a configuration."""
    return cast(Preparation, import_module(f".kinds.{PREPARATIONS[type(config)]}", __package__))


def check_places(config: Charged, has_data: bool = True, out: str = "") -> None:
    """Refuse a home that no run could write, a place ``out`` where no hand-off can lie, and files that cannot be read.

    Raises:
        NacreError: one of them is such.
    """
    check_writable(config.runtime.home.absolute())
    check_retention(config.statement)
    if out:
        check_out(out)
    preparation_of(config).check_paths(config, has_data)


def check_retention(declared: Declaration) -> None:
    """Refuse a last day that is past: private files are deleted after it.

    Raises:
        InvalidArgument: the retention names such a day.
    """
    if any(day < date.today() for day in declared.days):
        rule = "name no day that is past, for `nacre remove --expired` deletes the private files of a run after it"
        raise InvalidArgument("retention", declared.retention, rule)


def prepare(config: Charged, partition: str = "", has_data: bool = True) -> Prepared:
    """Plan a run, and see that its places can be written.

    A place that is taken hides no option and no fault of a schema; only where public files take long to prepare are
    places looked at first, so that nobody waits to hear of them.

    Raises:
        NacreError: the run would fail for a public reason.
    """
    kind, ready = preparation_of(config), (config.runtime.device, config.out, config.runtime.signing_key)
    check_retention(config.statement)
    kind.check_paths(config, has_data)
    if kind.IS_SLOW:
        check_ready(*ready)
    prepared = kind.prepare(config, partition)
    check_ready(*ready)
    return prepared


def are_public(config: Charged, prepared: Prepared, may_open: MayOpen, in_memory: bool) -> bool:
    """Tell whether names and types of the data are looked at before the ledger is asked.

    They are where no record is read for them, but not for a deployed flow run: whoever asks for it from elsewhere, and
    has no budget, learns nothing of a file.
    """
    return may_open is not MayOpen.NO and (in_memory or preparation_of(config).are_stated(config, prepared))


@uncharged()
def check_names(config: Charged, prepared: Prepared, tables: Mapping[str, Sensitive[Any]]) -> None:
    """Hold names and types of the data to the contract: of files, or of ``tables`` in memory by files of no rows.

    Raises:
        DataError: they are others.
    """
    check = preparation_of(config).check_data
    if not tables:
        return check(config, prepared)
    with TemporaryDirectory() as folder:
        try:
            for name, rows in tables.items():
                write_names(rows, Path(folder) / f"{name or 'given'}.parquet")
        except FAILURES:
            return None  # Parquet lacks a type; whoever writes the rows says so
        place = folder if "" not in tables else f"{folder}/given.parquet"
        return check(config.model_copy(update={"data": place}), prepared)


def start(
    config: Charged,
    name: str = "",
    partition: str = "",
    given: Sensitive[Any] | None = None,
    may_open: MayOpen = MayOpen.FIRST,
    warn: Callable[[str], object] = LOG.warning,
    warn_later: Callable[[str], object] | None = None,
) -> Run:
    """Check everything public, ask the ledger, and create the run; reads no rows and charges nothing.

    Names and types of columns are read, so that a table of another shape leaves no run behind, and a full account does
    not hide what is to be mended first. Rows ``given`` in memory, one frame or a dictionary of a tree's, are written to
    the run's sensitive folder once it is created, so a refusal leaves no rows on the disk.

    A partition is the rows with one value in the schema's partition column: it is a data set and has an account of its
    own, under the named account. ``warn`` is told, before there is a run, that another one has released the same plan;
    where no officer is to be asked, ``warn_later`` is in its place, for whoever says it once the data were not refused.

    Raises:
        NacreError: the run would fail for a public reason, or the budget is exhausted.
    """
    runtime = config.runtime
    run = Run(home=runtime.home.absolute(), name=name or new_name(), ledger_url=runtime.ledger or "", dask=runtime.dask)
    if config.stays_inside:
        config = config.model_copy(update={"out": str(inside(run))})
    prepared = prepare(config, partition, has_data=given is None)
    names = tuple(prepared.contract.tables) if prepared.contract.kind == "tree" else ()
    tables = {} if given is None else _taken(given, names, prepared.contract)
    if first := are_public(config, prepared, may_open, in_memory=given is not None):
        check_names(config, prepared, tables)
    settings = admitted(config, prepared, run, partition, may_open)
    if not first:
        check_names(config, prepared, tables)
    ledger = Ledger(ledger_place(config))
    if before := released_before(run, ledger, settings[""], prepared.lines):
        (warn_later if warn_later and not ledger.officer(settings[""].account) else warn)(before)
    create(run, prepared, settings)
    if names and given is not None:
        transform_write_tables(tables, run.sensitive / GIVEN_TABLES)
    elif given is not None:
        transform_write(tables[""], run.sensitive / GIVEN)
    return run


@uncharged()
def _taken(given: Sensitive[Any], names: Sequence[str], contract: Any) -> dict[str, Rows]:
    """Take over rows that were given in memory, of each table that a contract names."""
    columns = {name: contract.tables[name].columns.keys() for name in names}
    return load_tables(given, names, columns or {"": getattr(contract, "columns", {}).keys()})


def admitted(
    config: Charged, prepared: Prepared, run: Run, partition: str = "", may_open: MayOpen = MayOpen.FIRST
) -> dict[str, Settings]:
    """Return the settings of each party whose charge the ledger would accept, by client; of the whole run at "".

    Raises:
        NacreError: the home or its ledger is not in order, a budget is exhausted, or an unfinished run has paid.
    """
    ledger = open_home(config)
    check_discoveries(ledger, prepared.contract)
    warn_of_discoveries(ledger, prepared.contract)
    settings = settings_of_all(config, prepared, run, ledger, partition, may_open)
    if not prepared.lines:
        check_no_officer(ledger, prepared.contract)
        return settings
    _check_accounts(run, ledger, prepared, settings)
    return settings


def _check_accounts(run: Run, ledger: Ledger, prepared: Prepared, settings: Mapping[str, Settings]) -> None:
    """Refuse what an unfinished run has paid for, and charges that a cap would refuse; writes nothing."""
    refuse_paid(
        run.home, ledger, run.ledger_url, [(settings[name], plan.lines) for name, plan in prepared.plans.items()]
    )
    with naming_paid(run.home, ledger, run.ledger_url):
        ledger.check(*_charges(prepared, settings), first_opens=_first_opens(prepared, settings))


def refusal_of(config: Charged, prepared: Prepared, may_open: MayOpen = MayOpen.FIRST) -> NacreError | None:
    """Return the error with which the accounts would refuse a run, or None; writes nothing."""
    ledger, home = ledger_if_any(config), config.runtime.home.absolute()
    if ledger is None or not prepared.lines:
        return None
    run = Run(home=home, name="quote", ledger_url=config.runtime.ledger or "")
    try:
        _check_accounts(run, ledger, prepared, settings_of_all(config, prepared, run, ledger, "", may_open))
    except NacreError as refusal:
        return refusal
    return None


def settings_of_all(
    config: Charged, prepared: Prepared, run: Run, ledger: Ledger, partition: str, may_open: MayOpen
) -> dict[str, Settings]:
    """Return the settings of the whole run at the empty name, and of each client by its name."""
    account, opens = "", None
    if lines := prepared.lines[:1] if prepared.clients else prepared.lines:
        account, opens = account_for(ledger, config.privacy, prepared.contract, lines, partition, may_open)
    settings = {"": bind(config, **prepared.settings, account=account, opens=opens, clients=tuple(prepared.clients))}
    for number, (client, source) in enumerate(prepared.clients.items()):
        terms = {**prepared.settings, **asdict(source), "federation": run.name, "account": "", "clients": ()}
        if prepared.lines:
            opening = Opening(cap=prepared.lines[number].budget, note=CLIENTS_NOTE, parent=account)
            terms |= {"account": f"{account}.{client}", "opens": opening, "above": opens}
        settings[client] = bind(config, **terms)
    return settings


def create(run: Run, prepared: Prepared, settings: Mapping[str, Settings]) -> Run:
    """Create the runs of the clients, if there are any, and then the run itself."""
    for client in prepared.clients:
        run.model_copy(update={"name": party_name(run.name, client)}).create(settings[client], prepared.plans[client])
    return run.create(settings[""], prepared.plan, files=prepared.files)


def quote_of(config: Charged, prepared: Prepared) -> tuple[Quote | None, str]:
    """Ask the ledger for a quote on a plan, without writing, and name the officer who must sign for it.

    There is no quote where no account is open for it, and the name is empty where nobody must sign.
    """
    ledger = ledger_if_any(config)
    if ledger is None or not prepared.lines:
        return None, ""
    check_discoveries(ledger, prepared.contract)
    if prepared.clients:
        run = Run(home=config.runtime.home.absolute(), name="quote")
        settings = settings_of_all(config, prepared, run, ledger, "", MayOpen.YES)
        return ledger.quote(*_charges(prepared, settings), first_opens=_first_opens(prepared, settings)), ""
    account = open_account(ledger, config.privacy.account, prepared.contract, prepared.lines[0].budget)
    if not account:
        return None, ""
    signing = ledger.officer(account)
    charges = [charge_of("quote", line, account) for line in prepared.lines]
    return ledger.quote(*charges), signing[0].name if signing else ""


def pays_not(quote: Quote | None, refusal: NacreError | None) -> bool:
    """Tell whether a run is refused since no account would pay for it, and it may open none."""
    return refusal is not None and (quote is None or isinstance(refusal, AccountMissing))


def check_no_officer(ledger: Ledger, contract: Contract) -> None:
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


def _charges(prepared: Prepared, settings: Mapping[str, Settings]) -> list[Charge]:
    return [
        charge_of("quote", line, settings[name].account) for name, plan in prepared.plans.items() for line in plan.lines
    ]


def _first_opens(prepared: Prepared, settings: Mapping[str, Settings]) -> list[Account]:
    """Return the accounts that the runs would open, each once."""
    accounts = [
        account
        for name, plan in prepared.plans.items()
        for account in accounts_to_open(settings[name], plan.contract.name)
    ]
    return list({account.name: account for account in accounts}.values())
