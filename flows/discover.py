"""The flow of a discovery: plan -> count under a charge -> write what was found into the draft.

A discovery is known by its plan: the same draft, budget and account are the same run, which is charged once. Given
again it prints the same schema, for nothing; cut off, it goes on.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

from dpmodels.authoring.completion import ReleasedKeys, complete
from dpmodels.authoring.lint import load_draft
from dpmodels.contract.discovery.discovery import Discovery, MarkedKeys, columns_of, marks, with_decimals
from dpmodels.contract.text_forms.written import forms_in
from dpmodels.errors import InvalidArgument, LedgerError, Unsuitable
from dpmodels.ledger.ledger import Ledger
from dpmodels.methods.tables.thresholded_counts import DiscoverySystem
from dpmodels.plain_yaml import read_yaml
from dpmodels.privacy import PrivacyUnit, Sensitive
from dpmodels.reading.frames import load_tables, transform_write, transform_write_tables
from dpmodels.releases.plan import Line
from dpmodels.report.fidelity import LOST
from flows.config import SynthesizeConfig
from flows.description import describe_least
from flows.kinds.prepared import Prepared
from flows.planning import account_for, check_delta, make_budget, open_home
from flows.start import admitted, create
from flows.with_prefect.approval import ask_approver
from tasks.run.accounts import charge_of
from tasks.run.at_work import at_work
from tasks.run.folders import make_private
from tasks.run.in_memory import GIVEN, GIVEN_TABLES, forget_given
from tasks.run.recover import recover
from tasks.run.source import Source
from tasks.run.store import Run
from tasks.stages.discover import discover as discover_stage
from tasks.stages.discover import paid_for, read_found

OTHER_TEXT = (
    "run {} was charged for these columns before, and counted them by another `text`, for which alone it holds: "
    "write that `text` again, or name another epsilon or delta, which is a charge of its own; nothing was charged"
)
"""What is said where how text is written has changed since a discovery was paid."""


@dataclass(frozen=True)
class Discovered:
    """A completed schema.

    Attributes:
        run: the run whose release the schema was completed from; charged: whether it was charged just now.
        schema: the schema's text; remarks: what its author should know of it, a sentence each.
        warning: says that what was released does not stand out of its noise, where it does not.
    """

    run: Run
    schema: str
    remarks: tuple[str, ...]
    charged: bool
    warning: str | None = None


def stands_out(config: SynthesizeConfig) -> str:
    """Say, before anything is charged, how many rows a value needs to be told from noise."""
    return describe_least(_line(config))


def rows_to_discover(draft: Mapping[str, Any], epsilon: float, delta: float) -> tuple[int, float, float]:
    """Return how many columns a draft marks, and about how many rows a value then needs to be told from noise.

    The last number is of the rows that it needs with one column marked alone; one is marked. Units: rows, or users.
    """
    wanted = {
        name: MarkedKeys(type=columns_of(draft)[name][0]["type"], keys=keys) for name, keys in marks(draft).items()
    }
    first = min(wanted, key=lambda name: wanted[name].counts != "values")  # these need a threshold, too
    return len(wanted), _least(wanted, epsilon, delta), _least({first: wanted[first]}, epsilon, delta)


def _least(wanted: dict[str, MarkedKeys], epsilon: float, delta: float) -> float:
    system, budget = DiscoverySystem(), make_budget(epsilon, delta, PrivacyUnit())
    return system.least_units(system.plan(Discovery(name="draft", columns=tuple(wanted), wanted=wanted), budget))


def discover(config: SynthesizeConfig, given: Sensitive[Any] | None = None) -> Discovered:
    """Release what a draft marks, under one charge, and write it into the draft; charged once for one plan.

    ``given`` are rows in memory instead of ``config.data``: a table, or by name the tables of a tree.

    Raises:
        NacreError: the draft has faults or marks nothing, no account is open, or its cap leaves no room. Nothing was
            read then.
    """
    text, privacy = load_draft(config.table_schema)[0], config.privacy
    line = _line(config)
    run = _run_of(config, line)
    release = run.finished("sanitize")
    charged = release is None
    if release is not None and run.settings.text_forms != forms_in(read_yaml(text)):
        raise Unsuitable(OTHER_TEXT.format(run.name))
    if release is None:
        with at_work(run):
            try:
                recover(run)
                release = discover_stage(_prepared(run, config, given))
            finally:
                forget_given(run)
    origin = f"charged release {run.name}, epsilon={privacy.target_epsilon}, delta={privacy.delta}"
    columns = read_found(release)
    draft = complete(text, columns, origin, paid_for(run, release))
    return Discovered(run, draft.text, draft.remarks, charged, _lost(line, columns))


def _line(config: SynthesizeConfig) -> Line:
    """Plan a discovery from its draft and its budget."""
    contract, privacy = load_draft(config.table_schema)[1], config.privacy
    check_delta(privacy.delta, privacy.allow_large_delta)
    budget = make_budget(privacy.target_epsilon, privacy.delta, contract.unit)
    return DiscoverySystem().plan(contract, budget)


def _lost(line: Line, columns: Mapping[str, ReleasedKeys]) -> str | None:
    """Say that all rows together are fewer than a value needs to be told from noise; None where they are more."""
    rows, least = max(one.rows for one in columns.values()), DiscoverySystem.of_line(line).least_units(line)
    if rows >= least:
        return None
    why = f"about {max(rows, 0):,.0f} rows were counted, and a value or a bound needs about {least:,.0f}"
    return f"{LOST.format(why)}. Spend more, or write the schema by hand"


def _run_of(config: SynthesizeConfig, line: Line) -> Run:
    """Return the run of a plan: the one that was begun, or a new one where there is none that can go on."""
    ledger = open_home(config)
    account = _account(ledger, config, line)
    for number in count(1):
        name = f"discover-{line.hash[:16]}" + (f"-{number}" if number > 1 else "")
        entry = ledger.find(charge_of(name, line, account).key)
        run = Run(home=config.runtime.home.absolute(), name=name, ledger_url=config.runtime.ledger or "")
        if not run.exists and entry is None:
            settings: dict[str, Any] = {**_source(config), "out": run.control, "training": {}, "rows": None}
            prepared = Prepared(line.contract, [line], settings=settings)
            return create(run, prepared, admitted(config, prepared, run))
        if run.exists and run.settings.account == account and (entry is None or entry.state != "voided"):
            if entry is None:
                ledger.check(charge_of(name, line, account))
            return run
    raise LedgerError("there is no name left for this run")


def _account(ledger: Ledger, config: SynthesizeConfig, line: Line) -> str:
    """Return the account that pays, which must be open: one opened with this budget would have no room for more."""
    account, opens = account_for(ledger, config.privacy, line.contract, [line])
    if opens is not None:
        raise LedgerError(
            f"no account is open for data set {line.contract.name}, and one that a discovery opened would have no room "
            f"for what follows it: nacre ledger open {account} --schema {config.table_schema} --epsilon EPSILON "
            "--delta DELTA"
        )
    return account


def _prepared(run: Run, config: SynthesizeConfig, given: Sensitive[Any] | None) -> Run:
    """Have the officer sign if there is one, and say where the rows are; a run that goes on may find them elsewhere."""
    contract = run.plan.contract
    names = tuple(contract.tables) if contract.kind == "discovery" else ()
    if given is None:
        Source(config.data, config.query).check()
        if config.query and names:
            raise InvalidArgument(
                "query", config.query, "be left out: a tree of tables is read from files, a table each"
            )
    tables = {} if given is None else load_tables(given, names)
    ask_approver(run, lasting_server=False)
    source = _source(config)
    if given is not None:
        make_private(run.sensitive)
        place = run.sensitive / (GIVEN_TABLES if names else GIVEN)
        transform_write_tables(tables, place) if names else transform_write(tables[""], place)
        source = {"data": str(place), "query": ""}
    draft = read_yaml(load_draft(config.table_schema)[0])
    written = {"decimals": with_decimals(draft), "text_forms": forms_in(draft)}
    run.settle(run.settings.model_copy(update={**source, **written}))
    return run


def _source(config: SynthesizeConfig) -> dict[str, str]:
    return asdict(Source(config.data, config.query).settled)
