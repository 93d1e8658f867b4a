"""Planning: what a run would charge, decided from public inputs alone, and the account that would pay."""

from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dpmodels import amounts
from dpmodels.accounting.composition import spent_epsilon
from dpmodels.accounting.meaning import guesses_of_budget, in_words, right_guesses
from dpmodels.contract.remarks import as_asked, is_of_dates
from dpmodels.errors import AccountMissing, InvalidArgument, LedgerError
from dpmodels.keys import is_on_token
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Account, meant_or_opened
from dpmodels.limits import LONGEST_NAME
from dpmodels.methods.tables.thresholded_counts import DiscoverySystem
from dpmodels.pages.card_words import SMALL
from dpmodels.privacy import Adjacency, PrivacyBudget, PrivacyUnit
from dpmodels.releases.contract import Contract
from dpmodels.releases.discoveries import check_discovery, joint_delta
from dpmodels.releases.plan import Line
from dpmodels.report.terms import ROWS_ALONE
from flows.charge_words import one_of
from flows.config import HandOverConfig
from flows.partitions import partition_account
from flows.settings import values_of
from tasks.engine.progress import LOG
from tasks.run.bucket import landing
from tasks.run.folders import close_home
from tasks.run.home import check_home, open_ledger
from tasks.run.ready import check_writable
from tasks.run.settings import Opening, Settings
from tasks.run.zone import check_place

LARGE_DELTA, LARGE_EPSILON, NEARLY_ALL = 1e-3, 10, 0.95
ELSEWHERE = (
    "warning: the schema was discovered by %s under account %s, which this ledger does not hold: the hand-off states "
    "the price that the schema says, and `nacre verify` says so; ask whoever keeps that account whether it is no larger"
)
UNNAMED = (
    "warning: data set %s was also discovered by %s, which the schema does not name: if any value or bound in it comes "
    "from there, put back the `discovered` section that was written with it, or the hand-off states too small a price"
)

AGAIN = " and, since rows were charged to this one and the two are not added up, give --again REASON"


class MayOpen(Enum):
    """Whether a run may open the account of its data set, whose cap is then what the run itself asks for.

    A cap that each new name of a data set brings along would be no cap, so a home's first run alone does so by itself.
    """

    NO = "a deployed flow run opens no account"
    FIRST = "the first run of a home opens one, and no other run unless it is told to (--open)"
    YES = ""


def ledger_if_any(config: HandOverConfig) -> Ledger | None:
    """Return the ledger of a configuration's home; None where none was opened yet."""
    url = ledger_place(config)
    return None if isinstance(url, Path) and not url.exists() else Ledger(url)


def check_discoveries(ledger: Ledger, contract: Contract) -> None:
    """Refuse a schema that says of a discovery what the ledger knows better; of other ledgers' nothing is known here.

    Raises:
        Unsuitable: it was given up, is of another data set, or was edited.
    """
    for one in contract.discovered:
        if reservation := ledger.find(one.charge):
            check_discovery(one, reservation, contract)


def warn_of_discoveries(ledger: Ledger, contract: Contract) -> None:
    """Warn where a schema alone says what a discovery cost, and where it names none of its data set's discoveries.

    A draft hands nothing over: what it names is named by the schema that is completed from it.
    """
    if contract.kind == "discovery":
        return
    for one in contract.discovered:
        if ledger.find(one.charge) is None:
            LOG.warning(ELSEWHERE, one.run, one.account)
    accounts = [account.name for account in ledger.accounts() if account.dataset == contract.name]
    keys = {entry.charge for name in accounts for entry in ledger.entries(account=name) if entry.kind == "commit"}
    for key in sorted(keys - {one.charge for one in contract.discovered}):
        if (reservation := ledger.find(key)) and reservation.charge.mechanism == DiscoverySystem.method:
            LOG.warning(UNNAMED, contract.name, reservation.charge.run)


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
            swapped = f"; did you mean epsilon {delta:g} and delta {epsilon:g}?" if 0 < epsilon < 0.001 <= delta else ""
            raise InvalidArgument(name, epsilon, f"lie between 0.001 and 1000{swapped}") from None
        raise InvalidArgument("delta", delta, "lie between 0 and 1, and only a pure release keeps 0") from None


def check_delta(delta: float, allow_large: bool) -> None:
    """Refuse a delta at which more than a thousandth of the records may be released whole, unless it was asked for.

    Raises:
        InvalidArgument: the delta of a run, or of a new cap, is above 0.001.
    """
    if LARGE_DELTA < delta < 1 and not allow_large:
        rule = f"be at most {LARGE_DELTA}, since that share of the records may be released whole"
        raise InvalidArgument("delta", delta, f"{rule}; for more, give --allow-large-delta")


def cautions_of(epsilon: float, delta: float, line: Line | None = None) -> Iterator[str]:
    """Say what a budget hardly promises any more, by the bets that its noise allows, where a line of a plan has it."""
    if epsilon > LARGE_EPSILON:
        share = right_guesses([line.event], epsilon, delta) if line else guesses_of_budget(epsilon, delta)
        one = one_of(line.budget) if line else "record"
        much = "next to nothing" if share > NEARLY_ALL else "little"
        yield (
            f"epsilon={epsilon:g} promises {much}: whoever sees what is released wins {in_words(share)} of even "
            f"bets on one {one} at most, and 50 % by tossing a coin"
        )
    if delta > LARGE_DELTA:
        yield f"delta={delta} is above {LARGE_DELTA}: that share of the records may be released whole"


def cautions_about(contract: Contract, of_dates: bool = True) -> Iterator[str]:
    """Say what a contract does not promise of its synthetic rows, and which rows it does not use."""
    yield from (remark for remark in as_asked(contract.remarks, contract) if of_dates or not is_of_dates(remark))
    if contract.makes_rows_alone:
        yield ROWS_ALONE


