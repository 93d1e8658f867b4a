"""Planning: what a run would charge, decided from public inputs alone, and the account that would pay."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.authoring.lint import load_for_run
from dpmodels.errors import AccountMissing, InvalidArgument, LedgerError
from dpmodels.keys import is_on_token
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Quote
from dpmodels.limits import LONGEST_NAME
from dpmodels.methods.registry import create, method_for
from dpmodels.privacy import Adjacency, PrivacyBudget, PrivacyUnit
from dpmodels.releases.contract import Contract
from dpmodels.releases.discoveries import check_discovery, check_priced
from dpmodels.releases.plan import Line, Plan
from dpmodels.report.charged import Scores, read_measurement
from dpmodels.report.report import ROWS_ALONE
from flows.config import (
    ClientPrivacyConfig,
    EmbedConfig,
    HandOverConfig,
    PrivacyConfig,
    PureConfig,
    SynthesizeConfig,
    values_of,
)
from flows.partitions import partition_account
from tasks.run.accounts import accounts_to_open, charge_of
from tasks.run.bucket import landing, local
from tasks.run.home import check_home, open_ledger
from tasks.run.ready import check_writable
from tasks.run.source import check_source, settled_source
from tasks.run.store import Opening, Run, Settings, close_home, new_name
from tasks.run.unfinished import naming_paid, refuse_paid
from tasks.run.zone import check_place

LARGE_DELTA, LARGE_EPSILON = 1e-3, 20


class MayOpen(Enum):
    """Whether a run may open the account of its data set, whose cap is then what the run itself asks for.

    A cap that each new name of a data set brings along would be no cap, so a home's first run alone does so by itself.
    """

    NO = "a deployed flow run opens no account"
    FIRST = "the first run of a home opens one, and no other run unless it is told to (--open)"
    YES = ""


def make_plans(config: SynthesizeConfig, partition: str = "") -> list[Line]:
    """Plan a run from public inputs alone: the release, and the report's charged scores if they were asked for."""
    contract = load_for_run(config.table_schema)
    if contract.is_table and partition:
        contract = contract.of_partition(partition)
    check_format(config, contract)
    name = method_for(contract, config.model.method)
    method = create(name, config.model.measurement, config.model.training)
    if contract.is_table and config.rows and (faults := contract.too_few(config.rows)):
        raise InvalidArgument("rows", config.rows, f"be fewer: {' '.join(faults[0])}")
    users = contract.users
    if config.parents and (users is None or not users.columns):
        rule = "be left out: the schema does not say which columns are the users' own (`users: {columns: [...]}`)"
        raise InvalidArgument("parents", config.parents, rule)
    privacy, scores = config.privacy, read_measurement(config.report)
    check_delta(privacy.delta, privacy.allow_large_delta)
    check_priced(contract, privacy.delta)
    plans = [method.plan(contract, make_budget(privacy.target_epsilon, privacy.delta, contract.unit))]
    if privacy.report_epsilon is not None:
        if not contract.is_table or users:
            rule = "be left out: only the report on a single table has charged scores"
            raise InvalidArgument("report_epsilon", privacy.report_epsilon, rule)
        budget = make_budget(privacy.report_epsilon, privacy.delta, contract.unit, "report_epsilon")
        plans.append(Scores(scores).plan(contract, budget))
    return plans


def check_format(config: SynthesizeConfig, contract: Contract) -> None:
    """Refuse one file of a table where there are two tables, or where it is drawn into an object store."""
    if not config.format:
        return
    if contract.users:
        raise InvalidArgument("format", config.format, "be left out: there are two tables, of users and of their rows")
    if local(config.out) is None:
        rule = "be left out: a hand-off in an object store has its table as Parquet; export it once it is there"
        raise InvalidArgument("format", config.format, rule)


def check_paths(config: SynthesizeConfig, has_data: bool = True) -> None:
    """Refuse data that no run could read, by its place alone, and a home that it could not write; opens no file.

    Raises:
        NacreError: there is no data, the home cannot be, or a URI holds a secret.
    """
    check_writable(config.runtime.home.absolute())
    if has_data:
        check_source(config.data, config.query)
    if config.parents:
        check_source(config.parents)


