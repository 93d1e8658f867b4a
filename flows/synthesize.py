"""The synthesis flow: ingest -> sanitize -> train -> sample (-> score) -> validate -> hand-off.

One pipeline, written once; it runs as plain Python, or with every stage as a task of one Prefect flow run.
"""

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

import pyarrow as pa
from pydantic import ValidationError

from dpmodels.accounting.composition import spent_epsilon
from dpmodels.errors import DataError, InvalidArgument, LedgerError
from dpmodels.evaluation.published.charged import Scores, read_measurement
from dpmodels.ledger.ledger import Ledger
from dpmodels.ledger.records import Quote
from dpmodels.privacy import PrivacyBudget, PrivacyUnit, Sensitive
from dpmodels.releases.plan import Line, Plan
from dpmodels.schema.given import transform_write
from dpmodels.schema.lint import load_for_run
from dpmodels.synthesizers.registry import create, default_method
from flows.budget import ask_approver, balances, publish_budget
from flows.config import PrivacyConfig, SynthesizeConfig
from flows.partitions import partition_account
from tasks.accounts import account_to_open, charge_of
from tasks.evaluate import evaluate
from tasks.home import check_home, open_ledger
from tasks.ingest import ingest
from tasks.publish import publish
from tasks.ready import check_ready, check_writable, pick_device
from tasks.sample import sample
from tasks.sanitize import sanitize
from tasks.score import score
from tasks.stage import as_task
from tasks.store import Handle, Opening, Run, Settings, make_private, new_name
from tasks.train import train
from tasks.validate import validate

LARGE_DELTA = 1e-3
GIVEN = "given.parquet"
"""In a run's sensitive folder: the rows, where they were given in memory."""


def pipeline(run: Run, call: Callable[..., Handle]) -> Handle:
    """Run every stage that has not finished yet; ``call`` decides how a stage is run."""
    release = run.finished("sanitize") or call(sanitize, run, call(ingest, run))
    generator = call(train, run, release)
    synthetic = call(sample, run, generator)
    if run.plan.report is not None:
        call(score, run, synthetic)
    report = call(validate, run, release, synthetic)
    if (run.sensitive / "encoded").exists():  # the sensitive zone may be gone, and nothing else needs it
        call(evaluate, run, Handle(path=run.sensitive / "encoded"), synthetic)
    handed_over = call(publish, run, release, synthetic, report)
    forget_given(run)
    return handed_over


def synthesize(config: SynthesizeConfig) -> Run:
    """Start a new run and take it to its hand-off."""
    return carry_out(start(config), config.runtime.prefect)


def start(
    config: SynthesizeConfig, name: str = "", partition: str = "", given: Sensitive[pa.Table] | None = None
) -> Run:
    """Check everything public, ask the ledger, and create the run; reads no data and charges nothing.

    Rows ``given`` in memory are written to the configuration's ``data``, in the run's sensitive folder, once the run
    stands: a refusal leaves none on the disk.

    A partition is the rows with one value in the schema's partition column: it is a data set and an account of its own,
    under the one that is named.

    Raises:
        NacreError: whatever would make the run fail for a public reason, or an exhausted budget.
    """
    plans, runtime = make_plans(config, partition), config.runtime
    check_ready(runtime.device, config.out, runtime.signing_key)
    if given is None and not config.data.exists():
        raise DataError("", f"{config.data} does not exist")
    home = runtime.home.absolute()
    check_writable(home)
    make_private(home)
    ledger = open_ledger(home, _ledger_place(config))
    check_home(home, runtime.ledger or "", ledger)
    settings = _settings(config, *_account(ledger, config.privacy, plans, partition))
    charges = [charge_of("quote", plan, settings.account) for plan in plans]
    ledger.check(*charges, first_opens=account_to_open(settings, plans[0].contract.name))
    run = Run(home=home, name=name or new_name(), ledger_url=settings.ledger, dask=runtime.dask)
    run.create(settings, Plan(lines=tuple(plans)))
    if given is not None:
        transform_write(given, run.sensitive / GIVEN)
    return run


def forget_given(run: Run) -> None:
    """Delete the rows that were given in memory, also half written; nothing reads them once they are encoded."""
    for name in (GIVEN, f".part-{GIVEN}"):
        (run.sensitive / name).unlink(missing_ok=True)


def find(
    home: Path, name: str, ledger: str | None, dask: str | None, *, device: str | None = None, out: Path | None = None
) -> Run:
    """Return a run that was started before, to go on with it; another device or place is written down.

    Raises:
        NacreError: there is none of this name, or no such device.
    """
    run = Run.find(home, name, ledger, dask)
    given = {"device": device and pick_device(device), "out": out and out.absolute()}
    if changes := {name: value for name, value in given.items() if value}:
        run.settle(run.settings.model_copy(update=changes))
    return run


def carry_out(run: Run, prefect: bool) -> Run:
    """Run what is left of a run: the same stages as plain calls or as the tasks of one flow run."""
    if not prefect:
        ask_approver(run, lasting_server=False)
        pipeline(run, lambda stage, *handles: stage(*handles))
        return run
    from flows.server import PrefectServer

    with PrefectServer(run.home) as server:
        from prefect import flow

        @flow(name="synthesize", flow_run_name=run.name, persist_result=False, validate_parameters=False)
        def synthesize_flow(home: str, name: str) -> None:
            record(run, server.pid is None, lambda stage, *handles: as_task(stage)(*handles))

        server.wait()
        synthesize_flow(str(run.home), run.name)
    return run


