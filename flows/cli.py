"""The command line. Imports stay inside the commands, so that ``nacre --help`` answers at once."""

import inspect
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dpmodels.errors import NacreError
from flows.ledger import HOME, AllowLargeDelta, Home, Url
from flows.ledger import app as ledger_app

if TYPE_CHECKING:
    from flows.config import SynthesizeConfig

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    help="Turn sensitive data into synthetic data under one cumulative privacy account.",
)
schema_app = typer.Typer(no_args_is_help=True, help="Draft and check schemas, the public contract of a table.")
app.add_typer(ledger_app, name="ledger")
app.add_typer(schema_app, name="schema")

Data = Annotated[Path, typer.Argument(help="CSV or Parquet: one file or a folder.")]
SchemaFile = Annotated[Path | None, typer.Option("--schema", help="Schema of the table (YAML).")]
Epsilon = Annotated[float | None, typer.Option("--target-epsilon", help="Epsilon to spend, 0.001 to 1000.")]
ReportEpsilon = Annotated[
    float | None, typer.Option(help="Spend this on scores on the real rows, for the report. (default: none)")
]
Delta = Annotated[float | None, typer.Option(help="Delta, above 0 and below 1; never from the row count.")]
Method = Annotated[str | None, typer.Option(help="Synthesis method. (default: nacre, or nacre-images)")]
Rows = Annotated[int | None, typer.Option(help="Synthetic rows. (default: the released, noisy number of records)")]
AccountName = Annotated[str | None, typer.Option("--account", help="Account that pays. (default: the data set's)")]
Device = Annotated[str | None, typer.Option(help="auto, cpu or cuda. (default: auto)")]
Dask = Annotated[
    str | None, typer.Option(envvar="NACRE_DASK", help="Scheduler (tcp://…, tls://…) of workers that sum, or none.")
]
OtherDevice = Annotated[
    str | None, typer.Option("--device", help="Another device: auto, cpu, cuda. (default: as begun)")
]
OtherOut = Annotated[Path | None, typer.Option("--out", help="Another hand-off folder. (default: as begun)")]
Seed = Annotated[int | None, typer.Option(help="Seeds training and sampling only, never the noise. (default: 0)")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="YAML with any of these and the model's settings.")]
TestRows = Annotated[Path | None, typer.Option("--test", help="Real rows (Parquet) kept from the synthesis.")]
LeNet = Annotated[Path | None, typer.Option(help="LeNet-5 weights (safetensors) for the features of 28 x 28 images.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Threads. (default: one a core, at most 8)")]
Out = Annotated[Path | None, typer.Option(help="Hand-off folder; must be new or empty.")]
Prefect = Annotated[bool | None, typer.Option("--prefect/--no-prefect", help="Run as a Prefect flow. (default: on)")]
SigningKey = Annotated[Path | None, typer.Option(help="ed25519 private key (PEM) that signs the manifest.")]
OfficerKey = Annotated[Path, typer.Option("--key", help="The officer's ed25519 private key (PEM).")]
DeploymentsFile = Annotated[
    Path | None, typer.Option("--file", help="Deployments (YAML). (default: the ones nacre ships)")
]


def read_options(
    data: Data,
    schema: SchemaFile = None,
    target_epsilon: Epsilon = None,
    delta: Delta = None,
    out: Out = None,
    method: Method = None,
    rows: Rows = None,
    account: AccountName = None,
    device: Device = None,
    dask: Dask = None,
    seed: Seed = None,
    config: ConfigFile = None,
    home: Home = None,
    prefect: Prefect = None,
    ledger: Url = None,
    signing_key: SigningKey = None,
    report_epsilon: ReportEpsilon = None,
    allow_large_delta: AllowLargeDelta = None,
) -> "SynthesizeConfig":
    """Turn the options of a synthesis into its configuration; what was not given comes from ``--config``."""
    from flows.config import SynthesizeConfig

    options: dict[str, Any] = {
        "data": data,
        "schema": schema,
        "out": out,
        "rows": rows,
        "privacy": {"target_epsilon": target_epsilon, "delta": delta, "account": account}
        | {"report_epsilon": report_epsilon, "allow_large_delta": allow_large_delta},
        "model": {"method": method},
        "runtime": {"home": home, "device": device, "seed": seed, "prefect": prefect}
        | {"dask": None if dask == "none" else dask, "ledger": ledger, "signing_key": signing_key},
    }
    return SynthesizeConfig.build(options, config)


