"""The commands that start a run, show what it would charge, approve it, go on with it and remove it."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmodels.errors import DataError, InvalidArgument
from flows.command_line.options import (
    AsJson,
    Dask,
    Details,
    Explain,
    FailOnChecks,
    Federated,
    Home,
    NewOut,
    Open,
    OtherDevice,
    OtherOut,
    Prefect,
    Url,
    takes_settings,
)
from flows.command_line.printing import UNCHARGED, echo, interruptible
from flows.config import Charged, EmbedConfig, FederateConfig, FitConfig, SynthesizeConfig
from flows.sections import HOME, RuntimeConfig
from flows.settings import placed

if TYPE_CHECKING:
    from flows.kinds.prepared import Prepared

app = typer.Typer()
NOWHERE = {"out": ""}
"""The hand-off of a plan that names no place for it: nothing is written."""


@app.command()
@takes_settings
def synthesize(
    config: SynthesizeConfig, open_account: Open = False, as_json: AsJson = False, fail_on_checks: FailOnChecks = False
) -> None:
    """Make a synthetic copy of a table: ingest, sanitize (the charge), train, sample, validate, hand off.

    Example: nacre synthesize patients.parquet --schema patients.yaml --epsilon 1 --delta 1e-5 --out hand-off
    """
    _run(config, open_account, as_json, fail_on_checks)


@app.command()
@partial(takes_settings, defaults=NOWHERE)
def plan(
    config: SynthesizeConfig,
    details: Details = False,
    explain: Explain = False,
    open_account: Open = False,
    as_json: AsJson = False,
) -> None:
    """Show what the same `synthesize` would charge, and within what its figures would be; reads no private row.

    Example: nacre plan patients.parquet --schema patients.yaml --epsilon 1 --delta 1e-5
    """
    _plan(config, "`nacre synthesize`", details, explain, as_json, open_account, out=config.out)


@app.command("embed-documents")
@partial(takes_settings, model=EmbedConfig)
def embed_documents(config: EmbedConfig, open_account: Open = False, as_json: AsJson = False) -> None:
    """Make a private embedding of each document, with the help of public ones; hides one sentence, not a document.

    Example: nacre embed-documents letters.parquet --candidates public.parquet --epsilon 5 --out hand-off
    """
    _run(config, open_account, as_json)


@app.command("plan-documents")
@partial(takes_settings, model=EmbedConfig, defaults=NOWHERE)
def plan_documents(
    config: EmbedConfig,
    details: Details = False,
    explain: Explain = False,
    open_account: Open = False,
    as_json: AsJson = False,
) -> None:
    """Show what the same `embed-documents` would charge; reads the public documents only.

    Example: nacre plan-documents letters.parquet --candidates public.parquet --epsilon 5
    """
    _plan(config, "`nacre embed-documents`", details, explain, as_json, open_account)


@app.command()
def federate(
    config: Federated,
    out: NewOut = None,
    home: Home = None,
    ledger: Url = None,
    prefect: Prefect = None,
    open_account: Open = False,
    as_json: AsJson = False,
) -> None:
    """Make a classifier of what clients release of their own data, each once and under its own account.

    Example: nacre federate hospitals.yaml --out hand-off
    """
    settings = {"out": out, "home": home, "ledger": ledger, "prefect": prefect}
    _run(FederateConfig.build(placed(settings, FederateConfig), config), open_account, as_json)


@app.command("plan-federation")
def plan_federation(
    config: Federated,
    home: Home = None,
    ledger: Url = None,
    details: Details = False,
    explain: Explain = False,
    open_account: Open = False,
    as_json: AsJson = False,
) -> None:
    """Show what the same `federate` would charge each client; reads the public records only.

    Example: nacre plan-federation hospitals.yaml
    """
    settings = FederateConfig.build(placed({"home": home, "ledger": ledger}, FederateConfig), config)
    has_data = any(source.is_there for source in settings.sources.values())
    _plan(settings, "`nacre federate`", details, explain, as_json, open_account, has_data)


def _run(config: Charged, open_account: bool, as_json: bool, fail_on_checks: bool = False) -> None:
    """Start a run of any kind, take it to its end, and show what it handed over."""
    from flows.command_line.console import ask_again, resumable
    from flows.command_line.outcomes import failing
    from flows.command_line.show import caution_of, show_hand_off, show_public
    from flows.planning import MayOpen, cautions_of
    from flows.start import start
    from flows.synthesize import carry_out
    from tasks.run.unfinished import refuse_same

    opens, again, alarms = (
        MayOpen.YES if open_account else MayOpen.FIRST,
        partial(ask_again, as_json=as_json),
        list[str](),
    )
    with interruptible(lambda: UNCHARGED, refusals=False):
        run = start(config, may_open=opens, warn=again, warn_later=alarms.append)
    line, privacy = next(iter(run.plan.lines), None), config.privacy
    hardly = [*cautions_of(privacy.target_epsilon, getattr(privacy, "delta", 0.0), line)]
    asking = partial(again, question="Charge all the same?")
    printed = caution_of(run.plan, config)
    show_public(run)
    with resumable(run, begins=True) as begun, failing(run, as_json):
        refusing = partial(again, refuse=partial(refuse_same, run))
        carry_out(run, config.runtime.prefect, lambda: (*map(asking, hardly), *map(refusing, alarms), begun()))
        show_hand_off(run, as_json, fail_on_checks, printed)


def _plan(
    config: Charged,
    command: str,
    details: bool,
    explain: bool,
    as_json: bool,
    open_account: bool,
    has_data: bool = True,
    out: str = "",
) -> None:
    """Show what a run of any kind would charge; ``has_data``: whether its private files lie on this machine.

    In short, unless ``details`` are asked for; then ``command`` is what would charge it.

    What refuses it is said first, and what it should be warned of behind that.
    """
    from flows.command_line.console import note
    from flows.command_line.show import show_plan
    from flows.description import describe_config
    from flows.figures import figures_of
    from flows.in_short import plan_in_short
    from flows.planning import MayOpen
    from flows.start import check_places, preparation_of, refusal_of

    prepared = preparation_of(config).prepare(config, "")
    refusal = refusal_of(config, prepared, MayOpen.YES if open_account else MayOpen.FIRST)
    facts, quote = describe_config(config, explain, prepared, refusal)
    check_places(config, has_data, out)
    if refused := has_data and _refused(config, prepared):
        note(f"warning: a run would refuse the data: {refused}")
    elif not as_json and (said := _unread(config, prepared.contract)):
        note(said)
    for remark in _remarks(config, prepared):
        note(remark) if refusal is None else refusal.add_note(remark)
    priced = figures_of(config, prepared, facts, quote, refusal) if as_json else None
    show_plan(facts if details else plan_in_short(facts, command), refusal, priced, bool(refused))


def _remarks(config: Charged, prepared: "Prepared") -> Iterator[str]:
    """Yield what to look at again before a charge: the order of dates, zeros, and other accounts of the data set."""
    from dpmodels.contract.remarks import before_a_charge
    from flows.planning import beside, ledger_if_any

    yield from before_a_charge(prepared.contract)
    if (ledger := ledger_if_any(config)) is not None and prepared.lines:
        yield from beside(ledger, prepared.contract.name, prepared.lines[0].budget)


def _refused(config: Charged, prepared: "Prepared") -> str:
    """Say what a run would refuse of the names and types of columns, where files on this machine state them.

    Privacy: reads no row. What cannot be read at all is told by the run.
    """
    from dpmodels.reading.data_files import FAILURES, is_uri
    from flows.start import preparation_of

    if not isinstance(config, SynthesizeConfig) or config.query or any(map(is_uri, (config.data, config.parents))):
        return ""
    kind = preparation_of(config)
    try:
        if kind.are_stated(config, prepared):
            kind.check_data(config, prepared)
    except DataError as fault:
        return str(fault)
    except FAILURES:
        pass
    return ""


def _unread(config: Charged, contract: Any) -> str:
    """Say that a plan holds no value against the schema, and which command does, where one does before a run."""
    if not isinstance(config, SynthesizeConfig) or not config.data or config.query or not contract.is_table:
        return ""
    if contract.users or config.parents:
        return "values are not read by a plan: the run holds them against the schema before it is charged"
    command = f"`nacre validate {config.data} --schema {config.table_schema} --raw`"
    return f"values are not read by a plan: {command} holds them against the schema"


@app.command()
def resume(
    run: str,
    device: OtherDevice = None,
    out: OtherOut = None,
    dask: Dask = None,
    home: Home = None,
    ledger: Url = None,
    prefect: Prefect = None,
    refit: Annotated[bool, typer.Option("--refit", help="Fit its release again with this version, for free.")] = False,
    as_json: AsJson = False,
    fail_on_checks: FailOnChecks = False,
) -> None:
    """Go on with an interrupted run, from whatever stage it reached; never charges a second time.

    Example: nacre resume RUN
    """
    from flows.command_line.console import resumable
    from flows.command_line.outcomes import failing
    from flows.command_line.show import show_fitted, show_hand_off
    from flows.synthesize import carry_out, find

    here = RuntimeConfig.model_validate({} if dask is None else {"dask": dask})
    changed: dict[str, Any] = {"device": device, "out": None if refit else out}
    stored_run = find(home or HOME, run, ledger, here.dask, **changed)
    prefect = stored_run.settings.prefect if prefect is None else prefect
    with resumable(stored_run), failing(stored_run, as_json and not refit):
        if not refit:
            carry_out(stored_run, prefect)
            show_hand_off(stored_run, as_json, fail_on_checks)
        else:
            from flows.fit import refit as fit_again

            show_fitted(*fit_again(stored_run, out, prefect), as_json, fail_on_checks)


@app.command()
@partial(takes_settings, model=FitConfig)
def fit(config: FitConfig, as_json: AsJson = False, fail_on_checks: FailOnChecks = False) -> None:
    """Make another generator from a release, which is paid for: nothing is charged. It is handed over as its own run.

    Example: nacre fit .nacre/released/RUN/release.parquet --out again
    """
    from flows.command_line.console import resumable
    from flows.command_line.show import show_fitted
    from flows.fit import fit as fit_again
    from tasks.run.store import Run, new_name

    runtime, name = config.runtime, new_name()
    with resumable(Run(home=runtime.home.absolute(), name=name, ledger_url=runtime.ledger or "")):
        show_fitted(*fit_again(config, name), as_json, fail_on_checks)


@app.command("runs")
def list_of_runs(home: Home = None, ledger: Url = None, as_json: AsJson = False) -> None:
    """List the runs of a home: what each is about, its last stage, and, if it did not end, why and how it goes on.

    Example: nacre runs
    """
    from flows.command_line.show import show_runs
    from tasks.run.runs import list_runs

    show_runs(list(list_runs(home or HOME, ledger)), as_json)


@app.command()
def approve(
    run: Annotated[str, typer.Argument(help="The run that waits; or the folder of a hand-off, which may then leave.")],
    key: Annotated[Path, typer.Option(help="The officer's ed25519 private key (PEM).")],
    home: Home = None,
    ledger: Url = None,
    reason: Annotated[str, typer.Option(help="Why a hand-off may leave, in a line; signed, and public.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Sign without asking.")] = False,
    details: Details = False,
    as_json: AsJson = False,
) -> None:
    """Sign as an officer, after a look and a question: for what a run will be charged, or that a hand-off may leave.

    Example: nacre approve RUN --key officer.pem; nacre approve hand-off --key officer.pem
    """
    if (folder := Path(run)) != Path() and (folder / "manifest.json").exists():
        return agree_to(folder, key, reason, yes, as_json)
    if reason:
        from tasks.stages.agree import REASON_OF_A_CHARGE

        raise InvalidArgument("reason", reason, REASON_OF_A_CHARGE)
    from flows.command_line.console import confirm
    from flows.command_line.show import show_approved
    from flows.description import describe_run
    from flows.in_short import shortened
    from tasks.run.accounts import officer_of, sign_run
    from tasks.run.signing import check_signing_key, passphrase_of
    from tasks.run.store import Run

    stored_run = Run.find(home or HOME, run, ledger)
    check_signing_key(key, "key")
    if signing := officer_of(stored_run):
        officer, request = signing
        request.check_key(officer, key, passphrase_of(key, "key"))
    plan = describe_run(stored_run)
    confirm("plan", plan if details else shortened(plan), "Sign for this?", yes, as_json)
    show_approved(stored_run, *sign_run(stored_run, key), as_json)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the demo works.")] = Path("demo"), as_json: AsJson = False
) -> None:
    """Run the whole pipeline on a real public table, which it brings: what 15,992 men earned.

    Example: nacre demo --folder demo
    """
    from flows.command_line.console import print_json
    from flows.command_line.ledger_show import facts_of_account, show_accounts
    from flows.command_line.show import hand_off, show_hand_off
    from flows.demo import describe_utility, run_demo
    from tasks.run.home import ledger_of

    home = (folder / "home").absolute()
    with interruptible(lambda: f"nacre runs --home {home} says what was charged, and how it goes on"):
        run = run_demo(folder)
    ledger = ledger_of(run)
    account = ledger.account(run.settings.account)
    if as_json:
        facts = {"hand-off": hand_off(run), "account": facts_of_account(ledger, account)}
        return print_json({**facts, "utility": describe_utility(run)})
    show_hand_off(run)
    show_accounts(ledger, [account])
    echo(describe_utility(run))


def agree_to(folder: Path, key: Path, reason: str, yes: bool, as_json: bool) -> None:
    """Show what a hand-off is, ask, and sign as an officer that it may leave.

    Raises:
        ArtifactError: something is wrong with it.
        InvalidArgument: the key is not that of whoever approved the charge, or the reason is too long.
    """
    from flows.command_line.console import confirm, say
    from flows.command_line.show import spaced
    from tasks.run.signing import check_signing_key
    from tasks.stages.agree import agree, check_agreement, look

    check_signing_key(key, "key")
    facts = look(folder).facts
    check_agreement(folder, key, reason)
    del facts["may_leave"]
    confirm("hand-off", spaced(facts), "Sign that these files may leave?", yes, as_json)
    file, fingerprint = agree(folder, key, reason)
    said = f"{file}: you signed that the files of {folder} may leave, with the key whose SHA-256 is {fingerprint}"
    say(said, {"file": str(file), "key": fingerprint}, as_json)