def record(run: Run, lasting_server: bool, call: Callable[..., Handle]) -> None:
    """Ask whoever must be asked, run the pipeline, and tell Prefect what became of the budget."""
    before = balances(run)
    try:
        ask_approver(run, lasting_server)
        pipeline(run, call)
    finally:
        publish_budget(run, before)


def make_plans(config: SynthesizeConfig, partition: str = "") -> list[Line]:
    """Plan a run from public inputs alone: the release, and if it was asked for the report's charged scores."""
    schema = load_for_run(config.table_schema)
    if partition:
        schema = schema.of_partition(partition)
    method = create(config.model.method or default_method(schema), config.model.measurement, config.model.training)
    privacy, scores = config.privacy, read_measurement(config.report)
    check_delta(privacy.delta, privacy.allow_large_delta)
    plans = [method.plan(schema, make_budget(privacy.target_epsilon, privacy.delta, schema.unit))]
    if privacy.report_epsilon is not None:
        budget = make_budget(privacy.report_epsilon, privacy.delta, schema.unit, "report_epsilon")
        plans.append(Scores(scores).plan(schema, budget))
    return plans


def make_quote(config: SynthesizeConfig, plans: Sequence[Line]) -> Quote | None:
    """Ask the ledger what it would say to the lines of a plan, without writing; None without an open account."""
    place = _ledger_place(config)
    if isinstance(place, Path) and not place.exists():
        return None
    ledger = Ledger(place)
    name = config.privacy.account or _scope_account(ledger, plans[0])
    return ledger.quote(*(charge_of("quote", plan, name) for plan in plans)) if name else None


def _settings(config: SynthesizeConfig, account: str, opens: Opening | None) -> Settings:
    return Settings(
        data=config.data.absolute(),
        out=config.out.absolute(),
        account=account,
        opens=opens,
        rows=config.rows,
        seed=config.runtime.seed,
        device=config.runtime.device,
        batch_rows=config.runtime.batch_rows,
        threads=config.runtime.threads,
        training=config.model.training,
        ledger=config.runtime.ledger or "",
        signing_key=config.runtime.signing_key and config.runtime.signing_key.absolute(),
        approval_hours=config.runtime.approval_hours,
    )


def _ledger_place(config: SynthesizeConfig) -> str | Path:
    """Return the ledger's URL, or its file in the home.

    Raises:
        InvalidArgument: the URL holds a password, which would be kept with the run.
    """
    url = config.runtime.ledger
    if url and re.search(r"://[^/@]*:[^/@]*@", url):
        raise InvalidArgument("ledger", "(hidden)", "hold no password; put it into ~/.pgpass or PGPASSWORD")
    return url or config.runtime.home.absolute() / "ledger.sqlite"


def make_budget(epsilon: float, delta: float, unit: PrivacyUnit, name: str = "target_epsilon") -> PrivacyBudget:
    """Make a budget, or say in words what is wrong with it."""
    try:
        return PrivacyBudget(epsilon=epsilon, delta=delta, unit=unit)
    except ValidationError as error:
        if any(fault["loc"] == ("epsilon",) for fault in error.errors()):
            raise InvalidArgument(name, epsilon, "lie between 0.001 and 1000") from None
        raise InvalidArgument(
            "delta", delta, "lie between 0 and 1, where 0 is for pure releases and 1 is excluded"
        ) from None


def check_delta(delta: float, allow_large: bool) -> None:
    """Refuse a delta at which more than a thousandth of the records may be released whole, unless it was asked for.

    Raises:
        InvalidArgument: the delta of a run, or of a new cap, is above 0.001.
    """
    if LARGE_DELTA < delta < 1 and not allow_large:
        rule = f"be at most {LARGE_DELTA}, since that share of the records may be released whole"
        raise InvalidArgument("delta", delta, f"{rule}; --allow-large-delta (privacy.allow_large_delta) takes more")


def whole_budget(plans: Sequence[Line]) -> PrivacyBudget:
    """Return the least budget that holds all lines of a plan: what they cost together, or the target of one alone."""
    budget = plans[0].budget
    if len(plans) == 1:
        return budget
    cost = spent_epsilon([plan.event for plan in plans], budget.delta_exact)
    return budget.model_copy(update={"epsilon": float(cost.quantize(Decimal("1e-6"), ROUND_CEILING))})


def _account(
    ledger: Ledger, privacy: PrivacyConfig, plans: Sequence[Line], partition: str
) -> tuple[str, Opening | None]:
    """Name the account that pays, and its terms where the run is to open it, with its own budget as the cap."""
    if partition:
        return partition_account(ledger, privacy.account or "", plans[0].table, whole_budget(plans))
    if name := privacy.account or _scope_account(ledger, plans[0]):
        return ledger.account(name).name, None
    note, name = "opened by its first run, with that run's budget as the cap", plans[0].contract.name
    if name in {account.name for account in ledger.accounts()}:
        raise LedgerError(
            f"account {name} is for other data, or for another unit, than the data set of this name; open one for it: "
            "nacre ledger open NAME --schema SCHEMA"
        )
    return name, Opening(cap=whole_budget(plans), note=note)


def _scope_account(ledger: Ledger, plan: Line) -> str | None:
    scope = (plan.contract.name, plan.budget.unit.code, str(plan.budget.adjacency))
    return next((account.name for account in ledger.accounts() if account.scope == scope), None)