def takes_options(command: Callable[["SynthesizeConfig"], None]) -> Callable[..., None]:
    """Give a command that wants a configuration the options of ``read_options``."""

    def parsed(**options: Any) -> None:
        command(read_options(**options))

    parsed.__name__, parsed.__doc__ = command.__name__, command.__doc__
    parsed.__signature__ = inspect.signature(read_options)  # type: ignore[attr-defined]
    parsed.__annotations__ = {**read_options.__annotations__, "return": None}
    return parsed


@app.command()
@takes_options
def synthesize(config: "SynthesizeConfig") -> None:
    """Make a synthetic copy of a table: ingest, sanitize (the charge), train, sample, validate, hand off."""
    from flows.show import show_hand_off
    from flows.synthesize import carry_out, start

    run = start(config)
    typer.echo(f"run {run.name}; if it is interrupted: nacre resume {run.name} --home {run.home}", err=True)
    show_hand_off(carry_out(run, config.runtime.prefect))


@app.command()
@takes_options
def plan(config: "SynthesizeConfig") -> None:
    """Show what the same `synthesize` would charge and how much noise it would add; opens no data file."""
    from flows.show import show_plan
    from flows.synthesize import make_plans, make_quote

    lines = make_plans(config)
    quote = make_quote(config, lines)
    show_plan(lines, quote)
    if quote is not None and not quote.accepted:
        raise typer.Exit(1)


@app.command()
def resume(
    run: str,
    device: OtherDevice = None,
    out: OtherOut = None,
    dask: Dask = None,
    home: Home = None,
    ledger: Url = None,
    prefect: Prefect = None,
) -> None:
    """Go on with an interrupted run, from whatever stage it reached; never charges a second time."""
    from flows.show import show_hand_off
    from flows.synthesize import carry_out, find

    found = find(home or HOME, run, ledger, None if dask == "none" else dask, device=device, out=out)
    show_hand_off(carry_out(found, prefect is not False))


@app.command()
def approve(run: str, key: OfficerKey, home: Home = None, ledger: Url = None) -> None:
    """Sign for what a run will be charged, as the officer of its account; shows the plan and what was signed."""
    from flows.show import show_approved
    from tasks.accounts import sign_run
    from tasks.store import Run

    found = Run.find(home or HOME, run, ledger)
    show_approved(found, *sign_run(found, key))


@app.command()
def adopt(
    run: str,
    home: Home = None,
    ledger: Url = None,
    yes: Annotated[bool, typer.Option("--yes", help="Take it over without asking.")] = False,
) -> None:
    """Take over a run that an earlier version started, once you have read what its files say."""
    from flows.show import show_found
    from tasks.adopt import find_old

    found = find_old(home or HOME, run, ledger or "")
    show_found(found)
    if not yes:
        typer.confirm("Is all of this as you know it?", abort=True, err=True)
    found.take_over()
    typer.echo(f"next: nacre resume {run}")


@app.command()
def validate(
    folder: Annotated[Path, typer.Argument(help="Hand-off, or any Parquet file or folder with --schema.")],
    schema: SchemaFile = None,
) -> None:
    """Hold a synthetic table, from whatever tool, against the expectations of a schema."""
    from flows.show import show_gate
    from tasks.validate import check_hand_off

    gate = check_hand_off(folder, schema)
    show_gate(gate)
    for rule in gate.broken:
        typer.echo(f"broken: {rule}", err=True)
    if gate.broken:
        raise typer.Exit(1)


@app.command()
def report(
    run: str,
    internal: Annotated[bool, typer.Option("--internal", help="Compare exactly with the real rows.")] = False,
    test: TestRows = None,
    lenet: LeNet = None,
    jobs: Jobs = None,
    out: Annotated[Path | None, typer.Option(help="Write the publishable page again, to this file.")] = None,
    home: Home = None,
) -> None:
    """Show a finished run's report; with --internal, make the exact one, which stays in the sensitive zone."""
    from tasks.store import Run

    found = Run.find(home or HOME, run)
    if internal:
        from flows.evaluate import show_internal

        show_internal(found, test, lenet, jobs)
    else:
        from flows.show import show_report

        show_report(found, out)