def delta_over_rows(plan: Line) -> str:
    """Warn of a delta that is large for the rows that a schema declares, as the report does for those it counts.

    Empty where it is not, where no rows are declared, and of users, of whom rows are no count.
    """
    contract = plan.contract.whole
    rows = contract.rows if contract.is_table else None
    if rows is None or plan.budget.unit.user:
        return ""
    delta = joint_delta([plan.budget.delta, *(one.delta for one in plan.contract.discovered)])
    most = rows.min if rows.max is None else rows.max
    if delta * most <= SMALL:
        return ""
    fits = Context(prec=1, rounding=ROUND_FLOOR).divide(Decimal(str(SMALL)), Decimal(most))
    whom = f"{most:,} records or more" if rows.max is None else f"up to {most:,} records"
    return (
        f"delta={amounts.written(delta)} is large for {whom}: {amounts.written(fits)} or less keeps to the rule of "
        f"thumb that delta times the number of records is at most {SMALL:g}"
    )


def whole_budget(plans: Sequence[Line]) -> PrivacyBudget:
    """Return the least budget for all lines of a plan: the target of a single line, or what several cost together."""
    budget = plans[0].budget
    if len(plans) == 1:
        return budget
    cost = spent_epsilon([plan.event for plan in plans], budget.delta_exact)
    return budget.model_copy(update={"epsilon": float(cost.quantize(Decimal("1e-6"), ROUND_CEILING))})


def account_for(
    ledger: Ledger,
    privacy: Any,
    contract: Contract,
    lines: Sequence[Line],
    partition: str = "",
    may_open: MayOpen = MayOpen.YES,
) -> tuple[str, Opening | None]:
    """Return the name of the account that pays; and, if the run is to open it with its budget as the cap, its terms.

    ``privacy`` is the section of a configuration, ``contract`` that of the data set or the federation that pays.

    Raises:
        AccountMissing: no account is open for the data set, and this run may not open one.
    """
    if partition:
        return partition_account(ledger, privacy.account or "", lines[0].table, whole_budget(lines))
    if len(privacy.account or "") > LONGEST_NAME:
        raise InvalidArgument("account", privacy.account, f"have at most {LONGEST_NAME} letters")
    if account := open_account(ledger, privacy.account, contract, lines[0].budget):
        return ledger.account(account).name, None
    note, name = "opened by its first run, with that run's budget as the cap", contract.name
    accounts = ledger.accounts()
    if namesake := next((account for account in accounts if account.name == name), None):
        raise LedgerError(_of_another(ledger, namesake, contract))
    if may_open is MayOpen.NO or (may_open is MayOpen.FIRST and accounts):
        how = f"`nacre ledger open {name} --schema SCHEMA --epsilon EPSILON --delta DELTA` opens it"
        raise AccountMissing(name, name, f"{how}; {may_open.value}")
    return name, Opening(cap=whole_budget(lines), note=note, alone=may_open is MayOpen.FIRST)


def _of_another(ledger: Ledger, account: Account, contract: Contract) -> str:
    """Say that the account of a data set's name is of another unit, or of other data, and all of what helps."""
    how = "`nacre ledger open NAME --schema SCHEMA --epsilon EPSILON --delta DELTA`, and name it with --account NAME"
    if account.dataset != contract.name:
        return f"account {account.name} is for other data than this; open one for it by another name: {how}"
    again = AGAIN if ledger.is_charged(account.name) else ""
    return (
        f"account {account.name} is for another unit than {contract.unit}, namely {account.cap.unit}; open one for it "
        f"by another name: {how}{again}"
    )


def beside(ledger: Ledger, dataset: str, budget: PrivacyBudget) -> Iterator[str]:
    """Warn of what accounts by another unit or adjacency than a budget's have spent on a data set."""
    scope = (dataset, budget.unit.code, str(budget.adjacency))
    others = [one for one in ledger.accounts() if one.scope[0] == dataset and one.scope != scope]
    for one in filter(lambda other: ledger.is_charged(other.name), others):
        spent = amounts.spent(ledger.balance(one.name).spent_epsilon)
        yield (
            f"warning: account {one.name} has spent epsilon={spent} on the same data set by {one_of(one.cap)}, "
            f"{one.cap.adjacency}. Such accounts are not added up, so a run of rows that it was charged for will need "
            "a reason (--again REASON)"
        )


def open_account(ledger: Ledger, account: str | None, contract: Contract, budget: PrivacyBudget) -> str | None:
    """Name the account that was asked for, or that is open for a data set; None where there is none.

    Raises:
        LedgerError: the account that was asked for is not open.
    """
    scope, accounts = (contract.name, budget.unit.code, str(budget.adjacency)), ledger.accounts()
    if account and account not in (names := [one.name for one in accounts]):
        how = meant_or_opened(account, names)
        alone = "without --account the data set's own account pays, which alone --open opens"
        raise LedgerError(f"account {account} is not open; {how}; {alone}")
    return account or next((one.name for one in accounts if one.scope == scope), None)


def bind(config: HandOverConfig, **further: Any) -> Settings:
    """Return the settings that the stages need, with absolute paths, so that the run can go on from any folder."""
    fields = {name: value for name, value in values_of(config).items() if name in Settings.model_fields}
    bound: dict[str, Any] = {name: value.absolute() for name, value in fields.items() if isinstance(value, Path)}
    if (key := config.runtime.signing_key) and is_on_token(key):
        bound["signing_key"] = key
    bound |= landing(config.out, config.runtime.home.absolute())
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
