"""The command that audits methods on made data."""

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmodels.errors import InvalidArgument
from flows.command_line.options import AsJson
from flows.command_line.printing import echo

if TYPE_CHECKING:
    from dpmodels.audit.findings import Audit

app = typer.Typer()


@app.command()
def audit(
    method: Annotated[
        list[str] | None, typer.Option(help="Method to audit, or several. (default: all, some minutes)")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Take as many draws as bounds without assumptions need: an hour.")
    ] = False,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="Write a page of what was found to this file.")] = None,
) -> None:
    """Hold methods to what they claim and are charged, on made data; costs nothing and reads nobody's data.

    Ends with status 1 if a check does not hold. docs/audit.md says what the checks are, and what they cannot see.

    Example: nacre audit --method nacre --out audit.html
    """
    from dpmodels.audit.subjects import SUBJECTS, check_method
    from dpmodels.pages.audit import render_audit
    from flows.audit import audited
    from flows.command_line.console import console
    from tasks.run.ready import check_writable

    for name in method or ():
        check_method(name)
    if out:
        check_writable(out.parent)
    if out and out.is_dir():
        raise InvalidArgument("out", out, "be a file, and not a folder")
    audits = []
    for name in method or SUBJECTS:
        with tempfile.TemporaryDirectory() as folder:
            audits.append(audited(name, Path(folder), full))
        if not as_json:
            _print(audits[-1])
    facts = [one.model_dump(mode="json") for one in audits]
    if as_json:
        echo(json.dumps(facts, indent=1))
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(render_audit(facts), encoding="utf-8")
        console.print(f"page: {out}", soft_wrap=True)
    if not all(one.holds for one in audits):
        raise typer.Exit(1)


def _print(one: "Audit") -> None:
    """Print what was recovered of a method, and the checks that failed."""
    from rich.table import Table

    from flows.command_line.console import console, print_table

    table = Table(title=f"{one.method}, {one.date}, {one.machine}", title_justify="left")
    for header in ("draw", "claimed", "recovered", "without assumptions", "ceiling", "share", "reach", "draws"):
        table.add_column(header, justify="left" if header == "draw" else "right")
    for each in one.recovered:
        low, high = each.parametric or (0.0, None)
        table.add_row(
            each.step,
            f"{each.claimed:.4g}",
            f"{low:.4g}" if high in (None, low) else f"{low:.4g} to {high:.4g}",
            "" if each.assumption_free is None else f"{each.assumption_free:.4g}",
            "" if each.ceiling is None else f"{each.ceiling:.4g}",
            f"{100 * each.share:.3g} %",
            f"{100 * each.reach:.3g} %",
            str(each.draws or "exact"),
        )
    print_table(table)
    passes = sum(finding.holds for finding in one.findings)
    console.print(f"{passes} of {len(one.findings)} checks hold")
    for finding in one.findings:
        if not finding.holds:
            console.print(f"{finding.check} fails: {finding.says}", markup=False, style="red")