@app.command()
def compare(
    tables: Annotated[list[Path], typer.Argument(help="Synthetic Parquet files or folders, from any tool.")],
    real: Annotated[Path, typer.Option(help="Real rows (Parquet) that they were made from.")],
    schema: Annotated[Path, typer.Option(help="Schema of the table (YAML).")],
    test: TestRows = None,
    out: Annotated[Path | None, typer.Option(help="Private folder for the page. (default: in the home)")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    lenet: LeNet = None,
    jobs: Jobs = None,
    home: Home = None,
) -> None:
    """Judge synthetic tables side by side against the same real rows; the figures are exact and stay inside."""
    from flows.evaluate import default_out, show_comparison

    show_comparison(tables, real, test, schema, out or default_out(home or HOME), jobs, lenet, as_json)


@app.command()
def demo(folder: Annotated[Path, typer.Option(help="Where the demo works.")] = Path("demo")) -> None:
    """Run the whole pipeline on a real public table, the RAND Health Insurance Experiment."""
    from flows.demo import run_demo

    run_demo(folder)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="Hand-off that was received.")],
    public_key: Annotated[Path | None, typer.Option(help="Key (PEM) the manifest must be signed with.")] = None,
) -> None:
    """Check a hand-off by itself, without its ledger: every file, the budget, and the signature."""
    from flows.show import show_verified

    show_verified(folder, public_key)


@app.command()
def deploy(
    file: DeploymentsFile = None,
    show: Annotated[bool, typer.Option("--show", help="Only print the file, to be copied and changed.")] = False,
) -> None:
    """Register the deployments with the Prefect server of PREFECT_API_URL; their schedules are inactive as shipped."""
    from flows.deploy import SHIPPED
    from flows.deploy import deploy as register

    if show:
        typer.echo((file or SHIPPED).read_text(encoding="utf-8"), nl=False)
    else:
        register((file or SHIPPED).absolute())


@app.command()
def serve(
    file: DeploymentsFile = None,
    home: Home = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Of the server and its UI, on loopback.")] = 4200,
) -> None:
    """Run a Prefect server and all deployments on this one machine, until it is stopped."""
    from flows.deploy import SHIPPED, serve_here

    serve_here((file or SHIPPED).absolute(), home or HOME, port)


@schema_app.command("init")
def schema_init(
    data: Data,
    header: Annotated[bool, typer.Option("--header", help="You have seen that the file's names are names.")] = False,
) -> None:
    """Draft a schema from column names and types only; every bound and category is left for you to fill in."""
    from dpmodels.schema.draft import draft
    from dpmodels.schema.header import DoubtfulNames

    try:
        text = draft(data, header)
    except DoubtfulNames as doubt:
        if not sys.stdin.isatty() or not typer.confirm(f"{doubt}. Print them as names?", err=True):
            raise
        text = draft(data, affirmed=True)
    typer.echo("the first line of a CSV file is taken as names, as is a Parquet file's footer: check them", err=True)
    typer.echo(text)


@schema_app.command("lint")
def schema_lint(schema: Path) -> None:
    """Explain every fault of a schema with its line."""
    from dpmodels.schema.lint import lint

    faults = lint(schema)
    for fault in faults:
        typer.echo(f"{schema}: {fault}", err=True)
    if faults:
        raise typer.Exit(1)
    typer.echo(f"{schema}: no faults")


def main() -> NoReturn:
    """Run the command line; an error for the user is one sentence on standard error and exit code 1."""
    with _heeded_signals():
        try:
            app()
        except NacreError as error:
            typer.echo(f"error: {error}", err=True)
            sys.exit(1)
        sys.exit(0)


@contextmanager
def _heeded_signals() -> Iterator[None]:
    """End on SIGTERM through every `finally`, and on each signal even if it falls into a finalizer.

    What is raised in a finalizer or a weak reference's callback Python reports and drops, a Ctrl-C too: third parties
    have many of them. The signal is then sent again, a moment later.
    """
    report = sys.unraisablehook
    signals: dict[type[BaseException], int] = {KeyboardInterrupt: signal.SIGINT, SystemExit: signal.SIGTERM}

    def send_again(dropped: "sys.UnraisableHookArgs") -> None:
        number = signals.get(dropped.exc_type)
        if number is None:
            report(dropped)
        else:
            timer = threading.Timer(0.1, os.kill, (os.getpid(), number))
            timer.daemon = True
            timer.start()

    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = report
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    main()
