"""The commands that judge what a run made: gate, report, comparison, and the check of a hand-off."""

from pathlib import Path
from typing import Annotated

import typer

from dpmodels.errors import Unsuitable
from flows.command_line.options import TEXT, AsJson, FailOnChecks, Home, Jobs, LeNet, SchemaFile, TestRows
from flows.command_line.printing import echo
from flows.sections import HOME

ADVISED = "to fix it: do what is said of it above"
RAW = "Which rules it is held to. (default: by its columns; where these do not tell, those for raw tables)"
app = typer.Typer()


@app.command()
def validate(
    folder: Annotated[str, typer.Argument(help="Hand-off, or any file, folder or URI of a table with --schema.")],
    schema: SchemaFile = None,
    raw: Annotated[bool | None, typer.Option("--raw/--synthetic", help=RAW, show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Hold a table, from whatever tool, against the expectations of a schema.

    One that has every column, dropped identifiers too, is held to the rules for raw tables, before a run is given it;
    so is one whose columns do not tell, unless it lies in a hand-off.

    Example: nacre validate hand-off
    """
    from dpmodels.gate.causes import first_causes
    from dpmodels.gate.policies import Policy
    from flows.command_line.checks import show_gate
    from tasks.stages.validate import check_hand_off

    gate = check_hand_off(folder, schema, raw)
    show_gate(gate, as_json)
    advised = {one.name for one in gate.policies if not isinstance(one, Policy)}
    for rule, following in first_causes(gate.broken):
        fix = ADVISED if rule.column in advised else rule.fix(of_users=True)  # what helps raw rows helps those of users
        fix = f"; {fix}" if gate.raw else ""
        echo(f"broken: {rule}{following}{fix}", err=True)
    if gate.broken:
        raise typer.Exit(1)


@app.command()
def export(
    hand_off: Annotated[Path, typer.Argument(help="Hand-off whose synthetic table is copied.")],
    to: Annotated[
        str,
        typer.Argument(
            help="New file (.csv, .parquet, .arrow, .jsonl, .xlsx, .duckdb), folder, or URI such as "
            "s3://bucket/folder; or delta:FOLDER, iceberg:CATALOG.db#NAMESPACE.TABLE."
        ),
    ],
    by: Annotated[list[str] | None, typer.Option(help="Column, or several, whose values are folders.")] = None,
    as_json: AsJson = False,
    png: Annotated[bool, typer.Option("--png", help="Write images as PNG files, in a folder for each label.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Make the next snapshot of a Delta or Iceberg table.")
    ] = False,
    text: Annotated[str, typer.Option(help=TEXT)] = "",
) -> None:
    """Copy the synthetic table of a hand-off, once it was verified, to a file, a folder, a store or an open table.

    Example: nacre export hand-off visits.csv, or s3://clinic-public/visits/ --by ward
    """
    from flows.command_line.console import say
    from tasks.stages.export import export as copy

    rows = copy(hand_off, to, by or (), png, replace, text)
    facts = {"hand-off": str(hand_off), "to": to, "by": by or [], "rows": rows}
    say(f"the synthetic table of {hand_off} is in {rows}", facts, as_json)


@app.command()
def report(
    run: str,
    internal: Annotated[bool, typer.Option("--internal", help="Compare exactly with the real rows.")] = False,
    real_rows: Annotated[bool, typer.Option("--real-rows", help="With --internal: show a few real rows too.")] = False,
    test: TestRows = None,
    lenet: LeNet = None,
    jobs: Jobs = None,
    out: Annotated[Path | None, typer.Option(help="Write the publishable page again, to this file.")] = None,
    home: Home = None,
    as_json: AsJson = False,
    fail_on_checks: FailOnChecks = False,
) -> None:
    """Show a finished run's report; with --internal, make the exact one, which stays in the sensitive zone.

    Example: nacre report RUN --internal
    """
    from flows.command_line.named_run import run_named

    stored_run, exact = run_named(run, home), {"--test": test, "--lenet": lenet, "--jobs": jobs}
    exact["--real-rows"] = real_rows or None
    if ignored := [name for name, value in ({"--out": out} if internal else exact).items() if value is not None]:
        raise Unsuitable(f"{ignored[0]} says nothing here: {'leave out' if internal else 'add'} --internal")
    if internal:
        from flows.command_line.evaluation import show_internal

        show_internal(stored_run, test, lenet, jobs, real_rows, as_json, fail_on_checks)
    else:
        from flows.command_line.show import show_report

        show_report(stored_run, out, as_json, fail_on_checks)


@app.command()
def compare(
    tables: Annotated[list[str], typer.Argument(help="Hand-offs, or synthetic files, folders or URIs of any tool.")],
    real: Annotated[str, typer.Option(help="Real rows that they were made from.")],
    schema: Annotated[Path, typer.Option(help="Schema of the table (YAML).")],
    test: TestRows = None,
    out: Annotated[Path | None, typer.Option(help="Private folder for the page. (default: in the home)")] = None,
    as_json: AsJson = False,
    fail_on_checks: FailOnChecks = False,
    lenet: LeNet = None,
    jobs: Jobs = None,
    home: Home = None,
) -> None:
    """Judge synthetic tables side by side against the same real rows; the figures are exact and stay inside.

    Example: nacre compare a.parquet b.parquet --real patients.parquet --schema patients.yaml
    """
    from flows.command_line.evaluation import show_comparison
    from tasks.run.runs import new_comparison

    show_comparison(
        tables, real, test, schema, out or new_comparison(home or HOME), jobs, lenet, as_json, fail_on_checks
    )


@app.command()
def verify(
    folder: Annotated[str, typer.Argument(help="Hand-off that was received: a folder, or its URI.")],
    public_key: Annotated[Path | None, typer.Option(help="Key (PEM) the manifest must be signed with.")] = None,
    officer_key: Annotated[
        Path | None, typer.Option(help="Key (PEM) of the officer who approved the charge and lets the files leave.")
    ] = None,
    records: Annotated[
        Path | None, typer.Option(help="Folder of its records, as nacre disclose wrote them: check these too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a hand-off by itself, without its ledger: every file, the budget, the pages, and the signature.

    Exits with 0 if a key that you name vouches for it, with 3 if it is only consistent, and with 1 if it has faults;
    with 4 if you name an officer's key, and no officer signed that the files may leave.

    Example: nacre verify hand-off --public-key signer.pub
    """
    from flows.command_line.show import show_verified

    show_verified(folder, public_key, officer_key, records, as_json)
