"""The command that deletes files of runs: of one, of all that were never charged, or the private ones that expired."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from flows.command_line.options import AsJson, Home, Url
from flows.command_line.printing import echo
from flows.sections import HOME

app = typer.Typer()


@app.command()
def remove(
    run: Annotated[str, typer.Argument(help="Run to delete.")] = "",
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Delete every run that stopped before it took a charge.")
    ] = False,
    expired: Annotated[
        bool,
        typer.Option("--expired", help="Delete the private files of runs whose retention names a day that is past."),
    ] = False,
    home: Home = None,
    ledger: Url = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete the files of a run that nobody is working on; what it was charged stays charged.

    Example: nacre remove RUN
    """
    from flows.command_line.console import confirm, say
    from flows.command_line.show import facts_of_removal
    from tasks.run.remove import charged_for
    from tasks.run.remove import remove as take_away
    from tasks.run.store import Run

    if sum((bool(run), unfinished, expired)) != 1:
        raise typer.BadParameter("name a run, or give --unfinished or --expired, and one of them alone")
    if expired:
        return _remove_expired(home or HOME, ledger, yes, as_json)
    if unfinished:
        return _remove_unfinished(home or HOME, ledger, yes, as_json)
    stored_run = Run.find(home or HOME, run, ledger)
    facts, charged = facts_of_removal(stored_run), any(charge.state != "voided" for charge in charged_for(stored_run))
    confirm("to be deleted", facts, "Delete these folders?", yes, as_json)
    take_away(stored_run)
    stays = "its charges stay in the ledger" if charged else "it was charged nothing"
    say(f"run {run} is gone; {stays}", {"run": run, **facts}, as_json)


def _remove_unfinished(home: Path, ledger: str | None, yes: bool, as_json: bool) -> None:
    """Delete the runs that stopped before they took a charge, and say of other unfinished runs why they stay."""
    from flows.command_line.console import confirm, say
    from flows.command_line.show import facts_of_unfinished
    from tasks.run.remove import remove as take_away
    from tasks.run.runs import sort_unfinished

    runs, reasons = sort_unfinished(home, ledger)
    if not as_json:
        for name, reason in reasons.items():
            echo(f"{name}: stays, {reason}")
    names = [run.name for run in runs]
    if runs:
        confirm("to be deleted", facts_of_unfinished(runs), "Delete the files of these runs?", yes, as_json)
        for run in runs:
            take_away(run)
    gone = f"gone: {', '.join(names)}; nothing was charged for them" if runs else "nothing to remove"
    say(gone, {"removed": names, "kept": reasons}, as_json)


def _remove_expired(home: Path, ledger: str | None, yes: bool, as_json: bool) -> None:
    """Delete the private files of runs whose retention has ended, and say of those that stay why."""
    from dpmodels.errors import NacreError
    from flows.command_line.console import confirm, say
    from tasks.run.remove import remove_private
    from tasks.run.runs import sort_expired

    runs, reasons = sort_expired(home, datetime.now(UTC).date())
    removed = list[str]()
    if runs:
        facts = {run.name: f"{run.sensitive}: {run.settings.retention}" for run in runs}
        confirm("to be deleted", facts, "Delete these folders?", yes, as_json)
    for run in runs:
        try:
            remove_private(run.model_copy(update={"ledger_url": ledger or ""}))
            removed.append(run.name)
        except NacreError as error:  # a charge is open, or its ledger is another: the others' time is over all the same
            reasons[run.name] = str(error)
    if not as_json:
        for name, reason in reasons.items():
            echo(f"{name}: stays, {reason}")
    gone = (
        f"gone: the private files of {', '.join(removed)}; releases and charges stay"
        if removed
        else "nothing to remove"
    )
    say(gone, {"removed": removed, "kept": reasons}, as_json)
