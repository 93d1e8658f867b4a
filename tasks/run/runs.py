"""The runs of a home: what each is about, how far it is, why it stopped there, and how it goes on."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from dpmodels.artifact import settle, sha256_of
from dpmodels.contract.federation import STAYS_INSIDE
from dpmodels.errors import ArtifactError, NacreError
from dpmodels.hand_off.manifest import MANIFEST, read_manifest
from dpmodels.reading.addresses import address_of
from dpmodels.reading.data_files import is_uri
from tasks.run.at_work import is_for_officer, why_stopped
from tasks.run.lock import is_at_work
from tasks.run.ready import check_folder
from tasks.run.remove import is_approved, took_charge
from tasks.run.store import BEGUN, DELIVERED, Run

PAID = ("sanitize", "score", "train", "sample", "validate")
"""Stages after the charge: who gives the same command again instead of going on pays again."""
UNFINISHED, UNFINISHED_PAID, AT_WORK = "unfinished", "paid for, unfinished", "at work"
AWAITS = "waits for approval"
AGAIN = "nacre schema discover, with the same draft, epsilon and delta"


@dataclass(frozen=True)
class Listed:
    """One run; ``stage`` is the last one that finished, ``state`` says whether there is anything left to do.

    Attributes:
        why: of an unfinished run, why the work at it stopped; next: the command that goes on with it, or deletes it.
        time: of the day, in UTC, at which its plan was written, by which runs of one day are told apart.
    """

    name: str
    day: str
    data_set: str
    method: str
    stage: str
    state: str
    why: str = ""
    next: str = ""
    time: str = ""


def list_runs(home: Path, ledger_url: str | None = None) -> Iterator[Listed]:
    """List the runs of a home, the oldest first.

    Raises:
        NacreError: there is no such home.
    """
    for run in runs_of(home, ledger_url):
        yield listed(run)


def runs_of(home: Path, ledger_url: str | None = None) -> Iterator[Run]:
    """Yield the runs of a home, the oldest first.

    Raises:
        NacreError: there is no such home.
    """
    if not (home / "control").is_dir():
        raise NacreError(f"there are no runs at {home}; name a home with --home")
    for settings in sorted((home / "control").glob("*/settings.json"), key=lambda path: path.stat().st_mtime):
        yield Run(home=home.absolute(), name=settings.parent.name, ledger_url=ledger_url or "")


def is_handed_over(run: Run) -> bool:
    """Tell whether a run was handed over: it is marked so, or the hand-off at its place is the run's own."""
    return (run.control / DELIVERED).exists() or is_in_place(run)


def mark_finished(run: Run) -> None:
    """Write down that a run reached its end; one that an earlier version began has no mark."""
    with suppress(FileNotFoundError):
        settle(run.control / BEGUN, run.control / DELIVERED)


def stays_inside(run: Run) -> bool:
    """Tell whether a run ends in the sensitive zone: it trains models in rounds without a guarantee."""
    return run.plan.method in STAYS_INSIDE


def inside(run: Run) -> Path:
    """Return the folder, in the sensitive zone, of models that were trained in rounds and of the page on them."""
    return run.sensitive / "rounds"


def is_in_place(run: Run) -> bool:
    """Tell whether the run's own hand-off lies at its place: by its manifest's digest, which the run's mark holds.

    Runs of earlier versions have no mark, or an empty one once they are delivered; their manifest's name is believed.
    """
    mark = next((path for name in (DELIVERED, BEGUN) if (path := run.control / name).is_file()), None)
    digest = mark.read_text(encoding="utf-8") if mark else ""
    try:
        is_its_own = read_manifest(run.settings.out).made_by == run.name
        return is_its_own and (
            sha256_of(run.settings.out / MANIFEST) == digest if digest else mark != run.control / BEGUN
        )
    except (ArtifactError, OSError):
        return False


def resume_command(run: Run) -> str:
    """Return the command that goes on with a run, wherever it is typed."""
    return f"nacre resume {run.name} {'--out OUT ' if is_out_lost(run) else ''}{_where(run)}"


def is_out_lost(run: Run) -> bool:
    """Tell whether an unfinished run's hand-off can lie at its place no more, so that it needs another one."""
    if not run.exists or run.settings.bucket or stays_inside(run) or is_handed_over(run):
        return False
    try:
        check_folder(run.settings.out)
    except ArtifactError:
        return True
    return False