def make_quote(config: SynthesizeConfig | EmbedConfig, plans: Sequence[Line]) -> Quote | None:
    """Ask the ledger for a quote on the lines of a plan, without writing; None if no account is open for them."""
    ledger, name = _open_account(config, plans[0])
    return ledger.quote(*(charge_of("quote", plan, name) for plan in plans)) if ledger else None


def officer_for(config: SynthesizeConfig | EmbedConfig, plans: Sequence[Line]) -> str:
    """Name the officer who must sign for a plan; empty where nobody must."""
    ledger, name = _open_account(config, plans[0])
    signing = ledger.officer(name) if ledger else None
    return signing[0].name if signing else ""


def _open_account(config: SynthesizeConfig | EmbedConfig, plan: Line) -> tuple[Ledger | None, str]:
    """Return the ledger and the account that a plan would be charged to, or no ledger where none is open for it."""
    url = ledger_place(config)
    if isinstance(url, Path) and not url.exists():
        return None, ""
    ledger = Ledger(url)
    check_discoveries(ledger, plan.contract)
    name = config.privacy.account or _scope_account(ledger, plan)
    return (ledger, name) if name else (None, "")


def check_discoveries(ledger: Ledger, contract: Contract) -> None:
    """Refuse a schema that says of a discovery what the ledger knows better; of other ledgers' nothing is known here.

    Raises:
        Unsuitable: it was given up, is of another data set, or was edited.
    """
    for one in contract.discovered:
        if reservation := ledger.find(one.charge):
            check_discovery(one, reservation, contract)


def ledger_place(config: HandOverConfig) -> str | Path:
    """Return the ledger's URL, or its file in the home."""
    return config.runtime.ledger or config.runtime.home.absolute() / "ledger.sqlite"


def make_budget(
    epsilon: float,
    delta: float,
    unit: PrivacyUnit,
    name: str = "epsilon",
    adjacency: Adjacency = Adjacency.ADD_OR_REMOVE_ONE,
) -> PrivacyBudget:
    """Make a budget; the error for an impossible one names the option by ``name``."""
    try:
        return PrivacyBudget(epsilon=epsilon, delta=delta, unit=unit, adjacency=adjacency)
    except ValidationError as error:
        if any(fault["loc"] == ("epsilon",) for fault in error.errors()):
            raise InvalidArgument(name, epsilon, "lie between 0.001 and 1000") from None
        raise InvalidArgument("delta", delta, "lie between 0 and 1, and only a pure release keeps 0") from None


def check_delta(delta: float, allow_large: bool) -> None:
    """Refuse a delta at which more than a thousandth of the records may be released whole, unless it was asked for.

    Raises:
        InvalidArgument: the delta of a run, or of a new cap, is above 0.001.
    """
    if LARGE_DELTA < delta < 1 and not allow_large:
        rule = f"be at most {LARGE_DELTA}, since that share of the records may be released whole"
        raise InvalidArgument("delta", delta, f"{rule}; for more, give --allow-large-delta")


def cautions_of(epsilon: float, delta: float) -> Iterator[str]:
    """Say what a budget hardly promises any more."""
    if epsilon > LARGE_EPSILON:
        yield f"epsilon={epsilon} is above {LARGE_EPSILON}: what is released may tell nearly everything of a record"
    if delta > LARGE_DELTA:
        yield f"delta={delta} is above {LARGE_DELTA}: that share of the records may be released whole"


def cautions_about(contract: Contract) -> Iterator[str]:
    """Say what a contract does not promise of its synthetic rows."""
    if contract.makes_rows_alone:
        yield ROWS_ALONE


def whole_budget(plans: Sequence[Line]) -> PrivacyBudget:
    """Return the least budget for all lines of a plan: the target of a single line, or what several cost together."""
    budget = plans[0].budget
    if len(plans) == 1:
        return budget
    cost = spent_epsilon([plan.event for plan in plans], budget.delta_exact)
    return budget.model_copy(update={"epsilon": float(cost.quantize(Decimal("1e-6"), ROUND_CEILING))})