def listed(run: Run) -> Listed:
    """Say what a run is about, and what is left to do."""
    began = datetime.fromtimestamp((run.control / "plan.json").stat().st_mtime, UTC)
    day, time = f"{began:%Y-%m-%d}", f"{began:%H:%M}"
    try:
        plan = run.plan
        data_set = plan.contract.name if run.settings.federation else plan.whole.name
        return replace(Listed(run.name, day, data_set, plan.method, run.reached, *_state(run)), time=time)
    except (NacreError, ValueError, OSError) as fault:  # of another version, or damaged
        why = str(fault) if isinstance(fault, NacreError) else ""
        return Listed(run.name, day, "", "", run.reached, "cannot be read", why, time=time)


def sort_unfinished(home: Path, ledger_url: str | None = None) -> tuple[list[Run], dict[str, str]]:
    """Return the runs that stopped before they took a charge, and by name why every other unfinished run stays."""
    removable, reasons = list[Run](), dict[str, str]()
    for run in runs_of(home, ledger_url):
        one = listed(run)
        if one.state in (UNFINISHED, AWAITS) and not (reason := _reason_to_stay(run)):
            removable.append(run)
        elif one.state in (UNFINISHED, AWAITS):
            reasons[run.name] = reason
        elif one.state == UNFINISHED_PAID:
            reasons[run.name] = f"it is paid for: {one.next} goes on, for nothing"
        elif one.state == AT_WORK:
            reasons[run.name] = "a process works on it"
    return removable, reasons


def sort_expired(home: Path, today: date) -> tuple[list[Run], dict[str, str]]:
    """Return the runs whose private files were to be kept until a day before today, and by name why others stay.

    A retention that names no day is a person's to obey.
    """
    expired, reasons = list[Run](), dict[str, str]()
    for run in runs_of(home):
        days = run.settings.declared.days if os.path.lexists(run.sensitive) else []
        if len(set(days)) > 1:
            reasons[run.name] = "its retention names more than one day: delete its private files by hand"
        elif days and days[0] < today:
            expired.append(run)
    return expired, reasons


def _reason_to_stay(run: Run) -> str:
    """Say why a run that may have taken no charge is removed by its name alone."""
    if is_approved(run):
        return "it is approved, and another run would have to be approved again"
    return "" if _took_charge(run) is False else f"its ledger is not at hand to say what it took: {run.settings.ledger}"


def _state(run: Run) -> tuple[str, str, str]:
    """Return the state of a run, why it stopped, and the command that goes on with it."""
    if run.settings.federation:
        return f"part of {run.settings.federation}", "", ""
    discovers = run.plan.contract.kind == "discovery"
    if discovers and run.reached:
        return "discovered", "", ""
    if is_handed_over(run):
        return "finished" if stays_inside(run) else "handed over", "", ""
    if is_at_work(run):
        return AT_WORK, "", ""
    paid, why = is_paid(run), why_stopped(run)
    if not paid and (barred := _lost_data(run) or _taken_place(run)):
        return UNFINISHED, f"{why}; {barred}, so it cannot go on", f"nacre remove {run.name} {_where(run)}"
    stopped = AWAITS if is_for_officer(run, why) and not is_approved(run) else UNFINISHED
    return UNFINISHED_PAID if paid else stopped, why, AGAIN if discovers else resume_command(run)


def is_paid(run: Run) -> bool:
    """Tell whether a run took a charge; where its ledger is not at hand, by the stages that it reached."""
    charged = _took_charge(run)
    return run.reached in PAID and not run.settings.paid_by if charged is None else charged


def _took_charge(run: Run) -> bool | None:
    """Tell whether a run took a charge; None where its ledger is not at hand to say so."""
    if run.settings.is_paid_elsewhere:
        return False
    try:
        return took_charge(run)
    except NacreError:
        return None


def _lost_data(run: Run) -> str:
    """Say that the data of a run that has yet to read it lay on this machine and lies there no more."""
    settings = run.settings
    if settings.query or is_uri(settings.data) or "*" in settings.data or is_read(run):
        return ""
    return "" if not settings.data or Path(address_of(settings.data).base).exists() else f"{settings.data} is gone"


def _taken_place(run: Run) -> str:
    """Say that the place of a run's hand-off holds another run's."""
    with suppress(ArtifactError):
        return f"{run.settings.out} holds the hand-off of run {read_manifest(run.settings.out).made_by}"
    return ""


def is_read(run: Run) -> bool:
    """Tell whether a run has its rows or documents in the sensitive zone, in the form that is summed."""
    return (run.sensitive / "encoded").exists()


def _where(run: Run) -> str:
    return f"--home {run.home}" + (f" --ledger {run.ledger_url}" if run.ledger_url else "")


def new_comparison(home: Path) -> Path:
    """Return a fresh folder for a comparison, in the sensitive zone of a home."""
    return home.absolute() / "sensitive" / f"compare-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