def account_for(
    ledger: Ledger,
    privacy: PrivacyConfig | PureConfig | ClientPrivacyConfig,
    plans: Sequence[Line],
    partition: str,
    may_open: MayOpen = MayOpen.YES,
) -> tuple[str, Opening | None]:
    """Return the name of the account that pays; and, if the run is to open it with its budget as the cap, its terms.

    Raises:
        AccountMissing: no account is open for the data set, and this run may not open one.
    """
    if partition:
        return partition_account(ledger, privacy.account or "", plans[0].table, whole_budget(plans))
    if len(privacy.account or "") > LONGEST_NAME:
        raise InvalidArgument("account", privacy.account, f"have at most {LONGEST_NAME} letters")
    if name := privacy.account or _scope_account(ledger, plans[0]):
        return ledger.account(name).name, None
    note, name = "opened by its first run, with that run's budget as the cap", plans[0].contract.name
    accounts = ledger.accounts()
    if name in {account.name for account in accounts}:
        raise LedgerError(
            f"account {name} is for other data, or for another unit, than the data set of this name; open one for it: "
            "nacre ledger open NAME --schema SCHEMA"
        )
    if may_open is MayOpen.NO or (may_open is MayOpen.FIRST and accounts):
        how = f"`nacre ledger open {name} --schema SCHEMA --cap-epsilon EPSILON --cap-delta DELTA` opens it"
        raise AccountMissing(name, name, f"{how}; {may_open.value}")
    return name, Opening(cap=whole_budget(plans), note=note, alone=may_open is MayOpen.FIRST)


def _scope_account(ledger: Ledger, plan: Line) -> str | None:
    scope = (plan.contract.name, plan.budget.unit.code, str(plan.budget.adjacency))
    return next((account.name for account in ledger.accounts() if account.scope == scope), None)


def bind(config: HandOverConfig, **further: Any) -> Settings:
    """Return the settings that the stages need, with absolute paths, so that the run can go on from any folder."""
    fields = {name: value for name, value in values_of(config).items() if name in Settings.model_fields}
    bound: dict[str, Any] = {name: value.absolute() for name, value in fields.items() if isinstance(value, Path)}
    if (key := config.runtime.signing_key) and is_on_token(key):
        bound["signing_key"] = key
    bound |= landing(config.out, config.runtime.home.absolute())
    if isinstance(config, SynthesizeConfig):
        bound["data"] = settled_source(config.data, config.query)
        bound["parents"] = config.parents and settled_source(config.parents)
    return Settings(**fields | bound | further | {"ledger": config.runtime.ledger or ""})


def open_home(config: HandOverConfig) -> Ledger:
    """Open the ledger of a configuration's home, once both are in order.

    Raises:
        NacreError: one of them is not.
    """
    runtime, home = config.runtime, config.runtime.home.absolute()
    check_writable(home)
    check_place(home)
    close_home(home)
    ledger = open_ledger(home, ledger_place(config))
    check_home(home, runtime.ledger or "", ledger)
    return ledger


def create_run(
    config: SynthesizeConfig | EmbedConfig,
    lines: Sequence[Line],
    name: str = "",
    partition: str = "",
    files: Mapping[str, bytes] | None = None,
    may_open: MayOpen = MayOpen.FIRST,
    check_data: Callable[[], None] = lambda: None,
    **further: Any,
) -> Run:
    """Create the run of a plan that its ledger would accept; reads no data and charges nothing.

    ``check_data`` looks at names and types of the data, once the ledger would accept. Public ``files`` are kept in the
    run's control zone, and settings of its ``further`` with the others.

    Raises:
        NacreError: the home or its ledger is not in order, the budget is exhausted, or an unfinished run has paid.
    """
    runtime, ledger = config.runtime, open_home(config)
    check_discoveries(ledger, lines[0].contract)
    account, opens = account_for(ledger, config.privacy, lines, partition, may_open)
    settings = bind(config, account=account, opens=opens, **further)
    charges = [charge_of("quote", line, settings.account) for line in lines]
    home = runtime.home.absolute()
    refuse_paid(home, ledger, settings.ledger, [(settings, lines)])
    with naming_paid(home, ledger, settings.ledger):
        ledger.check(*charges, first_opens=accounts_to_open(settings, lines[0].contract.name))
    check_data()
    run = Run(home=home, name=name or new_name(), ledger_url=settings.ledger, dask=runtime.dask)
    return run.create(settings, Plan(lines=tuple(lines)), files=files or {})
